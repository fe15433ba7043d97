//! Links between pages, and detection of new rows.
//!
//! ```text
//! page   … a b c [d]          the last row is an anchor: the next page is requested from it on
//! page           [d] e f g    the anchor is present: nothing between d and e was lost
//! page                h i j   it is missing: rows before it are gone, or the order changed; read further back
//! ```
//!
//! An anchor in a page shows that the rows after it follow those already received, since one response shows one state
//! of the service. If mentions with equal sort keys change places between responses, only an anchor whose key was
//! received completely shows this; a careful pass uses no others. The key is the instant of a mention, or what a limited
//! query sorts by.
//!
//! Pure. Rows are told apart by the hash of their id; a collision would lose a row, and the count would then show it.

use std::collections::HashMap;

use super::ids::Ids;
use crate::profile::{Direction, Grid};

/// Facts about the rows of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'p> {
    /// Hash of each row's id.
    pub(super) ids: &'p [u64],
    /// Sort key of each row, as a number; equal rows may come in any order.
    pub(super) keys: Option<&'p [i64]>,
    /// Time of each row's last change, in microseconds.
    pub(super) versions: Option<&'p [i64]>,
}

/// Result of taking the rows of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Flag for each row, set if it is emitted.
    pub(super) keep: Vec<bool>,
    /// Rows received for the first time in this pass.
    pub(super) new: u64,
    /// Rows received before, which are not emitted.
    pub(super) doubles: u64,
    /// Duplicates whose version differs from one in the same page.
    pub(super) edited: u64,
    /// Rows received before in this pass that do not belong after the anchor that the page links to.
    pub(super) astray: u64,
}

/// Rows received of a window, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// Ids emitted before this pass.
    known: Ids,
    /// Ids of this pass.
    pass: Ids,
    /// Number of ids of this pass that were not emitted before it.
    fresh: u64,
    /// Ids of the last page that the next one may link to, in order.
    anchors: Vec<u64>,
    /// Ids of the last page after its anchors, which the next page repeats.
    unsettled: Ids,
    /// Rows from the last anchor to the end of its page, both included.
    pub(super) overlap: u64,
    /// First key of the last page.
    head: Option<i64>,
    /// Last row of the last page, and its key.
    tail: Option<u64>,
    last: Option<i64>,
    /// Last cell of the grid that was reached, as its first instant, and the ids within it.
    edge: Option<(i64, Ids)>,
    /// Set while all rows have arrived in the requested order.
    pub(super) sorted: bool,
    /// The order of the keys; `None` if they are not known.
    order: Option<Direction>,
    /// Instants at which the window can be cut; `None` if the keys are no instants.
    grid: Option<Grid>,
    /// Set if rows at such an instant belong to the cell that ends there.
    closed: bool,
    /// Set if only rows of a completely received key may be anchors.
    careful: bool,
    /// Set if the present anchors are such rows.
    settled: bool,
}

/// Link of a page to those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// Linked, even if mentions with equal keys have changed places.
    Firm,
    /// Linked, provided that the order is the same in every response.
    Loose,
    /// Not linked.
    Missing,
}

impl Chain {
    /// Creates the chain of a window whose rows arrive in this order of their keys, if any. If the keys are instants, the
    /// window can be cut at those of a grid. If `closed`, windows include their ends. The rows `known` were emitted before.
    pub(super) fn new(order: Option<Direction>, grid: Option<Grid>, closed: bool, known: Ids) -> Self {
        // In descending order, reading continues at an end.
        let closed = closed && order == Some(Direction::Desc);
        Self { known, order, grid, closed, sorted: true, ..Self::default() }
    }

    /// First instant of the cell of the grid that contains an instant.
    fn edge_of(&self, at: i64) -> i64 {
        match self.grid {
            Some(grid) if self.closed && grid.floor(at) == at => grid.floor(at.saturating_sub(1)),
            Some(grid) => grid.floor(at),
            None => at,
        }
    }

    /// End of the cell of the grid that begins at `edge`.
    pub(super) fn next_edge(&self, edge: i64) -> i64 {
        self.grid.map_or(edge, |grid| grid.ceil(edge.saturating_add(1)))
    }

    /// Returns the chain in careful mode, which assumes no order of equal keys.
    pub(super) fn careful(self) -> Self {
        Self { careful: self.order.is_some(), ..self }
    }

    /// Switches to careful mode from here on.
    pub(super) fn be_careful(&mut self) {
        self.careful = self.order.is_some();
    }

    /// True in careful mode.
    pub(super) fn is_careful(&self) -> bool {
        self.careful
    }

    /// True if rows arrive in an order of keys that are known.
    pub(super) fn is_ordered(&self) -> bool {
        self.order.is_some()
    }

    /// Starts another pass over the window.
    pub(super) fn again(&mut self, careful: bool) {
        self.known.extend(self.pass.drain());
        self.anchors.clear();
        self.unsettled.clear();
        (self.overlap, self.head, self.last, self.edge) = (0, None, None, None);
        (self.sorted, self.fresh, self.careful) = (true, 0, careful && self.order.is_some());
    }

    /// Distinct rows of this pass.
    pub(super) fn received(&self) -> u64 {
        self.pass.len() as u64
    }

    /// Distinct rows of all passes.
    pub(super) fn all(&self) -> u64 {
        self.known.len() as u64 + self.fresh
    }

    /// Rows of this pass that no earlier pass had received.
    pub(super) fn fresh(&self) -> u64 {
        self.fresh
    }

    /// True if this pass has all rows that were known before it.
    pub(super) fn has_all_known(&self) -> bool {
        self.known.is_subset(&self.pass)
    }

    /// Ids that were known before this pass, and that it lacks.
    pub(super) fn gone(&self) -> impl Iterator<Item = u64> {
        self.known.difference(&self.pass).copied()
    }

    /// Ids of this pass.
    pub(super) fn ids(&self) -> impl Iterator<Item = u64> {
        self.pass.iter().copied()
    }

    /// Ids of this pass that were not known before it.
    pub(super) fn found(&self) -> impl Iterator<Item = u64> {
        self.pass.difference(&self.known).copied()
    }

    /// Approximate memory of the ids, in bytes.
    pub(super) fn bytes(&self) -> usize {
        // Eight bytes for the id, one for its slot, and room to grow.
        let edge = self.edge.as_ref().map_or(0, |(_, ids)| ids.capacity());
        let sets = self.known.capacity() + self.pass.capacity() + self.unsettled.capacity();
        (sets + edge + self.anchors.capacity()) * 10
    }

    /// Returns the link of a page to the chain.
    pub(super) fn link(&self, rows: Rows<'_>) -> Link {
        let last = self.anchors.last();
        let found = self.anchor_in(rows.ids).map(|at| (at, last == rows.ids.get(at)));
        match (found, rows.keys.filter(|_| self.order.is_some())) {
            (None, _) => Link::Missing,
            (Some(_), Some(_)) if self.settled => Link::Firm,
            // Rows with the anchor's key that were not received lie neither before the page nor after the anchor.
            (Some((at, true)), Some(keys))
                if keys[0] != keys[at] && (at + 1 == keys.len() || keys[at] != keys[at + 1]) =>
            {
                Link::Firm
            }
            _ => Link::Loose,
        }
    }

    /// Position of the last anchor that a page contains.
    fn anchor_in(&self, ids: &[u64]) -> Option<usize> {
        let place = |anchor: &u64| ids.iter().position(|id| id == anchor);
        self.anchors.last().and_then(place).or_else(|| {
            let there: Ids = ids.iter().copied().collect();
            self.anchors.iter().rev().find(|anchor| there.contains(anchor)).and_then(place)
        })
    }

    /// True if a row before the anchor in a page was added after the page before: it belongs between rows that this one had
    /// without it.
    fn is_late(&self, key: i64, anchor: i64) -> bool {
        let within = |head: i64| head.min(anchor) < key && key < head.max(anchor);
        self.order.is_some() && self.head.is_some_and(within)
    }

    /// Takes the rows of a page that links to the chain, or that starts it. If `ordered`, those that were added among rows
    /// already emitted are left out: they would be too late, and did not exist from the beginning.
    pub(super) fn take(&mut self, rows: Rows<'_>, ordered: bool) -> Taken {
        let mut taken = Taken { keep: Vec::with_capacity(rows.ids.len()), ..Taken::default() };
        let behind = self.anchor_in(rows.ids).map_or(0, |at| at + 1);
        // Position of each id emitted from this page; filled when the first duplicate is met.
        let mut kept: Option<HashMap<u64, usize>> = None;
        for (at, id) in rows.ids.iter().enumerate() {
            let first = self.pass.insert(*id);
            // Rows with the anchor's own key may have changed places.
            let tied = rows.keys.is_some_and(|keys| behind > 0 && keys[at] == keys[behind - 1]);
            taken.astray += u64::from(!first && at >= behind && !tied && !self.unsettled.contains(id));
            let anchor = behind.checked_sub(1).filter(|anchor| ordered && at < *anchor);
            let late = anchor.zip(rows.keys).is_some_and(|(anchor, keys)| self.is_late(keys[at], keys[anchor]));
            let leaves = first && !late && !self.known.contains(id);
            taken.new += u64::from(first);
            taken.keep.push(leaves);
            taken.doubles += u64::from(!leaves && !late);
            self.fresh += u64::from(leaves);
            if let (false, Some(versions)) = (first, rows.versions) {
                let kept = kept.get_or_insert_with(|| {
                    rows.ids[..at]
                        .iter()
                        .enumerate()
                        .filter(|(at, _)| taken.keep[*at])
                        .map(|(at, id)| (*id, at))
                        .collect()
                });
                // Of several versions in one page, the newest is emitted.
                if let Some(known) = kept.get_mut(id) {
                    taken.edited += u64::from(versions[at] != versions[*known]);
                    if versions[at] > versions[*known] {
                        taken.keep.swap(at, *known);
                        *known = at;
                    }
                }
            } else if let (true, Some(kept)) = (leaves, &mut kept) {
                kept.insert(*id, at);
            }
        }
        // After an empty page, the next one may link to the same rows as before.
        if !rows.ids.is_empty() {
            self.tail = rows.ids.last().copied();
            self.follow(rows, taken.new > 0);
        }
        taken
    }

    /// True if a page has several rows and ends with the last row of the one before it.
    pub(super) fn ends_with(&self, rows: Rows<'_>) -> bool {
        rows.ids.len() > 1 && rows.ids.last() == self.tail.as_ref()
    }

    /// Updates the order, the edge and the anchors after a page.
    fn follow(&mut self, Rows { ids, keys, .. }: Rows<'_>, progress: bool) {
        let (Some(order), Some(keys)) = (self.order, keys) else {
            self.anchors = ids.to_vec();
            self.overlap = u64::from(!ids.is_empty());
            return;
        };
        let before = |a: i64, b: i64| if order == Direction::Asc { a < b } else { b < a };
        // A page may begin with rows received before.
        self.sorted &= keys.windows(2).all(|pair| !before(pair[1], pair[0]));
        for (id, time) in ids.iter().zip(keys).take_while(|_| self.grid.is_some()) {
            let edge = self.edge_of(*time);
            match &mut self.edge {
                Some((known, ids)) if *known == edge => {
                    ids.insert(*id);
                }
                Some((known, _)) if before(edge, *known) => {}
                Some((known, ids)) => {
                    // Most spans have few rows: their memory is used again.
                    ids.clear();
                    ids.insert(*id);
                    *known = edge;
                }
                None => self.edge = Some((edge, Ids::from_iter([*id]))),
            }
        }
        let Some(last) = keys.last() else { return };
        self.head = keys.first().copied();
        // A page without new rows may end anywhere.
        self.sorted &= !progress || self.last.is_none_or(|known| !before(*last, known));
        self.last = Some(*last);
        let whole = if self.careful { keys.iter().rposition(|key| key != last) } else { None };
        self.settled = whole.is_some();
        // In a page of a single key, every row is an anchor.
        let end = whole.map_or(ids.len(), |at| at + 1);
        self.anchors = ids[..end].to_vec();
        self.unsettled = ids[end..].iter().copied().collect();
        self.overlap = (ids.len() - end) as u64 + 1;
    }

    /// Makes every row of the last page an anchor, if the rows of a key do not fit into a page.
    pub(super) fn loosen(&mut self, Rows { ids, .. }: Rows<'_>) {
        self.anchors = ids.to_vec();
        self.unsettled.clear();
        (self.overlap, self.settled) = (1, false);
    }

    /// Returns where the window can be cut: the first instant of the last cell reached, and the number of rows of this
    /// pass on the near side of it. `None` if the order does not show that these are complete.
    pub(super) fn cut(&self) -> Option<(i64, u64)> {
        let (edge, ids) = self.edge.as_ref().filter(|_| self.sorted)?;
        Some((*edge, self.received() - ids.len() as u64))
    }

    /// Returns the emitted ids that may lie on the far side of the cut, including all ids of an earlier pass, which may
    /// have gone further.
    pub(super) fn at_edge(&mut self, earlier: bool) -> Ids {
        let mut ids = self.edge.take().map(|(_, ids)| ids).unwrap_or_default();
        if earlier {
            ids.extend(&self.known);
        }
        ids
    }

    /// True if a row was received, in this pass or before.
    pub(super) fn has(&self, id: u64) -> bool {
        self.pass.contains(&id) || self.known.contains(&id)
    }

    /// Key of the last row received in this pass.
    pub(super) fn last_key(&self) -> Option<i64> {
        self.last
    }

    /// Returns all ids emitted.
    pub(super) fn into_known(mut self) -> Ids {
        self.known.extend(self.pass);
        self.known
    }
}
