//! A result as a picture for documents: SVG, or PNG of twice the size.

use charts_rs::{AxisType, HorizontalBarChart, LineChart, Series, Symbol, svg_to_png_with_size};
use console::truncate_str;

use super::chart::{Along, Drawing, number};

const WIDTH: f32 = 800.0;
const HEIGHT: f32 = 420.0;
/// Room for the last label and the number at a bar's end.
const MARGIN: f32 = 45.0;
/// Height of a bar with what is around it.
const BAR: f32 = 26.0;
/// Columns of a name; longer ones would leave no room for the picture.
const NAME: usize = 30;

/// The drawing as SVG.
///
/// # Errors
/// One line of the library.
pub(super) fn svg(drawing: &Drawing) -> Result<String, String> {
    let power = power(drawing);
    let scaled = |value: f64| value / 10_f64.powi(power);
    // The library draws, and names, numbers of seven digits.
    let exact = |value: &f64| f64::from(narrow(*value)) == *value;
    let exact = power == 0 && drawing.series.iter().flat_map(|(_, values)| values.iter().flatten()).all(exact);
    let short = |name: &str| truncate_str(name, NAME, "…").into_owned();
    let series = drawing.series.iter().map(|(name, values)| {
        let name = if power == 0 { short(name) } else { format!("{} (×10^{power})", short(name)) };
        let mut series = Series::new(name, Vec::new());
        series.data = values.iter().map(|value| value.map(|value| narrow(scaled(value)))).collect();
        series
    });
    let mut series: Vec<Series> = series.collect();
    let failed = |error: charts_rs::Error| error.to_string();
    match &drawing.along {
        Along::Time(instants) => {
            // A point whose neighbours are not known is on no line.
            let gaps = series.iter().any(|series| series.data.contains(&None));
            let mut chart = LineChart::new(series, drawing.labels.clone());
            (chart.width, chart.height) = (WIDTH, HEIGHT);
            chart.margin.right = MARGIN;
            // Points lie as far apart as their instants.
            chart.x_axis.kind = AxisType::Time;
            chart.x_axis.values.clone_from(instants);
            chart.series.symbol = Some(if gaps { Symbol::Circle(2.5, None) } else { Symbol::None });
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
            let bars = (drawing.labels.len() * drawing.series.len()).max(4);
            let mut chart = HorizontalBarChart::new(series, names);
            (chart.width, chart.height) = (WIDTH, BAR * bars as f32 + 80.0);
            chart.margin.right = MARGIN;
            chart.svg().map_err(failed)
        }
    }
}

/// The drawing as PNG.
///
/// # Errors
/// One line of the library.
pub(super) fn png(drawing: &Drawing) -> Result<Vec<u8>, String> {
    let svg = svg(drawing)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a constant that fits")]
    let width = Some(2 * WIDTH as u32);
    svg_to_png_with_size(&svg, width, None).map_err(|error| error.to_string())
}

/// Whether a name has letters that the font of PNGs does not have: it has those of Latin, Greek and Cyrillic.
pub(super) fn lacks_letters(drawing: &Drawing) -> bool {
    let names = drawing.labels.iter().chain(drawing.series.iter().map(|(name, _)| name));
    names.flat_map(|name| name.chars()).any(|c| matches!(c, '\u{530}'..='\u{1dff}' | '\u{2e80}'..))
}

/// The power of ten by which numbers are divided so that an axis can name them.
fn power(drawing: &Drawing) -> i32 {
    let (smallest, largest) = drawing.extent();
    let size = largest.max(-smallest);
    if size == 0.0 || (0.1..1e7).contains(&size) {
        return 0;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a power of ten of a double is below a thousand")]
    let power = (size.log10() / 3.0).floor() as i32 * 3;
    power
}

#[expect(clippy::cast_possible_truncation, reason = "a pixel is less than the digits that are lost")]
fn narrow(value: f64) -> f32 {
    value as f32
}
