//! What a probe found out, dimension by dimension.

use std::sync::Arc;

use super::asker::Reply;
use super::shape::{Columns, Path, Series};

/// All that is known so far. What nobody could tell is absent, and a profile then says what is usual.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) auth: Option<(String, String)>,
    pub(super) lists: Vec<SavedSearches>,
    pub(super) saved_searches: Columns,
    pub(super) aid: Option<String>,
    pub(super) asked: Option<Asked>,
    /// Whether answers with mentions have the overview as well.
    pub(super) with_overview: bool,
    pub(super) mentions: Option<Path>,
    pub(super) columns: Columns,
    pub(super) offset: Option<Offset>,
    pub(super) page: Option<PageFinding>,
    pub(super) depth: Option<Depth>,
    pub(super) window: WindowFinding,
    /// The zone by whose days the timeline was seen to count.
    pub(super) zone: Option<Zone>,
    /// Whether zones are taken as distances from UTC, though no effect was seen.
    pub(super) distances: bool,
    pub(super) sorts: Vec<Sort>,
    pub(super) filters: Vec<(String, String)>,
    pub(super) several: Option<Several>,
    pub(super) total: Option<Path>,
    /// What says beside it whether it is exact.
    pub(super) relation: Option<Path>,
    pub(super) total_is_exact: bool,
    pub(super) overview: Option<Path>,
    /// The number of all mentions in an answer with the overview.
    pub(super) counted: Option<Path>,
    pub(super) overview_columns: Columns,
    pub(super) timeline: Option<(Path, Series)>,
    pub(super) breakdowns: Vec<Breakdown>,
    /// Whether the overview's total was that of the mentions and the sum of its timeline.
    pub(super) counts: bool,
    pub(super) echoes: Vec<(&'static str, Path)>,
    pub(super) error: Option<ErrorShape>,
    pub(super) throttle: Throttle,
    pub(super) notes: Vec<Note>,
    /// Whether entries of a timeline were further apart than a day.
    pub(super) gaps: bool,
    /// Whether more mentions came than the total tells.
    pub(super) is_capped: bool,
    /// Mentions within the widest period.
    pub(super) widest_count: Option<u64>,
}

/// A line of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Section of the profile.
    pub section: &'static str,
    /// Whether an answer told it; otherwise the profile assumes something.
    pub told: bool,
    /// What was seen, or what to try.
    pub text: String,
}

/// A list of saved searches.
#[derive(Debug)]
pub(super) struct SavedSearches {
    pub(super) at: Path,
    pub(super) label: String,
    pub(super) fan_out: bool,
    /// Where the aid lies in an entry.
    pub(super) aid: Path,
}

/// What asks for mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    Size,
    Flag(String, String),
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offset {
    pub(super) pages: bool,
    pub(super) first: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageFinding {
    pub(super) max: u64,
    pub(super) clamped: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Depth {
    pub(super) rows: u64,
    pub(super) beyond: &'static str,
}

/// The periods that are taken.
#[derive(Debug, Default)]
pub(super) struct WindowFinding {
    /// Units of relative periods.
    pub(super) units: Vec<char>,
    /// Names with their hours.
    pub(super) names: Vec<(String, i64)>,
    pub(super) absolute: Option<Absolute>,
    /// Days of the longest.
    pub(super) longest: Option<u64>,
    /// The widest that was taken, as parameters.
    pub(super) widest: Option<(String, Vec<(String, String)>)>,
}

/// How a period is said by its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Absolute {
    /// The template of the parameter, or parameters of their own.
    pub(super) form: Form,
    /// As the profile says it.
    pub(super) instants: &'static str,
    pub(super) inclusive: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    Template(String),
    Separate(String, String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Zone {
    pub(super) kind: &'static str,
    pub(super) default: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sort {
    pub(super) value: String,
    pub(super) column: String,
    pub(super) descending: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Several {
    Separated(String),
    Repeated,
    One,
}

/// A top list of the overview.
#[derive(Debug, Clone)]
pub(super) struct Breakdown {
    pub(super) at: Path,
    pub(super) label: String,
    /// How its entries are written.
    pub(super) series: Series,
    /// The entry for mentions without a value.
    pub(super) missing: Option<String>,
    /// The names of its entries, and whether these are values of the field.
    pub(super) names: Vec<String>,
    pub(super) is_usable: bool,
}

/// How an error looks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ErrorShape {
    pub(super) text: bool,
    pub(super) code: Option<Path>,
    pub(super) message: Option<Path>,
    pub(super) field: Option<Path>,
    pub(super) inside_success: bool,
    /// Statuses that codes stand for.
    pub(super) statuses: Vec<(String, u16)>,
}

/// An answer with data, and what was asked of it.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// Mentions that were asked for, from the first one on; `None` for an offset.
    pub(super) size: Option<u64>,
    pub(super) reply: Arc<Reply>,
}

/// Headers about limits.
#[derive(Debug, Clone, Default)]
pub(super) struct Throttle {
    pub(super) limit: Option<String>,
    pub(super) remaining: Option<String>,
    pub(super) reset: Option<(String, &'static str)>,
}

impl Findings {
    pub(super) fn saw(&mut self, section: &'static str, text: impl Into<String>) {
        self.notes.push(Note { section, told: true, text: text.into() });
    }

    pub(super) fn could_not_tell(&mut self, section: &'static str, text: impl Into<String>) {
        self.notes.push(Note { section, told: false, text: text.into() });
    }

    /// Whether an answer told all that was noted of a section, and something was.
    pub(super) fn is_told(&self, section: &str) -> bool {
        let mut notes = self.notes.iter().filter(|note| note.section == section).peekable();
        notes.peek().is_some() && notes.all(|note| note.told)
    }
}
