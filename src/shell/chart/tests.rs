use std::sync::Arc;

use arrow::array::{Date32Array, Float64Array, Int64Array, StringArray};
use arrow::datatypes::{Field, Schema};
use console::{measure_text_width, style};

use super::numbers::tick_labels;
use super::terminal::{COLORS, SENTIMENT_COLORS, painted};
use super::*;

fn drawing(columns: Vec<(&str, ArrayRef)>) -> Result<Drawing, String> {
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    Drawing::of(&batch.schema(), &[batch])
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn numbers(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

#[test]
fn categories_are_bars_in_the_order_of_the_result() {
    let drawing = drawing(vec![("source", texts(&["web", "réseau"])), ("n", numbers(&[Some(8), Some(3)]))]);
    let lines = drawing.expect("a drawing").text(24, 16, false);
    assert_eq!(lines.expect("bars"), ["n by source", "web    │██████████████ 8", "réseau │█████▎         3"]);
}

#[test]
fn a_text_between_time_and_number_makes_series() {
    let days: ArrayRef = Arc::new(Date32Array::from(vec![2, 1, 2]));
    let kinds = texts(&["a", "b", "b"]);
    let drawing = drawing(vec![("day", days), ("kind", kinds), ("n", numbers(&[Some(5), Some(1), None]))]);
    let drawing = drawing.expect("a drawing");
    assert_eq!(drawing.labels, ["1970-01-02", "1970-01-03"]);
    let series = vec![("a".to_owned(), vec![None, Some(5.0)]), ("b".to_owned(), vec![Some(1.0), None])];
    assert_eq!(drawing.series, series);
    for color in [true, false] {
        let lines = drawing.text(40, 16, color).expect("lines");
        assert_eq!(console::strip_ansi_codes(&lines[0]), "n by day and kind");
        assert_eq!(console::strip_ansi_codes(&lines[1]), if color { "⠒ a  ⠒ b" } else { "⠒ a  • b" });
        for line in lines {
            assert!(measure_text_width(&line) <= 40, "{line}");
        }
    }
}

#[test]
fn series_of_times_are_in_order_and_midnights_are_dates() {
    let hour = 3_600_000_000;
    let of = |times: Vec<Option<i64>>| {
        let times = arrow::array::TimestampMicrosecondArray::from(times).with_timezone("UTC");
        let columns = vec![
            ("source", texts(&["web", "web", "blog"])),
            ("day", Arc::new(times) as ArrayRef),
            ("n", numbers(&[Some(1), Some(2), Some(3)])),
        ];
        let drawing = drawing(columns).expect("a drawing");
        assert_eq!(drawing.labels, ["web", "blog"]);
        drawing.series
    };
    let named = |name: &str, values: [Option<f64>; 2]| (name.to_owned(), values.to_vec());
    let days = of(vec![Some(48 * hour), Some(24 * hour), Some(24 * hour)]);
    let expected = [named("1970-01-02", [Some(2.0), Some(3.0)]), named("1970-01-03", [Some(1.0), None])];
    assert_eq!(days, expected);
    let names = |times| of(times).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(vec![None, Some(25 * hour), Some(24 * hour)]), ["1970-01-02 00:00", "1970-01-02 01:00", "(none)"]);
    // Times that differ by less than a minute.
    let near = names(vec![Some(hour + 1_000_000), Some(hour), Some(hour)]);
    assert_eq!(near, ["1970-01-01T01:00:00Z", "1970-01-01T01:00:01Z"]);
    let one = Date32Array::from(vec![1]);
    let one = drawing(vec![("day", Arc::new(one) as ArrayRef), ("n", numbers(&[Some(1)]))]).expect("a drawing");
    assert_eq!(one.labels, ["1970-01-02"]);
    let one = arrow::array::TimestampMicrosecondArray::from(vec![24 * hour]).with_timezone("UTC");
    let one = drawing(vec![("day", Arc::new(one) as ArrayRef), ("n", numbers(&[Some(1)]))]).expect("a drawing");
    assert_eq!(one.labels, ["1970-01-02"]);
}

#[test]
fn stacked_bars_without_an_order_begin_with_the_largest_total() {
    let at = |text: &str| -> DateTime<Utc> { text.parse().expect("an instant") };
    let (from, to) = (at("1970-01-01T00:00:00Z"), at("1970-01-02T00:00:00Z"));
    let stacked = |first: ArrayRef, ordered: bool, form: ChartForm| {
        let columns = vec![
            ("k", first),
            ("kind", texts(&["x", "x", "y", "x"])),
            ("n", numbers(&[Some(65), Some(40), Some(38), Some(90)])),
        ];
        let drawing = drawing(columns).expect("a drawing");
        let covered = Covered { from, to, zone: Some(Zone::UTC), shifted: false, ordered };
        drawing.covering(Some(covered)).in_form(form).expect("bars")
    };
    let sources = || texts(&["instagram", "blog", "blog", "web"]);
    let largest = stacked(sources(), false, ChartForm::Stacked);
    assert_eq!(largest.labels, ["web", "blog", "instagram"]);
    assert_eq!(largest.series[0].1, [Some(90.0), Some(40.0), Some(65.0)]);
    assert_eq!(largest.series[1].1, [None, Some(38.0), None]);
    assert_eq!(stacked(sources(), true, ChartForm::Stacked).labels, ["instagram", "blog", "web"], "by the statement");
    assert_eq!(stacked(sources(), false, ChartForm::Bars).labels, ["instagram", "blog", "web"]);
    let hours = numbers(&[Some(9), Some(10), Some(10), Some(11)]);
    assert_eq!(stacked(hours, false, ChartForm::Stacked).labels, ["9", "10", "11"]);
}

#[test]
fn series_that_meet_are_all_seen() {
    let days: ArrayRef = Arc::new(Date32Array::from(vec![0, 10]));
    let n = || numbers(&[Some(5), Some(5)]);
    let drawing = drawing(vec![("day", days), ("a", n()), ("b", n())]).expect("a drawing");
    let lines = drawing.text(60, 16, false).expect("lines").split_off(2).concat();
    let dots = lines.matches('•').count();
    let braille = lines.chars().filter(|c| ('⠁'..='⣿').contains(c)).count();
    assert!(dots >= 20 && braille >= 20, "{dots} and {braille}");
}

#[test]
fn what_is_no_chart_says_what_one_takes() {
    let (text, number) = (|| texts(&["x"]), || numbers(&[Some(1)]));
    let time = || -> ArrayRef { Arc::new(Date32Array::from(vec![1])) };
    for (columns, told) in [
        (vec![("a", text())], "a is text; a chart needs numbers after the first column, as in"),
        (vec![("a", text()), ("b", text())], "b is text; a chart needs numbers after the first column, as in"),
        (vec![("a", text()), ("n", number()), ("b", text())], "b is text; a chart needs numbers after"),
        (vec![("a", text()), ("at", time())], "at is a time; a chart needs numbers after the first column"),
    ] {
        let found = drawing(columns).expect_err("no numbers");
        assert!(found.starts_with(told), "{found}");
    }
    let alone = drawing(vec![("n", numbers(&[Some(1), Some(2)]))]).expect_err("no category");
    assert!(alone.starts_with("n is a number; a chart needs a time or category as the first column"), "{alone}");
    let none: Vec<Option<i64>> = Vec::new();
    assert!(drawing(vec![("a", texts(&[])), ("n", numbers(&none))]).expect_err("no rows").contains("no rows"));
}

#[test]
fn what_would_draw_something_else_is_refused() {
    let twice = vec![("c", texts(&["x", "x"])), ("s", texts(&["a", "a"])), ("n", numbers(&[Some(1), Some(5)]))];
    assert!(drawing(twice).expect_err("two values of one point").contains("two rows for x and a"));
    let days: ArrayRef = Arc::new(Date32Array::from(vec![Some(1), None]));
    let told = drawing(vec![("day", days), ("n", numbers(&[Some(1), Some(2)]))]).expect_err("a time is missing");
    assert_eq!(told, "1 row without a time; exclude them with WHERE day IS NOT NULL");
    let none = drawing(vec![("c", texts(&["x"])), ("n", numbers(&[None]))]);
    assert!(none.expect_err("no number").contains("all numbers are NULL"));
    let far: ArrayRef = Arc::new(Float64Array::from(vec![1e308, -1.5e308]));
    assert!(drawing(vec![("c", texts(&["x", "y"])), ("n", far)]).expect_err("overflow").contains("too far apart"));
}

#[test]
fn columns_of_one_name_are_two_series() {
    let field = |name, kind| Field::new(name, kind, true);
    let schema =
        Schema::new(vec![field("c", DataType::Utf8), field("n", DataType::Int64), field("n", DataType::Int64)]);
    let columns = vec![texts(&["x"]), numbers(&[Some(1)]), numbers(&[Some(2)])];
    let batch = RecordBatch::try_new(Arc::new(schema), columns).expect("a batch");
    let drawing = Drawing::of(&batch.schema(), &[batch]).expect("a drawing");
    assert_eq!(drawing.series, [("n".to_owned(), vec![Some(1.0)]), ("n".to_owned(), vec![Some(2.0)])]);
}

#[test]
fn days_are_those_of_the_column() {
    // Midnight in Berlin, which is on the day before in UTC.
    let micros = [1_763_161_200_000_000, 1_763_766_000_000_000];
    let days = arrow::array::TimestampMicrosecondArray::from(micros.to_vec()).with_timezone("Europe/Berlin");
    let drawing = drawing(vec![("day", Arc::new(days) as ArrayRef), ("n", numbers(&[Some(1), Some(2)]))]);
    let lines = drawing.expect("a drawing").text(80, 16, false).expect("lines");
    let axis = lines.last().expect("an axis");
    assert!(axis.contains("2025-11-15") && axis.ends_with("2025-11-22"), "{axis}");
}

#[test]
fn periods_that_were_not_read_completely_are_marked() {
    let at = |text: &str| -> DateTime<Utc> { text.parse().expect("an instant") };
    let of = |days: &[i32], from: &str, to: &str| {
        let numbers = numbers(&vec![Some(1); days.len()]);
        let days: ArrayRef = Arc::new(Date32Array::from(days.to_vec()));
        let drawing = drawing(vec![("day", days), ("n", numbers)]).expect("a drawing");
        drawing.covering(Some(Covered {
            from: at(from),
            to: at(to),
            zone: Some(Zone::UTC),
            shifted: false,
            ordered: true,
        }))
    };
    let days = of(&[0, 1, 3], "1970-01-01T12:00:00Z", "1970-01-04T23:59:59Z");
    assert_eq!(days.partial, [true, true]);
    let text = days.text(60, 16, false).expect("lines");
    assert_eq!(text.last().map(String::as_str), Some("The first and the last period are incomplete."));
    assert_eq!(of(&[0, 1, 3], "1970-01-01T00:00:00Z", "1970-01-05T00:00:00Z").note(), None);
    // Days that begin at another time than those of the zone.
    let (from, to) = (at("1970-01-01T06:00:00Z"), at("1970-01-03T06:00:00Z"));
    let shifted = Covered { from, to, zone: Some(Zone::UTC), shifted: true, ordered: true };
    let days: ArrayRef = Arc::new(Date32Array::from(vec![0, 1]));
    let two = drawing(vec![("day", days), ("n", numbers(&[Some(1); 2]))]).expect("a drawing");
    assert_eq!(two.covering(Some(shifted)).note(), None);
    let months = of(&[0, 31, 59], "1969-12-01T00:00:00Z", "1970-03-30T00:00:00Z");
    assert_eq!(months.partial, [false, true]);
    assert_eq!(of(&[0, 7, 14], "1970-01-02T00:00:00Z", "1970-01-22T00:00:00Z").partial, [true, false]);
    // No periods.
    let micros = arrow::array::TimestampMicrosecondArray::from(vec![1_500_000, 2_600_000, 9_000_000]);
    let drawing = drawing(vec![("at", Arc::new(micros) as ArrayRef), ("n", numbers(&[Some(1); 3]))]);
    let (from, to) = (at("1970-01-01T00:00:02Z"), at("1970-01-01T00:00:09Z"));
    let covered = Covered { from, to, zone: Some(Zone::UTC), shifted: false, ordered: true };
    assert_eq!(drawing.expect("a drawing").covering(Some(covered)).note(), None);
    let bars = of(&[0, 1, 2], "1970-01-01T00:00:00Z", "1970-01-03T12:00:00Z").in_form(ChartForm::Bars).expect("bars");
    let lines = bars.text(60, 16, false).expect("lines");
    let light: Vec<bool> = lines[1..4].iter().map(|line| line.contains('░') && !line.contains('█')).collect();
    assert_eq!((light, lines[4].as_str()), (vec![false, false, true], "The last period is incomplete."));
    let quarters = of(&[0, 90, 181], "1970-01-01T00:00:00Z", "1970-08-01T00:00:00Z");
    assert_eq!((quarters.partial, quarters.labels.len()), ([false, true], 3));
    let years = of(&[0, 365, 1_096], "1970-03-01T00:00:00Z", "1974-01-01T00:00:00Z");
    assert_eq!((years.partial, years.labels.len()), ([true, false], 4), "1972 has no row");
}

#[test]
fn days_begin_in_the_zone_of_the_session() {
    let at = |text: &str| -> DateTime<Utc> { text.parse().expect("an instant") };
    // From midnight to midnight in Berlin.
    let (from, to) = (at("2026-03-19T23:00:00Z"), at("2026-03-22T23:00:00Z"));
    let partial = |column: ArrayRef, zone: &str| {
        let drawing = drawing(vec![("day", column), ("n", numbers(&[Some(1); 3]))]).expect("a drawing");
        drawing.covering(Some(Covered { from, to, zone: zone.parse().ok(), shifted: false, ordered: true })).partial
    };
    let dates = || -> ArrayRef { Arc::new(Date32Array::from(vec![20_532, 20_533, 20_534])) };
    assert_eq!(partial(dates(), "Europe/Berlin"), [false, false]);
    assert_eq!(partial(dates(), "UTC"), [false, true]);
    assert_eq!(partial(dates(), "Asia/Tokyo"), [true, false]);
    let micros: Vec<i64> = [20_532, 20_533, 20_534].map(|day: i64| day * 86_400_000_000).to_vec();
    let plain: ArrayRef = Arc::new(arrow::array::TimestampMicrosecondArray::from(micros.clone()));
    assert_eq!(partial(plain, "Asia/Tokyo"), [true, false]);
    // The column's own zone is known.
    let own = arrow::array::TimestampMicrosecondArray::from(micros).with_timezone("UTC");
    assert_eq!(partial(Arc::new(own), "Asia/Tokyo"), [false, true]);
}

#[test]
fn the_period_is_in_the_zone_of_the_query() {
    let at = |text: &str| -> DateTime<Utc> { text.parse().expect("an instant") };
    for (from, to, zone, expected) in [
        ("2026-10-27T12:00:00Z", "2026-11-26T12:00:00Z", "UTC", "27 Oct to 26 Nov 2026, UTC"),
        ("2026-10-27T00:00:00Z", "2026-11-26T00:00:00Z", "UTC", "27 Oct to 25 Nov 2026, UTC"),
        ("2025-12-31T23:30:00Z", "2026-01-02T00:00:00Z", "UTC", "31 Dec 2025 to 1 Jan 2026, UTC"),
        ("2025-12-31T23:30:00Z", "2026-01-01T23:00:00Z", "Europe/Berlin", "1 Jan 2026, Europe/Berlin"),
    ] {
        let covered = Covered { from: at(from), to: at(to), zone: zone.parse().ok(), shifted: false, ordered: true };
        assert_eq!(covered.in_words(), expected);
    }
    let (from, to) = (at("1970-01-01T12:00:00Z"), at("1970-01-04T12:00:00Z"));
    let unknown = Covered { from, to, zone: None, shifted: false, ordered: true };
    let of = |days: ArrayRef| {
        let drawing = drawing(vec![("day", days), ("n", numbers(&[Some(1), Some(2)]))]).expect("a drawing");
        let drawing = drawing.covering(Some(unknown));
        (drawing.subtitle.clone().unwrap_or_default(), drawing.name_across(), drawing.partial)
    };
    let (words, name, partial) = of(Arc::new(Date32Array::from(vec![0, 3])));
    assert_eq!((words.as_str(), name.as_str(), partial), ("1 Jan to 4 Jan 1970", "day", [false, false]));
    let utc = arrow::array::TimestampMicrosecondArray::from(vec![0, 259_200_000_000]).with_timezone("UTC");
    let (words, name, partial) = of(Arc::new(utc));
    let expected = ("1 Jan to 4 Jan 1970, UTC", "day (UTC)", [true, true]);
    assert_eq!((words.as_str(), name.as_str(), partial), expected, "the zone of the type");
    let days: ArrayRef = Arc::new(Date32Array::from(vec![0, 3]));
    let drawing = drawing(vec![("day", days), ("n", numbers(&[Some(1), Some(2)]))]).expect("a drawing");
    assert_eq!(drawing.covering(None).subtitle.as_deref(), Some("1 Jan to 4 Jan 1970"), "of an unknown zone");
    let days = arrow::array::TimestampMicrosecondArray::from(vec![0, 259_200_000_000]).with_timezone("Asia/Tokyo");
    let drawing = self::drawing(vec![("day", Arc::new(days) as ArrayRef), ("n", numbers(&[Some(1), Some(2)]))]);
    let subtitle = drawing.expect("a drawing").covering(None).subtitle;
    assert_eq!(subtitle.as_deref(), Some("1 Jan to 4 Jan 1970, Asia/Tokyo"));
}

#[test]
fn times_can_be_bars_and_whole_numbers_lines() {
    let days: ArrayRef = Arc::new(Date32Array::from(vec![2, 0]));
    let of = |first: ArrayRef| drawing(vec![("k", first), ("n", numbers(&[Some(1), Some(2)]))]).expect("a drawing");
    let bars = of(Arc::clone(&days)).in_form(ChartForm::Bars).expect("bars");
    assert_eq!((bars.along, bars.labels), (Along::Category, vec!["1970-01-01".to_owned(), "1970-01-03".to_owned()]));
    let lines = of(numbers(&[Some(9), Some(4)])).in_form(ChartForm::Lines).expect("lines");
    assert_eq!((lines.along, &lines.series[0].1), (Along::Number(vec![4.0, 9.0]), &vec![Some(2.0), Some(1.0)]));
    assert!(matches!(of(days).in_form(ChartForm::Points).expect("points").along, Along::Time(_)));
    let wrong = of(texts(&["a", "b"])).in_form(ChartForm::Lines).expect_err("names have no places");
    assert!(wrong.contains("choose bars"), "{wrong}");
}

#[test]
fn bars_over_time_have_no_gaps_and_keep_the_note() {
    let at = |text: &str| -> DateTime<Utc> { text.parse().expect("an instant") };
    // 50 days, 2 days apart but for one day, so that all days are periods.
    let days: Vec<i32> = (0..50).map(|n| if n == 0 { 1 } else { 2 * n }).collect();
    let column: ArrayRef = Arc::new(Date32Array::from(days));
    let lines = drawing(vec![("day", column), ("n", numbers(&[Some(1); 50]))]).expect("a drawing");
    assert!(lines.labels.len() > BARS, "with the gaps");
    let (from, to) = (at("1970-01-02T00:00:00Z"), at("1970-04-09T12:00:00Z"));
    let covered = Covered { from, to, zone: Some(Zone::UTC), shifted: false, ordered: true };
    let bars = lines.covering(Some(covered)).in_form(ChartForm::Bars).expect("few bars");
    assert_eq!((bars.labels.len(), bars.labels[1].as_str(), bars.partial), (50, "1970-01-03", [false, true]));
    let text = bars.text(60, 16, false).expect("bars");
    assert!(!text.iter().any(|line| line.contains("NULL")), "{text:#?}");
    assert_eq!(text.last().map(String::as_str), Some("The last period is incomplete."));
}

#[test]
fn lines_over_numbers_are_lines_in_a_terminal() {
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 1.5, 9.5]));
    let of = |form| {
        let points = drawing(vec![("x", Arc::clone(&floats)), ("y", numbers(&[Some(1), Some(9), Some(2)]))]);
        points.expect("a drawing").in_form(form).expect("a form").text(60, 16, false).expect("a chart")
    };
    let is_line =
        |lines: &[String]| lines.iter().flat_map(|line| line.chars()).filter(|c| ('⠁'..='⣿').contains(c)).count() > 10;
    let (lines, points) = (of(ChartForm::Lines), of(ChartForm::Points));
    assert!(is_line(&lines) && !is_line(&points) && of(ChartForm::Auto) == points, "{lines:#?} {points:#?}");
    assert!(lines.last().is_some_and(|axis| axis.contains("0.5") && axis.ends_with("9.5")), "{lines:#?}");
}

#[test]
fn numbers_that_are_no_categories_are_points() {
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 0.1, 0.9]));
    let of = |first: ArrayRef, rows: usize| drawing(vec![("x", first), ("y", numbers(&vec![Some(1); rows]))]);
    assert!(matches!(of(floats, 3).expect("points").along, Along::Number(places) if places == [0.1, 0.5, 0.9]));
    assert!(matches!(of(numbers(&[Some(2), Some(2), Some(3)]), 3).expect("points").along, Along::Number(_)));
    assert_eq!(of(numbers(&[Some(1), Some(2)]), 2).expect("bars").along, Along::Category);
    let many: Vec<Option<i64>> = (0..200).map(|at| (at != 7).then_some(at)).collect();
    let points = of(numbers(&many), 200).expect("points");
    let lines = points.text(60, 16, false).expect("lines");
    assert!(lines.iter().all(|line| measure_text_width(line) <= 60), "{lines:#?}");
    let [.., axis, note] = lines.as_slice() else { panic!("{lines:#?}") };
    assert!(axis.trim_start().starts_with('0') && axis.ends_with("199"), "{lines:#?}");
    assert_eq!(note, "1 row without a number is not drawn.");
}

#[test]
fn measures_of_unequal_size_have_a_panel_each() {
    let days: ArrayRef = Arc::new(Date32Array::from(vec![0, 1]));
    let (few, many) = (numbers(&[Some(5), Some(9)]), numbers(&[Some(100_000), Some(200_000)]));
    let both = drawing(vec![("day", Arc::clone(&days)), ("n", Arc::clone(&few)), ("reach", many)]).expect("a drawing");
    assert_eq!(both.panels(), [vec![0], vec![1]]);
    let lines = both.text(60, 16, false).expect("lines");
    assert!(lines[0] == "n and reach by day" && lines[1] == "n" && lines.contains(&"reach".to_owned()), "{lines:#?}");
    let alike = drawing(vec![("day", days), ("n", Arc::clone(&few)), ("m", few)]).expect("a drawing");
    assert_eq!(alike.panels(), [vec![0, 1]]);
}

#[test]
fn gaps_are_left_and_lonely_points_are_drawn() {
    let days: ArrayRef = Arc::new(Date32Array::from(vec![0, 10, 20, 30, 40]));
    let lonely = numbers(&[Some(4), None, Some(4), None, Some(4)]);
    let lines = drawing(vec![("day", days), ("n", lonely)]).expect("a drawing").text(60, 16, false).expect("lines");
    assert_eq!(lines.iter().map(|line| line.matches('•').count()).sum::<usize>(), 3, "{}", lines.join("\n"));
}

#[test]
fn periods_without_a_row_are_gaps() {
    let of = |days: &[i32]| {
        let column: ArrayRef = Arc::new(Date32Array::from(days.to_vec()));
        let ones = numbers(&vec![Some(1); days.len()]);
        drawing(vec![("day", column), ("n", ones)]).expect("a drawing").series[0].1.clone()
    };
    let one = Some(1.0);
    assert_eq!(of(&[5, 1, 2]), [one, one, None, None, one]);
    assert_eq!(of(&[0, 2, 4, 8]), [one, one, one, None, one], "every second day");
    assert_eq!(of(&[0, 31, 90]), [one, one, None, one], "months");
    assert_eq!(of(&[0, 9_000]), [one, one]);
}

#[test]
fn ticks_are_round_and_cover_the_extent() {
    let sizes = (-12..15).flat_map(|power| [1.0, 1.3, 2.4, 3.0, 5.1, 7.77, 9.99].map(|size| size * 10_f64.powi(power)));
    for size in sizes {
        for (smallest, largest) in [(0.0, size), (-size, 0.0), (-size, size), (-size / 3.0, size), (-size, size / 7.0)]
        {
            for unit in [0.0, 0.1, 1.0].into_iter().filter(|unit| *unit <= size) {
                let ticks = ticks((smallest, largest), unit);
                let named = || format!("{ticks:?} for {smallest} to {largest} in {unit}");
                assert!((3..=5).contains(&ticks.len()), "{}", named());
                let step = ticks[1] - ticks[0];
                let rounding = step * 1e-9;
                assert!(ticks[0] <= smallest + rounding && ticks[ticks.len() - 1] >= largest - rounding, "{}", named());
                assert!(ticks.contains(&0.0), "{}", named());
                assert!(ticks.windows(2).all(|pair| (pair[1] - pair[0] - step).abs() < rounding), "{}", named());
                let digits = step / 10_f64.powf((step * 1.000_001).log10().floor());
                let round = [1.0_f64, 2.0, 2.5, 5.0].iter().any(|digit| (digits - *digit).abs() < 1e-6);
                assert!(round, "{digits}: {}", named());
                let multiples = step / unit;
                assert!(unit == 0.0 || (multiples - multiples.round()).abs() < 1e-6 * multiples, "{}", named());
            }
        }
    }
    for (extent, unit, expected) in [
        ((0.0, 78.0), 1.0, &[0.0, 20.0, 40.0, 60.0, 80.0][..]),
        ((0.0, 10.0), 1.0, &[0.0, 5.0, 10.0][..]),
        ((0.0, 10.0), 0.0, &[0.0, 2.5, 5.0, 7.5, 10.0][..]),
        ((0.0, 1.0), 1.0, &[0.0, 1.0, 2.0][..]),
        ((-1.0, 0.0), 1.0, &[-2.0, -1.0, 0.0][..]),
        ((0.0, 0.0), 1.0, &[0.0, 1.0, 2.0][..]),
        ((0.0, 0.3), 0.0, &[0.0, 0.1, 0.2, 0.3][..]),
    ] {
        assert_eq!(ticks(extent, unit), expected);
    }
    for extent in [(0.0, 5e-324), (-8e307, 8e307)] {
        assert_eq!(ticks(extent, 0.0).len(), 3);
    }
}

#[test]
fn labels_of_ticks_are_aligned_and_never_cut() {
    let days = || -> ArrayRef { Arc::new(Date32Array::from(vec![0, 10])) };
    let lines = drawing(vec![("day", days()), ("n", numbers(&[Some(900), Some(31_000)]))]);
    let lines = lines.expect("a drawing").text(60, 16, false).expect("lines");
    let labels: Vec<&str> = lines.iter().filter_map(|line| Some(line.split_once('│')?.0)).collect();
    let labels: Vec<&str> = labels.into_iter().filter(|label| !label.trim().is_empty()).collect();
    assert_eq!(labels, ["40,000", "30,000", "20,000", "10,000", "     0"]);
    assert!(lines.iter().any(|line| line.contains('└')));
    assert_eq!(tick_labels(&[0.0, 2.5e9, 5e9], 13), ["0", "2,500,000,000", "5,000,000,000"]);
    assert_eq!(tick_labels(&[0.0, 2.5e9, 5e9], 5), ["0", "2.5e9", "5e9"]);
    assert!(tick_labels(&[0.0, 2.5e9, 5e9], 4).is_empty());
}

#[test]
fn the_middle_of_the_time_axis_is_named_if_there_is_room() {
    let days: ArrayRef = Arc::new(Date32Array::from(vec![0, 10]));
    let drawing = drawing(vec![("day", days), ("n", numbers(&[Some(1), Some(2)]))]).expect("a drawing");
    for (width, named) in [(80, 3), (40, 3), (34, 2), (20, 2)] {
        let lines = drawing.text(width, 16, false).expect("lines");
        let axis = lines.last().expect("an axis");
        assert_eq!(axis.split_whitespace().count(), named, "{axis}");
        assert!(axis.contains("01-01") && axis.ends_with("01-11"), "{axis}");
    }
}

#[test]
fn titles_name_what_has_a_name() {
    let day = || -> ArrayRef { Arc::new(Date32Array::from(vec![0, 1])) };
    let (kind, n) = (|| texts(&["a", "b"]), || numbers(&[Some(1), Some(2)]));
    let titled = |columns: Vec<(&str, ArrayRef)>| drawing(columns).expect("a drawing").title;
    assert_eq!(titled(vec![("source", kind()), ("n", n())]).as_deref(), Some("n by source"));
    assert_eq!(titled(vec![("day", day()), ("mentions", n())]).as_deref(), Some("mentions by day"));
    let columns = vec![("day", day()), ("sentiment", kind()), ("n", n())];
    assert_eq!(titled(columns).as_deref(), Some("n by day and sentiment"));
    let expression = "date_trunc(Utf8(\"day\"),mentions.published_at)";
    assert_eq!(titled(vec![(expression, day()), ("n", n())]).as_deref(), Some("n by day"));
    assert_eq!(titled(vec![("source", kind()), ("count(*)", n())]).as_deref(), Some("count by source"));
    let typed = vec![("date_trunc('week', published_at)", day()), ("sum(reach)", n()), ("avg(score)", n())];
    assert_eq!(titled(typed).as_deref(), Some("sum of reach and average score by week"));
    assert_eq!(titled(vec![("upper(a)", kind()), ("n", n())]).as_deref(), Some("n by category"));
    let columns = vec![("day", day()), ("upper(a)", kind()), ("count(*)", n())];
    assert_eq!(titled(columns).as_deref(), Some("count by day and category"));
    assert_eq!(titled(vec![("upper(a)", kind()), ("abs(b)", n())]), None);
    assert_eq!(titled(vec![("now() - at", day()), ("count(*)", n())]).as_deref(), Some("count by time"));
    // Axes and legends have the words of the title.
    let typed = drawing(vec![(expression, day()), ("count(*)", n()), ("abs(b)", n())]).expect("a drawing");
    let series: Vec<&str> = typed.series.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((typed.name_across().as_str(), series), ("day", vec!["count", "abs(b)"]));
    assert_eq!((typed.name_of_numbers(&[0]).as_str(), typed.name_of_numbers(&[1]).as_str()), ("count", "abs(b)"));
    let columns = vec![("day", day()), ("a", n()), ("b", n()), ("c", n())];
    assert_eq!(titled(columns).as_deref(), Some("a, b and c by day"));
    let columns = vec![("day", day()), ("a", n()), ("b", n()), ("c", n()), ("d", n())];
    assert_eq!(titled(columns).as_deref(), Some("values by day"));

    let drawing = || drawing(vec![("source", kind()), ("n", n())]).expect("a drawing");
    assert_eq!(drawing().titled(Some("Sources\nof June")).title.as_deref(), Some("Sources of June"));
    assert_eq!(drawing().titled(Some("")).title, None);
    assert_eq!(drawing().titled(None).title.as_deref(), Some("n by source"));
    let lines = drawing().text(20, 16, true).expect("bars");
    assert_eq!(lines[0], style("n by source").bold().force_styling(true).to_string());
    assert_eq!(drawing().titled(Some("")).text(20, 16, false).expect("bars").len(), 2);
}

#[test]
fn one_series_has_no_legend() {
    let day: ArrayRef = Arc::new(Date32Array::from(vec![0, 1]));
    let n = || numbers(&[Some(1), Some(2)]);
    let one = drawing(vec![("day", Arc::clone(&day)), ("n", n())]).expect("a drawing");
    let two = drawing(vec![("day", day), ("n", n()), ("m", n())]).expect("a drawing");
    assert_eq!(one.text(60, 16, false).expect("lines").len(), 1 + 16);
    let lines = two.text(60, 20, false).expect("lines");
    assert_eq!((lines.len(), lines[1].as_str()), (1 + 1 + 20, "⠒ n  • m"));
}

#[test]
fn sentiments_have_their_colours_in_any_order() {
    let day: ArrayRef = Arc::new(Date32Array::from(vec![0, 0, 0, 1]));
    let kinds = texts(&["Negative", "other", "positive", "neutral"]);
    let n = || numbers(&[Some(1), Some(2), Some(3), Some(4)]);
    let drawn = drawing(vec![("day", day), ("kind", kinds), ("n", n())]).expect("a drawing");
    // The first colour of the palette is free; its green and red are not.
    assert_eq!(drawn.colors(&SENTIMENT_COLORS, &COLORS), [1, 6, 2, 245]);
    assert_eq!(drawn.series[0].0, "Negative");
    let names = |drawing: Drawing| drawing.series.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let day: ArrayRef = Arc::new(Date32Array::from(vec![0, 0, 0, 1]));
    let kinds = StringArray::from(vec![None, Some("negative"), Some("positive"), Some("neutral")]);
    let of = drawing(vec![("day", day), ("kind", Arc::new(kinds) as ArrayRef), ("n", n())]).expect("a drawing");
    assert_eq!(names(of), ["positive", "neutral", "negative", "(none)"]);
    let lines = drawn.text(80, 16, true).expect("lines");
    let legend = &lines[1];
    assert!(legend.contains(&painted("⠒ Negative", 1)) && legend.contains(&painted("⠒ positive", 2)), "{legend}");

    let some = StringArray::from(vec![Some("negative"), Some("positive"), None, Some("neutral")]);
    let bars = drawing(vec![("sentiment", Arc::new(some) as ArrayRef), ("n", n())]);
    let bars = bars.expect("a drawing");
    assert_eq!(bars.bar_colors(&SENTIMENT_COLORS), Some(vec![1, 2, 180, 245]));
    assert_eq!(bars.labels[2], "(none)");
    let lines = bars.text(40, 16, true).expect("bars");
    assert!(lines[1].contains("\u{1b}[38;5;1m") && lines[2].contains("\u{1b}[38;5;2m"), "{lines:?}");
    let others = drawing(vec![("kind", texts(&["negative", "a", "b", "c"])), ("n", n())]).expect("a drawing");
    assert_eq!(others.bar_colors(&SENTIMENT_COLORS), None);
}

#[test]
fn numbers_of_bars_are_aligned_within_the_width() {
    let columns = vec![("c", texts(&["a", "b", "c"])), ("n", numbers(&[Some(12_500), Some(-40), None]))];
    let lines = drawing(columns).expect("a drawing").text(30, 16, false).expect("bars");
    assert!(lines[1..].iter().all(|line| measure_text_width(line) == 30), "{lines:?}");
    let ends = ["12,500", "   -40", "  NULL"];
    assert!(lines[1..].iter().zip(ends).all(|(line, end)| line.ends_with(end)), "{lines:?}");
}

#[test]
fn a_series_without_a_row_has_nothing_beside_its_bar() {
    let columns = vec![("c", texts(&["a", "b"])), ("kind", texts(&["x", "y"])), ("n", numbers(&[Some(1), Some(2)]))];
    let lines = drawing(columns).expect("a drawing").text(30, 16, false).expect("bars");
    assert_eq!((lines.len(), lines.concat().contains("NULL")), (1 + 4, false), "{lines:?}");
}

#[test]
fn rows_that_are_not_drawn_are_counted() {
    let of = |first: Vec<Option<f64>>, n: &[Option<i64>]| {
        let first: ArrayRef = Arc::new(Float64Array::from(first));
        drawing(vec![("x", first), ("n", numbers(n))]).expect("points")
    };
    let places = || vec![Some(0.5), None, Some(1.5), None, Some(2.5)];
    let points = of(places(), &[Some(1), Some(2), Some(3), Some(4), None]);
    assert_eq!(points.note().as_deref(), Some("3 rows without a number are not drawn."));
    assert_eq!(points.text(60, 16, false).expect("points").last(), points.note().as_ref());
    // A line shows the last one as a gap.
    let lines = points.in_form(ChartForm::Lines).expect("lines");
    assert_eq!(lines.note().as_deref(), Some("2 rows without a number are not drawn."));
    let one = of(vec![Some(0.5), Some(1.5)], &[Some(1), None]);
    assert_eq!(one.note().as_deref(), Some("1 row without a number is not drawn."));
    assert_eq!(of(vec![Some(0.5), Some(1.5)], &[Some(1), Some(2)]).note(), None);
    // The day between has no row.
    let days: ArrayRef = Arc::new(Date32Array::from(vec![0, 2, 3]));
    let days = drawing(vec![("day", days), ("n", numbers(&[Some(1), Some(2), Some(3)]))]).expect("a drawing");
    assert_eq!(days.in_form(ChartForm::Points).expect("points").note(), None);
}

#[test]
fn many_names_are_refused_by_what_their_form_needs() {
    let names: Vec<String> = (0..79).map(|n| format!("source {n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let refused = |form: ChartForm| {
        let columns = vec![("source", texts(&names)), ("n", numbers(&[Some(1); 79]))];
        drawing(columns).expect("a drawing").in_form(form).expect_err("too many")
    };
    let places = "lines and points need several times or numbers in the first column; bars need a LIMIT";
    assert_eq!([ChartForm::Lines, ChartForm::Points].map(refused), [places, places]);
    let bars = "too many bars: 79, at most 60 can be drawn; add a LIMIT";
    assert_eq!([ChartForm::Auto, ChartForm::Bars, ChartForm::Stacked].map(refused), [bars, bars, bars]);
}

#[test]
fn times_alone_name_the_form_that_counts_them() {
    let times = || -> ArrayRef { Arc::new(arrow::array::TimestampMicrosecondArray::from(vec![1])) };
    for columns in [vec![("at", times())], vec![("at", times()), ("title", texts(&["x"]))]] {
        let refused = drawing(columns).expect_err("no numbers");
        assert!(refused.ends_with("; the form `heatmap` counts times by weekday and hour"), "{refused}");
    }
    let days: ArrayRef = Arc::new(Date32Array::from(vec![1]));
    assert!(!drawing(vec![("day", days)]).expect_err("no numbers").contains("heatmap"));
}

#[test]
fn negative_bars_go_to_the_left_of_zero() {
    let columns = vec![("c", texts(&["a", "b", "c"])), ("n", numbers(&[Some(10), Some(-10), Some(-5)]))];
    let lines = drawing(columns).expect("a drawing").text(27, 16, false).expect("bars");
    assert_eq!(
        lines[1..],
        ["a           │██████████  10", "b ██████████│           -10", "c      █████│            -5"]
    );
    let columns = vec![("c", texts(&["a", "b"])), ("n", numbers(&[Some(-2), Some(-1)]))];
    let lines = drawing(columns).expect("a drawing").text(16, 16, false).expect("bars");
    assert_eq!(lines[1..], ["a ██████████│ -2", "b      █████│ -1"]);
}

#[test]
fn a_single_number_is_a_bar() {
    let one = drawing(vec![("mentions", numbers(&[Some(12)]))]).expect("a drawing");
    assert_eq!(one.text(20, 16, false).expect("a bar"), ["mentions", "menti… │█████████ 12"]);
    let error = drawing(vec![("n", numbers(&[Some(1), Some(2)]))]).expect_err("no chart");
    assert!(error.contains("a chart needs a time or category as the first column"), "{error}");
}

#[test]
fn numbers_keep_the_digits_that_count() {
    let told = [0.0, 7.0, 250.5, 1.005, 0.0035, 0.25, 1e-9, 2e25, -1234.5].map(number);
    assert_eq!(told, ["0", "7", "250.5", "1", "0.0035", "0.25", "1e-9", "2e25", "-1234.5"]);
    // All numbers of an axis have the same form. A year is a place.
    assert_eq!([999.0, 1_000.0, -1_234.5, 100_000.0].map(measured), ["999", "1,000", "-1,234.5", "100,000"]);
    assert_eq!([2_026.0, 10_000.0].map(placed), ["2026", "10,000"]);
}
