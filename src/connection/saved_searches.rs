//! The list of saved searches, decoded once: aids that queries read by default, and names for completion.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::datatypes::DataType;
use bytes::Bytes;

use crate::decode::{Decoder, check_aids, entries_of};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{Origin, Profile, SectionSpec, TableSpec};
use crate::request::PageRequest;

/// List of saved searches.
#[derive(Debug)]
pub(crate) struct SavedSearches {
    /// Body of the response, from which the table decodes its own columns.
    pub(crate) body: Bytes,
    /// Number of entries.
    pub(super) rows: u64,
    /// Aids that a query without an aid reads, each once, in the order of the list.
    fan_out: Vec<String>,
    /// All aids with their names, each once; `None` if the list has no names.
    pub(super) names: Option<Vec<(String, String)>>,
}

impl SavedSearches {
    /// Decodes the response.
    ///
    /// # Errors
    /// Those of the decoder, and [`ErrorKind::Profile`] if the aids are not strings.
    pub(super) fn decode(profile: &Arc<Profile>, body: Bytes) -> Result<Self> {
        let table = &entries_of(&profile.tables.saved_searches);
        let place = |name: &str| table.columns.iter().position(|column| column.name == name);
        let aid = place("aid")
            .ok_or_else(|| Error::new(ErrorKind::Profile, "the profile declares no column `aid` in saved_searches"))?;
        let label = table.columns.iter().position(|column| column.origin == Origin::Section);
        let decoded = |columns: &[usize], lossy: bool| {
            let decoder = Decoder::new(Arc::clone(profile), Arc::new(table.clone()), columns).of_table().lossy(lossy);
            decoder.decode(&PageRequest::list(), &body).map(|decoded| decoded.batch)
        };
        let of = |columns: [Option<usize>; 3]| columns.into_iter().flatten().collect::<Vec<usize>>();
        let whole = of([Some(aid), place("name"), label]);
        // No query depends on the names.
        let (wanted, batch, names) = match decoded(&whole, false) {
            Ok(batch) => (whole, batch, None),
            Err(_) => {
                let names = decoded(&of([Some(aid), place("name"), None]), true).ok();
                let wanted = of([Some(aid), label, None]);
                let batch = decoded(&wanted, false)?;
                (wanted, batch, names)
            }
        };
        let column = |at: Option<usize>| wanted.iter().position(|wanted| Some(*wanted) == at);
        let aids = texts(&batch, 0)?;
        if !profile.tables.saved_searches.columns[aid].nullable {
            let kinds = column(label).map(|at| texts(&batch, at)).transpose()?;
            let kind_of =
                |entry| kinds.iter().find(|kinds| kinds.is_valid(entry)).map_or("", |kinds| kinds.value(entry));
            check_aids(&aids, &kind_of)?;
        }
        let names = match (column(place("name")), names) {
            (Some(at), _) => texts(&batch, at).ok().map(|names| named(&aids, &names)),
            (None, Some(names)) if names.num_columns() > 1 => {
                texts(&names, 0).and_then(|aids| Ok(named(&aids, &texts(&names, 1)?))).ok()
            }
            (None, _) => None,
        };
        let fan_out = match column(label).zip(fan_out_labels(table)) {
            Some((at, labels)) => {
                let found = texts(&batch, at)?;
                let of_them = |label: Option<&str>| label.is_some_and(|label| labels.contains(label));
                let chosen = aids.iter().zip(found.iter()).filter(|(_, label)| of_them(*label)).map(|(aid, _)| aid);
                each_once(chosen)
            }
            // Sections cannot be told apart by label.
            None => {
                let sections = table.sections.iter().filter(|section| section.fan_out).cloned().collect();
                let table = TableSpec { sections, ..table.clone() };
                let decoder = Decoder::new(Arc::clone(profile), Arc::new(table), &[aid]);
                each_once(texts(&decoder.decode(&PageRequest::list(), &body)?.batch, 0)?.iter())
            }
        };
        Ok(Self { rows: batch.num_rows() as u64, body, fan_out, names })
    }

    /// Aids that a query without an aid reads.
    pub(super) fn fan_out(&self) -> Vec<String> {
        self.fan_out.clone()
    }
}

/// Labels of the sections that a query without an aid reads; `None` if other sections share one of them.
fn fan_out_labels(table: &TableSpec) -> Option<HashSet<&str>> {
    let labels = |fan_out: bool| -> HashSet<&str> {
        let sections = table.sections.iter().filter(|section| section.fan_out == fan_out);
        sections.map(|SectionSpec { label, .. }| label.as_str()).collect()
    };
    let (wanted, others) = (labels(true), labels(false));
    wanted.is_disjoint(&others).then_some(wanted)
}

fn texts(batch: &RecordBatch, at: usize) -> Result<StringArray> {
    let column = arrow::compute::cast(batch.column(at), &DataType::Utf8);
    let column = column.map_err(|error| {
        let name = batch.schema_ref().field(at).name();
        Error::new(
            ErrorKind::Profile,
            format!("column `{name}` of saved_searches has values that are not strings: {error}"),
        )
    })?;
    Ok(column.as_string::<i32>().clone())
}

fn each_once<'a>(aids: impl Iterator<Item = Option<&'a str>>) -> Vec<String> {
    let mut known = HashSet::new();
    aids.flatten().filter(|aid| known.insert(*aid)).map(str::to_owned).collect()
}

fn named(aids: &StringArray, names: &StringArray) -> Vec<(String, String)> {
    let mut known = HashSet::new();
    let pairs = aids.iter().zip(names.iter()).filter_map(|(aid, name)| Some((aid?, name.unwrap_or_default())));
    pairs.filter(|(aid, _)| known.insert(*aid)).map(|(aid, name)| (aid.to_owned(), name.to_owned())).collect()
}
