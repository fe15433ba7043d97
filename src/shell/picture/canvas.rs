//! The elements of a picture, written as SVG.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use console::truncate_str;

use super::{Area, FONTS, INK, LARGE, LINE, MARGIN, PALE, SMALL, TITLE};

/// A picture that is being written.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    pub(super) out: String,
    /// Series whose hatching the picture defines.
    hatched: Vec<usize>,
    /// Part of the names of its hatchings: a page that contains several pictures needs names of each.
    name: u64,
}

/// Alignment of a text at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Inside of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    Full,
    /// White.
    Open,
    /// Lets what is below it show.
    Pale,
}

/// Shapes of the marks of series, in order, so that colours alone distinguish nothing: corners around the middle, for a radius of 1.
/// The first is a circle.
const SHAPES: [&[(f64, f64)]; 9] = [
    &[],
    &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    &[(0.0, -1.2), (1.1, 0.9), (-1.1, 0.9)],
    &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
    &[(0.0, 1.2), (1.1, -0.9), (-1.1, -0.9)],
    &[(-1.1, -1.1), (1.1, -1.1), (-1.1, 1.1), (1.1, 1.1)],
    &[(-0.5, -1.4), (0.5, -1.4), (0.5, 1.4), (-0.5, 1.4)],
    &[(-1.4, -0.5), (1.4, -0.5), (1.4, 0.5), (-1.4, 0.5)],
    &[(1.2, 0.0), (-0.9, 1.1), (-0.9, -1.1)],
];

/// Hatchings of series, whose colours alone distinguish nothing: lines of a tile of 8 by 8, and their width. The first series is
/// plain; the others have diagonals, lines across, a chessboard, both diagonals, a grid, and dashes.
const HATCHES: [Option<(&str, f64)>; 9] = [
    None,
    Some(("M-2 2L2 -2M0 8L8 0M6 10L10 6", 1.5)),
    Some(("M4 0V8", 2.0)),
    Some(("M-2 6L2 10M0 0L8 8M6 -2L10 2", 1.5)),
    Some(("M0 4H8", 2.0)),
    Some(("M0 2H4M4 6H8", 4.0)),
    Some(("M0 8L8 0M0 0L8 8", 1.2)),
    Some(("M4 0V8M0 4H8", 1.2)),
    Some(("M1 2H4M5 6H8", 1.5)),
];

impl Canvas {
    /// An empty white picture.
    pub(super) fn new(width: f64, height: f64) -> Self {
        let out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"{FONTS}\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        Self { out, ..Self::default() }
    }

    /// The picture as text.
    pub(super) fn finish(mut self) -> String {
        self.out.push_str("</svg>");
        self.out
    }

    /// Writes the title, and the period below it. Returns the place below both.
    pub(super) fn heading(&mut self, width: f64, title: Option<&str>, subtitle: Option<&str>) -> f64 {
        let mut top = MARGIN;
        if let Some(title) = title {
            let letters = (width / (LARGE * 0.55)).max(8.0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "pictures are at most 4,000 wide"
            )]
            let title = truncate_str(title, letters as usize, "…").into_owned();
            self.text((width / 2.0, top + LARGE), Anchor::Middle, LARGE, INK, &title);
            top += TITLE;
        }
        if let Some(subtitle) = subtitle {
            self.text((width / 2.0, top + SMALL), Anchor::Middle, SMALL, PALE, subtitle);
            top += LINE;
        }
        top
    }

    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, size: f64, color: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let _ = writeln!(
            self.out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size:.0}\" fill=\"{color}\"{anchor}>{text}</text>"
        );
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), color: &str, width: f64, dashed: bool) {
        let dashed = if dashed { " stroke-dasharray=\"4 4\"" } else { "" };
        let _ = writeln!(
            self.out,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{color}\" stroke-width=\"{width}\" stroke-linecap=\"round\"{dashed}/>",
            from.0, from.1, to.0, to.1
        );
    }

    /// A mark of a series, in the shape of that series.
    pub(super) fn mark(&mut self, series: usize, (x, y): (f64, f64), radius: f64, color: &str, fill: Fill) {
        let element = match SHAPES[series % SHAPES.len()] {
            [] => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\""),
            corners => {
                let at = |(right, down): &(f64, f64)| format!("{:.1},{:.1}", x + right * radius, y + down * radius);
                format!("<polygon points=\"{}\"", corners.iter().map(at).collect::<Vec<_>>().join(" "))
            }
        };
        let _ = match fill {
            Fill::Pale => writeln!(self.out, "{element} fill=\"{color}\" fill-opacity=\"0.55\"/>"),
            _ => {
                let inside = if fill == Fill::Full { color } else { "#ffffff" };
                writeln!(self.out, "{element} fill=\"{inside}\" stroke=\"{color}\" stroke-width=\"1.5\"/>")
            }
        };
    }

    pub(super) fn rect(&mut self, area: Area, color: &str, dashed: bool) {
        let dashed = match dashed {
            true => format!(" fill-opacity=\"0.4\" stroke=\"{color}\" stroke-dasharray=\"4 4\""),
            false => String::new(),
        };
        let _ = writeln!(
            self.out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{color}\"{dashed}/>",
            area.left,
            area.top,
            area.right - area.left,
            area.bottom - area.top
        );
    }

    /// Draws the hatching of a series over its rectangle.
    pub(super) fn hatch_rect(&mut self, series: usize, Area { left, top, right, bottom }: Area, color: &str) {
        self.hatch(series, &format!("M{left:.1} {top:.1}H{right:.1}V{bottom:.1}H{left:.1}Z"), color);
    }

    /// Draws the hatching of a series over its shape; nothing for the first series, which is plain. The lines are white, or dark on a
    /// light colour.
    pub(super) fn hatch(&mut self, series: usize, shape: &str, color: &str) {
        let series = series % HATCHES.len();
        let Some((lines, width)) = HATCHES[series] else { return };
        if self.hatched.is_empty() {
            let mut hasher = DefaultHasher::new();
            self.out.hash(&mut hasher);
            self.name = hasher.finish();
        }
        let id = format!("hatch{series}-{:x}", self.name);
        if !self.hatched.contains(&series) {
            self.hatched.push(series);
            let line = if is_light(color) { INK } else { "#ffffff" };
            let _ = writeln!(
                self.out,
                "<pattern id=\"{id}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">\
                 <path d=\"{lines}\" fill=\"none\" stroke=\"{line}\" stroke-width=\"{width}\" stroke-opacity=\"0.8\"/></pattern>"
            );
        }
        let _ = writeln!(self.out, "<path d=\"{shape}\" fill=\"url(#{id})\"/>");
    }
}

/// True for a colour on which dark lines contrast more than white ones.
fn is_light(color: &str) -> bool {
    let rgb = u32::from_str_radix(color.trim_start_matches('#'), 16).unwrap_or_default();
    let [_, red, green, blue] = rgb.to_be_bytes().map(u32::from);
    299 * red + 587 * green + 114 * blue > 140_000
}
