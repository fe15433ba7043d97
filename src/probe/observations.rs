//! Findings of a probe, dimension by dimension.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::asker::Reply;
use super::shape::{Columns, ListLayout, Path, Series};
use crate::profile::Zone as Clock;

/// All findings so far. Undetermined ones are absent, and the profile then has a usual value.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) auth: Option<(String, String)>,
    pub(super) lists: Vec<SavedSearches>,
    pub(super) saved_searches: Columns,
    /// Their fields with times that are written without a zone.
    pub(super) local_in_list: Vec<Path>,
    /// The profile's entry for the pages of the list.
    pub(super) list_pages: Option<String>,
    pub(super) aid: Option<String>,
    /// Set if a saved search that does not exist has the same numbers.
    pub(super) aid_ignored: bool,
    pub(super) asked: Option<MentionsParameter>,
    /// Set if responses with mentions have the overview as well.
    pub(super) with_overview: bool,
    pub(super) mentions: Option<Path>,
    /// Names of the fields of mentions that are arrays, in their order.
    pub(super) fields: Option<Vec<String>>,
    pub(super) columns: Columns,
    /// The field with the time that windows refer to, if it is not that of the publication.
    pub(super) window_time: Option<Path>,
    /// The zone of times that are written without one, if they show it and it is not UTC.
    pub(super) time_zone: Option<Clock>,
    /// Other zones that they may be of, in which all times that came are the same instants.
    pub(super) other_time_zones: Vec<Clock>,
    /// Fields with times of mentions that are written without a zone, if their zone is not known.
    pub(super) unknown_times: Vec<Path>,
    /// Set once the zone of such times was looked for: of others it is `time_zone`, or UTC.
    pub(super) has_looked_for_zone: bool,
    /// Fields with times of mentions in a form that is not understood.
    pub(super) unread_times: Vec<Path>,
    /// The zone that the list of saved searches or a person names, and true for a person.
    pub(super) named_zone: Option<Clock>,
    pub(super) zone_is_stated: bool,
    /// Set if the field of the time says in its name that it is of UTC: `publishedUtc`.
    pub(super) utc_is_named: bool,
    /// Words for NULL, with the fields that have them.
    pub(super) null_words: Vec<(Path, String)>,
    /// Two fields that identify a mention together, if none does alone.
    pub(super) id_of_two: Option<[Path; 2]>,
    /// Usual names of the parameters that were sent, each with the number of requests.
    pub(super) sent: BTreeMap<String, usize>,
    /// The same, each with the number of responses that have data.
    pub(super) answered: BTreeMap<String, usize>,
    /// Names of parameters that differ from the usual ones, by the usual names.
    pub(super) names: Vec<(String, String)>,
    /// Set if names of parameters have brackets, such as `page[size]`: filters are then `filter[language]`.
    pub(super) has_brackets: bool,
    /// Header with the total of a search, if no body has it.
    pub(super) total_header: Option<String>,
    /// Names of the ends of a window that each search needs.
    pub(super) ends: Vec<String>,
    /// Parameters that each search needs.
    pub(super) with: Vec<(String, String)>,
    /// Page sizes that the service accepts, if it named them, and the least one.
    pub(super) sizes: Vec<u64>,
    pub(super) least: Option<u64>,
    /// Path of a timeline of running sums, which counts no days.
    pub(super) running: Option<Path>,
    pub(super) offset: Option<Offset>,
    /// The reason why no page but the first one is reached by an offset, if that was seen.
    pub(super) no_offset: Option<NoOffset>,
    /// Mentions of a page, if the page size has no effect.
    pub(super) idle_size: Option<u64>,
    /// Set if the service refuses the parameter of the page size, which each page of mentions is requested with.
    pub(super) size_is_refused: bool,
    /// Parameter of the cursor of the next page, and its place in the page before, if pages are found by cursors.
    pub(super) cursor: Option<(String, CursorPlace)>,
    /// Places of links to a next page that are there on the last page as well.
    pub(super) idle_links: Vec<Path>,
    pub(super) page: Option<PageFinding>,
    pub(super) depth: Option<Depth>,
    pub(super) window: WindowFinding,
    /// The zone whose days windows have, or the timeline was seen to count.
    pub(super) zone: Option<Zone>,
    /// The zone whose days the timeline was seen to count, whatever is sent.
    pub(super) timeline_zone: Option<Clock>,
    /// Set if the timeline was seen to count the days of `zone`.
    pub(super) counts_days: bool,
    /// Set if UTC offsets are accepted as zones, though no effect was seen.
    pub(super) distances: bool,
    /// UTC as the value of the zone parameter, if a timeline of dates was seen to have other days for another zone.
    pub(super) utc_days: Option<String>,
    /// A zone that was requested, with the same days of the timeline as without it.
    pub(super) idle_zone: Option<String>,
    /// Set if the service refuses the parameter of the zone.
    pub(super) takes_no_zone: bool,
    /// A zone that was accepted without a visible effect.
    pub(super) zone_taken: Option<String>,
    /// The kind of zones that were accepted, and UTC as one of them.
    pub(super) zone_form: Option<(&'static str, &'static str)>,
    /// Set if the timeline's days are named by dates, and their zone is not known.
    pub(super) zone_is_unknown: bool,
    pub(super) sorts: Vec<Sort>,
    pub(super) filters: Vec<(String, String)>,
    pub(super) several: Option<Several>,
    pub(super) total: Option<Path>,
    /// Path of the value that marks the total as exact or not.
    pub(super) relation: Option<Path>,
    /// The same of the overview's total.
    pub(super) counted_relation: Option<Path>,
    pub(super) total_is_exact: bool,
    pub(super) overview: Option<Path>,
    /// Path of the total in responses with the overview.
    pub(super) counted: Option<Path>,
    pub(super) overview_columns: Columns,
    pub(super) timeline: Option<(Path, Series)>,
    /// Set if its days are dates without a time.
    pub(super) has_plain_days: bool,
    pub(super) breakdowns: Vec<Breakdown>,
    /// Set if the overview's total equals the total of the mentions and the sum of its timeline.
    pub(super) counts: bool,
    pub(super) echoes: Vec<(&'static str, Path)>,
    pub(super) error: Option<ErrorShape>,
    pub(super) throttle: Throttle,
    pub(super) notes: Vec<Note>,
    /// Set if entries of a timeline were more than a day apart.
    pub(super) gaps: bool,
    /// Set if more mentions were received than the total states.
    pub(super) is_capped: bool,
    /// Mentions within the widest window.
    pub(super) widest_count: Option<u64>,
}

/// A line of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Section of the profile.
    pub section: &'static str,
    /// Set if it was observed in responses; otherwise the profile makes an assumption.
    pub observed: bool,
    /// The observation, or the assumption and what to do.
    pub text: String,
}

/// A list of saved searches.
#[derive(Debug)]
pub(super) struct SavedSearches {
    pub(super) at: Path,
    pub(super) label: String,
    pub(super) fan_out: bool,
    /// Path of the aid in an entry.
    pub(super) aid: Path,
    pub(super) layout: ListLayout,
}

/// Parameter that requests mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MentionsParameter {
    Size,
    Flag(String, String),
    Always,
}

/// Place of the cursor of the next page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CursorPlace {
    /// In the response.
    Response(Path),
    /// In the last record of the response.
    LastRecord(Path),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Offset {
    pub(super) pages: bool,
    pub(super) first: u64,
    /// Set if rows are rounded down to a multiple of the page size.
    pub(super) aligned: bool,
}

/// The reason why no page but the first one is reached by an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoOffset {
    /// The service refuses the parameter.
    Refused,
    /// The first mentions come whatever its value, and there are more.
    Ignored,
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

/// Accepted time windows.
#[derive(Debug, Default)]
pub(super) struct WindowFinding {
    /// Units of relative windows, each with its notation.
    pub(super) units: Vec<(char, String)>,
    /// Names of windows, with their hours.
    pub(super) names: Vec<(String, i64)>,
    pub(super) absolute: Option<Absolute>,
    /// Parameters that had an effect as the ends of a window, whether such windows are used or not.
    pub(super) working: Vec<String>,
    /// Parameters that are sent with the ends of an absolute window.
    pub(super) with: Vec<(String, String)>,
    /// The unit to which the bounds of an absolute window are rounded down, if they are.
    pub(super) granularity: Option<&'static str>,
    /// Length of the longest window, in days.
    pub(super) longest: Option<u64>,
    /// Set if a relative window was accepted, and a value without a meaning refused, although no window had an effect.
    pub(super) is_checked: bool,
    /// The widest window seen to work: label and parameters.
    pub(super) widest: Option<(String, Vec<(String, String)>)>,
}

impl WindowFinding {
    /// True if relative windows can be sent as instants, because the service takes no others.
    pub(super) fn is_of_instants(&self) -> bool {
        self.widest.is_none() && self.names.is_empty() && self.absolute.is_some()
    }

    /// True if they have to begin with whole days.
    pub(super) fn is_of_dates(&self) -> bool {
        self.is_of_instants() && self.absolute.as_ref().is_some_and(|absolute| absolute.instants == "date")
    }

    /// True if nothing shows a way to request a window.
    pub(super) fn is_unknown(&self) -> bool {
        self.widest.is_none() && self.names.is_empty() && self.absolute.is_none() && !self.is_checked
    }
}

/// Form of an absolute window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Absolute {
    /// Template for `duration`, or two parameters of their own.
    pub(super) form: Form,
    /// Instant format, by its name in the profile.
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
    /// Layout of its entries.
    pub(super) series: Series,
    /// The entry for mentions without a value.
    pub(super) missing: Option<String>,
    /// Names of its entries.
    pub(super) names: Vec<String>,
    /// Set if these names are all values of the field.
    pub(super) is_usable: bool,
    /// Set if another list is of the same field.
    pub(super) is_doubtful: bool,
}

/// Format of error responses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ErrorShape {
    pub(super) text: bool,
    pub(super) code: Option<Path>,
    pub(super) message: Option<Path>,
    pub(super) field: Option<Path>,
    pub(super) inside_success: bool,
    /// Error codes with the HTTP statuses that they mean.
    pub(super) statuses: Vec<(String, u16)>,
}

/// A response with data, and the number of mentions requested.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// Mentions requested from the first one on; `None` if there was an offset or no size.
    pub(super) size: Option<u64>,
    pub(super) reply: Arc<Reply>,
}

/// Rate limits: names of headers, and statuses with the codes of errors.
#[derive(Debug, Clone, Default)]
pub(super) struct Throttle {
    pub(super) limit: Option<String>,
    pub(super) remaining: Option<String>,
    pub(super) reset: Option<(String, &'static str)>,
    /// Other statuses than 429, with the code if an error has one.
    pub(super) rules: Vec<(u16, Option<String>)>,
}

impl Findings {
    /// The name of a parameter in requests, by its usual name.
    pub(super) fn parameter<'n>(&'n self, usual: &'n str) -> &'n str {
        super::asker::own_name(usual, &self.names)
    }

    /// A zone as it is sent to a service that uses it whatever is sent: UTC as the service takes it.
    pub(super) fn sent_as(&self, zone: Clock) -> String {
        let utc = self.zone_form.filter(|_| zone == Clock::UTC).map(|(_, utc)| utc.to_owned());
        utc.unwrap_or_else(|| zone.to_string())
    }

    /// Of zones that fit all that came, the one to rely on for times of mentions: as [`told_zone`](Self::told_zone), or UTC if the
    /// field of the time is named after it.
    pub(super) fn told_zone_of_times(&self, fitting: &[Clock]) -> Option<Clock> {
        let utc = self.utc_is_named && !self.zone_is_stated && fitting.contains(&Clock::UTC);
        if utc { Some(Clock::UTC) } else { self.told_zone(fitting) }
    }

    /// Of zones that fit all that came, the one to rely on: the only one, the one that a person states, or the one that a response
    /// names if UTC does not fit.
    pub(super) fn told_zone(&self, fitting: &[Clock]) -> Option<Clock> {
        let (stated, utc) = (self.zone_is_stated, fitting.contains(&Clock::UTC));
        let named = self.named_zone.filter(|zone| fitting.contains(zone) && (stated || !utc));
        let one = fitting.first().copied().filter(|zone| fitting.iter().all(|other| other == zone));
        named.or(one)
    }

    /// True for times of mentions that are texts, because their zone or their form is not known.
    pub(super) fn is_text_of_time(&self, path: &Path) -> bool {
        self.unknown_times.contains(path) || self.unread_times.contains(path)
    }

    /// Sort orders that the profile has. Times of an unknown zone or form are texts, whose order is another one.
    pub(super) fn usable_sorts(&self) -> impl Iterator<Item = &Sort> {
        let is_unknown = |name: &str| self.columns.path(name).is_some_and(|path| self.is_text_of_time(path));
        self.sorts.iter().filter(move |sort| !is_unknown(&sort.column))
    }

    /// The column of the time that windows refer to.
    pub(super) fn time_name(&self) -> &str {
        let known = self.window_time.as_ref();
        let column = known.and_then(|path| self.columns.columns.iter().find(|(_, other, _)| other == path));
        column.map_or("published_at", |(name, ..)| name)
    }

    /// True if only the first page of mentions can be requested.
    pub(super) fn has_first_page_only(&self) -> bool {
        self.no_offset.is_some() && self.cursor.is_none()
    }

    pub(super) fn saw(&mut self, section: &'static str, text: impl Into<String>) {
        self.notes.push(Note { section, observed: true, text: text.into() });
    }

    pub(super) fn could_not_tell(&mut self, section: &'static str, text: impl Into<String>) {
        self.notes.push(Note { section, observed: false, text: text.into() });
    }

    /// True if a section has notes, and all of them are observations.
    pub(super) fn is_told(&self, section: &str) -> bool {
        let mut notes = self.notes.iter().filter(|note| note.section == section).peekable();
        notes.peek().is_some() && notes.all(|note| note.observed)
    }
}
