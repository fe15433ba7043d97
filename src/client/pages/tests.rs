//! The policies by themselves: which rows are asked for, which leave, and what is believed at the end.

use std::collections::HashSet;

use proptest::prelude::*;

use super::chain::{Chain, Link, Rows};
use super::reading::{Reading, Span, Verdict};
use crate::error::ErrorKind;
use crate::profile::{Direction, Grid, OffsetUnit, Oversize, Profile};
use crate::request::Pages;

fn reading(size: u64, fetch: Option<u64>, ordered: bool, change: impl Fn(&mut Profile)) -> Reading {
    let mut profile = Profile::v4();
    change(&mut profile);
    let pages = Pages { size, skip: 0, fetch, ordered };
    Reading::new(pages, &profile, Some(Direction::Asc), Grid::Steps(1_000_000), HashSet::new())
}

fn ids(ids: &[u64]) -> Rows<'_> {
    Rows { ids, times: None, versions: None }
}

fn timed<'r>(ids: &'r [u64], times: &'r [i64]) -> Rows<'r> {
    Rows { ids, times: Some(times), versions: None }
}

/// Reads `rows` as a service would give them, all at once ahead. Gives the requests.
fn read(reading: &mut Reading, rows: u64, clamp: u64) -> Vec<Span> {
    let answer = |span: Span| -> Vec<u64> { (span.row..rows.min(span.row + span.size.min(clamp))).collect() };
    let first = reading.first();
    let mut asked = vec![first];
    reading.announce(Some(rows));
    let page = answer(first);
    reading.take(first, page.len() as u64, Some(ids(&page))).expect("rows");
    let mut queue = std::collections::VecDeque::new();
    loop {
        while let Some(span) = reading.next_span(queue.is_empty()) {
            queue.push_back(span);
            asked.push(span);
        }
        let Some(span) = queue.pop_front() else { return asked };
        let page = answer(span);
        let mut tried = 0;
        while !reading.links(span, ids(&page)) {
            let Some(back) = reading.repair(span, tried) else { break };
            asked.push(back);
            let page = answer(back);
            if reading.links(back, ids(&page)) {
                reading.take(back, page.len() as u64, Some(ids(&page))).expect("rows");
            }
            tried += 1;
        }
        reading.announce(Some(rows));
        reading.take(span, page.len() as u64, Some(ids(&page))).expect("rows");
    }
}

proptest! {
    #[test]
    fn every_row_is_asked_for_with_a_row_of_overlap(
        rows in 0..5_000_u64, size in 1..300_u64, fetch in prop::option::of(1..2_000_u64), ordered: bool, aligned: bool,
    ) {
        let mut reading = reading(size, fetch, ordered, |profile| {
            profile.offset.unit = if aligned { OffsetUnit::Page } else { OffsetUnit::Row };
        });
        let asked = read(&mut reading, rows, u64::MAX);
        let need = rows.min(fetch.unwrap_or(u64::MAX));
        prop_assert_eq!(reading.end_of_pass(), Verdict::Complete);
        prop_assert!(reading.chain.received() >= need);
        prop_assert!(asked.iter().all(|span| span.size > 0 && span.size <= size));
        prop_assert!(!aligned || asked.iter().all(|span| span.row % size == 0 || span.row == 0));
        let overlap = u64::from(!aligned && size >= 5 && (ordered || fetch.is_none_or(|fetch| fetch >= rows)));
        // The last page is short, unless a limit was met.
        let whole = fetch.is_none_or(|fetch| fetch > rows);
        let least = match whole {
            true => 1 + if rows < size { 0 } else { (rows - size) / (size - overlap).max(1) + 1 },
            false => 1 + need.saturating_sub(size).div_ceil((size - overlap).max(1)),
        };
        prop_assert_eq!(asked.len() as u64, least);
    }

    #[test]
    fn clamped_pages_are_read_to_the_end(rows in 0..3_000_u64, clamp in 5..100_u64, declared: bool) {
        let mut reading = reading(100, None, false, |profile| {
            profile.page.beyond = if declared { Oversize::Clamped } else { Oversize::Rejected };
        });
        let asked = read(&mut reading, rows, clamp);
        prop_assert_eq!(reading.end_of_pass(), Verdict::Complete);
        prop_assert!(asked.len() as u64 <= 2 + rows.div_ceil(clamp - 1));
    }
}

#[test]
fn a_page_hangs_on_a_row_of_the_last_one() {
    let mut chain = Chain::new(Some(Direction::Asc), Grid::Steps(1), false, HashSet::new());
    chain.take(timed(&[1, 2, 3], &[10, 20, 30]));
    // Another one of its instant may lie before it by now.
    assert_eq!(chain.link(timed(&[3, 4], &[30, 40])), Link::Loose);
    assert_eq!(chain.link(timed(&[9, 3, 4], &[15, 30, 40])), Link::Firm);
    // Others of its instant may have been before it in the last page.
    assert_eq!(chain.link(timed(&[3, 4], &[30, 30])), Link::Loose);
    // It is gone itself, and what came before it is there.
    assert_eq!(chain.link(timed(&[2, 4], &[20, 40])), Link::Loose);
    assert_eq!(chain.link(timed(&[4, 5], &[40, 50])), Link::Missing);
}

#[test]
fn a_careful_chain_hangs_on_instants_that_are_whole() {
    let mut chain = Chain::new(Some(Direction::Asc), Grid::Steps(1), false, HashSet::new());
    chain.again(true);
    chain.take(timed(&[1, 2, 3, 4], &[10, 20, 30, 30]));
    assert_eq!(chain.overlap, 3, "the next page begins with the last row of the instant before");
    assert_eq!(chain.link(timed(&[4, 3, 5], &[30, 30, 30])), Link::Missing, "more of that instant may lie before");
    assert_eq!(chain.link(timed(&[2, 4, 3, 5], &[20, 30, 30, 30])), Link::Firm);
}

#[test]
fn of_doubles_in_a_page_the_newest_leaves() {
    let mut chain = Chain::new(None, Grid::Steps(1), false, HashSet::new());
    let rows = Rows { ids: &[1, 2, 1, 2], times: None, versions: Some(&[5, 5, 9, 1]) };
    let taken = chain.take(rows);
    assert_eq!(taken.keep, [false, true, true, false]);
    assert_eq!((taken.doubles, taken.edited), (2, 2));
}

#[test]
fn a_cut_leaves_the_last_instant_to_the_other_side() {
    let mut chain = Chain::new(Some(Direction::Asc), Grid::Steps(10), false, HashSet::new());
    chain.take(timed(&[1, 2, 3], &[9, 10, 11]));
    chain.take(timed(&[3, 4], &[11, 19]));
    assert_eq!(chain.cut(), Some((10, 1)));
    assert_eq!(chain.at_edge(false), HashSet::from([2, 3, 4]));
    chain.take(timed(&[5, 6], &[40, 30]));
    assert_eq!(chain.cut(), None, "rows that come in no order show nothing");
}

#[test]
fn the_first_page_again_is_no_progress() {
    let mut reading = reading(5, None, false, |_| {});
    reading.announce(Some(20));
    let page = [1, 2, 3, 4, 5];
    reading.take(reading.first(), 5, Some(ids(&page))).expect("rows");
    let span = reading.next_span(true).expect("more");
    assert_eq!(reading.take(span, 5, Some(ids(&page))).expect_err("again").kind(), ErrorKind::Contradiction);
}

#[test]
fn a_scan_is_complete_only_when_rows_hang_together_and_are_as_many_as_there_are() {
    let mut reading = reading(5, None, false, |_| {});
    for total in [6, 7] {
        // Rows that came or went where they were read already.
        reading.announce(Some(total));
        reading.take(Span { row: 0, size: 5 }, 5, Some(ids(&[1, 2, 3, 4, 5]))).expect("rows");
    }
    let page = [5, 6];
    assert!(reading.links(Span { row: 4, size: 5 }, ids(&page)));
    reading.take(Span { row: 4, size: 5 }, 2, Some(ids(&page))).expect("rows");
    assert_eq!(reading.end_of_pass(), Verdict::Again);
    reading.announce(Some(7));
    reading.take(Span { row: 0, size: 5 }, 5, Some(ids(&[7, 1, 2, 3, 4]))).expect("rows");
    let page = [4, 5, 6];
    assert!(reading.links(Span { row: 4, size: 5 }, ids(&page)));
    reading.take(Span { row: 4, size: 5 }, 3, Some(ids(&page))).expect("rows");
    assert_eq!(reading.end_of_pass(), Verdict::Complete);
}

#[test]
fn passes_are_bounded() {
    let mut reading = reading(5, None, false, |_| {});
    for pass in 1..=3 {
        reading.announce(Some(3));
        reading.take(Span { row: 0, size: 5 }, 2, Some(ids(&[1, 2]))).expect("rows");
        let verdict = reading.end_of_pass();
        assert_eq!(matches!(verdict, Verdict::Incomplete(_)), pass == 3, "{verdict:?}");
    }
}

#[test]
fn an_absurd_total_is_told_before_anything_is_allocated() {
    let mut reading = reading(100, None, false, |_| {});
    reading.announce(Some(u64::MAX));
    assert!(reading.requests().is_some_and(|requests| requests > u64::MAX / 100));
    assert!(reading.next_span(true).is_some());
}

#[test]
fn an_end_at_the_depth_is_not_the_end() {
    let mut reading = reading(100, None, false, |profile| profile.depth.rows = Some(300));
    reading.announce(Some(300));
    assert!(reading.check_depth().is_ok());
    reading.announce(Some(301));
    assert_eq!(reading.check_depth().expect_err("too deep").kind(), ErrorKind::TooDeep);
    reading.set_cuttable(true);
    assert!(reading.check_depth().is_ok());
}

#[test]
fn a_window_is_cut_before_its_ids_take_much_memory() {
    let mut reading = reading(10_000, None, false, |_| {});
    reading.set_cuttable(true);
    let rows = 1_000_000;
    let (mut span, mut received) = (reading.first(), 0);
    while !reading.wants_cut() {
        assert!(received < 200_000, "it goes on and on");
        let page: Vec<u64> = (span.row..span.row + span.size).collect();
        let times: Vec<i64> = page.iter().map(|row| i64::try_from(*row).expect("small") * 1_000_000).collect();
        reading.announce(Some(rows));
        reading.take(span, page.len() as u64, Some(timed(&page, &times))).expect("rows");
        received = span.row + span.size;
        if let Some(next) = reading.next_span(true) {
            span = next;
        }
    }
    assert!((100_000..120_000).contains(&received), "{received}");
    assert!(reading.chain.bytes() < 4 << 20);
    assert_eq!(reading.chain.cut(), Some(((i64::try_from(received).expect("small") - 1) * 1_000_000, received - 1)));
}

#[test]
fn as_many_rows_as_there_are_do_not_make_an_end_that_was_not_seen() {
    let mut reading = reading(5, None, false, |_| {});
    reading.announce(Some(9));
    reading.take(Span { row: 0, size: 5 }, 5, Some(ids(&[1, 2, 3, 4, 5]))).expect("rows");
    // The first one is gone, and so are others that never came.
    let page = [2, 3, 4, 5, 6];
    reading.announce(Some(6));
    reading.take(Span { row: 0, size: 5 }, 5, Some(ids(&page))).expect("rows");
    assert_eq!(reading.chain.received(), 6);
    assert_eq!(reading.end_of_pass(), Verdict::Again);
}
