//! Determines how the pages behind the first one are found: by an offset, a cursor that each page names, or the id of a mention.
//!
//! Each of them is known by the mentions that it returns: those that follow the ones that came before.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::asker::{Pair, Reply};
use super::candidates::{AID, OFFSET, SIZE, SORT, pair};
use super::dialogue::{Dialogue, FEW, TRIAL};
use super::observations::{CursorPlace, Findings, NoOffset, Offset, Seen};
use super::shape::{self, Path, number, place, said};
use super::vocabulary;
use crate::error::Result;

impl Dialogue {
    /// Determines how the pages of mentions are found: by a cursor that each page names, or by an offset. A link that has the offset as
    /// a number shows an offset.
    pub(super) async fn offset(&mut self) -> Result<()> {
        let is_numbered = self.has_numbered_link();
        if self.found.mentions.is_none() || (!is_numbered && self.cursor().await?) {
            return Ok(());
        }
        // A service that has another name for the page size has one for the place of a page as well.
        let [has_size, has_place] =
            [SIZE, OFFSET].map(|usual| self.asker.names.iter().any(|(known, _)| known == usual));
        let is_likely = has_size && !has_place && self.takes_any_name();
        if is_likely {
            self.place_among_names().await?;
        }
        if self.found.offset.is_none() {
            self.numbered_offset(None).await?;
        }
        if is_numbered && self.found.offset.is_none() {
            self.cursor().await?;
        }
        if self.found.offset.is_none() && self.found.cursor.is_none() {
            self.place_of_last().await?;
        }
        if self.found.offset.is_none() && self.found.cursor.is_none() && !is_likely {
            self.other_place().await?;
        }
        if self.found.offset.is_some() || self.found.cursor.is_some() { Ok(()) } else { self.no_offset() }
    }

    /// True if a page links to the next one by an offset.
    fn has_numbered_link(&self) -> bool {
        let own = super::asker::own_name(OFFSET, &self.asker.names);
        let is_offset = |(name, value): &Pair| name == own && value.parse::<u64>().is_ok_and(|place| place < 1_000_000);
        let links = |reply: &Reply| {
            let next = reply.body.as_ref().map(|body| self.next_pages(body)).unwrap_or_default();
            next.iter().any(|(pairs, _)| pairs.iter().any(is_offset))
        };
        self.seen.iter().any(|seen| self.found.has_rows(&seen.reply) && links(&seen.reply))
    }

    /// Determines the unit of an offset and its first value. `second`: the response for 2, if it came before.
    pub(super) async fn numbered_offset(&mut self, second: Option<(Vec<String>, Reply)>) -> Result<()> {
        let small = self.accepted(5);
        let newest = self.newest_known();
        let Some((one, _)) = self.newest_ids(1, small).await? else { return Ok(()) };
        let zero = match first_page(&newest, &one) {
            Some(first) => first,
            None => {
                let Some((zero, reply)) = self.newest_ids(0, small).await? else { return Ok(()) };
                let is_refused = reply.is_refusal() && one.is_empty() && reply.mentions(OFFSET).is_some();
                self.found.no_offset = is_refused.then_some(NoOffset::Refused);
                if !self.found.has_rows(&reply) {
                    self.refusals.push(reply);
                }
                zero
            }
        };
        let follows = |before: &[String], after: &[String]| match () {
            () if before.len() < 3 || after.len() < 3 => None,
            () if before[1..] == after[..before.len() - 1] => Some(false),
            () if before.iter().all(|id| !after.contains(id)) => Some(true),
            () => None,
        };
        let offset = if zero.is_empty() || zero == one {
            let second = if second.is_none() { self.newest_ids(2, small).await? } else { second };
            let Some((two, reply)) = second else { return Ok(()) };
            match !two.is_empty() && zero == one && one == two {
                true => self.rounded_offset(&two, &reply, small).await?,
                false => follows(&one, &two).map(|pages| Offset { pages, first: 1, aligned: false }),
            }
        } else {
            follows(&zero, &one).map(|pages| Offset { pages, first: 0, aligned: false })
        };
        if let Some(Offset { pages, first, aligned }) = offset {
            let what = if pages { "pages" } else { "rows" };
            let how = if aligned { ", rounded down to a multiple of the page size" } else { "" };
            self.found.saw("offset", format!("dataFrom counts {what} from {first}{how}"));
            (self.found.offset, self.found.no_offset) = (offset, None);
        }
        Ok(())
    }

    /// Determines if an offset within the first page has no effect because the service rounds offsets down: that of a whole page has one.
    /// `first`: names of the first mentions, which came with a response for another offset in pages of this size.
    async fn rounded_offset(&mut self, first: &[String], reply: &Reply, size: u64) -> Result<Option<Offset>> {
        let rows = first.len() as u64;
        if self.widest_count(reply).is_none_or(|count| count <= rows) {
            return Ok(None);
        }
        let Some((next, _)) = self.newest_ids(rows, size).await? else { return Ok(None) };
        if next == first {
            self.found.no_offset = Some(NoOffset::Ignored);
        }
        let is_next = !next.is_empty() && next.iter().all(|id| !first.contains(id));
        Ok(is_next.then_some(Offset { pages: false, first: 0, aligned: true }))
    }

    /// Names of the newest mentions of the longest page that begins with the first one.
    pub(super) fn newest_known(&self) -> Vec<String> {
        let names = |reply: &Reply| self.rows(reply).iter().map(|row| self.found.name_of(row)).collect::<Vec<String>>();
        let first = self.newest_replies().filter(|reply| reply.asked.iter().all(|(name, _)| name != OFFSET));
        first.map(names).max_by_key(Vec::len).unwrap_or_default()
    }

    /// Determines if a page names the next one. `false` if no page does.
    async fn cursor(&mut self) -> Result<bool> {
        /// Names of the parameter that are tried.
        const NAMES: usize = 3;
        let names_a_page = |reply: &Reply| {
            let is_named = reply.body.as_ref().is_some_and(|body| !self.next_pages(body).is_empty());
            is_named || !self.links_of_search(reply).is_empty()
        };
        if !self.seen.iter().any(|seen| self.found.has_rows(&seen.reply) && names_a_page(&seen.reply)) {
            return Ok(false);
        }
        let small = self.accepted(5);
        let Some((first, reply)) = self.page_at(None, small, true).await? else { return Ok(false) };
        let next = reply.body.as_ref().map(|body| self.next_pages(body)).unwrap_or_default();
        let links = self.links_of_search(&reply).into_iter().map(|link| (link, false));
        for ((pairs, path), is_named) in next.into_iter().map(|next| (next, true)).chain(links).take(NAMES) {
            // A link repeats the parameters of the request.
            let sent = |name: &String| {
                let usual = super::asker::usual_name(name, &self.asker.names);
                reply.asked.iter().any(|(asked, _)| asked == usual)
            };
            let Some((name, value)) = pairs.into_iter().rev().find(|(name, _)| !sent(name)) else { continue };
            let Some((second, _)) = self.page_at(Some(pair(&name, value)), small, false).await? else { break };
            // A link whose name does not say where it leads may lead to the last page.
            let is_next = || {
                let newest = self.newest_known();
                newest.get(first.len()..).is_some_and(|rest| rest.starts_with(&second))
            };
            if !second.is_empty() && second.iter().all(|id| !first.contains(id)) && (is_named || is_next()) {
                let text =
                    format!("each page names the next one at {}: `{name}` returned other mentions", place(&path));
                self.found.saw("offset", text);
                self.found.cursor = Some((name, CursorPlace::Response(path)));
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Links of a response to pages of the same search, whatever their names, with their parameters: other places than those that
    /// [`next_pages`](Self::next_pages) has.
    fn links_of_search(&self, reply: &Reply) -> Vec<(Vec<Pair>, Path)> {
        let Some(body) = &reply.body else { return Vec::new() };
        let (usual, aid) = self.aid();
        let of_search = pair(super::asker::own_name(&usual, &self.asker.names), aid);
        let named: Vec<Path> = self.next_pages(body).into_iter().map(|(_, path)| path).collect();
        let mentions = self.found.mentions.as_deref().filter(|at| !at.is_empty());
        let is_other = |path: &Path| !named.contains(path) && mentions.is_none_or(|at| !path.starts_with(at));
        let links = shape::leaves(body).into_iter().filter(|(path, _)| is_other(path)).filter_map(|(path, value)| {
            let (_, query) = value.as_str()?.split_once('?')?;
            let pairs: Vec<Pair> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
            pairs.contains(&of_search).then_some((pairs, path))
        });
        links.collect()
    }

    /// Finds links to a next page in responses with all mentions of a window or a saved search: they say nothing about what follows.
    pub(super) async fn find_idle_links(&mut self) -> Result<()> {
        let cursor = self.found.cursor.as_ref().map(|(_, place)| place.clone());
        let is_open = |at: &Path| cursor != Some(CursorPlace::Response(at.clone()));
        let with_rows = self.seen.iter().filter(|seen| self.found.has_rows(&seen.reply));
        let is_linked = with_rows.flat_map(|seen| self.links_in(&seen.reply)).any(|at| is_open(&at));
        let is_unknown = is_linked && !self.seen.iter().any(|seen| self.has_all(seen));
        let few = match is_unknown {
            true => self.few_mentions().await?,
            false => None,
        };
        let all = self.seen.iter().chain(&few).filter(|seen| self.has_all(seen));
        let mut links = all.map(|seen| self.links_in(&seen.reply));
        let first = links.next().unwrap_or_default();
        let idle = links.fold(first, |idle, links| idle.intersection(&links).cloned().collect());
        for at in idle.into_iter().filter(is_open) {
            let text = format!("{} is there with the last mention as well, and says nothing about more", place(&at));
            self.found.saw("complete", text);
            self.found.idle_links.push(at);
        }
        Ok(())
    }

    /// Notes what a page with the last mention of its window has in the place of the cursor of the next page.
    pub(super) fn tell_end_of_cursor(&mut self) {
        let Some((_, CursorPlace::Response(path))) = &self.found.cursor else { return };
        let last = self.seen.iter().rev().find(|seen| self.has_all(seen));
        let Some(body) = last.and_then(|seen| seen.reply.body.as_ref()) else { return };
        let (value, at) = (shape::at(body, path), place(path));
        let mark = value.and_then(said).filter(|mark| !mark.is_empty());
        let observed = mark.is_none();
        let text = match (mark, value) {
            (Some(mark), _) => format!(
                "a page with the last mention has `{mark}` at {at}, as if another one followed: it is requested, and must have no \
                 mentions. If it is refused, queries are errors"
            ),
            (None, Some(value)) => format!("a page with the last mention names no next one: {at} is {value}"),
            (None, None) => format!("a page with the last mention names no next one: it has no {at}"),
        };
        match observed {
            true => self.found.saw("offset", text),
            false => self.found.could_not_tell("offset", text),
        }
    }

    /// True for a response with all mentions of its window.
    fn has_all(&self, seen: &Seen) -> bool {
        let largest = self.found.page.map_or(u64::MAX, |page| page.max);
        let rows = self.found.rows(&seen.reply).len() as u64;
        let total = self.found.total.as_ref().and_then(|total| number(seen.reply.body.as_ref()?, total));
        rows > 0 && seen.size.is_some_and(|size| rows < size.min(largest)) && total.is_none_or(|total| total == rows)
    }

    /// Places of links to a next page in a response.
    fn links_in(&self, reply: &Reply) -> BTreeSet<Path> {
        let body = reply.body.as_ref();
        body.map(|body| self.next_pages(body)).into_iter().flatten().map(|(_, at)| at).collect()
    }

    /// All mentions of another saved search that has a few, requested in a larger page. `None` if none is known, or if no request is
    /// left.
    async fn few_mentions(&mut self) -> Result<Option<Seen>> {
        let size = self.accepted(FEW);
        let few =
            |(_, reply): &&(String, Reply)| self.found.count(reply).is_some_and(|count| (1..size).contains(&count));
        let aid = self.visited.iter().find(few).map(|(aid, _)| aid.clone());
        let Some(aid) = aid.filter(|_| self.asker.left() > TRIAL) else { return Ok(None) };
        let mut asked = self.asking(size);
        asked.retain(|(name, _)| name != AID);
        asked.insert(0, pair(AID, aid));
        let reply = self.asker.ask("search", &asked).await?;
        Ok(reply.map(|reply| Seen { size: Some(size), reply: Arc::new(reply) }))
    }

    /// Determines if a page is requested by the id of the mention before it: the page after the third mention begins with the fourth.
    async fn place_of_last(&mut self) -> Result<()> {
        /// Requests for it.
        const TRIES: usize = 7;
        /// Mentions that it takes.
        const LEAST: usize = 5;
        let Some(at) = self.found.columns.path("id").cloned().filter(|_| self.found.fields.is_none()) else {
            return Ok(());
        };
        let small = self.accepted(5);
        let of = |found: &Findings, reply: &Reply| -> Vec<String> {
            found.rows(reply).into_iter().filter_map(|row| said(shape::at(row, &at)?)).collect()
        };
        let known = self.newest_replies().map(|reply| of(&self.found, reply)).find(|ids| ids.len() >= LEAST);
        let first = match known {
            Some(ids) => ids,
            None => {
                let Some((_, reply)) = self.page_at(None, small, true).await? else { return Ok(()) };
                of(&self.found, &reply)
            }
        };
        let [_, _, third, fourth, fifth, ..] = first.as_slice() else { return Ok(()) };
        let known = |name: &&str| {
            let named = self.parameters.as_ref().filter(|named| !named.is_empty());
            named.is_none_or(|named| named.iter().any(|known| known == name))
        };
        let mut left: Vec<&'static str> = vocabulary::PLACES.iter().copied().filter(known).collect();
        // A service that refuses unknown parameters is asked for them one by one.
        let (strict, all) = (self.parameters.is_some(), left.len());
        let mut works = false;
        for _ in 0..TRIES {
            let size = if strict { 1 } else { tried_together(all, left.len(), works) };
            let names: Vec<&'static str> = left.iter().copied().take(size).collect();
            if names.is_empty() || self.asker.left() <= TRIAL {
                break;
            }
            let places = names.iter().map(|name| pair(name, third)).collect();
            let Some((_, reply)) = self.page_within(self.widest(), places, small, false).await? else { break };
            if !of(&self.found, &reply).starts_with(&[fourth.clone(), fifth.clone()]) {
                left.drain(..names.len());
            } else if let [name] = names.as_slice() {
                let text = format!("`{name}` with the id of a mention returned the mentions after it");
                self.found.saw("offset", text);
                self.found.cursor = Some(((*name).to_owned(), CursorPlace::LastRecord(at.clone())));
                break;
            } else {
                (left, works) = (names, true);
            }
        }
        Ok(())
    }

    /// Responses with the newest mentions of a window that ends now, the last one first.
    fn newest_replies(&self) -> impl Iterator<Item = &Reply> {
        let order = self.newest_first();
        let is_newest = move |seen: &&Seen| {
            let sort = seen.reply.asked.iter().find(|(name, _)| name == SORT);
            let all = seen.size.is_some() && self.found.is_plain(&seen.reply) && self.found.ends_now(&seen.reply);
            all && sort == order.as_ref()
        };
        self.seen.iter().rev().filter(is_newest).map(|seen| seen.reply.as_ref())
    }

    /// Values in a response that may name the next page of mentions, those of parameters that the service names first.
    fn next_pages(&self, body: &Value) -> Vec<(Vec<Pair>, Path)> {
        let mentions = self.found.mentions.as_deref();
        let inside = |path: &Path| mentions.is_some_and(|at| !at.is_empty() && path.starts_with(at));
        let mut found = super::list_pages::next_pages(body);
        found.retain(|(_, path)| !inside(path));
        let told =
            |pairs: &[Pair]| pairs.last().is_some_and(|(name, _)| self.parameters.iter().flatten().any(|n| n == name));
        found.sort_by_key(|(pairs, _)| !told(pairs));
        found
    }

    pub(super) fn no_offset(&mut self) -> Result<()> {
        let asked = self.seen.iter().flat_map(|seen| &seen.reply.asked).filter(|(name, _)| name == OFFSET);
        let offsets: BTreeSet<&str> = asked.map(|(_, offset)| offset.as_str()).collect();
        let offsets: Vec<&str> = offsets.into_iter().collect();
        let text = match (self.found.no_offset, offsets.join(", ")) {
            (Some(NoOffset::Refused), _) => {
                "dataFrom is refused, and nothing that was tried requests the page after a mention; set [offset]"
                    .to_owned()
            }
            (Some(NoOffset::Ignored), offsets) => format!(
                "dataFrom has no effect: the first mentions came for {offsets} as well, and there are more. Nothing \
                 that was tried requests the page after a mention; set [offset]"
            ),
            (None, offsets) if offsets.is_empty() => {
                "no mentions came for a request with dataFrom; rows from 0 are assumed".to_owned()
            }
            (None, offsets) => format!(
                "dataFrom {offsets} show no pattern; rows from 0 are assumed. Probe a saved search with more mentions"
            ),
        };
        self.found.could_not_tell("offset", text);
        Ok(())
    }
}

/// The first page of the newest mentions, in the size of another page, if that page shows where it lies among them: at the first mention,
/// at the second one, or behind the first page.
fn first_page(newest: &[String], page: &[String]) -> Option<Vec<String>> {
    /// Mentions that do not follow each other by chance.
    const LEAST: usize = 3;
    let size = page.len();
    let first = newest.get(..size).filter(|_| size >= LEAST && newest.len() >= 2 * size)?;
    [0, 1, size].into_iter().any(|from| newest[from..from + size] == *page).then(|| first.to_vec())
}

/// Number of parameters that are tried next, if one of `all` has an effect: all of them, then the likeliest one of those that work
/// together, then half of those that are left.
pub(super) fn tried_together(all: usize, left: usize, works: bool) -> usize {
    match works {
        false => left,
        true if left == all => 1,
        true => left.div_ceil(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_mentions_show_the_place_of_another_page() {
        let names = |range: std::ops::Range<usize>| range.map(|n| format!("m{n}")).collect::<Vec<String>>();
        let cases = [
            // The same page, the next row, the next page.
            (20, 0..5, true),
            (20, 1..6, true),
            (20, 5..10, true),
            // Elsewhere, or with another mention.
            (20, 2..7, false),
            (20, 18..23, false),
            // Too few mentions to see the next page, or to be there by no chance.
            (9, 1..6, false),
            (20, 0..2, false),
            (20, 0..0, false),
        ];
        for (newest, page, shown) in cases {
            let first = first_page(&names(0..newest), &names(page.clone()));
            assert_eq!(first, shown.then(|| names(0..page.len())), "{newest} {page:?}");
        }
    }

    #[test]
    fn the_only_parameter_that_works_is_found_within_seven_requests_and_the_likeliest_within_two() {
        let all = vocabulary::PLACES.len();
        for own in 0..all {
            let (mut left, mut works, mut requests) = ((0..all).collect::<Vec<usize>>(), false, 0);
            loop {
                let tried: Vec<usize> = left.iter().copied().take(tried_together(all, left.len(), works)).collect();
                requests += 1;
                match (tried.contains(&own), tried.len()) {
                    (true, 1) => break,
                    (true, _) => (left, works) = (tried, true),
                    (false, len) => drop(left.drain(..len)),
                }
            }
            let most = if own == 0 { 2 } else { 7 };
            assert!(requests <= most, "{own}: {requests} requests");
        }
    }
}
