//! Compares a profile with the service: a request to each endpoint, and numbers that must agree because they count the same
//! mentions in different ways.
//!
//! ```text
//! list, overview, a mention ─▶ named periods ─▶ counts by overview and by reading ─▶ a window and its two parts ─▶ days of the timeline
//! ```
//!
//! Comparisons use SQL only, as users do. Nothing is written.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Int64Type, TimestampMicrosecondType};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;

use crate::connection::Connection;
use crate::error::{Error, ErrorKind, describe};
use crate::numbers::counted;
use crate::profile::{Direction, Period, Profile, SortValue};
use crate::session::{literal, session};

/// Compares the profile of a connection with its service. `say` gets each comparison as soon as it is made: its name, and what
/// agrees or what does not.
///
/// # Errors
/// Fails if no session can be built, or if the service refuses the key: nothing can be compared then. Other queries that fail are
/// comparisons that do not agree.
pub async fn compare(
    connection: &Arc<Connection>,
    mut say: impl FnMut(&'static str, std::result::Result<String, String>),
) -> Result<()> {
    let context = session(connection)?;
    let failed = |error| String::from(connection.client().redact(&describe(&error)));
    let refused = |error: &DataFusionError| Error::find(error).is_some_and(|own| own.kind() == ErrorKind::Unauthorized);
    let of = "(SELECT min(aid) FROM saved_searches WHERE kind <> 'recent')";
    for (what, table, sql) in [
        ("list", "saved_searches", "SELECT aid, kind FROM saved_searches".to_owned()),
        ("overview", "overview", format!("SELECT * FROM overview WHERE aid = {of}")),
        ("mentions", "mentions", format!("SELECT * FROM mentions WHERE aid = {of} LIMIT 1")),
    ] {
        match rows_of(&context, &sql).await {
            Ok(rows) => say(what, Ok(counted(rows as u64, "row"))),
            Err(error) if refused(&error) => return Err(error),
            Err(error) => {
                // The name of the comparison names the table.
                let told = failed(error);
                say(what, Err(told.strip_prefix(&format!("{table}: ")).unwrap_or(&told).to_owned()));
            }
        }
    }
    let time = connection.profile().tables.mentions.time.clone();
    // The newest mention costs little if the service sorts by time.
    let profile = connection.profile();
    let newest = |sort: &&SortValue| Some(&sort.column) == time.as_ref() && sort.direction == Direction::Desc;
    let is_sorted = profile.sort.values.iter().any(|sort| newest(&sort));
    let names: Vec<String> = profile.window.names.keys().filter(|_| is_sorted).take(NAMES).cloned().collect();
    for (what, result) in [
        ("periods", periods_agree(&context, connection, &names, of, time.as_deref()).await),
        ("counts", counts_agree(&context, of, time.as_deref()).await),
        ("windows", parts_agree(&context, of, time.as_deref()).await),
        // The last one: it may set the zone of the session.
        ("days", days_agree(&context, connection.profile().timezone.always(), of, time.as_deref()).await),
    ] {
        match result {
            Ok(None) => {}
            Ok(Some(compared)) => say(what, compared),
            Err(error) if refused(&error) => return Err(error),
            Err(error) => say(what, Err(failed(error))),
        }
    }
    Ok(())
}

/// Named periods that are compared; each takes a request or two.
const NAMES: usize = 6;

/// A comparison of two counts: what agrees, or what does not. `None`: there was nothing to compare.
type Compared = Result<Option<std::result::Result<String, String>>>;

/// Compares the newest mentions of named periods with each other, with those of a search without a period, and with those of the last
/// day. Named periods end now, so none of them lacks the newest mention, but for a period that has none.
async fn periods_agree(
    context: &SessionContext,
    connection: &Arc<Connection>,
    names: &[String],
    aid: &str,
    time: Option<&str>,
) -> Compared {
    /// Time in which mentions may arrive between two queries.
    const MEANWHILE: TimeDelta = TimeDelta::minutes(10);
    let (Some(time), Some(first)) = (time, names.first()) else { return Ok(None) };
    let mut newest: Vec<(String, DateTime<Utc>)> = Vec::new();
    for name in names {
        let at = instant(context, &newest_of(name, aid, time)).await?;
        newest.extend(at.map(|at| (format!("`{name}`"), at)));
    }
    let others = newest_of_others(connection, first, aid, time).await?;
    let Some((last, end)) = newest.iter().chain(&others).max_by_key(|(_, at)| *at) else { return Ok(None) };
    Ok(match newest.iter().find(|(_, at)| *end - *at > MEANWHILE) {
        None if newest.len() + others.len() < 2 => None,
        None if newest.len() == 1 => Some(Ok("1 named period has the newest mention".to_owned())),
        None => Some(Ok(format!("{} named periods have the same newest mention", newest.len()))),
        Some((name, at)) => Some(Err(format!(
            "the newest mention of {name} is of {at}, that of {last} of {end}; remove names of periods that do not end now from \
             [window] names"
        ))),
    })
}

/// The query of the newest mention of a period.
fn newest_of(period: &str, aid: &str, time: &str) -> String {
    let period = literal(period);
    format!("SELECT max(\"{time}\") FROM mentions WHERE aid = {aid} AND duration = {period}")
}

/// The newest mentions of a search without a period, and of periods of the last day that the service may have. Those that it refuses are
/// left out. `name`: the name of a period.
async fn newest_of_others(
    connection: &Arc<Connection>,
    name: &str,
    aid: &str,
    time: &str,
) -> Result<Vec<(String, DateTime<Utc>)>> {
    let mut found = Vec::new();
    let mut profile = Profile::clone(connection.profile());
    let days = ["today", "last 24 hours"].map(|words| written_like(name, words));
    for day in &days {
        if let Ok(length) = Period::try_from("24h".to_owned()) {
            profile.window.names.entry(day.clone()).or_insert(length);
        }
    }
    let context = session(&connection.with_profile(profile))?;
    for day in &days {
        if let Ok(Some(at)) = instant(&context, &newest_of(day, aid, time)).await {
            found.push((format!("`{day}`"), at));
        }
    }
    let mut profile = Profile::clone(connection.profile());
    let window = &mut profile.window;
    (window.parameter, window.absolute, window.separate) = (None, None, None);
    window.relative.clear();
    window.names.clear();
    "service_default".clone_into(&mut window.default);
    let context = session(&connection.with_profile(profile))?;
    let query = format!("SELECT max(\"{time}\") FROM mentions WHERE aid = {aid}");
    if let Ok(Some(at)) = instant(&context, &query).await {
        found.push(("a search without a period".to_owned(), at));
    }
    Ok(found)
}

/// Words as the name of a period has them: `last_24_hours`, `LAST_24_HOURS`, `last-24-hours`, `Last24Hours`.
fn written_like(name: &str, words: &str) -> String {
    if name.contains(' ') {
        words.to_owned()
    } else if name.contains('-') {
        words.replace(' ', "-")
    } else if !name.contains(char::is_lowercase) {
        words.to_uppercase().replace(' ', "_")
    } else if name.starts_with(char::is_uppercase) {
        words.split(' ').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
    } else {
        words.replace(' ', "_")
    }
}

/// Counts the mentions of two days by the overview and by reading them. The session does not count by the overview afterwards.
async fn counts_agree(context: &SessionContext, aid: &str, time: Option<&str>) -> Compared {
    let Some(time) = time else { return Ok(None) };
    let count = format!("SELECT count(*) FROM mentions WHERE aid = {aid} AND \"{time}\" >= now() - INTERVAL '2 days'");
    let told = number(context, &count).await;
    context.sql("SET savedsearch.count_from_overview = 'never'").await?;
    let (told, read) = (told?, number(context, &count).await?);
    Ok(Some(match told == read {
        true => Ok(format!("{read} mentions in two days by overview and by reading")),
        false => Err(format!(
            "the overview reports {told} mentions in two days, but {read} were read; check [counts], [total] and [window]"
        )),
    }))
}

/// Compares the days of the timeline with the mentions of these days, which are read. The session must not count by the
/// overview. If the service has days of one zone, whatever is sent, these are the days of the session.
async fn days_agree(context: &SessionContext, zone: Option<&str>, aid: &str, time: Option<&str>) -> Compared {
    let Some(time) = time else { return Ok(None) };
    if let Some(zone) = zone {
        context.sql(&format!("SET timezone = '{zone}'")).await?;
    }
    let days = "date_trunc('day', now()) - INTERVAL '3 days'";
    let until = "date_trunc('day', now())";
    let volume = format!(
        "SELECT sum(mentions) FROM volume WHERE aid = {aid} AND bucket_start >= {days} AND bucket_start < {until}"
    );
    let read =
        format!("SELECT count(*) FROM mentions WHERE aid = {aid} AND \"{time}\" >= {days} AND \"{time}\" < {until}");
    let volume = match number(context, &volume).await {
        Ok(volume) => volume,
        // A service whose days are those of another zone, or that has none, has nothing to compare.
        Err(_) => return Ok(None),
    };
    let read = number(context, &read).await?;
    Ok(Some(match volume == read {
        true => Ok(format!("{read} mentions of three days by timeline and by reading")),
        false => Err(format!(
            "the timeline reports {volume} mentions of three days, but {read} were read; check [tables.volume], [timezone] and [window]"
        )),
    }))
}

/// Compares the mentions of a window with those of its two parts, divided at the time of a mention: no mention may be in both
/// or in none.
async fn parts_agree(context: &SessionContext, aid: &str, time: Option<&str>) -> Compared {
    let Some(time) = time else { return Ok(None) };
    let since = "date_trunc('hour', now()) - INTERVAL '2 days'";
    let until = "date_trunc('hour', now())";
    let within = |from: &str, to: &str| {
        format!("FROM mentions WHERE aid = {aid} AND \"{time}\" >= {from} AND \"{time}\" < {to}")
    };
    let middle = format!(
        "SELECT CAST(\"{time}\" AS VARCHAR) AS middle {} ORDER BY \"{time}\" LIMIT 1 OFFSET 1",
        within(since, until)
    );
    let batches = context.sql(&middle).await?.collect().await?;
    let Some(middle) = batches.iter().find(|batch| batch.num_rows() > 0).map(text_of) else { return Ok(None) };
    let middle = format!("TIMESTAMP '{middle}'");
    let mut counts = [0; 3];
    for (count, (from, to)) in
        counts.iter_mut().zip([(since, until), (since, middle.as_str()), (middle.as_str(), until)])
    {
        *count = number(context, &format!("SELECT count(*) {}", within(from, to))).await?;
    }
    let [all, before, after] = counts;
    Ok(Some(match all == before + after {
        true => Ok(format!("{all} mentions in a window and in its two parts")),
        false => Err(format!(
            "a window has {all} mentions, but its two parts have {before} and {after}; check `end` and `instants` in [window]"
        )),
    }))
}

/// The first value of a batch, as text.
fn text_of(batch: &RecordBatch) -> String {
    array_value_to_string(batch.column(0), 0).unwrap_or_default()
}

/// Number of rows of a query.
async fn rows_of(context: &SessionContext, sql: &str) -> Result<usize> {
    let batches = context.sql(sql).await?.collect().await?;
    Ok(batches.iter().map(RecordBatch::num_rows).sum())
}

/// Result of a query that returns one instant.
async fn instant(context: &SessionContext, sql: &str) -> Result<Option<DateTime<Utc>>> {
    let batches = context.sql(sql).await?.collect().await?;
    let times = batches.iter().filter_map(|batch| batch.column(0).as_primitive_opt::<TimestampMicrosecondType>());
    let micros = times.flatten().flatten().next();
    Ok(micros.and_then(DateTime::from_timestamp_micros))
}

/// Result of a query that returns one number.
async fn number(context: &SessionContext, sql: &str) -> Result<i64> {
    let batches = context.sql(sql).await?.collect().await?;
    let first = batches.iter().find(|batch| batch.num_rows() > 0);
    Ok(first.map_or(0, |batch| batch.column(0).as_primitive::<Int64Type>().value(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_of_the_last_day_are_written_like_other_names() {
        let names = ["last_7_days", "LAST_7_DAYS", "last-7-days", "Last7Days", "last 7 days"];
        let written = names.map(|name| written_like(name, "last 24 hours"));
        assert_eq!(written, ["last_24_hours", "LAST_24_HOURS", "last-24-hours", "Last24Hours", "last 24 hours"]);
    }
}
