//! Probes an unknown service and writes a profile for it.
//!
//! ```text
//! dialogue ─▶ judge (window, zone, sort order, filters, in rounds) ─▶ paging ─▶ observations ─▶ document, report
//!     │                    effects, numbers, roles: coverage of a response, its total, the meaning of its fields
//!     │                    refusal: hints in error responses
//!     └▶ asker ─▶ service  shape, vocabulary: structure of responses, usual names
//! ```
//!
//! A probe is read-only, sends a limited number of requests, and relies on data, never on a status. It reports everything
//! that it could not determine, and the profile then makes a safe assumption: a smaller page, no filter, mentions counted
//! one by one.

mod abilities;
mod asker;
mod candidates;
mod dialogue;
mod document;
mod effects;
mod facts;
mod judge;
mod known;
mod list_pages;
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
pub use self::facts::Facts;
pub use self::observations::Note;

use self::asker::Asker;
use self::dialogue::Dialogue;
use self::known::Known;
use self::observations::Findings;
use crate::client::{AnswerSource, Secret};
use crate::error::Result;
use crate::profile::Profile;

/// The result of a probe.
#[derive(Debug)]
pub struct Probed {
    /// The profile as TOML, valid for [`Profile::parse`].
    pub document: String,
    /// Observations and open points, each with the profile section that it belongs to.
    pub notes: Vec<Note>,
    /// The requests sent, retries included.
    pub calls: Vec<Call>,
    /// The saved search that was probed.
    pub aid: Option<String>,
    /// Capabilities of the service when used with the profile.
    pub abilities: Vec<Ability>,
    /// Required profile sections that could not be determined.
    pub holes: Vec<String>,
}

/// Probes a service with at most `calls` requests and writes a profile for it.
///
/// # Errors
/// Fails if no form of the key returns a list of saved searches, and if the service cannot be reached or throttles every
/// attempt. Anything else that it cannot determine is a note.
pub async fn probe(source: Arc<dyn AnswerSource>, base_url: Url, key: Secret, calls: u64) -> Result<Probed> {
    find_out(Asker::new(source, base_url, key, calls), Known::default()).await
}

/// Resumes from a profile: its documented sections (`evidence = "documented"`) are kept, and their values are tried
/// first.
///
/// # Errors
/// As [`probe`], and if the document is not a valid profile.
pub async fn resume(
    source: Arc<dyn AnswerSource>,
    base_url: Url,
    key: Secret,
    calls: u64,
    document: &str,
) -> Result<Probed> {
    let profile = Profile::parse(document, "the profile to resume from")?;
    find_out(Asker::new(source, base_url, key, calls), Known::of(&profile, document)).await
}

/// Probes with facts that the user knows: their values are tried first, and the notes state which of them the responses
/// confirmed. `document`: a profile to resume from.
///
/// # Errors
/// As [`resume`].
pub async fn probe_knowing(
    source: Arc<dyn AnswerSource>,
    base_url: Url,
    key: Secret,
    calls: u64,
    document: Option<&str>,
    facts: Facts,
) -> Result<Probed> {
    let mut known = match document {
        Some(document) => Known::of(&Profile::parse(document, "the profile to resume from")?, document),
        None => Known::default(),
    };
    known.facts = facts;
    find_out(Asker::new(source, base_url, key, calls), known).await
}

async fn find_out(asker: Asker, known: Known) -> Result<Probed> {
    let mut dialogue = Dialogue::new(asker, known);
    dialogue.run().await?;
    let Dialogue { asker, mut found, known, .. } = dialogue;
    for (holds, text) in known.facts.verdicts(&found) {
        found.notes.push(Note { section: "your facts", told: holds, text });
    }
    let document = known.keep(&document::write(&found, &asker.calls));
    // What was found must not be lost for one section that contradicts another.
    let check =
        |text: &str| Profile::parse(text, "the probed profile").map(drop).map_err(|error| error.message().to_owned());
    let (document, replaced) = known::mended(document, &document::write(&Findings::default(), &[]), check);
    for section in &replaced {
        let text = format!("what was found for [{section}] contradicts itself; the section has usual values");
        found.notes.push(Note { section: "profile", told: false, text });
    }
    let holes = abilities::holes(&found).into_iter().map(str::to_owned).chain(replaced);
    let holes = holes.filter(|section| known.names().all(|name| name != section));
    let (holes, abilities) = (holes.collect(), abilities::abilities(&found));
    Ok(Probed { document, notes: found.notes, calls: asker.calls, aid: found.aid, abilities, holes })
}

/// Characters of a note in the report; the profile has all.
const SHOWN: usize = 500;

impl fmt::Display for Probed {
    /// The report: observations, open points and capabilities.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Sent {} requests.", self.calls.len())?;
        for (told, title) in [(true, "Observed"), (false, "Not determined")] {
            let mut notes = self.notes.iter().filter(|note| note.told == told).peekable();
            if notes.peek().is_some() {
                writeln!(f, "\n{title}:")?;
            }
            for Note { section, text, .. } in notes {
                let shown: String = text.chars().take(SHOWN).collect();
                let rest = if shown.len() < text.len() { "…" } else { "" };
                writeln!(f, "  {section:<24} {shown}{rest}")?;
            }
        }
        writeln!(f, "\nCapabilities:")?;
        self.abilities.iter().try_for_each(|ability| writeln!(f, "  {ability}"))
    }
}
