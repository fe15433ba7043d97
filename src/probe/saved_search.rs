//! Finds a saved search with mentions, and what each search needs beside its id.
//!
//! The first refusals of a service say which parameters they miss. They are sent in turn, from that of the saved search to those of the
//! example, until a search is answered.

use std::collections::VecDeque;
use std::sync::Arc;

use super::asker::{Pair, Reply};
use super::candidates::{AID, DURATION, NONSENSE, pair, shape_of_instant, written};
use super::dialogue::Dialogue;
use super::effects;
use super::observations::Seen;
use super::refusal;
use super::scheduler::Outcome;
use super::shape::{self, each_once, leaves, said};
use super::{numbers, vocabulary};
use crate::error::{Result, Tool};

impl Dialogue {
    /// The ends of a window in the example, if it was answered.
    fn ends_of_example(&self) -> Option<Vec<Pair>> {
        let (since, until, _) = self.known.facts.ends().filter(|_| !self.seen.is_empty())?;
        let of = |name: &String| self.known.facts.example.iter().find(|(known, _)| known == name).cloned();
        Some(vec![of(&since)?, of(&until)?])
    }

    /// Requests the overview of a few saved searches and continues with the one that has the most mentions. If no search is answered,
    /// the ids of the list may be another member of its entries.
    pub(super) async fn search(&mut self) -> Result<()> {
        loop {
            if self.search_listed().await? {
                return Ok(());
            }
            let Some(member) = self.other_members.pop_front() else { break };
            self.list_by(&member);
        }
        self.tell_unanswered();
        Ok(())
    }

    /// As [`search`](Self::search), by one member of the entries. `false` if no search is answered.
    async fn search_listed(&mut self) -> Result<bool> {
        /// Saved searches requested at most.
        const LOOKED_AT: usize = 4;
        /// The same, if their ids may be another member of the entries.
        const UNCERTAIN: usize = 1;
        /// Mentions that are enough to stop at a saved search.
        const ENOUGH: u64 = 100;
        /// Mentions that may arrive between two requests.
        const MEANWHILE: u64 = 10;
        let given = self.known.facts.aid.clone();
        let others = self.listed.iter().filter(|aid| given.as_ref() != Some(aid)).cloned();
        let most = if self.other_members.is_empty() { LOOKED_AT } else { UNCERTAIN };
        let mut aids: VecDeque<String> = given.clone().into_iter().chain(others).take(most).collect();
        let mut best: Option<((u64, u64), String, Reply)> = None;
        let mut masses: Vec<u64> = Vec::new();
        while let Some(mut aid) = aids.pop_front() {
            let asked = [vec![pair(AID, &aid)], self.found.with.clone()].concat();
            let Some(reply) = self.asker.ask("search", &asked).await? else {
                match self.asker.is_recording() {
                    true => continue,
                    false => break,
                }
            };
            let Some(reply) = self.as_needed(reply, &asked).await? else { break };
            if reply.is_refusal() {
                self.refusals.push(reply);
                continue;
            }
            let sent = reply.asked.iter().find(|(name, _)| name == AID).map(|(_, sent)| sent.clone());
            let is_other = sent.as_ref().is_some_and(|sent| *sent != aid);
            aid = sent.unwrap_or(aid);
            if is_other || !self.other_members.is_empty() {
                // The member of the entries that is their id is known now.
                self.other_members.clear();
                aids = self.listed.iter().filter(|other| **other != aid).take(LOOKED_AT - 1).cloned().collect();
            }
            let mass = mass(&reply);
            let enough = mass.0 >= ENOUGH || given.as_ref() == Some(&aid);
            masses.push(mass.1);
            self.visited.push((aid.clone(), reply.clone()));
            if best.as_ref().is_none_or(|(most, ..)| mass > *most) {
                best = Some((mass, aid, reply));
            }
            if enough {
                break;
            }
        }
        let Some((_, aid, reply)) = best else {
            return Ok(false);
        };
        // Mentions that arrived meanwhile make a small difference.
        let (least, most) = (masses.iter().min(), masses.iter().max());
        self.aids_differ = least.zip(most).is_some_and(|(least, most)| *most > least.saturating_mul(2) + MEANWHILE);
        self.begin_with(aid, reply);
        Ok(true)
    }

    /// Repeats a refused search with what its refusals miss, until one is answered or nothing is left to try. `None` if a request has
    /// no response.
    async fn as_needed(&mut self, mut reply: Reply, asked: &[Pair]) -> Result<Option<Reply>> {
        if reply.is_refusal() && self.learn_names(&reply.message()) {
            self.refusals.push(reply);
            let Some(again) = self.asker.ask("search", asked).await? else { return Ok(None) };
            reply = again;
        }
        if reply.is_refusal() && self.asker.refuses(AID) && !self.has_tried_bare {
            // Without the parameter, a refusal may say which one is missing.
            self.refusals.push(reply);
            let Some(again) = self.asker.ask("search", &self.found.with.clone()).await? else { return Ok(None) };
            self.has_tried_bare = true;
            reply = again;
            self.learn_names(&reply.message());
        }
        // The name of the saved search may have to be known before the ends of a window, or after them.
        if reply.is_refusal()
            && let Some(again) = self.within_ends(&reply, asked).await?
        {
            reply = again;
        }
        if reply.is_refusal()
            && let Some(again) = self.as_required(&reply, asked).await?
        {
            reply = again;
        }
        if reply.is_refusal()
            && let Some(again) = self.within_ends(&reply, asked).await?
        {
            reply = again;
        }
        if reply.is_refusal()
            && let Some(again) = self.as_listed(&reply, asked).await?
        {
            reply = again;
        }
        if reply.is_refusal() && self.has_other_id() && !self.has_tried_bare && reply.mentions(AID).is_some() {
            // As above, if the refusal has other words for a parameter that the service does not have.
            self.refusals.push(reply);
            let Some(again) = self.asker.ask("search", &self.found.with.clone()).await? else { return Ok(None) };
            self.has_tried_bare = true;
            reply = again;
            let named = match self.as_required(&reply, asked).await? {
                None => self.as_listed(&reply, asked).await?,
                named => named,
            };
            reply = named.unwrap_or(reply);
        }
        // It may be another saved search by now.
        let asked = if reply.asked.is_empty() { asked.to_vec() } else { reply.asked.clone() };
        if reply.is_refusal()
            && let Some(again) = self.within_ends(&reply, &asked).await?
        {
            reply = again;
        }
        if reply.is_refusal() { self.as_in_example(reply, &asked).await } else { Ok(Some(reply)) }
    }

    /// True if the id of the list's entries has another name than the usual one, and the parameter of the saved search is not known.
    fn has_other_id(&self) -> bool {
        let id = self.found.lists.first().and_then(|list| list.aid.last());
        id.is_some_and(|id| id != AID) && !self.knows_name_of_aid()
    }

    /// True if the parameter of the saved search has another name than the usual one, which is known.
    fn knows_name_of_aid(&self) -> bool {
        self.asker.names.iter().any(|(usual, _)| usual == AID)
    }

    /// Repeats a refused search with the ends of a window in an example that was answered, then with its other parameters. `None` if a
    /// request has no response.
    async fn as_in_example(&mut self, mut reply: Reply, asked: &[Pair]) -> Result<Option<Reply>> {
        if self.asker.ends.is_empty()
            && let Some(ends) = self.ends_of_example()
        {
            self.asker.ends = ends;
            let Some(again) = self.asker.ask("search", asked).await? else { return Ok(None) };
            if !again.is_refusal() {
                self.found.saw("search", "each search needs the ends of a window, as the example has them");
                return Ok(Some(again));
            }
            self.asker.ends.clear();
        }
        let needed = self.known.facts.others();
        if self.found.with.is_empty() && !needed.is_empty() {
            self.refusals.push(reply);
            let asked = [asked, needed.as_slice()].concat();
            let Some(again) = self.asker.ask("search", &asked).await? else { return Ok(None) };
            reply = again;
            if !reply.is_refusal() {
                self.found.with = needed;
            }
        }
        Ok(Some(reply))
    }

    /// Notes that no search was answered.
    fn tell_unanswered(&mut self) {
        let last = self.refusals.last().map(|reply| format!(". Last refusal: {}", reply.line()));
        let is_known = !self.listed.is_empty() || self.known.facts.aid.is_some();
        let why = if is_known { "no search was answered" } else { "no saved search is known" };
        let member = self.found.lists.first().and_then(|list| list.aid.last().cloned());
        if let Some(member) = member.filter(|name| !vocabulary::is_usual_id(name)) {
            let text =
                format!("no search was answered with a value of `{member}`, which may not be the id of an entry");
            self.found.could_not_tell("tables.saved_searches", text);
        }
        let text = format!(
            "{why}; state the parameter of the saved search with {} 'search.aid = \"NAME\"', or give a request that works \
             with {}{}",
            Tool::ProbeFact,
            Tool::ProbeExample,
            last.unwrap_or_default()
        );
        self.found.could_not_tell("search", text);
    }

    /// Goes on with a saved search, of which this is the first response.
    fn begin_with(&mut self, aid: String, mut reply: Reply) {
        if self.reads_total_of_header(&reply) {
            reply = reply.with_header(self.asker.total_header.as_deref());
        }
        self.found.overview = reply.body.as_ref().and_then(|body| shape::overview(body, None));
        self.found.aid = Some(aid);
        self.seen.push(Seen { size: None, reply: Arc::new(reply.clone()) });
        self.look_at_overview(&reply);
        self.ends_in_response(&reply);
        self.names_in_links(&reply);
        self.names_in_echo(&reply);
        self.first = Some(reply);
    }

    /// Reads a header with the total as part of each search from now on, if the response has it there and nowhere else. `true` if that
    /// is new.
    pub(super) fn reads_total_of_header(&mut self, reply: &Reply) -> bool {
        let known = self.asker.total_header.is_some();
        let Some(name) = numbers::only_in_header(reply).filter(|_| !known).map(str::to_owned) else { return false };
        self.found
            .saw("search", format!("the number of mentions is in the header `{name}` only, which is read as well"));
        for seen in &mut self.seen {
            seen.reply = Arc::new(seen.reply.as_ref().clone().with_header(Some(name.as_str())));
        }
        self.first = self.first.take().map(|first| first.with_header(Some(name.as_str())));
        for (_, outcome) in self.beside.iter_mut().flat_map(|beside| &mut beside.periods.done) {
            if let Outcome::Taken(reply) = outcome {
                *reply = Arc::new(reply.as_ref().clone().with_header(Some(name.as_str())));
            }
        }
        (self.found.total_header, self.asker.total_header) = (Some(name.clone()), Some(name));
        true
    }

    /// Takes the names and the form of the ends of a window from a response that repeats them, if they are unusual.
    fn ends_in_response(&mut self, reply: &Reply) {
        let facts = &self.known.facts;
        let open = facts.ends().is_none() && facts.values(DURATION).is_empty();
        let Some(body) = reply.body.as_ref().filter(|_| open) else { return };
        let leaves = leaves(body);
        let texts: Vec<(&String, String)> =
            leaves.iter().filter_map(|(path, value)| Some((path.last()?, said(value)?))).collect();
        let of = |name: &String| texts.iter().find(|(known, _)| *known == name).map(|(_, text)| text);
        let usual = vocabulary::ends_among(None);
        let found = texts.iter().find_map(|(name, _)| {
            vocabulary::ends_of_time(name).find_map(|(since, until)| {
                let (from, to) = (of(&since)?, of(&until)?);
                let how = shape_of_instant(from).filter(|how| shape_of_instant(to) == Some(how))?;
                let unusual = how != "rfc3339" || !usual.contains(&(since.clone(), until.clone()));
                (from < to && unusual).then_some((since, until, how))
            })
        });
        self.known.facts.described_ends = found;
    }

    /// Requests a search with the ends of a window that its refusal misses, and sends them with each search from now on. Returns the
    /// first response that is none.
    async fn within_ends(&mut self, refusal: &Reply, asked: &[Pair]) -> Result<Option<Reply>> {
        /// Days of the window, which no named period has.
        const DAYS: i64 = 37;
        /// Requests for it.
        const TRIES: usize = 3;
        let missed = refusal::required(&refusal.statements());
        let Some(now) = refusal.date().filter(|_| !self.has_tried_ends) else { return Ok(None) };
        let given =
            self.known.facts.ends().filter(|(since, until, _)| missed.contains(since) || missed.contains(until));
        let mut ends: Vec<(String, String)> = missed.iter().flat_map(|name| vocabulary::ends_with(name)).collect();
        ends.sort_by_key(|(since, until)| !(missed.contains(since) && missed.contains(until)));
        let usual = ends
            .into_iter()
            .take(1)
            .flat_map(|(since, until)| ["rfc3339", "date", "epoch_ms"].map(|how| (since.clone(), until.clone(), how)));
        for (since, until, how) in given.into_iter().chain(usual).take(TRIES) {
            let (from, to) = written((now - DAYS * effects::DAY, now), how);
            self.has_tried_ends = true;
            self.asker.ends = vec![pair(&since, from), pair(&until, to)];
            let Some(reply) = self.asker.ask("search", asked).await? else { break };
            if !reply.is_refusal() {
                self.found.saw("search", format!("each search needs `{since}` and `{until}`, which a refusal names"));
                self.known.facts.described_ends.get_or_insert((since, until, how));
                return Ok(Some(reply));
            }
        }
        self.asker.ends.clear();
        Ok(None)
    }

    /// Requests a search under the names of parameters that its refusal misses. Returns the first response that is none, or that
    /// misses another one.
    async fn as_required(&mut self, refusal: &Reply, asked: &[Pair]) -> Result<Option<Reply>> {
        /// Names tried.
        const NAMES: usize = 2;
        let before = Arc::clone(&self.asker.names);
        if self.knows_name_of_aid() {
            return Ok(None);
        }
        let given = self.known.facts.others();
        let sent = asked.iter().find(|(usual, _)| usual == AID).map(|(_, aid)| aid.clone());
        let is_end = |own: &str| !vocabulary::ends_with(own).is_empty();
        let missed = self.missed_by(refusal);
        let before_ends = !missed.iter().any(|name| is_end(name));
        let other = |own: &String| own != AID && !is_end(own) && !given.iter().any(|(name, _)| name == own);
        for own in missed.into_iter().filter(other).take(NAMES) {
            self.tried_members.extend(sent.iter().map(|aid| (own.clone(), aid.clone())));
            self.name(AID, &own);
            let Some(reply) = self.asker.ask("search", asked).await? else { break };
            let missed = refusal::required(&reply.statements());
            let next = before_ends && !missed.contains(&own) && missed.iter().any(|name| is_end(name));
            if !reply.is_refusal() || next {
                self.found.saw("search", format!("the saved search is sent as `{own}`, which a refusal names"));
                return Ok(Some(reply));
            }
            self.asker.names = Arc::clone(&before);
        }
        Ok(None)
    }

    /// Requests a search under the names of members of the list's entries: those that a refusal names, that of their ids, and words that
    /// the refusal names otherwise. Returns the first response that is no refusal, or that misses another parameter.
    async fn as_listed(&mut self, refusal: &Reply, asked: &[Pair]) -> Result<Option<Reply>> {
        /// Names tried.
        const NAMES: usize = 2;
        let before = Arc::clone(&self.asker.names);
        let id = self.found.lists.first().and_then(|list| list.aid.last().cloned());
        // A saved search of others that were answered may be refused for itself.
        let is_open = !self.knows_name_of_aid() && self.visited.is_empty();
        let Some(id) = id.filter(|_| is_open) else { return Ok(None) };
        let named = self.members.iter().filter(|name| refusal.mentions(name).is_some()).cloned();
        let subjects = refusal.body.as_ref().map(refusal::subjects).unwrap_or_default();
        let mut names = each_once(named.chain([id.clone()]).chain(subjects));
        let is_known = |name: &String| {
            let is_given = self.known.facts.example.iter().any(|(known, _)| known == name);
            vocabulary::GIVEN.contains(&name.as_str()) || (is_given && !self.members.contains(name))
        };
        names.retain(|name| !is_known(name) && vocabulary::ends_with(name).is_empty());
        let sent = asked.iter().find(|(usual, _)| usual == AID).map(|(_, aid)| aid.clone());
        for own in names.into_iter().take(NAMES) {
            let is_other = own != id && self.members.contains(&own);
            if is_other {
                self.list_by(&own);
            }
            let aid = if is_other { self.listed.first().cloned() } else { sent.clone() };
            let tried = aid.map(|aid| (own.clone(), aid)).filter(|tried| !self.tried_members.contains(tried));
            if let Some(tried) = tried {
                let rest = asked.iter().filter(|(usual, _)| usual != AID).cloned();
                let asked: Vec<Pair> = [pair(AID, &tried.1)].into_iter().chain(rest).collect();
                self.tried_members.push(tried);
                self.name(AID, &own);
                let reply = self.asker.ask("search", &asked).await?;
                let missed = reply.as_ref().map(|reply| refusal::required(&reply.statements())).unwrap_or_default();
                let next = !missed.contains(&own) && missed.iter().any(|name| !vocabulary::ends_with(name).is_empty());
                if let Some(reply) = reply.filter(|reply| !reply.is_refusal() || next) {
                    let text = format!("the saved search is sent as `{own}`: a refusal or the list has that name");
                    self.found.saw("search", text);
                    return Ok(Some(reply));
                }
                self.asker.names = Arc::clone(&before);
            }
            if is_other {
                self.list_by(&id);
            }
        }
        Ok(None)
    }

    /// Requests a saved search that does not exist, unless two that exist had other numbers: a service that returns the same for it
    /// ignores the parameter.
    pub(super) async fn other_search(&mut self) -> Result<()> {
        let is_open = self.listed.len() > 1 && !self.aids_differ;
        let Some(first) = self.first.as_ref().filter(|_| is_open) else { return Ok(()) };
        let of_first = mass(first);
        let asked = [vec![pair(AID, NONSENSE)], self.found.with.clone()].concat();
        let Some(reply) = self.asker.ask("search", &asked).await? else { return Ok(()) };
        if reply.is_refusal() {
            self.refusals.push(reply);
        } else if of_first.0 > 0 && mass(&reply) == of_first {
            let own = super::asker::own_name(AID, &self.asker.names);
            let text = format!(
                "`{own}` makes no difference: a saved search that does not exist has the same numbers. State the parameter of \
                 the saved search with {} 'search.aid = \"NAME\"'",
                Tool::ProbeFact
            );
            self.found.aid_ignored = true;
            self.found.could_not_tell("search", text);
        }
        Ok(())
    }
}

/// Measures how many mentions a response covers, by its header with the total as well.
fn mass(reply: &Reply) -> (u64, u64) {
    let (sum, all) = reply.body.as_ref().map(numbers::mass).unwrap_or_default();
    (numbers::total_header(reply).map_or(sum, |(_, total)| total.max(sum)), all)
}
