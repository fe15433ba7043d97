//! Columns that the profile declared after days were stored: these days have NULL there, which EXPLAIN and a note say.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use chrono::NaiveDate;

use super::candidates::needed;
use crate::error::{Phrase, Result, Setting, Tool};
use crate::exec::scan_config::ScanConfig;
use crate::exec::stream::Driver;
use crate::numbers::counted;
use crate::request::RequestPlan;
use crate::store::{Columns, Day, FromStore, Stored, date_of};

/// Columns of a scan that some of its stored days do not have, because the profile declared them later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::exec) struct DeclaredLater {
    /// Their names; none if all days have all columns.
    names: BTreeSet<String>,
    /// Number of the days that lack some, over all saved searches.
    number: u64,
    /// The first of these days, and the day after the last one.
    days: Range<Day>,
}

/// As in ` · without the column platform: 83 days`; nothing if all days have all columns.
impl fmt::Display for DeclaredLater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        match names.as_slice() {
            [] => Ok(()),
            [name] => write!(f, " · without the column {name}: {}", counted(self.number, "day")),
            names => write!(f, " · without the columns {}: {}", names.join(", "), counted(self.number, "day")),
        }
    }
}

impl DeclaredLater {
    /// Those of a scan that reads these days.
    ///
    /// # Errors
    /// Errors of the store's catalog.
    pub(super) fn of<'s>(
        config: &ScanConfig,
        from: &FromStore,
        stored: impl IntoIterator<Item = &'s Stored>,
    ) -> Result<Self> {
        let (mut later, mut versions) = (Self::default(), BTreeMap::<i64, Vec<String>>::new());
        for part in stored {
            let file = part.region.file().filter(|file| !from.store.is_current(file.schema) && part.mentions() > 0);
            let Some(file) = file else { continue };
            let names = match versions.entry(file.schema) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let (deciding, others) = needed(config);
                    new.insert(match from.store.columns_in(file.schema, &deciding, &others)? {
                        Columns::Without(names) => names,
                        Columns::All | Columns::Others => Vec::new(),
                    })
                }
            };
            if names.is_empty() {
                continue;
            }
            later.days = match later.names.is_empty() {
                true => part.days.clone(),
                false => later.days.start.min(part.days.start)..later.days.end.max(part.days.end),
            };
            later.number += part.days.len() as u64;
            later.names.extend(names.iter().cloned());
        }
        Ok(later)
    }

    /// The note for days from a first to a last one.
    fn note(&self, first: NaiveDate, last: NaiveDate) -> Phrase {
        let names: Vec<String> = self.names.iter().map(|name| format!("`{name}`")).collect();
        let (columns, them) = match names.as_slice() {
            [name] => (format!("column {name} is"), "it"),
            names => (format!("columns {} are", names.join(", ")), "them"),
        };
        let days = if first == last { first.to_string() } else { format!("{first} to {last}") };
        let what = format!("{columns} NULL in days that were stored before the profile had {them} ({days})");
        let again = Setting::Store.to("write").after("; ").then(" reads them again");
        Phrase::from(what) + again + "; " + Tool::Rescan + " reads all stored days again"
    }
}

impl Driver {
    /// Notes the columns that stored days of a plan do not have, because the profile declared them later.
    pub(super) async fn note_declared_later(self: &Arc<Self>, from: &FromStore, plan: &RequestPlan, stored: &[Stored]) {
        let (store, days) = (from.clone(), stored.to_vec());
        let later = self.aside(move |driver| DeclaredLater::of(&driver.config, &store, &days)).await;
        let later = match later {
            Ok(Ok(later)) if later.names.is_empty() => return,
            Ok(Ok(later)) => later,
            Ok(Err(error)) => return self.note(plan, &error),
            // The work was aborted, and the query ends.
            Err(_) => return,
        };
        let days = (date_of(later.days.start), date_of(later.days.end - 1));
        let log = self.config.connection.client().log();
        log.note_days(&self.query.budget, plan.aid.clone(), days, |first, last| later.note(first, last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_days_are_named() {
        let later = |names: &[&str]| DeclaredLater {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            number: 3,
            days: 10..13,
        };
        assert_eq!(DeclaredLater::default().to_string(), "");
        assert_eq!(later(&["tone"]).to_string(), " · without the column tone: 3 days");
        assert_eq!(later(&["tone", "place"]).to_string(), " · without the columns place, tone: 3 days");
        let (first, last) = (date_of(10), date_of(12));
        let note = later(&["tone"]).note(first, last).to_string();
        let beginning =
            "column `tone` is NULL in days that were stored before the profile had it (1970-01-11 to 1970-01-13); ";
        assert!(note.starts_with(beginning), "{note}");
        let note = later(&["tone", "place"]).note(first, first).to_string();
        let beginning =
            "columns `place`, `tone` are NULL in days that were stored before the profile had them (1970-01-11); ";
        assert!(note.starts_with(beginning), "{note}");
    }
}
