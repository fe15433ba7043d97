//! Reads a profile: TOML text to a [`Profile`], or an error with file, line, key and what was expected.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::de::{DeTable, DeValue};

use super::column::{ColumnSpec, ColumnType, Origin, Pointer, Scope, Shape, TableSpec};
use super::spec::{
    Auth, Budget, Counts, Depth, EchoSpec, Endpoint, ErrorSpec, Filters, MentionsRequest, Offset, Page, RequestedBy,
    SearchEndpoint, Several, Sort, Tables, Throttle, Timezone, Total, Trust,
};
use super::window::WindowSpec;
use crate::error::{Error, ErrorKind, Result, one_line};

/// What a service promises. See the module's documentation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Short name.
    pub name: String,
    /// One line about the service.
    pub description: String,
    /// How the key is sent.
    pub auth: Auth,
    /// The list endpoint.
    pub list: Endpoint,
    /// The search endpoint.
    pub search: SearchEndpoint,
    /// How mention records are asked for.
    pub mentions: MentionsRequest,
    /// The offset parameter.
    pub offset: Offset,
    /// The page size parameter.
    pub page: Page,
    /// How far paging reaches.
    pub depth: Depth,
    /// The window parameter.
    pub window: WindowSpec,
    /// The zone parameter.
    pub timezone: Timezone,
    /// The sort parameter.
    pub sort: Sort,
    /// The filter parameters.
    pub filters: Filters,
    /// How throttling looks.
    pub throttle: Throttle,
    /// What may be spent.
    pub budget: Budget,
    /// The number of matching mentions.
    pub total: Total,
    /// Which numbers of the overview count mentions; absent: none.
    pub counts: Option<Counts>,
    /// What an answer repeats of its question.
    pub echo: EchoSpec,
    /// How an error looks.
    pub error: ErrorSpec,
    /// Where rows and columns lie.
    pub tables: Tables,
    /// The document's dimensions, for `system.profile`: name, value as one line of TOML, evidence.
    #[serde(skip)]
    dimensions: Vec<Dimension>,
}

/// A dimension of a profile as text: (name, value, evidence).
type Dimension = (String, String, Option<String>);

/// A refusal of the checks below: the path of the key, and what is wrong there.
type Refusal = (Vec<String>, ErrorKind, String);

/// The built-in profiles by their names.
const BUILTIN: [(&str, &str); 4] = [
    ("v4", include_str!("builtin/v4.toml")),
    ("flags", include_str!("builtin/flags.toml")),
    ("pages", include_str!("builtin/pages.toml")),
    ("names", include_str!("builtin/names.toml")),
];

impl Profile {
    /// The built-in profile of the V4 service.
    pub fn v4() -> Self {
        Self::builtin("v4").expect("there is one of this name")
    }

    /// The built-in profile of this name, if there is one: `v4`, and one for each other dialect of the simulator.
    pub fn builtin(name: &str) -> Option<Self> {
        let text = Self::builtin_document(name)?;
        Some(Self::parse(text, &format!("builtin {name}")).expect("the built-in profiles are tested to parse"))
    }

    /// The profile in a file, or the built-in one of this name where there is no such file. A path is relative to a folder.
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

    /// The JSON Schema of a profile (draft 2020-12), for editors.
    pub fn schema() -> String {
        let schema = schemars::schema_for!(Self);
        serde_json::to_string_pretty(&schema).unwrap_or_default()
    }

    /// The document of the built-in profile of this name.
    pub fn builtin_document(name: &str) -> Option<&'static str> {
        BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// The names of the built-in profiles.
    pub fn builtins() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// Reads a profile from a file.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] where the file cannot be read, [`ErrorKind::Profile`] or [`ErrorKind::Unsupported`] as
    /// [`Profile::parse`].
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::new(ErrorKind::Config, format!("cannot read the profile {}: {error}", path.display()))
        })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Parses a profile; `origin` names the document in errors.
    ///
    /// # Errors
    /// [`ErrorKind::Profile`] for what is malformed or contradicts itself, [`ErrorKind::Unsupported`] for what can be
    /// said but is not honoured yet. Both name origin, line and key.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let at = |span: Option<Range<usize>>, key: &str, kind, message: &str| {
            let line = span.map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let key = if key.is_empty() { String::new() } else { format!(" key `{key}`:") };
            Error::new(kind, format!("{origin}: line {line}:{key} {}", one_line(message)))
        };
        let document =
            DeTable::parse(text).map_err(|error| at(error.span(), "", ErrorKind::Profile, error.message()))?;
        let mut profile: Self = toml::from_str(text).map_err(|error| {
            let key = error.span().map(|span| key_at(document.get_ref(), &span).join(".")).unwrap_or_default();
            at(error.span(), &key, ErrorKind::Profile, error.message())
        })?;
        if let Some((path, kind, message)) = profile.refusal() {
            return Err(at(span_of(document.get_ref(), &path), &path.join("."), kind, &message));
        }
        profile.dimensions = dimensions(text);
        Ok(profile)
    }

    /// Where an answer has the exact number of all mentions that match, and the word that tells whether it is exact, in its
    /// overview; `None` where the profile promises no such number.
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

    /// The dimensions as text: (name, value, evidence).
    pub fn dimensions(&self) -> &[(String, String, Option<String>)] {
        &self.dimensions
    }

    /// The first thing that contradicts itself or is not honoured.
    fn refusal(&self) -> Option<Refusal> {
        self.contradictions().into_iter().next().or_else(|| self.unsupported().into_iter().next())
    }

    fn contradictions(&self) -> Vec<Refusal> {
        let mut found = Vec::new();
        let mut no = |holds: bool, path: &str, message: String| {
            if !holds {
                found.push((path.split('.').map(str::to_owned).collect(), ErrorKind::Profile, message));
            }
        };
        let placeholders = self.auth.format.matches("{key}").count() + self.auth.format.matches("{base64}").count();
        no(placeholders == 1, "auth.format", "expected exactly one of {key} and {base64}".into());
        no(
            http::HeaderName::from_str(&self.auth.header).is_ok(),
            "auth.header",
            format!("expected a header name, found `{}`", self.auth.header),
        );
        no(
            (self.mentions.requested_by == RequestedBy::Flag) == self.mentions.flag.is_some(),
            "mentions.requested_by",
            "expected `flag` together with requested_by = \"flag\", and only then".into(),
        );
        no(self.offset.first <= 1, "offset.first", format!("expected 0 or 1, found {}", self.offset.first));
        no(self.page.max > 0, "page.max", "expected at least 1".into());
        no(
            self.depth.rows.is_some() == self.depth.beyond.is_some(),
            "depth",
            "expected both `rows` and `beyond`, or neither".into(),
        );
        no(
            self.depth.rows.is_none_or(|rows| rows >= self.page.max),
            "depth.rows",
            format!("expected at least a page, {}", self.page.max),
        );
        no(
            self.window.absolute.as_ref().is_none_or(|template| {
                template.matches("{from}").count() == 1
                    && template.matches("{to}").count() == 1
                    && template.find("{from}") < template.find("{to}")
                    && template.find("{from}{to}").is_none()
            }),
            "window.absolute",
            "expected a text with {from}, a separator and {to}".into(),
        );
        if let Err(message) = self.window.check_words(&self.window.default) {
            no(false, "window.default", message);
        }
        if let Err(message) = self.timezone.zone_of(&self.timezone.default) {
            no(false, "timezone.default", message);
        }
        no(
            self.filters.several != Several::Separated || !self.filters.separator.is_empty(),
            "filters.separator",
            "expected a text, since several = \"separated\"".into(),
        );
        if let Some(counts) = &self.counts {
            let overview = &self.tables.overview;
            for (path, column) in [("counts.total", Some(&counts.total)), ("counts.relation", counts.relation.as_ref())]
            {
                let there = column.is_none_or(|column| overview.column(column).is_some());
                no(there, path, "expected a column of tables.overview".into());
            }
            let counted =
                |table: &TableSpec, columns: [&str; 2]| columns.iter().all(|name| table.column(name).is_some());
            let days =
                self.tables.volume.time.as_deref().is_some_and(|time| counted(&self.tables.volume, [time, "mentions"]));
            no(
                !counts.days || days,
                "counts.days",
                "expected tables.volume with a time and a column `mentions`".into(),
            );
            for list in &counts.lists {
                let column =
                    self.tables.mentions.column(&list.column).is_some_and(|column| column.kind == ColumnType::Utf8);
                let breakdowns = &self.tables.breakdowns;
                let section = breakdowns.sections.iter().any(|section| section.label == list.dimension);
                no(
                    column && section && counted(breakdowns, ["name", "mentions"]),
                    "counts.lists",
                    format!(
                        "expected a text column of tables.mentions and a label of tables.breakdowns, found `{}` and `{}`",
                        list.column, list.dimension
                    ),
                );
            }
        }
        no(!self.throttle.when.is_empty(), "throttle.when", "expected at least one status".into());
        no(
            self.throttle.when.iter().all(|rule| rule.code.is_some() || !(200..300).contains(&rule.status)),
            "throttle.when",
            "expected a `code` for a status of success".into(),
        );
        no(
            !self.error.inside_success || self.error.code.is_some() || self.error.message.is_some(),
            "error.inside_success",
            "expected `code` or `message`, by which an error inside a success is recognized".into(),
        );
        no(
            self.error.statuses.values().all(|status| (400..600).contains(status)),
            "error.statuses",
            "expected statuses of errors, from 400 to 599".into(),
        );
        no(self.budget.concurrency > 0, "budget.concurrency", "expected at least 1".into());
        no(
            self.budget.windows.iter().all(|window| window.requests > 0 && window.seconds > 0),
            "budget.windows",
            "expected requests and seconds of at least 1".into(),
        );
        let page = self.budget.cost_per_record.unwrap_or_default().saturating_mul(self.page.max).saturating_add(1);
        no(
            self.budget.windows.iter().all(|window| u64::from(window.requests) >= page),
            "budget.windows",
            format!("expected room for a page, which costs {page}"),
        );
        no(
            (self.total.trust == Trust::Absent) == self.total.at.is_none(),
            "total.trust",
            "expected `at`, or trust = \"absent\" without it".into(),
        );
        for (name, table) in self.tables.all() {
            let path = format!("tables.{name}");
            let mut names = HashSet::new();
            for ColumnSpec { name: column, origin, .. } in &table.columns {
                no(names.insert(column), &format!("{path}.columns"), format!("column `{column}` stands there twice"));
                no(
                    name != "saved_searches" || !matches!(origin, Origin::Aid | Origin::Duration | Origin::Timezone),
                    &format!("{path}.columns"),
                    format!("column `{column}`: the list is asked for without an aid, a window or a zone"),
                );
            }
            no(!table.sections.is_empty(), &format!("{path}.sections"), "expected at least one section".into());
            for section in &table.sections {
                no(
                    (section.shape == Shape::Entries) == (section.key.is_some() && section.value.is_some()),
                    &format!("{path}.sections"),
                    "expected `key` and `value` together with shape = \"entries\", and only then".into(),
                );
            }
            let named = |name: &Option<String>| name.as_ref().map(|name| table.column(name));
            no(
                named(&table.id).is_none_or(|column| {
                    column.is_some_and(|column| {
                        matches!(column.kind, ColumnType::Utf8 | ColumnType::Int64)
                            && matches!(column.origin, Origin::Field(_, Scope::Record))
                            && !column.nullable
                    })
                }),
                &format!("{path}.id"),
                "expected a column of this table that is utf8 or int64, lies in the record and is never NULL".into(),
            );
            for (key, name) in [("time", &table.time), ("version", &table.version)] {
                let instant = |column: &ColumnSpec| {
                    column.kind == ColumnType::Timestamp && matches!(column.origin, Origin::Field(_, Scope::Record))
                };
                no(
                    named(name).is_none_or(|column| column.is_some_and(instant)),
                    &format!("{path}.{key}"),
                    "expected a timestamp column of this table that lies in the record".into(),
                );
            }
            let in_record = |name: &String| {
                table.column(name).is_some_and(|column| matches!(column.origin, Origin::Field(_, Scope::Record)))
            };
            let named_by_text = named(&table.id).flatten().is_some_and(|column| column.kind == ColumnType::Utf8);
            no(
                table.stand_in.is_empty() || (named_by_text && table.stand_in.iter().all(in_record)),
                &format!("{path}.stand_in"),
                "expected columns of this table that lie in the record, and an `id` that is utf8".into(),
            );
            for origin in [Origin::Section, Origin::Rank, Origin::Extra] {
                no(
                    table.columns.iter().filter(|column| column.origin == origin).count() <= 1,
                    &format!("{path}.columns"),
                    format!("two columns are made `from` the same {origin:?}"),
                );
            }
            for column in &table.columns {
                let root = matches!(&column.origin, Origin::Field(at, Scope::Record) if at.steps().is_empty());
                no(!root, &format!("{path}.columns"), format!("column `{}` points at the whole record", column.name));
            }
        }
        for needed in ["aid", "kind"] {
            no(
                self.tables.saved_searches.column(needed).is_some(),
                "tables.saved_searches.columns",
                format!("expected a column `{needed}`"),
            );
        }
        no(
            self.tables.mentions.id.is_some(),
            "tables.mentions",
            "expected `id`, the column that names a mention".into(),
        );
        no(
            self.tables.mentions.sections.len() == 1,
            "tables.mentions.sections",
            "expected exactly one section: pages are counted in its rows".into(),
        );
        let mentions = &self.tables.mentions;
        for (path, columns) in [
            ("sort.values", self.sort.values.iter().map(|v| &v.column).collect::<Vec<_>>()),
            ("filters.parameters", self.filters.parameters.iter().map(|p| &p.column).collect()),
        ] {
            for column in columns {
                let field = mentions.column(column).is_some_and(|c| matches!(c.origin, Origin::Field(..)));
                no(field, path, format!("expected a field column of mentions, found `{column}`"));
            }
        }
        found
    }

    fn unsupported(&self) -> Vec<Refusal> {
        let mut found = Vec::new();
        let mut not_yet = |said: bool, path: &str, what: &str| {
            if said {
                let path = path.split('.').map(str::to_owned).collect();
                found.push((path, ErrorKind::Unsupported, format!("{what} is not supported yet")));
            }
        };
        for (name, table) in self.tables.all() {
            let (id, time) = (format!("tables.{name}.id"), format!("tables.{name}.time"));
            not_yet(name != "mentions" && table.id.is_some(), &id, "an id of rows that come in one answer");
            let bounded = matches!(name, "mentions" | "volume");
            not_yet(!bounded && table.time.is_some(), &time, "a window bounded by a column of this table");
        }
        found
    }
}

/// The path of the innermost key whose value, or whose own text, covers the span.
fn key_at(table: &DeTable<'_>, span: &Range<usize>) -> Vec<String> {
    let covers = |outer: Range<usize>| outer.start <= span.start && span.start < outer.end.max(outer.start + 1);
    for (key, value) in table.iter() {
        if covers(key.span()) {
            return vec![key.get_ref().to_string()];
        }
        let inner = match value.get_ref() {
            DeValue::Table(inner) => Some(key_at(inner, span)).filter(|path| !path.is_empty()),
            DeValue::Array(items) => items
                .iter()
                .find(|item| covers(item.span()))
                .map(|item| item.get_ref().as_table().map(|inner| key_at(inner, span)).unwrap_or_default()),
            _ => None,
        };
        if inner.is_some() || covers(value.span()) {
            let mut path = vec![key.get_ref().to_string()];
            path.extend(inner.unwrap_or_default());
            return path;
        }
    }
    Vec::new()
}

/// Where the longest existing part of the path stands.
fn span_of(table: &DeTable<'_>, path: &[String]) -> Option<Range<usize>> {
    let (first, rest) = path.split_first()?;
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == first)?;
    let inner = value.get_ref().as_table().and_then(|inner| span_of(inner, rest));
    inner.or_else(|| Some(key.span()))
}

/// Every section as (name, its content in one line, its evidence); a table's columns apart from its sections.
fn dimensions(text: &str) -> Vec<Dimension> {
    let Ok(document) = text.parse::<toml::Table>() else { return Vec::new() };
    let mut found = Vec::new();
    for (name, value) in document {
        let toml::Value::Table(section) = value else {
            found.push((name, text_of(&value), None));
            continue;
        };
        if name == "tables" {
            for (table, value) in section {
                if let toml::Value::Table(section) = value {
                    list_section(&format!("{name}.{table}"), &section, &mut found);
                }
            }
        } else {
            list_section(&name, &section, &mut found);
        }
    }
    found
}

fn list_section(name: &str, section: &toml::Table, found: &mut Vec<Dimension>) {
    let evidence = section.get("evidence").and_then(toml::Value::as_str).map(str::to_owned);
    for (key, value) in section.iter().filter(|(key, _)| *key != "evidence") {
        found.push((format!("{name}.{key}"), text_of(value), evidence.clone()));
    }
}

fn text_of(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
