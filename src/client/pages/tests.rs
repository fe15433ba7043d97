//! Tests of the policies alone: which rows are requested, which are emitted, and what is believed at the end.

mod reader;

use chrono::{DateTime, Utc};
use proptest::prelude::*;

use super::continuity::{Chain, Link, Rows};
use super::ids::Ids;
use super::page_policy::RowRange;
use super::proof::Verdict;
use super::reading::Reading;
use super::window::Window;
use crate::error::ErrorKind;
use crate::profile::{Direction, Grid, OffsetUnit, Oversize, Profile, Trust, Zone};
use crate::request::{Beside, Hint, Pages};

fn reading(size: u64, fetch: Option<u64>, ordered: bool, change: impl Fn(&mut Profile)) -> Reading {
    let mut profile = Profile::v4();
    change(&mut profile);
    let pages = Pages { size, skip: 0, fetch, ordered };
    Reading::new(pages, &profile, Some(Direction::Asc), Some(Grid::Steps(1_000_000)), Ids::default())
}

fn ids(ids: &[u64]) -> Rows<'_> {
    Rows { ids, keys: None, versions: None }
}

fn timed<'r>(ids: &'r [u64], times: &'r [i64]) -> Rows<'r> {
    Rows { ids, keys: Some(times), versions: None }
}

/// Reads `rows` as a service would return them, all requested ahead. Returns the requests.
fn read(reading: &mut Reading, rows: u64, clamp: u64) -> Vec<RowRange> {
    let answer = |range: RowRange| -> Vec<u64> { (range.row..rows.min(range.row + range.size.min(clamp))).collect() };
    let first = reading.first();
    let mut asked = vec![first];
    reading.record_total(Some(rows));
    let page = answer(first);
    reading.take(first, page.len() as u64, Some(ids(&page))).expect("rows are accepted");
    let mut queue = std::collections::VecDeque::new();
    loop {
        while let Some(range) = reading.next_range(queue.is_empty()) {
            queue.push_back(range);
            asked.push(range);
        }
        let Some(range) = queue.pop_front() else { return asked };
        let page = answer(range);
        let mut tried = 0;
        while !reading.links(range, ids(&page)) {
            let Some(back) = reading.repair(range, tried) else { break };
            asked.push(back);
            let page = answer(back);
            if reading.links(back, ids(&page)) {
                reading.take(back, page.len() as u64, Some(ids(&page))).expect("rows are accepted");
            }
            tried += 1;
        }
        reading.record_total(Some(rows));
        reading.take(range, page.len() as u64, Some(ids(&page))).expect("rows are accepted");
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
        prop_assert!(reading.proof.chain.received() >= need);
        prop_assert!(asked.iter().all(|range| range.size > 0 && range.size <= size));
        prop_assert!(!aligned || asked.iter().all(|range| range.row % size == 0 || range.row == 0));
        let overlap = u64::from(!aligned && size >= 5 && (ordered || fetch.is_none_or(|fetch| fetch >= rows)));
        // The last page is short, unless a limit was reached.
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
    let mut chain = Chain::new(Some(Direction::Asc), Some(Grid::Steps(1)), false, Ids::default());
    chain.take(timed(&[1, 2, 3], &[10, 20, 30]), false);
    // Another row of its instant may lie before it by now.
    assert_eq!(chain.link(timed(&[3, 4], &[30, 40])), Link::Loose);
    assert_eq!(chain.link(timed(&[9, 3, 4], &[15, 30, 40])), Link::Firm);
    // Other rows of its instant may have been before it in the last page.
    assert_eq!(chain.link(timed(&[3, 4], &[30, 30])), Link::Loose);
    // The anchor itself is gone, and a row before it is present.
    assert_eq!(chain.link(timed(&[2, 4], &[20, 40])), Link::Loose);
    assert_eq!(chain.link(timed(&[4, 5], &[40, 50])), Link::Missing);
}

#[test]
fn a_careful_chain_hangs_on_instants_that_are_whole() {
    let mut chain = Chain::new(Some(Direction::Asc), Some(Grid::Steps(1)), false, Ids::default());
    chain.again(true);
    chain.take(timed(&[1, 2, 3, 4], &[10, 20, 30, 30]), false);
    assert_eq!(chain.overlap, 3, "the next page begins with the last row of the instant before");
    assert_eq!(chain.link(timed(&[4, 3, 5], &[30, 30, 30])), Link::Missing, "more of that instant may lie before");
    assert_eq!(chain.link(timed(&[2, 4, 3, 5], &[20, 30, 30, 30])), Link::Firm);
}

#[test]
fn of_doubles_in_a_page_the_newest_leaves() {
    let mut chain = Chain::new(None, Some(Grid::Steps(1)), false, Ids::default());
    let rows = Rows { ids: &[1, 2, 1, 2], keys: None, versions: Some(&[5, 5, 9, 1]) };
    let taken = chain.take(rows, false);
    assert_eq!(taken.keep, [false, true, true, false]);
    assert_eq!((taken.doubles, taken.edited), (2, 2));
}

#[test]
fn a_cut_leaves_the_last_instant_to_the_other_side() {
    let mut chain = Chain::new(Some(Direction::Asc), Some(Grid::Steps(10)), false, Ids::default());
    chain.take(timed(&[1, 2, 3], &[9, 10, 11]), false);
    chain.take(timed(&[3, 4], &[11, 19]), false);
    assert_eq!(chain.cut(), Some((10, 1)));
    assert_eq!(chain.at_edge(false), Ids::from_iter([2, 3, 4]));
    chain.take(timed(&[5, 6], &[40, 30]), false);
    assert_eq!(chain.cut(), None, "rows that arrive in no order show nothing");
}

#[test]
fn the_first_page_again_is_no_progress() {
    let mut reading = reading(5, None, false, |_| {});
    reading.record_total(Some(20));
    let page = [1, 2, 3, 4, 5];
    reading.take(reading.first(), 5, Some(ids(&page))).expect("rows are accepted");
    let range = reading.next_range(true).expect("more");
    assert_eq!(reading.take(range, 5, Some(ids(&page))).expect_err("again").kind(), ErrorKind::Contradiction);
}

#[test]
fn after_the_first_page_again_pages_are_requested_one_at_a_time_until_one_has_new_rows() {
    let mut reading = reading(5, None, false, |_| {});
    reading.record_total(Some(40));
    let page = [1, 2, 3, 4, 5];
    reading.take(reading.first(), 5, Some(ids(&page))).expect("rows are accepted");
    let range = reading.next_range(true).expect("more");
    assert!(reading.next_range(false).is_some());
    // The offset is rounded down, or ignored.
    assert!(reading.aligns(range, Some(ids(&page))));
    let range = reading.next_range(true).expect("more");
    assert_eq!((range.row, reading.next_range(false)), (5, None));
    reading.take(range, 5, Some(ids(&[6, 7, 8, 9, 10]))).expect("rows are accepted");
    assert!(reading.next_range(true).is_some() && reading.next_range(false).is_some());
}

#[test]
fn a_scan_is_complete_only_when_rows_hang_together_and_are_as_many_as_there_are() {
    let mut reading = reading(5, None, false, |_| {});
    for total in [6, 7] {
        // Rows were added or removed where pages had already been read.
        reading.record_total(Some(total));
        reading.take(RowRange { row: 0, size: 5 }, 5, Some(ids(&[1, 2, 3, 4, 5]))).expect("rows are accepted");
    }
    let page = [5, 6];
    assert!(reading.links(RowRange { row: 4, size: 5 }, ids(&page)));
    reading.take(RowRange { row: 4, size: 5 }, 2, Some(ids(&page))).expect("rows are accepted");
    assert_eq!(reading.end_of_pass(), Verdict::Again);
    reading.record_total(Some(7));
    reading.take(RowRange { row: 0, size: 5 }, 5, Some(ids(&[7, 1, 2, 3, 4]))).expect("rows are accepted");
    let page = [4, 5, 6];
    assert!(reading.links(RowRange { row: 4, size: 5 }, ids(&page)));
    reading.take(RowRange { row: 4, size: 5 }, 3, Some(ids(&page))).expect("rows are accepted");
    assert_eq!(reading.end_of_pass(), Verdict::Complete);
}

#[test]
fn passes_are_bounded() {
    let mut reading = reading(5, None, false, |_| {});
    for pass in 1..=3 {
        reading.record_total(Some(3));
        reading.take(RowRange { row: 0, size: 5 }, 2, Some(ids(&[1, 2]))).expect("rows are accepted");
        let verdict = reading.end_of_pass();
        assert_eq!(matches!(verdict, Verdict::Incomplete(_)), pass == 3, "{verdict:?}");
    }
}

#[test]
fn an_absurd_total_is_told_before_anything_is_allocated() {
    let mut reading = reading(100, None, false, |_| {});
    reading.record_total(Some(u64::MAX));
    assert!(reading.requests().is_some_and(|requests| requests > u64::MAX / 100));
    assert!(reading.next_range(true).is_some());
}

#[test]
fn an_end_at_the_depth_is_not_the_end() {
    let mut reading = reading(100, None, false, |profile| profile.depth.rows = Some(300));
    reading.record_total(Some(300));
    assert!(reading.check_depth().is_ok());
    reading.record_total(Some(301));
    assert_eq!(reading.check_depth().expect_err("too deep").kind(), ErrorKind::TooDeep);
    reading.set_cuttable(true);
    assert!(reading.check_depth().is_ok());
}

#[test]
fn a_window_is_cut_before_its_ids_take_much_memory() {
    let mut reading = reading(10_000, None, false, |_| {});
    reading.set_cuttable(true);
    let rows = 1_000_000;
    let (mut range, mut received) = (reading.first(), 0);
    while !reading.wants_cut() {
        assert!(received < 200_000, "no cut after 200,000 rows");
        let page: Vec<u64> = (range.row..range.row + range.size).collect();
        let times: Vec<i64> = page.iter().map(|row| i64::try_from(*row).expect("fits") * 1_000_000).collect();
        reading.record_total(Some(rows));
        reading.take(range, page.len() as u64, Some(timed(&page, &times))).expect("rows are accepted");
        received = range.row + range.size;
        if let Some(next) = reading.next_range(true) {
            range = next;
        }
    }
    assert!((100_000..120_000).contains(&received), "{received}");
    assert!(reading.proof.chain.bytes() < 4 << 20);
    assert_eq!(
        reading.proof.chain.cut(),
        Some(((i64::try_from(received).expect("fits") - 1) * 1_000_000, received - 1))
    );
}

#[test]
fn as_many_rows_as_there_are_do_not_make_an_end_that_was_not_seen() {
    let mut reading = reading(5, None, false, |_| {});
    reading.record_total(Some(9));
    reading.take(RowRange { row: 0, size: 5 }, 5, Some(ids(&[1, 2, 3, 4, 5]))).expect("rows are accepted");
    // The first row was deleted, and so were others that were never received.
    let page = [2, 3, 4, 5, 6];
    reading.record_total(Some(6));
    reading.take(RowRange { row: 0, size: 5 }, 5, Some(ids(&page))).expect("rows are accepted");
    assert_eq!(reading.proof.chain.received(), 6);
    assert_eq!(reading.end_of_pass(), Verdict::Again);
}

/// Reading of a service that reports no total.
fn without_total(size: u64) -> Reading {
    reading(size, None, false, |profile| profile.total.trust = Trust::Absent)
}

/// Reads one pass, page by page as they are requested. All of these pages are requested, and no more.
fn pass(reading: &mut Reading, pages: &[&[u64]]) -> Verdict {
    let mut next = Some(reading.first());
    for page in pages {
        let range = next.expect("another page is requested");
        reading.take(range, page.len() as u64, Some(ids(page))).expect("rows are accepted");
        next = reading.next_range(true);
    }
    assert_eq!(next, None, "no more is requested");
    reading.end_of_pass()
}

#[test]
fn a_cut_between_windows_that_share_their_ends_leaves_an_end_to_the_span_before_it() {
    // Newest first, with windows that include their ends.
    let mut chain = Chain::new(Some(Direction::Desc), Some(Grid::Steps(10)), true, Ids::default());
    chain.take(timed(&[1, 2, 3], &[25, 20, 15]), false);
    assert_eq!(chain.cut(), Some((10, 1)));
    assert_eq!(chain.next_edge(10), 20);
    assert_eq!(chain.at_edge(false), Ids::from_iter([2, 3]));
}

#[test]
fn rows_of_the_anchors_instant_may_change_places_and_what_comes_again_may_end_anywhere() {
    let mut chain = Chain::new(Some(Direction::Asc), Some(Grid::Steps(1)), false, Ids::default());
    chain.take(timed(&[1, 2, 3], &[10, 20, 20]), false);
    let taken = chain.take(timed(&[3, 2, 4], &[20, 20, 30]), false);
    assert_eq!(taken.keep, [false, false, true]);
    assert_eq!(taken.astray, 0, "it lies at the anchor's instant");
    let again = chain.take(timed(&[1, 2], &[10, 20]), false);
    assert_eq!(again.new, 0);
    assert!(chain.sorted, "a page without new rows shows nothing about the order");
}

#[test]
fn a_reported_total_tells_whether_the_window_will_be_cut_and_whether_it_stood_still() {
    let mut deep = reading(100, None, false, |profile| profile.depth.rows = Some(300));
    let mut plain = reading(100, None, false, |_| {});
    for (reading, most) in [(&mut deep, 300), (&mut plain, 100_000)] {
        assert!(!reading.will_be_cut(), "no total was reported yet");
        reading.record_total(Some(most));
        assert!(reading.proof.is_steady() && !reading.will_be_cut());
        reading.record_total(Some(most + 1));
        assert!(!reading.proof.is_steady() && reading.will_be_cut());
    }
}

#[test]
fn an_end_is_not_believed_if_the_service_tells_of_many_more() {
    for (about, verdict) in [(200, Verdict::Complete), (201, Verdict::Again)] {
        let mut reading = without_total(200);
        // The page is short, and another count in the response ends with it.
        reading.hint(Some(Hint::About(about)), Beside { overview: Some(100), ..Beside::default() });
        let page: Vec<u64> = (0..100).collect();
        let times: Vec<i64> = (0..100).collect();
        reading.take(reading.first(), 100, Some(timed(&page, &times))).expect("rows are accepted");
        assert_eq!(reading.end_of_pass(), verdict, "about {about}");
    }
}

#[test]
fn what_may_lie_behind_the_depth_is_told_without_a_total_too() {
    let mut reading = reading(100, None, false, |profile| {
        profile.depth.rows = Some(100);
        profile.total.trust = Trust::Absent;
    });
    assert!(reading.check_depth().is_ok());
    let page: Vec<u64> = (0..100).collect();
    reading.take(reading.first(), 100, Some(ids(&page))).expect("rows are accepted");
    assert_eq!(reading.check_depth().expect_err("more may follow").kind(), ErrorKind::TooDeep);

    // The rows skipped may be as many as paging reaches.
    let mut profile = Profile::v4();
    profile.depth.rows = Some(100);
    let pages = Pages { size: 100, skip: 100, fetch: None, ordered: false };
    let mut behind = Reading::new(pages, &profile, Some(Direction::Asc), Some(Grid::Steps(1_000_000)), Ids::default());
    behind.record_total(Some(100));
    assert!(behind.check_depth().is_ok(), "all rows were skipped");
    behind.record_total(Some(101));
    assert_eq!(behind.check_depth().expect_err("one more").kind(), ErrorKind::TooDeep);
}

#[test]
fn pages_that_are_counted_are_asked_for_whole_and_rows_no_more_than_are_wanted() {
    // In any other size, the page after the first 100 rows would be another one.
    let mut counted = reading(100, Some(150), false, |profile| profile.offset.unit = OffsetUnit::Page);
    counted.record_total(Some(1_000));
    let page: Vec<u64> = (0..100).collect();
    counted.take(counted.first(), 100, Some(ids(&page))).expect("rows are accepted");
    assert_eq!(counted.next_range(true), Some(RowRange { row: 100, size: 100 }));
    // A duplicate is compensated for.
    let mut rows = reading(5, Some(7), true, |_| {});
    rows.record_total(Some(20));
    rows.take(rows.first(), 5, Some(ids(&[1, 2, 2, 3, 4]))).expect("rows are accepted");
    assert_eq!(rows.next_range(true), Some(RowRange { row: 4, size: 4 }));
}

#[test]
fn a_counted_page_that_is_short_does_not_link_and_neither_does_what_follows_it() {
    let mut reading = reading(5, None, false, |profile| profile.offset.unit = OffsetUnit::Page);
    reading.record_total(Some(20));
    reading.take(reading.first(), 5, Some(ids(&[1, 2, 3, 4, 5]))).expect("rows are accepted");
    let (second, third) = (RowRange { row: 5, size: 5 }, RowRange { row: 10, size: 5 });
    assert!(reading.links(second, ids(&[6, 7, 8, 9, 10])));
    assert!(!reading.links(second, ids(&[6, 7, 8])));
    reading.take(second, 3, Some(ids(&[6, 7, 8]))).expect("rows are accepted");
    assert!(!reading.links(third, ids(&[11, 12, 13, 14, 15])));
}

#[test]
fn the_first_rows_and_an_empty_page_need_no_anchor() {
    let mut reading = reading(5, None, false, |_| {});
    reading.record_total(Some(20));
    reading.take(reading.first(), 5, Some(ids(&[1, 2, 3, 4, 5]))).expect("rows are accepted");
    assert!(reading.links(RowRange { row: 0, size: 5 }, ids(&[7, 8])));
    assert!(reading.links(RowRange { row: 4, size: 5 }, ids(&[])));
    assert!(!reading.links(RowRange { row: 4, size: 5 }, ids(&[7, 8])));
}

#[test]
fn a_full_page_that_ends_with_another_number_of_the_answer_is_not_the_end() {
    let mut reading = without_total(5);
    reading.hint(None, Beside { overview: Some(5), ..Beside::default() });
    reading.take(reading.first(), 5, Some(timed(&[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5]))).expect("rows are accepted");
    // From the last completely received instant on.
    assert_eq!(reading.next_range(true), Some(RowRange { row: 3, size: 5 }));
}

#[test]
fn the_rest_of_a_window_that_has_nothing_new_ends_with_a_short_page() {
    let mut profile = Profile::v4();
    profile.total.trust = Trust::Absent;
    let pages = Pages { size: 5, skip: 0, fetch: None, ordered: false };
    let known = Ids::from_iter([1, 2]);
    let mut rest = Reading::new(pages, &profile, Some(Direction::Asc), Some(Grid::Steps(1_000_000)), known).rest(5, 5);
    rest.take(rest.first(), 2, Some(timed(&[1, 2], &[10, 10]))).expect("rows are accepted");
    assert_eq!(rest.next_range(true), None);
}

#[test]
fn pages_that_share_no_row_are_believed_when_a_pass_has_all_rows_of_those_before_and_no_other() {
    // Such small pages share no row.
    let mut reading = without_total(4);
    let whole: [&[u64]; 5] = [&[1, 2, 3, 4], &[5, 6], &[], &[], &[]];
    assert_eq!(pass(&mut reading, &whole), Verdict::Again, "no other pass agrees with it yet");
    assert_eq!(pass(&mut reading, &[&[1, 2, 3, 4], &[5], &[], &[], &[]]), Verdict::Again, "a row is missing");
    assert_eq!(pass(&mut reading, &whole), Verdict::Complete);
}

#[test]
fn a_short_page_at_the_end_says_nothing_about_the_size_of_pages() {
    let mut reading = reading(5, None, false, |profile| profile.page.beyond = Oversize::Clamped);
    reading.record_total(Some(8));
    reading.take(reading.first(), 5, Some(ids(&[1, 2, 3, 4, 5]))).expect("rows are accepted");
    reading.take(RowRange { row: 4, size: 5 }, 4, Some(ids(&[5, 6, 7, 8]))).expect("rows are accepted");
    assert_eq!(reading.stride(), 5);
}

#[test]
fn pages_of_a_part_are_not_smaller_than_those_of_the_window_before_it_was_cut() {
    let mut profile = Profile::v4();
    profile.page.beyond = Oversize::Clamped;
    let pages = Pages { size: 20, skip: 0, fetch: None, ordered: false };
    let part = |largest| {
        let grid = Some(Grid::Steps(1_000_000));
        let mut part = Reading::new(pages, &profile, Some(Direction::Asc), grid, Ids::default()).rest(20, largest);
        part.record_total(Some(40));
        part.take(part.first(), 4, Some(ids(&[1, 2, 3, 4]))).expect("rows are accepted");
        part.stride()
    };
    assert_eq!(part(4), 4, "the service limits pages to this size");
    assert_eq!(part(14), 20, "rows are missing from the page");
}

#[test]
fn a_depth_of_another_window_is_no_limit_of_the_first_page() {
    let reaching = |rows: u64| {
        let mut part = reading(100, None, false, |_| {}).reaching(Some(2));
        part.set_cuttable(true);
        part.record_total(Some(30));
        let first = part.first();
        assert_eq!(first, RowRange { row: 0, size: 100 });
        let page: Vec<u64> = (0..rows).collect();
        let times: Vec<i64> = (0..30).take(page.len()).collect();
        part.take(first, rows, Some(timed(&page, &times))).expect("rows are accepted");
        part.wants_cut()
    };
    assert!(reaching(2), "paging ends there again");
    assert!(!reaching(20), "the window before lacked rows");
}

#[test]
fn a_short_page_before_an_empty_one_is_a_depth() {
    let mut reading = reading(100, None, false, |profile| profile.page.beyond = Oversize::Clamped);
    reading.record_total(Some(30));
    reading.take(reading.first(), 2, Some(ids(&[1, 2]))).expect("rows are accepted");
    assert_eq!(reading.stride(), 2);
    reading.take(RowRange { row: 1, size: 2 }, 1, Some(ids(&[2]))).expect("rows are accepted");
    reading.met_depth();
    assert_eq!(reading.stride(), 100);
}

#[test]
fn a_window_of_many_rows_is_cut_only_if_more_are_to_come() {
    let page: Vec<u64> = (0..100_000).collect();
    let times: Vec<i64> = (0..100_000).collect();
    for (total, cut) in [(100_000, false), (100_001, true)] {
        let mut reading = reading(100_000, None, false, |_| {});
        reading.set_cuttable(true);
        reading.record_total(Some(total));
        reading.take(reading.first(), 100_000, Some(timed(&page, &times))).expect("rows are accepted");
        assert_eq!(reading.wants_cut(), cut, "{total} rows");
    }
}

#[test]
fn a_window_of_instants_that_cannot_be_said_is_held_to_them() {
    let spec = Profile::v4().window;
    let at = |text: &str| text.parse::<DateTime<Utc>>().expect("valid instant");
    let told = |fraction: &str| {
        let mut window = Window::of(&spec, Some("7d"), Zone::UTC);
        assert!(!window.is_sayable(&spec, Zone::UTC), "its instants are not known yet");
        let ends = (format!("2026-06-24T12:00:00{fraction}Z"), format!("2026-07-01T12:00:00{fraction}Z"));
        window.freeze(&spec, Zone::UTC, Some((at(&ends.0), at(&ends.1))));
        (window.is_sayable(&spec, Zone::UTC), window.words.is_some())
    };
    assert_eq!(told(""), (true, true));
    assert_eq!(told(".5"), (false, false));
    let part = Window::part(&spec, Zone::UTC, (500_000, 1_500_000), Ids::default(), false).expect("expressible part");
    let held = |half_open| [499_999, 500_000, 1_499_999, 1_500_000, 1_500_001].map(|at| part.holds(at, half_open));
    assert_eq!(held(true), [false, true, true, false, false]);
    assert_eq!(held(false), [false, true, true, true, false]);
}

#[test]
fn a_row_added_among_rows_already_received_is_left_out_of_a_sorted_result() {
    let chain = || {
        let mut chain = Chain::new(Some(Direction::Desc), Some(Grid::Steps(1)), false, Ids::default());
        chain.take(timed(&[1, 2, 3, 4], &[40, 30, 30, 10]), true);
        chain
    };
    // Between 3 and 4: the page before had both, without 9.
    let page = timed(&[3, 9, 4, 5], &[30, 20, 10, 5]);
    let taken = chain().take(page, true);
    assert_eq!((taken.keep, taken.new), (vec![false, false, false, true], 2));
    assert_eq!(chain().take(page, false).keep, [false, true, false, true], "any order will do");
    // A row with the key of the anchor may have been there, on a page not received.
    assert_eq!(chain().take(timed(&[9, 4, 5], &[10, 10, 5]), true).keep, [true, false, true]);
    // So may one before all rows of the page before.
    assert_eq!(chain().take(timed(&[9, 3, 4, 5], &[40, 30, 10, 5]), true).keep, [true, false, false, true]);
}

#[test]
fn links_of_other_sort_keys_than_the_time_are_firm_if_a_key_was_received_completely() {
    let mut chain = Chain::new(Some(Direction::Desc), None, false, Ids::default()).careful();
    chain.take(timed(&[1, 2, 3], &[9, 7, 7]), true);
    assert_eq!(chain.overlap, 3, "the rows with key 7 are requested again");
    assert_eq!(chain.link(timed(&[1, 3, 4, 2], &[9, 7, 7, 7])), Link::Firm);
    assert_eq!(chain.link(timed(&[3, 4, 2, 5], &[7, 7, 7, 1])), Link::Missing);
    assert_eq!(chain.cut(), None, "windows are cut in time only");
}

#[test]
fn rows_at_a_repeated_local_time_lie_on_one_side_of_a_cut() {
    let berlin: Zone = "Europe/Berlin".parse().expect("a zone");
    let at = |time: &str| time.parse::<DateTime<Utc>>().expect("an instant").timestamp_micros();
    let times = [at("2026-10-24T23:59:00Z"), at("2026-10-25T00:00:00Z"), at("2026-10-25T00:14:00Z")];
    let mut chain = Chain::new(Some(Direction::Asc), Some(Grid::Local(berlin)), false, Ids::default());
    chain.take(timed(&[1, 2, 3], &times), false);
    assert_eq!(chain.cut(), Some((at("2026-10-24T23:59:59Z"), 1)));
    let edge = chain.at_edge(false);
    assert!(edge.contains(&2) && edge.contains(&3) && !edge.contains(&1));
}

#[test]
fn a_page_that_is_shorter_than_those_before_shows_no_page_size() {
    let mut reading = reading(100, None, false, |_| {});
    reading.record_total(Some(1_605));
    let page = |from: u64, to: u64| -> Vec<u64> { (from..to).collect() };
    reading.take(reading.first(), 100, Some(ids(&page(0, 100)))).expect("rows are accepted");
    for (row, end) in [(99, 120), (119, 121), (119, 121)] {
        let range = RowRange { row, size: 100 };
        reading.take(range, end - row, Some(ids(&page(row, end)))).expect("rows are accepted");
    }
    assert_eq!(reading.stride(), 100, "paging ends there, in pages of any size");
    // Pages that are as short from the first one on have that size.
    let mut clamped = self::reading(100, None, false, |_| {});
    clamped.record_total(Some(1_605));
    clamped.take(clamped.first(), 40, Some(ids(&page(0, 40)))).expect("rows are accepted");
    clamped.take(RowRange { row: 39, size: 100 }, 40, Some(ids(&page(39, 79)))).expect("rows are accepted");
    assert_eq!(clamped.stride(), 40);
}

/// A mention that the service hides makes the first of its numbered pages short, and is counted by the offset of the next one.
#[test]
fn a_row_that_comes_again_after_a_short_numbered_page_shows_that_one_is_missing() {
    let lacks_rows = |second: u64| {
        let numbered = |profile: &mut Profile| profile.offset.unit = OffsetUnit::Page;
        let mut reading = reading(20, Some(30), true, numbered).stopping_early();
        let page = |from: u64, to: u64| -> Vec<u64> { (from..to).collect() };
        reading.record_total(Some(40));
        reading.take(reading.first(), 19, Some(ids(&page(0, 19)))).expect("rows are accepted");
        let range = reading.next_range(true).expect("a second page");
        reading.record_total(Some(40));
        reading.take(range, 19, Some(ids(&page(second, second + 19)))).expect("rows are accepted");
        reading.lacks_rows()
    };
    assert!(lacks_rows(18));
    assert!(!lacks_rows(19), "pages of 19 rows");
}

#[test]
fn numbers_of_one_response_that_differ_are_named() {
    let page: Vec<u64> = (0..50).collect();
    let times: Vec<i64> = (0..50).collect();
    for (total, beside, named) in [
        (
            50,
            Beside { overview: Some(450), ..Beside::default() },
            "total of the response is 50, but its overview counts 450",
        ),
        (
            50,
            Beside { overview: Some(50), timeline: Some(450), ..Beside::default() },
            "50, but its timeline counts 450",
        ),
        (5_000, Beside { overview: Some(50), ..Beside::default() }, "5000, but its overview counts 50"),
    ] {
        let mut reading = reading(100, None, false, |_| {});
        reading.record_total(Some(total));
        reading.hint(None, beside);
        reading.take(reading.first(), 50, Some(timed(&page, &times))).expect("rows are accepted");
        assert_eq!(reading.next_range(true), None, "nothing more is requested");
        let Verdict::Contradiction(reason) = reading.end_of_pass() else { panic!("{total}: believed") };
        assert!(reason.contains(named), "{reason}");
        // If the window can be cut, what may follow is requested.
        let mut cuttable = self::reading(100, None, false, |_| {});
        cuttable.set_cuttable(true);
        cuttable.record_total(Some(total));
        cuttable.hint(None, beside);
        cuttable.take(cuttable.first(), 50, Some(timed(&page, &times))).expect("rows are accepted");
        assert_eq!(cuttable.wants_cut(), total == 50, "{total}");
    }
}

#[test]
fn totals_that_take_turns_are_those_of_copies_that_differ() {
    let times: Vec<i64> = (0..100).map(|second| second * 1_000_000).collect();
    for (totals, verdict) in [
        ([15, 12, 15, 12], Verdict::Again),
        // Something arrived, and something was deleted.
        ([15, 14, 13, 12], Verdict::Complete),
        ([12, 12, 12, 12], Verdict::Complete),
    ] {
        let mut reading = reading(6, None, false, |_| {});
        reading.be_careful();
        let pages: [&[u64]; 3] = [&[0, 1, 2, 3, 4, 5], &[4, 5, 6, 7, 8, 9], &[8, 9, 10, 11]];
        reading.record_total(Some(totals[0]));
        for (page, total) in pages.iter().zip(&totals[1..]) {
            let range = RowRange { row: page[0], size: 6 };
            let keys = &times[usize::try_from(page[0]).expect("a row")..][..page.len()];
            assert!(reading.links(range, timed(page, keys)));
            reading.record_total(Some(*total));
            reading.take(range, page.len() as u64, Some(timed(page, keys))).expect("rows are accepted");
        }
        assert_eq!(reading.end_of_pass(), verdict, "{totals:?}");
    }
}

#[test]
fn without_a_total_an_exact_count_of_the_window_is_not_outvoted() {
    for (beside, verdict) in [
        (Beside { overview: Some(100), ..Beside::default() }, Verdict::Complete),
        (Beside { overview: Some(263), timeline: Some(263), ..Beside::default() }, Verdict::Again),
        (Beside { timeline: Some(101), ..Beside::default() }, Verdict::Again),
    ] {
        let mut reading = without_total(200);
        reading.hint(None, beside);
        let page: Vec<u64> = (0..100).collect();
        let times: Vec<i64> = (0..100).collect();
        reading.take(reading.first(), 100, Some(timed(&page, &times))).expect("rows are accepted");
        for _ in 0..4 {
            reading.take(RowRange { row: 99, size: 200 }, 1, Some(timed(&[99], &[99]))).expect("rows are accepted");
        }
        assert_eq!(reading.end_of_pass(), verdict, "{beside:?}");
    }
}

#[test]
fn a_lower_bound_is_no_end() {
    let mut reading = reading(200, None, false, |_| {});
    reading.hint(Some(Hint::AtLeast(150)), Beside::default());
    let page: Vec<u64> = (0..150).collect();
    reading.take(reading.first(), 150, Some(ids(&page))).expect("rows are accepted");
    assert!(reading.may_be_depth(), "at least 150, and 150 rows");
}
