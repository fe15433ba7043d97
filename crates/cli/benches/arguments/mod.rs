//! Arguments of a benchmark.

/// Returns the argument after `name` on the command line.
pub(crate) fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

/// Parses such an argument as a number.
pub(crate) fn number(name: &str, default: usize) -> Result<usize, std::num::ParseIntError> {
    argument(name).map_or(Ok(default), |number| number.parse())
}
