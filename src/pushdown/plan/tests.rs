use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{cast, col, lit};

use super::*;

fn plan(conjuncts: &[Expr]) -> ScanPlan {
    let now = "2026-07-01T12:00:00Z".parse().expect("valid timestamp");
    plan_scan(&Profile::v4(), &Profile::v4().tables.mentions, conjuncts, "", now).expect("valid plan")
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

#[test]
fn a_table_that_is_not_supported_is_refused_with_the_reason() {
    let mut volume = Profile::v4().tables.volume;
    volume.unsupported = Some("the zone of its days is not known".to_owned());
    let now = "2026-07-01T12:00:00Z".parse().expect("valid timestamp");
    let error = plan_scan(&Profile::v4(), &volume, &[], "", now).expect_err("not supported").to_string();
    assert!(error.contains("cannot be read: the zone of its days is not known"), "{error}");
    assert!(error.contains("[tables.volume]"), "{error}");
}

#[test]
fn a_label_that_no_section_has_is_noted_with_the_nearest_one() {
    let profile = Profile::v4();
    let now: DateTime<Utc> = "2026-07-01T12:00:00Z".parse().expect("valid timestamp");
    let notes = |conjuncts: &[Expr]| {
        let period = [col("duration").eq(lit("7d"))];
        let conjuncts: Vec<Expr> = period.iter().chain(conjuncts).cloned().collect();
        plan_scan(&profile, &profile.tables.breakdowns, &conjuncts, "", now).expect("valid plan").notes
    };
    let dimension = |value: &str| col("dimension").eq(lit(value));
    assert_eq!(
        notes(&[dimension("authors")]),
        ["no row of breakdowns has the dimension `authors`; did you mean author?"]
    );
    assert_eq!(
        notes(&[dimension("Author")]),
        ["no row of breakdowns has the dimension `Author`; did you mean author?"]
    );
    let other = notes(&[dimension("author").or(dimension("colour"))]);
    assert!(other.concat().contains("`colour`; its values are source, author, keyword"), "{other:?}");
    assert_eq!(notes(&[dimension("author")]), [""; 0]);
    assert_eq!(notes(&[]), [""; 0]);
}

#[test]
fn a_time_that_must_be_midnight_is_noted() {
    let notes = |conjunct: Expr| plan(&[conjunct]).notes;
    let published = || col("published_at");
    let noted = "the conditions on published_at leave one instant, midnight of 2026-06-20; for the whole day, use \
                 published_at::date = '2026-06-20'";
    let midnight = || at("2026-06-20T00:00:00Z");
    assert_eq!(notes(published().eq(midnight())), [noted]);
    assert_eq!(plan(&[published().gt_eq(midnight()), published().lt_eq(midnight())]).notes, [noted]);
    for other in [
        published().eq(at("2026-06-20T10:00:00Z")),
        published().gt_eq(midnight()),
        published().gt_eq(midnight()).and(published().lt(at("2026-06-21T00:00:00Z"))),
    ] {
        assert_eq!(notes(other), [""; 0]);
    }
}

#[test]
fn a_last_day_of_which_only_midnight_is_left_is_noted() {
    let notes = |conjuncts: &[Expr]| plan(conjuncts).notes;
    let published = || col("published_at");
    let noted = "the conditions on published_at end with the first instant of 2026-06-20; for the whole day, use \
                 published_at < '2026-06-21' or published_at::date <= '2026-06-20'";
    let (from, midnight) = (|| at("2026-06-14T00:00:00Z"), || at("2026-06-20T00:00:00Z"));
    assert_eq!(notes(&[published().between(from(), midnight())]), [noted]);
    assert_eq!(notes(&[published().gt_eq(from()), published().lt_eq(midnight())]), [noted]);
    for other in [
        published().between(from(), at("2026-06-20T23:59:59Z")),
        published().between(from(), at("9999-12-31T00:00:00Z")),
        published().gt_eq(from()).and(published().lt(midnight())),
        cast(published(), DataType::Date32).between(day(20_618), day(20_624)),
    ] {
        assert_eq!(notes(&[other]), [""; 0]);
    }
    let within = || published().gt_eq(from());
    let indexed = noted.replace("published_at", "indexed_at");
    assert_eq!(notes(&[within(), col("indexed_at").lt_eq(midnight())]), [indexed]);
    assert_eq!(notes(&[within(), col("indexed_at").lt(midnight())]), [""; 0]);
}

fn day(since_1970: i32) -> Expr {
    Expr::Literal(ScalarValue::Date32(Some(since_1970)), None)
}

#[test]
fn a_period_without_the_times_that_are_allowed_is_noted() {
    let notes = |period: &str, condition: Expr| plan(&[col("duration").eq(lit(period)), condition]).notes;
    let published = || col("published_at");
    let noted =
        |period| format!("the period `{period}` has none of the times that the conditions on published_at allow");
    let may = || published().lt(at("2026-05-01T00:00:00Z"));
    assert_eq!(notes("7d", may()), [noted("7d")]);
    assert_eq!(notes("90d", may()), [""; 0]);
    assert_eq!(notes("7d", published().gt_eq(at("2026-01-01T00:00:00Z"))), [""; 0]);
    let june = "2026-06-01T00:00:00Z..2026-07-01T00:00:00Z";
    assert_eq!(notes(june, may()), [noted(june)]);
    assert_eq!(notes(june, published().lt(at("2026-06-02T00:00:00Z"))), [""; 0]);
}

fn at(text: &str) -> Expr {
    let micros = text.parse::<DateTime<Utc>>().expect("valid timestamp").timestamp_micros();
    Expr::Literal(ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into())), None)
}

#[test]
fn a_range_that_is_told_later_takes_whole_days_of_the_timeline_and_no_more_of_mentions() {
    let profile = Profile::v4();
    let now: DateTime<Utc> = "2026-07-01T12:00:00Z".parse().expect("valid timestamp");
    let later = |table: &TableSpec, time: &str| {
        let bounds = [col(time).gt_eq(at("2026-06-29T10:30:00Z")), col(time).lt(at("2026-06-30T11:30:00Z"))];
        let plan = plan_scan(&profile, table, &[], "", now).expect("valid plan");
        plan.bounded_by(&profile, table, &bounds, false, now).expect("valid range").windows
    };
    assert_eq!(later(&profile.tables.mentions, "published_at"), ["2026-06-29T10:30:00Z..2026-06-30T11:30:00Z"]);
    assert_eq!(later(&profile.tables.volume, "bucket_start"), ["2026-06-29T00:00:00Z..2026-07-01T00:00:00Z"]);
}

#[test]
fn a_period_or_a_zone_that_contradicts_another_asks_for_nothing() {
    let periods = [col("duration").eq(lit("7d")), col("duration").eq(lit("30d"))];
    let zones = [col("timezone").eq(lit("UTC")), col("timezone").eq(lit("Asia/Tokyo"))];
    let now: DateTime<Utc> = "2026-07-01T12:00:00Z".parse().expect("valid timestamp");
    for conjuncts in [periods, zones] {
        assert_eq!(plan(&conjuncts).aids, Aids::Given(Vec::new()));
        let later = plan(&[]).bounded_by(&Profile::v4(), &Profile::v4().tables.mentions, &conjuncts, false, now);
        assert_eq!(later.expect("valid plan").aids, Aids::Given(Vec::new()));
    }
}

#[test]
fn a_time_from_which_no_window_follows_is_no_condition() {
    let profile = Profile::v4();
    let mut table = profile.tables.mentions.clone();
    table.time = None;
    let range = [col("published_at").gt_eq(at("2026-06-01T00:00:00Z"))];
    let equal = [col("published_at").like(lit("2026-06-01%"))];
    let now: DateTime<Utc> = "2026-07-01T12:00:00Z".parse().expect("valid timestamp");
    let planned = |table: &TableSpec, conjuncts: &[Expr]| plan_scan(&profile, table, conjuncts, "", now);
    let error = planned(&table, &range).expect_err("no window");
    assert!(error.message().contains("does not say which time of a mention windows refer to"), "{error}");
    for column in table.columns.iter_mut().filter(|column| column.name == "published_at") {
        (column.kind, column.is_unzoned) = (ColumnType::Utf8, true);
    }
    for conjuncts in [&range, &equal] {
        let error = planned(&table, conjuncts).expect_err("no window");
        assert!(error.message().contains("the zone of its times is unknown"), "{error}");
        let within = [conjuncts.as_slice(), &[col("duration").eq(lit("30d"))]].concat();
        assert_eq!(planned(&table, &within).expect("a window").windows, ["30d"]);
    }
    assert!(planned(&table, &[]).expect("the default window").default_window);
}
