//! Failures as ADBC has them: a status, an SQLSTATE, one line, and the parts of it as details for programs.
//!
//! Advice names options of the driver, also where the library names those of the program.

use std::ffi::c_char;

use adbc_core::error::{Error, Status};
use datafusion_saved_search::embedded::{Code, Failure};
use datafusion_saved_search::error::nearest;

/// Converts a failure.
pub(crate) fn failed(failure: &Failure) -> Error {
    let mut sqlstate = [0; 5];
    for (place, byte) in sqlstate.iter_mut().zip(failure.sqlstate().bytes()) {
        *place = c_char::from_ne_bytes([byte]);
    }
    let details = details(failure).into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes()));
    Error {
        message: line(failure),
        status: match failure.kind() {
            // A folder or file that the user named, not a defect.
            "store" | "output" => Status::IO,
            _ => status(failure.code),
        },
        vendor_code: 0,
        sqlstate,
        details: Some(details.collect()),
    }
}

/// Converts an error of the library.
pub(crate) fn own(error: datafusion_saved_search::Error) -> Error {
    failed(&Failure::own(error))
}

/// An error of a wrong call, with what to do.
pub(crate) fn wrong(message: &str, advice: &str) -> Error {
    of_use(message, advice, Status::InvalidArguments, *b"22023")
}

/// An error of an option that is not among the known ones.
pub(crate) fn unknown_option(name: &str, known: &[&str]) -> Error {
    let same = known.iter().map(|known| short(known)).find(|known| *known == short(name));
    let near = same.or_else(|| nearest(short(name), known.iter().map(|known| short(known))));
    let meant = near.and_then(|near| known.iter().find(|known| short(known) == near));
    let advice = match meant {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("available: {}", known.join(", ")),
    };
    wrong(&format!("unknown option {name}"), &advice)
}

/// The name of an option without the prefix, which would make all names alike.
fn short(name: &str) -> &str {
    name.strip_prefix("savedsearch.").unwrap_or(name)
}

/// An error of something that the driver does not do, with what to do instead.
pub(crate) fn unsupported(message: &str, advice: &str) -> Error {
    of_use(message, advice, Status::NotImplemented, *b"0A000")
}

fn of_use(message: &str, advice: &str, status: Status, sqlstate: [u8; 5]) -> Error {
    let details = [("savedsearch.kind", "usage"), ("savedsearch.advice", advice)];
    Error {
        sqlstate: sqlstate.map(|byte| c_char::from_ne_bytes([byte])),
        details: Some(details.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).into()),
        ..Error::with_message_and_status(format!("{message}; {advice}"), status)
    }
}

/// Options of the program in advice of the library, and what callers of the driver use in their place.
const OPTIONS: [(&str, &str); 5] = [
    ("name a file with --api-key-file", "the option savedsearch.api_key_command"),
    ("--base-url", "the option uri"),
    ("--insecure", "the option savedsearch.insecure"),
    (", ConnectionBuilder::insecure in a program", ""),
    ("; the operator can raise --memory", ""),
];

/// Advice with the options of the driver.
fn in_own_words(advice: &str) -> String {
    OPTIONS.iter().fold(advice.to_owned(), |advice, (program, driver)| advice.replace(program, driver))
}

/// The line of a failure. Its advice is its end.
pub(crate) fn line(failure: &Failure) -> String {
    let advice = failure.advice.as_deref().unwrap_or_default();
    match failure.message.strip_suffix(advice) {
        Some(line) => format!("{line}{}", in_own_words(advice)),
        None => failure.message.clone(),
    }
}

/// Parts of a failure by name: `kind`, and as far as known `advice`, `table`, `aid` and `row` in the service, and `line` and `column`
/// in the statement.
pub(crate) fn details(failure: &Failure) -> Vec<(&'static str, String)> {
    let at = failure.at.as_deref();
    let parts = [
        ("savedsearch.kind", Some(failure.kind().to_owned())),
        ("savedsearch.advice", failure.advice.as_deref().map(in_own_words)),
        ("savedsearch.table", at.and_then(|at| at.table.clone())),
        ("savedsearch.aid", at.and_then(|at| at.aid.clone())),
        ("savedsearch.row", at.and_then(|at| at.row).map(|row| row.to_string())),
        ("savedsearch.line", failure.place.map(|place| place.line.to_string())),
        ("savedsearch.column", failure.place.map(|place| place.column.to_string())),
    ];
    parts.into_iter().filter_map(|(name, part)| Some((name, part?))).collect()
}

fn status(code: Code) -> Status {
    match code {
        Code::Ok => Status::Ok,
        Code::Cancelled => Status::Cancelled,
        Code::InvalidArgument => Status::InvalidArguments,
        Code::DeadlineExceeded => Status::Timeout,
        Code::NotFound => Status::NotFound,
        Code::PermissionDenied => Status::Unauthorized,
        Code::FailedPrecondition => Status::InvalidState,
        Code::Unimplemented => Status::NotImplemented,
        Code::Internal => Status::Internal,
        // The service, or what it grants: trying again later may succeed.
        Code::ResourceExhausted | Code::Aborted | Code::Unavailable => Status::IO,
        Code::Unauthenticated => Status::Unauthenticated,
    }
}

#[cfg(test)]
mod tests {
    use datafusion_saved_search::{Error as Own, ErrorKind};

    use super::*;

    #[test]
    fn advice_names_options_of_the_driver() {
        for (advice, expected) in [
            ("check --base-url and the key", "check the option uri and the key"),
            ("use an https URL, or --insecure", "use an https URL, or the option savedsearch.insecure"),
            (
                "--insecure (insecure = true in a file, ConnectionBuilder::insecure in a program)",
                "the option savedsearch.insecure (insecure = true in a file)",
            ),
            ("aggregate; the operator can raise --memory", "aggregate"),
            ("add a LIMIT", "add a LIMIT"),
        ] {
            // The statement that a message repeats is left as it is.
            let error = failed(&Failure::own(Own::new(ErrorKind::Config, "no --base-url").advice(advice)));
            assert_eq!(error.message, format!("no --base-url; {expected}"));
            let details = error.details.expect("details");
            assert!(details.contains(&("savedsearch.advice".to_owned(), expected.as_bytes().to_vec())), "{expected}");
        }
        assert_eq!(failed(&Failure::new(Code::Internal, "no")).message, "no");
    }

    #[test]
    fn an_unknown_option_is_compared_without_the_prefix() {
        let known = ["uri", "savedsearch.api_key", "savedsearch.profile"];
        let line = |name| unknown_option(name, &known).message;
        assert_eq!(line("savedsearch.apikey"), "unknown option savedsearch.apikey; did you mean savedsearch.api_key?");
        assert_eq!(line("api_key"), "unknown option api_key; did you mean savedsearch.api_key?");
        assert_eq!(line("url"), "unknown option url; did you mean uri?");
        let none = "unknown option savedsearch.colour; available: uri, savedsearch.api_key, savedsearch.profile";
        assert_eq!(line("savedsearch.colour"), none);
    }
}
