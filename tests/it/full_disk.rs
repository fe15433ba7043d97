//! A store on a disk without space: queries do without it, with one note, and commands on the store name the disk. One on a disk
//! that is read-only answers queries.
#![cfg(target_os = "linux")]

use std::process::{Command, Output};

use tempfile::TempDir;

use crate::binary::savedsearch;

/// Runs a script of bash in which `$DISK` is a disk of this size, and `demo` the program on demo data; `None` if the machine does not
/// allow that.
fn on_disk(size: &str, script: &str) -> Option<Output> {
    let disk = TempDir::new().unwrap();
    let program = savedsearch(&[]);
    let script = format!(
        "demo() {{ \"$PROGRAM\" --now 2026-07-01T12:00:00Z \"$@\"; }}\n\
         mount -t tmpfs -o size={size} tmpfs \"$DISK\" || exit 77\n{script}"
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "bash", "-c", &script]);
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("DISK", disk.path()).env("PROGRAM", program.get_program());
    let output = command.output().ok()?;
    let allowed = output.status.code() != Some(77) && !String::from_utf8_lossy(&output.stderr).contains("unshare:");
    if !allowed {
        println!("skipped: this machine has no namespaces for tests");
    }
    allowed.then_some(output)
}

const QUERY: &str =
    "SELECT count(*), sum(reach) FROM mentions WHERE published_at >= '2026-06-01' AND published_at < '2026-06-05'";

/// Verifies that a query printed the rows of one without a store, and one note; then that a command named the disk.
fn check(output: &Output) {
    let (rows, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let expected = savedsearch(&["--now", "2026-07-01T12:00:00Z", "sql", "-c", QUERY]).output().unwrap();
    assert_eq!(rows, String::from_utf8_lossy(&expected.stdout), "{errors}");
    let (notes, refused) = errors.split_once("-- sync").unwrap();
    let told: Vec<&str> = notes.lines().filter(|line| line.contains("no space left on the disk")).collect();
    let [note] = told.as_slice() else { panic!("{errors}") };
    assert!(note.starts_with("note: ") && note.contains("so the result is not stored; free space"), "{note}");
    assert!(refused.contains("no space left on the disk; free space"), "{refused}");
    for words in ["External", "read-only", "SET savedsearch", "disk I/O error"] {
        assert!(!refused.contains(words), "{words}: {refused}");
    }
    assert!(!notes.contains("External"), "{notes}");
}

/// Runs the query, and a synchronization that fails.
const TRY: &str = "demo --store \"$DISK/store\" sql -c \"$QUERY\"\n\
                   echo '-- sync' >&2; demo --store \"$DISK/store\" sync --since 2026-06-01 && exit 78; exit 0";

fn of_query(script: &str) -> String {
    format!("QUERY=\"{QUERY}\"\n{script}\n{TRY}")
}

#[test]
fn a_disk_without_space_for_a_store_costs_a_query_no_rows() {
    let Some(output) = on_disk("16k", &of_query("")) else { return };
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    check(&output);
}

#[test]
fn a_disk_that_is_full_since_the_store_was_filled_costs_a_query_no_rows() {
    let filled = "demo --store \"$DISK/store\" sync --aid 184889 --since 2026-06-28 > /dev/null 2>&1 || exit 79\n\
                  head -c 9M /dev/zero > \"$DISK/other\" 2> /dev/null";
    let Some(output) = on_disk("8m", &of_query(filled)) else { return };
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    check(&output);
}

/// There is space for the catalog, which is open, but not for all files of mentions.
#[test]
fn a_disk_that_fills_up_during_a_query_costs_it_no_rows() {
    let nearly = "demo --store \"$DISK/store\" sync --aid 184889 --since 2026-06-28 > /dev/null 2>&1 || exit 79\n\
                  head -c 9M /dev/zero > \"$DISK/other\" 2> /dev/null\n\
                  truncate -s -72K \"$DISK/other\"";
    let Some(output) = on_disk("8m", &of_query(nearly)) else { return };
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    check(&output);
}

#[test]
fn what_cannot_be_stored_on_a_read_only_disk_is_not_requested() {
    let script = "QUERY=\"SELECT count(*), sum(reach) FROM mentions WHERE aid = '183772' \
                  AND published_at >= '2026-05-01' AND published_at < '2026-06-05T07:00:00Z'\"\n\
                  demo --store \"$DISK/store\" sync --aid 184889 --since 2026-06-28 > /dev/null 2>&1 || exit 79\n\
                  mount -o remount,ro \"$DISK\" || exit 77\n\
                  demo sql --format csv -c \"$QUERY\" -c 'SELECT count(*) FROM system.requests'\n\
                  export SAVEDSEARCH_STORE=\"$DISK/store\"\n\
                  demo sql --format csv -c \"$QUERY\" -c 'SELECT count(*) FROM system.requests'\n\
                  sent=$(mktemp -d)\n\
                  demo --record \"$sent/sync\" sync --aid 183772 --since 2026-05-01\n\
                  echo \"status $?\"; ls \"$sent/sync\"; rm -r \"$sent\"";
    let Some(output) = on_disk("8m", script) else { return };
    let (rows, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let (both, sync) = rows.split_once("status ").unwrap_or_else(|| panic!("{output:?}"));
    let (without, with) = both.split_at(both.len() / 2);
    assert_eq!(with, without, "{errors}");
    assert_eq!(sync, "1\nrecording.json\n", "{errors}");
    assert!(errors.contains("error: the store is read-only; make its folder writable"), "{errors}");
}

#[test]
fn a_check_of_a_server_warns_of_a_disk_without_space() {
    let check = "demo --store \"$DISK/store\" serve --check --listen 127.0.0.1:0";
    let Some(output) = on_disk("16k", check) else { return };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.contains("warning: nothing can be stored: "), "{errors}");
}
