//! Compares the end of windows of days with windows of several days that came. Pure.
//!
//! A window from a day to itself may be answered with that day though the end of longer windows does not belong to them.

use serde_json::Value;

use super::candidates::SORT;
use super::effects::DAY;
use super::observations::{Absolute, Findings, Seen};
use super::shape::instant;
use super::zones;
use crate::profile::Zone;

impl Findings {
    /// True if a window of several days shows the opposite of this: that the day of its end belongs to it, or that it does not. `known`:
    /// times of mentions. `zone`: the zone of the days.
    pub(super) fn contradicts_end(
        &self,
        absolute: &Absolute,
        is_inclusive: bool,
        (seen, known): (&[Seen], &[i64]),
        zone: Zone,
    ) -> bool {
        let shows_opposite = |one: &Seen| {
            let last = self.last_of_several(absolute, one);
            let span = last.and_then(|day| zones::day_start(zone, day).zip(zones::day_start(zone, day + DAY)));
            let Some((from, to)) = span else { return false };
            let within = |at: &i64| (from..to).contains(at);
            let times = self.times(&one.reply);
            match times.iter().any(within) {
                true => !is_inclusive,
                // The newest mentions came, and those of the last day are not among them.
                false => is_inclusive && self.has_newest(one, &times) && known.iter().any(within),
            }
        };
        seen.iter().any(shows_opposite)
    }

    /// The last day, as its midnight in UTC, of a window of several days that was requested without a filter.
    fn last_of_several(&self, absolute: &Absolute, one: &Seen) -> Option<i64> {
        let (from, to) = self.ends_asked(absolute, &one.reply).filter(|_| self.is_unfiltered(&one.reply))?;
        let day = |text: &str| instant(&Value::from(text)).filter(|at| text.len() == 10 && at % DAY == 0);
        let (first, last) = (day(from)?, day(to)?);
        (first < last).then_some(last)
    }

    /// True if a response begins with the newest mentions of its window, which have these times.
    fn has_newest(&self, one: &Seen, times: &[i64]) -> bool {
        let order = one.reply.asked.iter().find(|(name, _)| name == SORT).map(|(_, order)| order);
        let is_by_time = order.is_none_or(|order| {
            let mut sorts = self.sorts.iter().filter(|sort| sort.value == *order);
            sorts.any(|sort| sort.descending && sort.column == self.time_name())
        });
        let is_sorted = times.is_sorted_by(|a, b| a >= b) && times.first() > times.last();
        one.size.is_some() && is_by_time && is_sorted
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::probe::asker::Reply;
    use crate::probe::observations::Form;
    use crate::probe::shape::Columns;
    use crate::probe::vocabulary;

    #[test]
    fn a_window_of_several_days_shows_whether_its_last_day_belongs_to_it() {
        let absolute =
            Absolute { form: Form::Separate("from".to_owned(), "to".to_owned()), instants: "date", inclusive: None };
        let window = |from: &str, to: &str, times: &[&str]| {
            let asked = [("from", from), ("to", to)].map(|(name, day)| (name.to_owned(), day.to_owned()));
            let items: Vec<Value> = times.iter().map(|at| json!({"id": at, "at": at})).collect();
            let reply = Reply::new(&asked, 200, http::HeaderMap::new(), json!({"items": items}).to_string());
            Seen { size: Some(20), reply: Arc::new(reply) }
        };
        let with_last = window("2026-06-27", "2026-06-28", &["2026-06-28T20:00:00Z", "2026-06-27T10:00:00Z"]);
        let without = window("2026-06-27", "2026-06-28", &["2026-06-27T20:00:00Z", "2026-06-27T10:00:00Z"]);
        let one_day = window("2026-06-28", "2026-06-28", &["2026-06-28T20:00:00Z", "2026-06-28T10:00:00Z"]);
        let oldest = window("2026-06-27", "2026-06-28", &["2026-06-27T10:00:00Z", "2026-06-27T20:00:00Z"]);
        let known: Vec<i64> = instant(&Value::from("2026-06-28T20:00:00Z")).into_iter().collect();
        let mut found = Findings { mentions: Some(vec!["items".to_owned()]), ..Findings::default() };
        found.window.absolute = Some(absolute.clone());
        let time = vec!["at".to_owned()];
        found.columns = Columns::of(vocabulary::MENTION, &found.rows(&one_day.reply), &[("published_at", &time)]);
        let contradicts = |is_inclusive: bool, one: &Seen, known: &[i64]| {
            found.contradicts_end(&absolute, is_inclusive, (std::slice::from_ref(one), known), Zone::UTC)
        };
        assert!(contradicts(true, &without, &known) && !contradicts(false, &without, &known));
        assert!(contradicts(false, &with_last, &known) && !contradicts(true, &with_last, &known));
        // No mention of the last day is known, or the newest ones of the window did not come.
        assert!(!contradicts(true, &without, &[]) && !contradicts(true, &oldest, &known));
        assert!(!contradicts(true, &one_day, &known) && !contradicts(false, &one_day, &known));
    }
}
