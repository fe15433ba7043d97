//! Tables of cases in tests: every case is checked, and all that failed are reported. The integration tests include this file.

use std::fmt::{self, Debug, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use futures::FutureExt;

/// Longest name of a case in a report, in bytes.
const LONGEST: usize = 120;

/// Checks each case of a table, and fails once, with all cases that failed.
#[track_caller]
pub(crate) fn each<C: Debug>(cases: impl IntoIterator<Item = C>, mut check: impl FnMut(C)) {
    let mut results = Vec::new();
    for case in cases {
        let name = name(&case);
        results.push((name, catch_unwind(AssertUnwindSafe(|| check(case)))));
    }
    report(results);
}

/// As [`each`], for checks that wait.
pub(crate) async fn each_async<C: Debug>(cases: impl IntoIterator<Item = C>, mut check: impl AsyncFnMut(C)) {
    let mut results = Vec::new();
    for case in cases {
        let name = name(&case);
        results.push((name, AssertUnwindSafe(Box::pin(check(case))).catch_unwind().await));
    }
    report(results);
}

/// The beginning of a case as text.
fn name(case: &impl Debug) -> String {
    let mut name = Name(String::new());
    // The error that ends a long name.
    let _ = write!(name, "{case:?}");
    name.0
}

struct Name(String);

impl Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if self.0.len() >= LONGEST {
                self.0.push('…');
                return Err(fmt::Error);
            }
            self.0.push(character);
        }
        Ok(())
    }
}

#[track_caller]
fn report(results: Vec<(String, thread::Result<()>)>) {
    let count = results.len();
    let mut failed = Vec::new();
    for (number, (name, result)) in (1..).zip(results) {
        let Err(panic) = result else { continue };
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked");
        failed.push(format!("case {number}, {name}: {text}"));
    }
    assert!(failed.is_empty(), "{} of {count} cases failed:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn all_cases_that_failed_are_reported() {
    let checked = catch_unwind(|| each([1, 2, 3], |number| assert!(number == 2, "not two")));
    let panic = checked.expect_err("two cases fail");
    let text = panic.downcast_ref::<String>().map(String::as_str);
    assert_eq!(text, Some("2 of 3 cases failed:\ncase 1, 1: not two\ncase 3, 3: not two"));
    assert_eq!(name(&"x".repeat(200)).chars().count(), LONGEST + 1);
}
