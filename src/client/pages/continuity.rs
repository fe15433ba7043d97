//! Whether pages hang together, and which of their rows are new.
//!
//! ```text
//! page   … a b c [d]          the last row is an anchor: the next page is asked for from it on
//! page           [d] e f g    it is there: nothing between d and e was lost
//! page                h i j   it is not: rows before it are gone, or the order changed; read from further back
//! ```
//!
//! An anchor in a page shows that the rows behind it follow those that were received, since one answer shows one state
//! of the service. Where mentions of one instant change places from answer to answer, that shows it only of an anchor
//! whose instant was received whole; a careful pass takes no others.
//!
//! Pure. Rows are told apart by the hash of their id; a collision would lose a row, and then the count shows it.

use std::collections::{HashMap, HashSet};

use crate::profile::{Direction, Grid};

/// What is known of the rows of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'p> {
    /// A hash of each row's id.
    pub(super) ids: &'p [u64],
    /// The instant of each row, in microseconds.
    pub(super) times: Option<&'p [i64]>,
    /// When each row was last changed, in microseconds.
    pub(super) versions: Option<&'p [i64]>,
}

/// What is done with the rows of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Whether each row leaves.
    pub(super) keep: Vec<bool>,
    /// Rows that came for the first time in this pass.
    pub(super) new: u64,
    /// Rows that came before and do not leave.
    pub(super) doubles: u64,
    /// Doubles whose version differs from one in the same page.
    pub(super) edited: u64,
    /// Rows that came before in this pass, and do not belong behind the anchor that the page hangs on.
    pub(super) astray: u64,
}

/// The rows of a window that were received, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// Ids that have left before this pass.
    known: HashSet<u64>,
    /// Ids of this pass.
    pass: HashSet<u64>,
    /// Ids of this pass that had not left before it.
    fresh: u64,
    /// Ids of the last page that the next one may hang on, in their order.
    anchors: Vec<u64>,
    /// Ids of the last page behind its anchors, which the next page has again.
    unsettled: HashSet<u64>,
    /// Rows from the last anchor to the end of its page, both included.
    pub(super) overlap: u64,
    /// The last row of the last page, and its instant.
    tail: Option<u64>,
    last: Option<i64>,
    /// The last span of time that cuts are made between, as its first instant, and the ids within it.
    edge: Option<(i64, HashSet<u64>)>,
    /// Whether all rows came in the order of time that was asked for.
    pub(super) sorted: bool,
    order: Option<Direction>,
    /// The instants at which a window can be cut.
    grid: Option<Grid>,
    /// Whether what lies at such an instant belongs to the span that ends there.
    closed: bool,
    /// Only rows whose instant was received whole are to be anchors.
    careful: bool,
    /// They are.
    settled: bool,
}

/// How a page hangs on those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// It does, wherever mentions of one instant may have changed places.
    Firm,
    /// It does, if the order is the same in every answer.
    Loose,
    /// It does not.
    Missing,
}

impl Chain {
    /// The chain of a window whose rows come in this order of time, if any, and which can be cut at the instants of a grid,
    /// where ends belong to windows if it is `closed`. `known` have left before.
    pub(super) fn new(order: Option<Direction>, grid: Grid, closed: bool, known: HashSet<u64>) -> Self {
        // Who goes back in time reads on at an end.
        let closed = closed && order == Some(Direction::Desc);
        Self { known, order, grid: Some(grid), closed, sorted: true, ..Self::default() }
    }

    /// The first instant of the span of the grid that an instant lies in.
    fn edge_of(&self, at: i64) -> i64 {
        match self.grid {
            Some(grid) if self.closed && grid.floor(at) == at => grid.floor(at.saturating_sub(1)),
            Some(grid) => grid.floor(at),
            None => at,
        }
    }

    /// The end of the span of the grid that begins there.
    pub(super) fn next_edge(&self, edge: i64) -> i64 {
        self.grid.map_or(edge, |grid| grid.ceil(edge.saturating_add(1)))
    }

    /// The same, taking no order of equal instants for granted.
    pub(super) fn careful(self) -> Self {
        Self { careful: self.order.is_some(), ..self }
    }

    /// Takes no order of equal instants for granted from here on.
    pub(super) fn be_careful(&mut self) {
        self.careful = self.order.is_some();
    }

    /// Whether rows come in an order of time.
    pub(super) fn is_by_time(&self) -> bool {
        self.order.is_some()
    }

    /// Begins another pass over the window.
    pub(super) fn again(&mut self, careful: bool) {
        self.known.extend(self.pass.drain());
        self.anchors.clear();
        self.unsettled.clear();
        (self.overlap, self.last, self.edge) = (0, None, None);
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

    /// Rows that came in this pass for the first time at all.
    pub(super) fn fresh(&self) -> u64 {
        self.fresh
    }

    /// Bytes that the ids take, about.
    pub(super) fn bytes(&self) -> usize {
        // Eight for the id, one for its place, and room to grow.
        let edge = self.edge.as_ref().map_or(0, |(_, ids)| ids.capacity());
        let sets = self.known.capacity() + self.pass.capacity() + self.unsettled.capacity();
        (sets + edge + self.anchors.capacity()) * 10
    }

    /// How a page hangs on the chain.
    pub(super) fn link(&self, rows: Rows<'_>) -> Link {
        let last = self.anchors.last();
        let found = self.anchor_in(rows.ids).map(|at| (at, last == rows.ids.get(at)));
        // Of other orders the keys are not known.
        match (found, rows.times.filter(|_| self.order.is_some())) {
            (None, _) => Link::Missing,
            (Some(_), Some(_)) if self.settled => Link::Firm,
            // Of the anchor's instant, what was not received lies neither before the page nor behind the anchor.
            (Some((at, true)), Some(times))
                if times[0] != times[at] && (at + 1 == times.len() || times[at] != times[at + 1]) =>
            {
                Link::Firm
            }
            _ => Link::Loose,
        }
    }

    /// The place of the last anchor that a page has.
    fn anchor_in(&self, ids: &[u64]) -> Option<usize> {
        let place = |anchor: &u64| ids.iter().position(|id| id == anchor);
        self.anchors.last().and_then(place).or_else(|| {
            let there: HashSet<u64> = ids.iter().copied().collect();
            self.anchors.iter().rev().find(|anchor| there.contains(anchor)).and_then(place)
        })
    }

    /// Takes the rows of a page that hangs on the chain, or begins it.
    pub(super) fn take(&mut self, rows: Rows<'_>) -> Taken {
        let mut taken = Taken { keep: Vec::with_capacity(rows.ids.len()), ..Taken::default() };
        let behind = self.anchor_in(rows.ids).map_or(0, |at| at + 1);
        // Where each id of the page leaves, once a double was met.
        let mut kept: Option<HashMap<u64, usize>> = None;
        for (at, id) in rows.ids.iter().enumerate() {
            let first = self.pass.insert(*id);
            // Rows of the anchor's own instant may have changed places.
            let tied = rows.times.is_some_and(|times| behind > 0 && times[at] == times[behind - 1]);
            taken.astray += u64::from(!first && at >= behind && !tied && !self.unsettled.contains(id));
            let leaves = first && !self.known.contains(id);
            taken.new += u64::from(first);
            taken.keep.push(leaves);
            taken.doubles += u64::from(!leaves);
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
                // Of those in one page the newest leaves.
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
        // An empty page leaves what the next one may hang on as it is.
        if !rows.ids.is_empty() {
            self.tail = rows.ids.last().copied();
            self.follow(rows, taken.new > 0);
        }
        taken
    }

    /// Whether a page ends with the last row of the one before it, and shows more than that row.
    pub(super) fn ends_with(&self, rows: Rows<'_>) -> bool {
        rows.ids.len() > 1 && rows.ids.last() == self.tail.as_ref()
    }

    /// Takes note of the order, the edge and the anchors that a page leaves.
    fn follow(&mut self, Rows { ids, times, .. }: Rows<'_>, progress: bool) {
        let (Some(order), Some(times)) = (self.order, times) else {
            self.anchors = ids.to_vec();
            self.overlap = u64::from(!ids.is_empty());
            return;
        };
        let before = |a: i64, b: i64| if order == Direction::Asc { a < b } else { b < a };
        for (at, (id, time)) in ids.iter().zip(times).enumerate() {
            // A page may begin with rows that came before.
            let behind = at.checked_sub(1).map(|at| times[at]);
            self.sorted &= behind.is_none_or(|behind| !before(*time, behind));
            let edge = self.edge_of(*time);
            match &mut self.edge {
                Some((known, ids)) if *known == edge => {
                    ids.insert(*id);
                }
                Some((known, _)) if before(edge, *known) => {}
                _ => self.edge = Some((edge, HashSet::from([*id]))),
            }
        }
        let Some(last) = times.last() else { return };
        // A page that brings nothing new may end anywhere.
        self.sorted &= !progress || self.last.is_none_or(|known| !before(*last, known));
        self.last = Some(*last);
        let whole = if self.careful { times.iter().rposition(|time| time != last) } else { None };
        self.settled = whole.is_some();
        // A page of one instant has no other anchors than its rows.
        let end = whole.map_or(ids.len(), |at| at + 1);
        self.anchors = ids[..end].to_vec();
        self.unsettled = ids[end..].iter().copied().collect();
        self.overlap = (ids.len() - end) as u64 + 1;
    }

    /// Makes every row of the last page an anchor, where its instants do not fit into pages.
    pub(super) fn loosen(&mut self, Rows { ids, .. }: Rows<'_>) {
        self.anchors = ids.to_vec();
        self.unsettled.clear();
        (self.overlap, self.settled) = (1, false);
    }

    /// Where the window can be cut: the first instant of the last step that was reached, and the rows of this pass that
    /// lie on the near side of it. `None` where the order does not show that these are whole.
    pub(super) fn cut(&self) -> Option<(i64, u64)> {
        let (edge, ids) = self.edge.as_ref().filter(|_| self.sorted)?;
        Some((*edge, self.received() - ids.len() as u64))
    }

    /// The ids that have left and may lie on the far side of the cut: those of an earlier pass, which may have gone further,
    /// all may.
    pub(super) fn at_edge(&mut self, earlier: bool) -> HashSet<u64> {
        let mut ids = self.edge.take().map(|(_, ids)| ids).unwrap_or_default();
        if earlier {
            ids.extend(&self.known);
        }
        ids
    }

    /// All ids that have left.
    pub(super) fn into_known(mut self) -> HashSet<u64> {
        self.known.extend(self.pass);
        self.known
    }
}
