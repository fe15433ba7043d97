//! Determines which time of mentions windows refer to, and the zone of times that are written without one.
//!
//! Both follow from the windows that were requested: the times of their mentions lie within. Zones look alike for months, so further
//! windows and pages are requested that tell apart those that are left.

use std::sync::Arc;

use super::asker::{Pair, Reply};
use super::candidates::{DURATION, OFFSET, SORT, pair};
use super::dialogue::{Dialogue, LOOK, TRIAL};
use super::observations::Seen;
use super::shape::{self, Path};
use super::vocabulary::plain;
use super::window_ends::{old_day, written_at};
use super::zones;
use crate::error::{Result, Tool};
use crate::profile::Zone as Clock;

impl Dialogue {
    /// Determines the zone of times that are written without one: they lie in their windows, and the number of mentions in a window
    /// shows between which two of them it begins. A zone is known only if no other one fits, so windows from both sides of a change
    /// of clocks are needed.
    pub(super) async fn zone_of_times(&mut self) -> Result<()> {
        /// Requests for windows and a page of old mentions.
        const REQUESTS: usize = 6;
        /// Requests that are left for trying the profile: without a zone, mentions have no time, and there is little to try.
        const LEFT: u64 = 1;
        let named = self.found.named_zone;
        let others = zones::all().iter().copied().filter(|zone| named != Some(*zone));
        let among: Vec<Clock> = named.into_iter().chain(others).collect();
        let Some(mut fitting) = self.found.zones_of_times(&self.seen, &among) else { return Ok(()) };
        if fitting.is_empty() {
            fitting = self.zones_of_other_times(&among);
        }
        let name = self.found.columns.path(self.found.time_name()).and_then(|path| path.last());
        let name = name.map(|name| plain(name)).unwrap_or_default();
        self.found.utc_is_named = ["utc", "gmt"].iter().any(|zone| name.starts_with(zone) || name.ends_with(zone));
        let has_oldest = self.found.oldest_times(&self.seen).is_some();
        let mut search = ZoneSearch { fitting, has_oldest, ..ZoneSearch::default() };
        for _ in 0..REQUESTS {
            let is_known = search.fitting.is_empty() || self.found.told_zone_of_times(&search.fitting).is_some();
            if is_known || self.asker.left() <= LEFT {
                break;
            }
            let window = self.found.telling_window(&self.seen, &search.fitting, &search.units);
            let goes_on = match &window {
                Some((_, words)) => {
                    let asked = [vec![self.aid(), pair(DURATION, words)], self.found.with.clone()].concat();
                    self.ask_and_keep(&asked).await?
                }
                None => self.ask_for_days_or_pages(&mut search).await?,
            };
            if !goes_on {
                break;
            }
            let before = search.fitting.len();
            search.fitting = self.found.zones_of_times(&self.seen, &among).unwrap_or_default();
            search.units.extend(window.filter(|_| search.fitting.len() == before).map(|(unit, _)| unit));
        }
        self.tell_zone_of_times(&search.fitting);
        Ok(())
    }

    /// Requests what tells zones apart if no period does: an absolute window, days in another zone, or further pages. `false` if
    /// nothing is left, or if a request has no response.
    async fn ask_for_days_or_pages(&mut self, search: &mut ZoneSearch) -> Result<bool> {
        /// Old days that are requested.
        const DAYS: usize = 3;
        /// Zones that further pages are likely to tell apart.
        const FEW_ZONES: usize = 4;
        let absolute = self.found.window.absolute.clone().filter(|absolute| {
            ["rfc3339", "epoch_ms", "epoch_s"].contains(&absolute.instants) && search.spans.len() < 2
        });
        let span = absolute.zip(self.found.telling_span(&self.seen, &search.fitting, &search.spans));
        if let Some((absolute, (from, to))) = span {
            search.spans.push((from, to));
            let [from, to] = [from, to].map(|at| written_at(at, absolute.instants));
            self.within(&absolute, (&from, &to), None).await?;
            return Ok(true);
        }
        if self.differ_now(&search.fitting) && self.days_follow_zone().await? {
            return Ok(true);
        }
        // Old days of the requested zone, if windows are of days and none that ends now tells.
        let days = self.found.window.absolute.clone().filter(|absolute| {
            absolute.instants == "date" && (search.has_oldest || search.fitting.len() < 4) && search.days.len() < DAYS
        });
        if let Some((absolute, (_, zone))) = days.zip(self.other_zone()) {
            let Some(day) = old_day(&self.known_times(), &search.fitting, &search.days) else { return Ok(false) };
            search.days.push(day);
            let word = shape::utc(day).date_naive().to_string();
            self.within(&absolute, (&word, &word), Some(zone)).await?;
            return Ok(true);
        }
        // The days of another zone begin at other instants.
        let is_timed = self.seen.iter().any(|seen| self.found.has_timed_entries(&seen.reply));
        let other = self.other_zone().filter(|_| search.has_oldest && is_timed && !search.has_other_days);
        if let Some((_, zone)) = other {
            search.has_other_days = true;
            let asked = [vec![self.aid()], self.found.with.clone(), self.widest(), vec![zone]].concat();
            return self.ask_and_keep(&asked).await;
        }
        // Old mentions are from before a change of clocks.
        if !std::mem::replace(&mut search.has_oldest, true) {
            let has_response = self.oldest_page().await?;
            if has_response {
                self.count_of_widest().await?;
            }
            return Ok(has_response);
        }
        search.pages += 1;
        Ok(search.fitting.len() <= FEW_ZONES && self.further_page(search.pages).await?)
    }

    /// Requests a search, and keeps the response. `false` if there is none.
    async fn ask_and_keep(&mut self, asked: &[Pair]) -> Result<bool> {
        let Some(reply) = self.asker.ask("search", asked).await? else { return Ok(false) };
        self.keep(None, &Arc::new(reply));
        Ok(true)
    }

    /// Takes the zone of times from those that fit, or notes why it is not known.
    fn tell_zone_of_times(&mut self, fitting: &[Clock]) {
        match (self.found.told_zone_of_times(fitting), fitting) {
            (Some(zone), fitting) => {
                let why = match fitting {
                    [_] => "they fit the requested windows in no other zone",
                    _ if self.found.utc_is_named => {
                        "the field is named after it, and they fit the windows that were requested"
                    }
                    _ => "it is named, and they fit the windows that were requested",
                };
                self.found.saw("tables.mentions", format!("times without a zone are those of {zone}: {why}"));
                self.found.time_zone = Some(zone).filter(|zone| *zone != Clock::UTC);
            }
            (None, [first, others @ ..]) if self.found.agree_on_times(fitting, &self.samples) => {
                let text = format!(
                    "times have no zone; they are those of one of {}, in which all that came are the same instants. A time on which \
                     these zones differ is an error. State the zone with {} 'timezone.default = \"…\"'",
                    zones::listed(fitting),
                    Tool::ProbeFact
                );
                self.found.could_not_tell("tables.mentions", text);
                (self.found.time_zone, self.found.other_time_zones) = (Some(*first), others.to_vec());
            }
            (None, fitting) => {
                let fits = match fitting {
                    [] => "none that is known fits the windows".to_owned(),
                    _ => format!("{} fit the windows", zones::listed(fitting)),
                };
                let not_utc = if fitting.contains(&Clock::UTC) { "" } else { " and are not those of UTC" };
                let text = format!(
                    "the times of mentions have no zone{not_utc}: {fits}. A fixed offset and a zone with daylight saving time \
                     look alike for months, so the times are texts. State the zone with {} 'timezone.default = \"…\"', or \
                     make the columns timestamps with `zone`, and set `time`",
                    Tool::ProbeFact
                );
                self.found.could_not_tell("tables.mentions", text);
                let local = |path: &Path| self.samples.iter().any(|row| self.found.has_local(path, row) == Some(true));
                let columns = self.found.columns.columns.iter().filter(|(.., kind)| *kind == shape::Type::Timestamp);
                let unknown = columns.map(|(_, path, _)| path.clone()).filter(local).collect();
                self.found.unknown_times = unknown;
                if self.found.usable_sorts().count() < self.found.sorts.len() {
                    self.found
                        .could_not_tell("sort", "orders by time are not used: the zone of the times is not known");
                }
            }
        }
    }

    /// Zones that fit the windows if these refer to another time of mentions than that of the publication, which fits in none. Empty if
    /// no other time does, or several.
    fn zones_of_other_times(&mut self, among: &[Clock]) -> Vec<Clock> {
        if self.found.window_time.is_some() {
            return Vec::new();
        }
        let times = self.found.columns.columns.iter().filter(|(.., kind)| *kind == shape::Type::Timestamp);
        let others: Vec<(String, Path)> = times
            .filter(|(name, ..)| name != "published_at")
            .map(|(name, path, _)| (name.clone(), path.clone()))
            .collect();
        let mut fits = Vec::new();
        for (name, path) in others {
            self.found.window_time = Some(path.clone());
            let zones = self.found.zones_of_times(&self.seen, among).unwrap_or_default();
            fits.extend((!zones.is_empty()).then_some((name, path, zones)));
        }
        self.found.window_time = None;
        let [(name, path, zones)] = fits.as_slice() else { return Vec::new() };
        let text = format!(
            "windows refer to {name}: the times of publication fit the requested windows in no zone. Conditions on {name} are \
             sent to the service"
        );
        self.found.window_time = Some(path.clone());
        self.found.saw("tables.mentions", text);
        zones.clone()
    }

    /// Requests the oldest mentions of the widest window, unless they came before. `false` if no sort order has them first, or if no
    /// request is left.
    pub(super) async fn oldest_page(&mut self) -> Result<bool> {
        self.old_page(0).await
    }

    /// Requests the page of this number behind the oldest mentions, which is the first one for 0. As [`oldest_page`](Self::oldest_page),
    /// and `false` if a further page is refused, or if pages are not found by an offset.
    pub(super) async fn old_page(&mut self, number: u64) -> Result<bool> {
        let Some((size, asked)) = self.asking_oldest() else { return Ok(false) };
        let place = match (number, self.found.offset) {
            (0, _) => None,
            (_, Some(offset)) => Some(pair(OFFSET, offset.first + if offset.pages { number } else { number * size })),
            (_, None) => return Ok(false),
        };
        let asked = [asked, place.into_iter().collect()].concat();
        let is_known = |seen: &Seen| {
            let has = |reply: &Reply| asked.iter().all(|pair| reply.asked.contains(pair));
            let is_first = seen.reply.asked.iter().all(|(name, _)| name != OFFSET);
            self.found.has_days_of_utc(&seen.reply) && has(&seen.reply) && (number > 0 || is_first)
        };
        if self.seen.iter().any(is_known) {
            return Ok(true);
        }
        let Some(reply) = self.asker.ask("search", &asked).await? else { return Ok(false) };
        let is_answered = !reply.is_refusal();
        self.keep((number == 0).then_some(size), &Arc::new(reply));
        Ok(number == 0 || is_answered)
    }

    /// The page size and the parameters that request the oldest mentions of the widest window; `None` if no sort order has them first.
    pub(super) fn asking_oldest(&self) -> Option<(u64, Vec<Pair>)> {
        let order = self.found.sorts.iter().find(|sort| sort.column == self.found.time_name() && !sort.descending)?;
        let size = self.accepted(self.found.page.map_or(LOOK, |page| page.max.clamp(1, 100)));
        Some((size, [self.asking(size), self.widest(), vec![pair(SORT, &order.value)]].concat()))
    }

    /// Requests the widest window alone if its number of mentions came with other parameters only, which may have an effect on it.
    async fn count_of_widest(&mut self) -> Result<()> {
        let widest = self.widest();
        let counts = |reply: &Reply| {
            let is_widest = widest.iter().all(|pair| reply.asked.contains(pair));
            is_widest && self.found.is_plain(reply) && self.found.count(reply).is_some()
        };
        if widest.is_empty() || self.asker.left() <= TRIAL || self.seen.iter().any(|seen| counts(&seen.reply)) {
            return Ok(());
        }
        let asked = [vec![self.aid()], self.found.with.clone(), widest].concat();
        self.ask_and_keep(&asked).await.map(drop)
    }

    /// Finds the time that windows refer to, if mentions came whose publication lies outside of the requested window: another
    /// time of each mention that lies within.
    pub(super) fn find_window_time(&mut self) {
        let found = &self.found;
        let path = found.columns.path(found.time_name());
        if found.window_time.is_some() || path.and_then(|path| found.fits_windows(path, &self.seen)) != Some(false) {
            return;
        }
        let columns = found.columns.columns.iter().filter(|(.., kind)| *kind == shape::Type::Timestamp);
        let fitting: Vec<(String, Path)> = columns
            .filter(|(_, path, _)| found.fits_windows(path, &self.seen) == Some(true))
            .map(|(name, path, _)| (name.clone(), path.clone()))
            .collect();
        let text = match fitting.as_slice() {
            [(name, path)] => {
                let text = format!(
                    "windows refer to {name}: mentions were returned whose other times are outside the requested window. \
                     Conditions on {name} are sent to the service"
                );
                self.found.window_time = Some(path.clone());
                return self.found.saw("tables.mentions", text);
            }
            // A window may be longer than its name says.
            [] => return,
            _ => {
                "mentions were returned whose publication time is outside the requested window, and several of their other times are inside it; \
                 set `time` to the one that windows refer to"
            }
        };
        self.found.could_not_tell("tables.mentions", text);
        self.found.window_time = Some(Vec::new());
    }
}

/// Zones that fit all that came, and what was requested to tell them apart.
#[derive(Debug, Default)]
struct ZoneSearch {
    fitting: Vec<Clock>,
    /// Units of periods that told no zones apart.
    units: Vec<char>,
    /// Absolute windows, and days of another zone.
    spans: Vec<(i64, i64)>,
    days: Vec<i64>,
    /// Further pages of the newest mentions.
    pages: u64,
    /// Set once the oldest mentions were requested.
    has_oldest: bool,
    /// Set once the days of the timeline were requested in another zone.
    has_other_days: bool,
}
