use datafusion::logical_expr::{col, lit};

use super::*;

fn plan(conjuncts: &[Expr]) -> ScanPlan {
    let now = "2026-07-01T12:00:00Z".parse().expect("an instant");
    plan_scan(&Profile::v4(), Table::Mentions, conjuncts, "", now).expect("a plan")
}

fn sent(conjuncts: &[Expr]) -> String {
    plan(conjuncts).template.to_string()
}

#[test]
fn declared_filters_are_sent_and_others_are_not() {
    let filtered = plan(&[col("language").eq(lit("en")), col("aid").eq(lit("7"))]);
    assert_eq!(filtered.template.to_string(), "search timezone=UTC language=en sort=date_asc");
    assert_eq!(filtered.windows, ["7d"]);
    assert_eq!(filtered.aids, Aids::Given(vec!["7".into()]));
    assert!(filtered.exact && filtered.default_window);
    assert!(!plan(&[col("url").eq(lit("x"))]).exact);
    assert!(!plan(&[col("language").not_eq(lit("en"))]).exact);
}

#[test]
fn values_that_the_grammar_cannot_say_stay_here() {
    assert!(!sent(&[col("language").eq(lit("en,de"))]).contains("language"));
    assert!(!sent(&[col("language").eq(lit(""))]).contains("language"));
    assert!(!plan(&[col("language").eq(lit("en,de"))]).exact);
}

#[test]
fn contradictions_ask_for_nothing() {
    let nothing = Aids::Given(Vec::new());
    assert_eq!(plan(&[col("language").eq(lit("en")), col("language").eq(lit("de"))]).aids, nothing);
    assert_eq!(plan(&[col("aid").eq(lit("1")), col("aid").eq(lit("2"))]).aids, nothing);
    assert_eq!(plan(&[lit(false)]).aids, nothing);
}
