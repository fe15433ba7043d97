use datafusion::logical_expr::{col, lit};

use super::*;

fn at(micros: i64) -> Expr {
    Expr::Literal(ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into())), None)
}

fn cast(expr: Expr, to: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), to))
}

#[test]
fn values_of_one_column_are_found_whatever_the_spelling() {
    let expect = |expr: Expr, wanted: &[&str]| {
        let (column, found) = values(&expr).expect("values");
        assert_eq!(column, "aid");
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), wanted);
    };
    expect(col("aid").eq(lit("a")), &["a"]);
    expect(lit("a").eq(col("aid")), &["a"]);
    expect(col("aid").in_list(vec![lit("b"), lit("a")], false), &["a", "b"]);
    expect(col("aid").eq(lit("a")).or(col("aid").eq(lit("b"))), &["a", "b"]);
    assert!(values(&col("aid").eq(lit("a")).or(col("id").eq(lit("b")))).is_none());
    assert!(values(&col("aid").in_list(vec![lit("a")], true)).is_none());
    assert!(values(&col("aid").not_eq(lit("a"))).is_none());
    assert!(values(&col("aid").eq(col("id"))).is_none());
}

#[test]
fn ranges_of_time_are_found_through_casts_and_either_side() {
    let bounds = |expr: Expr| range(&expr, "t").map(|range| (range.from, range.to, range.exact));
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
    let either = col("t").eq(at(5)).or(col("t").eq(at(50)));
    assert_eq!(bounds(either), Some((Some(5), Some(51), false)));
    let open = col("t").gt(at(5)).or(col("u").gt(at(5)));
    assert_eq!(bounds(open), None);
}

#[test]
fn days_of_another_zone_widen_the_range() {
    let berlin = DataType::Timestamp(TimeUnit::Microsecond, Some("Europe/Berlin".into()));
    let local = cast(cast(col("t"), berlin), DataType::Date32);
    let day = Expr::Literal(ScalarValue::Date32(Some(10)), None);
    let range = range(&local.eq(day), "t").expect("a range");
    assert!(range.from.expect("from") <= 10 * DAY - DAY / 12 && range.to.expect("to") >= 11 * DAY && !range.exact);
}
