use proptest::prelude::*;

use super::*;

fn reading(size: u64, fetch: Option<u64>, change: impl Fn(&mut Profile)) -> Reading {
    reading_from(0, size, fetch, change)
}

fn reading_from(skip: u64, size: u64, fetch: Option<u64>, change: impl Fn(&mut Profile)) -> Reading {
    let mut profile = Profile::v4();
    change(&mut profile);
    Reading::new(Pages { size, skip, fetch, ordered: false }, &profile)
}

proptest! {
    #[test]
    fn spans_cover_what_is_needed_once(
        total in 0..5_000_u64, size in 1..300_u64, fetch in prop::option::of(1..2_000_u64), aligned: bool, clamp in 1..300_u64,
        skip in prop_oneof![Just(0), 0..6_000_u64],
    ) {
        // Pages that are counted cannot begin in the middle of one.
        let skip = if aligned { 0 } else { skip };
        let mut reading = reading_from(skip, size, fetch, |profile| {
            profile.offset.unit = if aligned { OffsetUnit::Page } else { OffsetUnit::Row };
            profile.page.beyond = if aligned { Oversize::Rejected } else { Oversize::Clamped };
        });
        reading.announce(Some(total)).expect("no depth");
        let first = reading.first();
        let clamp = if aligned { u64::MAX } else { clamp };
        prop_assert_eq!(first.row, skip);
        let got = first.size.min(total.saturating_sub(skip)).min(clamp);
        let need = total.min(fetch.map_or(u64::MAX, |fetch| skip + fetch));
        let mut next = skip + if aligned { first.size } else { got };
        let rest = reading.rest(got).expect("the total is known");
        prop_assert_eq!(rest.requests(), rest.count() as u64);
        for span in rest {
            prop_assert_eq!(span.row, next);
            prop_assert!(span.size > 0 && span.size <= size);
            prop_assert!(!aligned || span.row % size == 0, "a page that starts in the middle of one");
            prop_assert!(span.due <= span.size);
            next = span.row + span.due;
        }
        prop_assert!(next >= need, "rows {}..{} are not asked for", next, need);
        prop_assert!(aligned || next == need.max(skip + got), "more is expected than needed: {} {}", next, need);
    }
}

#[test]
fn doubles_are_dropped_and_the_first_page_again_is_no_progress() {
    let mut reading = reading(3, None, |_| {});
    assert_eq!(reading.take(0, Some(&[1, 2, 3])).expect("new"), None);
    assert_eq!(reading.take(3, Some(&[3, 4])).expect("one new"), Some(vec![false, true]));
    assert_eq!(reading.take(6, Some(&[1, 2])).expect_err("nothing new").kind(), ErrorKind::Contradiction);
}

#[test]
fn a_scan_is_complete_only_when_distinct_rows_and_a_steady_total_agree() {
    let mut reading = reading(2, None, |_| {});
    reading.announce(Some(3)).expect("no depth");
    reading.take(0, Some(&[1, 2])).expect("new");
    reading.announce(Some(4)).expect("no depth");
    reading.take(2, Some(&[3, 4])).expect("new");
    assert_eq!(reading.end_of_pass().expect("another pass"), Verdict::Again);
    reading.announce(Some(4)).expect("no depth");
    assert_eq!(reading.take(0, Some(&[1, 2])).expect("seen"), Some(vec![false, false]));
    reading.take(2, Some(&[3, 4])).expect("seen");
    assert_eq!(reading.end_of_pass().expect("complete"), Verdict::Complete);
}

#[test]
fn passes_are_bounded() {
    let mut reading = reading(2, None, |_| {});
    for pass in 1..=PASSES {
        reading.announce(Some(3)).expect("no depth");
        reading.take(0, Some(&[1, 2])).expect("rows");
        let verdict = reading.end_of_pass();
        assert_eq!(verdict.is_err(), pass == PASSES);
    }
}

#[test]
fn an_absurd_total_is_told_before_anything_is_allocated() {
    let mut reading = reading(100, None, |_| {});
    reading.announce(Some(u64::MAX)).expect("no depth");
    assert_eq!(reading.rest(100).expect("known").requests(), (u64::MAX - 100).div_ceil(100));
}

#[test]
fn rows_in_order_are_read_in_one_pass_or_not_at_all() {
    let mut reading = reading(2, Some(4), |_| {});
    reading.pages.ordered = true;
    reading.announce(Some(5)).expect("no depth");
    reading.take(0, Some(&[1, 2])).expect("new");
    reading.announce(Some(4)).expect("no depth");
    reading.take(2, Some(&[4, 5])).expect("new");
    assert_eq!(reading.end_of_pass().expect_err("it moved").kind(), ErrorKind::Incomplete);
}

#[test]
fn an_end_at_the_declared_depth_is_not_the_end() {
    let reading = reading(100, None, |profile| profile.depth.rows = Some(300));
    assert!(reading.end_at(200).is_ok());
    assert_eq!(reading.end_at(300).expect_err("too deep").kind(), ErrorKind::Incomplete);
}
