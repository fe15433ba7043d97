//! Greeting, shell completions and manual pages.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{Arguments, Exit};

/// Examples below the help of the whole program.
pub(crate) const EXAMPLES: &str = "Examples:
  savedsearch sql                                       interactive shell on demo data
  savedsearch sql \"SELECT aid, name FROM saved_searches\"
  SAVEDSEARCH_API_KEY=… savedsearch --base-url https://api.example.com/v4 sql
  savedsearch ui                                        page for a browser
  savedsearch serve                                     server for BI tools
  savedsearch mcp                                       server for agents
  savedsearch man sql | man -l -                        manual page of a command";

const GREETING: &str = "savedsearch: SQL over saved searches and their mentions.

For media monitoring and social listening: your saved searches, and the posts and articles that they found, are
behind a rate-limited HTTP API. This program shows them as tables. A query sends as few requests as possible,
and --estimate shows how many in advance. Until you set a base URL, everything runs on built-in demo data:
nothing can be used up or broken.

Three queries to try:

  savedsearch sql \"SELECT aid, name FROM saved_searches\"
  savedsearch sql \"SELECT published_at, source, title FROM mentions ORDER BY published_at DESC LIMIT 5\"
  savedsearch sql --format chart \"SELECT bucket_start, mentions FROM volume WHERE aid = '183772' ORDER BY 1\"

Or run `savedsearch sql` for an interactive shell with completion and help (\\?), or `savedsearch ui` for a page in
your browser.

To query your own service, set its key and its base URL:

  export SAVEDSEARCH_API_KEY=…
  savedsearch --base-url https://api.example.com/v4 sql

If your service differs from the built-in profile, `savedsearch --base-url … probe -o mine.toml` writes one for it.
`savedsearch --help` lists all commands; `savedsearch serve` serves BI tools, `savedsearch mcp` agents.
";

/// Prints the greeting.
pub(crate) fn greet() -> Result<(), Exit> {
    print(GREETING.as_bytes())
}

/// Prints the completion script of a shell.
pub(crate) fn completions(shell: Shell) -> Result<(), Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "savedsearch", &mut script);
    print(&script)
}

/// Prints the manual page of the program or of a command.
pub(crate) fn manual(command: Option<&str>) -> Result<(), Exit> {
    let mut all = Arguments::command();
    // Copies global options to each command.
    all.build();
    let page = match command {
        None => all,
        Some(name) => {
            let names: Vec<String> = all.get_subcommands().map(|command| command.get_name().to_owned()).collect();
            let found = all.find_subcommand(name).cloned();
            let found = found
                .ok_or_else(|| Exit::usage(format!("unknown command `{name}`; available: {}", names.join(", "))))?;
            let name = format!("savedsearch-{name}");
            found.name(name.clone()).display_name(name)
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text).map_err(Exit::usage)?;
    print(&text)
}

/// Writes to stdout. A closed pipe is not an error.
pub(crate) fn print(text: &[u8]) -> Result<(), Exit> {
    match io::stdout().write_all(text).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Exit::usage(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer lines would be wrapped once more, which breaks examples.
    #[test]
    fn texts_below_the_options_fit_the_width_of_the_help() {
        fn check(command: &clap::Command) {
            for help in [command.get_after_help(), command.get_after_long_help()].into_iter().flatten() {
                let text = help.to_string();
                let faults = text.split("\nExamples:").next().filter(|_| text.starts_with("Keys:")).unwrap_or_default();
                for line in text.lines().filter(|line| !faults.contains(line)) {
                    assert!(line.chars().count() <= 100, "{}: {line}", command.get_name());
                }
            }
            command.get_subcommands().for_each(check);
        }
        check(&Arguments::command());
    }
}
