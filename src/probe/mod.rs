//! Finds out how a service speaks, and writes a profile of it.
//!
//! ```text
//! dialogue ─▶ judge (period, zone, order, filters, by rounds of candidates) ─▶ paging ─▶ findings ─▶ document, report
//!     │                    effects: what an answer shows
//!     └▶ asker ─▶ service  shape, vocabulary: what it looks like, and what things are called
//! ```
//!
//! A probe only reads, asks a bounded number of times, and believes data, never a status. What it could not tell is said
//! so, and the profile then assumes what is safe: a smaller page, no filter, mentions counted one by one.

mod asker;
mod candidates;
mod dialogue;
mod document;
mod effects;
mod findings;
mod judge;
mod numbers;
mod paging;
mod refusal;
mod roles;
mod rounds;
mod shape;
mod vocabulary;

use std::fmt;
use std::sync::Arc;

use url::Url;

pub use self::asker::Call;
pub use self::findings::Note;

use self::asker::Asker;
use self::dialogue::Dialogue;
use crate::client::{HttpService, Secret};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::Profile;

/// What a probe found.
#[derive(Debug)]
pub struct Probed {
    /// The profile as a document, which [`Profile::parse`] takes.
    pub document: String,
    /// What was seen, and what could not be told, by sections of the profile.
    pub notes: Vec<Note>,
    /// The calls that were made.
    pub calls: Vec<Call>,
}

/// Asks a service at most so many times, and writes down what it is like.
///
/// # Errors
/// Where no form of the key gives a list of saved searches, where no search gives an overview, and where the service cannot
/// be reached or throttles every call.
pub async fn probe(service: Arc<dyn HttpService>, base_url: Url, key: Secret, calls: u64) -> Result<Probed> {
    let mut dialogue = Dialogue::new(Asker::new(service, base_url, key, calls));
    dialogue.run().await?;
    let Dialogue { asker, found, .. } = dialogue;
    let document = document::write(&found, &asker.calls);
    // What is written must be what is read; anything else is our mistake.
    Profile::parse(&document, "the probed profile").map_err(|error| {
        Error::new(ErrorKind::Profile, format!("the answers make no profile: {}", error.message()))
            .advice("report this, with the answers; write a profile by hand meanwhile")
    })?;
    Ok(Probed { document, notes: found.notes, calls: asker.calls })
}

impl fmt::Display for Probed {
    /// The report: what was seen, what could not be told.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} calls were made.", self.calls.len())?;
        for (told, title) in [(true, "Seen"), (false, "Could not tell")] {
            let mut notes = self.notes.iter().filter(|note| note.told == told).peekable();
            if notes.peek().is_some() {
                writeln!(f, "\n{title}:")?;
            }
            for Note { section, text, .. } in notes {
                writeln!(f, "  {section:<24} {text}")?;
            }
        }
        Ok(())
    }
}
