//! Determines which parameter requests mentions. Their array is the one that is as long as requested.
//!
//! What is known comes first, and then groups of usual parameters, which are divided until one is left.

use std::sync::Arc;

use serde_json::Value;

use super::asker::{Pair, Reply};
use super::candidates::{OFFSET, SIZE, pair};
use super::dialogue::{Dialogue, FEW};
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
    /// Sends names that a page size may have. Returns the one after which as many mentions came as were requested.
    async fn name_of_size(
        &mut self,
        mentions_in: &impl Fn(&Reply) -> Option<Path>,
    ) -> Result<Option<(&'static str, Reply, Path)>> {
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
        while !left.is_empty() && self.asker.left() > RESERVE {
            let half = match left.len() {
                _ if strict => left[..1].to_vec(),
                _ if last.is_none() => left.clone(),
                many if many == all => left[..2].to_vec(),
                many => left[..many.div_ceil(2)].to_vec(),
            };
            let sizes = half.iter().map(|name| pair(name, FEW));
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
                let came = reply.and_then(|reply| Some((own, mentions_in(&reply)?, reply)));
                if came.is_none() {
                    (self.asker.names, self.found.sizes) = before;
                }
                return Ok(came.map(|(own, path, reply)| (own, reply, path)));
            }
            match mentions_in(&reply) {
                Some(path) => {
                    left = half;
                    last = Some((reply, path));
                }
                None if last.is_none() && !strict => break,
                None => drop(left.drain(..half.len())),
            }
            if let ([name], Some((reply, path))) = (left.as_slice(), &last) {
                return Ok(Some((name, reply.clone(), path.clone())));
            }
        }
        Ok(None)
    }

    /// Determines how mentions are requested. Their array is the one that is as long as requested.
    pub(super) async fn what_asks_for_mentions(&mut self) -> Result<()> {
        let bare = self.first.clone();
        let mut sized = vec![self.aid(), pair(SIZE, self.telling_size())];
        sized.extend(self.found.with.clone());
        let mentions_in = |reply: &Reply| {
            let few = reply.asked.iter().find(|(name, _)| name == SIZE).and_then(|(_, size)| size.parse().ok());
            let few: u64 = few.unwrap_or(FEW);
            let body = reply.body.as_ref().filter(|_| !reply.is_refusal())?;
            let before = |path: &Path| Some(at(bare.as_ref()?.body.as_ref()?, path)?.as_array()?.len());
            let arrays = shape::arrays(body).into_iter().filter(|(_, records)| shape::is_rich(records));
            let fits = arrays.filter_map(|(path, records)| {
                let (now, before) = (records.len() as u64, before(&path));
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
        };
        let first = match self.sized.take() {
            Some(reply) => Some(reply),
            None => self.asker.ask("search", &sized).await?,
        };
        let Some(mut reply) = first else { return Ok(()) };
        if self.learn_sizes(&reply) {
            self.refusals.push(reply.clone());
            sized[1] = pair(SIZE, self.telling_size());
            let Some(again) = self.asker.ask("search", &sized).await? else { return Ok(()) };
            reply = again;
        }
        if let Some(path) = mentions_in(&reply) {
            let unasked = bare
                .as_ref()
                .and_then(|bare| at(bare.body.as_ref()?, &path)?.as_array())
                .is_some_and(|a| !a.is_empty());
            let (asked, text) = match unasked {
                true => (MentionsParameter::Always, "every search returns mentions, as many as dataSize requests"),
                false => (MentionsParameter::Size, "mentions are returned if dataSize is above 0"),
            };
            return self.mentions_come(&reply, path, asked, text);
        }
        if reply.is_refusal() {
            self.refusals.push(reply);
        }
        // Mentions that come unasked may come in another number under another name of the size.
        if bare.as_ref().and_then(|bare| unasked_mentions(bare.body.as_ref()?)).is_some()
            && let Some((own, reply, path)) = self.name_of_size(&mentions_in).await?
        {
            self.name(SIZE, own);
            let text = format!("every search returns mentions, as many as {own} requests");
            return self.mentions_come(&reply, path, MentionsParameter::Always, &text);
        }
        if let Some((name, value)) = self.known.flag.clone() {
            let asked: Vec<Pair> = sized.iter().cloned().chain([pair(&name, &value)]).collect();
            let Some(reply) = self.asker.ask("search", &asked).await? else { return Ok(()) };
            if let Some(path) = mentions_in(&reply) {
                return self.flag_works(&reply, path, &name, value);
            }
        }
        let given: Vec<Pair> = self.known.facts.others().into_iter().filter(|pair| !sized.contains(pair)).collect();
        if !given.is_empty() {
            let asked = [sized.clone(), given.clone()].concat();
            let Some(reply) = self.asker.ask("search", &asked).await? else { return Ok(()) };
            if let Some(path) = mentions_in(&reply) {
                for (name, value) in given.iter().filter(|_| given.len() > 1) {
                    let asked: Vec<Pair> = sized.iter().cloned().chain([pair(name, value)]).collect();
                    let Some(alone) = self.asker.ask("search", &asked).await? else { break };
                    if let Some(path) = mentions_in(&alone) {
                        return self.flag_works(&alone, path, name, value.clone());
                    }
                }
                // One alone, or none of them without the others.
                if let Some(((name, value), with)) = given.split_last() {
                    self.found.with.extend(with.iter().cloned());
                    return self.flag_works(&reply, path, name, value.clone());
                }
            }
        }
        for (name, value) in self.known.facts.flags.clone() {
            if self.asker.left() <= RESERVE {
                break;
            }
            let asked: Vec<Pair> = sized.iter().cloned().chain([pair(&name, &value)]).collect();
            let Some(reply) = self.asker.ask("search", &asked).await? else { continue };
            if let Some(path) = mentions_in(&reply) {
                return self.flag_works(&reply, path, &name, value);
            }
        }
        let (names, values) = self.flags();
        self.begin_beside();
        for value in values {
            let mut left = names.clone();
            let mut last: Option<(Path, Reply)> = None;
            // All at once if the service accepts that, then halves. Periods that are known need no request later.
            while !left.is_empty() && self.asker.left() > RESERVE.saturating_sub(self.done_beside()) {
                let half = match (&last, &self.parameters) {
                    (None, None) => left.clone(),
                    (None, Some(_)) => left[..1].to_vec(),
                    // The likeliest ones alone.
                    (Some(_), _) if left.len() == names.len() && left.len() > 4 => left[..2].to_vec(),
                    (Some(_), _) => left[..left.len().div_ceil(2)].to_vec(),
                };
                let tried = half.iter().map(|name| pair(name, vocabulary::flag_value(name, &value)));
                let (tried, period): (Vec<Pair>, Vec<Pair>) = (tried.collect(), self.next_beside());
                let asked = [sized.as_slice(), &tried, &period].concat();
                let Some(reply) = self.asker.ask("search", &asked).await? else {
                    if period.is_empty() || !self.asker.is_recording() {
                        return Ok(());
                    }
                    // A recording may have the request without a period.
                    self.end_beside();
                    continue;
                };
                let came = mentions_in(&reply);
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
                        // Values that the refusal names as accepted.
                        let told = refusal::values(&reply.message());
                        for value in told.into_iter().filter(|told| *told != value).take(VALUES) {
                            let asked: Vec<Pair> = sized.iter().cloned().chain([pair(&half[0], &value)]).collect();
                            let Some(reply) = self.asker.ask("search", &asked).await? else { return Ok(()) };
                            if let Some(path) = mentions_in(&reply) {
                                return self.flag_works(&reply, path, &half[0], value);
                            }
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
                    let value = vocabulary::flag_value(name, &value);
                    return self.flag_works(&reply.clone(), path.clone(), name, value);
                }
            }
        }
        // Records with a time that come unasked are mentions, however many were asked for.
        if let Some(bare) = bare.clone()
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
        Ok(())
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

    fn flag_works(&mut self, reply: &Reply, path: Path, name: &str, value: String) -> Result<()> {
        let text = format!("mentions are returned only with {name}={value}");
        self.mentions_come(reply, path, MentionsParameter::Flag(name.to_owned(), value), &text)
    }

    pub(super) fn mentions_come(
        &mut self,
        reply: &Reply,
        path: Path,
        asked: MentionsParameter,
        text: &str,
    ) -> Result<()> {
        self.found.saw("mentions", text);
        self.found.asked = Some(asked);
        let (mut reply, mut path) = (reply.clone(), path);
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
        Ok(())
    }
}

/// Path of the records that a search returns without being asked for any: several of them, each with a time.
fn unasked_mentions(body: &Value) -> Option<Path> {
    let dated = |records: &[&Value]| {
        let timed = |record: &&Value| leaves(record).iter().any(|(_, value)| shape::instant(value).is_some());
        records.len() >= 5 && shape::is_rich(records) && records.iter().all(timed)
    };
    let found = shape::arrays(body).into_iter().filter(|(_, records)| dated(records));
    found.max_by_key(|(_, records)| leaves(records[0]).len()).map(|(path, _)| path)
}
