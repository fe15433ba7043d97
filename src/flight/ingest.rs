//! Temporary tables from rows that a client sends.

use std::sync::Arc;

use arrow::datatypes::Schema;
use arrow_flight::FlightData;
use arrow_flight::sql::{CommandStatementIngest, TableExistsOption, TableNotExistOption};
use datafusion::error::DataFusionError;
use futures::{Stream, TryStreamExt};
use tokio::task::yield_now;
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

use super::command::flight_status;
use super::parameters;
use crate::catalog::refuse_served;
use crate::host::sessions::Session;
use crate::host::state::Host;
use crate::host::temporary::{self, Making};
use crate::session::READ_ONLY;

/// Creates a temporary table from rows that a client sends. Returns the number of rows.
///
/// # Errors
/// UNIMPLEMENTED for permanent tables and for appending; ALREADY_EXISTS or NOT_FOUND as the client requested.
pub(super) async fn ingest(
    host: &Host,
    session: &Arc<Session>,
    ingest: CommandStatementIngest,
    messages: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
) -> Result<i64, Status> {
    if !ingest.temporary {
        let line = format!("{READ_ONLY}: ingest into a temporary table, which lasts as long as the session");
        return Err(Status::unimplemented(line));
    }
    let options = ingest.table_definition_options.unwrap_or_default();
    let name = temporary::name(ingest.catalog, ingest.schema, ingest.table);
    let malformed = |_| Status::invalid_argument("malformed rows");
    // Before the session is taken: a client may never send rows. In a separate task, so that a panic caused by malformed data does
    // not close the connection.
    let beginning = AbortOnDropHandle::new(tokio::spawn(async move {
        let mut batches = parameters::batches(messages);
        let first = batches.try_next().await.map_err(flight_status)?;
        Ok::<_, Status>((first, batches))
    }));
    let (mut next, mut batches) = beginning.await.map_err(malformed)??;
    let _making = session.making.lock().await;
    refuse_served(&session.context, &name).map_err(|error| session.failure(&error))?;
    let exists = session.context.table_exist(name.clone()).map_err(|error| session.failure(&error))?;
    match (exists, options.if_exists(), options.if_not_exist()) {
        (true, TableExistsOption::Replace, _) => {}
        (true, TableExistsOption::Append, _) => {
            return Err(Status::unimplemented("appending to a table is not supported: replace it"));
        }
        (true, ..) => return Err(Status::already_exists(format!("table `{name}` already exists"))),
        (false, _, TableNotExistOption::Fail) => {
            return Err(Status::not_found(format!("table `{name}` does not exist")));
        }
        (false, ..) => {}
    }
    let (reader, most) = (Arc::clone(session), host.limits.temporary_bytes);
    let reading = AbortOnDropHandle::new(tokio::spawn(async move {
        let failed = |error: DataFusionError| Status::from(reader.failure(&error));
        let mut making = None;
        while let Some(batch) = next {
            if making.is_none() {
                making = Some(Making::begin(&reader, batch.schema(), most).await.map_err(failed)?);
            }
            if let Some(making) = &mut making {
                making.take(&batch).map_err(failed)?;
            }
            // A message may be long, and the next one be there already: others of the thread come first.
            yield_now().await;
            next = batches.try_next().await.map_err(flight_status)?;
        }
        match making {
            Some(making) => Ok(making),
            None => {
                let schema = batches.schema().cloned().unwrap_or_else(|| Arc::new(Schema::empty()));
                Making::begin(&reader, schema, most).await.map_err(failed)
            }
        }
    }));
    let making = reading.await.map_err(malformed)??;
    let rows = making.register(session, name).map_err(|error| session.failure(&error))?;
    Ok(i64::try_from(rows).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::{poll, stream};

    use super::*;

    #[tokio::test]
    async fn an_upload_takes_the_session_once_there_are_rows() {
        let (host, session) = Host::of_tests().await;
        let command = CommandStatementIngest { temporary: true, table: "t".to_owned(), ..Default::default() };
        let mut waiting = pin!(ingest(&host, &session, command, stream::pending()));
        for _ in 0..3 {
            assert!(poll!(waiting.as_mut()).is_pending());
            assert!(session.making.try_lock().is_ok(), "other statements of the session run");
            yield_now().await;
        }
    }
}
