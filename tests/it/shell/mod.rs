//! The shell as a user sees it: keystrokes into a terminal, and the resulting screen.

mod screenshot;
mod terminal;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, KEY, RateLimit, Running, Settings};
use datafusion_saved_search::{Clock, Profile};

use self::terminal::{Start, Terminal, without_times};
use crate::binary::Simulate;
use crate::pages::pages;
use crate::support::{corpus, each, knob, now, settled};

/// A service, a state folder, and terminals connected to the service.
struct Desk {
    service: Running,
    address: String,
    folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

impl Desk {
    fn new() -> Self {
        Self::with(corpus(), Settings::default())
    }

    fn with(corpus: Arc<Corpus>, settings: Settings) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let settings = Settings { clock: Clock::fixed(now()), ..settings };
        let service = runtime.block_on(simulator::start("127.0.0.1:0".parse().unwrap(), corpus, settings)).unwrap();
        let address = service.base_url();
        Self { service, address, folder: tempfile::tempdir().unwrap(), runtime }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self, name: &str) -> String {
        self.path().join(name).to_str().unwrap().to_owned()
    }

    /// A shell in a terminal of `size` (lines, columns), at its first prompt.
    fn shell(&self, size: (u16, u16), environment: &[(&str, &str)]) -> Terminal {
        let arguments = ["--base-url", &self.address, "sql"];
        let environment = [&[("SAVEDSEARCH_API_KEY", KEY)], environment].concat();
        let start = Start { size, arguments: &arguments, environment: &environment, state: self.path() };
        let mut terminal = Terminal::start(&start);
        terminal.prompt("tables.");
        terminal
    }

    /// Count of requests that an action took.
    fn cost(&self, act: impl FnOnce()) -> u64 {
        let before = self.service.requests();
        act();
        self.service.requests() - before
    }

    /// Count of requests once none is on its way.
    fn settled(&self) -> u64 {
        self.runtime.block_on(settled(|| self.service.requests()))
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // Requests in flight are dropped with the runtime.
        let _guard = self.runtime.enter();
    }
}

/// A statement with strings in several scripts and widths.
const SCRIPTS: &str = "SELECT * FROM (VALUES ('plain', 1.5, NULL), ('日本語のテキスト', 20, 'نص عربي طويل للاختبار'), \
                       ('emoji 👩‍👩‍👧 ❤️ and é', NULL, 'a text that goes on and on and on')) AS t(word, amount, note);";

/// Types a line and compares the screen with a snapshot.
fn compare(terminal: &mut Terminal, line: &str, expected: &str, name: &str) {
    terminal.line(line, expected);
    insta::assert_snapshot!(name, terminal.last());
}

#[test]
fn a_session_at_80_columns() {
    let desk = Desk::new();
    let mut terminal = desk.shell((40, 80), &[]);
    let mut show = |line: &str, expected: &str, name: &str| compare(&mut terminal, line, expected, name);
    show("SELECT aid, kind, name FROM saved_searches;", "complete", "the_list");
    show("\\d", "system.warnings", "tables");
    show("\\d mentions", "\\cost", "columns");
    show(
        "SELECT published_at, source, title, text, reach FROM mentions WHERE aid = '183772' ORDER BY reach DESC LIMIT 4;",
        "complete",
        "wide_rows",
    );
    show(SCRIPTS, "no request", "scripts");
    show("SELECT id, titel FROM mentions;", "did you mean title", "a_column_that_is_not");
    show("SELECT * FROM mentons;", "did you mean mentions", "a_table_that_is_not");
    show("SELECT id\nFROM mentions\nWHERE AND true;", "error", "no_sql");
    show("SELECT id FROM mentions WHERE timezone = 'Europe/Belin';", "error", "a_zone_that_is_not");
    show("SET savedsearch.max_request = 5;", "error", "a_setting_that_is_not");
    show("SET savedsearch.max_requests = 1;", "done", "a_setting");
    show("SELECT id FROM mentions WHERE aid IN ('183772', '184889');", "error", "over_budget");
    show("SELECT id FROM mentions WHERE published_at < '2026-06-01';", "error", "an_open_range");
    show("\\cost SELECT id FROM mentions WHERE aid = '183772'", "all", "a_cost");
    show("\\budget", "in this session", "a_budget");
    show("\\?", "Ctrl-D leaves", "help");
    show("\\wacth", "error", "a_command_that_is_not");
}

#[test]
fn a_session_at_40_columns() {
    let desk = Desk::new();
    let mut terminal = desk.shell((40, 40), &[]);
    let mut show = |line: &str, expected: &str, name: &str| compare(&mut terminal, line, expected, name);
    show("SELECT aid, kind, name FROM saved_searches;", "complete", "narrow_list");
    show(
        "SELECT published_at, source, title, reach FROM mentions WHERE aid = '183772' LIMIT 3;",
        "complete",
        "narrow_rows",
    );
    show(SCRIPTS, "no request", "narrow_scripts");
    show("\\x", "on", "narrow_expanded");
    show(
        "SELECT published_at, source, sentiment, title, reach FROM mentions WHERE aid = '183772' LIMIT 2;",
        "complete",
        "narrow_row",
    );
    show(
        "SELECT source, count(*) AS n FROM mentions WHERE aid = '183772' GROUP BY source ORDER BY n DESC;",
        "complete",
        "narrow_sources",
    );
    show("\\chart", "█", "narrow_bars");
    show("\\chart SELECT bucket_start, mentions FROM volume WHERE aid = '183772'", "complete", "narrow_line");
}

/// The screens of README.md and docs/, on demo data with a fixed clock. `SCREENS_UPDATE=1` writes them anew; review the diff.
#[test]
fn the_screens_of_the_documentation_are_the_programs_own() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--now", "2026-07-01T12:00:00Z", "sql"];
    let start = Start { size: (40, 80), arguments: &arguments, environment: &[], state: folder.path() };
    let mut count = 0;
    for page in pages() {
        let screens: Vec<&str> =
            page.blocks("text").into_iter().filter(|block| block.starts_with("savedsearch> ")).collect();
        if screens.is_empty() {
            continue;
        }
        count += screens.len();
        let mut terminal = Terminal::start(&start);
        terminal.prompt("tables.");
        let mut updated = page.text.clone();
        for screen in screens {
            let input = input_of(screen);
            terminal.clear();
            terminal.keys(&format!("{input}\r"));
            let lines = input.lines().count();
            // Further lines of a statement have another prompt.
            terminal.wait("a result", |shown| shown.ends_with("\nsavedsearch>") && shown.lines().count() > lines + 1);
            let shown = terminal.shown();
            if without_times(&shown) == without_times(screen) {
                continue;
            }
            assert_eq!(knob("SCREENS_UPDATE", 0), 1, "{} has\n{screen}\ninstead of\n{shown}", page.name);
            updated = updated.replace(screen, &shown);
        }
        if updated != page.text {
            fs::write(page.path(), updated).unwrap();
        }
    }
    assert!(count >= 3, "only {count} screens found");
}

/// The typed text of a screen: a command, or a statement up to its semicolon.
fn input_of(screen: &str) -> String {
    let typed = screen.strip_prefix("savedsearch> ").unwrap();
    let end = if typed.starts_with('\\') { typed.find('\n') } else { typed.find(";\n").map(|at| at + 1) };
    typed[..end.unwrap()].replace("\nsavedsearch-> ", "\n")
}

#[test]
fn a_chart_is_drawn_from_the_last_result_without_a_request() {
    let desk = Desk::new();
    let mut terminal = desk.shell((40, 80), &[("NO_COLOR", "1")]);
    let sql = "SELECT date_trunc('day', published_at) AS day, sentiment, count(*) AS n FROM mentions \
               WHERE aid = '183772' AND sentiment IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2;";
    terminal.line(sql, "complete");
    let cost = desk.cost(|| drop(terminal.line("\\chart", "└")));
    insta::assert_snapshot!("a_chart", terminal.last());
    assert_eq!(cost, 0);
    assert!(!terminal.is_colored());
    terminal.line("SELECT 1 AS one;", "no request");
    terminal.line("\\chart", "one │");
    terminal.line("SELECT 'a' AS word, 'b' AS other;", "no request");
    terminal.line("\\chart", "error: other is text; a chart needs numbers after");
}

#[test]
fn colours_are_for_those_who_want_them() {
    let desk = Desk::new();
    let sql = "SELECT id, 'text', 12 FROM mentions WHERE aid = '183772' LIMIT 1; -- a note";
    for (environment, colored) in [(&[][..], true), (&[("NO_COLOR", "1")][..], false), (&[("TERM", "dumb")][..], false)]
    {
        let mut terminal = desk.shell((24, 80), environment);
        terminal.keys(sql);
        terminal.sees("-- a note");
        assert_eq!(terminal.is_colored(), colored, "{environment:?}\n{}", terminal.screen());
        terminal.enter("", "complete");
        assert_eq!(terminal.is_colored(), colored, "{environment:?}\n{}", terminal.screen());
    }
}

#[test]
fn tab_completes_without_a_request() {
    let desk = Desk::new();
    let mut terminal = desk.shell((24, 80), &[]);
    terminal.line("SELECT aid FROM saved_searches LIMIT 1;", "complete");
    terminal.clear();
    let cost = desk.cost(|| {
        terminal.keys("select tit\t from men\t wh\t");
        terminal.sees("select title from mentions wh");
        terminal.keys("\x01\x0bselect id from mentions where ai\t = 'brand\t");
        terminal.sees("where aid = '183772'");
        terminal.keys(" and dura\t = '30\t and timez\t = 'europe/berl\t");
        terminal.sees("and duration = '30d' and timezone = 'Europe/Berlin'");
        terminal.keys("\x01\x0bSET savedsearch.max\t");
        terminal.sees("SET savedsearch.max_requests");
        // Several candidates are shown with their names.
        terminal.keys("\x01\x0bSELECT 1 FROM mentions WHERE aid = 'acme\t\t");
        terminal.sees("183772  Acme – brand");
        terminal.sees("184889  Acme – products");
        terminal.keys("\x01\x0b\\wat\t");
        terminal.sees("\\watch");
        terminal.keys("\x01\x0b");
    });
    assert_eq!(cost, 0);
}

#[test]
fn what_was_typed_is_there_the_next_day() {
    let desk = Desk::new();
    let mut terminal = desk.shell((24, 80), &[]);
    terminal.keys("SELECT 'of two lines',\r");
    terminal.enter("41 + 1 AS answer;", "no request");
    terminal.keys("\\q\r");
    assert_eq!(terminal.status(), 0);
    let mut next = desk.shell((24, 80), &[]);
    next.keys("\x1b[A\x1b[A");
    let screen = next.sees("41 + 1 AS answer;");
    assert!(screen.contains("> SELECT 'of two lines',"), "{screen}");
    next.enter("", "│ of two lines ");
    // The kept files are readable by their owner only.
    next.line("SELECT count(*) FROM saved_searches;", "complete");
    for kept in ["history", "searches.json"] {
        let kept = desk.path().join("savedsearch").join(kept);
        assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o077, 0);
        assert!(!fs::read_to_string(&kept).unwrap().contains(KEY));
    }
    let mut third = desk.shell((24, 80), &[]);
    let cost = desk.cost(|| {
        third.keys("SELECT title FROM mentions WHERE aid = 'globex\t");
        third.sees("WHERE aid = '187123'");
    });
    assert_eq!(cost, 0, "the names are those of the last list");
}

#[test]
fn ctrl_c_cancels_the_query_and_keeps_the_shell() {
    let corpus = Arc::new(Corpus::generate(CorpusSpec { seed: 7, searches: 1, mentions: 20_000, now: now() }));
    let since = now() - chrono::TimeDelta::days(90);
    let all = corpus.searches[0].mentions.iter().filter(|mention| mention.facts.published >= since).count() as u64 / 99;
    let desk = Desk::with(corpus, Settings { delay: Duration::from_millis(100), ..Settings::default() });
    let mut terminal = desk.shell((24, 80), &[]);
    terminal.keys("SELECT count(DISTINCT text) FROM mentions WHERE duration = '90d';\r");
    // The bar appears once the total is known.
    let parts = ["rows", " of ", "requests"];
    terminal.wait("a bar", |screen| screen.lines().any(|line| parts.iter().all(|part| line.contains(part))));
    terminal.keys("\x03");
    let screen = terminal.prompt("cancelled");
    assert!(screen.contains(" sent\n") && !screen.contains(" of "), "the bar is gone:\n{screen}");
    terminal.line("SELECT 1 + 1 AS two;", "no request");
    let asked = desk.settled();
    terminal.line("SELECT 2 + 2 AS four;", "no request");
    assert_eq!(desk.settled(), asked, "nothing goes on behind the prompt");
    assert!(asked < all, "{asked} requests: the query went on to its end");
    // A partial line is discarded, too.
    terminal.keys("SELECT nonsense\x03");
    terminal.prompt("SELECT nonsense");
    terminal.line("SELECT 3 + 3 AS six;", "no request");
    terminal.keys("\x04");
    assert_eq!(terminal.status(), 0);
}

#[test]
fn the_wait_for_a_rate_limit_is_counted_down() {
    let corpus = Corpus::generate(CorpusSpec { seed: 7, searches: 1, mentions: 20_000, now: now() });
    let rate_limit = Some(RateLimit { requests: 3, window: Duration::from_secs(30) });
    let desk = Desk::with(Arc::new(corpus), Settings { rate_limit, ..Settings::default() });
    for size in [(24, 80), (24, 40)] {
        let mut terminal = desk.shell(size, &[]);
        terminal.keys("SELECT count(DISTINCT text) FROM mentions WHERE duration = '90d';\r");
        terminal.wait("rate limit", |screen| {
            screen.lines().any(|line| line.split_once("rate limit: ").is_some_and(|(_, wait)| wait.contains(" s")))
        });
        terminal.keys("\x03");
        terminal.prompt("cancelled");
    }
}

#[test]
fn a_pager_has_the_screen_until_it_is_left() {
    if !Command::new("sh").args(["-c", "command -v less"]).output().unwrap().status.success() {
        println!("skipped: less not found");
        return;
    }
    let desk = Desk::new();
    let mut terminal = desk.shell((12, 80), &[("PAGER", "less")]);
    // Ctrl-C in the pager does not end the shell, even before the first statement.
    terminal.keys("\\d mentions\r");
    terminal.wait("a pager", |screen| screen.ends_with("\n:"));
    terminal.keys("\x03 q");
    terminal.prompt("\\cost SQL");
    terminal.clear();
    terminal.keys("SELECT id, title FROM mentions WHERE aid = '183772' AND duration = '90d';\r");
    let screen = terminal.wait("a pager", |screen| screen.ends_with("\n:"));
    assert!(screen.contains("│ id ") || screen.contains("│ 9007199254740993 "), "{screen}");
    terminal.keys("q");
    terminal.prompt(" requests · window 9");
    // A pager that does not exist is skipped, and one that fails is reported.
    let mut without = desk.shell((12, 80), &[("PAGER", "no-such-pager --at-all")]);
    without.line("SELECT value FROM generate_series(1, 30);", "30 rows · ");
    let mut failing = desk.shell((12, 80), &[("PAGER", "sh -c 'exit 3'")]);
    failing.line("SELECT value FROM generate_series(1, 30);", "failed with status 3; turn it off with \\pager off");
}

#[test]
fn nobody_reads_on_and_nothing_more_is_asked_for() {
    // More than a pipe holds, so that a pager that is slow to leave does not receive all of it.
    let corpus = Corpus::generate(CorpusSpec { seed: 1, searches: 1, mentions: 5_000, now: now() });
    let desk = Desk::with(Arc::new(corpus), Settings::default());
    let all = "SELECT id, title FROM mentions WHERE aid = '183772' AND duration = '90d';";
    let mut whole = desk.shell((24, 80), &[]);
    whole.line("\\rows 0", "row limit: none");
    let cost = desk.cost(|| drop(whole.line(all, "complete")));
    // A pager that is quit after one screen.
    let mut terminal = desk.shell((24, 80), &[("PAGER", "head -n 12")]);
    let left = desk.cost(|| drop(terminal.line(all, "pager closed, remaining rows not requested")));
    assert!(left < cost, "{left} of {cost}");
    // Rows beyond the display limit.
    terminal.line("\\rows 150", "row limit: 150");
    terminal.line("\\pager off", "pager: off");
    let first = desk.cost(|| drop(terminal.line(all, "first 150 rows shown")));
    assert!(first < cost, "{first} of {cost}");
    terminal.line("\\rows 4", "row limit: 4");
    terminal.line("SELECT column1 AS n FROM (VALUES (1), (2), (3), (4));", "4 rows · ");
    terminal.line("\\rows 3", "row limit: 3");
    terminal.line("SELECT column1 AS n FROM (VALUES (1), (2), (3), (4));", "first 3 rows shown");
    insta::assert_snapshot!("the_first_rows", terminal.last());
}

#[test]
fn results_go_to_files_and_statements_come_from_them() {
    let desk = Desk::new();
    let mut terminal = desk.shell((40, 80), &[]);
    let (csv, png, script, more) = (desk.file("a.csv"), desk.file("b.png"), desk.file("c.sql"), desk.file("d.sql"));
    let markdown = desk.file("a.md");
    terminal.line(&format!("\\o {markdown}"), "results go to");
    terminal.line("SELECT 1 AS a;", "no request");
    // A failing statement keeps the output of earlier ones.
    terminal.line("SELECT 1 / (column1 - 2) AS b FROM (VALUES (1), (2));", "error");
    terminal.line("\\format json", "close it with \\o first");
    terminal.line("SELECT 2 AS c;", "no request");
    assert!(!Path::new(&markdown).exists());
    terminal.line("\\o", "wrote");
    assert_eq!(fs::read_to_string(&markdown).unwrap(), "| a |\n|---|\n| 1 |\n\n| c |\n|---|\n| 2 |\n");
    terminal.line("\\format csv", "format: csv");
    terminal.line(&format!("\\o {csv}"), "results go to");
    terminal.line("SELECT 1 / (column1 - 2) AS b FROM (VALUES (1), (2));", "error");
    terminal.line("SELECT 1 AS a;", "no request");
    terminal.line("SELECT 2 AS c;", "a csv file holds one result");
    terminal.line("\\o", "wrote");
    assert_eq!(fs::read_to_string(&csv).unwrap(), "a\n1\n");

    terminal.line("\\format png", "format: png");
    terminal.line("SELECT 1 AS a;", "binary");
    terminal.line(&format!("\\o {png}"), "results go to");
    terminal.line("SELECT source, count(*) AS n FROM mentions WHERE aid = '183772' GROUP BY source;", "complete");
    terminal.line("\\o", "wrote");
    assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG"));

    fs::write(
        &script,
        format!("\\format ndjson\nSELECT 'a;b' AS x, -- no end; here\n 1 AS y;\n\\i {more}\nSELECT 3 AS z"),
    )
    .unwrap();
    fs::write(&more, "SELECT 2 AS w;").unwrap();
    terminal.line(&format!("\\i {script}"), "{\"z\":3}");
    insta::assert_snapshot!("a_script", terminal.last().split_once('\n').unwrap().1);
    fs::write(&more, format!("\\i {more}\n")).unwrap();
    terminal.line(&format!("\\i {more}"), "s deep)");
    terminal.line("\\i nowhere.sql", "cannot read nowhere.sql");
    fs::write(&more, "-- a report\n\\timing off\nSELECT 1;\n\nSELECT one;\n-- the end").unwrap();
    terminal.line(&format!("\\i {more}"), "d.sql: line 5: unknown column `one`");
}

#[test]
fn a_statement_is_edited_and_run_again() {
    let desk = Desk::new();
    let editor = desk.file("editor");
    fs::write(&editor, "sed -i 's/one/two/' \"$1\"\n").unwrap();
    let mut terminal = desk.shell((24, 80), &[("EDITOR", &format!("sh {editor}"))]);
    terminal.line("\\watch", "no statement to watch yet");
    // Ctrl-C interrupts only the editor.
    let mut asleep = desk.shell((24, 80), &[("EDITOR", "sh -c 'echo busy; exec sleep 60' #")]);
    asleep.keys("\\e\r");
    asleep.sees("busy");
    asleep.keys("\x03");
    asleep.prompt("cannot edit");
    asleep.line("SELECT 'here' AS still;", "│ here ");
    terminal.line("SELECT 'one' AS word;", "no request");
    terminal.keys("\\e\r");
    terminal.sees("> SELECT 'two' AS word;");
    terminal.enter("", "│ two ");
    terminal.clear();
    // The first run and a second one.
    terminal.keys("\\watch 1\r");
    let screen = terminal.sees("every 1 s until Ctrl-C");
    assert!(screen.contains("UTC"), "{screen}");
    terminal.wait("another run", |screen| screen.matches("│ two ").count() >= 2);
    terminal.keys("\x03");
    terminal.prompt("until Ctrl-C");
    terminal.enter("SELECT 'on' AS goes;", "│ on ");
}

#[test]
fn connections_are_listed_and_chosen() {
    let (desk, other) = (Desk::new(), Desk::new());
    let config = desk.file("savedsearch.toml");
    let entry =
        |name: &str, address: &str| format!("[connections.{name}]\nbase_url = \"{address}\"\napi_key_env = \"KEY\"\n");
    fs::write(
        &config,
        format!("default = \"here\"\n{}{}", entry("here", &desk.address), entry("there", &other.address)),
    )
    .unwrap();
    let arguments = ["--config", &config, "sql"];
    let environment = [("KEY", KEY)];
    let mut terminal = Terminal::start(&Start {
        size: (24, 80),
        arguments: &arguments,
        environment: &environment,
        state: desk.path(),
    });
    terminal.prompt("tables.");
    terminal.line("\\c nowhere", "unknown connection `nowhere`; available: here, there");
    let asks = "SELECT count(*) AS n FROM mentions('183772');";
    let (first, none) = (desk.cost(|| drop(terminal.line(asks, "complete"))), other.service.requests());
    terminal.enter("\\c there", "connection: there");
    let second = other.cost(|| drop(terminal.line(asks, "complete")));
    let third =
        other.cost(|| drop(terminal.line("SELECT count(*) AS n FROM mentions WHERE aid = '183772';", "complete")));
    assert_eq!((first, none, second, third), (1, 0, 1, 1));
    assert_eq!(desk.service.requests(), 1);
    let screen = terminal.line("\\l", "there ");
    assert!(screen.contains("│ * │ there "), "{screen}");
    terminal.line("\\d mentions", "\\cost SQL");
    // Views are local to the connection at which they were created.
    terminal.enter("\\c here", "connection: here");
    terminal.line("CREATE VIEW mine AS SELECT 'a view' AS v;", "done");
    terminal.line("\\c there", "connection: there");
    terminal.line("SELECT * FROM mine;", "unknown table");
    terminal.line("\\c here", "connection: here");
    terminal.line("SELECT * FROM mine;", "│ a view ");
}

#[test]
fn what_a_statement_does_at_once_is_told_and_an_estimate_does_nothing() {
    let desk = Desk::new();
    let mut terminal = desk.shell((24, 80), &[]);
    let create = "CREATE TABLE mine AS SELECT id FROM mentions WHERE aid = '183772' LIMIT 5";
    let cost = desk.cost(|| drop(terminal.line(&format!("\\cost {create}"), "all")));
    assert_eq!(cost, 0);
    terminal.line("\\cost SET savedsearch.max_requests = 7", "\\cost takes a query");
    terminal.line("SHOW savedsearch.max_requests;", "│ 1000 ");
    terminal.line("SELECT FROM saved_searches;", "the query selects no columns");
    terminal.line("SELECT * FROM mine;", "unknown table");
    terminal.line(&format!("{create};"), "done · ");
    assert!(
        terminal.last().contains("done · TIME · 1 request · window 7d (default) · complete"),
        "{}",
        terminal.last()
    );
    terminal.line("SELECT count(*) AS n FROM mine;", "│ 5 ");
}

#[test]
fn long_commands_show_progress_on_a_terminal_and_remove_it() {
    let service = Simulate::start(&["--mentions", "3000", "--searches", "4", "--delay-ms", "250"]);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (store, probed, profile) = (file("store"), file("probed.toml"), file("mine.toml"));
    fs::write(&profile, Profile::builtin_document("v4").unwrap()).unwrap();
    let queries = [" request", " s · ", " page"];
    let probing = ["probing: ", " of at most 25 requests", ""];
    for (arguments, shown, result) in [
        (&["--store", &store, "sync", "--since", "10d"][..], queries, "up to date: "),
        (&["probe", "-o", &probed][..], probing, "Wrote the profile to"),
        (&["profile", "check", &profile][..], queries, "counts: ok, "),
    ] {
        let base = ["--base-url", service.base_url.as_str()];
        let arguments = [&base, arguments].concat();
        let environment = [("SAVEDSEARCH_API_KEY", KEY)];
        let start = Start { size: (60, 140), arguments: &arguments, environment: &environment, state: folder.path() };
        let mut terminal = Terminal::start(&start);
        let is_progress = |line: &str| shown.iter().all(|part| line.contains(part));
        terminal.wait(shown[0], |screen| screen.lines().any(is_progress));
        let (status, screen) = (terminal.status(), terminal.screen());
        assert!(status == 0 || (status == 3 && arguments.contains(&"probe")), "{arguments:?}: {status}\n{screen}");
        assert!(screen.contains(result) && !screen.lines().any(is_progress), "{arguments:?}:\n{screen}");
    }
}

#[test]
fn a_password_is_asked_for_twice_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    for (again, expected, status) in
        [("swordfish", "password_hash = \"$argon2id$", 0), ("swordfisch", "the two passwords differ", 2)]
    {
        let mut terminal = Terminal::start(&Start {
            size: (24, 100),
            arguments: &["serve", "--hash-password"],
            environment: &[],
            state: folder.path(),
        });
        terminal.secret("Password:", "swordfish");
        terminal.secret("Password again:", again);
        assert_eq!(terminal.status(), status);
        let screen = terminal.sees(expected);
        assert!(!screen.contains("swordfi"), "{screen}");
    }
}

#[test]
fn what_is_pasted_is_run_line_by_line() {
    let desk = Desk::new();
    let mut terminal = desk.shell((24, 80), &[]);
    terminal.clear();
    terminal.keys("\x1b[200~\\timing on\nSELECT 'one;\n' AS a;\n-- a note\nSELECT 2 AS b; SELECT 3 AS c;\x1b[201~\r");
    terminal.prompt("│ 3 ");
    let screen = terminal.screen();
    assert!(screen.contains("timing: on") && screen.contains("│ one;\\n │"), "{screen}");
    assert_eq!(screen.matches("planned in").count(), 3, "{screen}");
}

#[test]
fn a_signal_ends_it_and_leaves_nothing_behind() {
    let desk = Desk::new();
    let file = desk.file("a.csv");
    for (signal, status) in [("TERM", 143), ("HUP", 129)] {
        let mut terminal = desk.shell((24, 80), &[]);
        terminal.line("\\format csv", "format: csv");
        terminal.line(&format!("\\o {file}"), "results go to");
        terminal.line("SELECT 1;", "no request");
        terminal.signal(signal);
        assert_eq!(terminal.status(), status);
    }
    assert_eq!(fs::read_dir(desk.path()).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_file()).count(), 0);
}

/// A terminal without bracketed paste sends a paste as keys: all statements run, in order.
#[test]
fn what_is_pasted_as_keys_is_run_completely() {
    let desk = Desk::new();
    let mut terminal = desk.shell((40, 80), &[]);
    terminal.clear();
    terminal.keys("SELECT 'one' AS a;\rSELECT id FROM mentions WHERE aid = '183772' LIMIT 1;\rSELECT\r 'three' AS c;\r\\timing on\rSELECT 4 AS d;\r");
    terminal.prompt("planned in");
    let screen = terminal.screen();
    each(["│ one ", "1 request", "│ three ", "timing: on", "│ 4 "], |shown| {
        assert!(screen.contains(shown), "no `{shown}` in\n{screen}");
    });
}

#[test]
fn a_statement_that_goes_on_has_a_prompt_of_its_own() {
    let desk = Desk::new();
    let mut terminal = desk.shell((24, 80), &[]);
    terminal.clear();
    terminal.keys("SELECT 'a;\r");
    terminal.sees("savedsearch'>");
    // In a string a backslash is no command, and behind it one leaves the statement as it is.
    terminal.keys("\\q' AS text,\r\\timing on\r");
    terminal.sees("timing: on");
    terminal.enter("1 AS one;", "│ a;\\n\\q │ ");
    // Ctrl-C drops the statement, and any keys typed ahead of the next prompt.
    terminal.enter("SELECT nonsense", "SELECT nonsense");
    terminal.keys("\x03");
    terminal.prompt("savedsearch->");
    terminal.line("SELECT 2 AS two;", "  2 │");
    terminal.keys("SELECT 3\r");
    terminal.sees("savedsearch->");
    terminal.keys("\\q\r");
    assert_eq!(terminal.status(), 0);
}

#[test]
fn a_plan_keeps_its_indentation_at_any_width() {
    let desk = Desk::new();
    for width in [40, 60] {
        let mut terminal = desk.shell((60, width), &[("NO_COLOR", "1")]);
        terminal.line("EXPLAIN SELECT source, count(*) FROM mentions WHERE reach > 5 GROUP BY source;", "no requests");
        let screen = terminal.screen();
        let lines: Vec<&str> = screen.lines().filter(|line| line.starts_with('│')).collect();
        let scan = lines.iter().find(|line| line.contains("FetchExec")).expect("a scan");
        let indent = |line: &str| line.rsplit('│').nth(1).map_or(0, |cell| cell.len() - cell.trim_start().len());
        assert!(indent(scan) > 3, "{width}\n{screen}");
        // What does not fit goes on behind the beginning of its line.
        let at = lines.iter().position(|line| line.contains("FetchExec")).unwrap();
        assert!(indent(lines[at + 1]) >= indent(scan), "{width}\n{screen}");
    }
}

#[test]
fn columns_aliases_and_values_are_completed() {
    let desk = Desk::new();
    let mut terminal = desk.shell((40, 80), &[]);
    terminal.line("SELECT DISTINCT sentiment FROM mentions WHERE aid = '183772';", "complete");
    terminal.clear();
    let cost = desk.cost(|| {
        terminal.keys("SELECT m.pub\t FROM mentions m");
        terminal.sees("SELECT m.pub");
        terminal.keys("\x01\x0bSELECT 1 FROM mentions m WHERE m.pub\t");
        terminal.sees("WHERE m.published_at");
        terminal.keys("\x01\x0bSELECT 1 FROM breakdowns WHERE dimension = 'hash\t");
        terminal.sees("dimension = 'hashtag'");
        terminal.keys("\x01\x0bSELECT 1 FROM mentions WHERE sentiment = 'neg\t");
        terminal.sees("sentiment = 'negative'");
        // A line of a statement knows the lines before it.
        terminal.keys("\x01\x0bSELECT 1 FROM overview o\rWHERE o.tot\t");
        terminal.sees("WHERE o.total_");
        terminal.keys("\x03");
    });
    assert_eq!(cost, 0);
}
