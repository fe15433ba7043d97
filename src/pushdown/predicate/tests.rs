use datafusion::logical_expr::{col, lit};

use super::*;

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
fn values_are_implied_by_alternatives_that_all_name_some() {
    let branch = |aid: &str| col("aid").eq(lit(aid)).and(col("language").eq(lit("de")));
    let implied =
        |expr: Expr| implied_values(&expr, "aid").map(|values| values.into_iter().collect::<Vec<_>>().join(" "));
    assert_eq!(implied(branch("a").or(branch("b"))).as_deref(), Some("a b"));
    assert_eq!(implied(branch("a").or(col("aid").eq(lit("b")))).as_deref(), Some("a b"));
    assert_eq!(implied(branch("a").and(branch("b").or(branch("a")))).as_deref(), Some("a"));
    assert_eq!(implied(branch("a").and(branch("b"))).as_deref(), Some(""));
    assert_eq!(implied(branch("a").or(col("language").eq(lit("fr")))), None);
    assert_eq!(implied(!branch("a")), None);
    assert_eq!(implied(branch("a").or(!branch("b"))), None);
}
