//! Tests several properties of a service per request: each has its own parameter, and its effect shows in its own part of a
//! response, so a round tries one candidate for each.
//!
//! An error is attributed to the parameter that it names. If it names none, the candidates are tried one by one.

use std::collections::VecDeque;
use std::sync::Arc;

use super::asker::{Asker, Pair, Reply};
use super::candidates::{AID, SIZE};
use super::vocabulary::{self, GIVEN};
use crate::error::Result;

/// A candidate: the parameters to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Try {
    /// Name of the candidate: its value, column or form.
    pub(super) label: String,
    pub(super) pairs: Vec<Pair>,
    pub(super) kind: Kind,
}

/// Kind of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A value.
    Value,
    /// A relative window of this unit, in this notation with `{n}`: any number may be accepted.
    Relative(char, String),
    /// An absolute window.
    Absolute,
}

impl Try {
    pub(super) fn new(label: impl Into<String>, parameter: &str, value: impl Into<String>) -> Self {
        Self { label: label.into(), pairs: vec![(parameter.to_owned(), value.into())], kind: Kind::Value }
    }

    /// An absolute window in these parameters.
    pub(super) fn absolute(label: impl Into<String>, pairs: Vec<Pair>) -> Self {
        Self { label: label.into(), pairs, kind: Kind::Absolute }
    }

    /// A relative window of `n` units in a notation with `{n}`.
    pub(super) fn relative(parameter: &str, unit: char, template: &str, n: u32) -> Self {
        let value = template.replace("{n}", &n.to_string());
        Self { kind: Kind::Relative(unit, template.to_owned()), ..Self::new(value.clone(), parameter, value) }
    }

    pub(super) fn is_absolute(&self) -> bool {
        self.kind == Kind::Absolute
    }

    /// True if a response may be the refusal of this candidate.
    fn is_refused_by(&self, reply: &Reply) -> bool {
        let names: Vec<&str> = self.pairs.iter().map(|(name, _)| name.as_str()).collect();
        // A response without the expected data is as good as a refusal.
        !reply.is_refusal() || reply.is_refusal_of(&names)
    }

    /// Hours of a period.
    pub(super) fn hours(&self) -> Option<i64> {
        vocabulary::hours(&self.label).or_else(|| match &self.kind {
            Kind::Relative(unit, template) => vocabulary::hours_as(&self.label, *unit, template),
            Kind::Value | Kind::Absolute => None,
        })
    }
}

/// The outcome of a candidate.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    /// Refused, with this message.
    Refused(String),
    /// Accepted: a response with data.
    Taken(Arc<Reply>),
    /// Not requested: a recording lacks it, or another parameter of the request is refused whatever is sent.
    Unknown,
}

/// A dimension and its candidates.
#[derive(Debug, Default)]
pub(super) struct Dimension {
    pub(super) name: &'static str,
    pub(super) queue: VecDeque<Try>,
    pub(super) done: Vec<(Try, Outcome)>,
}

impl Dimension {
    pub(super) fn new(name: &'static str, tries: impl IntoIterator<Item = Try>) -> Self {
        Self { name, queue: tries.into_iter().collect(), done: Vec::new() }
    }

    /// Accepted candidates and their responses.
    pub(super) fn taken(&self) -> impl Iterator<Item = (&Try, &Arc<Reply>)> {
        self.done.iter().filter_map(|(tried, outcome)| match outcome {
            Outcome::Taken(reply) => Some((tried, reply)),
            Outcome::Refused(_) | Outcome::Unknown => None,
        })
    }

    /// True if the last few candidates were refused.
    pub(super) fn is_refused(&self) -> bool {
        const FEW: usize = 3;
        let refused = self.done.iter().rev().take_while(|(_, outcome)| matches!(outcome, Outcome::Refused(_)));
        refused.count() >= FEW
    }

    /// The outcome of the candidate with this label.
    pub(super) fn outcome(&self, label: &str) -> Option<&Outcome> {
        self.done.iter().find(|(tried, _)| tried.label == label).map(|(_, outcome)| outcome)
    }

    /// True if no candidate was requested.
    pub(super) fn is_untried(&self) -> bool {
        self.done.iter().all(|(_, outcome)| matches!(outcome, Outcome::Unknown))
    }

    /// True if a candidate with these parameters was tried.
    pub(super) fn has_done(&self, pairs: &[Pair]) -> bool {
        self.done.iter().any(|(done, _)| done.pairs == pairs)
    }

    /// Gives up the open candidates for which this holds.
    pub(super) fn give_up(&mut self, is_hopeless: impl Fn(&Try) -> bool) {
        let (hopeless, open): (Vec<Try>, Vec<Try>) = self.queue.drain(..).partition(is_hopeless);
        self.queue.extend(open);
        self.done.extend(hopeless.into_iter().map(|tried| (tried, Outcome::Unknown)));
    }

    /// Adds a candidate before all others.
    pub(super) fn add_first(&mut self, tried: Try) {
        if self.done.iter().all(|(done, _)| done.pairs != tried.pairs) {
            self.queue.retain(|other| other.pairs != tried.pairs);
            self.queue.push_front(tried);
        }
    }

    pub(super) fn add(&mut self, tried: Try) {
        let same = |other: &Try| other.pairs == tried.pairs;
        if !self.queue.iter().any(same) && !self.done.iter().any(|(done, _)| same(done)) {
            self.queue.push_back(tried);
        }
    }
}

/// Tries all candidates while more requests are left than are reserved. `is_data` distinguishes data from refusals; `adapt`
/// may add and drop candidates after each round, and returns the number of requests to reserve.
pub(super) async fn run(
    asker: &mut Asker,
    fixed: &[Pair],
    dimensions: &mut [Dimension],
    is_data: impl Fn(&Reply) -> bool,
    mut adapt: impl FnMut(&mut [Dimension]) -> u64,
) -> Result<()> {
    let mut alone = false;
    let mut reserve = adapt(dimensions);
    loop {
        if let Some(progress) = from_recording(asker, fixed, dimensions, &is_data) {
            if !progress {
                return Ok(());
            }
            reserve = adapt(dimensions);
            continue;
        }
        let queued: Vec<usize> = (0..dimensions.len()).filter(|at| !dimensions[*at].queue.is_empty()).collect();
        // A dimension whose candidates are refused again and again must not hide the effect of the others.
        let likely: Vec<usize> = queued.iter().copied().filter(|at| !dimensions[*at].is_refused()).collect();
        let active = if likely.is_empty() { queued } else { likely };
        let active = if alone { active.into_iter().take(1).collect() } else { active };
        if active.is_empty() || asker.left() <= reserve {
            return Ok(());
        }
        let mut pairs = fixed.to_vec();
        pairs
            .extend(active.iter().filter_map(|at| dimensions[*at].queue.front()).flat_map(|tried| tried.pairs.clone()));
        let Some(reply) = asker.ask("search", &pairs).await? else { return Ok(()) };
        let mut tried = active.iter().filter_map(|at| dimensions[*at].queue.front());
        let is_theirs = tried.any(|tried| tried.is_refused_by(&reply));
        if is_data(&reply) {
            let reply = Arc::new(reply);
            for at in active {
                if let Some(tried) = dimensions[at].queue.pop_front() {
                    dimensions[at].done.push((tried, Outcome::Taken(Arc::clone(&reply))));
                }
            }
            alone = false;
        } else if !is_theirs {
            for at in active {
                if let Some(tried) = dimensions[at].queue.pop_front() {
                    dimensions[at].done.push((tried, Outcome::Unknown));
                }
            }
        } else {
            let place = |at: usize| {
                let tried = dimensions[at].queue.front()?;
                tried.pairs.iter().filter_map(|(name, _)| reply.mentions(name)).min()
            };
            let named = active.iter().filter_map(|at| Some((place(*at)?, *at))).min().map(|(_, at)| at);
            // A refusal that names no parameter may repeat its value.
            let repeated = |at: &&usize| {
                let tried = dimensions[**at].queue.front();
                let mut values = tried.into_iter().flat_map(|tried| &tried.pairs).map(|(_, value)| value);
                values.any(|value| value.len() > 2 && reply.mentions(value).is_some())
            };
            let mut repeated = active.iter().filter(repeated);
            let by_value = repeated.next().copied().filter(|_| repeated.next().is_none());
            let at_fault = named.or(by_value).or(active.first().copied().filter(|_| active.len() == 1));
            alone = at_fault.is_none();
            if let Some(at) = at_fault
                && let Some(tried) = dimensions[at].queue.pop_front()
            {
                dimensions[at].done.push((tried, Outcome::Refused(reply.message())));
            }
        }
        reserve = adapt(dimensions);
    }
}

/// Takes the outcome of the next candidate of each dimension from a recording: that of any request with its parameters. `None` if
/// there is a service to ask; `false` if no candidate is left.
fn from_recording(
    asker: &mut Asker,
    fixed: &[Pair],
    dimensions: &mut [Dimension],
    is_data: &impl Fn(&Reply) -> bool,
) -> Option<bool> {
    if !asker.is_recording() {
        return None;
    }
    let mut progress = false;
    for dimension in dimensions {
        let Some(tried) = dimension.queue.pop_front() else { continue };
        progress = true;
        let aid = fixed.iter().filter(|(name, _)| name == AID).cloned();
        let mut replies = asker.recorded_with(&aid.chain(tried.pairs.iter().cloned()).collect::<Vec<Pair>>());
        // Another parameter with the same value may have had the effect.
        replies.retain(|reply| {
            let other = |pair: &&Pair| {
                let is_own = GIVEN.contains(&pair.0.as_str()) || fixed.contains(pair) || tried.pairs.contains(pair);
                !is_own && tried.pairs.iter().any(|(_, value)| *value == pair.1)
            };
            !reply.asked.iter().any(|pair| other(&pair))
        });
        // A refusal is that of the candidate if it names it, or if nothing else was tried.
        let refusal = |reply: &&Reply| {
            let repeated = |value: &String| {
                let sent = reply.asked.iter().filter(|(_, sent)| sent == value).count();
                value.len() > 2 && sent == 1 && reply.mentions(value).is_some()
            };
            let named = tried.pairs.iter().any(|(name, value)| reply.mentions(name).is_some() || repeated(value));
            let other = |pair: &&Pair| pair.0 != SIZE && !fixed.contains(pair) && !tried.pairs.contains(pair);
            reply.is_refusal() && (named || !reply.asked.iter().any(|pair| other(&pair)))
        };
        // The first one is that of the round: later ones have offsets as well.
        let outcome = match (replies.iter().find(|reply| is_data(reply)), replies.iter().find(refusal)) {
            (Some(data), _) => Outcome::Taken(Arc::new(data.clone())),
            (None, Some(refusal)) => Outcome::Refused(refusal.message()),
            (None, None) => Outcome::Unknown,
        };
        dimension.done.push((tried, outcome));
    }
    Some(progress)
}

/// Returns the first number of a refusal that is not part of a word; for a range, its upper end. `asked`: the number that was
/// requested, which a refusal may repeat.
pub(super) fn number_in(refusal: &str, asked: Option<u64>) -> Option<u64> {
    let mut numbers = numbers_in(refusal, asked);
    let first = numbers.next()?;
    let spans = refusal.contains("between")
        || refusal.contains(&format!("{first} to "))
        || refusal.contains(&format!("{first}-"))
        || refusal.contains(&format!("{first}.."));
    numbers.next().filter(|end| spans && *end > first).or(Some(first))
}

/// Returns the numbers of a refusal that are not part of a word, but for the one that was requested.
pub(super) fn numbers_in(refusal: &str, asked: Option<u64>) -> impl Iterator<Item = u64> + '_ {
    let words = refusal.split(|c: char| !c.is_ascii_alphanumeric());
    let numbers = words.filter_map(|word| word.parse().ok().filter(|n| (1..1_000_000).contains(n)));
    numbers.filter(move |number| Some(*number) != asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_another_parameter_is_not_that_of_a_candidate() {
        let reply = |asked: &[&str], message: &str| {
            let asked: Vec<Pair> = asked.iter().map(|name| ((*name).to_owned(), "1".to_owned())).collect();
            Reply::new(&asked, 400, http::HeaderMap::new(), serde_json::json!({"message": message}).to_string())
        };
        let asked = ["aid", "dataSize", "duration"];
        let cases = [
            ("Unknown parameter: dataSize. Parameters: aid, period", [true, false]),
            ("Unknown parameter: duration. Parameters: aid, dataSize", [false, true]),
            // Nothing says which of them it is about.
            ("bad request", [true, true]),
        ];
        crate::cases::each(cases, |(message, [of_size, of_period])| {
            let reply = reply(&asked, message);
            assert_eq!((reply.is_refusal_of(&["dataSize"]), reply.is_refusal_of(&["duration"])), (of_size, of_period));
            assert_eq!(Try::new("7d", "duration", "7d").is_refused_by(&reply), of_period, "{message}");
        });
        let mut periods = Dimension::new("period", []);
        assert!(periods.is_untried());
        periods.done.push((Try::new("7d", "duration", "7d"), Outcome::Unknown));
        assert!(periods.is_untried());
        periods.done.push((Try::new("8d", "duration", "8d"), Outcome::Refused("no".to_owned())));
        assert!(!periods.is_untried());
    }

    #[test]
    fn refusals_tell_bounds() {
        assert_eq!(number_in("dataSize: at most 200", None), Some(200));
        assert_eq!(number_in("is longer than 31 days", None), Some(31));
        assert_eq!(number_in("must be between 1 and 100", None), Some(100));
        assert_eq!(number_in("limit: 1 to 100", None), Some(100));
        assert_eq!(number_in("the value [100000] is not between 10 and 100", Some(100_000)), Some(100));
    }
}
