//! Periods in the requests that search for the parameter of mentions. This saves requests if the service accepts any parameter.
//!
//! The effect of a period shows in the overview, the effect of the other parameters in an array of mentions. A response may answer
//! both questions, one of them, or neither. If it does not answer one, that question is requested again, after a few such responses
//! alone.

use std::sync::Arc;

use super::asker::{Pair, Reply};
use super::candidates::{DURATION, SIZE, Spoken, more_periods, periods, span};
use super::dialogue::Dialogue;
use super::scheduler::{Dimension, Outcome};
use super::shape::{Path, at, instant};

/// Periods that are requested together with parameters that may request mentions.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) periods: Dimension,
    /// Reference time of windows with ends; `None` if no such windows are tried.
    pub(super) newest: Option<i64>,
    /// Responses in a row that did not show if the other parameters request mentions.
    unanswered: usize,
    /// Set once a response answered neither question, or several in a row left the other parameters open. From then on, these are
    /// requested alone.
    is_over: bool,
}

impl Dialogue {
    /// True if a person has stated periods, or the names of their ends.
    pub(super) fn knows_periods(&self) -> bool {
        !self.known.facts.values(DURATION).is_empty() || self.known.facts.ends().is_some()
    }

    /// Begins to try periods if the service accepts any parameter, and has a timeline that shows their effect.
    pub(super) fn begin_beside(&mut self) {
        let accepts_any = self.parameters.is_none() && self.found.timeline.is_some();
        if self.beside.is_none() && accepts_any && !self.knows_periods() {
            let newest = self.counted_lately();
            self.beside = Some(Beside { periods: periods(), newest, unanswered: 0, is_over: false });
        }
    }

    /// The time of the first response, if its timeline has mentions in the days of the windows with ends.
    fn counted_lately(&self) -> Option<i64> {
        let first = self.first.as_ref()?;
        let now = first.date()?;
        let (from, to) = span(now);
        let within = |at: i64| (from..to).contains(&at);
        let timeline = self.found.timeline(first);
        timeline.iter().any(|(time, count)| *count > 0 && instant(time).is_some_and(within)).then_some(now)
    }

    /// The parameters of the next period; none if no period is requested beside others.
    pub(super) fn next_beside(&self) -> Vec<Pair> {
        let open = self.beside.as_ref().filter(|beside| !beside.is_over && !beside.periods.is_refused());
        open.and_then(|beside| beside.periods.queue.front()).map(|tried| tried.pairs.clone()).unwrap_or_default()
    }

    /// Number of periods that are known.
    pub(super) fn done_beside(&self) -> u64 {
        self.beside.as_ref().map_or(0, |beside| beside.periods.done.len() as u64)
    }

    /// Requests no more periods beside others.
    pub(super) fn end_beside(&mut self) {
        if let Some(beside) = &mut self.beside {
            beside.is_over = true;
        }
    }

    /// Records the outcome of the period in a request. Returns true if the response also shows whether `parameters` request
    /// mentions. `came` is the array that may contain mentions.
    pub(super) fn answers_beside(&mut self, reply: &Reply, parameters: &[Pair], came: Option<&Path>) -> bool {
        /// Responses in a row that may leave the other parameters open. Without mentions in any window, all would.
        const UNANSWERED: usize = 3;
        let Some(mut beside) = self.beside.take() else { return true };
        let (outcome, answered) = self.outcomes(&beside, reply, parameters, came);
        beside.unanswered = if answered { 0 } else { beside.unanswered + 1 };
        beside.is_over |= (outcome.is_none() && !answered) || beside.unanswered >= UNANSWERED;
        if let Some(outcome) = outcome
            && let Some(tried) = beside.periods.queue.pop_front()
        {
            beside.periods.done.push((tried, outcome));
            let overview: Vec<&Path> = self.found.overview.iter().collect();
            let body = self.first.as_ref().and_then(|first| first.body.as_ref());
            let spoken = body.map(|body| Spoken::of(body, &overview)).unwrap_or_default();
            more_periods(&self.found, &mut beside.periods, beside.newest, None, &spoken.periods);
        }
        self.beside = Some(beside);
        answered
    }

    /// The outcome of the period in a request, if the response shows it, and true if it shows whether the other parameters request
    /// mentions.
    fn outcomes(
        &self,
        beside: &Beside,
        reply: &Reply,
        parameters: &[Pair],
        came: Option<&Path>,
    ) -> (Option<Outcome>, bool) {
        let tried = beside.periods.queue.front().map(|tried| tried.pairs.as_slice()).unwrap_or_default();
        if reply.is_refusal() {
            let named = |pairs: &[Pair]| pairs.iter().any(|(name, _)| reply.mentions(name).is_some());
            let repeated = tried.iter().any(|(_, value)| value.len() > 2 && reply.mentions(value).is_some());
            return match (named(tried) || repeated, named(parameters)) {
                (true, false) => (Some(Outcome::Refused(reply.message())), false),
                (is_period, is_other) => (None, is_other && !is_period),
            };
        }
        let length = |reply: &Reply, path: &Path| Some(at(reply.body.as_ref()?, path)?.as_array()?.len());
        let answered = match came {
            // The array was empty, and has the requested length now. The length of other arrays may depend on the period.
            Some(path) => {
                let size = reply.asked.iter().find(|(name, _)| name == SIZE);
                let size: Option<usize> = size.and_then(|(_, size)| size.parse().ok());
                let before = self.first.as_ref().and_then(|first| length(first, path)).unwrap_or_default();
                before == 0 && size.is_some() && length(reply, path) == size
            }
            // A window without mentions cannot show that mentions were requested.
            None => self.found.count(reply).or_else(|| self.found.sum(reply)).is_some_and(|count| count > 0),
        };
        (self.found.has_overview(reply).then(|| Outcome::Taken(Arc::new(reply.clone()))), answered)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use serde_json::{Value, json};

    use super::*;
    use crate::cases::each;
    use crate::probe::asker::Asker;
    use crate::probe::candidates::{AID, NONSENSE, pair};
    use crate::probe::known::Known;
    use crate::probe::observations::Seen;
    use crate::probe::recorded::Recording;
    use crate::probe::shape;

    fn reply(asked: &[Pair], status: u16, body: &Value) -> Reply {
        let date = "Tue, 30 Jun 2026 12:00:00 GMT".parse().expect("a date");
        let headers = HeaderMap::from_iter([(http::header::DATE, date)]);
        Reply::new(asked, status, headers, body.to_string())
    }

    /// Of a service with this number of mentions a day.
    fn overview(daily: u64) -> Value {
        let days: Vec<Value> = (23..=30).map(|day| json!({"day": format!("2026-06-{day}"), "count": daily})).collect();
        json!({"stats": {"total": 8 * daily, "timeline": days}})
    }

    fn dialogue() -> Dialogue {
        let mut dialogue = Dialogue::new(Asker::recorded(Arc::new(Recording::default())), Known::default());
        let first = reply(&[pair(AID, "7")], 200, &overview(4));
        dialogue.found.overview = first.body.as_ref().and_then(|body| shape::overview(body, None));
        dialogue.seen.push(Seen { size: None, reply: Arc::new(first.clone()) });
        dialogue.look_at_overview(&first);
        dialogue.first = Some(first);
        dialogue.begin_beside();
        dialogue
    }

    #[test]
    fn a_response_answers_what_it_proves() {
        let mentions = |count: usize| -> Value {
            (0..count).map(|n| json!({"id": n, "text": "a text", "at": "2026-06-29T08:00:00Z"})).collect()
        };
        let with = |mut body: Value, count: usize| {
            body["mentions"] = mentions(count);
            body
        };
        let listed = json!({"message": "duration: one of [LAST_7_DAYS, LAST_30_DAYS]"});
        // The body, the outcome of the period (refused, taken or open), an answer about the other parameter, and more periods.
        let cases = [
            (400, listed, Some(false), false, true),
            (400, json!({"message": "view: must be full"}), None, true, true),
            (400, json!({"message": "duration or view is wrong"}), None, false, false),
            (400, json!({"message": "no such search"}), None, false, false),
            (200, overview(4), Some(true), true, true),
            // An empty window has no mentions, however they are requested.
            (200, overview(0), Some(true), false, true),
            (200, with(overview(4), 13), Some(true), true, true),
            (200, with(json!({}), 13), None, true, true),
            // A shorter array may be another one of this window.
            (200, with(json!({}), 9), None, false, false),
        ];
        each(cases, |(status, body, taken, answered, goes_on)| {
            let mut dialogue = dialogue();
            assert_eq!(dialogue.next_beside(), [pair(DURATION, NONSENSE)]);
            let flag = [pair("view", "full")];
            let asked = [vec![pair(AID, "7"), pair(SIZE, 13)], flag.to_vec(), dialogue.next_beside()].concat();
            let reply = reply(&asked, status, &body);
            let path = vec!["mentions".to_owned()];
            let came = body.get("mentions").map(|_| &path);
            assert_eq!(dialogue.answers_beside(&reply, &flag, came), answered);
            let outcome = dialogue.beside.as_ref().and_then(|beside| beside.periods.outcome(NONSENSE));
            assert_eq!(outcome.map(|outcome| matches!(outcome, Outcome::Taken(_))), taken);
            assert_eq!(!dialogue.next_beside().is_empty(), goes_on);
        });
    }

    #[test]
    fn windows_without_mentions_do_not_take_all_requests() {
        let mut dialogue = dialogue();
        let flag = [pair("view", "full")];
        let mut requests = 0;
        while !dialogue.next_beside().is_empty() && requests < 20 {
            let asked = [vec![pair(AID, "7"), pair(SIZE, 13)], flag.to_vec(), dialogue.next_beside()].concat();
            assert!(!dialogue.answers_beside(&reply(&asked, 200, &overview(0)), &flag, None));
            requests += 1;
        }
        assert_eq!(requests, 3);
    }
}
