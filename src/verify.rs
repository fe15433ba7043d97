//! Compares the daily counts of a store with those of the service.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
use chrono::{DateTime, NaiveDate, Utc};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::ident;
use datafusion::prelude::SessionContext;

use crate::config::{SessionSettings, StoreUse};
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Phrase, Result, Tool, own_or_query};
use crate::exec::can_confirm;
use crate::session::session;
use crate::store::{Day, Terms, blocking, date_of, day_of};
use crate::sync::filter_of;

/// A stored day that has another number of mentions at the service.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DifferingDay {
    /// Saved search.
    pub aid: String,
    /// The day, in UTC.
    pub day: NaiveDate,
    /// Number of stored mentions.
    pub stored: u64,
    /// Number of mentions by the service's timeline.
    pub service: u64,
}

/// As in `aid 183772, 2026-06-01: 41 mentions stored, 42 at the service`.
impl fmt::Display for DifferingDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { aid, day, stored, service } = self;
        write!(f, "aid {aid}, {day}: {stored} mentions stored, {service} at the service")
    }
}

/// Compares all days that were stored without filters, and that had settled when they were read, with the service's timeline.
/// Takes one request for each saved search, or more if the service limits the length of a window. Nothing is changed.
///
/// # Errors
/// [`ErrorKind::Config`] if the connection has no store; [`ErrorKind::Unsupported`] if the service does not count days in UTC
/// exactly; those of queries.
pub async fn verify_counts(connection: &Arc<Connection>) -> Result<Vec<DifferingDay>> {
    let store = connection.some_store()?;
    let profile = connection.profile();
    if !can_confirm(profile) {
        return Err(Error::new(ErrorKind::Unsupported, "the service provides no exact counts of mentions by UTC day")
            .advice(Phrase::from(Tool::Rescan) + " reads stored days again"));
    }
    let context = session(connection).map_err(|error| own_or_query(&error))?;
    let state = context.state_ref();
    if let Some(settings) = state.write().config_mut().options_mut().extensions.get_mut::<SessionSettings>() {
        settings.store = StoreUse::Off;
        "UTC".clone_into(&mut settings.timezone);
    }
    let settling = profile.store.settle.length();
    let terms = Terms { now: connection.now(), settling, since: DateTime::<Utc>::MAX_UTC, rescan: None };
    let mut differing = Vec::new();
    let catalog = Arc::clone(store);
    for aid in blocking(move || catalog.aids()).await? {
        let (catalog, of) = (Arc::clone(store), aid.clone());
        let regions = blocking(move || catalog.regions(&of)).await?;
        let mut stored: BTreeMap<Day, u64> = BTreeMap::new();
        for (_, region) in regions.iter().filter(|(filters, _)| filters.is_empty()) {
            let settled = |day: &Day| region.sealed || terms.had_settled(region.as_of, *day);
            let days = region.days.clone().filter(settled);
            stored.extend(days.filter_map(|day| Some((day, region.count_of(day)?))));
        }
        let (Some((first, _)), Some((last, _))) = (stored.first_key_value(), stored.last_key_value()) else { continue };
        let service = counts(connection, &context, &aid, &(*first..*last + 1)).await;
        let service = service.map_err(|error| own_or_query(&error))?;
        for (day, stored) in stored {
            let service = service.get(&day).copied().unwrap_or_default();
            if stored != service {
                differing.push(DifferingDay { aid: aid.clone(), day: date_of(day), stored, service });
            }
        }
    }
    Ok(differing)
}

/// Requests the daily counts of a saved search.
async fn counts(
    connection: &Connection,
    context: &SessionContext,
    aid: &str,
    days: &Range<Day>,
) -> std::result::Result<BTreeMap<Day, u64>, DataFusionError> {
    let volume = &connection.profile().tables.volume;
    let time = volume.time.as_deref().unwrap_or_default();
    let filter = filter_of(volume, aid, days)?;
    let rows = context.table("volume").await?.filter(filter)?.select(vec![ident(time), ident("mentions")])?;
    let mut counts = BTreeMap::new();
    for batch in rows.collect().await? {
        let starts = batch.column(0).as_primitive::<TimestampMicrosecondType>();
        let mentions = batch.column(1).as_primitive::<Int64Type>();
        for (start, mentions) in starts.iter().zip(mentions) {
            let (Some(start), Some(mentions)) = (start, mentions) else { continue };
            *counts.entry(day_of(start)).or_default() += u64::try_from(mentions).unwrap_or_default();
        }
    }
    Ok(counts)
}
