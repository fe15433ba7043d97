//! Finds out how a service speaks, and writes a profile of it.
//!
//! ```text
//! dialogue ─▶ judge (period, zone, order, filters, by rounds of candidates) ─▶ paging ─▶ observations ─▶ document, report
//!     │                    effects, numbers, roles: what an answer shows, which number counts, which field is what
//!     │                    refusal: what a service says would be taken
//!     └▶ asker ─▶ service  shape, vocabulary: what it looks like, and what things are called
//! ```
//!
//! A probe only reads, asks a bounded number of times, and believes data, never a status. What it could not tell is said
//! so, and the profile then assumes what is safe: a smaller page, no filter, mentions counted one by one.

mod abilities;
mod asker;
mod candidates;
mod dialogue;
mod document;
mod effects;
mod judge;
mod known;
mod numbers;
mod observations;
mod paging;
mod refusal;
mod roles;
mod scheduler;
mod shape;
mod vocabulary;

use std::fmt;
use std::sync::Arc;

use url::Url;

pub use self::abilities::Ability;
pub use self::asker::Call;
pub use self::observations::Note;

use self::asker::Asker;
use self::dialogue::Dialogue;
use self::known::Known;
use crate::client::{AnswerSource, Secret};
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
    /// The saved search that was asked about.
    pub aid: Option<String>,
    /// What works with the profile.
    pub abilities: Vec<Ability>,
    /// Sections that a profile needs and that could not be told.
    pub holes: Vec<&'static str>,
}

/// Asks a service at most so many times, and writes down what it is like.
///
/// # Errors
/// Where no form of the key gives a list of saved searches, where no search gives an overview, and where the service cannot
/// be reached or throttles every call.
pub async fn probe(source: Arc<dyn AnswerSource>, base_url: Url, key: Secret, calls: u64) -> Result<Probed> {
    find_out(Asker::new(source, base_url, key, calls), Known::default()).await
}

/// Goes on from a profile: what rests on a manual there (`evidence = "documented"`) is kept and tried first.
///
/// # Errors
/// As [`probe`], and where the document is no profile.
pub async fn resume(
    source: Arc<dyn AnswerSource>,
    base_url: Url,
    key: Secret,
    calls: u64,
    document: &str,
) -> Result<Probed> {
    let profile = Profile::parse(document, "the profile to go on from")?;
    find_out(Asker::new(source, base_url, key, calls), Known::of(&profile, document)).await
}

async fn find_out(asker: Asker, known: Known) -> Result<Probed> {
    let mut dialogue = Dialogue::new(asker, known);
    dialogue.run().await?;
    let Dialogue { asker, found, known, .. } = dialogue;
    let document = known.keep(&document::write(&found, &asker.calls));
    // What is written must be what is read; anything else is our mistake.
    Profile::parse(&document, "the probed profile").map_err(|error| {
        Error::new(ErrorKind::Profile, format!("the answers make no profile: {}", error.message()))
            .advice("report this, with the answers; write a profile by hand meanwhile")
    })?;
    let holes = abilities::holes(&found).into_iter().filter(|section| known.names().all(|name| name != *section));
    let (holes, abilities) = (holes.collect(), abilities::abilities(&found));
    Ok(Probed { document, notes: found.notes, calls: asker.calls, aid: found.aid, abilities, holes })
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
        writeln!(f, "\nWhat works:")?;
        self.abilities.iter().try_for_each(|ability| writeln!(f, "  {ability}"))
    }
}
