//! Requests pages of mentions, and determines the largest page and the depth of paging.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::asker::{Pair, Reply};
use super::candidates::{DURATION, OFFSET, SIZE, SORT, pair};
use super::dialogue::{Dialogue, LOOK, TRIAL};
use super::effects::HOUR;
use super::observations::{Depth, NoOffset, Offset, PageFinding, Seen};
use super::scheduler::{number_in, numbers_in};
use super::shape::{Path, number};
use super::{vocabulary, zones};
use crate::error::Result;

impl Dialogue {
    pub(super) fn newest_first(&self) -> Option<Pair> {
        let newest = self.found.sorts.iter().find(|sort| sort.column == self.found.time_name() && sort.descending);
        newest.map(|sort| pair(SORT, &sort.value))
    }

    /// Requests mentions at an offset and returns their ids; `None` if no request is left or mentions have no id. Where cursors name
    /// the pages, the first ones.
    pub(super) async fn ids(&mut self, offset: u64, size: u64) -> Result<Option<(Vec<String>, Reply)>> {
        if self.found.no_offset == Some(NoOffset::Refused) && self.found.cursor.is_none() {
            // Only the first page can be requested.
            return if offset == 0 { self.page_at(None, size, true).await } else { Ok(None) };
        }
        let counted = self.found.cursor.is_none();
        let from_the_first = !counted || self.found.offset.is_some_and(|known| known.first == offset);
        self.page_at(counted.then(|| pair(OFFSET, offset)), size, from_the_first).await
    }

    /// Requests the page of this number behind the newest mentions of the widest window, whose mentions may show when the entries of a
    /// timeline begin. `false` if no timeline names instants, or if pages are not found by an offset.
    pub(super) async fn further_page(&mut self, number: u64) -> Result<bool> {
        let is_timed = self.seen.iter().any(|seen| self.found.has_timed_entries(&seen.reply));
        let (Some(offset), true, true) = (self.found.offset, is_timed, self.newest_first().is_some()) else {
            return Ok(false);
        };
        let size = self.accepted(self.found.page.map_or(LOOK, |page| page.max.clamp(1, 100)));
        let rows = if offset.pages { number } else { number * size };
        Ok(self.ids(offset.first + rows, size).await?.is_some_and(|(ids, _)| !ids.is_empty()))
    }

    /// As [`ids`](Self::ids), in a window that tells the zone of times if there is one. All windows that end now have the same newest
    /// mentions.
    pub(super) async fn newest_ids(&mut self, offset: u64, size: u64) -> Result<Option<(Vec<String>, Reply)>> {
        if let Some(reply) = self.recorded_newest(offset, size) {
            self.keep(None, &Arc::new(reply.clone()));
            let is_widest = self.widest().iter().all(|pair| reply.asked.contains(pair));
            self.found.widest_count = self.widest_count(&reply).filter(|_| is_widest).or(self.found.widest_count);
            let ids = self.rows(&reply).iter().map(|row| self.found.name_of(row)).collect();
            return Ok(Some((ids, reply)));
        }
        let period = self.telling_period(size).unwrap_or_else(|| self.widest());
        self.page_within(period, vec![pair(OFFSET, offset)], size, false).await
    }

    /// The response of a recording to such a request, in whatever window it was made.
    fn recorded_newest(&mut self, offset: u64, size: u64) -> Option<Reply> {
        let order = self.newest_first()?;
        loop {
            let asked = [self.aid(), pair(SIZE, self.accepted(size)), pair(OFFSET, offset), order.clone()];
            let replies = self.asker.recorded_with(&asked);
            let found = replies.iter().find(|reply| self.found.has_rows(reply) || reply.mentions(OFFSET).is_some());
            // Sizes that are smaller than the service accepts are learnt once.
            if found.is_some() || !replies.iter().any(|reply| self.learn_sizes(reply)) {
                return found.cloned();
            }
        }
    }

    /// A period of whole days that ends now and has three pages of this size, whose number of mentions tells zones of times apart.
    fn telling_period(&self, size: u64) -> Option<Vec<Pair>> {
        self.newest_first().filter(|_| self.found.time_zone.is_none())?;
        let fitting = self.found.zones_of_times(&self.seen, zones::all())?;
        let is_told = self.found.told_zone_of_times(&fitting).is_some();
        let (_, words) = self.found.telling_window(&self.seen, &fitting, &['h']).filter(|_| !is_told)?;
        let (known, hours) = (self.known_times(), self.found.hours(&words)?);
        let recent = known.iter().filter(|at| known[0] - **at < hours * HOUR).count() as u64;
        (recent >= 3 * self.accepted(size)).then(|| vec![pair(DURATION, words)])
    }

    /// Requests mentions at a place, the first ones if there is none, and returns their ids.
    pub(super) async fn page_at(
        &mut self,
        place: Option<Pair>,
        size: u64,
        from_the_first: bool,
    ) -> Result<Option<(Vec<String>, Reply)>> {
        self.page_within(self.widest(), place.into_iter().collect(), size, from_the_first).await
    }

    /// Requests mentions of a period. Of several parameters, one may be the place.
    pub(super) async fn page_within(
        &mut self,
        period: Vec<Pair>,
        places: Vec<Pair>,
        size: u64,
        from_the_first: bool,
    ) -> Result<Option<(Vec<String>, Reply)>> {
        let is_widest = period == self.widest();
        let rest: Vec<Pair> = period.into_iter().chain(self.newest_first()).chain(places).collect();
        let asked = |found: &Self, size| [found.asking(size), rest.clone()].concat();
        let mut size = if size < LOOK { self.accepted(size) } else { size };
        let Some(mut reply) = self.asker.ask("search", &asked(self, size)).await? else { return Ok(None) };
        // Smaller than the service accepts.
        if size < LOOK && self.learn_sizes(&reply) {
            size = self.accepted(size);
            let Some(again) = self.asker.ask("search", &asked(self, size)).await? else { return Ok(None) };
            reply = again;
        }
        self.keep(from_the_first.then_some(size), &Arc::new(reply.clone()));
        self.found.widest_count = self.widest_count(&reply).filter(|_| is_widest).or(self.found.widest_count);
        let ids = self.rows(&reply).iter().map(|row| self.found.name_of(row)).collect();
        Ok(Some((ids, reply)))
    }

    /// Determines the largest page size.
    pub(super) async fn page_bound(&mut self) -> Result<()> {
        const HUGE: u64 = 100_000;
        const UNTRIED: &str = "no request was left to test page sizes";
        if self.found.mentions.is_none() {
            return Ok(());
        }
        if self.asker.refuses(SIZE) {
            return self.page_seen("dataSize is refused; set [page] to the parameter of the page size");
        }
        let first = self.found.offset.map_or(0, |offset| offset.first);
        if let Some(max) = self.found.sizes.last().copied() {
            let sizes: Vec<String> = self.found.sizes.iter().map(u64::to_string).collect();
            let Some((ids, reply)) = self.ids(first, max).await? else {
                let text = format!("dataSize must be one of {}; the largest was not tried", sizes.join(", "));
                return self.page_is(max, false, text);
            };
            let all = self.widest_count(&reply).is_some_and(|count| count <= max);
            let text = format!("dataSize must be one of {}; {max} returned {} mentions", sizes.join(", "), ids.len());
            return self.page_is(max, ids.len() as u64 == max || (all && !ids.is_empty()), text);
        }
        let Some((ids, reply)) = self.ids(first, HUGE).await? else { return self.page_seen(UNTRIED) };
        if !ids.is_empty() {
            self.largest_page(HUGE, ids.len() as u64, &reply);
            return Ok(());
        }
        let is_refused = reply.is_refusal_of(&[SIZE]);
        self.learn_least(&reply);
        if reply.is_refusal() && !is_refused {
            return self.page_seen("a request for a larger page was refused because of another parameter");
        }
        let what = if is_refused { "was refused" } else { "returned no mentions" };
        let (hint, bounds) = self.page_bounds(&reply.message(), HUGE);
        self.refusals.push(reply);
        for max in bounds {
            // The remaining requests are reserved for the depth, so the service's own figure is used.
            let asked = if self.asker.left() <= 3 { None } else { self.ids(first, max).await? };
            let Some((ids, reply)) = asked else {
                if let Some(max) = hint.filter(|max| *max >= LOOK) {
                    return self.page_is(max, true, format!("dataSize={HUGE} {what}, naming {max} as the limit"));
                }
                break;
            };
            if ids.is_empty() {
                self.refusals.push(reply);
                continue;
            }
            let told = ids.len() as u64 == max || self.widest_count(&reply).is_some_and(|count| count <= max);
            return self.page_is(max, told, format!("dataSize={HUGE} {what}, {max} was accepted"));
        }
        let accepted = self.seen.iter().any(|seen| seen.reply.asked.contains(&pair(SIZE, LOOK)));
        let told = accepted && hint.is_some_and(|bound| bound == LOOK);
        let how = if accepted { "was accepted" } else { "is assumed" };
        self.page_is(LOOK, told, format!("dataSize={HUGE} {what}, {LOOK} {how}"))
    }

    /// The largest page size that a person states or the refusal of a larger one names, and the sizes to try. A page that came shows
    /// that smaller ones are not the largest.
    fn page_bounds(&self, refusal: &str, refused: u64) -> (Option<u64>, Vec<u64>) {
        /// Numbers of a refusal that are tried.
        const NAMED: usize = 3;
        let received = self.seen.iter().map(|seen| self.found.rows(&seen.reply).len() as u64).max().unwrap_or_default();
        let mut named: Vec<u64> =
            numbers_in(refusal, Some(refused)).filter(|size| *size >= received).take(NAMED).collect();
        named.sort_unstable_by(|a, b| b.cmp(a));
        let first = number_in(refusal, Some(refused)).filter(|size| *size >= received);
        let hint = self.known.facts.most(SIZE).or(first).or(named.last().copied());
        let usual = vocabulary::PAGE_BOUNDS.iter().copied().filter(|size| *size >= received);
        let mut bounds: Vec<u64> = Vec::new();
        for size in hint.into_iter().chain(named).chain(usual) {
            if !bounds.contains(&size) {
                bounds.push(size);
            }
        }
        (hint, bounds)
    }

    /// Takes the largest page size. `is_seen`: responses show it.
    fn page_is(&mut self, max: u64, is_seen: bool, text: String) -> Result<()> {
        match is_seen {
            true => self.found.saw("page", text),
            false => self.found.could_not_tell("page", text),
        }
        self.found.page = Some(PageFinding { max, clamped: false });
        Ok(())
    }

    /// Records the page that came for a size that is larger than any service accepts.
    fn largest_page(&mut self, size: u64, rows: u64, reply: &Reply) {
        let count = self.widest_count(reply).or(self.found.widest_count);
        let has_all = count.is_none_or(|count| rows >= count);
        // A service may return a least number of mentions for smaller sizes: the size has an effect unless as many come for this one.
        let mut max = rows;
        if self.idle_size() == Some(rows) {
            let text = format!(
                "dataSize has no effect: a page has {rows} mentions, whatever is requested; set [page] to the parameter \
                 of the page size"
            );
            self.found.could_not_tell("page", text);
            self.found.idle_size = Some(rows);
            self.seen.iter_mut().for_each(|seen| seen.size = seen.size.and(Some(rows)));
        } else if has_all {
            let usual = vocabulary::PAGE_BOUNDS.iter().copied().find(|bound| *bound <= rows);
            // This size was requested before and not refused.
            max = usual.unwrap_or(rows).max(LOOK);
            let text = format!("dataSize={size} returned {rows} mentions, perhaps all there are; {max} is assumed");
            self.found.could_not_tell("page", text);
        } else {
            self.found.saw("page", format!("dataSize={size} returned {rows} mentions"));
        }
        self.found.page = Some(PageFinding { max, clamped: true });
    }

    /// The number of mentions of a page, if as many came for several sizes, and for one that is smaller.
    fn idle_size(&self) -> Option<u64> {
        let of = |seen: &Seen| {
            let size = seen.reply.asked.iter().find(|(name, _)| name == SIZE)?.1.parse::<u64>().ok()?;
            let rows = self.found.rows(&seen.reply).len() as u64;
            // All mentions of a window come for any size.
            let has_more = self.widest_count(&seen.reply).is_none_or(|count| count > rows);
            (has_more && self.found.is_plain(&seen.reply)).then_some((size, rows))
        };
        let came: BTreeSet<(u64, u64)> = self.seen.iter().filter_map(of).collect();
        let (smallest, rows) = came.first().copied()?;
        let is_same = came.len() > 1 && came.iter().all(|(_, other)| *other == rows);
        Some(rows).filter(|rows| is_same && *rows > smallest)
    }

    /// Uses the largest page that was received, if nothing shows a larger one.
    fn page_seen(&mut self, why: &str) -> Result<()> {
        let pages = self.seen.iter().map(|seen| self.found.rows(&seen.reply).len() as u64);
        let Some(max) = pages.max().filter(|max| *max > 0) else { return Ok(()) };
        self.page_is(max, false, format!("{why}; {max} mentions were received"))
    }

    /// Number of mentions within the widest window.
    pub(super) fn widest_count(&self, reply: &Reply) -> Option<u64> {
        let body = reply.body.as_ref()?;
        // A capped total says less than the timeline.
        let exact = |path: &Path| number(body, path).filter(|_| !super::numbers::is_bound(body, path));
        let totals = [&self.found.counted, &self.found.total];
        totals.into_iter().flatten().find_map(exact).or_else(|| self.found.sum(reply))
    }

    /// Determines how deep paging reaches.
    pub(super) async fn depth(&mut self) -> Result<()> {
        let (Some(_), Some(page)) = (&self.found.mentions, self.found.page) else { return Ok(()) };
        if self.found.cursor.is_some() {
            self.found.could_not_tell("depth", "how far cursors reach was not tried; all mentions are assumed");
            return Ok(());
        }
        if self.found.has_first_page_only() {
            self.found.could_not_tell("depth", "nothing is known that requests a further page");
            return Ok(());
        }
        if self.asker.left() <= TRIAL {
            return self.untried_depth();
        }
        let Some(total) = self.found.widest_count else {
            let text = "the depth of paging was not tested: no page came that counts the mentions of its window";
            self.found.could_not_tell("depth", text);
            return Ok(());
        };
        let offset = self.found.offset.unwrap_or_default();
        let total = total.max(1);
        if total <= page.max {
            return self.no_depth(total);
        }
        let (from, size, expected) = self.last_offset(total, offset, page.max);
        let Some((ids, reply)) = self.ids(from, size).await? else { return self.untried_depth() };
        if ids.len() as u64 == expected {
            let text = format!("paging reaches all {total} mentions; a limit beyond that is unknown");
            self.found.saw("depth", text);
            return Ok(());
        }
        if ids.len() as u64 > expected {
            let step = if offset.pages { 1 } else { size };
            let Some((further, _)) = self.ids(from + step, size).await? else { return self.untried_depth() };
            if further != ids {
                self.found.is_capped = true;
                self.found.could_not_tell("depth", format!("paging returned more mentions than the total of {total}"));
                return Ok(());
            }
        }
        let beyond = match (ids.is_empty(), reply.status) {
            (false, _) => "last_page",
            (true, 404) => "not_found",
            (true, 200..=299) if self.found.has_rows(&reply) => "empty",
            (true, _) => "bad_request",
        };
        // A limit named in the refusal comes first.
        let message = reply.message();
        let told = numbers_in(&message, Some(total)).find(|rows| *rows < total && *rows >= page.max);
        let told = told.filter(|_| reply.is_refusal());
        let usual = vocabulary::DEPTHS.iter().rev().copied();
        for rows in told.into_iter().chain(usual).filter(|rows| *rows < total && *rows >= page.max) {
            let (from, size) = match offset.pages {
                true => (offset.first + rows.div_ceil(page.max) - 1, page.max),
                false => (offset.first + rows - self.accepted(1).min(rows), self.accepted(1)),
            };
            let Some((ids, _)) = self.ids(from, size).await? else {
                if told == Some(rows) {
                    self.found.saw("depth", format!("row {total} was refused, naming {rows} as the limit ({beyond})"));
                    self.found.depth = Some(Depth { rows, beyond });
                    return Ok(());
                }
                break;
            };
            let reached = !ids.is_empty() && (beyond != "last_page" || ids.len() as u64 == size);
            if reached {
                self.found.saw("depth", format!("row {rows} was returned, row {total} was not ({beyond})"));
                self.found.depth = Some(Depth { rows, beyond });
                return Ok(());
            }
        }
        self.found.could_not_tell("depth", format!("row {total} was not returned ({beyond}); the limit was not found"));
        // A scan discovers the limit itself.
        Ok(())
    }

    /// The request for the last of these mentions, alone or with its page: its offset, its size, and the mentions that it returns.
    fn last_offset(&self, total: u64, offset: Offset, largest: u64) -> (u64, u64, u64) {
        let size = if offset.pages { largest } else { self.accepted(2) };
        let row = total - 1;
        let row = if offset.pages || offset.aligned { row / size * size } else { row };
        let place = if offset.pages { row / size } else { row };
        (offset.first + place, size, (total - row).min(size))
    }

    fn untried_depth(&mut self) -> Result<()> {
        self.found.could_not_tell("depth", "no request was left to test how deep paging reaches");
        Ok(())
    }

    fn no_depth(&mut self, total: u64) -> Result<()> {
        let text = format!("{total} mentions are too few to test how deep paging reaches; probe a larger saved search");
        self.found.could_not_tell("depth", text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::probe::asker::Asker;
    use crate::probe::known::Known;

    /// A probe that received pages of these sizes with these numbers of the 400 mentions.
    fn paged(pages: &[(u64, u64)]) -> Dialogue {
        let mut dialogue = Dialogue::new(Asker::recorded(Arc::default()), Known::default());
        (dialogue.found.mentions, dialogue.found.total) =
            (Some(vec!["items".to_owned()]), Some(vec!["total".to_owned()]));
        for (size, rows) in pages {
            let rows: Vec<Value> = (0..*rows).map(|n| serde_json::json!({"id": n})).collect();
            let body = serde_json::json!({"total": 400, "items": rows}).to_string();
            let reply = Reply::new(&[pair(SIZE, size)], 200, http::HeaderMap::new(), body);
            dialogue.seen.push(Seen { size: Some(*size), reply: Arc::new(reply) });
        }
        dialogue
    }

    #[test]
    fn a_size_that_never_has_an_effect_is_no_size() {
        let cases = [
            (vec![(13, 25), (20, 25), (5, 25)], Some(25)),
            // As many as requested, at most 25.
            (vec![(13, 13), (100, 25)], None),
            // The next one of several sizes.
            (vec![(13, 25), (5, 10)], None),
            // One size, and sizes that may be larger than what there is.
            (vec![(13, 25)], None),
            (vec![(13, 8), (20, 8)], None),
        ];
        crate::cases::each(cases, |(pages, idle)| assert_eq!(paged(&pages).idle_size(), idle));
    }

    #[test]
    fn the_largest_page_is_not_smaller_than_one_that_came() {
        let dialogue = paged(&[(13, 13), (20, 20)]);
        let cases = [
            "dataSize must be between 1 and 30",
            "dataSize wa 1 kara 30 made",
            "dataSize: Werte von 1 bis 30",
            "dataSize : entre 1 et 30",
            "dataSize: range [1, 30]",
            "dataSize: 1 <= n <= 30",
            "page too large (plan: Pro 5, limit 30)",
            "dataSize: got 100000, limit is 30",
        ];
        crate::cases::each(cases, |refusal| {
            let (hint, bounds) = dialogue.page_bounds(refusal, 100_000);
            assert_eq!((hint, bounds.first()), (Some(30), Some(&30)), "{refusal}");
            assert!(bounds.iter().all(|size| *size >= 20), "{refusal}: {bounds:?}");
        });
        // A number with a separator, and none.
        for refusal in ["at most 1,000", "too large"] {
            assert_eq!(dialogue.page_bounds(refusal, 100_000).0, None, "{refusal}");
        }
    }

    #[test]
    fn a_least_page_size_is_not_one_without_an_effect() {
        for (rows, idle) in [(25, Some(25)), (100, None)] {
            let mut dialogue = paged(&[(13, 25), (20, 25), (5, 25), (100_000, rows)]);
            let huge = Arc::clone(&dialogue.seen[3].reply);
            dialogue.largest_page(100_000, rows, &huge);
            let page = Some(PageFinding { max: rows, clamped: true });
            assert_eq!((dialogue.found.idle_size, dialogue.found.page), (idle, page));
        }
    }

    #[test]
    fn the_last_mention_is_requested_where_a_page_may_begin() {
        let dialogue = paged(&[]);
        let of = |pages, first, aligned| dialogue.last_offset(40, Offset { pages, first, aligned }, 25);
        assert_eq!([of(false, 0, false), of(false, 1, false)], [(39, 2, 1), (40, 2, 1)]);
        assert_eq!([of(false, 0, true), of(true, 1, false)], [(38, 2, 2), (2, 25, 15)]);
    }
}
