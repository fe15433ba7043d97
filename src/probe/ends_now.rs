//! Drops named periods that end before now. A period that ends at midnight lacks the mentions of today: taken for one that ends now, it
//! would lose them without a sign.

use super::asker::{Reply, own_name};
use super::candidates::{AID, DURATION};
use super::dialogue::Dialogue;
use super::effects::{HOUR, MINUTE, ends_named, starts};
use super::observations::{Findings, Seen};
use super::scheduler::{Dimension, Kind, Try};
use super::shape::{Path, instant, is_local, leaves};
use crate::error::Tool;

/// Time in which mentions may arrive between two requests.
const MEANWHILE: i64 = 10 * MINUTE;

impl Dialogue {
    /// Drops the names of periods that a response shows to end before now.
    pub(super) fn drop_names_that_ended(&mut self, periods: &Dimension, newest: Option<i64>) {
        let names = self.found.window.names.iter().map(|(name, _)| name.clone());
        let ended: Vec<String> = names.filter(|name| self.found.has_ended(&self.seen, periods, name)).collect();
        self.drop_names(&ended, periods, newest);
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
            "{} lack newer mentions, or state an end before now, so they are not used; if they end now, add to [window]: \
             {parameter}names = {{ {} }}, and run {}",
            names.join(", "),
            entries.join(", "),
            Tool::CheckProfile
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
    /// True if a response shows that the period of this name ends before now: by its end, or because it lacks newer mentions.
    fn has_ended(&self, seen: &[Seen], periods: &Dimension, name: &str) -> bool {
        let of_name = |one: &&Seen| one.reply.asked.iter().any(|(known, value)| known == DURATION && value == name);
        let mut tried = periods.taken().filter(|(tried, _)| tried.label == name);
        tried.any(|(_, reply)| states_earlier_end(reply))
            || seen.iter().filter(of_name).any(|one| states_earlier_end(&one.reply) || self.lacks_newer(seen, one))
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
}

/// True if a response states that its window ended an hour ago or earlier.
fn states_earlier_end(reply: &Reply) -> bool {
    stated_end(reply).zip(reply.date()).is_some_and(|(end, now)| end <= now - HOUR)
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
    use std::sync::Arc;

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

    fn has_ended(others: &[Reply], of_name: Reply) -> bool {
        let mut found = Findings { mentions: Some(vec!["items".to_owned()]), ..Findings::default() };
        let time = vec!["at".to_owned()];
        found.columns = Columns::of(vocabulary::MENTION, &found.rows(&of_name), &[("published_at", &time)]);
        let replies = others.iter().cloned().chain([of_name]);
        let seen: Vec<Seen> = replies.map(|reply| Seen { size: Some(20), reply: Arc::new(reply) }).collect();
        found.has_ended(&seen, &Dimension::default(), "week")
    }

    #[test]
    fn a_period_that_states_an_earlier_end_does_not_end_now() {
        let stated = |to: &str| {
            let window = json!({"from": "2026-06-23T00:00:00Z", "to": to});
            reply("week", &["2026-06-29T23:04:00Z", "2026-06-29T08:00:00Z"], window)
        };
        assert!(!has_ended(&[], stated("2026-06-30T13:10:00Z")));
        assert!(has_ended(&[], stated("2026-06-30T00:00:00Z")));
        // Nothing shows the zone.
        assert!(!has_ended(&[], stated("2026-06-30T00:00:00")));
    }

    #[test]
    fn a_period_that_lacks_a_newer_mention_does_not_end_now() {
        let of = |at: &str| reply("week", &[at, "2026-06-29T08:00:00Z"], Value::Null);
        let day = reply("day", &["2026-06-29T18:00:00Z", "2026-06-30T12:22:00Z"], Value::Null);
        assert!(has_ended(std::slice::from_ref(&day), of("2026-06-29T23:04:00Z")));
        assert!(!has_ended(&[day], of("2026-06-30T12:22:00Z")));
        assert!(!has_ended(&[], of("2026-06-29T23:04:00Z")));
    }
}
