//! Determines if relative periods end now. One that ends at midnight lacks the mentions of today: taken for one that ends now, it
//! would lose them without a sign.

use std::sync::Arc;

use super::asker::{Pair, Reply, own_name};
use super::candidates::{AID, DURATION, SORT, TIMEZONE};
use super::dialogue::{Dialogue, FEW};
use super::effects::{DAY, HOUR, MINUTE, ends_named, starts};
use super::observations::{Findings, Seen};
use super::scheduler::{Dimension, Kind, Try};
use super::shape::{Path, instant, is_local, leaves, utc};
use super::{vocabulary, zones};
use crate::error::{Result, Tool};
use crate::profile::Zone;

/// Time in which mentions may arrive between two requests.
const MEANWHILE: i64 = 10 * MINUTE;

/// A relative period of the window.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Period {
    Name(String),
    /// Any number in this notation with `{n}`.
    Number(String),
}

impl Period {
    fn is_of(&self, words: &str) -> bool {
        match self {
            Self::Name(name) => name == words,
            Self::Number(notation) => vocabulary::is_of(words, notation),
        }
    }

    /// The period as it is written, with `N` in the place of any number.
    fn text(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Number(notation) => notation.replace("{n}", "N"),
        }
    }

    /// True for periods that probably end alike: both have a number, or neither.
    fn is_like(&self, other: &Self) -> bool {
        let has_number = |period: &Self| match period {
            Self::Name(name) => name.contains(|c: char| c.is_ascii_digit()),
            Self::Number(_) => true,
        };
        has_number(self) == has_number(other)
    }
}

/// The end of a period, as responses show it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    /// It ends before now.
    Before,
    /// It ends now, for this reason.
    Now(String),
    /// No response shows it.
    Open,
}

impl Dialogue {
    /// Drops the periods that a response shows to end before now.
    pub(super) fn drop_ended(&mut self, periods: &Dimension, newest: Option<i64>) {
        let mut ended = self.found.relative_periods();
        ended.retain(|period| self.found.end_of(&self.seen, periods, period) == End::Before);
        self.drop_periods(&ended, periods, newest);
    }

    /// Determines which periods end now. The newest mentions of the widest one are requested if no response shows its end. Others like
    /// one that ends before now are dropped as well, unless a response shows that they end now.
    pub(super) async fn ends_of_periods(&mut self) -> Result<()> {
        let (periods, newest) = std::mem::take(&mut self.periods);
        if let Some((size, asked)) = self.newest_of_widest(&periods)
            && let Some(reply) = self.asker.ask("search", &asked).await?
        {
            self.keep(Some(size), &Arc::new(reply));
        }
        let (mut ended, mut open, mut shown) = (Vec::new(), Vec::new(), Vec::new());
        for period in self.found.relative_periods() {
            match self.found.end_of(&self.seen, &periods, &period) {
                End::Before => ended.push(period),
                End::Now(how) => shown.push((period, how)),
                End::Open => open.push(period),
            }
        }
        let is_doubtful = |period: &Period| ended.iter().any(|other| other.is_like(period));
        let (doubtful, assumed): (Vec<Period>, Vec<Period>) = open.into_iter().partition(is_doubtful);
        self.tell_ends(&shown, &assumed);
        self.drop_periods(&[ended, doubtful].concat(), &periods, newest);
        Ok(())
    }

    /// The page size and the request for the newest mentions of the widest period, if no response shows whether it ends now, and if a
    /// mention of today is known, so that the request does.
    fn newest_of_widest(&self, periods: &Dimension) -> Option<(u64, Vec<Pair>)> {
        /// Requests reserved for later steps.
        const RESERVE: u64 = 8;
        let (label, pairs) = self.found.window.widest.as_ref()?;
        let widest = self.found.relative_periods().into_iter().find(|period| period.is_of(label))?;
        let order = self.newest_first().filter(|_| self.asker.left() > RESERVE)?;
        let is_open = self.found.end_of(&self.seen, periods, &widest) == End::Open;
        let has_today = self.seen.iter().any(|seen| self.found.mention_of_today(&seen.reply).is_some());
        let size = self.accepted(FEW);
        (is_open && has_today).then(|| (size, [self.asking(size), pairs.clone(), vec![order]].concat()))
    }

    /// Notes the periods that responses show to end now, and those that are assumed to.
    fn tell_ends(&mut self, shown: &[(Period, String)], assumed: &[Period]) {
        let section = if self.found.window.names.is_empty() { "window.relative" } else { "window.names" };
        if !shown.is_empty() {
            let shown: Vec<String> = shown.iter().map(|(period, how)| format!("{}: {how}", period.text())).collect();
            self.found.saw(section, format!("periods that end now: {}", shown.join("; ")));
        }
        if !assumed.is_empty() {
            let text = format!(
                "that {} end now, and not at midnight, is assumed: no response shows it. A mention that they lack, and that is newer \
                 than all of theirs, would contradict it",
                texts_of(assumed)
            );
            self.found.could_not_tell(section, text);
        }
    }

    /// Removes periods from the window, and notes why.
    fn drop_periods(&mut self, dropped: &[Period], periods: &Dimension, newest: Option<i64>) {
        if dropped.is_empty() {
            return;
        }
        let is_name = |(name, _): &(String, i64)| dropped.contains(&Period::Name(name.clone()));
        let window = &mut self.found.window;
        let (names, kept): (Vec<_>, Vec<_>) = window.names.drain(..).partition(is_name);
        window.names = kept;
        window.units.retain(|(_, notation)| !dropped.contains(&Period::Number(notation.clone())));
        // One that was accepted without an effect may end as these do.
        window.is_checked = false;
        if window.widest.as_ref().is_some_and(|(label, _)| dropped.iter().any(|period| period.is_of(label))) {
            self.found.window.widest = self.widest_left(periods, newest);
            self.found.widest_count = None;
        }
        let entries: Vec<String> =
            names.iter().map(|(name, hours)| format!("{} = \"{hours}h\"", toml::Value::String(name.clone()))).collect();
        let parameter = match self.found.window.is_unknown() {
            true => format!("parameter = \"{}\", ", own_name(DURATION, &self.asker.names)),
            false => String::new(),
        };
        let what = match entries.as_slice() {
            [] => "set `relative` and `written` in [window]".to_owned(),
            entries => format!("add to [window]: {parameter}names = {{ {} }}", entries.join(", ")),
        };
        let text = format!(
            "{} lack newer mentions, or state an end before now, or are like such periods, so they are not used; if they end now, \
             {what}, and run {}",
            texts_of(dropped),
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
                let named = window.names.iter().find(|(name, _)| *name == tried.label).map(|(_, hours)| *hours);
                let mut notations = window.units.iter().map(|(_, notation)| notation);
                let is_numbered = notations.any(|notation| vocabulary::is_of(&tried.label, notation));
                named.or_else(|| tried.hours().filter(|_| is_numbered))
            }
        };
        let effective = periods.taken().filter(|(tried, reply)| self.found.has_effect(periods, tried, reply, newest));
        let left = effective.filter_map(|(tried, _)| Some((reach(tried)?, tried)));
        let widest = left.max_by_key(|(hours, _)| *hours);
        widest.map(|(_, tried)| (tried.label.clone(), tried.pairs.clone()))
    }
}

impl Findings {
    /// The periods of the window that have a name, and those with any number.
    fn relative_periods(&self) -> Vec<Period> {
        let names = self.window.names.iter().map(|(name, _)| Period::Name(name.clone()));
        names.chain(self.window.units.iter().map(|(_, notation)| Period::Number(notation.clone()))).collect()
    }

    /// The end of a period: before now by the end that a response states, or because it lacks newer mentions; now by its end, its
    /// timeline, or a mention of today.
    fn end_of(&self, seen: &[Seen], periods: &Dimension, period: &Period) -> End {
        let is_of = |reply: &Reply| reply.asked.iter().any(|(name, value)| name == DURATION && period.is_of(value));
        let tried = periods.taken().map(|(_, reply)| reply.as_ref());
        let replies = tried.chain(seen.iter().map(|one| one.reply.as_ref()));
        let replies: Vec<&Reply> = replies.filter(|reply: &&Reply| is_of(reply)).collect();
        let lacks = seen.iter().any(|one| is_of(&one.reply) && self.lacks_newer(seen, one));
        if lacks || replies.iter().any(|reply| states_earlier_end(reply)) {
            return End::Before;
        }
        if replies.iter().any(|reply| self.states_end_now(reply)) {
            return End::Now("a response states its end, or counts the mentions of the current day".to_owned());
        }
        let Some(at) = replies.iter().filter_map(|reply| self.mention_of_today(reply)).max() else { return End::Open };
        let (at, zones) = (utc(at).to_rfc3339(), zones::listed(&self.likely_zones()));
        End::Now(format!("it has a mention of {at}, after the last midnight of {zones}, and lacks none that came"))
    }

    /// True if a response states that its window ends now, or if an entry of its timeline with mentions covers this instant: entries
    /// without mentions may go on after the end of the window.
    fn states_end_now(&self, reply: &Reply) -> bool {
        let Some(now) = reply.date() else { return false };
        // A midnight within the last hour is none of these.
        let is_now = |end: i64| end >= now || (end > now - HOUR && end % (HOUR / 4) != 0);
        let times = self.timeline(reply);
        let zoned = times.iter().filter(|(time, _)| !is_local(time));
        let entries: Vec<(i64, u64)> = zoned.filter_map(|(time, count)| Some((instant(time)?, *count))).collect();
        let length = entries.windows(2).map(|pair| pair[1].0 - pair[0].0).filter(|length| *length > 0).min();
        let covers = |begin: i64| begin + length.map_or(HOUR, |length| length.min(DAY)) > now;
        stated_end(reply).is_some_and(is_now) || entries.iter().any(|(begin, count)| *count > 0 && covers(*begin))
    }

    /// The newest mention of a response, if it is of the current day in the zones that the service may have.
    fn mention_of_today(&self, reply: &Reply) -> Option<i64> {
        let (at, now) = (self.zoned_times(reply).into_iter().max()?, reply.date()?);
        let is_after_midnight = |zone: &Zone| {
            let local = zones::local(*zone, now);
            at > zones::instant(*zone, local - local.rem_euclid(DAY))
        };
        self.likely_zones().iter().all(is_after_midnight).then_some(at)
    }

    /// UTC and the zones that the service was seen or said to have.
    fn likely_zones(&self) -> Vec<Zone> {
        let default = self.zone.as_ref().and_then(|zone| Zone::named_otherwise(&zone.default));
        let seen = [self.named_zone, self.time_zone, self.timeline_zone, default].into_iter().flatten();
        let mut zones = vec![Zone::UTC];
        for zone in seen.chain(self.other_time_zones.iter().copied()) {
            if !zones.contains(&zone) {
                zones.push(zone);
            }
        }
        zones
    }

    /// True if the newest mentions of a window lack one that came with another request and is newer.
    fn lacks_newer(&self, seen: &[Seen], one: &Seen) -> bool {
        let times = self.zoned_times(&one.reply);
        let is_newest_first = times.is_sorted_by(|a, b| a >= b) && times.first() > times.last();
        let (Some(newest), Some(now)) = (times.first(), one.reply.date()) else { return false };
        let is_lacked = |at: &i64| (newest + MEANWHILE..now - MEANWHILE).contains(at);
        let value = |of: &Seen, parameter: &str| {
            of.reply.asked.iter().find(|(name, _)| name == parameter).map(|(_, value)| value.clone())
        };
        let by_time = |order: &String| {
            let mut sorts = self.sorts.iter().filter(|sort| sort.value == *order);
            sorts.any(|sort| sort.descending && sort.column == self.time_name())
        };
        // Times without a zone may be those of the requested one.
        let is_local = |other: &Seen| self.rows(&other.reply).iter().any(|row| self.has_local_time(row) == Some(true));
        let is_comparable = |other: &&Seen| {
            let same = |parameter: &str| value(other, parameter) == value(one, parameter);
            same(AID) && (same(TIMEZONE) || !is_local(other))
        };
        let mut others = seen.iter().filter(is_comparable).flat_map(|other| self.zoned_times(&other.reply));
        one.size.is_some()
            && is_newest_first
            && value(one, SORT).is_none_or(|order| by_time(&order))
            && self.is_plain(&one.reply)
            && others.any(|at| is_lacked(&at))
    }

    /// The times of the mentions of a response that are known instants.
    fn zoned_times(&self, reply: &Reply) -> Vec<i64> {
        let path = self.columns.path(self.time_name());
        let is_told = self.has_looked_for_zone && path.is_none_or(|path| !self.is_text_of_time(path));
        let rows = self.rows(reply).into_iter();
        let zoned = rows.filter(|row| is_told || self.time_zone.is_some() || self.has_local_time(row) != Some(true));
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

/// Periods as they are written, in a sentence.
fn texts_of(periods: &[Period]) -> String {
    periods.iter().map(Period::text).collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::probe::shape::{Columns, Series};

    /// The response to a period with mentions at these times, at 13:10 UTC.
    fn reply(name: &str, times: &[&str], window: Value) -> Reply {
        let items: Vec<Value> =
            times.iter().enumerate().map(|(n, at)| json!({"id": format!("m{n}-{at}"), "at": at})).collect();
        let date = http::HeaderValue::from_static("Tue, 30 Jun 2026 13:10:00 GMT");
        let headers = http::HeaderMap::from_iter([(http::header::DATE, date)]);
        let asked = [(DURATION.to_owned(), name.to_owned())];
        Reply::new(&asked, 200, headers, json!({"items": items, "window": window}).to_string())
    }

    fn end_of(others: &[Reply], of_name: Reply) -> End {
        end_if(false, others, of_name)
    }

    /// `has_looked`: the zone of times that are written without one was looked for.
    fn end_if(has_looked: bool, others: &[Reply], of_name: Reply) -> End {
        let mut found = Findings { mentions: Some(vec!["items".to_owned()]), ..Findings::default() };
        found.has_looked_for_zone = has_looked;
        let time = vec!["at".to_owned()];
        found.columns = Columns::of(vocabulary::MENTION, &found.rows(&of_name), &[("published_at", &time)]);
        let replies = others.iter().cloned().chain([of_name]);
        let seen: Vec<Seen> = replies.map(|reply| Seen { size: Some(20), reply: Arc::new(reply) }).collect();
        found.end_of(&seen, &Dimension::default(), &Period::Name("week".to_owned()))
    }

    fn is_now(end: &End) -> bool {
        matches!(end, End::Now(_))
    }

    #[test]
    fn the_end_that_a_response_states_is_that_of_its_period() {
        let stated = |to: &str| {
            let window = json!({"from": "2026-06-23T00:00:00Z", "to": to});
            reply("week", &["2026-06-29T23:04:00Z", "2026-06-29T08:00:00Z"], window)
        };
        assert!(is_now(&end_of(&[], stated("2026-06-30T13:10:00Z"))));
        assert!(is_now(&end_of(&[], stated("2026-06-30T13:08:12Z"))));
        assert!(is_now(&end_of(&[], stated("2026-07-01T00:00:00Z"))));
        assert_eq!(end_of(&[], stated("2026-06-30T00:00:00Z")), End::Before);
        // It may be the midnight of a zone, and nothing shows the zone of the other one.
        assert_eq!(end_of(&[], stated("2026-06-30T13:00:00Z")), End::Open);
        assert_eq!(end_of(&[], stated("2026-06-30T00:00:00")), End::Open);
    }

    #[test]
    fn an_entry_of_the_current_hour_without_mentions_shows_no_end() {
        let states = |count: u64| {
            let hours =
                json!([{"hour": "2026-06-30T12:00:00Z", "count": 3}, {"hour": "2026-06-30T13:00:00Z", "count": count}]);
            let series = Series::over_time(&hours).expect("a series");
            let timeline = Some((vec!["window".to_owned()], series));
            let found = Findings { timeline, ..Findings::default() };
            found.states_end_now(&reply("week", &["2026-06-29T08:00:00Z"], hours))
        };
        assert!(states(1));
        assert!(!states(0));
    }

    #[test]
    fn a_period_that_lacks_a_newer_mention_does_not_end_now() {
        let of = |at: &str| reply("week", &[at, "2026-06-29T08:00:00Z"], Value::Null);
        let day = reply("day", &["2026-06-29T18:00:00Z", "2026-06-30T12:22:00Z"], Value::Null);
        assert_eq!(end_of(std::slice::from_ref(&day), of("2026-06-29T23:04:00Z")), End::Before);
        assert!(is_now(&end_of(&[day], of("2026-06-30T12:22:00Z"))));
        assert_eq!(end_of(&[], of("2026-06-29T23:04:00Z")), End::Open);
    }

    #[test]
    fn mentions_in_another_order_or_zone_show_no_earlier_end() {
        let date = http::HeaderValue::from_static("Tue, 30 Jun 2026 13:10:00 GMT");
        let headers = http::HeaderMap::from_iter([(http::header::DATE, date)]);
        let of = |asked: &[(&str, &str)], times: [&str; 2]| {
            let asked: Vec<Pair> =
                asked.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let items = times.map(|at| json!({"id": at, "at": at}));
            Reply::new(&asked, 200, headers.clone(), json!({"items": items}).to_string())
        };
        let newest = ["2026-06-29T23:04:00Z", "2026-06-29T08:00:00Z"];
        let today = of(&[], ["2026-06-29T18:00:00Z", "2026-06-30T12:22:00Z"]);
        assert_eq!(end_of(std::slice::from_ref(&today), of(&[(DURATION, "week")], newest)), End::Before);
        let by_reach = of(&[(DURATION, "week"), (SORT, "reach_desc")], newest);
        assert_eq!(end_of(&[today], by_reach), End::Open);
        let local = of(&[(TIMEZONE, "+05:30")], ["2026-06-29 18:00:00", "2026-06-30 12:22:00"]);
        assert_eq!(end_of(&[local], of(&[(DURATION, "week")], newest)), End::Open);
    }

    #[test]
    fn times_without_a_zone_show_the_end_of_a_period_once_their_zone_is_known() {
        let of = |at: &str| reply("week", &[at, "2026-06-29 08:00:00"], Value::Null);
        let day = reply("day", &["2026-06-29 18:00:00", "2026-06-30 12:22:00"], Value::Null);
        assert_eq!(end_if(false, std::slice::from_ref(&day), of("2026-06-29 23:04:00")), End::Open);
        assert_eq!(end_if(true, &[day], of("2026-06-29 23:04:00")), End::Before);
    }

    #[test]
    fn periods_with_numbers_probably_end_alike() {
        let [week, days, other] = ["week", "last_7_days", "7 days"].map(|name| Period::Name(name.to_owned()));
        let number = Period::Number("P{n}D".to_owned());
        assert!(days.is_like(&other) && days.is_like(&number) && !days.is_like(&week));
        assert!(number.is_of("P60D") && !number.is_of("week"));
        assert_eq!(texts_of(&[week, number]), "week, PND");
    }
}
