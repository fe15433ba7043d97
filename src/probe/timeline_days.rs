//! Determines whose days the timeline counts, and by which time of mentions.
//!
//! Days that are named by dates do not show when they begin. Their counts do, in two zones or beside the mentions of a day. Two zones
//! are compared before windows of days and the depth of paging are tried: they take one request, and no other step shows the zone at any
//! hour of the day.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::asker::{Pair, Reply};
use super::candidates::{AID, OFFSET, SIZE, SORT, TIMEZONE, pair};
use super::dialogue::{Dialogue, TRIAL};
use super::judge::kind_of_zone;
use super::observations::{Findings, Zone};
use super::shape::Type;
use super::zones as clocks;
use crate::error::Result;
use crate::profile::Zone as Clock;

impl Dialogue {
    /// Determines whose days the timeline counts, and by which time of mentions.
    pub(super) async fn days(&mut self) -> Result<()> {
        if !self.found.counts_days {
            self.compare_zones().await?;
        }
        if self.found.counts_days {
            self.days_of_mentions();
        }
        Ok(())
    }

    /// Compares the same window in two zones: days that are named by dates do not show when they begin, but their counts do.
    async fn compare_zones(&mut self) -> Result<()> {
        if self.found.timeline.is_some() && !self.found.has_plain_days {
            let text = self.zone_parameter();
            self.open_zone(&format!("{text}, and the beginnings of the timeline's days fit several zones"));
            return Ok(());
        }
        let text = &format!("{}, and whose days the timeline counts was not seen", self.zone_parameter());
        let is_known = self.zone_days.is_some();
        let came = is_known || self.found.idle_zone.is_some();
        let taken = self.zones_taken().filter(|_| came || self.asker.left() > TRIAL);
        let Some(Taken { kind, utc, other }) = taken else {
            return self.days_alone(text).await;
        };
        if !is_known {
            self.zone_days = self.days_in_two_zones(other, utc).await?;
        }
        let Some([here, there]) = self.zone_days.clone() else {
            return self.days_alone(text).await;
        };
        let (is_enough, moved) = (common(&here, &there) >= DAYS, differ(&here, &there));
        if is_enough && !moved {
            self.old_mentions().await?;
        }
        match (is_enough, moved, self.zones_of_days().as_deref()) {
            // Mentions that arrive late change days as well.
            (true, true, _) if self.counts_other_days(other) => self.open_zone(&format!(
                "the timeline's days have other counts with timezone={other}, but are not days of that zone"
            )),
            (true, true, _) => {
                self.found.saw("timezone", format!("the timeline's days have other counts with timezone={other}"));
                // Windows may have been seen to be of another zone, whatever is sent.
                if self.found.zone.is_none() {
                    self.found.zone = Some(Zone { kind, default: utc.to_owned() });
                    self.found.counts_days = true;
                }
            }
            (true, false, Some(fitting)) => self.days_are_of(fitting),
            (true, false, None) => self.open_zone("the timezone parameter has no effect"),
            (false, ..) => self.open_zone(text),
        }
        Ok(())
    }

    /// True if mentions in responses for the other zone are counted on days of a different one.
    fn counts_other_days(&self, other: &str) -> bool {
        let zone = "+05:30".parse::<Clock>();
        zone.is_ok_and(|zone| self.found.counts_other_days(&self.seen, zone, other))
    }

    /// Requests old mentions, which are from before a change of clocks, as long as several zones have as many mentions a day as the
    /// timeline says.
    async fn old_mentions(&mut self) -> Result<()> {
        /// Pages that are requested.
        const PAGES: u64 = 3;
        if !self.found.has_plain_days {
            return Ok(());
        }
        for number in 0..PAGES {
            if self.asker.left() <= TRIAL || !self.may_tell_zone(number) || !self.old_page(number).await? {
                break;
            }
        }
        Ok(())
    }

    /// True if the page of this number behind the oldest mentions may tell whose days the timeline counts.
    fn may_tell_zone(&self, number: u64) -> bool {
        let (fitting, oldest) = (self.zones_of_days(), self.known_times().last().copied());
        let tells = |fitting: &[Clock]| {
            let oldest = oldest.into_iter().flat_map(|at| fitting.iter().map(move |zone| clocks::local(*zone, at)));
            oldest.collect::<BTreeSet<i64>>().len() > 1
        };
        match fitting.as_deref() {
            // Too few mentions came, or their times are not known.
            None => number == 0 && self.found.unknown_times.is_empty(),
            Some(fitting) => {
                fitting.len() > 1 && self.found.told_zone(fitting).is_none() && (number == 0 || tells(fitting))
            }
        }
    }

    /// The zones whose days have as many mentions as the timeline says. `None` if too few mentions came.
    fn zones_of_days(&self) -> Option<Vec<Clock>> {
        let others = clocks::all().iter().copied().filter(|zone| self.found.named_zone != Some(*zone));
        let among: Vec<Clock> = self.found.named_zone.into_iter().chain(others).collect();
        self.found.zones_of_days(&self.seen, &among)
    }

    /// The effect of the parameter of the zone on the timeline, in words.
    fn zone_parameter(&self) -> &'static str {
        match () {
            () if self.found.timeline.is_none() => "no timeline shows an effect of the timezone parameter",
            () if self.found.with.iter().any(|(name, _)| name == TIMEZONE) => "each search requests UTC",
            () if self.found.takes_no_zone || self.asker.refuses(TIMEZONE) => "the service accepts no timezone",
            () if self.found.zone_taken.is_none() => "no search with the timezone parameter was answered",
            () => "the timezone parameter had no visible effect",
        }
    }

    /// Requests the days of the widest window in a second zone before the steps that send many requests. Days that follow the requested
    /// zone show whose they are at once, and windows of days are then judged in two zones. Only one request is sent: the days in
    /// another zone or without one came before.
    pub(super) async fn days_in_other_zone(&mut self) -> Result<()> {
        let is_open = self.found.has_plain_days && self.found.zone.is_none() && self.zone_days.is_none();
        let Some(Taken { utc, other, .. }) = self.zones_taken().filter(|_| is_open) else { return Ok(()) };
        let plain = self.days_seen(None).map(|days| (days, other));
        let known = plain.or_else(|| Some((self.days_seen(Some(other))?, utc)));
        let Some((first, zone)) = known else { return Ok(()) };
        let Some(second) = self.days_of(zone).await? else { return Ok(()) };
        let days = [first, second];
        self.learn_idle(&days, other);
        // Equal days may be those of the other zone in both, which is told later.
        self.zone_days = Some(days).filter(follow);
        Ok(())
    }

    /// A zone other than UTC as the value of the zone parameter, if the days of the timeline were seen to follow it.
    pub(super) fn zone_of_other_days(&self) -> Option<(Clock, Pair)> {
        self.zone_days.as_ref().filter(|days| follow(days))?;
        let Taken { other, .. } = self.zones_taken()?;
        Some(("+05:30".parse().ok()?, pair(TIMEZONE, other)))
    }

    /// The whole days of the widest window in two zones, of which one may be that of requests without a zone. `None` if there are not
    /// as many responses.
    async fn days_in_two_zones(&mut self, other: &str, utc: &str) -> Result<Option<[Days; 2]>> {
        let mut seen = self.days_seen(None).into_iter().collect::<Vec<_>>();
        for zone in [other, utc] {
            if seen.len() == 2 && (differ(&seen[0], &seen[1]) || self.are_of_third_zone()) {
                break;
            }
            let Some(days) = self.days_of(zone).await? else { break };
            // The zone that applies by default may be the other one.
            seen.truncate(1);
            seen.push(days);
            if let [one, two] = seen.as_slice() {
                self.learn_idle(&[one.clone(), two.clone()], other);
            }
        }
        Ok(seen.try_into().ok())
    }

    /// Learns from two timelines with the same days that this zone, in which one of them was requested, has no effect on them, unless
    /// it applies by default: responses in it show whose days those without a zone are.
    fn learn_idle(&mut self, [one, other]: &[Days; 2], zone: &str) {
        let is_same = common(one, other) >= DAYS && !differ(one, other);
        self.found.idle_zone = is_same.then(|| zone.to_owned());
    }

    /// True if the mentions show that the days are not those of the other zone that was requested: if they are the same without a zone,
    /// they are the same for any.
    fn are_of_third_zone(&self) -> bool {
        let fitting = self.zones_of_days().zip("+05:30".parse::<Clock>().ok());
        fitting.is_some_and(|(fitting, other)| !fitting.iter().any(|zone| zone.has_rules_of(other)))
    }

    /// The whole days of the widest window in a zone, which are requested unless they came. `None` if there is no response.
    async fn days_of(&mut self, zone: &str) -> Result<Option<Days>> {
        if let Some(days) = self.days_seen(Some(zone)) {
            return Ok(Some(days));
        }
        if self.asker.left() <= TRIAL {
            return Ok(None);
        }
        let Some(reply) = self.oldest_in(zone).await? else { return Ok(None) };
        let days = whole_days(&self.found, &reply);
        self.days_of_zones.insert(zone.to_owned(), days.clone());
        Ok(Some(days))
    }

    /// The whole days of the widest window in a zone, or without one, if they came: those without one are on the pages of the window.
    fn days_seen(&self, zone: Option<&str>) -> Option<Days> {
        if let Some(days) = zone.and_then(|zone| self.days_of_zones.get(zone)) {
            return Some(days.clone());
        }
        let asked = [self.widest(), zone.map(|zone| pair(TIMEZONE, zone)).into_iter().collect()].concat();
        let plain = |name: &String| [AID, SIZE, OFFSET, SORT].contains(&name.as_str());
        let like = |reply: &Reply| {
            let extra = reply.asked.iter().filter(|(name, _)| !plain(name));
            let extra: Vec<&Pair> =
                extra.filter(|pair| !self.found.with.contains(pair) && !self.found.is_flag(&pair.0)).collect();
            extra.len() == asked.len() && asked.iter().all(|pair| extra.contains(&pair))
        };
        let replies = self.seen.iter().rev().map(|seen| &seen.reply).filter(|reply| like(reply));
        replies.map(|reply| whole_days(&self.found, reply)).find(|days| days.len() > 1)
    }

    /// The widest window in a zone, with its oldest mentions if one response has both: those may be from before a change of clocks.
    async fn oldest_in(&mut self, zone: &str) -> Result<Option<Reply>> {
        if let Some((size, asked)) = self.asking_oldest().filter(|_| self.found.with_overview) {
            let asked = [asked, vec![pair(TIMEZONE, zone)]].concat();
            if let Some(reply) = self.asker.ask("search", &asked).await?.filter(|reply| !reply.is_refusal()) {
                self.keep(Some(size), &Arc::new(reply.clone()));
                return Ok(Some(reply));
            }
        }
        self.widest_in(zone).await
    }

    /// The widest window in a zone.
    async fn widest_in(&mut self, zone: &str) -> Result<Option<Reply>> {
        let asked = [vec![self.aid()], self.found.with.clone(), self.widest(), vec![pair(TIMEZONE, zone)]].concat();
        self.asker.ask("search", &asked).await
    }

    /// The zones that were accepted without a visible effect, if a timeline may show one.
    fn zones_taken(&self) -> Option<Taken> {
        let label = self.found.zone_taken.as_deref().filter(|_| self.found.timeline.is_some())?;
        let (kind, utc) = kind_of_zone(label);
        let other = match kind {
            "iana" => "Asia/Kolkata",
            "offset" => "+05:30",
            "utc_offset" => "UTC+05:30",
            _ => "330",
        };
        Some(Taken { kind, utc, other })
    }

    /// Determines if days that are dates are those of the requested zone, by their counts in two zones: the numbers of mentions since
    /// midnights of UTC then show the zone of times that are written without one. `true` if they are.
    pub(super) async fn days_follow_zone(&mut self) -> Result<bool> {
        /// Requests for it.
        const ZONES: u64 = 2;
        let is_open = self.found.has_plain_days && self.found.zone.is_none() && self.zone_days.is_none();
        let taken = self.zones_taken().filter(|_| is_open && self.asker.left() >= TRIAL + ZONES);
        let Some(Taken { utc, other, .. }) = taken else { return Ok(false) };
        let (Some(there), Some(here)) = (self.widest_in(other).await?, self.widest_in(utc).await?) else {
            return Ok(false);
        };
        let days = [&there, &here].map(|reply| whole_days(&self.found, reply));
        let follows = differ(&days[0], &days[1]);
        self.zone_days = Some(days);
        if follows {
            self.found.utc_days = Some(utc.to_owned());
            self.keep(None, &Arc::new(here));
        }
        Ok(follows)
    }

    /// Checks that the days of the timeline count mentions by the time that windows refer to. If mentions have several times, only
    /// their numbers show it.
    fn days_of_mentions(&mut self) {
        let zone = self.found.zone.as_ref().filter(|zone| zone.kind == "ignored");
        let zone = zone.and_then(|zone| zone.default.parse().ok()).unwrap_or(Clock::UTC);
        let times = self.found.columns.columns.iter().filter(|(.., kind)| *kind == Type::Timestamp).count();
        let text = match self.found.zones_of_days(&self.seen, &[zone]).as_deref() {
            Some([]) => "days of the timeline have other numbers of mentions than were read",
            None if times > 1 => {
                "mentions have several times, and no response showed which of them the timeline counts by"
            }
            _ => return,
        };
        self.found.counts_days = false;
        self.found.could_not_tell("counts.days", format!("{text}; mentions are counted by day one by one"));
    }

    /// Judges the days of the timeline without a response for another zone: if they are those of one zone, that one is sent.
    async fn days_alone(&mut self, text: &str) -> Result<()> {
        self.old_mentions().await?;
        match self.zones_of_days() {
            Some(fitting) if self.found.told_zone(&fitting).is_some() => {
                self.days_are_of(&fitting);
                let text = "whether the timezone parameter has an effect was not seen; the same zone is always sent";
                self.found.could_not_tell("timezone", text);
            }
            _ => self.open_zone(text),
        }
        Ok(())
    }

    /// Notes the zone of the days of a timeline that has the same days whatever is sent, if only one zone has so many mentions a
    /// day.
    fn days_are_of(&mut self, fitting: &[Clock]) {
        let Some(zone) = self.found.told_zone(fitting) else {
            let fits = match fitting {
                [] => "none that is known has as many mentions a day".to_owned(),
                _ => format!("{} have as many mentions a day as were read", clocks::listed(fitting)),
            };
            return self.open_zone(&format!(
                "the timezone parameter has no effect; the zone of the days of the timeline is unknown: {fits}"
            ));
        };
        let text = format!("the timeline's days are those of {zone}: the mentions of each day show it");
        self.found.saw("timezone", text);
        self.found.timeline_zone = Some(zone);
        let own = Zone { kind: "ignored", default: self.found.sent_as(zone) };
        // Windows may be of days of another zone.
        self.found.counts_days = self.found.zone.as_ref().is_none_or(|known| *known == own);
        self.found.zone.get_or_insert(own);
    }

    /// Notes that the zone of the timeline's days is not known. Days that are named by dates are not used then.
    fn open_zone(&mut self, text: &str) {
        self.found.zone_is_unknown = self.found.has_plain_days;
        let unused =
            if self.found.has_plain_days { ". Its days are not used; set [timezone] and [tables.volume]" } else { "" };
        self.found.could_not_tell("timezone", format!("{text}{unused}"));
    }
}

/// Days that two timelines must have in common to be compared.
const DAYS: usize = 2;

/// Days of a timeline, with their counts.
pub(super) type Days = BTreeMap<String, u64>;

/// Zones that a service accepts: their kind, UTC, and another one.
struct Taken {
    kind: &'static str,
    utc: &'static str,
    other: &'static str,
}

/// The whole days of a timeline, with their counts: without the first and the last one, which the window may cut.
fn whole_days(found: &Findings, reply: &Reply) -> Days {
    let mut entries = found.timeline(reply);
    entries.pop();
    entries.into_iter().skip(1).map(|(day, count)| (day.to_string(), count)).collect()
}

/// The number of days that both timelines have.
fn common(one: &Days, other: &Days) -> usize {
    one.keys().filter(|day| other.contains_key(*day)).count()
}

/// True if the days of two timelines, which were requested in different zones, show that they are those of the requested one.
fn follow([one, other]: &[Days; 2]) -> bool {
    common(one, other) >= DAYS && differ(one, other)
}

/// True if a day has other counts in one timeline than in the other.
fn differ(one: &Days, other: &Days) -> bool {
    one.iter().any(|(day, count)| other.get(day).is_some_and(|there| there != count))
}
