//! Failures as ADBC has them: a status, an SQLSTATE, one line, and the parts of it as details for programs.
//!
//! Advice names options of the driver instead of those of the program. The detail `savedsearch.phrase` has the line and its advice in
//! pieces, as JSON, for programs with other names, such as the arguments of the Python package.

use std::ffi::c_char;

use adbc_core::error::{Error, Status};
use datafusion_saved_search::embedded::{Code, Failure};
use datafusion_saved_search::error::{Phrase, Setting, Term, nearest};

/// Converts a failure.
pub(crate) fn failed(failure: &Failure) -> Error {
    converted(failure, in_session)
}

fn converted(failure: &Failure, by: fn(&Term) -> String) -> Error {
    let mut sqlstate = [0; 5];
    for (place, byte) in sqlstate.iter_mut().zip(failure.sqlstate().bytes()) {
        *place = c_char::from_ne_bytes([byte]);
    }
    let details = details_by(failure, by).into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes()));
    Error {
        message: failure.worded(by),
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

/// Converts an error of opening a database.
pub(crate) fn own(error: datafusion_saved_search::Error) -> Error {
    converted(&Failure::own(error), at_open)
}

/// An option by its full name.
pub(crate) fn named_option(name: &str) -> Phrase {
    Term::Option(name.to_owned()).into()
}

/// An error of a wrong call, with what to do.
pub(crate) fn wrong(message: impl Into<Phrase>, advice: impl Into<Phrase>) -> Error {
    of_use(message.into(), advice.into(), Status::InvalidArguments, *b"22023")
}

/// An error of an option that is not among the known ones.
pub(crate) fn unknown_option(name: &str, known: &[&str]) -> Error {
    let same = known.iter().map(|known| short(known)).find(|known| *known == short(name));
    let near = same.or_else(|| nearest(short(name), known.iter().map(|known| short(known))));
    let meant = near.and_then(|near| known.iter().find(|known| short(known) == near));
    let advice = match (meant, known) {
        (Some(meant), _) => Phrase::from("did you mean ") + named_option(meant) + "?",
        (None, [first, others @ ..]) => {
            let available = Phrase::from("available: ") + named_option(first);
            others.iter().fold(available, |all, other| all + ", " + named_option(other))
        }
        (None, []) => "leave it out".into(),
    };
    wrong(Phrase::from("unknown option ") + named_option(name), advice)
}

/// The name of an option without the prefix, which would make all names alike.
fn short(name: &str) -> &str {
    name.strip_prefix("savedsearch.").unwrap_or(name)
}

/// An error of something that the driver does not do, with what to do instead.
pub(crate) fn unsupported(message: impl Into<Phrase>, advice: impl Into<Phrase>) -> Error {
    of_use(message.into(), advice.into(), Status::NotImplemented, *b"0A000")
}

fn of_use(message: Phrase, advice: Phrase, status: Status, sqlstate: [u8; 5]) -> Error {
    let line = message.advised(advice.clone());
    let details = [
        ("savedsearch.kind", Some("usage".to_owned())),
        ("savedsearch.advice", Some(advice.worded(in_session))),
        ("savedsearch.phrase", phrase(&line, Some(&advice), in_session)),
    ];
    let details = details.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.into_bytes())));
    Error {
        sqlstate: sqlstate.map(|byte| c_char::from_ne_bytes([byte])),
        details: Some(details.collect()),
        ..Error::with_message_and_status(line.worded(in_session), status)
    }
}

/// A term in the words of an open connection, which can run SET.
fn in_session(term: &Term) -> String {
    match term {
        Term::BaseUrl => "the option uri".to_owned(),
        Term::KeyFile => "the option savedsearch.api_key_command".to_owned(),
        Term::Insecure => "the option savedsearch.insecure".to_owned(),
        Term::MemoryLimit => String::new(),
        // There are no functions for it in a session.
        Term::Tool(tool) => tool.in_program().to_owned(),
        Term::Setting(_) | Term::Change(_) | Term::Statements | Term::Option(_) | Term::AsQuery => term.to_string(),
    }
}

/// A term in the words of a database that is being opened: settings are options.
fn at_open(term: &Term) -> String {
    match term {
        // As an option, `store` is a folder.
        Term::Change(change) if change.setting == Setting::Store => {
            format!("{}leave the option savedsearch.store out to keep nothing", change.lead)
        }
        Term::Change(change) => change.worded(&format!("the option {}", change.assignment())),
        other => in_session(other),
    }
}

/// A line and its advice in pieces, as JSON. `None` if no piece is a term.
fn phrase(line: &Phrase, advice: Option<&Phrase>, by: fn(&Term) -> String) -> Option<String> {
    let advice = advice.map_or_else(|| "null".to_owned(), |advice| advice.json(by));
    (!line.is_plain()).then(|| format!("{{\"line\":{},\"advice\":{advice}}}", line.json(by)))
}

/// The line of a failure of a statement. Its advice is its end.
pub(crate) fn line(failure: &Failure) -> String {
    failure.worded(in_session)
}

/// Parts of the failure of a statement by name: `kind`, and as far as known `advice`, `table`, `aid` and `row` in the service, `line`
/// and `column` in the statement, and the `phrase` of the line.
pub(crate) fn details(failure: &Failure) -> Vec<(&'static str, String)> {
    details_by(failure, in_session)
}

fn details_by(failure: &Failure, by: fn(&Term) -> String) -> Vec<(&'static str, String)> {
    let at = failure.at.as_deref();
    let parts = [
        ("savedsearch.kind", Some(failure.kind().to_owned())),
        ("savedsearch.advice", failure.advice_worded(by)),
        ("savedsearch.phrase", phrase(&failure.line, failure.advice.as_deref(), by)),
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
    use datafusion_saved_search::error::Tool;
    use datafusion_saved_search::{Error as Own, ErrorKind};

    use super::*;

    #[test]
    fn advice_names_options_of_the_driver() {
        let check = Phrase::from("check ") + Term::BaseUrl + " and the key";
        let insecure = Phrase::from("use an https URL, or ") + Term::Insecure + " (insecure = true in a file)";
        for (advice, expected) in [
            (check, "check the option uri and the key"),
            (insecure, "use an https URL, or the option savedsearch.insecure (insecure = true in a file)"),
            (Phrase::from("set a key or ") + Term::KeyFile, "set a key or the option savedsearch.api_key_command"),
            (Phrase::from("aggregate") + Term::MemoryLimit, "aggregate"),
            (Phrase::from(Tool::VerifyStore) + " lists such files", "`savedsearch store verify` lists such files"),
            (Setting::MaxRequests.to("40").after("raise it: ").into(), "raise it: SET savedsearch.max_requests = 40"),
            ("add a LIMIT".into(), "add a LIMIT"),
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
    fn advice_about_settings_names_options_until_a_database_is_open() {
        for setting in Setting::ALL {
            let advice = Phrase::from("wait") + setting.to("x").after(", or ").then(" helps");
            let error = own(Own::new(ErrorKind::Store, "no").advice(advice));
            assert!(error.message.contains(&format!("the option {setting}")), "{}", error.message);
            assert!(!error.message.contains("SET "), "{}", error.message);
        }
        let off = Setting::Store.to("off").then(" bypasses the store");
        let error = own(Own::new(ErrorKind::Store, "no").advice(off));
        assert_eq!(error.message, "no; leave the option savedsearch.store out to keep nothing");
        let phrase = r#"{"line":["no",{"lead":"; ","name":"store","term":"change","words":"; leave"#;
        let details = error.details.expect("details");
        let (_, found) = details.iter().find(|(name, _)| name == "savedsearch.phrase").expect("a phrase");
        assert!(found.starts_with(phrase.as_bytes()), "{}", String::from_utf8_lossy(found));
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
