//! Determines which parameter requests mentions. Their array is the one that is as long as requested.
//!
//! What is known comes first, and then groups of usual parameters, which are divided until one is left.

use std::sync::Arc;

use serde_json::Value;

use super::asker::{Pair, Reply};
use super::candidates::{OFFSET, SIZE, pair};
use super::dialogue::{Dialogue, FEW};
use super::names::lengths;
use super::observations::MentionsParameter;
use super::refusal;
use super::shape::{self, Path, at, leaves, place};
use super::vocabulary::{self, plain};
use crate::error::Result;

/// Values named in a refusal that are tried.
const VALUES: usize = 3;
/// Requests reserved for later steps.
const RESERVE: u64 = 8;

impl Dialogue {
    /// Determines how mentions are requested. Their array is the one that is as long as requested.
    pub(super) async fn what_asks_for_mentions(&mut self) -> Result<()> {
        let sized = vec![self.aid(), pair(SIZE, self.telling_size())];
        let mut few = FewMentions { bare: self.first.clone(), asked: [sized, self.found.with.clone()].concat() };
        let is_over = self.asked_by_size(&mut few).await?
            || self.asked_by_other_size(&few).await?
            || self.asked_as_known(&few).await?
            || self.asked_as_in_example(&few).await?
            || self.asked_as_described(&few).await?
            || self.asked_by_flag(&few).await?;
        if !is_over {
            self.asked_by_nothing(few.bare);
        }
        Ok(())
    }

    /// Tries the page size. As all steps of this search, it returns true if the search is over: mentions came, or a request had no
    /// response.
    async fn asked_by_size(&mut self, few: &mut FewMentions) -> Result<bool> {
        let first = match self.sized.take() {
            Some(reply) => Some(reply),
            None => self.asker.ask("search", &few.asked).await?,
        };
        let Some(mut reply) = first else { return Ok(true) };
        if self.learn_sizes(&reply) {
            self.refusals.push(reply);
            few.asked[1] = pair(SIZE, self.telling_size());
            let Some(again) = self.asker.ask("search", &few.asked).await? else { return Ok(true) };
            reply = again;
        }
        let Some(path) = few.mentions_in(&reply) else {
            if reply.is_refusal() {
                self.refusals.push(reply);
            }
            return Ok(false);
        };
        // As many came unasked, and there are more: the size has another name, or there is none.
        let has_more = |rows: usize| self.count(&reply).is_some_and(|count| count > rows as u64);
        if few.came_again(&reply, &path).is_some_and(has_more) && self.asked_by_other_size(few).await? {
            return Ok(true);
        }
        let (asked, text) = match few.came_before(&path) {
            None | Some(0) => (MentionsParameter::Size, "mentions are returned if dataSize is above 0"),
            Some(_) => (MentionsParameter::Always, "every search returns mentions, as many as dataSize requests"),
        };
        self.mentions_come(&reply, path, asked, text);
        Ok(true)
    }

    /// Tries other names of the page size: mentions that come unasked may come in another number under one of them.
    async fn asked_by_other_size(&mut self, few: &FewMentions) -> Result<bool> {
        if few.unasked().is_none() {
            return Ok(false);
        }
        let Some((own, reply, path)) = self.name_of_size(few).await? else { return Ok(false) };
        self.name(SIZE, own);
        let text = format!("every search returns mentions, as many as {own} requests");
        self.mentions_come(&reply, path, MentionsParameter::Always, &text);
        Ok(true)
    }

    /// Tries the parameter of a profile to resume from.
    async fn asked_as_known(&mut self, few: &FewMentions) -> Result<bool> {
        let Some((name, value)) = self.known.flag.clone() else { return Ok(false) };
        Ok(self.is_asked_by(few, &name, &value).await?.unwrap_or(true))
    }

    /// Tries the parameters of an example, together and then one by one.
    async fn asked_as_in_example(&mut self, few: &FewMentions) -> Result<bool> {
        let mut given = self.known.facts.others();
        given.retain(|pair| !few.asked.contains(pair));
        let Some(((name, value), with)) = given.split_last() else { return Ok(false) };
        let Some(reply) = self.asker.ask("search", &few.asked_with(&given)).await? else { return Ok(true) };
        let Some(path) = few.mentions_in(&reply) else { return Ok(false) };
        for (name, value) in given.iter().filter(|_| given.len() > 1) {
            match self.is_asked_by(few, name, value).await? {
                Some(true) => return Ok(true),
                Some(false) => {}
                None => break,
            }
        }
        // One alone, or none of them without the others.
        self.found.with.extend(with.iter().cloned());
        self.flag_works(&reply, path, name, value);
        Ok(true)
    }

    /// Tries parameters that a description has for mentions.
    async fn asked_as_described(&mut self, few: &FewMentions) -> Result<bool> {
        for (name, value) in self.known.facts.flags.clone() {
            if self.asker.left() <= RESERVE {
                break;
            }
            if self.is_asked_by(few, &name, &value).await? == Some(true) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tries parameters that the service names or usual ones, each with several values.
    async fn asked_by_flag(&mut self, few: &FewMentions) -> Result<bool> {
        let (names, values) = self.flags();
        self.begin_beside();
        for value in values {
            if self.asked_by_one_of(few, &names, &value).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tries parameters with this value: all at once if the service accepts that, then halves.
    async fn asked_by_one_of(&mut self, few: &FewMentions, names: &[String], value: &str) -> Result<bool> {
        let mut left = names.to_vec();
        let mut last: Option<(Path, Reply)> = None;
        // Periods that are known need no request later.
        while !left.is_empty() && self.asker.left() > RESERVE.saturating_sub(self.done_beside()) {
            let half = match (&last, &self.parameters) {
                (None, None) => left.clone(),
                (None, Some(_)) => left[..1].to_vec(),
                // The likeliest ones alone.
                (Some(_), _) if left.len() == names.len() && left.len() > 4 => left[..2].to_vec(),
                (Some(_), _) => left[..left.len().div_ceil(2)].to_vec(),
            };
            let tried = half.iter().map(|name| pair(name, vocabulary::flag_value(name, value)));
            let (tried, period): (Vec<Pair>, Vec<Pair>) = (tried.collect(), self.next_beside());
            let asked = [few.asked.as_slice(), &tried, &period].concat();
            let Some(reply) = self.asker.ask("search", &asked).await? else {
                if period.is_empty() || !self.asker.is_recording() {
                    return Ok(true);
                }
                // A recording may have the request without a period.
                self.end_beside();
                continue;
            };
            let came = few.mentions_in(&reply);
            if !period.is_empty() && !self.answers_beside(&reply, &tried, came.as_ref()) {
                continue;
            }
            match came {
                Some(path) => {
                    left = half;
                    last = Some((path, reply));
                }
                None if last.is_some() => drop(left.drain(..half.len())),
                None if half.len() == 1 && reply.is_refusal() => {
                    drop(left.drain(..1));
                    if self.asked_by_told_value(few, (&half[0], value), &reply).await? {
                        return Ok(true);
                    }
                }
                None => {
                    let named = half.iter().position(|name| reply.mentions(name).is_some());
                    match named.filter(|_| half.len() > 1 && reply.is_refusal()) {
                        Some(at) => drop(left.remove(at)),
                        None => drop(left.drain(..half.len())),
                    }
                }
            }
            if let (Some((path, reply)), [name]) = (&last, left.as_slice()) {
                self.flag_works(reply, path.clone(), name, &vocabulary::flag_value(name, value));
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tries the values that the refusal of a parameter with its value names as accepted.
    async fn asked_by_told_value(
        &mut self,
        few: &FewMentions,
        (name, value): (&str, &str),
        refusal: &Reply,
    ) -> Result<bool> {
        let told = refusal::values(&refusal.message());
        for value in told.into_iter().filter(|told| *told != value).take(VALUES) {
            if self.is_asked_by(few, name, &value).await?.unwrap_or(true) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True if mentions come for a parameter with this value; `None` if there is no response.
    async fn is_asked_by(&mut self, few: &FewMentions, name: &str, value: &str) -> Result<Option<bool>> {
        let asked = few.asked_with(&[pair(name, value)]);
        let Some(reply) = self.asker.ask("search", &asked).await? else { return Ok(None) };
        let Some(path) = few.mentions_in(&reply) else { return Ok(Some(false)) };
        self.flag_works(&reply, path, name, value);
        Ok(Some(true))
    }

    /// Takes records with a time that come unasked, however many were asked for, as mentions.
    fn asked_by_nothing(&mut self, bare: Option<Reply>) {
        if let Some(bare) = bare
            && let Some(path) = bare.body.as_ref().and_then(unasked_mentions)
        {
            let text = "every search returns mentions; no other number of them came than without dataSize";
            return self.mentions_come(&bare, path, MentionsParameter::Always, text);
        }
        let words = self.refusals.last().map(|refusal| format!(". Last refusal: {}", refusal.line()));
        let text = format!(
            "none of the parameters tried returned mentions; look it up in the service's documentation, set \
             requested_by and flag in [mentions], and complete [tables.mentions]{}",
            words.unwrap_or_default()
        );
        self.found.could_not_tell("mentions", text);
    }

    /// Sends names that a page size may have. Returns the one after which as many mentions came as were requested.
    async fn name_of_size(&mut self, few: &FewMentions) -> Result<Option<(&'static str, Reply, Path)>> {
        /// Names that are tried alone with a service that refuses unknown parameters.
        const ALONE: usize = 4;
        let mut left: Vec<&'static str> = vocabulary::SIZES.to_vec();
        // Of the style of the offset, if a link has it: `page[size]` beside `page[number]`.
        let offset = super::asker::own_name(OFFSET, &self.asker.names).to_owned();
        left.sort_by_key(|name| !['[', '$'].iter().any(|mark| name.contains(*mark) && offset.contains(*mark)));
        let strict = self.parameters.is_some();
        let listed = self.asker.listed.clone();
        left.retain(|name| listed.is_empty() || listed.iter().any(|known| known == name));
        left.truncate(if strict { ALONE } else { left.len() });
        let all = left.len();
        let mut last = None;
        // All names are sent at once, each with its own number. The number of mentions that come shows the likeliest one.
        let mut numbers = if strict { Vec::new() } else { self.telling_sizes(all) };
        let mut is_likely = false;
        while !left.is_empty() && self.asker.left() > RESERVE {
            let half = match left.len() {
                _ if strict || is_likely => left[..1].to_vec(),
                _ if last.is_none() => left.clone(),
                many if many == all => left[..2].to_vec(),
                many => left[..many.div_ceil(2)].to_vec(),
            };
            let number = |at: usize| numbers.get(at).copied().unwrap_or(FEW);
            let sizes = half.iter().enumerate().map(|(at, name)| pair(name, number(at)));
            let asked = [vec![self.aid()], self.found.with.clone(), sizes.collect()].concat();
            let Some(reply) = self.asker.ask("search", &asked).await? else { break };
            let sizes = if reply.is_refusal() { refusal::sizes(&reply.message()) } else { Vec::new() };
            // The longest name: a shorter one, such as `limit`, may be a word of the sentence.
            let named = half.iter().copied().filter(|own| reply.mentions(own).is_some()).max_by_key(|own| own.len());
            if let Some(own) = named.filter(|_| !sizes.is_empty()) {
                // Of a page size that is one of a few, the refusal of another one shows the name.
                let before = (Arc::clone(&self.asker.names), std::mem::replace(&mut self.found.sizes, sizes));
                self.refusals.push(reply);
                self.name(SIZE, own);
                let sized = vec![self.aid(), pair(SIZE, self.telling_size())];
                let reply = self.asker.ask("search", &[sized, self.found.with.clone()].concat()).await?;
                let came = reply.and_then(|reply| Some((own, few.mentions_in(&reply)?, reply)));
                if came.is_none() {
                    (self.asker.names, self.found.sizes) = before;
                }
                return Ok(came.map(|(own, path, reply)| (own, reply, path)));
            }
            if !numbers.is_empty() {
                let shown = few.number_of_unasked(&reply).and_then(|came| numbers.iter().position(|one| *one == came));
                numbers.clear();
                is_likely = shown.is_some();
                shown.into_iter().for_each(|at| left[..=at].rotate_right(1));
                if few.is_without_effect(&reply) {
                    break;
                }
                continue;
            }
            match few.mentions_in(&reply) {
                Some(path) => {
                    left = half;
                    last = Some((reply, path));
                }
                None if std::mem::take(&mut is_likely) => drop(left.drain(..1)),
                None if last.is_none() && !strict => break,
                None => drop(left.drain(..half.len())),
            }
            if let ([name], Some((reply, path))) = (left.as_slice(), &last) {
                return Ok(Some((name, reply.clone(), path.clone())));
            }
        }
        Ok(None)
    }

    /// Different page sizes, none of which came unasked.
    fn telling_sizes(&self, count: usize) -> Vec<u64> {
        let unasked = self.first.as_ref().map(lengths).unwrap_or_default();
        (FEW..).filter(|size| !unasked.contains(size)).take(count).collect()
    }

    /// Parameters that may request mentions, and values to try: the likeliest ones named by the service, or usual ones.
    fn flags(&self) -> (Vec<String>, Vec<String>) {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let (usual, values) = (owned(vocabulary::FLAGS), owned(vocabulary::FLAG_VALUES));
        let told = self.parameters.iter().flatten().filter(|name| !vocabulary::GIVEN.contains(&name.as_str()));
        let is_likely = |name: &String| vocabulary::FLAG_WORDS.iter().any(|word| plain(name).contains(word));
        let (likely, others): (Vec<String>, Vec<String>) = told.cloned().partition(is_likely);
        // Of a description only likely ones are tried: what requests mentions may be missing in it.
        let described = Some(&self.known.facts.described).filter(|names| !names.is_empty());
        if likely.is_empty() && described.is_some() && described == self.parameters.as_ref() {
            return (Vec::new(), Vec::new());
        }
        match (&self.parameters, likely.is_empty(), others.is_empty()) {
            (None, ..) => (usual, values),
            // These are tried one by one, so with a single value.
            (Some(_), true, true) => (usual, values[..1].to_vec()),
            (Some(_), true, false) => (others, values),
            (Some(_), false, _) => (likely, values),
        }
    }

    fn flag_works(&mut self, reply: &Reply, path: Path, name: &str, value: &str) {
        let text = format!("mentions are returned only with {name}={value}");
        self.mentions_come(reply, path, MentionsParameter::Flag(name.to_owned(), value.to_owned()), &text);
    }

    /// Takes the records of a response as mentions, which are requested in this way.
    fn mentions_come(&mut self, reply: &Reply, mut path: Path, asked: MentionsParameter, text: &str) {
        self.found.saw("mentions", text);
        self.found.asked = Some(asked);
        let mut reply = reply.clone();
        if self.reads_total_of_header(&reply) {
            reply = reply.with_header(self.asker.total_header.as_deref());
            path.insert(0, "body".to_owned());
        }
        let reply = &reply;
        self.found.fields = reply.body.as_ref().and_then(|body| shape::fields_of(body, &path));
        let arrays =
            if self.found.fields.is_some() { ", as arrays with the names of their fields beside them" } else { "" };
        self.found.saw("tables.mentions", format!("records at {}{arrays}", place(&path)));
        self.found.mentions = Some(path);
        let size = reply.asked.iter().find(|(name, _)| name == SIZE).and_then(|(_, size)| size.parse().ok());
        self.keep(size, &Arc::new(reply.clone()));
        self.look_at_mentions();
        if let Some(first) = self.first.clone() {
            self.look_at_overview(&first);
        }
        self.found.with_overview = self.found.has_overview(reply);
        self.headers(reply);
    }
}

/// The request for a few mentions, in a number that shows an effect.
struct FewMentions {
    /// The response to a request without a number of them.
    bare: Option<Reply>,
    /// The saved search, the page size, and what each search needs.
    asked: Vec<Pair>,
}

impl FewMentions {
    fn asked_with(&self, others: &[Pair]) -> Vec<Pair> {
        [self.asked.as_slice(), others].concat()
    }

    /// Length of the array at a path of the response without a number.
    fn came_before(&self, path: &Path) -> Option<usize> {
        Some(at(self.bare.as_ref()?.body.as_ref()?, path)?.as_array()?.len())
    }

    /// Length of the array at a path, if it is the same as without a number.
    fn came_again(&self, reply: &Reply, path: &Path) -> Option<usize> {
        let now = at(reply.body.as_ref()?, path)?.as_array()?.len();
        self.came_before(path).filter(|before| *before == now)
    }

    /// Number of the mentions of a response, at the place of those that the response without a number has.
    fn number_of_unasked(&self, reply: &Reply) -> Option<u64> {
        let body = reply.body.as_ref().filter(|_| !reply.is_refusal())?;
        Some(at(body, &self.unasked()?)?.as_array()?.len() as u64)
    }

    /// True for a refusal, and if as many mentions came as in the response without a number.
    fn is_without_effect(&self, reply: &Reply) -> bool {
        reply.is_refusal() || self.unasked().is_some_and(|path| self.came_again(reply, &path).is_some())
    }

    /// Path of the records that the response without a number has.
    fn unasked(&self) -> Option<Path> {
        unasked_mentions(self.bare.as_ref()?.body.as_ref()?)
    }

    /// Path of the array that has as many records as this response was asked for.
    fn mentions_in(&self, reply: &Reply) -> Option<Path> {
        let few = reply.asked.iter().find(|(name, _)| name == SIZE).and_then(|(_, size)| size.parse().ok());
        let few: u64 = few.unwrap_or(FEW);
        let body = reply.body.as_ref().filter(|_| !reply.is_refusal())?;
        let arrays = shape::arrays(body).into_iter().filter(|(_, records)| shape::is_rich(records));
        let fits = arrays.filter_map(|(path, records)| {
            let (now, before) = (records.len() as u64, self.came_before(&path));
            // As many as requested, or fewer if there was no such array before.
            let rank = match before {
                before if now == few && before != Some(records.len()) => 0,
                None if now < few => 1,
                // Possibly all mentions that there are.
                Some(before) if now < few && before == records.len() => 2,
                _ => return None,
            };
            Some((rank, usize::MAX - records.len(), path))
        });
        fits.min().map(|(.., path)| path)
    }
}

/// Path of the records that a search returns without being asked for any: several of them, each with a time, or else with a sentence
/// among other fields, since times may be of an unknown form.
fn unasked_mentions(body: &Value) -> Option<Path> {
    /// Records, and fields of one, that are not lists of something else by chance.
    const RECORDS: usize = 5;
    const FIELDS: usize = 5;
    /// Words of a sentence.
    const WORDS: usize = 4;
    let timed = |record: &&Value| leaves(record).iter().any(|(_, value)| shape::instant(value).is_some());
    let is_sentence = |value: &Value| value.as_str().is_some_and(|text| text.split_whitespace().count() >= WORDS);
    let told = |record: &&Value| {
        let fields = leaves(record);
        fields.len() >= FIELDS && fields.iter().any(|(_, value)| is_sentence(value))
    };
    let found = shape::arrays(body).into_iter();
    let found = found.filter(|(_, records)| records.len() >= RECORDS && shape::is_rich(records));
    let (dated, others): (Vec<_>, Vec<_>) = found.partition(|(_, records)| records.iter().all(timed));
    let others: Vec<_> = others.into_iter().filter(|(_, records)| records.iter().all(told)).collect();
    let found = if dated.is_empty() { others } else { dated };
    found.into_iter().max_by_key(|(_, records)| leaves(records[0]).len()).map(|(path, _)| path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cases::each;

    #[test]
    fn records_that_come_unasked_need_no_time_of_a_known_form() {
        let rows = |of: &dyn Fn(usize) -> Value| (0..8).map(of).collect::<Vec<Value>>();
        let mention = |n: usize, at: &str| json!({"id": n, "at": at, "text": format!("a text of number {n}"), "site": "x.test", "by": "ann"});
        let dated = rows(&|n| mention(n, "2026-06-01T10:00:00Z"));
        let odd = rows(&|n| mention(n, "20. November 2026, 10 Uhr"));
        let authors =
            rows(&|n| json!({"handle": format!("a{n}"), "name": "Ann Lee", "mentions": n, "reach": 7, "tone": "x"}));
        let cases = [
            (json!({"items": dated, "authors": authors}), Some("items")),
            (json!({"items": odd, "authors": authors}), Some("items")),
            (json!({"items": odd, "top": dated}), Some("top")),
            (json!({"authors": authors}), None),
            (json!({"items": odd[..2]}), None),
        ];
        each(cases, |(body, at)| assert_eq!(unasked_mentions(&body).map(|path| path.concat()).as_deref(), at));
    }
}
