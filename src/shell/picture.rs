//! A result as a picture for documents: SVG, or PNG of twice the size.

use charts_rs::{AxisType, HorizontalBarChart, LineChart, Series, Symbol, svg_to_png_with_size};

use super::chart::{Along, Drawing};

const WIDTH: f32 = 800.0;
const HEIGHT: f32 = 420.0;
/// Room for the last label and the number at a bar's end.
const MARGIN: f32 = 45.0;
/// Height of a bar with what is around it.
const BAR: f32 = 26.0;

/// The drawing as SVG.
///
/// # Errors
/// One line of the library.
pub(super) fn svg(drawing: &Drawing) -> Result<String, String> {
    #[expect(clippy::cast_possible_truncation, reason = "a pixel is less than the digits that are lost")]
    let narrow = |values: &[Option<f64>]| values.iter().map(|value| value.map(|value| value as f32)).collect();
    let series = drawing.series.iter().map(|(name, values)| {
        let mut series = Series::new(name.clone(), Vec::new());
        series.data = narrow(values);
        series
    });
    let mut series: Vec<Series> = series.collect();
    let failed = |error: charts_rs::Error| error.to_string();
    match &drawing.along {
        Along::Time(instants) => {
            let mut chart = LineChart::new(series, drawing.labels.clone());
            (chart.width, chart.height) = (WIDTH, HEIGHT);
            chart.margin.right = MARGIN;
            // Points lie as far apart as their instants.
            chart.x_axis.kind = AxisType::Time;
            chart.x_axis.values.clone_from(instants);
            chart.series.symbol = Some(Symbol::None);
            chart.svg().map_err(failed)
        }
        Along::Category => {
            // The library draws from the bottom.
            series.iter_mut().for_each(|series| {
                series.data.reverse();
                series.label_show = true;
            });
            let labels = drawing.labels.iter().rev().cloned().collect();
            let bars = (drawing.labels.len() * drawing.series.len()).max(4);
            let mut chart = HorizontalBarChart::new(series, labels);
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
