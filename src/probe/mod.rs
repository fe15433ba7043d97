//! Probes an unknown service and writes a profile for it.
//!
//! ```text
//! dialogue ─▶ saved_search ─▶ mentions ─▶ rounds, judge, filters ─▶ offset, places, paging, zone_of_times, window_ends
//!     │                                            ─▶ timeline_days ─▶ observations ─▶ document, report
//!     │                    effects, numbers, roles, overview: coverage of a response, its counts, the meaning of its fields
//!     │                    roles_of_example: parameters of an example by what the service says of a value that it does not have
//!     │                    refusal: hints in error responses; beside: periods in the requests for other parameters
//!     │                    ends_now, last_day: ends of periods and windows; unread_times: times in unknown forms
//!     └▶ asker ─▶ service or recording
//!                          shape, list_members, vocabulary, names, zones: structure of responses, names of parameters, clocks
//! ```
//!
//! The asker gets the responses from a service or from a recording. What is inferred depends on the responses and on the
//! facts that the user knows, and on nothing else: [`infer`] does the same from the requests that a probe recorded.
//!
//! A probe is read-only, sends a limited number of requests, and relies on data, never on a status. It reports everything
//! that it could not determine, and the profile then makes a safe assumption: a smaller page, no filter, mentions counted
//! one by one.

mod abilities;
mod asker;
mod beside;
mod candidates;
mod dialogue;
mod document;
mod effects;
mod ends_now;
mod facts;
mod filters;
mod judge;
mod known;
mod last_day;
mod list_members;
mod list_pages;
mod mentions;
mod names;
mod numbers;
mod observations;
mod offset;
mod openapi;
mod overview;
mod paging;
mod places;
mod recorded;
mod refusal;
mod roles;
mod roles_of_example;
mod rounds;
mod saved_search;
mod scheduler;
mod shape;
mod timeline_days;
mod unread_times;
mod vocabulary;
mod window_ends;
mod zone_of_times;
mod zones;

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use url::Url;

pub use self::abilities::Ability;
pub use self::asker::Call;
pub use self::facts::Facts;
pub use self::observations::Note;
pub use self::recorded::Recording;

use self::asker::{Asker, by_usual_names};
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
    /// Number of requests in the recording from which the profile was inferred; `None` if a service was probed.
    pub recorded: Option<usize>,
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
    find_out(Asker::new(source, base_url, key, calls), known(document, facts)?).await
}

/// Infers a profile from recorded requests, without sending any: the same profile as a probe that gets these responses. Pure.
/// `document`: a profile to resume from.
///
/// # Errors
/// Fails if no request of the recording returned a list of saved searches, and as [`resume`].
pub fn infer(recording: Recording, document: Option<&str>, facts: Facts) -> Result<Probed> {
    let number = recording.len();
    let asker = Asker::recorded(Arc::new(recording));
    let probed = find_out(asker, known(document, facts)?).now_or_never().expect("a recording waits for nothing")?;
    Ok(Probed { recorded: Some(number), ..probed })
}

/// Collects the facts that are known before the first request.
fn known(document: Option<&str>, facts: Facts) -> Result<Known> {
    let mut known = match document {
        Some(document) => Known::of(&Profile::parse(document, "the profile to resume from")?, document),
        None => Known::default(),
    };
    known.facts = facts;
    Ok(known)
}

async fn find_out(mut asker: Asker, mut known: Known) -> Result<Probed> {
    let names = known.facts.names();
    known.facts = known.facts.with_usual_names(&names);
    asker.names = Arc::new(names);
    let mut dialogue = Dialogue::new(asker, known);
    dialogue.run().await?;
    let Dialogue { asker, mut found, known, seen, .. } = dialogue;
    let answered = seen.iter().flat_map(|seen| &seen.reply.asked).map(|(name, _)| (name, 1));
    found.answered = by_usual_names(answered, &asker.names);
    found.sent = by_usual_names(asker.sent.iter().map(|(name, requests)| (name, *requests)), &asker.names);
    known.facts.apply(&mut found);
    found.takes_no_zone |= asker.refuses(candidates::TIMEZONE);
    found.size_is_refused = found.mentions.is_some() && asker.refuses(candidates::SIZE);
    found.ends = asker.ends.iter().map(|(name, _)| name.clone()).collect();
    found.names = asker.names.to_vec();
    for (holds, text) in known.facts.verdicts(&found) {
        found.notes.push(Note { section: "your facts", observed: holds, text });
    }
    found.notes.iter_mut().for_each(|note| note.text = in_own_names(&note.text, &found.names));
    let document = known.keep(&document::write(&found, &asker.calls));
    tell_kept(&known, &mut found);
    // What was found must not be lost for one section that contradicts another.
    let check =
        |text: &str| Profile::parse(text, "the probed profile").map(drop).map_err(|error| error.message().to_owned());
    let (document, replaced) = known::mended(document, &document::write(&Findings::default(), &[]), check);
    for (section, why) in &replaced {
        let text = format!("the findings for [{section}] are contradictory ({why}); the section has default values");
        found.notes.push(Note { section: "profile", observed: false, text });
    }
    let replaced = replaced.into_iter().map(|(section, _)| section);
    let holes = abilities::holes(&found).into_iter().map(str::to_owned).chain(replaced);
    let holes = holes.filter(|section| known.names().all(|name| name != section));
    let (holes, abilities) = (holes.collect(), abilities::abilities(&found));
    Ok(Probed { document, notes: found.notes, calls: asker.calls, aid: found.aid, abilities, holes, recorded: None })
}

/// Notes the sections that a person completed. Nothing in them is left to determine.
fn tell_kept(known: &Known, found: &mut Findings) {
    let is_in = |section: &str, name: &str| {
        section.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    found.notes.retain(|note| note.observed || !known.names().any(|name| is_in(note.section, name)));
    for name in known.names() {
        let text = format!("[{name}] is documented, and kept as it is");
        found.notes.push(Note { section: "your facts", observed: true, text });
    }
}

/// A note in which parameters have the names that the service gives them. What it quotes stays as it is.
fn in_own_names(text: &str, names: &[(String, String)]) -> String {
    let (own, quoted) = text.split_at(text.find(". The service refused").unwrap_or(text.len()));
    names.iter().fold(own.to_owned(), |text, (usual, name)| match usual.as_str() {
        candidates::SIZE | candidates::SORT | candidates::OFFSET => with_word(&text, usual, name),
        // Words of English as well.
        _ => text
            .replace(&format!("`{usual}`"), &format!("`{name}`"))
            .replace(&format!("{usual}="), &format!("{name}="))
            .replace(&format!("the {usual} parameter"), &format!("the parameter {name}")),
    }) + quoted
}

/// A text with one word in the place of another one.
fn with_word(text: &str, word: &str, other: &str) -> String {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let mut written = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, behind) = (&rest[..at], &rest[at + word.len()..]);
        let alone = !before.ends_with(part) && !behind.starts_with(part);
        written.push_str(before);
        written.push_str(if alone { other } else { word });
        rest = behind;
    }
    written + rest
}

/// Characters of a note in the report; the profile has all.
const SHOWN: usize = 500;

impl fmt::Display for Probed {
    /// The report: observations, open points and capabilities.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.recorded {
            Some(all) => writeln!(f, "Read {} of {all} requests from the recording, and sent none.", self.calls.len())?,
            None => writeln!(f, "Sent {} requests.", self.calls.len())?,
        }
        for (observed, title) in [(true, "Observed"), (false, "Not determined")] {
            let mut notes = self.notes.iter().filter(|note| note.observed == observed).peekable();
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
