//! Parameters of an example by what a service says of a value that it does not have, and by the effect of another value.
//!
//! The values that a refusal lists show a period. An order has an effect on the order alone, and a place on the mentions alone.

use serde_json::Value;

use super::asker::{Pair, Reply};
use super::candidates::{DURATION, NONSENSE, OFFSET, SORT, pair, shape_of_instant};
use super::dialogue::{Dialogue, FEW};
use super::names::{counts_of, may_begin_elsewhere, usual_in};
use super::refusal;
use super::shape::{self, Path, at, instant, leaves};
use super::vocabulary::{self, GIVEN, plain};
use crate::error::Result;

impl Dialogue {
    /// Sends a value that no service has in the parameters of an example that are not understood. A refusal that lists the values shows
    /// a period; of other words, another one is sent, which shows an order; and another number shows a place.
    pub(super) async fn roles_of_example(&mut self) -> Result<()> {
        /// Parameters that are tried.
        const NAMES: usize = 6;
        /// Requests reserved for later steps.
        const RESERVE: u64 = 12;
        let Some(before) = self.answer_to_example.clone() else { return Ok(()) };
        for (own, value) in self.not_understood().into_iter().take(NAMES) {
            let is_number = value.parse::<u64>().is_ok();
            let roles: &[&str] = if is_number { &[OFFSET] } else { &[DURATION, SORT] };
            if self.asker.left() <= RESERVE {
                break;
            }
            if !roles.iter().any(|usual| self.is_open(usual)) {
                continue;
            }
            let Some(reply) = self.example_with(&before, &own, NONSENSE).await? else { continue };
            if !reply.is_refusal() || self.asker.refuses(&own) {
                continue;
            }
            let (usual, listed) = (usual_in(&reply.message()), refusal::values(&reply.message()));
            self.refusals.push(reply);
            if let Some(usual) = usual.filter(|usual| self.is_open(usual)) {
                self.take_names(vec![(usual.to_owned(), own)], "the refusal of a value shows it");
            } else if is_number && usual.is_none() && listed.is_empty() {
                let Some(reply) = self.example_with(&before, &own, &FEW.to_string()).await? else { continue };
                if may_begin_elsewhere(&before, &reply) {
                    self.take_names(vec![(OFFSET.to_owned(), own)], "other mentions came for another number");
                }
            } else if usual.is_none() && self.is_open(SORT) && listed.contains(&value) {
                let Some(other) = listed.into_iter().find(|other| *other != value) else { continue };
                let Some(reply) = self.example_with(&before, &own, &other).await? else { continue };
                if is_reordered(&before, &reply) {
                    let why = format!("the same mentions came in another order for {other}");
                    self.take_names(vec![(SORT.to_owned(), own)], &why);
                }
            }
        }
        Ok(())
    }

    /// Parameters of the example that have no usual name, and are neither filters, nor flags, nor ends of a window.
    fn not_understood(&self) -> Vec<Pair> {
        let facts = &self.known.facts;
        let ends = facts.ends();
        let is_end = |name: &String| ends.as_ref().is_some_and(|(since, until, _)| name == since || name == until);
        let is_open = |(name, value): &&Pair| {
            let is_filter = vocabulary::column(vocabulary::MENTION, &[vocabulary::filtered_by(name)]).is_some();
            let is_flag = vocabulary::FLAG_WORDS.iter().any(|word| plain(name).contains(word));
            let is_switch = ["true", "false"].contains(&value.as_str());
            let is_other = GIVEN.contains(&name.as_str()) || is_filter || is_flag || is_switch;
            !is_other && !is_end(name) && shape_of_instant(value).is_none()
        };
        facts.example.iter().filter(is_open).cloned().collect()
    }

    /// Repeats the example with another value of one parameter.
    async fn example_with(&mut self, example: &Reply, own: &str, value: &str) -> Result<Option<Reply>> {
        let with = |(name, sent): &Pair| if name == own { pair(name, value) } else { pair(name, sent) };
        let asked: Vec<Pair> = example.asked.iter().map(with).collect();
        self.asker.ask("search", &asked).await
    }
}

/// True if a response has the same mentions as one before, or those of the same search, in another order: of descending times, some
/// ascend, or the first one is another while all of several counts are the same. A filter leaves the order as it is, and changes counts.
fn is_reordered(before: &Reply, reply: &Reply) -> bool {
    /// Counts that are not the same by chance.
    const COUNTS: usize = 3;
    let falls = |times: &[i64]| times.len() > 2 && times.windows(2).all(|pair| pair[0] >= pair[1]);
    let (first, now) = (times_of(before), times_of(reply));
    let of = |path: &Path| now.iter().find(|(other, _)| other == path).map(|(_, times)| times);
    let mut falling = first.iter().filter(|(_, times)| falls(times));
    let rises = falling.any(|(path, _)| of(path).is_some_and(|times| times.len() > 2 && !falls(times)));
    !reply.is_refusal() && (rises || (counts_of(before).len() >= COUNTS && may_begin_elsewhere(before, reply)))
}

/// The times of the records of a response, by their places.
fn times_of(reply: &Reply) -> Vec<(Path, Vec<i64>)> {
    let arrays = reply.body.as_ref().map(shape::arrays).unwrap_or_default();
    let mut found = Vec::new();
    for (place, records) in arrays.into_iter().filter(|(_, records)| shape::is_rich(records)) {
        for (path, _) in leaves(records[0]) {
            let time = |record: &&Value| at(record, &path).and_then(instant);
            if let Some(times) = records.iter().map(time).collect::<Option<Vec<i64>>>() {
                found.push(([place.clone(), path].concat(), times));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use serde_json::json;

    use super::*;
    use crate::cases::each;

    #[test]
    fn an_order_is_told_from_a_filter() {
        let reply = |total: u64, days: &[u32]| {
            let row = |day: &u32| json!({"id": format!("m{day}"), "at": format!("2026-06-{day:02}T08:00:00Z"), "text": "a b"});
            let rows: Vec<Value> = days.iter().map(row).collect();
            let body = json!({"total": total, "reach": 7 * total, "sources": {"a": 3, "b": total}, "items": rows});
            Reply::new(&[], 200, HeaderMap::new(), body.to_string())
        };
        let before = reply(40, &[30, 29, 28, 27]);
        let cases = [
            ("the oldest first", reply(40, &[1, 2, 3, 4]), true),
            ("by reach", reply(40, &[9, 30, 2, 11]), true),
            ("no effect", reply(40, &[30, 29, 28, 27]), false),
            ("a filter", reply(19, &[30, 28, 25, 21]), false),
        ];
        each(cases, |(what, reply, expected)| assert_eq!(is_reordered(&before, &reply), expected, "{what}"));
    }
}
