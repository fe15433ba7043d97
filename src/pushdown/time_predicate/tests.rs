use datafusion::logical_expr::{col, lit};

use super::*;
use crate::cases::each;

fn at(micros: i64) -> Expr {
    Expr::Literal(ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into())), None)
}

fn cast(expr: Expr, to: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), to))
}

#[test]
fn ranges_of_time_are_found_through_casts_and_either_side() {
    let bounds = |expr: Expr| {
        let ranges = ranges(&expr, "t")?;
        let [one] = ranges.spans() else { panic!("{ranges:?}") };
        Some((one.start(), one.end(), ranges.exact))
    };
    assert_eq!(bounds(col("t").gt_eq(at(5))), Some((Some(5), None, true)));
    assert_eq!(bounds(col("t").gt(at(5))), Some((Some(6), None, true)));
    assert_eq!(bounds(at(5).gt(col("t"))), Some((None, Some(5), true)));
    assert_eq!(bounds(col("t").lt_eq(at(5))), Some((None, Some(6), true)));
    assert_eq!(bounds(col("t").eq(at(5))), Some((Some(5), Some(6), true)));
    assert_eq!(bounds(col("t").not_eq(at(5))), None);
    assert_eq!(bounds(col("u").gt(at(5))), None);
    let nanos = Expr::Literal(ScalarValue::TimestampNanosecond(Some(5_500), Some("UTC".into())), None);
    assert_eq!(bounds(col("t").gt_eq(nanos.clone())), Some((Some(6), None, true)));
    assert_eq!(bounds(col("t").lt(nanos)), Some((None, Some(6), true)));
    let day = Expr::Literal(ScalarValue::Date32(Some(1)), None);
    assert_eq!(bounds(cast(col("t"), DataType::Date32).eq(day)), Some((Some(DAY), Some(2 * DAY), true)));
    let either = ranges(&col("t").eq(at(5)).or(col("t").eq(at(50))), "t").expect("ranges");
    assert_eq!(either, Ranges::of([Range { from: 5, to: 6 }, Range { from: 50, to: 51 }], true));
    let open = col("t").gt(at(5)).or(col("u").gt(at(5)));
    assert_eq!(bounds(open), None);
}

fn local(zone: &str) -> Expr {
    cast(col("t"), DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into())))
}

fn utc(text: &str) -> i64 {
    text.parse::<DateTime<chrono::Utc>>().expect("valid timestamp").timestamp_micros()
}

fn day(text: &str) -> Expr {
    Expr::Literal(
        ScalarValue::Date32(Some(i32::try_from(utc(&format!("{text}T00:00:00Z")) / DAY).expect("valid day"))),
        None,
    )
}

#[test]
fn days_of_a_zone_have_their_23_24_or_25_hours() {
    let spans = |zone, date| {
        let ranges = ranges(&cast(local(zone), DataType::Date32).eq(day(date)), "t").expect("ranges");
        let [one] = ranges.spans() else { panic!("{ranges:?}") };
        (one.from, one.to, ranges.exact)
    };
    let expect = |from, to| (utc(from), utc(to), true);
    assert_eq!(spans("Europe/Berlin", "2026-03-29"), expect("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"));
    assert_eq!(spans("Europe/Berlin", "2026-10-25"), expect("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"));
    assert_eq!(spans("Asia/Tokyo", "2026-10-25"), expect("2026-10-24T15:00:00Z", "2026-10-25T15:00:00Z"));
    // The clock skips midnight: the range is widened, and the excess is filtered out here.
    let (from, to, exact) = spans("America/Sao_Paulo", "2018-11-04");
    assert!(from <= utc("2018-11-04T03:00:00Z") && to >= utc("2018-11-05T02:00:00Z") && !exact);
}

#[test]
fn a_day_of_a_zone_is_told_from_shorter_steps_and_from_those_of_another() {
    let trunc = |unit: &str, of: Expr| {
        Expr::ScalarFunction(ScalarFunction::new_udf(
            datafusion::functions::datetime::date_trunc(),
            vec![lit(unit), of],
        ))
    };
    assert_eq!(days_of(&trunc("day", col("t")), "t"), Some(Tz::UTC));
    assert_eq!(days_of(&cast(col("t"), DataType::Date32), "t"), Some(Tz::UTC));
    assert_eq!(days_of(&trunc("month", local("Europe/Berlin")), "t"), Some(Tz::Europe__Berlin));
    assert_eq!(days_of(&trunc("hour", local("Europe/Berlin")), "t"), None);
    let clock = |zone| {
        let function = datafusion::functions::datetime::to_local_time();
        Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![local(zone)]))
    };
    let back = |of, zone: &str| cast(of, DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into())));
    assert_eq!(days_of(&trunc("week", clock("Europe/Berlin")), "t"), Some(Tz::Europe__Berlin));
    assert_eq!(days_of(&cast(clock("Europe/Berlin"), DataType::Date32), "t"), Some(Tz::Europe__Berlin));
    let day_of = |zone| trunc("day", clock(zone));
    assert_eq!(days_of(&back(day_of("Europe/Berlin"), "Europe/Berlin"), "t"), Some(Tz::Europe__Berlin));
    assert_eq!(days_of(&back(day_of("Europe/Berlin"), "Asia/Tokyo"), "t"), None);
    assert_eq!(days_of(&back(day_of("Europe/Berlin"), "UTC"), "t"), None);
    assert_eq!(days_of(&trunc("hour", clock("Europe/Berlin")), "t"), None);
    assert_eq!(days_of(&clock("Europe/Berlin"), "t"), None);
    let since_1970 = |of, seconds: f64| {
        let part = datafusion::functions::datetime::date_part().call(vec![lit("EPOCH"), of]);
        datafusion::functions::math::floor().call(vec![part / lit(seconds)])
    };
    assert_eq!(days_of(&since_1970(col("t"), 86_400.0), "t"), Some(Tz::UTC));
    assert_eq!(days_of(&since_1970(local("Europe/Berlin"), 604_800.0), "t"), Some(Tz::UTC));
    assert_eq!(days_of(&since_1970(clock("Europe/Berlin"), 86_400.0), "t"), Some(Tz::Europe__Berlin));
    assert_eq!(days_of(&since_1970(day_of("Europe/Berlin"), 86_400.0), "t"), Some(Tz::Europe__Berlin));
    each([3_600.0, 86_401.0, 0.0, -86_400.0, 0.5], |seconds| {
        assert_eq!(days_of(&since_1970(col("t"), seconds), "t"), None, "{seconds}");
    });
    let part = |unit: &str, of| {
        Expr::ScalarFunction(ScalarFunction::new_udf(datafusion::functions::datetime::date_part(), vec![lit(unit), of]))
    };
    assert_eq!(days_of(&part("MONTH", local("Europe/Berlin")), "t"), Some(Tz::Europe__Berlin));
    assert_eq!(days_of(&part("hour", col("t")), "t"), None);
    assert_eq!(days_of(&col("t"), "t"), None);
    assert_eq!(days_of(&col("t").gt_eq(at(3 * DAY)), "t"), Some(Tz::UTC));
    assert_eq!(days_of(&col("t").lt_eq(at(3 * DAY)), "t"), None, "midnight itself is of the next day");
    assert_eq!(days_of(&col("t").gt_eq(at(3 * DAY + 1)), "t"), None);
    let mixed = cast(trunc("day", col("t")), DataType::Timestamp(TimeUnit::Microsecond, Some("Asia/Tokyo".into())));
    assert_eq!(days_of(&trunc("day", mixed), "t"), None);
}

#[test]
fn a_time_without_a_zone_is_that_of_utc() {
    // The engine drops the zone's name and keeps the instant.
    let plain = cast(local("Asia/Tokyo"), DataType::Timestamp(TimeUnit::Microsecond, None));
    assert_eq!(days_of(&cast(plain.clone(), DataType::Date32), "t"), Some(Tz::UTC));
    let ranges = ranges(&cast(plain, DataType::Date32).eq(day("2026-10-02")), "t").expect("ranges");
    assert_eq!(ranges.spans(), [Range { from: utc("2026-10-02T00:00:00Z"), to: utc("2026-10-03T00:00:00Z") }]);
}

#[test]
fn days_without_a_midnight_and_with_two_are_not_taken_for_plain_ones() {
    let trunc = |of: Expr| {
        Expr::ScalarFunction(ScalarFunction::new_udf(
            datafusion::functions::datetime::date_trunc(),
            vec![lit("day"), of],
        ))
    };
    // Midnight is skipped: the day starts at 04:00 UTC, which is 01:00 local time.
    let start = Expr::Literal(ScalarValue::TimestampMicrosecond(Some(utc("2026-09-06T04:00:00Z")), None), None);
    let ranges = ranges(&trunc(local("America/Santiago")).eq(start), "t").expect("ranges");
    assert!(!ranges.exact && ranges.spans().iter().any(|span| span.from <= utc("2026-09-06T04:00:00Z")));
    // Havana can have two midnights in a day; only one of them is the start of the day's instants.
    assert_eq!(days_of(&trunc(local("America/Havana")), "t"), None);
    assert_eq!(days_of(&cast(local("America/Havana"), DataType::Date32), "t"), Some(Tz::America__Havana));
    assert_eq!(days_of(&trunc(local("Europe/Berlin")), "t"), Some(Tz::Europe__Berlin));
}

#[test]
fn seconds_that_a_cast_rounds_to_are_looked_for_on_both_sides() {
    // The engine rounds toward 1970: this second contains the instants before it, not those after it.
    let seconds = cast(col("t"), DataType::Timestamp(TimeUnit::Second, Some("UTC".into())));
    let second = Expr::Literal(ScalarValue::TimestampSecond(Some(-1), Some("UTC".into())), None);
    let ranges = ranges(&seconds.eq(second), "t").expect("ranges");
    assert!(!ranges.exact);
    assert!(ranges.spans().iter().any(|span| span.from <= -1_500_000 && -1_500_000 < span.to), "{ranges:?}");
}
