//! Edges of the command line: scripts, formats, keys and connections, messages for typical mistakes.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use datafusion_saved_search::Clock;
use datafusion_saved_search::simulator::{self, KEY, OTHER_KEY, Settings};

use crate::binary::{Simulate, err, out, savedsearch};
use crate::support::{corpus, each, now};

const NOW: &str = "2026-07-01T12:00:00Z";

/// Runs `savedsearch sql` on the demo data, with a fixed clock.
fn demo(arguments: &[&str]) -> Output {
    savedsearch(&[&["--now", NOW, "-q", "sql"], arguments].concat()).stdin(Stdio::null()).output().unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = demo(arguments);
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""), "{arguments:?}\n{}", out(&output));
    out(&output)
}

fn refused(arguments: &[&str]) -> String {
    let output = demo(arguments);
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(1), ""), "{arguments:?}\n{}", err(&output));
    let line = err(&output);
    assert_eq!(line.lines().count(), 1, "{line}");
    line.trim_start_matches("error: ").trim_end().to_owned()
}

#[test]
fn commands_work_in_scripts() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let tables = printed(&["-c", "\\d"]);
    assert!(tables.contains("| mentions ") && tables.contains("| 1 per saved search"), "{tables}");
    assert!(printed(&["--format", "csv", "-c", "\\d mentions"]).starts_with("column,type,key,pushed down\n"));
    assert!(printed(&["-c", "\\cost SELECT id FROM mentions"]).contains("at_least"));
    let expanded = file("expanded.sql", b"\\x\nSELECT 1 AS a, 'x' AS b;\nSELECT 2 AS c\n");
    assert_eq!(printed(&["-f", &expanded]), "─[ row 1 ]─\na │ 1\nb │ x\n─[ row 1 ]─\nc │ 2\n");
    // A byte order mark, line ends of Windows, and a command that ends the script.
    let marked = file("marked.sql", b"\xef\xbb\xbf\\format csv\r\nSELECT 1 AS a;\r\n\\q\r\nSELECT 2 AS b;\r\n");
    assert_eq!(printed(&["-f", &marked]), "a\n1\n");
    // In the order given, whatever the kind.
    let two = file("two.sql", b"SELECT 2 AS n");
    let csv = ["--format", "csv"];
    let mixed = [&csv[..], &["-f", &two, "-c", "SELECT 3 AS n", "-f", &two, "-c", "SELECT 1 AS n"]].concat();
    assert_eq!(printed(&mixed), "n\n2\nn\n3\nn\n2\nn\n1\n");
    let mut piped = savedsearch(&["-q", "sql", "--format", "csv", "-c", "SELECT 1 AS n", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    piped.stdin.take().unwrap().write_all(b"SELECT 9 AS n;").unwrap();
    assert_eq!(out(&piped.wait_with_output().unwrap()), "n\n1\nn\n9\n");
    // Nothing runs if anything cannot be parsed, and the place is named.
    let wrong = file("wrong.sql", b"SELECT 1;\n\nSELECT\n  (2;\n");
    let line = refused(&["-f", &wrong]);
    assert!(line.contains("wrong.sql: line 4: syntax error: ") && !line.contains("Column:"), "{line}");
    let line = refused(&["-c", "SELECT 1", "-c", "\\nonsense"]);
    assert_eq!(line, "unknown command \\nonsense; \\? lists commands");
    let latin = file("latin.sql", b"SELECT '\xe4'");
    let output = demo(&["-f", &latin]);
    assert!(output.status.code() == Some(2) && err(&output).contains("latin.sql: not UTF-8 text"), "{}", err(&output));
    // \o in a script.
    let results = folder.path().join("results.csv");
    let redirected = format!("\\o {}\nSELECT 7 AS n;\n\\o\nSELECT 8 AS n;\n", results.display());
    let redirected = file("redirected.sql", redirected.as_bytes());
    assert_eq!(printed(&["--format", "ndjson", "-f", &redirected]), "{\"n\":8}\n");
    assert_eq!(fs::read_to_string(&results).unwrap(), "{\"n\":7}\n", "the chosen format counts more than the name");
}

#[test]
fn a_script_charts_its_last_result_and_reads_many_commands_quickly() {
    let sql = "SELECT source, count(*) AS n FROM mentions WHERE aid = '183772' GROUP BY source ORDER BY n DESC";
    assert!(printed(&["-c", sql, "-c", "\\chart"]).contains("n by source\n"));
    let commands = "\\x off\n".repeat(4_000);
    assert_eq!(printed(&["--format", "csv", "-c", &format!("{commands}SELECT 1 AS n")]), "n\n1\n");
    let huge = "SELECT * FROM (VALUES (timestamp '2026-01-01', 1e308), (timestamp '2026-01-02', 1.0)) t(day, n)";
    let output = demo(&["--format", "chart", "-c", huge]);
    assert!(err(&output).contains("too far apart"), "{}", err(&output));
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("a.parquet"), folder.path().join("b.csv"));
    let redirect = format!("\\o {}", second.display());
    printed(&["-o", first.to_str().unwrap(), "-c", "SELECT 1 AS a", "-c", &redirect, "-c", "SELECT 2 AS b"]);
    assert_eq!(fs::read_to_string(&second).unwrap(), "b\n2\n");
}

#[test]
fn options_of_formats_that_no_result_has_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let workbook = folder.path().join("a.xlsx");
    let (csv, charts) = ("need results in csv", "options of charts need a chart");
    let cases: [(&[&str], &str); 6] = [
        (&["--csv-dialect", "excel"], csv),
        (&["--csv-dialect", "excel", "-o", workbook.to_str().unwrap()], csv),
        (&["--csv-separator", ";", "--format", "tsv"], csv),
        (&["--chart-title", "Days"], charts),
        (&["--chart-size", "640x360", "--format", "csv"], charts),
        (&["--chart-stacked"], charts),
    ];
    each(cases, |(options, expected)| {
        let output = demo(&[options, &["-c", "SELECT 1 AS n"]].concat());
        assert_eq!((output.status.code(), out(&output).as_str()), (Some(2), ""), "{options:?}");
        assert!(err(&output).contains(expected), "{options:?}: {}", err(&output));
    });
    assert!(!workbook.exists());
    // A statement that names its own file may be the one.
    let own = folder.path().join("own.csv");
    let statement = format!("SELECT 1 AS n \\g {}", own.display());
    printed(&["--csv-separator", ";", "-c", &statement]);
    assert!(own.exists());
}

#[test]
fn a_file_or_words_in_place_of_a_statement_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("select.sql");
    let name = file.to_str().unwrap();
    let told = |arguments: &[&str]| {
        let output = demo(arguments);
        assert_eq!((output.status.code(), out(&output).as_str()), (Some(2), ""), "{arguments:?}");
        err(&output)
    };
    each([&[name][..], &["-c", name]], |arguments| {
        assert!(told(arguments).contains(&format!("{name}: no such file; -f runs a file of statements")));
    });
    fs::write(&file, "SELECT 1").unwrap();
    each([&[name][..], &["-c", name]], |arguments| {
        assert!(told(arguments).contains(&format!("{name} is a file; run it with -f {name}")));
    });
    let words = told(&["SELECT", "title", "FROM", "mentions"]);
    assert!(words.contains("unexpected argument 'title'") && words.contains("put the statement in quotes"), "{words}");
    assert!(!told(&["-c", "SELECT 1", "--nonsense"]).contains("quotes"));
    assert!(!told(&["-c", "SELECT 1", "--port", "80"]).contains("--listen"));
    for command in ["ui", "serve", "simulate"] {
        let port = err(&savedsearch(&[command, "--port", "80"]).stdin(Stdio::null()).output().unwrap());
        assert!(port.contains("--listen takes an address with its port") && !port.contains("similar"), "{port}");
    }
    let apostrophe = refused(&["-c", "SELECT 'it's'"]);
    assert!(apostrophe.ends_with("; double a quote within a text, as in 'it''s'"), "{apostrophe}");
}

#[test]
fn csv_for_spreadsheets_opens_as_it_was_meant() {
    let at = "arrow_cast('2026-06-30T10:00:00Z', 'Timestamp(Microsecond, Some(\"UTC\"))')";
    let sql = &format!("SELECT '9007199254740993' AS id, {at} AS at, 1.5 AS score");
    let excel = ["--format", "csv", "--csv-dialect", "excel"];
    let berlin = ["--set", "timezone=Europe/Berlin", "--csv-separator", ";", "-c", sql];
    let expected = "\u{feff}id;at;score\r\n\"=\"\"9007199254740993\"\"\";2026-06-30 12:00:00;1,5\r\n";
    assert_eq!(printed(&[&excel[..], &berlin].concat()), expected);
    assert_eq!(printed(&[&excel[..], &["-c", "SELECT '=1+1' AS a"]].concat()), "\u{feff}a\r\n'=1+1\r\n");
    // Formats that are chosen later have the options too.
    let later = printed(&["--csv-separator", "tab", "-c", "\\format csv", "-c", "SELECT 1 AS a, 2 AS b"]);
    assert_eq!(later, "a\tb\n1\t2\n");
    let output = demo(&["--csv-separator", "x", "-c", "SELECT 1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("expected a character such as ; , | or tab"), "{}", err(&output));
}

#[test]
fn charts_have_the_form_that_was_chosen_or_are_refused() {
    let sql = "SELECT * FROM (VALUES ('a', 1, 2), ('b', 3, 4)) AS t(kind, n, m)";
    for form in [&["--chart-stacked"][..], &["--chart-form", "stacked"], &["--chart-form", "heatmap"]] {
        let output = demo(&[&["--format", "chart"], form, &["-c", sql]].concat());
        assert_eq!((output.status.code(), out(&output).as_str()), (Some(2), ""));
        assert!(err(&output).contains("charts in a terminal are lines or bars"), "{}", err(&output));
        // One series as well, although it would look the same.
        for sql in [sql, "SELECT 'a' AS kind, 1 AS n"] {
            let line = refused(&[form, &["-c", &format!("\\chart {sql}")]].concat());
            assert!(line.contains("charts in a terminal are lines or bars; write another form"), "{line}");
        }
    }
    let numbers = "\\chart SELECT value AS year, value % 3 AS n FROM generate_series(1, 9)";
    let lines = printed(&["--chart-form", "lines", "-c", numbers]);
    assert!(lines.contains(|letter: char| ('⠁'..='⣿').contains(&letter)), "points that a line connects:\n{lines}");
    assert_ne!(lines, printed(&["--chart-form", "bars", "-c", numbers]));
    let days = "SELECT date_trunc('day', published_at) AS day, count(*) AS n FROM mentions \
                WHERE aid = '183772' AND duration = '7d' GROUP BY 1 ORDER BY 1";
    for form in ["lines", "bars"] {
        let chart = printed(&["--format", "chart", "--chart-form", form, "-c", days]);
        assert!(chart.trim_end().ends_with("incomplete."), "{form}:\n{chart}");
    }
    let pie = demo(&["--chart-form", "pie", "-c", sql]);
    assert!(err(&pie).contains("heatmap"), "{}", err(&pie));
    let heat = "SELECT published_at FROM mentions WHERE aid = '183772' AND duration = '24h'";
    assert!(printed(&["--format", "svg", "--chart-form", "heatmap", "-c", heat]).contains("Mon"));
}

#[test]
fn days_of_shifted_times_are_not_marked() {
    // From 6 to 6: five whole days that begin six hours late, and six days in UTC, of which the first and the last are cut.
    let window = "published_at >= '2026-06-20T06:00:00Z' AND published_at < '2026-06-25T06:00:00Z'";
    let chart = |day: &str| {
        let sql =
            format!("SELECT {day} AS day, count(*) AS n FROM mentions WHERE aid = '183772' AND {window} GROUP BY 1");
        printed(&["--format", "chart", "-c", &sql])
    };
    let days = chart("published_at::date");
    assert!(days.ends_with("The first and the last period are incomplete.\n"), "{days}");
    let shifted = chart("(published_at - INTERVAL '6 hours')::date");
    assert!(shifted.contains("2026-06-20") && !shifted.contains("incomplete"), "{shifted}");
}

#[test]
fn charts_go_to_an_output_of_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let sql = "SELECT 'web' AS source, 3 AS n";
    let (chart, one, two, three, table) =
        (format!("\\chart {sql}"), path("one.svg"), path("two.svg"), path("three.svg"), path("four.csv"));
    assert_eq!(printed(&["-c", &format!("\\o {one}"), "-c", &chart, "-c", "\\o"]), "");
    let drawn = fs::read_to_string(&one).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.contains(">n by source<"), "{drawn}");
    assert_eq!(printed(&["-o", &three, "-c", &chart]), "");
    assert_eq!(fs::read_to_string(&three).unwrap(), drawn);
    // The last result; the file takes one chart, and the terminal gets the next.
    let text = printed(&["-c", sql, "-c", &format!("\\o {two}"), "-c", "\\chart", "-c", "\\chart"]);
    assert_eq!((text.starts_with("n by source\n"), text.matches("n by source\n").count()), (false, 1), "{text}");
    assert_eq!(fs::read_to_string(&two).unwrap(), drawn);
    // The same for the chart of another statement.
    let next = "\\chart SELECT 'news' AS section, 2 AS m";
    let full = [path("five.svg"), path("six.png")];
    let opened = format!("\\o {}", full[1]);
    for open in [["-o", full[0].as_str()], ["-c", opened.as_str()]] {
        let text = printed(&[&open[..], &["-c", sql, "-c", next]].concat());
        assert!(text.starts_with("m by section\n"), "{open:?}\n{text}");
    }
    assert_eq!(fs::read_to_string(&full[0]).unwrap(), drawn);
    assert!(fs::read(&full[1]).unwrap().starts_with(b"\x89PNG"));
    // A file of rows has no charts.
    let text = printed(&["-c", &format!("\\o {table}"), "-c", &chart]);
    assert!(text.starts_with("n by source\n"), "{text}");
}

#[test]
fn the_demo_data_has_no_address() {
    let listed = printed(&["--format", "csv", "-c", "\\l"]);
    assert!(listed.contains(",built-in demo data,v4,") && !listed.contains("127.0.0.1"), "{listed}");
}

#[test]
fn a_stopped_clock_is_the_time_of_sql_too() {
    let sql = "SELECT now() AS now, current_date AS today, current_time AS time, localtimestamp AS local, current_timestamp AS also";
    let instant = "2026-07-01T12:00:00";
    let expected = format!("now,today,time,local,also\n{instant}Z,2026-07-01,12:00:00,{instant},{instant}Z\n");
    assert_eq!(printed(&["--format", "csv", "-c", sql]), expected);
    // In the zone of the session it is the next day.
    let zone = "SET timezone = 'Pacific/Auckland'; SELECT current_date AS today, now()::date AS day";
    let set = printed(&["--format", "csv", "-c", zone]);
    assert!(set.ends_with("today,day\n2026-07-02,2026-07-02\n"), "{set}");
    // A condition on the time and the period mean the same mentions.
    let count = "SELECT count(*) AS n FROM mentions WHERE aid = '183772' AND";
    let since = printed(&["--format", "csv", "-c", &format!("{count} published_at >= now() - INTERVAL '7 days'")]);
    assert_eq!(since, printed(&["--format", "csv", "-c", &format!("{count} duration = '7d'")]));
    assert_ne!(since, "n\n0\n");
}

#[test]
fn the_rows_of_an_estimate_agree() {
    let estimate = |sql: &str| {
        let printed = printed(&["--format", "csv", "--estimate", "-c", sql]);
        let rows = |of: &str| printed.lines().find(|line| line.starts_with(of)).unwrap().to_owned();
        let requests = |row: String| row.rsplitn(3, ',').take(2).collect::<Vec<_>>().join(",");
        (requests(rows("mentions,")), requests(rows("all,")))
    };
    let newest = "SELECT id FROM mentions WHERE aid = '183772' AND duration = '90d' ORDER BY published_at DESC LIMIT";
    for (sql, expected) in [
        (format!("{newest} 100"), "1,1"),
        (format!("{newest} 250"), "1,at most 3"),
        (format!("{newest} 1000"), "1,at most 11"),
        ("SELECT id FROM mentions LIMIT 5".to_owned(), "2,1 + 1 or more"),
    ] {
        assert_eq!(estimate(&sql), (expected.to_owned(), expected.to_owned()), "{sql}");
    }
    // The total of several scans is no less than one of them takes, and a limit above them makes none of them certain.
    let two = |each: &str, all: &str| {
        format!("(SELECT id FROM mentions{each}) UNION ALL (SELECT id FROM mentions WHERE duration = '2d'{each}){all}")
    };
    for (sql, scan, total) in [
        (two(" LIMIT 5", ""), "2,1 + 1 or more", "2,at least 2"),
        (two("", " LIMIT 5"), "0,1 + 1 or more if it is read", "0,at least 0"),
    ] {
        assert_eq!(estimate(&sql), (scan.to_owned(), total.to_owned()), "{sql}");
    }
    // Pages of such a query share two rows.
    for (rows, requests) in [(250, 3), (1000, 11)] {
        let read = format!("CREATE TABLE x AS {newest} {rows}; SELECT count(*) AS n FROM system.requests");
        assert_eq!(printed(&["--format", "csv", "-c", &read]).lines().last(), Some(requests.to_string().as_str()));
    }
    // The total sends nothing of its own.
    assert!(!printed(&["--estimate", "-c", "SELECT id FROM mentions LIMIT 5"]).contains("NULL"));
}

/// The first row of a sort or an aggregate depends on all rows below it.
#[test]
fn a_limit_above_an_operator_that_reads_all_leaves_the_estimate_as_it_is() {
    let total = |sql: &str| {
        let printed = printed(&["--format", "csv", "--estimate=ask", "-c", sql]);
        printed.lines().last().unwrap().to_owned()
    };
    let of = "FROM mentions WHERE aid = '183772' AND duration = '7d'";
    let summed = format!("SELECT author_handle, sum(reach) {of} GROUP BY 1");
    let sorted = format!("SELECT id {of} ORDER BY length(title)");
    for read in [summed.clone(), format!("{summed} ORDER BY 2 DESC"), sorted] {
        for limit in ["LIMIT 10", "LIMIT 3 OFFSET 2"] {
            let sql = format!("{read} {limit}");
            let count = "SELECT count(*) AS n FROM system.requests";
            let counted = printed(&["--format", "csv", "-c", &sql, "-c", count]);
            let sent = counted.lines().last().unwrap();
            assert_eq!(total(&sql), format!("all,,\"at least 1, likely about {sent}\",1"), "{sql}");
        }
    }
    // The first authors end this one.
    assert_eq!(total(&format!("SELECT DISTINCT author_handle {of} LIMIT 3")), "all,,at least 0,0");
}

#[test]
fn an_estimate_may_ask_and_says_so_before() {
    let sql = "SELECT count(DISTINCT author_name) AS n FROM mentions WHERE duration = '30d'";
    let estimate = |arguments: &[&str]| {
        let arguments = [&["--now", NOW, "sql", "--format", "csv"], arguments].concat();
        let output = savedsearch(&arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        (out(&output), err(&output))
    };
    let (_, notes) = estimate(&["--estimate", "-c", sql]);
    assert!(!notes.contains("estimating"), "{notes}");
    let takes = "may request them: 1 request for the list, then 1 for each saved search and window\n";
    let note = |way: &str, takes: &str| format!("note: the estimate lacks numbers of mentions; {way} {takes}");
    assert!(notes.contains(&note("--estimate=ask", takes)), "{notes}");
    let (_, notes) = estimate(&["-c", &format!("\\cost {sql}")]);
    assert!(notes.contains(&note("SET savedsearch.estimate = 'ask'", takes)), "{notes}");
    // The number of requests is known if the saved search is given, and there is nothing to ask about a single page.
    let (one, first) = (sql.replace("WHERE", "WHERE aid = '183772' AND"), "SELECT id FROM mentions LIMIT 5");
    let (_, notes) = estimate(&["--estimate", "-c", &one, "-c", first]);
    assert!(notes.contains(&note("--estimate=ask", "may request them: 1 request\n")), "{notes}");
    assert_eq!(notes.matches("lacks numbers").count(), 1, "{notes}");
    // Counts take one request for each saved search, so the list alone tells their number.
    let counts = "SELECT aid, count(*) AS n FROM mentions GROUP BY aid";
    let lacks = "note: the estimate lacks the number of saved searches";
    let (table, notes) = estimate(&["--estimate", "-c", counts]);
    assert!(table.contains("at least 1, plus those of each saved search"), "{table}");
    assert!(notes.contains(&format!("{lacks}; --estimate=ask may request the list: 1 request\n")), "{notes}");
    let (table, notes) = estimate(&["--estimate=ask", "-c", counts]);
    assert!(table.contains("13 (12 saved searches in the last list)"), "{table}");
    assert!(notes.contains("1 request for the list of saved searches") && !notes.contains(lacks), "{notes}");
    assert!(!notes.contains("for the numbers of mentions"), "{notes}");
    let set = "SET savedsearch.estimate = 'ask'";
    for arguments in [&["--estimate=ask", "-c", sql][..], &["-c", set, "-c", &format!("\\cost {sql}")]] {
        let (table, notes) = estimate(arguments);
        assert!(!notes.contains("lacks numbers"), "{notes}");
        let said = ["1 request for the list of saved searches", "12 requests for the numbers of mentions"];
        assert!(said.iter().all(|said| notes.contains(said)), "{notes}");
        let (_, likely) = table.split_once("likely about ").unwrap_or_else(|| panic!("{table}"));
        let likely: u64 = likely.split(' ').next().unwrap().parse().unwrap();
        let count = "SELECT count(*) AS n FROM system.requests";
        let (rows, _) = estimate(&["-c", sql, "-c", count]);
        let sent: u64 = rows.lines().last().unwrap().parse().unwrap();
        assert!(sent.abs_diff(likely) <= sent / 10 + 1, "{sent} instead of about {likely}");
    }
}

/// The names of saved searches are those of the list.
#[test]
fn an_estimate_of_a_join_with_the_list_may_ask_for_it() {
    let run = |arguments: &[&str]| {
        let arguments = [&["--now", NOW, "sql", "--format", "csv"], arguments].concat();
        let output = savedsearch(&arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        (out(&output), err(&output))
    };
    let last = |printed: &str| printed.lines().last().unwrap().to_owned();
    let sent = |sql: &str| -> u64 {
        last(&run(&["-c", sql, "-c", "SELECT count(*) AS n FROM system.requests"]).0).parse().unwrap()
    };
    let searches = "(12 saved searches in the last list)";
    let exact = |sent: u64| format!("all,,{sent} {searches},{sent}");
    // Without saved searches, an inner join reads nothing else.
    let likely = |sent: u64| format!("all,,\"at least 1, likely about {sent} {searches}\",1");
    let cases: [(&str, &dyn Fn(u64) -> String); 3] = [
        ("SELECT name, total_mentions FROM overview WHERE duration = '30d'", &exact),
        ("SELECT name, count(*) FROM mentions WHERE duration = '30d' GROUP BY name", &exact),
        ("SELECT name, total_mentions FROM overview JOIN saved_searches USING (aid) WHERE duration = '30d'", &likely),
    ];
    for (sql, expected) in cases {
        let (_, notes) = run(&["--estimate", "-c", sql]);
        let lacks = "the estimate lacks the number of saved searches; --estimate=ask may request the list: 1 request\n";
        assert!(notes.contains(lacks), "{sql}: {notes}");
        let (table, notes) = run(&["--estimate=ask", "-c", sql]);
        assert!(notes.contains("note: estimating: 1 request for the list of saved searches\n"), "{sql}: {notes}");
        assert!(!notes.contains("for the numbers of mentions"), "{sql}: {notes}");
        assert_eq!(last(&table), expected(sent(sql)), "{sql}");
    }
    let read = "SELECT s.name, m.title FROM saved_searches s JOIN mentions m USING (aid) WHERE m.duration = '7d'";
    let (table, notes) = run(&["--estimate=ask", "-c", read]);
    assert!(notes.contains("note: estimating: 12 requests for the numbers of mentions\n"), "{notes}");
    assert_eq!(last(&table), likely(sent(read)));
}

#[test]
fn statements_have_variables() {
    let csv = ["--format", "csv", "-v", "days=7d", "-v", "name=O'Neill"];
    let sql = "SELECT :'days' AS days, :'name' AS \"who\", 1::int AS \":days\"";
    assert_eq!(printed(&[&csv[..], &["-c", sql]].concat()), "days,who,:days\n7d,O'Neill,1\n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("set.sql");
    fs::write(&file, "\\set n 'max(1, 2)'\n\\unset days\n").unwrap();
    let include = format!("\\i {}", file.display());
    let script =
        ["-c", "\\set n 1", "-c", "SELECT :n AS n", "-c", &include, "-c", "SELECT greatest(1, 2) AS n, :'n' AS text"];
    assert_eq!(printed(&[&csv[..], &script].concat()), "n\n1\nn,text\n2,\"max(1, 2)\"\n");
    assert_eq!(
        printed(&["--format", "csv", "-v", "a=1", "-c", "\\set b 2 3", "-c", "\\set"]),
        "variable,value\na,1\nb,2 3\n"
    );
    // Before the first statement runs.
    let unknown = refused(&["-c", "SELECT 1", "-c", "SELECT id FROM mentions WHERE duration = :'period'"]);
    assert_eq!(unknown, "variable `period` is not set; use \\set period VALUE");
    assert_eq!(printed(&["-c", "SELECT 1 AS a \\gx"]), "─[ row 1 ]─\na │ 1\n");
}

#[test]
fn a_statement_writes_its_result_to_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (own, all) = (path("own.csv"), path("all.csv"));
    // The file of all other results goes on after it.
    let script = format!(
        "\\o {}\nSELECT 1 AS a \\g {}\nSELECT 2 AS b;\n\\o\nSELECT 3 AS c \\gx {};\nSELECT 4 AS d",
        all.display(),
        own.display(),
        path("last.json").display()
    );
    assert_eq!(out(&demo(&["--format", "csv", "-c", &script])), "d\n4\n");
    let text = |path: &Path| fs::read_to_string(path).unwrap();
    assert_eq!((text(&own), text(&all)), ("a\n1\n".to_owned(), "b\n2\n".to_owned()));
    assert_eq!(text(&path("last.json")), "c\n3\n", "a format that was chosen counts more than a name");
    // A failed statement keeps the file as it was, and two results do not fit into one.
    let failed = refused(&["-c", &format!("SELECT 1 / 0 AS a \\g {}", own.display())]);
    assert!(failed.contains("zero"), "{failed}");
    let two = refused(&["-c", &format!("EXPLAIN SELECT 1; SELECT 1 AS a \\g {}\nSELECT 2 \\g | cat", own.display())]);
    assert!(two.starts_with("results go to a file"), "{two}");
    assert_eq!(text(&own), "a\n1\n");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "no partial file is left");
}

#[test]
fn the_extension_of_a_file_is_its_format() {
    let folder = tempfile::tempdir().unwrap();
    let sql = "SELECT source, count(*) AS n FROM mentions WHERE aid = '183772' GROUP BY source ORDER BY n DESC";
    let cases = [
        ("a.csv", "source,n\n"),
        ("a.tsv", "source\tn\n"),
        ("a.json", "[{\"source\""),
        ("a.ndjson", "{\"source\""),
        ("a.jsonl", "{\"source\""),
        ("a.md", "| source"),
        ("a.parquet", "PAR1"),
        ("a.svg", "<svg"),
        ("a.png", "PNG"),
        ("a.xlsx", "PK"),
        ("a.txt", "+-"),
    ];
    each(cases, |(name, begin)| {
        let path = folder.path().join(name);
        printed(&["-o", path.to_str().unwrap(), "-c", sql]);
        let bytes = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        assert!(text.trim_start_matches(['\u{fffd}', '\u{89}']).starts_with(begin), "{name}: {text}");
    });
    let path = folder.path().join("b.csv");
    printed(&["--format", "ndjson", "-o", path.to_str().unwrap(), "-c", "SELECT 1 AS n"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"n\":1}\n", "an option counts more than the extension");
}

#[test]
fn a_file_that_would_not_be_what_its_name_promises_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    each(["a.pdf", "a.html", "a.xls", "a.csv.gz", "a.parquett", "a.", "a.table"], |name| {
        let path = folder.path().join(name);
        let output = demo(&["-o", path.to_str().unwrap(), "-c", "SELECT 1 AS n"]);
        let said = err(&output);
        let extension = name.rsplit('.').next().unwrap();
        assert!(output.status.code() == Some(2) && !path.exists(), "{name}: {said}");
        assert!(said.contains(&format!("unsupported extension .{extension}; use one of .csv, ")), "{name}: {said}");
        let redirected = refused(&["-c", &format!("\\o {}", path.display()), "-c", "SELECT 1 AS n"]);
        assert!(redirected.contains("unsupported extension") && !path.exists(), "{name}: {redirected}");
        // A format that was chosen counts.
        printed(&["--format", "csv", "-o", path.to_str().unwrap(), "-c", "SELECT 1 AS n"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "n\n1\n", "{name}");
    });
    printed(&["-o", folder.path().join("plain").to_str().unwrap(), "-c", "SELECT 1 AS n"]);
}

#[test]
fn a_second_result_for_a_file_of_one_is_refused_before_the_first_is_requested() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let settings = Settings { clock: Clock::fixed(now()), ..Settings::default() };
    let service = runtime.block_on(simulator::start("127.0.0.1:0".parse().unwrap(), corpus(), settings)).unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let count = "SELECT source, count(*) AS n FROM mentions WHERE aid = '183772' GROUP BY source";
    let (one, both) = (file("one.sql"), file("both.sql"));
    fs::write(&one, count).unwrap();
    fs::write(&both, format!("{count}; {count}")).unwrap();
    let include = format!("\\i {one}");
    let twice: [&[&str]; 8] = [
        &["-c", count, "-c", count],
        &["-c", &format!("{count}; SET savedsearch.max_requests = 9; {count}")],
        &["-f", &both],
        &["-f", &one, "-c", count],
        &["-c", &include, "-c", &include],
        &["-c", "\\d", "-c", count],
        &["-c", &format!("EXPLAIN {count}"), "-c", count],
        &["--estimate", "-c", count, "-c", "\\l"],
    ];
    let base_url = service.base_url();
    let sql = |arguments: &[&str]| {
        let mut command = savedsearch(&[&["--base-url", &base_url, "--quiet", "sql"], arguments].concat());
        command.env("SAVEDSEARCH_API_KEY", KEY).stdin(Stdio::null()).output().unwrap()
    };
    each(["a.csv", "a.tsv", "a.json", "a.ndjson", "a.parquet", "a.arrow", "a.svg", "a.png"], |name| {
        let path = file(name);
        for twice in twice {
            fs::write(&path, "old").unwrap();
            let output = sql(&[&["-o", &path], twice].concat());
            let said = err(&output);
            assert!(output.status.code() == Some(1), "{name} {twice:?}: {said}");
            assert!(said.contains(" file holds one result; run one statement"), "{name} {twice:?}: {said}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "old", "{name} {twice:?}");
        }
        let redirected = sql(&["-c", &format!("\\o {path}"), "-c", count, "-c", count]);
        assert!(err(&redirected).contains("file holds one result"), "{name}: {}", err(&redirected));
        // A result that cannot be foreseen is refused as well.
        let watched = sql(&["-o", &path, "-c", "SELECT 'a' AS a, 1 AS n", "-c", "\\watch 1"]);
        assert!(err(&watched).contains("file holds one result"), "{name}: {}", err(&watched));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old", "{name}");
        // Files of their own.
        let other = file("b.csv");
        let redirect = format!("\\o {other}");
        let apart = sql(&["-o", &path, "-c", "SELECT 'a' AS a, 1 AS n", "-c", &redirect, "-c", "SELECT 2 AS n"]);
        assert!(apart.status.success(), "{name}: {}", err(&apart));
    });
    assert_eq!(service.requests(), 0);
    // Formats that show where a result ends, and stdout, whose reader sees it.
    for name in ["a.md", "a.txt"] {
        printed(&["-o", &file(name), "-c", "SELECT 1 AS a", "-c", "SELECT 2 AS b"]);
        let text = fs::read_to_string(file(name)).unwrap();
        assert!(text.contains("| a |") && text.contains("| b |"), "{text}");
    }
    assert_eq!(printed(&["--format", "json", "-c", "SELECT 1 AS a; SELECT 2 AS b"]), "[{\"a\":1}]\n[{\"b\":2}]\n");
}

#[test]
fn a_workbook_has_typed_cells_and_a_sheet_for_each_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.xlsx");
    let sql = "SET timezone = 'Europe/Berlin'; SELECT '007' AS aid, 42 AS post_id, 1.5 AS score, true AS yes, 9007199254740993 AS big, \
               '=1+1' AS formula, timestamp '2026-07-01 10:00:00' AT TIME ZONE 'UTC' AS at, date '2026-07-01' AS day, NULL AS nothing, \
               make_array('a', 'b') AS list, 7 AS n";
    printed(&["-o", path.to_str().unwrap(), "-c", sql, "-c", "SELECT 2 AS second"]);
    // The parts of a workbook are compressed XML; Python reads zip archives.
    let script = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nprint('\\n'.join(z.namelist()))\n\
                  print(z.read('xl/worksheets/sheet1.xml').decode())\nprint(z.read('xl/workbook.xml').decode())\n\
                  print(z.read('xl/sharedStrings.xml').decode() if 'xl/sharedStrings.xml' in z.namelist() else '')\n\
                  print(z.read('xl/styles.xml').decode())";
    let output = std::process::Command::new("python3").args(["-c", script, path.to_str().unwrap()]).output().unwrap();
    let parts = out(&output);
    for part in
        ["xl/worksheets/sheet2.xml", "name=\"Result 1\"", "name=\"Result 2\"", "state=\"frozen\"", "<autoFilter"]
    {
        assert!(parts.contains(part), "{part}\n{parts}{}", err(&output));
    }
    each(["007", "42", "9007199254740993", "=1+1", "[\"a\",\"b\"]"], |text| {
        let escaped = text.replace('"', "&quot;");
        let found = [text, escaped.as_str()].iter().any(|text| parts.contains(&format!(">{text}</t>")));
        assert!(found, "{text} is no text\n{parts}");
    });
    // Noon in Berlin is half of a day, and 1 July 2026 the day 46,204.
    each(["<v>1.5</v>", "<v>46204.5</v>", "<v>46204</v>", "<v>7</v>", "t=\"b\"><v>1</v>"], |number| {
        assert!(parts.contains(number), "{number}\n{parts}");
    });
    assert!(parts.contains("yyyy-mm-dd hh:mm:ss") && !parts.contains("<f>"), "{parts}");
    // To a pipe as well.
    let piped = demo(&["--format", "xlsx", "-c", "SELECT 1 AS n"]);
    assert!(piped.stdout.starts_with(b"PK"), "{}", err(&piped));
}

#[test]
fn statements_are_taken_as_people_type_them() {
    let csv = |statements: &[&str]| printed(&[&["--format", "csv"], statements].concat());
    // A statement without an option, and headers as typed.
    assert_eq!(csv(&["SELECT 1, 2 + 2, 'a' AS b"]), "1,2 + 2,b\n1,4,a\n");
    assert_eq!(csv(&["SELECT 1", "-c", "SELECT -2"]), "1\n1\n-2\n-2\n");
    let unknown = "SELECT count(extra->>'x') AS n FROM mentions WHERE aid = '183772' AND duration = '1d'";
    assert_eq!(csv(&[unknown]), "n\n0\n");
    let counts = "SELECT count(*), sum(likes), date_trunc('day', now()) IS NULL FROM mentions LIMIT 0";
    assert!(
        csv(&[counts]).starts_with("count(*),sum(likes),\"date_trunc('day', now()) IS NULL\"\n"),
        "{}",
        csv(&[counts])
    );
    assert_eq!(csv(&["SELECT *, 7 FROM (SELECT 1 AS a, 2 AS b)"]), "a,b,7\n1,2,7\n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.sql");
    fs::write(&file, "SELECT 1").unwrap();
    let output = demo(&[file.to_str().unwrap()]);
    assert!(output.status.code() == Some(2) && err(&output).contains("run it with -f"), "{}", err(&output));
    // Statements and commands of other shells.
    assert_eq!(csv(&["-c", "USE v4; USE savedsearch.v4; SELECT 1 AS n"]), "n\n1\n");
    assert_eq!(refused(&["-c", "USE nowhere"]), "unknown connection `nowhere`; available: savedsearch");
    for (schema, table) in [("system", "system.requests"), ("information_schema", "information_schema.tables")] {
        assert!(refused(&["-c", &format!("USE {schema}")]).ends_with(&format!("qualify the table, as in {table}")));
        printed(&["-c", &format!("SELECT 1 FROM {table} LIMIT 1")]);
    }
    assert_eq!(printed(&["-c", ".tables"]), printed(&["-c", "\\d"]));
    assert_eq!(printed(&["-c", "\\dt mentions"]), printed(&["-c", "\\d mentions"]));
    assert_eq!(refused(&["-c", "\\gx"]), "unknown command \\gx; write it at the end of a statement, in place of ;");
    // The tables of the service come first, in order.
    let tables = csv(&["SHOW TABLES"]);
    let tables: Vec<&str> = tables.lines().skip(1).collect();
    let ours = ["breakdowns", "mentions", "overview"].map(|name| format!("savedsearch,v4,{name},BASE TABLE"));
    assert_eq!(tables[..3], ours);
    let schemas: Vec<&str> = tables.iter().filter_map(|row| row.split(',').nth(1)).collect();
    let mut order = schemas.clone();
    order.dedup();
    assert_eq!(order, ["v4", "system", "information_schema"]);
    let own = "CREATE TABLE mine AS SELECT 1 AS a; CREATE VIEW seen AS SELECT id FROM mentions";
    let told = printed(&["-c", own, "-c", "\\d"]);
    let row = |name: &str| told.lines().find(|line| line.starts_with(&format!("| {name} "))).unwrap().to_owned();
    assert!(row("mine").contains("| none ") && row("seen").contains("same as its query"), "{told}");
}

#[test]
fn a_change_of_the_services_tables_is_refused_before_it_is_checked() {
    let cases = [
        ("INSERT INTO mentions VALUES (1)", "mentions"),
        ("INSERT INTO savedsearch.v4.mentions (nonsense) SELECT 1", "savedsearch.v4.mentions"),
        ("INSERT INTO system.requests VALUES (1)", "system.requests"),
        ("UPDATE mentions SET nonsense = 1", "mentions"),
        ("DELETE FROM overview WHERE nonsense", "overview"),
        ("TRUNCATE TABLE volume", "volume"),
        ("ALTER TABLE mentions ADD COLUMN a INT", "mentions"),
    ];
    each(cases, |(sql, table)| {
        let line = refused(&["-c", sql]);
        assert!(line.starts_with(&format!("table `{table}` is read-only; create a table or view")), "{sql}: {line}");
    });
    let own =
        "CREATE TABLE mine AS SELECT 1 AS a; INSERT INTO mine SELECT count(*) + 1 FROM saved_searches WHERE false";
    assert_eq!(printed(&["--format", "csv", "-c", own, "-c", "SELECT sum(a) AS s FROM mine"]), "count\n1\ns\n2\n");
}

#[test]
fn a_limit_of_the_memory_is_not_changed_by_statements() {
    let statements = [
        "SET datafusion.runtime.memory_limit = '64G'",
        "RESET datafusion.runtime.memory_limit",
        "SET \"datafusion.runtime.MAX_TEMP_DIRECTORY_SIZE\" = '1G'",
        "RESET datafusion.runtime.temp_directory",
    ];
    each(statements, |sql| {
        let line = refused(&["--memory", "1GiB", "-c", sql]);
        assert!(
            line.contains(" cannot be changed: --memory limits memory and temporary files; start"),
            "{sql}: {line}"
        );
    });
    let both = "SET datafusion.runtime.memory_limit = '1G'; RESET datafusion.runtime.memory_limit";
    assert_eq!(printed(&["-c", both]), "", "nothing limits this shell");
    assert_eq!(printed(&["--memory", "1GiB", "-c", "SET datafusion.execution.batch_size = 100"]), "");
}

#[test]
fn lists_of_catalogs_and_schemas_are_queries() {
    let printed = printed(&["--format", "csv", "-c", "SHOW DATABASES", "-c", "SHOW SCHEMAS"]);
    assert!(printed.starts_with("database_name\nsavedsearch\ndatabase_name,schema_name\n"), "{printed}");
    assert!(printed.contains("\nsavedsearch,system\n") && printed.contains("\nsavedsearch,v4\n"), "{printed}");
}

#[test]
fn lists_can_be_filtered() {
    let listed = |sql: &str| {
        let text = printed(&["--format", "csv", "-c", sql]);
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let [mentions, overview] = ["mentions", "overview"].map(|name| format!("savedsearch,v4,{name},BASE TABLE"));
    assert_eq!(listed("SHOW TABLES LIKE 'mention%'"), [mentions.as_str()]);
    assert_eq!(listed("SHOW TABLES ILIKE 'MENTION%'"), [mentions.as_str()]);
    assert_eq!(listed("SHOW TABLES LIKE 'it''s'"), [""; 0]);
    let chosen = listed("SHOW TABLES IN savedsearch.v4 WHERE table_name IN ('overview', 'mentions') OR false");
    assert_eq!(chosen, [mentions.as_str(), overview.as_str()]);
    // A quote behind a backslash.
    let quoted = "SHOW TABLES WHERE table_name = 'x\\'' OR true OR ''' OR table_name = 'mentions'";
    assert_eq!(listed(quoted), std::slice::from_ref(&mentions));
    assert_eq!(
        listed("SHOW SCHEMAS FROM savedsearch WHERE schema_name = 'v4' OR schema_name = '\\'''"),
        ["savedsearch,v4"]
    );
    let of_schema = listed("SHOW TABLES FROM V4");
    assert!(of_schema.contains(&mentions) && of_schema.iter().all(|row| row.contains(",v4,")), "{of_schema:?}");
    assert!(listed("SHOW TABLES FROM savedsearch").iter().any(|row| row.contains(",system,")));
    assert!(listed("SHOW TABLES FROM SCHEMA information_schema").iter().all(|row| row.contains("information_schema")));
    assert_eq!(listed("SHOW SCHEMAS LIKE 'v%'"), ["savedsearch,v4"]);
    assert_eq!(listed("SHOW SCHEMAS FROM savedsearch LIKE 'sys%'"), ["savedsearch,system"]);
    assert_eq!(listed("SHOW DATABASES LIKE 's%'"), ["savedsearch"]);
    let line = refused(&["-c", "SHOW TABLES FROM v5"]);
    assert_eq!(line, "unknown schema `v5`; SHOW SCHEMAS lists the schemas");
    let line = refused(&["-c", "SHOW SCHEMAS FROM nowhere"]);
    assert_eq!(line, "unknown database `nowhere`; SHOW DATABASES lists the databases");
}

#[test]
fn a_query_may_begin_with_from() {
    let [first, written] =
        ["FROM saved_searches ORDER BY aid LIMIT 2", "SELECT * FROM saved_searches ORDER BY aid LIMIT 2"]
            .map(|sql| printed(&["--format", "csv", "-c", sql]));
    assert_eq!(first, written);
    assert_eq!(printed(&["--format", "csv", "-c", "FROM saved_searches SELECT count(aid) AS n"]), "n\n15\n");
}

#[test]
fn suggestions_are_names_that_were_meant() {
    let cases = [
        ("SELECT autor FROM mentions", "unknown column `autor`; did you mean author_name?"),
        ("SELECT titel FROM mentions", "unknown column `titel`; did you mean title?"),
        ("SELECT 'a' = ANY('{a,b}')", "ANY, ALL and `array_position` take an array, such as ARRAY['a', 'b']"),
        ("SELECT id FROM mentions WHERE language = ANY('{en}')", "ANY, ALL and `array_has` take an array, such as"),
        ("SELECT 1 FROM saved_searches WHERE aid = ANY(('1', '2'))", "take an array, such as ARRAY['a', 'b']"),
        ("SELECT id FROM mentions WHERE title LIKE ANY('a%')", "LIKE ANY takes an array, such as ARRAY['a%', 'b%']"),
        ("SELECT followers FROM mentions", "unknown column `followers`; did you mean author_followers?"),
        ("SELECT lang FROM mentions", "unknown column `lang`; did you mean language?"),
        ("SELECT id FROM searches", "unknown table `searches`; did you mean saved_searches?"),
        ("SELECT id FROM requests", "unknown table `requests`; did you mean system.requests?"),
        ("SELECT id FROM mentions WHERE source = ‘x.com’", "the statement has a typographic quote ‘; write '"),
        ("SELECT year(published_at) FROM mentions", "unknown function `year`; write date_part('year', t)"),
        ("SELECT MONTH(published_at) FROM mentions", "unknown function `month`; write date_part('month', t)"),
        ("SELECT day(published_at) FROM mentions", "unknown function `day`; write date_part('day', t)"),
        ("SELECT hour(published_at) FROM mentions", "unknown function `hour`; write date_part('hour', t)"),
        ("SELECT week(published_at) FROM mentions", "unknown function `week`; write date_part('week', t)"),
        ("SELECT quarter(published_at) FROM mentions", "unknown function `quarter`; write date_part('quarter', t)"),
        ("SELECT dayofweek(published_at) FROM mentions", "unknown function `dayofweek`; write date_part('dow', t)"),
        ("SELECT date_trunc(DAY, published_at) FROM mentions", "unknown column `day`; write date_trunc('day', t)"),
        (
            "SELECT DATE_TRUNC(published_at, month) FROM mentions",
            "unknown column `month`; write date_trunc('month', t)",
        ),
        ("SELECT GROUP_CONCAT(id) FROM mentions", "unknown function `group_concat`; write string_agg(x, ',')"),
        ("SELECT date(published_at) FROM mentions", "unknown function `date`; write t::date"),
        ("SELECT sign(reach) FROM mentions", "unknown function `sign`; write signum(x)"),
        ("SELECT convert(reach, char) FROM mentions", "CONVERT is not supported; write cast(x AS varchar)"),
        ("SELECT id FROM mentions ORDER BY title COLLATE nocase", "COLLATE is not supported; write lower(x)"),
        ("SELECT cast(reach AS number) FROM mentions", "the type NUMBER is not supported; write decimal(18, 2)"),
        ("SELECT @a", "variables such as @a are not supported; write the value"),
        (
            "SELECT strptime(title, '%Y') FROM mentions",
            "unknown function `strptime`; write to_timestamp(text, '%d/%m/%Y %H:%M')",
        ),
        ("SELECT date_format(published_at, 'YYYY-MM') FROM mentions", "write to_char(t, '%Y-%m-%d')"),
        ("SELECT date_format(published_at, '%H:%i') FROM mentions", "in which %M is the minute"),
        (
            "SELECT to_char(max(published_at) - min(published_at), '%H:%M') FROM mentions WHERE aid = '183772'",
            "to_char of a duration is not supported; cast it to text",
        ),
        ("SHOW VIEWS", "SHOW VIEWS is not supported; SHOW TABLES lists the tables"),
        ("SELECT id FROM mentions WHERE aid = 183772 && reach = 5", "between conditions, write AND"),
        ("SELECT id FROM mentions WHERE reach > 5 || language = 'en'", "between conditions, write OR"),
        ("SELECT title FROM [mentions]", "write mentions instead of [mentions]"),
        ("SELECT id FROM mentions WHERE date = '2026-06-01'", "unknown column `date`; did you mean published_at?"),
        ("SELECT created_at FROM mentions", "unknown column `created_at`; did you mean published_at?"),
        ("SELECT count(*) n FROM mentions WHERE n > 3", "`n` is the name of a result; write its expression"),
        (
            "SELECT id FROM mentions WHERE hashtags = 'x'",
            "List(Utf8) = Utf8; to find an item of a list, write 'x' = ANY(list)",
        ),
        ("SELECT extra.x FROM mentions", "a text has no fields; for a field of JSON, write x->>'field'"),
        ("SELECT lower(reach) FROM mentions", "wrong arguments for `lower`: lower(Int64)"),
        ("SELECT id FROM mentions WHERE reach", "a condition cannot be a value of type Int64; write a comparison"),
        ("SELECT title + text FROM mentions", "cannot compute Utf8 + Utf8; to join texts, write a || b"),
    ];
    each(cases, |(sql, said)| {
        let line = refused(&["-c", sql]);
        assert!(line.contains(said), "{sql}: {line}");
    });
    let line = refused(&["-c", "SELECT nope FROM mentions"]);
    assert!(line.contains("unknown column `nope`; available: aid, id, ") && !line.contains("did you mean"), "{line}");
}

#[test]
fn an_excess_of_requests_advises_what_the_query_can_use() {
    for (sql, advice) in [
        ("SELECT * FROM overview WHERE duration = '7d'", "narrow the query by aid or duration, or raise the limit"),
        (
            "SELECT id FROM mentions WHERE aid = '183772' AND duration = '90d'",
            "narrow the query by published_at, add a LIMIT, or raise the limit",
        ),
        (
            "SELECT count(DISTINCT author_id) FROM mentions WHERE aid = '183772' AND duration = '90d' LIMIT 5",
            "narrow the query by published_at, or raise the limit",
        ),
        (
            "SELECT id FROM mentions WHERE aid = '183772' AND duration = '90d' LIMIT 2000",
            "narrow the query by published_at, or raise the limit",
        ),
    ] {
        let line = refused(&["--set", "max_requests=1", "-c", sql]);
        assert!(line.contains(&format!("; {advice}: SET savedsearch.max_requests = ")), "{line}");
    }
}

#[test]
fn a_store_of_demo_data_belongs_to_its_now() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().to_str().unwrap();
    let sync = |now: &str| {
        let arguments = ["--now", now, "--store", store, "sync", "--aid", "183772", "--since", "1d"];
        let output = savedsearch(&arguments).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), err(&output))
    };
    let (code, told) = sync(NOW);
    assert_eq!(code, Some(0), "{told}");
    let (code, told) = sync("2026-07-02T12:00:00Z");
    assert!(code == Some(2) && told.contains("use the --now with which the store was made"), "{told}");
    assert!(!told.contains("--base-url and the key"), "{told}");
}

#[test]
fn a_column_in_brackets_is_noted() {
    let noted = |sql: &str| {
        let output = savedsearch(&["--now", NOW, "sql", "-c", sql]).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", err(&output));
        err(&output).contains("for the name, write title instead of [title]")
    };
    assert!(noted("SELECT [title] FROM mentions WHERE aid = '183772' AND duration = '7d' LIMIT 1"));
    assert!(!noted("SELECT [title, id] FROM mentions WHERE aid = '183772' AND duration = '7d' LIMIT 1"));
}

#[test]
fn minutes_and_months_are_literals() {
    let count = |since: &str| {
        let window = format!("published_at >= '{since}' AND published_at < '2026-07-01'");
        let sql = format!("SELECT count(*) AS n FROM mentions WHERE aid = '183772' AND {window}");
        printed(&["--format", "csv", "-c", &sql])
    };
    assert_eq!(count("2026-06-28 12:30"), count("2026-06-28T12:30:00Z"));
    assert_eq!(count("2026-06"), count("2026-06-01T00:00:00Z"));
}

#[test]
fn formats_of_dates_that_mean_the_same_everywhere_are_read() {
    let sql = "SELECT date_format(timestamp '2026-06-05 07:08:09', '%Y-%m-%d %T, %a %d %b %y, %j %p %%') AS t";
    assert_eq!(printed(&["--format", "csv", "-c", sql]), "t\n\"2026-06-05 07:08:09, Fri 05 Jun 26, 156 AM %\"\n");
}

#[test]
fn a_file_ends_with_a_line_about_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let last = |arguments: &[&str]| {
        let output = savedsearch(&[&["--now", NOW, "sql"], arguments].concat()).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", err(&output));
        err(&output).lines().last().unwrap_or_default().to_owned()
    };
    let newest = "SELECT id FROM mentions WHERE aid = '183772' ORDER BY published_at DESC LIMIT 10";
    let csv = file("a.csv");
    assert_eq!(last(&["-o", &csv, newest]), format!("wrote {csv}: 10 rows · 1 request · complete"));
    let two = file("a.md");
    let line = last(&["-o", &two, "-c", newest, "-c", "SELECT 1"]);
    assert_eq!(line, format!("wrote {two}: 2 results · 11 rows · 1 request · complete"));
    assert_eq!(last(&["-o", &csv, "SELECT 1"]), format!("wrote {csv}: 1 row · no requests · complete"));
    let redirected = last(&["-c", &format!("\\o {csv}"), "-c", newest, "-c", "\\o"]);
    assert_eq!(redirected, format!("wrote {csv}: 10 rows · 1 request · complete"));
    assert!(!last(&["-o", &csv, "SET savedsearch.max_requests = 9"]).starts_with("wrote"));
    // A pipe and a device have no name; what needs no service is not worth a line.
    assert_eq!(last(&[newest]), "10 rows · 1 request · complete");
    assert_eq!(last(&["-o", "/dev/null", newest]), "10 rows · 1 request · complete");
    assert_eq!(last(&["-c", newest, "-c", "SELECT 1"]), "2 results · 11 rows · 1 request · complete");
    for statement in ["SELECT 1", "EXPLAIN SELECT id FROM mentions LIMIT 1", "SHOW TABLES"] {
        assert!(last(&[statement]).starts_with("note: "), "{statement}");
    }
}

#[test]
fn times_are_shown_in_the_zone_of_the_session() {
    let sql =
        |set: &str| format!("{set}; SELECT published_at FROM mentions WHERE aid = '183772' ORDER BY 1 DESC LIMIT 1");
    let utc = printed(&["--format", "csv", "-c", &sql("SET timezone = 'UTC'")]);
    let tokyo = printed(&["--format", "csv", "-c", &sql("SET TIME ZONE 'Asia/Tokyo'")]);
    assert!(utc.trim_end().ends_with('Z') && tokyo.trim_end().ends_with("+09:00"), "{utc}{tokyo}");
    let instant = |text: &str| {
        let last = text.lines().last().unwrap();
        chrono::DateTime::parse_from_rfc3339(last).unwrap().with_timezone(&chrono::Utc)
    };
    assert_eq!(instant(&utc), instant(&tokyo));
    // Days of the timeline follow.
    let days = "SET timezone = 'Asia/Tokyo'; SELECT bucket_start FROM volume WHERE aid = '183772' LIMIT 1";
    assert!(printed(&["--format", "csv", "-c", days]).trim_end().ends_with("T00:00:00+09:00"));
    assert!(printed(&["--format", "csv", "-c", "SET timezone = 'Asia/Tokyo'; SHOW timezone"]).contains("Asia/Tokyo"));
    let trunc = "SET timezone = 'Asia/Tokyo'; SELECT date_trunc('day', published_at), count(*) FROM mentions WHERE aid = '183772' GROUP BY 1";
    let days = printed(&["--format", "csv", "-c", trunc]);
    assert!(days.lines().count() > 5 && days.lines().skip(1).all(|day| day.contains("T00:00:00+09:00,")), "{days}");
    let set = printed(&[
        "--format",
        "csv",
        "--set",
        "savedsearch.timezone=asia/tokyo",
        "-c",
        "SELECT now()::date = current_date",
    ]);
    assert!(set.trim_end().ends_with("true"), "{set}");
    for form in ["SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE", "SET TIMEZONE = UTC", "SET TIME ZONE 0"] {
        assert!(printed(&["--format", "csv", "-c", &format!("{form}; SHOW timezone")]).contains(",UTC"), "{form}");
    }
    let line = refused(&["-c", "SET timezone = 'Asia/Tokio'"]);
    assert!(line.contains("invalid value `Asia/Tokio`") && line.contains("Asia/Tokyo"), "{line}");
}

#[test]
fn whole_days_of_a_zone_are_not_marked_in_charts() {
    let chart = |zone: &str, day: &str, from: &str, to: &str| {
        let sql = format!(
            "SET timezone = '{zone}'; SELECT {day} AS day, count(*) AS n FROM mentions WHERE aid = '183772' \
             AND published_at >= '{from}' AND published_at < '{to}' GROUP BY 1"
        );
        let text = printed(&["--format", "chart", "-c", &sql]);
        text.contains("incomplete")
    };
    for zone in ["UTC", "Asia/Tokyo", "America/New_York"] {
        assert!(!chart(zone, "published_at::date", "2026-06-10", "2026-06-15"), "{zone}");
        assert!(chart(zone, "published_at::date", "2026-06-10", "2026-06-15T12:00:00"), "{zone}");
    }
    let (from, to) = ("2026-06-10T00:00:00+09:00", "2026-06-15T00:00:00+09:00");
    assert!(!chart("UTC", "(published_at AT TIME ZONE 'Asia/Tokyo')::date", from, to));
}

#[test]
fn charts_name_the_zone_of_their_days() {
    let picture = |sql: &str| printed(&["--format", "svg", "-c", sql]);
    let berlin = "published_at AT TIME ZONE 'Europe/Berlin'";
    let of = "FROM mentions WHERE aid = '183772' AND duration = '3d'";
    // Mentions are counted one by one.
    let sql = format!("SELECT ({berlin})::date AS day, sentiment, count(*) AS n {of} GROUP BY 1, 2");
    let days = picture(&sql);
    let named = days.contains(", Europe/Berlin<") && days.contains(">day (Europe/Berlin)<") && !days.contains("UTC");
    assert!(named, "{days}");
    // At a prompt that shows times in another zone.
    let sql = format!("SELECT date_trunc('day', {berlin}) AS day, sentiment, count(*) AS n {of} GROUP BY 1, 2");
    assert_eq!(printed(&["--set", "timezone=Asia/Tokyo", "--format", "svg", "-c", &sql]), days);
    // Days counted by the service in the zone of a condition are those of a session in that zone.
    let volume = |more: &str| {
        format!("SELECT bucket_start, mentions FROM volume WHERE aid = '183772' AND duration = '30d' {more}")
    };
    for format in ["svg", "chart"] {
        let asked = printed(&["--format", format, "-c", &volume("AND timezone = 'Europe/Berlin'")]);
        let session = ["--set", "timezone=Europe/Berlin", "--format", format, "-c", &volume("")];
        assert_eq!(asked, printed(&session));
        assert!(asked.contains("The first and the last period are incomplete."), "{asked}");
    }
    // Dates of UTC of days of Berlin are days of no zone.
    let mixed = volume("AND timezone = 'Europe/Berlin'").replacen("bucket_start", "bucket_start::date AS day", 1);
    let mixed = picture(&mixed);
    assert!(mixed.contains(">day<") && !mixed.contains("UTC") && !mixed.contains("Berlin"), "{mixed}");
    let heat = |columns: &str, rest: &str| {
        let sql = format!("SELECT {columns} {of} {rest}");
        let map = printed(&["--format", "svg", "--chart-form", "heatmap", "-c", &sql]);
        assert!(map.contains(", America/Los_Angeles<") && !map.contains("UTC"), "{map}");
    };
    let there = "published_at AT TIME ZONE 'America/Los_Angeles'";
    heat(there, "");
    heat(&format!("date_part('dow', {there}), date_part('hour', {there}), count(*)"), "GROUP BY 1, 2");
}

#[test]
fn numbers_compared_with_keys_are_text() {
    for (condition, requests) in [("aid = 183772", 1), ("aid IN (183772, 184889)", 2), ("183772 = aid", 1)] {
        let sql = format!(
            "SELECT count(*) > 0 AS found FROM mentions WHERE {condition}; SELECT count(*) AS requests FROM system.requests"
        );
        assert_eq!(printed(&["--format", "csv", "-c", &sql]), format!("found\ntrue\nrequests\n{requests}\n"));
    }
    // Headers are as typed, lists may be mixed, and an outer reference is a key too.
    let sql = "SELECT count(*) FILTER (WHERE aid = 183772) > 0 AS some, count(*) > 0 AS all FROM mentions; \
               SELECT DISTINCT aid = 183772 FROM saved_searches WHERE aid IN (183772, '184889', NULL) ORDER BY 1; \
               SELECT count(*) AS n FROM saved_searches s WHERE EXISTS (SELECT 1 FROM (VALUES (1)) v WHERE s.aid = 183772)";
    assert_eq!(printed(&["--format", "csv", "-c", sql]), "some,all\ntrue,true\naid = 183772\nfalse\ntrue\nn\n1\n");
    assert_eq!(
        refused(&["-c", "SELECT id FROM mentions WHERE aid = \"183772\""]),
        "unknown column `183772`; double quotes enclose names; for a value write '183772'"
    );
}

/// The 60 most frequent messages of the program. A message is part of the product: a change is deliberate.
#[test]
fn messages_are_what_they_are() {
    let read_only = |table: &str| {
        format!(
            "table `{table}` is read-only; create a table or view with another name, as in CREATE TABLE mine AS SELECT …"
        )
    };
    let cases: Vec<(&str, String)> = vec![
        ("SELECT titel FROM mentions", "unknown column `titel`; did you mean title?".into()),
        (
            "SELECT id FROM mentions WHERE sentiment = \"positive\"",
            "unknown column `positive`; double quotes enclose names; for a value write 'positive'".into(),
        ),
        (
            "SELECT id FROM mentions WHERE sentiment IN ('neutral', \"positive\")",
            "unknown column `positive`; double quotes enclose names; for a value write 'positive'".into(),
        ),
        ("SELECT m.titel FROM mentions m", "unknown column `m.titel`; did you mean title?".into()),
        ("SELECT xyzzy", "unknown column `xyzzy`; the query has no FROM clause".into()),
        ("SELECT * FROM mentons", "unknown table `mentons`; did you mean mentions?".into()),
        ("SELECT * FROM customers", "unknown table `customers`; \\d lists the tables".into()),
        ("DESCRIBE customers", "unknown table `customers`; \\d lists the tables".into()),
        ("SELECT coutn(*) FROM mentions", "unknown function `coutn`; did you mean count?".into()),
        ("INSERT INTO mentions (id) VALUES ('1')", read_only("mentions")),
        ("DELETE FROM mentions", read_only("mentions")),
        ("UPDATE mentions SET id = '2'", read_only("mentions")),
        ("TRUNCATE TABLE overview", read_only("overview")),
        ("DROP TABLE mentions", read_only("mentions")),
        ("DROP VIEW mentions", read_only("mentions")),
        ("CREATE TABLE volume AS SELECT 1 AS a", read_only("volume")),
        ("CREATE OR REPLACE VIEW mentions AS SELECT 1 AS a", read_only("mentions")),
        ("GRANT ALL ON mentions TO me", "GRANT ALL is not supported; the tables are read-only".into()),
        ("ALTER TABLE mentions ADD COLUMN x INT", read_only("mentions")),
        ("BEGIN", "BEGIN is not supported".into()),
        ("SELECT 1/0", "division by zero".into()),
        (
            "SELECT string_agg(x, ',') OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (VALUES ('a')) v(x)",
            "`string_agg` is not supported over a frame whose start moves; write array_to_string(array_agg(x) OVER (…), ',')".into(),
        ),
        (
            "SELECT approx_distinct(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (VALUES ('a')) v(x)",
            "`approx_distinct` is not supported over a frame whose start moves; begin the frame with UNBOUNDED PRECEDING".into(),
        ),
        ("SELECT CAST('x' AS INT)", "Cannot cast string 'x' to value of Int32 type".into()),
        ("SELECT 1,\n  CAST('x' AS INT)", "Cannot cast string 'x' to value of Int32 type (line 2)".into()),
        (
            "SELECT id FROM mentions WHERE duration = 5d",
            "`5d` is neither a number nor a name; put quotes around a period: '5d'".into(),
        ),
        (
            "SELECT id FROM mentions WHERE duration IN (7d, 30d)",
            "`7d` is neither a number nor a name; put quotes around a period: '7d'".into(),
        ),
        (
            "SELECT 1st",
            "`1st` is neither a number nor a name; put a space after a number, and double quotes around a name that".into(),
        ),
        ("SELECT FROM mentions", "the query selects no columns".into()),
        ("SELEC 1", "syntax error: Expected: an SQL statement, found: SELEC".into()),
        (
            "SELECT id FROM mentions WHERE published_at < '2026-06-01'",
            "mentions: no lower bound for `published_at`; add AND published_at >= '2026-05-02'".into(),
        ),
        (
            "SELECT id FROM mentions WHERE duration = '7 days'",
            "mentions: invalid period `7 days`: the service takes".into(),
        ),
        (
            "SELECT id FROM mentions WHERE timezone = 'Europe/Belin'",
            "mentions: invalid time zone `Europe/Belin`: the service takes IANA names such as Europe/Berlin".into(),
        ),
        (
            "SHOW max_requests",
            "'max_requests' is not a variable which can be viewed with 'SHOW'; write SHOW savedsearch.max_requests".into(),
        ),
        ("SET savedsearch.max_request = 5", "unknown setting savedsearch.max_request; did you mean savedsearch.max_requests?".into()),
        (
            "SET savedsearch.max_requests = 0",
            "invalid value `0` for savedsearch.max_requests; expected a whole number of at least 1".into(),
        ),
        (
            "SET savedsearch.max_requests = 1; SELECT id FROM mentions WHERE aid IN ('183772', '184889')",
            "the query needs at least 2 requests, but savedsearch.max_requests allows 1".into(),
        ),
        ("SELECT id FROM mentions WHERE aid = 'nope'", "mentions: aid nope: page at row 0: the service answered 404".into()),
        (
            "SELECT * FROM overview WHERE aid = 'nope'",
            "overview: aid nope: the service answered 404 Not Found: no saved search `nope`; check the aid; \
             saved_searches lists those of the built-in demo data"
                .into(),
        ),
        ("\\x perhaps", "\\x expects [on|off], found `perhaps`".into()),
        ("\\format xml", "unknown format `xml`; available: ".into()),
        ("\\c nowhere", "unknown connection `nowhere`; available: savedsearch".into()),
        ("\\i nowhere.sql", "cannot read nowhere.sql: ".into()),
        ("\\cost", "\\cost expects a statement".into()),
        ("\\wacth", "unknown command \\wacth; did you mean \\watch?".into()),
        ("\\watch 0", "\\watch expects [SECONDS], found `0`".into()),
        ("\\l all", "\\l takes no argument, found `all`".into()),
        ("\\e", "\\e works at the prompt only".into()),
        ("\\watch", "no statement to watch yet; run one first".into()),
        ("\\chart", "no result to draw yet; use \\chart SELECT …".into()),
        ("SELECT (SELECT aid FROM saved_searches)", "Scalar subquery returned more than one row".into()),
        ("SELECT * FROM mentions('183772', sort_by => 'x')", "sort_by must be one of ".into()),
        ("SELECT * FROM mentions(aid => NULL)", "aid must not be NULL".into()),
    ];
    each(&cases, |(sql, expected)| {
        let line = refused(&["-c", sql]);
        assert!(line.contains(expected.as_str()), "{sql}\n  found    {line}\n  expected {expected}");
        let foreign =
            ["DataFusion", "Error during planning", "This feature is not implemented", "there is no", " is no ", "bug"];
        assert!(foreign.iter().all(|word| !line.contains(word)), "{sql}: {line}");
    });
    let nested = format!("SELECT {}1{}", "(".repeat(300), ")".repeat(300));
    assert_eq!(refused(&["-c", &nested]), "the statement is nested too deeply");
    let cases = [
        (&["sql", "--format", "xml", "-c", "SELECT 1"][..], "invalid value 'xml' for '--format <FORMAT>'"),
        (&["sql", "--set", "colour", "-c", "SELECT 1"], "--set expects KEY=VALUE, found `colour`"),
        (&["sql", "-f", "/nowhere.sql"], "cannot read /nowhere.sql: "),
        (&["sql", "-o", "/nowhere/x.csv", "-c", "SELECT 1"], "cannot write /nowhere/x.csv: "),
        (
            &["--base-url", "foo", "sql", "-c", "SELECT 1"],
            "invalid base URL `foo`: the scheme is missing; did you mean https://foo?",
        ),
        (&["--base-url", "", "sql", "-c", "SELECT 1"], "the base URL is empty; expected http(s)://host/…/v4"),
        (
            &["--base-url", "ftp://x/v4", "sql", "-c", "SELECT 1"],
            "invalid base URL `ftp://x/v4`: not an HTTP URL; expected http(s)://host/…/v4",
        ),
        (
            &["--connection", "a", "sql", "-c", "SELECT 1"],
            "--connection requires a configuration file: use --config or SAVEDSEARCH_CONFIG",
        ),
        (&["--profile", "/nowhere.toml", "sql", "-c", "SELECT 1"], "cannot read profile /nowhere.toml: "),
        (&["profile", "show", "mine"], "unknown built-in profile `mine`; available: v4, flags, pages, names"),
        (&["man", "sqll"], "unknown command `sqll`; available: "),
        (&["serve", "--auth", "users"], "--auth users requires --users-file"),
        (&["serve", "--memory", "20000GiB"], "expected a size from 64MiB to 16TiB"),
        (&["serve", "--tls-cert", "x.pem"], "--tls-cert and --tls-key require each other"),
        (
            &["serve", "--listen", "0.0.0.0:0"],
            "without authentication the server may only listen on a loopback address",
        ),
        (&["simulate", "--fault", "nonsense"], "unknown kind `nonsense`; available: "),
        (&["simulate", "--preset", "v5"], "unknown preset `v5`; available: "),
        (&["simulate", "--rate-limit", "many"], "expected REQUESTS/SECONDS, such as 30/600"),
        (&["simulate", "--searches", "0"], "expected an integer of at least 1"),
        (&["--now", "1969-12-31T23:59:59Z", "sql", "-c", "SELECT 1"], "expected an instant from 1971 to 9999"),
    ];
    each(cases, |(arguments, expected)| {
        let output = savedsearch(arguments).env("SAVEDSEARCH_API_KEY", "x").stdin(Stdio::null()).output().unwrap();
        assert!(output.status.code() == Some(2) && err(&output).contains(expected), "{arguments:?}: {}", err(&output));
    });
}

#[test]
fn a_key_that_is_missing_concerns_its_connection_alone() {
    let service = Simulate::start(&["--mentions", "300", "--searches", "2"]);
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("savedsearch")).unwrap();
    let config = folder.path().join("savedsearch/savedsearch.toml");
    let connection =
        |name: &str, key: &str| format!("[connections.{name}]\nbase_url = \"{}\"\n{key}\n", service.base_url);
    let text = [
        "default = \"comms\"\n".to_owned(),
        connection("comms", "api_key_env = \"COMMS_KEY\""),
        connection("research", &format!("api_key_command = \"printf '%s\\n' {OTHER_KEY}\"")),
        connection("sales", "api_key_env = \"NO_SUCH_KEY\""),
        connection("broken", "api_key_command = \"echo secret-part; exit 3\""),
        connection("keyless", ""),
    ];
    fs::write(&config, text.concat()).unwrap();
    // The file is found in the user's configuration folder.
    let sql = |options: &[&str], sql: &str| {
        let mut command = savedsearch(&[&["-q"], options, &["sql", "--format", "csv", "-c", sql]].concat());
        let command = command.env("XDG_CONFIG_HOME", folder.path()).env("COMMS_KEY", KEY).stdin(Stdio::null());
        command.output().unwrap()
    };
    let teams = |of: &str| format!("SELECT DISTINCT team_name FROM {of}saved_searches WHERE team_name IS NOT NULL");
    assert_eq!(out(&sql(&[], &teams(""))), "team_name\nComms\n");
    assert_eq!(out(&sql(&[], &teams("research.v4."))), "team_name\nResearch\n");
    for (name, why) in [
        ("sales", "connection `sales`: environment variable NO_SUCH_KEY is not set; set it to the API key"),
        ("broken", "connection `broken`: api_key_command failed: exit status: 3"),
        ("keyless", "connection `keyless`: expected one of api_key_env, api_key_file and api_key_command"),
    ] {
        let output = sql(&[], &teams(&format!("{name}.v4.")));
        assert_eq!(output.status.code(), Some(1), "{}", err(&output));
        assert!(err(&output).contains(why) && !err(&output).contains("secret-part"), "{}", err(&output));
        let output = sql(&["--connection", name], "SELECT 1 AS one");
        assert!(output.status.code() == Some(2) && err(&output).contains(why), "{}", err(&output));
        // Its tables are there: they can be described and estimated.
        assert_eq!(sql(&[], &format!("EXPLAIN SELECT id FROM {name}.v4.mentions")).status.code(), Some(0));
    }
    // Nothing stands for their keys that would be redacted.
    let output = sql(&[], "SELECT CAST('unavailable or unused' AS INT) AS n");
    assert!(err(&output).contains("unavailable or unused"), "{}", err(&output));
    // An address on the command line counts more than the file.
    let output = sql(&["--base-url", &service.base_url], "SELECT 1 AS one");
    assert!(err(&output).contains("no API key; set SAVEDSEARCH_API_KEY"), "{}", err(&output));
}

#[test]
fn failed_connections_advise_what_to_check() {
    let service = Simulate::start(&["--mentions", "10"]);
    let address = service.base_url.trim_start_matches("http://").trim_end_matches("/v4").to_owned();
    let ask = |base_url: &str, variables: &[(&str, &str)]| {
        let sql = "SELECT id FROM mentions WHERE aid = '183772'";
        let arguments = ["-q", "--insecure", "--base-url", base_url, "sql", "--set", "query_deadline=3", "-c", sql];
        let mut command = savedsearch(&arguments);
        command.env("SAVEDSEARCH_API_KEY", KEY).envs(variables.iter().copied()).stdin(Stdio::null());
        err(&command.output().unwrap())
    };
    for (base_url, variables, expected) in [
        (
            format!("https://{address}/v4"),
            &[][..],
            format!("the server does not use TLS on this port; try http://{address}/v4"),
        ),
        (format!("http://{address}"), &[], format!("the base URL has no path; try http://{address}/v4")),
        (
            "http://127.0.0.1:1/v4".to_owned(),
            &[],
            "check that http://127.0.0.1:1/v4 is the service's address".to_owned(),
        ),
        (
            "http://service.invalid/v4".to_owned(),
            &[("HTTP_PROXY", "http://127.0.0.1:1")],
            "check that http://service.invalid/v4 is the service's address, and the proxy if HTTP_PROXY is set"
                .to_owned(),
        ),
    ] {
        let line = ask(&base_url, variables);
        assert!(line.contains(&expected) && !line.contains("client error"), "{line}");
    }
}

#[test]
fn a_long_wait_is_noted_without_a_terminal() {
    let service = Simulate::start(&["--mentions", "600", "--searches", "1", "--rate-limit", "2/5"]);
    let sql = "SELECT count(DISTINCT id) FROM mentions WHERE aid = '183772' AND duration = '90d'";
    let run = |quiet: &[&str]| {
        let mut command = savedsearch(&[quiet, &["--base-url", &service.base_url, "sql", "-c", sql]].concat());
        command.env("SAVEDSEARCH_API_KEY", KEY).stdin(Stdio::null()).output().unwrap()
    };
    let output = run(&[]);
    assert!(output.status.success() && err(&output).contains(" s for the rate limit\n"), "{}", err(&output));
    let output = run(&["--quiet"]);
    assert!(output.status.success() && err(&output).is_empty(), "{}", err(&output));
}

#[test]
fn estimates_use_what_was_read_before() {
    let read = "SELECT count(DISTINCT title) AS n FROM mentions WHERE duration = '30d'";
    let one = "SELECT max(title) AS n FROM mentions WHERE aid = '183772' AND duration = '30d'";
    let script =
        format!("\\cost {one}\n{read};\n\\cost {one}\n\\cost {read}\nSELECT count(*) AS n FROM system.requests");
    let printed = printed(&["--format", "csv", "-c", &script]);
    let totals: Vec<&str> = printed.lines().filter(|line| line.starts_with("all,")).collect();
    let sent: u64 = printed.lines().last().unwrap().parse().unwrap();
    assert_eq!(totals[0], "all,,at least 1,1");
    let likely = |text: &str| -> u64 {
        text.split("likely about ").nth(1).unwrap().split(['"', ' ']).next().unwrap().parse().unwrap()
    };
    assert!(totals[1].starts_with("all,,\"at least 1, likely about ") && likely(totals[1]) > 1, "{printed}");
    let all = format!("all,,\"at least 13, likely about {sent} (12 saved searches in the last list)\",13");
    assert_eq!(totals[2], all);
}

/// One window shows nothing of eleven others.
#[test]
fn an_estimate_says_how_many_windows_are_known() {
    let read = "SELECT count(DISTINCT title) AS n FROM mentions WHERE duration = '30d'";
    let aids = ["183772", "184889", "187123", "188240", "190474", "191591"].map(|aid| format!("'{aid}'"));
    let count = |aids: &[String]| {
        format!(
            "SELECT max(total_mentions) AS n FROM overview WHERE aid IN ({}) AND duration = '30d';",
            aids.join(", ")
        )
    };
    let script = format!(
        "SELECT count(*) AS n FROM saved_searches;\n\\cost {read}\n{}\n\\cost {read}\n{}\n\\cost {read}\n\\cost {read} AND aid IN ({})",
        count(&aids[..1]),
        count(&aids),
        aids.join(", ")
    );
    let printed = printed(&["--format", "csv", "-c", &script]);
    let totals: Vec<&str> = printed.lines().filter(|line| line.starts_with("all,")).collect();
    assert_eq!(totals[0], "all,,at least 13 (12 saved searches in the last list),13");
    assert_eq!(totals[1], "all,,\"at least 13 (12 saved searches in the last list, totals of 1 of 12 windows)\",13");
    let (half, six) = (totals[2], totals[3]);
    let likely = |text: &str| -> u64 {
        let (_, likely) = text.split_once("likely about ").unwrap_or_else(|| panic!("{text}"));
        likely.split(['"', ' ']).next().unwrap().parse().unwrap()
    };
    assert!(half.starts_with("all,,\"at least 13, likely about "), "{half}");
    assert!(
        half.contains(
            " if the other windows are similar (12 saved searches in the last list, totals of 6 of 12 windows)"
        )
    );
    assert!(six.starts_with("all,,\"at least 6, likely about ") && !six.contains("windows"), "{six}");
    // The list, and twice the requests of one half.
    assert_eq!(likely(half), 1 + 2 * likely(six), "{printed}");
}

/// The simulator counts the requests.
#[test]
fn an_estimate_of_a_new_process_rests_on_what_earlier_ones_read() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let settings = Settings { clock: Clock::fixed(now()), ..Settings::default() };
    let corpus =
        simulator::Corpus::generate(simulator::CorpusSpec { seed: 7, searches: 12, mentions: 9_000, now: now() });
    let starting = simulator::start("127.0.0.1:0".parse().unwrap(), corpus.into(), settings);
    let service = runtime.block_on(starting).unwrap();
    let base_url = service.base_url();
    let run = |key: &str, arguments: &[&str]| {
        let mut command = savedsearch(&[&["--base-url", &base_url, "sql", "--format", "csv"], arguments].concat());
        command.env("SAVEDSEARCH_API_KEY", key).env("XDG_STATE_HOME", folder.path());
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        (out(&output), err(&output))
    };
    let estimate = |key: &str, sql: &str| {
        let before = service.requests();
        let (table, notes) = run(key, &["--estimate", "-c", sql]);
        assert_eq!(service.requests(), before, "an estimate sends nothing");
        (table.lines().find(|line| line.starts_with("all,")).unwrap().to_owned(), notes)
    };
    let sent = |sql: &str| {
        let before = service.requests();
        run(KEY, &["-c", sql]);
        service.requests() - before
    };
    let likely = |total: &str| -> u64 {
        total
            .split("likely about ")
            .nth(1)
            .unwrap_or_else(|| panic!("{total}"))
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap()
    };
    let near = |total: &str, sent: u64| {
        assert!(sent > 10 && likely(total).abs_diff(sent) <= sent / 10 + 1, "{total}: {sent} were sent");
    };
    let read = "SELECT count(DISTINCT title) AS n FROM mentions WHERE duration = '30d'";
    let unknown = "all,,\"at least 1, plus those of each saved search\",1";
    assert_eq!(estimate(KEY, read).0, unknown);
    let first = sent(read);
    let (total, notes) = estimate(KEY, read);
    near(&total, first);
    assert!(!notes.contains("lacks numbers"), "{notes}");
    assert!(total.contains(" saved searches in the list of 20") && total.contains(", totals of 20"), "{total}");
    assert!(!notes.contains("estimates.json"), "{notes}");
    // All rows of the list select the saved searches.
    let joined =
        "SELECT s.name, m.title FROM saved_searches s JOIN mentions m ON m.aid = s.aid WHERE m.duration = '30d'";
    let (total, _) = estimate(KEY, joined);
    assert!(total.contains(" saved searches in the list of 20"), "{total}");
    near(&total, sent(joined));
    let (plan, _) = run(KEY, &["-c", "EXPLAIN SELECT title FROM mentions WHERE duration = '30d'"]);
    assert!(plan.contains("expected=at least ") && plan.contains("likely about "), "{plan}");
    // A count is the size of its window, and so is a row of `overview`.
    for (sql, days) in [("SELECT count(*) AS n FROM mentions", 20), ("SELECT aid, total_mentions FROM overview", 21)] {
        let read = format!("SELECT max(title) AS n FROM mentions WHERE duration = '{days}d'");
        run(KEY, &["-c", &format!("{sql} WHERE duration = '{days}d'")]);
        let (total, notes) = estimate(KEY, &read);
        assert!(!notes.contains("lacks numbers"), "{notes}");
        near(&total, sent(&read));
    }
    // Asking means asking anew.
    let (_, notes) = run(KEY, &["--estimate=ask", "-c", read]);
    assert!(notes.contains("estimating: 1 request for the list of saved searches"), "{notes}");
    // Others have their own; a file that cannot be used is ignored.
    assert_eq!(estimate(OTHER_KEY, read).0, unknown);
    let file = folder.path().join("savedsearch/estimates.json");
    assert!(!fs::read_to_string(&file).unwrap().contains(KEY));
    fs::write(&file, "{").unwrap();
    let (total, notes) = estimate(KEY, read);
    assert_eq!(total, unknown);
    assert!(notes.contains("estimates.json: not a valid file of estimates"), "{notes}");
}

/// The stored days are those of a few days; the total of the window is counted, or limited by that of a longer one.
#[test]
fn an_estimate_beside_a_store_rests_on_the_total_of_the_window() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let now = Clock::system().now();
    let settings = Settings { clock: Clock::system(), ..Settings::default() };
    let corpus = simulator::Corpus::generate(simulator::CorpusSpec { seed: 7, searches: 3, mentions: 20_000, now });
    let starting = simulator::start("127.0.0.1:0".parse().unwrap(), corpus.into(), settings);
    let service = runtime.block_on(starting).unwrap();
    let (base_url, store) = (service.base_url(), folder.path().join("store"));
    let run = |arguments: &[&str]| {
        let service = ["--base-url", &base_url, "--store", store.to_str().unwrap()];
        let mut command = savedsearch(&[&service, arguments].concat());
        command.env("SAVEDSEARCH_API_KEY", KEY).env("XDG_STATE_HOME", folder.path());
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        (out(&output), err(&output))
    };
    let since = |days: i64| (now - chrono::TimeDelta::days(days)).date_naive().to_string();
    let of = |days: i64| {
        let aid = "aid = '183772'";
        format!("SELECT sum(reach) AS n FROM mentions WHERE {aid} AND published_at >= '{}'", since(days))
    };
    let likely = |how: &str, sql: &str| -> (u64, String) {
        let (table, notes) = run(&["sql", "--format", "csv", how, "-c", sql]);
        let (_, likely) = table.split_once("likely about ").unwrap_or_else(|| panic!("{table}"));
        (likely.split([' ', '"']).next().unwrap().parse().unwrap(), notes)
    };
    run(&["sync", "--aid", "183772", "--since", &since(7)]);
    let counting = "note: estimating: 1 request for the numbers of mentions";
    let (all, notes) = likely("--estimate=ask", &of(80));
    assert!(notes.contains(counting), "{notes}");
    // Each day of another window is one of the counted one, and half of its days are stored.
    let (part, _) = likely("--estimate", &of(13));
    assert!(part <= all, "{part} for a part of what takes {all}");
    let (few, _) = run(&["sql", "--format", "csv", "--estimate", "-c", &of(60)]);
    assert!(!few.contains("likely"), "a few stored days are not like all others: {few}");
    let (asked, notes) = likely("--estimate=ask", &of(60));
    assert!(notes.contains(counting), "the total of another window is not that of this one: {notes}");
    let before = service.requests();
    run(&["sql", "-c", &of(60)]);
    let sent = service.requests() - before;
    assert!(sent > 10 && sent.abs_diff(asked) <= 2, "{sent} instead of about {asked}");
    // Days that are stored and settled need no total.
    let settled = format!("{} AND published_at < '{}'", of(50), since(30));
    let (_, notes) = run(&["sql", "--estimate=ask", "-c", &settled]);
    assert!(!notes.contains("estimating"), "{notes}");
}

#[test]
fn estimates_use_the_last_list() {
    let sql = "\\cost SELECT id FROM mentions\nSELECT count(*) AS searches FROM saved_searches WHERE kind <> 'recent';\n\
               \\cost SELECT id FROM mentions\n\\cost SELECT aid, count(*) FROM mentions WHERE aid LIKE '18377%' GROUP BY aid";
    let arguments = ["--now", NOW, "sql", "--format", "csv", "-c", sql];
    let output = savedsearch(&arguments).stdin(Stdio::null()).output().unwrap();
    let (printed, notes) = (out(&output), err(&output));
    let totals: Vec<&str> = printed.lines().filter(|line| line.starts_with("all,")).collect();
    assert_eq!(totals.len(), 3, "{printed}");
    // Counts take one request for each saved search; only the mentions have sizes.
    let lacking: Vec<&str> = notes.lines().filter(|line| line.contains("lacks numbers of mentions")).collect();
    let ends = ["may request them: 1 request for the list, then 1 for each saved search and window", ": 12 requests"];
    assert_eq!(lacking.len(), ends.len(), "{notes}");
    assert!(lacking.iter().zip(ends).all(|(line, end)| line.ends_with(end)), "{notes}");
    assert_eq!(totals[0], "all,,\"at least 1, plus those of each saved search\",1");
    assert_eq!(totals[1], "all,,at least 13 (12 saved searches in the last list),13");
    assert_eq!(totals[2], "all,,2 (1 saved search in the last list),2");
}
