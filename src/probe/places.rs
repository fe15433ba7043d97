//! Usual names of the place of a page, for services that do not take the one that is tried first.
//!
//! A service that ignores unknown parameters is sent all of them at once, those of rows with a number each: the first mention that comes
//! shows which of them had the effect.

use std::sync::Arc;

use super::candidates::{OFFSET, pair};
use super::dialogue::{Dialogue, LOOK};
use super::observations::NoOffset;
use super::offset::tried_together;
use super::vocabulary;
use crate::error::Result;

/// The second or third page, or the third row: none of them begins with the first mention.
const PLACE: u64 = 2;
/// Rows that are neither the first one of a usual page nor each other's.
const ROWS: [u64; 8] = [1, 2, 3, 4, 6, 7, 8, 9];
/// Mentions that do not follow each other by chance.
const LEAST: usize = 3;

/// A name, with the row that is requested with it; `None` if it usually counts pages.
type Named = (&'static str, Option<u64>);

impl Dialogue {
    /// True if the service ignores parameters that it does not have, and a person has not stated how pages are found.
    pub(super) fn takes_any_name(&self) -> bool {
        let is_stated = self.known.facts.entries().iter().any(|[section, ..]| section == "offset");
        !is_stated && self.parameters.is_none() && self.asker.listed.is_empty()
    }

    /// Sends usual names of the place of a page to a service that ignores unknown parameters: all at once, then those that may have had
    /// the effect.
    pub(super) async fn place_among_names(&mut self) -> Result<()> {
        /// Requests for it.
        const TRIES: usize = 6;
        /// Requests reserved for later steps.
        const RESERVE: u64 = 6;
        let small = self.accepted(5);
        let mut known = self.newest_known();
        if (known.len() as u64) < LOOK && self.asker.left() > RESERVE {
            let size = self.accepted(LOOK);
            let first = self.page_at(None, size, true).await?.map(|(ids, _)| ids).unwrap_or_default();
            if first.len() > known.len() {
                known = first;
            }
        }
        // That of an example had no effect.
        let before = Arc::clone(&self.asker.names);
        self.asker.names = Arc::new(before.iter().filter(|(usual, _)| usual != OFFSET).cloned().collect());
        let mut left = self.names_of_places();
        // The number of names among which one is known to have an effect.
        let mut all = None;
        for _ in 0..TRIES {
            let tried = all.map_or(left.len(), |all| tried_together(all, left.len(), true));
            let names: Vec<Named> = left.iter().copied().take(tried).collect();
            if names.is_empty() || self.asker.left() <= RESERVE {
                break;
            }
            let row = |row: Option<u64>| row.filter(|_| all.is_none()).unwrap_or(PLACE);
            let places = names.iter().map(|(name, at)| pair(name, row(*at))).collect();
            let Some((ids, reply)) = self.page_within(self.widest(), places, small, false).await? else { break };
            if reply.is_refusal() {
                // The end of a window, or a parameter that takes no number.
                left.retain(|(name, _)| reply.mentions(name).is_none());
                self.refusals.push(reply);
                if left.len() == names.len() {
                    break;
                }
            } else if all.is_none() {
                left = with_effect(&left, &known, &ids);
                all = Some(left.len());
            } else if !is_other_page(&known, &ids) {
                drop(left.drain(..names.len()));
            } else if let [(own, _)] = names.as_slice() {
                if *own != OFFSET {
                    self.name(OFFSET, own);
                }
                self.numbered_offset(Some((ids, reply))).await?;
                break;
            } else {
                left = names;
            }
        }
        if self.found.offset.is_none() {
            self.asker.names = before;
        }
        Ok(())
    }

    /// Names that the place of a page may have: usual ones that are not those of the ends of a window.
    fn names_of_places(&self) -> Vec<Named> {
        let needed = self.asker.ends.iter().map(|(name, _)| name.clone());
        let given = self.known.facts.ends().into_iter().flat_map(|(since, until, _)| [since, until]);
        let ends: Vec<String> = needed.chain(given).chain(self.found.window.working.iter().cloned()).collect();
        let mut rows = ROWS.into_iter();
        let named = vocabulary::OFFSETS.into_iter().map(|(name, pages)| (name, if pages { None } else { rows.next() }));
        named.filter(|(name, _)| !ends.iter().any(|end| end == name) && !self.asker.refuses(name)).collect()
    }

    /// Sends usual names of the place of a page, if the service has other names than the usual ones for other parameters.
    pub(super) async fn other_place(&mut self) -> Result<()> {
        const NAMES: [&str; 2] = ["page", "offset"];
        /// Requests reserved for later steps.
        const RESERVE: u64 = 6;
        if self.takes_any_name() && self.found.no_offset == Some(NoOffset::Ignored) {
            return self.place_among_names().await;
        }
        let before = Arc::clone(&self.asker.names);
        let is_named = before.iter().any(|(usual, _)| usual == OFFSET);
        if before.is_empty() || is_named || !self.asker.listed.is_empty() {
            return Ok(());
        }
        let (small, known) = (self.accepted(5), self.newest_known());
        for own in NAMES {
            if self.asker.left() <= RESERVE {
                break;
            }
            self.name(OFFSET, own);
            // The third row or the second page: neither begins with the first mention.
            let second = self.newest_ids(2, small).await?;
            if second.as_ref().is_some_and(|(ids, _)| !ids.is_empty() && ids.first() != known.first()) {
                self.numbered_offset(second).await?;
            }
            if self.found.offset.is_some() {
                return Ok(());
            }
            self.asker.names = Arc::clone(&before);
        }
        Ok(())
    }
}

/// The names that may have had the effect that a page shows: that of the row at which it begins, or those of pages. `known`: the newest
/// mentions.
fn with_effect(names: &[Named], known: &[String], page: &[String]) -> Vec<Named> {
    let begins_at = |row: u64| {
        let rest = usize::try_from(row).ok().and_then(|row| known.get(row..)).unwrap_or_default();
        rest.len().min(page.len()) >= LEAST && rest.iter().zip(page).all(|(one, other)| one == other)
    };
    let by_row = names.iter().copied().filter(|(_, row)| row.is_some_and(begins_at));
    let by_row: Vec<Named> = by_row.collect();
    if !by_row.is_empty() || !is_other_page(known, page) {
        return by_row;
    }
    names.iter().copied().filter(|(_, row)| row.is_none()).collect()
}

/// True if a page has none of the first two mentions. `known`: the newest mentions.
fn is_other_page(known: &[String], page: &[String]) -> bool {
    page.len() >= LEAST && known.len() >= LEAST && known.iter().take(2).all(|first| !page.contains(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_which_name_had_an_effect() {
        let ids = |range: std::ops::Range<usize>| range.map(|n| format!("m{n}")).collect::<Vec<String>>();
        let names = [("page", None), ("offset", Some(1)), ("skip", Some(2)), ("from", Some(3)), ("p", None)];
        let cases = [
            (20, 1..6, vec!["offset"]),
            (20, 3..8, vec!["from"]),
            (20, 5..10, vec!["page", "p"]),
            (20, 10..15, vec!["page", "p"]),
            (5, 5..10, vec!["page", "p"]),
            // The same page, an empty one, and too few mentions to be there by no chance.
            (20, 0..5, vec![]),
            (20, 0..0, vec![]),
            (20, 2..4, vec![]),
        ];
        for (newest, page, expected) in cases {
            let found = with_effect(&names, &ids(0..newest), &ids(page.clone()));
            let found: Vec<&str> = found.into_iter().map(|(name, _)| name).collect();
            assert_eq!(found, expected, "{newest} {page:?}");
        }
    }
}
