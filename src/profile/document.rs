//! Profile parser: turns TOML into a [`Profile`], or an error with file, line, key and the expected value.

use std::ops::Range;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::de::DeTable;

use super::column::{ColumnSpec, Origin, Pointer, Scope, SectionSpec, Shape, TableSpec};
use super::extends::extended;
use super::keys::{Dimension, dimensions, key_at, span_of};
use super::spec::{
    Auth, Budget, Checks, Complete, CountList, Counts, Depth, EchoSpec, ErrorSpec, Filters, ListEndpoint,
    MentionsRequest, Offset, PageSpec, RequestedBy, Retention, SearchEndpoint, Sort, Tables, Throttle, Timezone, Total,
    Trust,
};
use super::window::WindowSpec;
use crate::error::{Error, ErrorKind, Result, one_line};

/// See [`Profile::summed_counts`]: pointers to the entries, and to the count in each; without one, the entries are counts by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummedCounts {
    /// Buckets of the timeline, which count each mention once.
    pub timeline: Option<(Pointer, Option<Pointer>)>,
    /// Column of the start of a bucket, which is a field of its entry.
    pub start: Option<ColumnSpec>,
    /// Column of its end, likewise.
    pub end: Option<ColumnSpec>,
    /// Lists, which count each mention at most once.
    pub lists: Vec<(Pointer, Option<Pointer>)>,
}

/// Description of a service: its names, and its properties. See the module documentation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Short name of the profile.
    pub name: String,
    /// One-line description of the service.
    pub description: String,
    /// Authentication of requests.
    pub auth: Auth,
    /// List endpoint.
    pub list: ListEndpoint,
    /// Search endpoint.
    pub search: SearchEndpoint,
    /// Requests for mention records.
    pub mentions: MentionsRequest,
    /// Offset parameter.
    pub offset: Offset,
    /// Page size parameter.
    pub page: PageSpec,
    /// Limit on how far paging reaches.
    pub depth: Depth,
    /// Time window parameter.
    pub window: WindowSpec,
    /// Time zone parameter.
    pub timezone: Timezone,
    /// Sort parameter.
    pub sort: Sort,
    /// Filter parameters.
    pub filters: Filters,
    /// Recognition of throttling.
    pub throttle: Throttle,
    /// Request budget.
    pub budget: Budget,
    /// Total of matching mentions.
    pub total: Total,
    /// Overview numbers that count mentions. Absent: there are none.
    pub counts: Option<Counts>,
    /// Request values that a response repeats.
    pub echo: EchoSpec,
    /// Age at which the mentions of a day stop changing.
    #[serde(default)]
    pub store: Retention,
    /// Fields that say whether a response is complete.
    #[serde(default)]
    pub complete: Complete,
    /// Layout of errors.
    pub error: ErrorSpec,
    /// Layout of tables and columns.
    pub tables: Tables,
    /// Built-in profile that supplies all keys that the document omits. They are merged at this point.
    #[serde(default)]
    extends: Option<String>,
    /// Entries of `system.profile`: name, value as one line of TOML, evidence.
    #[serde(skip)]
    dimensions: Vec<Dimension>,
}

/// Built-in profiles by name.
const BUILTIN: [(&str, &str); 4] = [
    ("v4", include_str!("builtin/v4.toml")),
    ("flags", include_str!("builtin/flags.toml")),
    ("pages", include_str!("builtin/pages.toml")),
    ("names", include_str!("builtin/names.toml")),
];

impl Profile {
    /// Returns the built-in profile of the V4 service.
    pub fn v4() -> Self {
        Self::builtin("v4").expect("v4 is a built-in profile")
    }

    /// Returns the built-in profile of this name, if any: `v4`, or that of another simulator dialect.
    pub fn builtin(name: &str) -> Option<Self> {
        let text = Self::builtin_document(name)?;
        Some(Self::parse(text, &format!("builtin {name}")).expect("unit tests parse every built-in profile"))
    }

    /// Reads a profile from a file, or returns the built-in one of this name if there is no such file. A relative path
    /// is resolved against `folder`.
    ///
    /// # Errors
    /// As [`Profile::read`].
    pub fn named(folder: &Path, name: &Path) -> Result<Self> {
        let path = folder.join(name);
        match name.to_str().and_then(Self::builtin).filter(|_| !path.exists()) {
            Some(profile) => Ok(profile),
            None => Self::read(&path),
        }
    }

    /// JSON Schema of a profile (draft 2020-12), for editors.
    pub fn schema() -> String {
        let schema = schemars::schema_for!(Self);
        serde_json::to_string_pretty(&schema).unwrap_or_default()
    }

    /// Source text of the built-in profile of this name.
    pub fn builtin_document(name: &str) -> Option<&'static str> {
        BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// Names of the built-in profiles.
    pub fn builtins() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// Reads a profile from a file.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the file cannot be read, otherwise as [`Profile::parse`].
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let names: Vec<&str> = Self::builtins().collect();
            Error::new(ErrorKind::Config, format!("cannot read profile {}: {error}", path.display()))
                .advice(format!("name a file, or a built-in profile: {}", names.join(", ")))
        })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Parses a profile. `origin` names the document in errors. With `extends`, keys that the document omits come from
    /// that built-in profile; an array replaces the other one entirely.
    ///
    /// # Errors
    /// [`ErrorKind::Profile`] for a malformed or contradictory profile, [`ErrorKind::Unsupported`] for a valid value
    /// that is not supported yet. Both name origin, line and key.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let at = |span: Option<Range<usize>>, path: &[String], kind, message: &str| {
            let line = span.map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let line = line.map_or_else(String::new, |line| format!(" line {line}:"));
            let key = if path.is_empty() { String::new() } else { format!(" key `{}`:", path.join(".")) };
            Error::new(kind, format!("{origin}:{line}{key} {}", one_line(message)))
        };
        let malformed = |error: toml::de::Error| at(error.span(), &[], ErrorKind::Profile, error.message());
        let document = DeTable::parse(text).map_err(malformed)?;
        let document = document.get_ref();
        let whole = extended(text).map_err(|message| {
            let path = ["extends".to_owned()];
            at(span_of(document, &path), &path, ErrorKind::Profile, &message)
        })?;
        let mut profile: Self = toml::from_str(&whole).map_err(|error| {
            let path = error.span().and_then(|span| Some(key_at(DeTable::parse(&whole).ok()?.get_ref(), &span)));
            let path = path.unwrap_or_default();
            // In a merged profile, the span has to be looked up in the document itself.
            let span = if whole == text { error.span() } else { span_of(document, &path) };
            at(span, &path, ErrorKind::Profile, error.message())
        })?;
        profile.tables.complete();
        if let Some((path, kind, message)) = Checks::of(&profile).first() {
            return Err(at(span_of(document, &path), &path, kind, &message));
        }
        profile.dimensions = dimensions(&whole);
        Ok(profile)
    }

    /// Pointers to the exact total of matching mentions in an overview, and to the relation that says if it is exact;
    /// `None` if the profile declares no such total.
    pub fn counted_total(&self) -> Option<(Pointer, Option<Pointer>)> {
        let counts = self.counts.as_ref().filter(|counts| counts.trust == Trust::Exact)?;
        let overview = &self.tables.overview;
        let section = overview.sections.first().filter(|section| section.shape == Shape::Record)?;
        let place = |name: &str| match &overview.column(name)?.origin {
            Origin::Field(at, Scope::Record) => Some(section.at.join(at)),
            Origin::Field(at, Scope::Answer) => Some(at.clone()),
            _ => None,
        };
        Some((place(&counts.total)?, counts.relation.as_deref().and_then(place)))
    }

    /// Mentions to request together with an overview: one, if it costs nothing. The total beside it contradicts a wrong overview.
    pub fn beside_overview(&self) -> u64 {
        let size = self.mentions.requested_by == RequestedBy::Size && self.mentions.with_overview;
        u64::from(size && self.budget.cost_per_record.is_none())
    }

    /// Counts of an overview whose sum is at most the number of mentions: those of the timeline, and of each list. `None`
    /// unless the profile calls them exact.
    pub fn summed_counts(&self) -> Option<SummedCounts> {
        let counts = self.counts.as_ref().filter(|counts| counts.trust == Trust::Exact)?;
        let place = |table: &TableSpec, section: &SectionSpec| match (section.shape, &table.column("mentions")?.origin)
        {
            // The rows are not at the place of the section.
            _ if section.inside.is_some() => None,
            (Shape::Records, Origin::Field(at, Scope::Record)) => Some((section.at.clone(), Some(at.clone()))),
            // The members of an entry's value are the fields of the row.
            (Shape::Entries, Origin::Field(at, Scope::Record))
                if section.value.as_ref().is_some_and(|value| value.steps().is_empty()) =>
            {
                Some((section.at.clone(), Some(at.clone())))
            }
            (Shape::Entries, _) => Some((section.at.clone(), None)),
            _ => None,
        };
        let Tables { volume, breakdowns, .. } = &self.tables;
        let timeline = match volume.sections.as_slice() {
            [section] if counts.days => place(volume, section),
            _ => None,
        };
        let of_list = |list: &CountList| {
            let mut sections = breakdowns.sections.iter();
            place(breakdowns, sections.find(|section| section.label == list.dimension)?)
        };
        let start = volume.time.as_ref().and_then(|time| volume.column(time)).cloned();
        let end = volume.column("bucket_end").cloned();
        Some(SummedCounts { timeline, start, end, lists: counts.lists.iter().filter_map(of_list).collect() })
    }

    /// Values of a column of mentions that are names of fields in a list of `overview`, each with its count in a column.
    pub(crate) fn named_values(&self, column: &str) -> Vec<&str> {
        let Tables { overview, breakdowns, .. } = &self.tables;
        let list = self.counts.iter().flat_map(|counts| &counts.lists).find(|list| list.column == column);
        let list = list.and_then(|list| breakdowns.sections.iter().find(|section| section.label == list.dimension));
        let (Some(list), Some(record)) = (list, overview.sections.first()) else { return Vec::new() };
        let names = overview.columns.iter().filter_map(|column| {
            let Origin::Field(at, Scope::Record) = &column.origin else { return None };
            let (name, outer) = at.steps().split_last()?;
            let in_list = record.at.steps().iter().chain(outer).eq(list.at.steps());
            in_list.then_some(name.as_str())
        });
        names.collect()
    }

    /// Entries of `system.profile`: (name, value, evidence).
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }
}

#[cfg(test)]
mod tests;
