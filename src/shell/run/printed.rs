//! Prints a result as it arrives, and keeps its rows for a chart.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::SendableRecordBatchStream;
use futures::StreamExt;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use super::{Broken, LastResult, internal};
use crate::memory::inherited;
use crate::session::{Headers, with_schema};
use crate::shell::output::Output;
use crate::shell::progress::Progress;
use crate::shell::writer::ResultWriter;
use crate::wording::{Rest, Shown};

/// Rows of the last result kept for `\\chart`: charts of more rows are unreadable.
const KEPT: usize = 10_000;

/// Time to wait for the end of a result whose display limit was reached: batches that arrive until then were requested anyway.
const ON_ITS_WAY: Duration = Duration::from_millis(100);

impl LastResult {
    fn add(&mut self, batch: RecordBatch) {
        let rows: usize = self.batches.iter().map(RecordBatch::num_rows).sum();
        if rows + batch.num_rows() > KEPT {
            self.lacks = Some("has too many rows to keep");
            self.batches.clear();
        }
        if self.lacks.is_none() {
            self.batches.push(batch);
        }
    }
}

/// Writes a result that is already in memory.
pub(in crate::shell) fn write(schema: &SchemaRef, batches: &[RecordBatch], output: &mut Output) -> io::Result<Shown> {
    let mut result = output.begin(Arc::clone(schema))?;
    for batch in batches {
        // All batches are in memory, so it makes no difference if the display is full.
        let _ = result.write(batch)?;
    }
    let shown = finish(result)?;
    output.ended();
    output.count_rows(shown.rows);
    Ok(shown)
}

/// Completes a result, and prints what its format does not show.
fn finish(result: ResultWriter) -> io::Result<Shown> {
    let mut notes = Vec::new();
    let shown = result.finish(&mut notes)?;
    notes.iter().for_each(|note| eprintln!("{note}"));
    Ok(shown)
}

/// A printed result.
pub(super) struct Printed {
    pub(super) shown: Shown,
    /// Time to the first row.
    pub(super) first: Option<Duration>,
    /// Total time without printing.
    pub(super) elapsed: Duration,
    pub(super) kept: LastResult,
}

/// Prints a result as its batches arrive, until the display is full or closed, and keeps its rows for `\chart`.
pub(super) async fn print_result(
    mut stream: SendableRecordBatchStream,
    headers: &Headers,
    begun: Instant,
    progress: Progress,
    output: &mut Output,
) -> Result<Printed, Broken> {
    let mut progress = Some(progress);
    let schema = output.named(&headers.apply(stream.schema()));
    let mut result = output.begin(Arc::clone(&schema))?;
    let mut kept = LastResult { schema: Arc::clone(&schema), batches: Vec::new(), lacks: None, covered: None };
    // Runs as a separate task: a computation that never yields must not delay an interrupt.
    let (sender, mut batches) = tokio::sync::mpsc::channel(1);
    let reading = AbortOnDropHandle::new(tokio::spawn(inherited(async move {
        while let Some(batch) = stream.next().await {
            if sender.send(batch).await.is_err() {
                break;
            }
        }
    })));
    let (mut first, mut printing, mut rest) = (None, Duration::ZERO, Rest::Nothing);
    while rest == Rest::Nothing
        && let Some(batch) = batches.recv().await
    {
        let batch = with_schema(batch?, &schema).map_err(DataFusionError::from)?;
        first = first.or_else(|| (batch.num_rows() > 0).then(|| begun.elapsed()));
        if result.would_print(&batch) {
            progress = None;
        }
        let printed = Instant::now();
        rest = result.write(&batch)?;
        printing += printed.elapsed();
        kept.add(batch);
    }
    let soon = Instant::now() + ON_ITS_WAY;
    while matches!(rest, Rest::Unknown | Rest::Left) {
        // A batch that is already on its way shows if the result ends here.
        rest = match timeout_at(soon, batches.recv()).await {
            Ok(None) => Rest::Nothing,
            Ok(Some(Ok(batch))) if batch.num_rows() == 0 => continue,
            Ok(Some(Ok(_))) if rest == Rest::Unknown => Rest::Some,
            _ => break,
        };
    }
    if rest == Rest::Nothing {
        // A panic of the task must not look like the end of the result.
        reading.await.map_err(internal)?;
    } else {
        // No request is sent for rows that are not shown.
        drop(reading);
        kept.lacks.get_or_insert("was not read completely");
    }
    let elapsed = begun.elapsed().saturating_sub(printing);
    drop(progress);
    let shown = Shown { rest, ..finish(result)? };
    output.ended();
    Ok(Printed { shown, first, elapsed, kept })
}
