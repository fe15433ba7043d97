//! Arguments of a benchmark.

/// Returns the argument after `name` on the command line.
pub(crate) fn argument(name: &str, default: &str) -> String {
    std::env::args().skip_while(|argument| argument != name).nth(1).unwrap_or_else(|| default.to_owned())
}
