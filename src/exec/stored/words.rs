//! Words that a condition looks for, in the indexes of stored files.
//!
//! ```text
//! condition ─▶ words in columns ─ index of each file ─▶ rows that may match ─▶ these rows of the file
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;

use super::StoredPart;
use super::candidates::{Decided, Divisions, Timelines, direct, usable};
use super::files::{LookUp, Matching, look_ups};
use crate::exec::scan_config::ScanConfig;
use crate::exec::stream::Driver;
use crate::functions::match_of;
use crate::numbers::counted;
use crate::request::RequestPlan;
use crate::store::{FromStore, Search, Subject, is_stored};

/// Maximum depth at which conditions on words are looked for.
const DEEPEST: usize = 64;

/// Returns what the condition of a scan is looking for in texts, if an index of words may tell.
pub(super) fn search(config: &ScanConfig) -> Option<Search> {
    let columns = &config.spec.columns;
    let stored = |at: usize| columns.get(at).filter(|column| is_stored(&column.origin)).map(|column| &*column.name);
    search_of(config.predicate.as_ref()?, &stored, DEEPEST)
}

/// Returns what a condition is looking for in texts; `None` if it may also hold for rows with other texts. `column` has the name of
/// a column of files.
fn search_of<'c>(
    condition: &Arc<dyn PhysicalExpr>,
    column: &impl Fn(usize) -> Option<&'c str>,
    deepest: usize,
) -> Option<Search> {
    if let Some((text, query)) = match_of(condition) {
        return Some(Search::Words(column(text.index())?.to_owned(), query.sought()?));
    }
    let condition = condition.downcast_ref::<BinaryExpr>()?;
    let deepest = deepest.checked_sub(1)?;
    let sides = [condition.left(), condition.right()].map(|side| search_of(side, column, deepest));
    match (condition.op(), sides) {
        (Operator::And, [Some(one), Some(other)]) => Some(Search::All(vec![one, other])),
        (Operator::And, [one, other]) => one.or(other),
        (Operator::Or, [Some(one), Some(other)]) => Some(Search::Any(vec![one, other])),
        _ => None,
    }
}

/// Stored files with and without an index of the words that a condition looks for, as in `index of 3 files · no index of 1 file`,
/// if a scan with these plans ran now. `None` if there are no such files, or no condition looks for words.
pub(in crate::exec) fn expected_indexes(
    config: &ScanConfig,
    divisions: &Divisions,
    plans: impl Iterator<Item = RequestPlan>,
) -> Option<String> {
    let (from, search) = (usable(config)?, search(config)?);
    let (mut seen, mut indexed, mut others) = (HashSet::new(), 0, 0);
    for plan in plans {
        let decided = divisions.of(config, from, &plan).ok().flatten()?;
        let Decided { subject, relative, division, confirmed_by, .. } = decided.as_ref();
        let timelines = Timelines::of(config, from, &plan, division, confirmed_by, *relative).ok()?;
        if direct(config, &plan, division, timelines.requests()) {
            continue;
        }
        for part in division.stored.iter().filter(|part| part.mentions() > 0) {
            let Some(file) = part.region.file() else { continue };
            let of = Subject { aid: subject.aid.clone(), filters: part.filters.clone() };
            if seen.insert(from.store.folder(&of).join(&file.path)) {
                match from.store.is_indexed(&of, file, &search) {
                    true => indexed += 1,
                    false => others += 1,
                }
            }
        }
    }
    let files = [("index of", indexed), ("no index of", others)].into_iter().filter(|(_, files)| *files > 0);
    let files: Vec<String> = files.map(|(what, files)| format!("{what} {}", counted(files, "file"))).collect();
    (!files.is_empty()).then(|| files.join(" · "))
}

impl Driver {
    /// Looks up the rows of stored days that may match. Each file is looked up by work of its own: there may be many, and others
    /// wait for the threads of a runtime.
    pub(super) async fn matching(&self, from: &FromStore, parts: &[StoredPart], search: Search) -> Result<Matching> {
        let (search, files) = (Arc::new(search), look_ups(parts));
        let mut matching = Matching::with_capacity(files.len());
        for LookUp { subject, file, rows } in files {
            let found = from.store.matching(subject, file, &search, rows).await?;
            self.counters.looked_up.add(usize::from(found.indexed));
            self.counters.skipped.add(usize::try_from(found.skipped).unwrap_or(usize::MAX));
            matching.push(found.rows);
        }
        Ok(matching)
    }
}
