//! Reads a profile: TOML text to a [`Profile`], or an error with file, line, key and what was expected.

use std::ops::Range;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::de::DeTable;

use super::column::{Origin, Pointer, Scope, Shape};
use super::extends::extended;
use super::keys::{Dimension, dimensions, key_at, span_of};
use super::spec::{
    Auth, Budget, Checks, Counts, Depth, EchoSpec, Endpoint, ErrorSpec, Filters, MentionsRequest, Offset, PageSpec,
    SearchEndpoint, Sort, Tables, Throttle, Timezone, Total, Trust,
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
    pub page: PageSpec,
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
    /// The built-in profile whose keys it has where it gives none; they are part of it by now.
    #[serde(default)]
    extends: Option<String>,
    /// The document's dimensions, for `system.profile`: name, value as one line of TOML, evidence.
    #[serde(skip)]
    dimensions: Vec<Dimension>,
}

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

    /// Parses a profile; `origin` names the document in errors. One that `extends` a built-in profile has its keys, except
    /// where it gives them itself; an array takes the place of the other one whole.
    ///
    /// # Errors
    /// [`ErrorKind::Profile`] for what is malformed or contradicts itself, [`ErrorKind::Unsupported`] for what can be
    /// said but is not honoured yet. Both name origin, line and key.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let at = |span: Option<Range<usize>>, path: &[String], kind, message: &str| {
            let line = span.map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let key = if path.is_empty() { String::new() } else { format!(" key `{}`:", path.join(".")) };
            Error::new(kind, format!("{origin}: line {line}:{key} {}", one_line(message)))
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
            // Of what another profile gives, the document itself has other lines.
            let span = if whole == text { error.span() } else { span_of(document, &path) };
            at(span, &path, ErrorKind::Profile, error.message())
        })?;
        profile.tables.name_tables();
        if let Some((path, kind, message)) = Checks::of(&profile).first() {
            return Err(at(span_of(document, &path), &path, kind, &message));
        }
        profile.dimensions = dimensions(&whole);
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
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }
}

#[cfg(test)]
mod tests;
