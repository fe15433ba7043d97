//! Rounds of candidates for windows, zones, sort orders and filters: several in a request, since each has its effect in its own part of a
//! response.
//!
//! The scheduler sends them. This file decides which candidates there are, in which order, and when others are not worth a request.

use std::collections::VecDeque;

use super::asker::{Pair, Reply, own_name};
use super::candidates::{
    ALONE, DURATION, LONG, NONSENSE, SIZE, SORT, Spoken, TIMEZONE, any_notation, are_told, more_filters, more_orders,
    more_periods, more_zones, notation, pair, span, template_of, unit_at, window_in_one, window_of,
};
use super::dialogue::{Dialogue, LOOK};
use super::effects::KOLKATA;
use super::judge::kind_of_zone;
use super::observations::{Findings, MentionsParameter};
use super::scheduler::{self, Dimension, Kind, Outcome, Try};
use super::shape::Path;
use super::vocabulary;
use crate::error::Result;

impl Dialogue {
    /// Tries windows, zones, sort orders and filters, several in one request.
    pub(super) async fn rounds(&mut self) -> Result<()> {
        // Periods that were requested beside other parameters refer to the same time.
        let beside = self.beside.take().filter(|_| !self.knows_periods());
        let newest = beside.as_ref().and_then(|beside| beside.newest);
        let newest = newest.or_else(|| self.instants(&self.samples.iter().collect::<Vec<_>>()).into_iter().max());
        let mut periods = beside.map_or_else(super::candidates::periods, |beside| beside.periods);
        self.add_known_periods(&mut periods, newest);
        let filters = if self.found.mentions.is_some() { self.filters() } else { Vec::new() };
        let filters = Dimension::new("filter", filters);
        let round = Round { periods, zones: self.zones(), orders: self.orders(), filters };
        let Round { periods, zones, orders, filters } = self.try_round(round, newest).await?;
        for (_, reply) in orders.taken().chain(filters.taken()).chain(periods.taken()) {
            let size = reply.asked.iter().find(|(name, _)| name == SIZE);
            let size: Option<u64> = size.and_then(|(_, size)| size.parse().ok());
            if !self.seen.iter().any(|seen| seen.reply.asked == reply.asked) {
                self.keep(size.or(Some(self.accepted(LOOK))), reply);
            }
        }
        self.look_at_mentions();
        self.follow_zone(&zones);
        if self.found.window.widest.is_none() {
            self.judge_periods(&periods, newest);
        }
        self.judge_zones(&zones);
        self.judge_orders(&orders);
        self.drop_ended(&periods, newest);
        self.judge_filters(&filters);
        self.echoes(&periods, &zones);
        self.periods = (periods, newest);
        Ok(())
    }

    /// Adds the periods and the ends of a window that are known before the first request.
    fn add_known_periods(&self, periods: &mut Dimension, newest: Option<i64>) {
        /// Periods that are worth a request each.
        const PERIODS: usize = 5;
        let facts = &self.known.facts;
        // A week first, then the longest ones.
        let mut known = facts.values(DURATION);
        known.sort_by_key(|value| vocabulary::hours(value).map_or((1, 0), |hours| (i64::from(hours != 168), -hours)));
        for value in known.into_iter().take(PERIODS).rev() {
            if facts.ends().is_some() && facts.all(DURATION).is_empty() && vocabulary::hours(&value).is_none() {
                continue;
            }
            // Of a complete list, no other number is one.
            let form = if facts.all(DURATION).is_empty() { self.notation_of(&value) } else { None };
            let tried = match (form, newest.zip(template_of(&value, ""))) {
                (Some((unit, template)), _) => Try::relative(DURATION, unit, &template, LONG[unit_at(unit)]),
                (None, Some((newest, (separator, how)))) => window_in_one(span(newest), &separator, how),
                (None, None) => Try::new(value.clone(), DURATION, value.clone()),
            };
            // The control comes first, and a name as it was given comes after its notation with another number.
            let is_name = matches!(tried.kind, Kind::Relative(..)) && notation(&value).is_none();
            let as_given = is_name.then(|| Try::new(value.clone(), DURATION, value.clone()));
            for tried in as_given.into_iter().chain([tried]) {
                periods.queue.retain(|other| other.pairs != tried.pairs);
                periods.queue.insert(1, tried);
            }
        }
        if let (Some((since, until, how)), Some(newest)) = (facts.ends(), newest) {
            let ends = [(since, until)];
            // With a period beside them if there is one: `duration=custom`.
            for value in facts.values(DURATION).into_iter().filter(|value| vocabulary::hours(value).is_none()) {
                periods.queue.insert(1, window_of(&ends, span(newest), how, [pair(DURATION, value)]));
            }
            periods.queue.insert(1, window_of(&ends, span(newest), how, []));
        }
    }

    /// Zones to try, in the notation that is known. Without a timeline no effect would show, but the acceptance of a form does.
    fn zones(&self) -> Dimension {
        let zones = |names: [&str; 2]| Dimension::new("zone", names.map(|zone| Try::new(zone, TIMEZONE, zone)));
        if self.found.timeline.is_none() {
            return zones(["UTC", "+00:00"]);
        }
        let mut zones = zones(["Asia/Kolkata", "+05:30"]);
        for value in self.known.facts.values(TIMEZONE) {
            let other = match kind_of_zone(&value).0 {
                "offset" => "+05:30",
                "utc_offset" => "UTC+05:30",
                "minutes" => "330",
                _ => continue,
            };
            zones.add_first(Try::new(other, TIMEZONE, other));
        }
        zones
    }

    /// Sort orders to try: a control, and those that are known, or a usual one.
    fn orders(&self) -> Dimension {
        /// Sort orders that are worth a request each.
        const ORDERS: usize = 6;
        let mut orders = Dimension::new("order", []);
        if self.found.mentions.is_none() {
            return orders;
        }
        orders.add(Try::new(NONSENSE, SORT, NONSENSE));
        let (given, all) = (self.known.facts.values(SORT), self.known.facts.all(SORT));
        if given.is_empty() {
            orders.add(Try::new(vocabulary::SORTS[0], SORT, vocabulary::SORTS[0]));
        }
        let reversed = |value: &String| all.is_empty().then(|| super::candidates::reverse(value));
        let tried = given.iter().flat_map(|value| [Some(value.clone()), reversed(value)]).flatten();
        for value in tried.take(ORDERS) {
            orders.add(Try::new(value.clone(), SORT, value));
        }
        orders
    }

    /// Sends the candidates with the parameters that show their effects.
    async fn try_round(&mut self, round: Round, newest: Option<i64>) -> Result<Round> {
        let Round { mut periods, mut zones, mut orders, mut filters } = round;
        let (aid, asking) = (self.aid(), self.asking(self.accepted(LOOK)));
        if self.found.timeline.is_none() && self.found.mentions.is_some() {
            // Only the oldest mention shows how far back a window reaches.
            let mut some = [orders, zones];
            self.try_all(&asking, &mut some, newest).await?;
            [orders, zones] = some;
            orders.taken().for_each(|(_, reply)| self.keep(Some(self.accepted(LOOK)), reply));
            self.look_at_mentions();
            self.follow_zone(&zones);
            let oldest = orders.taken().find(|(_, reply)| {
                self.orders_of(&self.rows(reply), "").first().is_some_and(|(by, last)| by == "published_at" && !last)
            });
            let mut fixed = self.asking(self.accepted(LOOK));
            fixed.extend(oldest.map(|(tried, _)| pair(SORT, &tried.label)));
            if self.is_example_answered && self.known.facts.values(DURATION).is_empty() {
                self.try_known_ends(&fixed, &mut periods, newest).await?;
            }
            let mut others = [periods, filters];
            self.try_all(&fixed, &mut others, newest).await?;
            [periods, filters] = others;
        } else if self.found.with_overview || self.found.mentions.is_none() || self.found.overview.is_none() {
            let mut all = [periods, zones, orders, filters];
            let fixed = if self.found.mentions.is_some() { asking } else { vec![aid] };
            self.try_all(&fixed, &mut all, newest).await?;
            [periods, zones, orders, filters] = all;
        } else {
            let mut some = [periods, zones];
            self.try_all(&[aid], &mut some, newest).await?;
            [periods, zones] = some;
            self.judge_periods(&periods, newest);
            let mut fixed = asking;
            fixed.extend(self.widest());
            let mut others = [orders, filters];
            self.try_all(&fixed, &mut others, newest).await?;
            [orders, filters] = others;
        }
        Ok(Round { periods, zones, orders, filters })
    }

    /// Tries the ends of a window that an example has, without a filter: mentions alone show their effect, and a filter may leave none.
    async fn try_known_ends(&mut self, fixed: &[Pair], periods: &mut Dimension, newest: Option<i64>) -> Result<()> {
        let (ends, others): (VecDeque<Try>, VecDeque<Try>) = periods.queue.drain(..).partition(Try::is_absolute);
        let mut alone = [Dimension::new("ends", ends)];
        self.try_all(fixed, &mut alone, newest).await?;
        let [alone] = alone;
        periods.queue.extend(others.into_iter().chain(alone.queue));
        periods.done.extend(alone.done);
        Ok(())
    }

    /// Tries all candidates of some dimensions, beside these parameters.
    pub(super) async fn try_all<const N: usize>(
        &mut self,
        fixed: &[Pair],
        dimensions: &mut [Dimension; N],
        newest: Option<i64>,
    ) -> Result<()> {
        // Requests reserved for the remaining steps: for those that a profile cannot do without, or for all.
        const LEAST: u64 = 5;
        const ALL: u64 = 9;
        // For the zone of times that are written without one, once a period is known.
        const ZONE: u64 = 3;
        let parts = [self.found.overview.as_ref(), self.found.mentions.as_ref()];
        let parts: Vec<&Path> = parts.into_iter().flatten().collect();
        let spoken = self.seen.iter().rev().find_map(|seen| seen.reply.body.as_ref());
        let spoken = spoken.map(|body| Spoken::of(body, &parts)).unwrap_or_default();
        let is_local = self.found.time_zone.is_none()
            && self.samples.iter().any(|row| self.found.has_local_time(row) == Some(true));
        let [no_period, no_order, no_zone] = [DURATION, SORT, TIMEZONE].map(|usual| self.is_unnamed(usual));
        let ignores_orders = self.ignores_orders;
        let Self { asker, found, parameters, .. } = self;
        // All pairs of ends are sent at once, which a strict service would reject if it does not name its parameters.
        let named = parameters.as_deref();
        let unasked = found.asked == Some(MentionsParameter::Always) && asker.refuses(SIZE);
        let mentions = unasked || fixed.iter().any(|(name, _)| name == SIZE);
        let is_data = |reply: &Reply| {
            !reply.is_refusal() && if mentions { found.has_rows(reply) } else { found.has_overview(reply) }
        };
        scheduler::run(asker, fixed, dimensions, is_data, |dimensions| {
            for dimension in dimensions.iter_mut() {
                match dimension.name {
                    "period" => next_periods(found, dimension, newest, named, &spoken.periods, no_period),
                    "order" if no_order => dimension.give_up(|_| true),
                    // The control and one order show which one comes whatever is sent.
                    "order" if ignores_orders => dimension.queue.truncate(2_usize.saturating_sub(dimension.done.len())),
                    "order" => more_orders(found, dimension, &spoken.orders),
                    "filter" => more_filters(found, dimension),
                    "zone" if no_zone => dimension.give_up(|_| true),
                    "zone" if dimension.taken().next().is_none() => more_zones(dimension),
                    // If no entry of a timeline is an instant, a second zone would show nothing new.
                    "zone" if found.timeline.is_none() || found.has_plain_days => dimension.queue.clear(),
                    "zone" if dimension.taken().any(|(_, reply)| found.days_begin(reply) == Some(KOLKATA)) => {
                        dimension.queue.clear();
                    }
                    _ => {}
                }
            }
            // Periods of several lengths and two orders are worth more than what comes later.
            let lacks = |dimension: &Dimension| match dimension.name {
                "period" => are_periods_lacking(found, dimension, newest, named, is_local),
                "order" => dimension.taken().filter(|(tried, _)| tried.label != NONSENSE).count() < 2,
                _ => false,
            };
            let open = dimensions.iter().any(|dimension| lacks(dimension) && !dimension.queue.is_empty());
            let mut periods = dimensions.iter().filter(|dimension| dimension.name == "period");
            let has_period = periods.any(|dimension| {
                dimension.taken().any(|(tried, reply)| found.has_effect(dimension, tried, reply, newest))
            });
            (if open { LEAST } else { ALL }) + if is_local && has_period { ZONE } else { 0 }
        })
        .await
    }

    /// True for a parameter that is not among those that the service names, which are all that it has.
    pub(super) fn is_unnamed(&self, usual: &str) -> bool {
        /// Names that are not a hint at a single parameter.
        const NAMES: usize = 4;
        let own = own_name(usual, &self.asker.names);
        let named = self.parameters.as_ref().filter(|named| named.len() >= NAMES);
        let is_answered = self.seen.iter().any(|seen| seen.reply.asked.iter().any(|(name, _)| name == usual));
        !is_answered && named.is_some_and(|named| !named.iter().any(|name| name == usual || name == own))
    }

    /// The reason why no value of a parameter was tried.
    pub(super) fn untried(&self, usual: &str) -> String {
        match self.is_unnamed(usual) {
            true => format!("`{usual}` is not among the parameters that the service names"),
            false => format!("no value of `{usual}` was tried"),
        }
    }

    /// The notation of a period that was given. A number alone is one of days, unless the name of its parameter says otherwise.
    fn notation_of(&self, value: &str) -> Option<(char, String)> {
        let number = || value.parse::<u16>().is_ok_and(|number| number > 0);
        any_notation(value).or_else(|| {
            let own = vocabulary::plain(own_name(DURATION, &self.asker.names));
            let units = [('h', "hour"), ('w', "week")];
            let unit = units.into_iter().find(|(_, unit)| own.contains(unit)).map_or('d', |(unit, _)| unit);
            number().then(|| (unit, "{n}".to_owned()))
        })
    }
}

/// Candidates of all dimensions.
struct Round {
    periods: Dimension,
    zones: Dimension,
    orders: Dimension,
    filters: Dimension,
}

/// True if several parameters had an effect together, so that those of the ends are not known, and no period is a number.
fn is_among_several(working: &[&Try]) -> bool {
    let absolute = working.iter().filter(|tried| tried.is_absolute());
    let ends = absolute.map(|tried| tried.pairs.iter().filter(|(name, _)| name != DURATION).count());
    let is_number = working.iter().any(|tried| matches!(tried.kind, Kind::Relative(..)));
    !is_number && ends.min().is_some_and(|ends| ends > 2)
}

/// Adds candidates for the window, and gives up those that are not worth a request. `is_unnamed`: the service has no parameter of the
/// period.
fn next_periods(
    found: &Findings,
    periods: &mut Dimension,
    newest: Option<i64>,
    named: Option<&[String]>,
    spoken: &[String],
    is_unnamed: bool,
) {
    let has_period = |tried: &Try| tried.pairs.iter().any(|(name, _)| name == DURATION);
    // The ends of a window are added once the first periods are done, and there may be no other round for them.
    periods.give_up(|tried| is_unnamed && has_period(tried));
    more_periods(found, periods, newest, named, spoken);
    let are_enough = are_ends_enough(found, periods, newest);
    periods.give_up(|tried| (is_unnamed && has_period(tried)) || (are_enough && !tried.is_absolute()));
}

/// True if the periods that are known are not enough, and others are worth a request. `named`: the parameters that the service names.
/// `is_local`: the zone of times is open.
fn are_periods_lacking(
    found: &Findings,
    periods: &Dimension,
    newest: Option<i64>,
    named: Option<&[String]>,
    is_local: bool,
) -> bool {
    /// Named periods that are enough; one with any number is, too.
    const PERIODS: usize = 3;
    /// Refused ends of a window after which no others are worth a request.
    const ENDS: usize = 3;
    let taken = periods.taken().filter(|(tried, _)| tried.label != NONSENSE);
    let working = taken.filter(|(tried, reply)| found.has_effect(periods, tried, reply, newest));
    let working: Vec<&Try> = working.map(|(tried, _)| tried).collect();
    let lengths = working.iter().map(|tried| match tried.kind {
        Kind::Relative(..) => PERIODS,
        Kind::Value | Kind::Absolute => 1,
    });
    // If all other periods are names, only windows with ends tell the zone of times. Find their parameters among those that had an
    // effect together.
    let is_divided = is_local && is_among_several(&working);
    // The service names the parameters of the ends of a window, or a refusal has the form of a window or says how its ends are written.
    let done = periods.done.iter().filter(|(tried, _)| tried.is_absolute());
    let refused = done.clone().filter(|(_, outcome)| matches!(outcome, Outcome::Refused(_))).count();
    let template = periods.queue.front().is_some_and(|tried| tried.label.starts_with('{'));
    // So does a word for them that the service lists.
    let word = periods.queue.front().is_some_and(|tried| tried.label == ALONE);
    let named = named.is_some_and(|named| !named.is_empty()) || word || (template && are_told(periods));
    let told = periods.queue.front().is_some_and(Try::is_absolute)
        && done.count() == refused
        && (usize::from(!named)..ENDS).contains(&refused);
    told || is_divided || lengths.sum::<usize>() < PERIODS
}

/// True if no other periods are worth a request: the ends of a window had an effect, and several values without ends had none.
fn are_ends_enough(found: &Findings, periods: &Dimension, newest: Option<i64>) -> bool {
    const VALUES: usize = 3;
    let has_effect = |tried: &Try, reply: &Reply| found.has_effect(periods, tried, reply, newest);
    let taken = periods.taken().filter(|(tried, _)| tried.label != NONSENSE);
    let (ends, values): (Vec<_>, Vec<_>) = taken.partition(|(tried, _)| tried.is_absolute());
    ends.iter().any(|(tried, reply)| has_effect(tried, reply))
        && values.len() >= VALUES
        && !values.iter().any(|(tried, reply)| has_effect(tried, reply))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::probe::asker::Asker;
    use crate::probe::known::Known;
    use crate::probe::shape::{Columns, instant};

    #[test]
    fn no_further_periods_are_tried_once_ends_have_an_effect_and_several_values_none() {
        let reply = |from: &str, to: &str, at: &str| {
            let body = json!({"from": from, "to": to, "items": [{"id": "a", "at": at}, {"id": "b", "at": at}]});
            Arc::new(Reply::new(&[], 200, http::HeaderMap::new(), body.to_string()))
        };
        let within = reply("2026-06-26T00:00:00Z", "2026-06-28T00:00:00Z", "2026-06-27T10:00:00Z");
        let usual = reply("2026-06-22T11:00:00Z", "2026-06-29T11:00:00Z", "2026-06-29T10:00:00Z");
        let mut found = Findings { mentions: Some(vec!["items".to_owned()]), ..Findings::default() };
        let time = vec!["at".to_owned()];
        found.columns = Columns::of(vocabulary::MENTION, &found.rows(&within), &[("published_at", &time)]);
        let newest = instant(&json!("2026-06-29T10:00:00Z"));
        let mut periods = Dimension::new("period", []);
        let mut take = |tried: Try, reply: &Arc<Reply>| {
            periods.done.push((tried, Outcome::Taken(Arc::clone(reply))));
            are_ends_enough(&found, &periods, newest)
        };
        assert!(!take(Try::new(NONSENSE, DURATION, NONSENSE), &usual));
        for days in ["60d", "P60D", "LAST_90_DAYS"] {
            assert!(!take(Try::new(days, DURATION, days), &usual), "{days}");
        }
        assert!(take(Try::absolute("ends rfc3339", vec![pair("from", "a"), pair("to", "b")]), &within));
        periods.add(Try::new("last_year", DURATION, "last_year"));
        periods.give_up(|tried| !tried.is_absolute());
        assert!(periods.queue.is_empty() && matches!(periods.outcome("last_year"), Some(Outcome::Unknown)));
    }

    #[test]
    fn the_ends_of_a_window_are_tried_in_the_first_round_if_the_service_has_no_periods() {
        let named = ["aid", "since", "until", "sortBy"].map(str::to_owned);
        let mut periods = crate::probe::candidates::periods();
        next_periods(&Findings::default(), &mut periods, Some(1_780_000_000_000_000), Some(&named), &[], true);
        let next = periods.queue.front().expect("the ends of a window");
        let names: Vec<&str> = next.pairs.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names == ["since", "until"] && periods.queue.iter().all(Try::is_absolute), "{:?}", periods.queue);
    }

    #[test]
    fn parameters_that_a_service_does_not_name_are_not_tried() {
        let mut dialogue = Dialogue::new(Asker::recorded(Arc::default()), Known::default());
        assert!(!dialogue.is_unnamed(DURATION));
        dialogue.parameters = Some(["aid", "since", "until", "sortBy"].map(str::to_owned).to_vec());
        assert!(dialogue.is_unnamed(DURATION) && !dialogue.is_unnamed(SORT));
        // A hint at a single one is no list.
        dialogue.parameters = Some(vec!["since".to_owned()]);
        assert!(!dialogue.is_unnamed(DURATION));
    }

    #[test]
    fn several_parameters_that_had_an_effect_together_are_divided_beside_names() {
        let of =
            |names: &[&str]| Try::absolute("ends date", names.iter().map(|name| pair(name, "2026-06-01")).collect());
        let (name, days) = (Try::new("week", DURATION, "week"), Try::relative(DURATION, 'd', "{n}d", 60));
        let (several, one) = (of(&["since", "until", "start", "end"]), of(&["start", "end", DURATION]));
        assert!(is_among_several(&[&name, &several]));
        assert!(!is_among_several(&[&name, &several, &one]));
        assert!(!is_among_several(&[&name]));
        // A number of days tells the zone as well.
        assert!(!is_among_several(&[&days, &several]));
    }
}
