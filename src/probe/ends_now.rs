//! Determines which periods that have a name end now. A period that ends at midnight lacks the mentions of today: taken for one that
//! ends now, it would lose them without a sign.

use std::sync::Arc;

use super::asker::{Reply, own_name};
use super::candidates::{AID, DURATION, pair};
use super::dialogue::{Dialogue, FEW};
use super::effects::{DAY, MINUTE, ends_named, starts};
use super::observations::{Findings, Seen};
use super::scheduler::{Dimension, Kind, Try};
use super::shape::{Path, instant, is_local, leaves};
use super::zones;
use crate::error::Result;
use crate::profile::Zone;

/// Time in which mentions may arrive between two requests.
const MEANWHILE: i64 = 10 * MINUTE;

impl Dialogue {
    /// Drops the names of periods that no response shows to end now. Newest mentions are requested for some of them.
    pub(super) async fn names_that_end_now(&mut self, periods: &Dimension, newest: Option<i64>) -> Result<()> {
        /// Names whose newest mentions are requested.
        const NAMES: usize = 3;
        /// Requests reserved for later steps.
        const RESERVE: u64 = 10;
        let names: Vec<String> = self.found.window.names.iter().map(|(name, _)| name.clone()).collect();
        let mut requested = 0;
        let mut open = Vec::new();
        for name in names {
            let mut ends_now = self.found.is_seen_to_end_now(&self.seen, periods, &name);
            let has_today = self.seen.iter().any(|one| self.found.has_time_of_today(&one.reply));
            let order = self.newest_first().filter(|_| has_today);
            let is_worth = !ends_now && requested < NAMES && self.asker.left() > RESERVE;
            if let Some(order) = order.filter(|_| is_worth) {
                requested += 1;
                let size = self.accepted(FEW);
                let asked = [self.asking(size), vec![pair(DURATION, &name), order]].concat();
                if let Some(reply) = self.asker.ask("search", &asked).await? {
                    self.keep(Some(size), &Arc::new(reply));
                    ends_now = self.found.is_seen_to_end_now(&self.seen, periods, &name);
                }
            }
            if !ends_now {
                open.push(name);
            }
        }
        self.drop_names(&open, periods, newest);
        Ok(())
    }

    /// Removes names of periods from the window, and notes why.
    fn drop_names(&mut self, names: &[String], periods: &Dimension, newest: Option<i64>) {
        let window = &mut self.found.window;
        let (dropped, kept): (Vec<_>, Vec<_>) = window.names.drain(..).partition(|(name, _)| names.contains(name));
        window.names = kept;
        if dropped.is_empty() {
            return;
        }
        if window.widest.as_ref().is_some_and(|(label, _)| names.contains(label)) {
            self.found.window.widest = self.widest_left(periods, newest);
            self.found.widest_count = None;
        }
        let entries: Vec<String> = dropped
            .iter()
            .map(|(name, hours)| format!("{} = \"{hours}h\"", toml::Value::String(name.clone())))
            .collect();
        let parameter = match self.found.window.is_unknown() {
            true => format!("parameter = \"{}\", ", own_name(DURATION, &self.asker.names)),
            false => String::new(),
        };
        let text = format!(
            "no response shows that {} end now rather than at midnight, so they are not used; if they do, add to [window]: \
             {parameter}names = {{ {} }}, and run `savedsearch profile check`",
            names.join(", "),
            entries.join(", ")
        );
        self.found.could_not_tell("window", text);
    }

    /// The widest of the periods that are left in the window.
    fn widest_left(&self, periods: &Dimension, newest: Option<i64>) -> Option<(String, Vec<(String, String)>)> {
        let window = &self.found.window;
        let reach = |tried: &Try| match &tried.kind {
            Kind::Relative(unit, _) => tried.hours().filter(|_| window.units.iter().any(|(known, _)| known == unit)),
            Kind::Value | Kind::Absolute => {
                window.names.iter().find(|(name, _)| *name == tried.label).map(|(_, hours)| *hours)
            }
        };
        let effective = periods.taken().filter(|(tried, reply)| self.found.has_effect(periods, tried, reply, newest));
        let left = effective.filter_map(|(tried, _)| Some((reach(tried)?, tried)));
        let widest = left.max_by_key(|(hours, _)| *hours);
        widest.map(|(_, tried)| (tried.label.clone(), tried.pairs.clone()))
    }
}

impl Findings {
    /// True if a response shows that the period of this name ends now, and none shows that it does not.
    fn is_seen_to_end_now(&self, seen: &[Seen], periods: &Dimension, name: &str) -> bool {
        let of_name = |one: &&Seen| one.reply.asked.iter().any(|(known, value)| known == DURATION && value == name);
        let mut of_period = seen.iter().filter(of_name);
        let mut tried = periods.taken().filter(|(tried, _)| tried.label == name);
        let ends_now = tried.any(|(_, reply)| self.states_end_now(reply))
            || of_period.clone().any(|one| self.states_end_now(&one.reply) || self.has_time_of_today(&one.reply));
        ends_now && !of_period.any(|one| self.lacks_newer(seen, one))
    }

    /// True if a response shows by its timeline, or by an end with a zone, that its window ends after the last midnight. A stated end
    /// at or before it is believed, whatever the timeline has.
    fn states_end_now(&self, reply: &Reply) -> bool {
        let is_late = |end: i64| reply.date().is_some_and(|now| end >= now || end > self.last_midnight(now));
        stated_end(reply).map_or_else(|| !self.bucket_starts(reply).is_empty(), is_late)
    }

    /// True if a response has a mention that is newer than the last midnight, whatever the zone.
    fn has_time_of_today(&self, reply: &Reply) -> bool {
        let newest = self.zoned_times(reply).into_iter().max();
        newest.zip(reply.date()).is_some_and(|(at, now)| at > self.last_midnight(now))
    }

    /// True if the newest mentions of a window lack one that came with another request and is newer.
    fn lacks_newer(&self, seen: &[Seen], one: &Seen) -> bool {
        let times = self.zoned_times(&one.reply);
        let is_newest_first = times.is_sorted_by(|a, b| a >= b) && times.first() > times.last();
        let (Some(newest), Some(now)) = (times.first(), one.reply.date()) else { return false };
        let is_lacked = |at: &i64| (newest + MEANWHILE..now - MEANWHILE).contains(at);
        let aid = |seen: &Seen| seen.reply.asked.iter().find(|(name, _)| name == AID).cloned();
        let of_search = seen.iter().filter(|other| aid(other) == aid(one));
        one.size.is_some()
            && is_newest_first
            && self.is_plain(&one.reply)
            && of_search.flat_map(|other| self.zoned_times(&other.reply)).any(|at| is_lacked(&at))
    }

    /// The times of the mentions of a response that are known instants.
    fn zoned_times(&self, reply: &Reply) -> Vec<i64> {
        let rows = self.rows(reply).into_iter();
        let zoned = rows.filter(|row| self.time_zone.is_some() || self.has_local_time(row) != Some(true));
        zoned.filter_map(|row| self.time_of(row)).collect()
    }

    /// The latest midnight of all zones; if a person stated the zone, of that one and of UTC.
    fn last_midnight(&self, now: i64) -> i64 {
        let stated = self.named_zone.filter(|_| self.zone_is_stated).map(|zone| vec![zone, Zone::UTC]);
        let zones = stated.as_deref().unwrap_or(zones::all());
        let midnights = zones.iter().map(|zone| {
            let local = zones::local(*zone, now);
            zones::instant(*zone, local - local.rem_euclid(DAY))
        });
        midnights.filter(|at| *at <= now).max().unwrap_or(now)
    }
}

/// The end of the window that a response states, if it is written with a zone.
fn stated_end(reply: &Reply) -> Option<i64> {
    let leaves = reply.body.as_ref().map(leaves).unwrap_or_default();
    let moments: Vec<(Path, i64, bool)> =
        leaves.into_iter().filter_map(|(path, value)| Some((path, instant(value)?, is_local(value)))).collect();
    let begin = |(path, ..): &&(Path, i64, bool)| path.last().is_some_and(|name| starts(name));
    moments.iter().filter(begin).find_map(|(path, from, _)| {
        let beside = |other: &Path| other.len() == path.len() && other[..other.len() - 1] == path[..path.len() - 1];
        let mut ends = moments.iter().filter(|(other, to, _)| beside(other) && ends_named(other) && to > from);
        ends.next().filter(|(.., local)| !local).map(|(_, to, _)| *to)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::probe::shape::Columns;
    use crate::probe::vocabulary;

    /// The response to a period with mentions at these times, at 13:10 UTC.
    fn reply(name: &str, times: &[&str], window: Value) -> Reply {
        let items: Vec<Value> =
            times.iter().enumerate().map(|(n, at)| json!({"id": format!("m{n}-{at}"), "at": at})).collect();
        let date = http::HeaderValue::from_static("Tue, 30 Jun 2026 13:10:00 GMT");
        let headers = http::HeaderMap::from_iter([(http::header::DATE, date)]);
        let asked = [(DURATION.to_owned(), name.to_owned())];
        Reply::new(&asked, 200, headers, json!({"items": items, "window": window}).to_string())
    }

    fn ends_now(others: &[Reply], of_name: Reply) -> bool {
        let mut found = Findings { mentions: Some(vec!["items".to_owned()]), ..Findings::default() };
        let time = vec!["at".to_owned()];
        found.columns = Columns::of(vocabulary::MENTION, &found.rows(&of_name), &[("published_at", &time)]);
        let replies = others.iter().cloned().chain([of_name]);
        let seen: Vec<Seen> = replies.map(|reply| Seen { size: Some(20), reply: Arc::new(reply) }).collect();
        found.is_seen_to_end_now(&seen, &Dimension::default(), "week")
    }

    #[test]
    fn a_period_ends_now_only_if_a_response_shows_an_end_after_each_midnight() {
        let none = Value::Null;
        let of = |times: &[&str]| reply("week", times, none.clone());
        // The last midnight is that of UTC+11, ten minutes ago.
        assert!(ends_now(&[], of(&["2026-06-30T13:05:00Z", "2026-06-30T08:00:00Z"])));
        assert!(!ends_now(&[], of(&["2026-06-30T12:55:00Z", "2026-06-30T08:00:00Z"])));
        assert!(!ends_now(&[], of(&["2026-06-29T23:04:00Z", "2026-06-29T08:00:00Z"])));
        // Nothing shows the zone.
        assert!(!ends_now(&[], of(&["2026-06-30T13:05:00", "2026-06-30T08:00:00"])));
        let stated = |to: &str| {
            let window = json!({"from": "2026-06-23T00:00:00Z", "to": to});
            reply("week", &["2026-06-29T23:04:00Z", "2026-06-29T08:00:00Z"], window)
        };
        assert!(ends_now(&[], stated("2026-06-30T13:10:00Z")));
        assert!(!ends_now(&[], stated("2026-06-30T00:00:00Z")));
        assert!(!ends_now(&[], stated("2026-06-30T13:10:00")));
    }

    #[test]
    fn a_period_that_lacks_a_newer_mention_does_not_end_now() {
        let window = json!({"from": "2026-06-23T13:10:00Z", "to": "2026-06-30T13:10:00Z"});
        let week = reply("week", &["2026-06-29T23:04:00Z", "2026-06-29T08:00:00Z"], window);
        let day = reply("day", &["2026-06-29T18:00:00Z", "2026-06-30T12:22:00Z"], Value::Null);
        assert!(!ends_now(&[day], week));
    }
}
