//! A chart as a picture for documents: SVG or PNG.

use charts_rs::{
    AxisType, ChartBase, Color, DEFAULT_FONT_FAMILY, HorizontalBarChart, LineChart, Series, Symbol, YAxisConfig,
    measure_text_width_family, svg_to_png_with_size,
};
use console::truncate_str;

use super::chart::{Along, Drawing, number, ticks};

/// Default width in pixels.
const WIDTH: u32 = 800;
/// Default height of a line chart in pixels.
const HEIGHT: u32 = 420;
/// Space at the right for the last label of an axis.
const MARGIN: f32 = 45.0;
/// Width of a digit at the end of a bar.
const DIGIT: f32 = 8.0;
/// Default height of a bar with its spacing.
const BAR: f32 = 26.0;
/// Height of the title, and of the legend below it.
const LINE: f32 = 30.0;
/// Height of the axis below the bars, with the margins of the picture.
const AXIS: f32 = 60.0;
/// Width of a line.
const STROKE: f32 = 2.0;
/// Maximum length of a name; longer ones would leave no space for the chart.
const NAME: usize = 30;
/// Colours of series, in order: those of Okabe and Ito, which colour-blind readers can distinguish, and grey. The colours that
/// contrast least with the background come last.
const COLORS: [&str; 9] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000", "#f0e442", "#999999"];
/// Colours of positive, neutral, negative and unknown, and the colour of [`COLORS`] that each resembles.
const SENTIMENTS: [(&str, &str); 4] =
    [("#2e9e5b", "#009e73"), ("#8a8f98", "#999999"), ("#d64545", "#d55e00"), ("#b8bcc4", "#999999")];

/// The chart as SVG, of a default size if `size` is `None`.
///
/// # Errors
/// One line from the library.
pub(super) fn svg(drawing: &Drawing, size: Option<(u32, u32)>) -> Result<String, String> {
    portable(&drawn(drawing, size)?)
}

/// The chart as the library draws it, which measures texts in its own font.
fn drawn(drawing: &Drawing, size: Option<(u32, u32)>) -> Result<String, String> {
    let power = power(drawing);
    let scaled = |value: f64| value / 10_f64.powi(power);
    // The library draws, and prints, numbers of seven digits.
    let exact = |value: &f64| f64::from(narrow(*value)) == *value;
    let values = || drawing.series.iter().flat_map(|(_, values)| values.iter().flatten());
    let exact = power == 0 && values().all(exact);
    let short = |name: &str| truncate_str(name, NAME, "…").into_owned();
    let series = drawing.series.iter().map(|(name, values)| {
        let mut series = Series::new(short(name), Vec::new());
        series.data = values.iter().map(|value| value.map(|value| narrow(scaled(value)))).collect();
        series
    });
    let mut series: Vec<Series> = series.collect();
    let (smallest, largest) = drawing.extent();
    // The library labels ticks with one decimal.
    let whole = power == 0 && smallest.fract() == 0.0 && largest.fract() == 0.0;
    let ticks = ticks((scaled(smallest), scaled(largest)), if whole { 1.0 } else { 0.1 });
    let scale = if power == 0 { String::new() } else { format!("×10^{power}") };
    let size = size.map(|(width, height)| (width as f32, height as f32));
    let failed = |error: charts_rs::Error| error.to_string();
    match &drawing.along {
        Along::Time(instants) => {
            // A point between two gaps is on no line.
            let gaps = series.iter().any(|series| series.data.contains(&None));
            let mut chart = LineChart::new(series, drawing.labels.clone());
            set_up(&mut chart.base, drawing, size.unwrap_or((WIDTH as f32, HEIGHT as f32)));
            if let Some(axis) = chart.y_axis_configs.first_mut() {
                set_ticks(axis, &ticks);
                axis.title = Some(scale).filter(|scale| !scale.is_empty());
            }
            chart.base.margin.right = MARGIN;
            // Distances between points are those of their instants.
            chart.base.x_axis.kind = AxisType::Time;
            chart.base.x_axis.values.clone_from(instants);
            chart.base.series.symbol = Some(if gaps { Symbol::Circle(2.5, None) } else { Symbol::None });
            chart.svg().map_err(failed)
        }
        Along::Category => {
            let names = drawing.labels.iter().enumerate().map(|(at, label)| {
                let numbers = drawing.series.iter().map(|(_, values)| values[at].map_or("NULL".to_owned(), number));
                let numbers = numbers.collect::<Vec<_>>().join(", ");
                if exact { short(label) } else { format!("{}: {numbers}", short(label)) }
            });
            let mut names: Vec<String> = names.collect();
            // The library draws from the bottom.
            names.reverse();
            series.iter_mut().for_each(|series| {
                series.data.reverse();
                series.label_show = exact;
            });
            if let (Some(colors), [series]) = (drawing.bar_colors(&SENTIMENTS), series.as_mut_slice()) {
                series.colors = Some(colors.into_iter().rev().map(|color| Some(Color::from(color))).collect());
            }
            let bars = (drawing.labels.len() * drawing.series.len()).max(4);
            let lines = [drawing.title.is_some(), drawing.series.len() > 1, !scale.is_empty()];
            let lines = lines.into_iter().filter(|shown| *shown).count();
            let height = BAR * bars as f32 + LINE * lines as f32 + AXIS;
            let digits = values().filter(|_| exact).map(|value| number(*value).len()).max().unwrap_or_default();
            let mut chart = HorizontalBarChart::new(series, names);
            set_up(&mut chart.base, drawing, size.unwrap_or((WIDTH as f32, height)));
            if let Some(axis) = chart.y_axis_configs.first_mut() {
                set_ticks(axis, &ticks);
            }
            chart.base.x_axis.title = scale;
            chart.base.margin.right = MARGIN.max(DIGIT * (digits + 1) as f32);
            chart.svg().map_err(failed)
        }
    }
}

/// The chart as PNG, of twice the default size if `size` is `None`.
///
/// # Errors
/// One line from the library.
pub(super) fn png(drawing: &Drawing, size: Option<(u32, u32)>) -> Result<Vec<u8>, String> {
    let svg = drawn(drawing, size)?;
    let (width, height) = size.map_or((2 * WIDTH, None), |(width, height)| (width, Some(height)));
    svg_to_png_with_size(&svg, Some(width), height).map_err(|error| error.to_string())
}

/// Makes a picture look right with the fonts of another machine: it names fonts to fall back on, and texts that end at the same
/// place, as labels of an axis do, are anchored at their ends. Otherwise wider letters would run into the chart.
fn portable(svg: &str) -> Result<String, String> {
    const FONTS: &str = "Roboto, 'Helvetica Neue', Arial, 'Noto Sans', sans-serif";
    let family = format!("font-family=\"{DEFAULT_FONT_FAMILY}\"");
    let mut parts = svg.split("<text ");
    let before = parts.next().unwrap_or_default();
    let mut texts = Vec::new();
    for part in parts {
        let (attributes, rest) = part.split_once('>').ok_or("a text without an end")?;
        let content = rest.split("</text>").next().unwrap_or_default().trim();
        let plain = content.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
        let number = |name| attribute(attributes, name)?.parse::<f32>().ok();
        let place = number("x").zip(number("font-size")).filter(|_| !attributes.contains("text-anchor"));
        let width = |size| measure_text_width_family(DEFAULT_FONT_FAMILY, size, &plain).map(|size| size.width());
        let end = match place {
            Some((x, size)) => Some((x, x + width(size).map_err(|error| error.to_string())?)),
            None => None,
        };
        texts.push((attributes, rest, end));
    }
    let mut shown = before.to_owned();
    for (attributes, rest, place) in &texts {
        // Other texts that end here and begin elsewhere.
        let aligned = place.filter(|(x, end)| {
            let others = texts.iter().filter_map(|(_, _, other)| *other);
            let mut beside = others.filter(|(other, at)| (at - end).abs() < 0.2 && (other - x).abs() > 0.2);
            beside.next().is_some()
        });
        let attributes = match aligned {
            Some((_, end)) => {
                let begins = format!(" x=\"{}\"", attribute(attributes, "x").unwrap_or_default());
                let ends = format!(" x=\"{end:.1}\" text-anchor=\"end\"");
                format!(" {attributes}").replacen(&begins, &ends, 1).trim_start().to_owned()
            }
            None => (*attributes).to_owned(),
        };
        shown.push_str("<text ");
        shown.push_str(&attributes);
        shown.push('>');
        shown.push_str(rest);
    }
    Ok(shown.replace(&family, &format!("font-family=\"{FONTS}\"")))
}

/// The value of an attribute of an element.
fn attribute<'t>(attributes: &'t str, name: &str) -> Option<&'t str> {
    attributes
        .split("\" ")
        .find_map(|part| part.trim().strip_prefix(name)?.strip_prefix("=\""))
        .map(|value| value.trim_end_matches('"'))
}

/// True if the font of PNGs lacks letters of the chart: it has those of Latin, Greek and Cyrillic.
pub(super) fn lacks_letters(drawing: &Drawing) -> bool {
    let names = drawing.labels.iter().chain(drawing.series.iter().map(|(name, _)| name)).chain(&drawing.title);
    names.flat_map(|name| name.chars()).any(|c| matches!(c, '\u{530}'..='\u{1dff}' | '\u{2e80}'..))
}

/// Sets the options common to lines and bars.
fn set_up(chart: &mut ChartBase, drawing: &Drawing, size: (f32, f32)) {
    (chart.width, chart.height) = size;
    chart.title.text = drawing.title.clone().unwrap_or_default();
    chart.title.font.size = 16.0;
    // The title names a single series.
    chart.legend.show = Some(drawing.series.len() > 1);
    chart.series.stroke_width = STROKE;
    chart.series.colors = drawing.colors(&SENTIMENTS, &COLORS).into_iter().map(Color::from).collect();
}

/// Replaces the library's ticks, which are multiples of numbers such as 15.
fn set_ticks(axis: &mut YAxisConfig, ticks: &[f64]) {
    if let [first, .., last] = ticks {
        (axis.min, axis.max) = (Some(narrow(*first)), Some(narrow(*last)));
        axis.split_number = ticks.len() - 1;
        // Groups of three digits.
        axis.formatter = Some("{t}".to_owned());
    }
}

/// Power of ten by which numbers are divided so that an axis can show them.
fn power(drawing: &Drawing) -> i32 {
    let (smallest, largest) = drawing.extent();
    let size = largest.max(-smallest);
    if size == 0.0 || (0.1..1e7).contains(&size) {
        return 0;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the exponent of a double is below a thousand")]
    let power = (size.log10() / 3.0).floor() as i32 * 3;
    power
}

#[expect(clippy::cast_possible_truncation, reason = "the digits lost are less than a pixel")]
fn narrow(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing(labels: &[&str], series: &[&str]) -> Drawing {
        let values =
            |at: usize| -> Vec<Option<f64>> { (1..=labels.len()).map(|label| Some((label + at) as f64)).collect() };
        Drawing {
            title: Some("n by <kind>".to_owned()),
            along: Along::Category,
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            series: series.iter().enumerate().map(|(at, name)| ((*name).to_owned(), values(at))).collect(),
        }
    }

    fn over_time(drawing: Drawing) -> Drawing {
        let instants = (0..drawing.labels.len()).map(|day| day as f64 * 86_400.0).collect();
        Drawing { along: Along::Time(instants), ..drawing }
    }

    fn svg_of(drawing: &Drawing, size: Option<(u32, u32)>) -> String {
        svg(drawing, size).expect("a picture").to_lowercase()
    }

    #[test]
    fn a_title_is_shown_and_escaped() {
        for drawing in [drawing(&["a", "b"], &["n"]), over_time(drawing(&["a", "b"], &["n"]))] {
            assert!(svg_of(&drawing, None).contains("n by &lt;kind&gt;"));
        }
    }

    #[test]
    fn labels_end_at_the_axis_in_any_font() {
        let bars = drawing(&["a", "a much longer name"], &["n"]);
        let picture = svg(&bars, None).expect("a picture");
        assert!(!picture.contains("font-family=\"Roboto\"") && picture.contains("Arial"), "{picture}");
        let label = |name: &str| {
            let (before, _) = picture.split_once(&format!(">\n{name}\n<")).expect(name);
            before.rsplit_once("<text ").expect("a text").1.to_owned()
        };
        let (short, long) = (label("a"), label("a much longer name"));
        assert!(short.contains("text-anchor=\"end\"") && long.contains("text-anchor=\"end\""), "{short}\n{long}");
        assert_eq!(attribute(&short, "x"), attribute(&long, "x"));
        // A PNG is drawn with the library's own font, and from the same places as before.
        assert!(drawn(&bars, None).expect("a picture").contains("font-family=\"Roboto\""));
        // Names with signs that are escaped.
        let odd = svg(&drawing(&["<b> & \"c\"", "d"], &["n"]), None).expect("a picture");
        assert_eq!(
            odd.matches("<text ").count(),
            drawn(&drawing(&["<b> & \"c\"", "d"], &["n"]), None).expect("one").matches("<text ").count()
        );
    }

    #[test]
    fn one_series_has_no_legend() {
        for (names, shown) in [(&["zebra"][..], false), (&["zebra", "lion"][..], true)] {
            for drawing in [drawing(&["a", "b"], names), over_time(drawing(&["a", "b"], names))] {
                assert_eq!(svg_of(&drawing, None).contains(">\nzebra\n<"), shown, "{}", svg_of(&drawing, None));
            }
        }
    }

    #[test]
    fn pictures_have_the_size_that_was_asked_for() {
        let size = |drawing: &Drawing, size| {
            let picture = svg_of(drawing, size);
            let attribute = |name: &str| {
                let rest = picture.split_once(&format!(" {name}=\"")).expect(name).1;
                rest.split_once('"').expect("a quote").0.parse::<f32>().expect("a number")
            };
            (attribute("width"), attribute("height"))
        };
        let (few, many) = (drawing(&["a"; 5], &["n"]), drawing(&["a"; 20], &["n"]));
        assert_eq!(size(&over_time(drawing(&["a", "b"], &["n"])), None), (800.0, 420.0));
        assert!(size(&few, None).1 < size(&many, None).1);
        for drawing in [few, many] {
            assert_eq!(size(&drawing, Some((1200, 600))), (1200.0, 600.0));
            let png = png(&drawing, Some((300, 200))).expect("a picture");
            // The header has both as big-endian numbers.
            assert_eq!(png[16..24], [0, 0, 1, 44, 0, 0, 0, 200]);
        }
    }

    #[test]
    fn sentiments_have_their_colours_in_any_order() {
        let colors = |names: &[&str]| drawing(&["a"], names).colors(&SENTIMENTS, &COLORS);
        assert_eq!(colors(&["Negative", "positive"]), ["#d64545", "#2e9e5b"]);
        assert_eq!(colors(&["x", "y", "z"]), ["#0072b2", "#e69f00", "#009e73"]);
        // The palette's green would be mistaken for that of positive.
        assert_eq!(colors(&["x", "positive", "y", "z"]), ["#0072b2", "#2e9e5b", "#e69f00", "#cc79a7"]);
        let all = ["positive", "a", "neutral", "b", "negative", "c", "unknown", "d", "e"];
        let mut distinct = colors(&all);
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), all.len());
        let bars = svg_of(&drawing(&["negative", "neutral"], &["n"]), None);
        assert!(bars.contains("#d64545") && bars.contains("#8a8f98") && !bars.contains("#0072b2"), "{bars}");
    }

    #[test]
    fn huge_numbers_have_their_scale_at_the_axis() {
        let mut huge = drawing(&["a", "b"], &["n"]);
        huge.series[0].1 = vec![Some(5e9), Some(2e9)];
        for drawing in [over_time(drawing(&["a", "b"], &["n"])), drawing(&["a", "b"], &["n"])] {
            assert!(!svg_of(&drawing, None).contains("×10^"));
        }
        assert!(svg_of(&huge, None).contains("×10^9"));
        assert!(svg_of(&over_time(huge), None).contains("×10^9"));
    }
}
