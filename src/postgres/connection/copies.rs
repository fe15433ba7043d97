//! Rows that leave in another way than those of a query: COPY, and cursors.

use std::sync::Arc;

use pgwire::messages::PgWireBackendMessage as Reply;
use pgwire::messages::copy::{CopyData, CopyDone, CopyOutResponse};

use super::super::command::{Copy, CopyFormat};
use super::super::report::Report;
use super::super::rows::{Copier, Layout};
use super::{Connection, Planned, Running, Stop, Work, changed_type, unknown_cursor};
use crate::memory::within;

impl Connection {
    pub(super) async fn copy(&mut self, copy: Copy) -> Result<(), Stop> {
        let planned = self.plan(copy.sql.clone(), Vec::new(), Vec::new()).await;
        let Planned { statement, context, .. } = planned.map_err(|stop| stop.behind(copy.before))?;
        if statement.effect || !statement.parameters.fields().is_empty() {
            return Err(Report::error("42601", "COPY does not support parameters").into());
        }
        let pending = Arc::new(self.pending(statement, context, Vec::new()).await?);
        // A client that reads a table in this way, such as DuckDB, compares the column itself, and shows no notice.
        if copy.format == CopyFormat::Binary
            && let Some(time) =
                pending.windows().into_iter().filter(|window| window.default).find_map(|window| window.time)
            && pending.schema.column_with_name(&time).is_some()
        {
            let line = format!(
                "no condition on {time} arrived, so that only the default window would be copied; compare {time} itself with \
                 instants, since the client may not send conditions on functions of it"
            );
            return Err(Report::error("0A000", line).into());
        }
        let copier = Copier::new(&pending.schema, copy).ok_or_else(|| Report::error("XX000", "no layout"))?;
        let running = self.start(&pending, false)?;
        let memory = Arc::clone(&running.memory);
        within(&memory, Box::pin(self.copy_rows(running, &copier))).await
    }

    async fn copy_rows(&mut self, mut running: Box<Running>, copier: &Copier) -> Result<(), Stop> {
        let (code, columns) = (copier.code(), copier.columns());
        let count = i16::try_from(columns).unwrap_or(i16::MAX);
        let response = CopyOutResponse::new(i8::try_from(code).unwrap_or(0), count, vec![code; columns]);
        self.wire.send(Reply::CopyOutResponse(response)).await?;
        let mut head = copier.head();
        let mut sent = 0_u64;
        while let Some(batch) = self.batch(&mut running).await? {
            let rows = copier.rows(&batch).map_err(|error| Report::error("22000", error.to_string()))?;
            for row in rows {
                // What comes before the rows is in one message with the first one.
                let row = if head.is_empty() { row } else { [std::mem::take(&mut head), row].concat().into() };
                self.wire.send(Reply::CopyData(CopyData::new(row))).await?;
                sent += 1;
            }
        }
        for rest in [head, copier.tail()] {
            if !rest.is_empty() {
                self.wire.send(Reply::CopyData(CopyData::new(rest))).await?;
            }
        }
        self.wire.send(Reply::CopyDone(CopyDone::new())).await?;
        self.notices(running.query.take(), &running.pending).await?;
        self.complete(&format!("COPY {sent}")).await
    }

    /// Sends the next rows of a cursor in a layout, or skips them without one; 0: all that are left.
    pub(super) async fn fetch(&mut self, cursor: String, most: usize, layout: Option<Layout>) -> Result<(), Stop> {
        let mut portal = self.portals.remove(&cursor).ok_or_else(|| unknown_cursor(&cursor))?;
        if layout.as_ref().is_some_and(|layout| !layout.fits(&portal.layout)) {
            return Err(changed_type().into());
        }
        let mut running = match std::mem::replace(&mut portal.work, Work::Done) {
            Work::Query(pending) => Some(self.start(&pending, most > 0)?),
            Work::Rows(running) => Some(running),
            _ => None,
        };
        if let (Some(Running { rest: Some((rows, _)), .. }), Some(layout)) = (running.as_deref_mut(), &layout) {
            rows.encode_as(layout);
        }
        let memory = running.as_ref().map_or_else(Arc::default, |running| Arc::clone(&running.memory));
        let fetched = self.fetch_rows(&mut running, most, &portal.layout, layout.as_ref());
        let sent = within(&memory, Box::pin(fetched)).await?;
        portal.work = running.map_or(Work::Done, Work::Rows);
        self.portals.insert(cursor, portal);
        self.complete(&format!("{} {sent}", if layout.is_some() { "FETCH" } else { "MOVE" })).await
    }

    /// Sends rows of a running query in a layout, or skips them without one. Returns their number; `running` is `None` after the
    /// last one.
    async fn fetch_rows(
        &mut self,
        running: &mut Option<Box<Running>>,
        most: usize,
        own: &Layout,
        layout: Option<&Layout>,
    ) -> Result<usize, Stop> {
        let mut sent = 0;
        while let Some(current) = running {
            if most > 0 && sent == most {
                break;
            }
            match &mut current.rest {
                Some((rows, next)) if *next < rows.len() => {
                    if layout.is_some() {
                        self.wire.send_row(rows, *next).await?;
                    }
                    *next += 1;
                    sent += 1;
                }
                _ => match self.batch(current).await? {
                    Some(batch) => {
                        let rows = layout.unwrap_or(own).rows(&batch);
                        let rows = rows.map_err(|error| Report::error("22000", error.to_string()))?;
                        current.rest = Some((rows, 0));
                    }
                    None => {
                        self.notices(current.query.take(), &current.pending).await?;
                        *running = None;
                    }
                },
            }
        }
        Ok(sent)
    }
}
