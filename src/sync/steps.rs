//! Steps of a synchronization: the pieces that queries read, and their order.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::{CutStep, SyncOptions};
use crate::connection::Connection;
use crate::error::Result;
use crate::store::{Day, Filters, Terms, date_of, day_of, days_of, divide, month_of, start_of};

/// Days that one query reads at most, if there are more.
const LONGEST: Day = 31;

/// Pieces of a saved search, the first one first.
pub(super) type Queue = VecDeque<Piece>;

/// Pieces that no query has begun to read.
pub(super) struct Steps {
    /// Those of each saved search.
    pub(super) queues: Vec<Queue>,
    /// Saved searches of which no piece is being read.
    pub(super) idle: VecDeque<usize>,
}

impl Steps {
    /// The next piece, and its saved search: one of each in turn.
    pub(super) fn next(&mut self) -> Option<(usize, Piece)> {
        while let Some(search) = self.idle.pop_front() {
            if let Some(piece) = self.queues[search].pop_front() {
                return Some((search, piece));
            }
        }
        None
    }

    /// Number of steps. Pieces of one step count once.
    pub(super) fn left(&self) -> usize {
        self.queues.iter().flatten().filter(|piece| !piece.continues).count()
    }

    /// The rest of a step: one of its pieces, and those that follow.
    pub(super) fn cut(&self, search: usize, piece: &Piece, aid: &str) -> CutStep {
        let mut days = piece.days.clone();
        let mut continues = piece.continues;
        for next in self.queues[search].iter().take_while(|next| std::mem::replace(&mut continues, next.continues)) {
            days = days.start.min(next.days.start)..days.end.max(next.days.end);
        }
        CutStep { aid: aid.to_owned(), from: date_of(days.start), to: date_of(days.end - 1) }
    }

    /// Drops the pieces whose days are all before a day.
    pub(super) fn drop_before(&mut self, first: Day) {
        for queue in &mut self.queues {
            let mut kept: VecDeque<Piece> = VecDeque::with_capacity(queue.len());
            for piece in queue.drain(..) {
                if piece.confirms || piece.days.end > first {
                    kept.push_back(piece);
                } else if let Some(last) = kept.back_mut() {
                    // It may have been the rest of that piece's step.
                    last.continues &= piece.continues;
                }
            }
            *queue = kept;
        }
    }

    /// Replaces a piece by two smaller ones, which are next.
    pub(super) fn put_back(&mut self, search: usize, [first, second]: [Piece; 2]) {
        self.queues[search].push_front(second);
        self.queues[search].push_front(first);
    }
}

/// Days of a saved search that one query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) days: Range<Day>,
    /// Set for days that the store has: only what differs is read.
    pub(super) confirms: bool,
    /// Set to read all days again.
    pub(super) rescan: bool,
    /// Set to keep deleted mentions.
    pub(super) keep_deleted: bool,
    /// Set if the next piece is of the same step, which was divided.
    pub(super) continues: bool,
    /// Set if requests were sent for the step.
    pub(super) begun: bool,
}

impl Piece {
    /// A step of its own.
    pub(super) fn of(days: Range<Day>, keep_deleted: bool) -> Self {
        Self { days, confirms: false, rescan: false, keep_deleted, continues: false, begun: false }
    }

    /// Returns two pieces with half of the days each, the one to read first first.
    pub(super) fn halves(&self, oldest_first: bool) -> [Self; 2] {
        let middle = self.days.start + (self.days.end - self.days.start) / 2;
        let older = Self { days: self.days.start..middle, ..self.clone() };
        let newer = Self { days: middle..self.days.end, ..self.clone() };
        let [first, second] = if oldest_first { [older, newer] } else { [newer, older] };
        // The second one is read only after the first one.
        [Self { continues: true, ..first }, Self { begun: true, ..second }]
    }
}

/// Returns the queries for a saved search.
pub(super) fn pieces(
    connection: &Connection,
    aid: &str,
    days: &Range<Day>,
    options: &SyncOptions,
) -> Result<VecDeque<Piece>> {
    let store = connection.some_store()?;
    let settling = connection.profile().store.settle.length();
    let now = connection.now();
    let terms = Terms { now, settling, since: DateTime::<Utc>::MAX_UTC, rescan: None };
    let regions = if options.rescan { Arc::default() } else { store.regions(aid)? };
    let span = start_of(days.start)..start_of(days.end);
    let division = divide(&span, &Filters::default(), &regions, &terms);
    let keep_deleted = options.keep_deleted;
    let mut pieces: Vec<Piece> = Vec::new();
    // One request may read the latest days and confirm the others.
    if let ([tail], Some(confirm)) = (division.read.as_slice(), division.to_confirm())
        && start_of(confirm.end) == tail.start
        && start_of(confirm.start) == span.start
        && days_of(tail).len() <= LONGEST as usize
    {
        return Ok([Piece::of(days.clone(), keep_deleted)].into());
    }
    for read in &division.read {
        let (mut day, end) = (day_of(read.start), day_of(read.end - 1) + 1);
        while day < end {
            // A month at a time, so that little is lost if the sync is stopped.
            let next = if end - day > LONGEST { month_of(day).end.min(end) } else { end };
            pieces.push(Piece { rescan: options.rescan, ..Piece::of(day..next, keep_deleted) });
            day = next;
        }
    }
    if !options.oldest_first {
        pieces.reverse();
    }
    // What was read just now needs no confirmation.
    if division.to_confirm().is_some() {
        pieces.push(Piece { confirms: true, ..Piece::of(days.clone(), keep_deleted) });
    }
    Ok(pieces.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(days: Range<Day>) -> Piece {
        Piece::of(days, false)
    }

    #[test]
    fn a_divided_step_is_one_step() {
        let mut steps = Steps { queues: vec![[piece(60..91), piece(30..60)].into()], idle: [0].into() };
        let (search, whole) = steps.next().expect("a piece");
        let begun = Piece { begun: true, ..whole };
        steps.put_back(search, begun.halves(false));
        assert_eq!(steps.left(), 2);
        let again = |steps: &mut Steps| {
            steps.idle.push_back(0);
            steps.next().expect("a piece").1
        };
        let newer = again(&mut steps);
        assert_eq!((newer.days.clone(), newer.continues, newer.begun, steps.left()), (75..91, true, true, 2));
        assert_eq!(steps.cut(0, &newer, "7").to_string_of_days(), "7 1970-03-02 to 1970-04-01");
        steps.put_back(0, newer.halves(false));
        assert_eq!(steps.left(), 2);
        let newest = again(&mut steps);
        assert_eq!((newest.days.clone(), newest.continues), (83..91, true));
        assert_eq!(steps.cut(0, &newest, "7").to_string_of_days(), "7 1970-03-02 to 1970-04-01");
        let [_, older] = [again(&mut steps), again(&mut steps)];
        assert_eq!((older.days.clone(), older.continues, steps.left()), (60..75, false, 1));
        // The step behind it is another one.
        assert_eq!(steps.cut(0, &older, "7").to_string_of_days(), "7 1970-03-02 to 1970-03-16");
    }

    #[test]
    fn days_that_would_not_fit_are_dropped() {
        let rest = Piece { continues: true, ..piece(60..70) };
        let confirming = Piece { confirms: true, ..piece(0..90) };
        let of = [piece(70..90), rest, piece(50..60), piece(30..50), confirming.clone()];
        let mut steps = Steps { queues: vec![of.into()], idle: [0].into() };
        steps.drop_before(Day::MIN);
        assert_eq!(steps.left(), 4);
        steps.drop_before(60);
        assert_eq!(steps.queues, [VecDeque::from([piece(70..90), piece(60..70), confirming])]);
    }

    impl CutStep {
        fn to_string_of_days(&self) -> String {
            format!("{} {} to {}", self.aid, self.from, self.to)
        }
    }
}
