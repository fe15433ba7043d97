//! What a newcomer reads: the greeting, completions for shells, manual pages.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{Arguments, Exit};

/// Examples below the help of the whole program.
pub(crate) const EXAMPLES: &str = "Examples:
  savedsearch sql                                       a shell on demo data
  savedsearch sql -c \"SELECT aid, name FROM saved_searches\"
  SAVEDSEARCH_API_KEY=… savedsearch --base-url https://api.example.com/v4 sql
  savedsearch serve                                     for BI tools
  savedsearch completions bash                          further: man, and --help of each command";

const GREETING: &str = "savedsearch: SQL over saved searches and their mentions.

A service finds mentions for your saved searches, and gives them over a rate-limited HTTP API. Here they are
tables: what you ask in SQL becomes as few requests as can answer it, and EXPLAIN says how many before they
are spent. Without an address and a key everything runs on demo data, so nothing can be spent or broken.

Three things to try:

  savedsearch sql -c \"SELECT aid, name FROM saved_searches\"
  savedsearch sql -c \"SELECT published_at, source, title FROM mentions ORDER BY published_at DESC LIMIT 5\"
  savedsearch sql --format chart -c \"SELECT bucket_start, mentions FROM volume WHERE aid = '183772' ORDER BY 1\"

or `savedsearch sql` alone, a shell with completion and help (\\?).

To ask your own service, put its key into the environment and name its address:

  export SAVEDSEARCH_API_KEY=…
  savedsearch --base-url https://api.example.com/v4 sql

If it answers otherwise than expected, `savedsearch --base-url … probe -o mine.toml` finds out how it speaks.
`savedsearch --help` lists all commands, `savedsearch serve` is for BI tools.
";

/// Says what this is.
pub(crate) fn greet() -> Result<(), Exit> {
    print(GREETING.as_bytes())
}

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell) -> Result<(), Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "savedsearch", &mut script);
    print(&script)
}

/// Prints the manual page of the program, or of a command.
pub(crate) fn manual(command: Option<&str>) -> Result<(), Exit> {
    let mut all = Arguments::command();
    // Options that all commands take are then those of each.
    all.build();
    let page = match command {
        None => all,
        Some(name) => {
            let names: Vec<String> = all.get_subcommands().map(|command| command.get_name().to_owned()).collect();
            let found = all.find_subcommand(name).cloned();
            let found = found
                .ok_or_else(|| Exit::usage(format!("there is no command {name}; there are {}", names.join(", "))))?;
            let name = format!("savedsearch-{name}");
            found.name(name.clone()).display_name(name)
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text).map_err(Exit::usage)?;
    print(&text)
}

/// Writes to stdout; a reader that has gone is no failure.
pub(crate) fn print(text: &[u8]) -> Result<(), Exit> {
    match io::stdout().write_all(text).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Exit::usage(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}
