//! The screenshot of the README: a real session in a terminal, as SVG.
//!
//! `SCREENS_UPDATE=1 cargo test --test it the_screenshot` writes it; without the variable the test compares.

use std::fmt::Write;
use std::fs;

use vt100::{Color, Screen};

use super::terminal::{Start, Terminal};
use crate::support::{knob, repository};

/// Lines and columns of the terminal.
const SIZE: (u16, u16) = (44, 100);
/// Size of a character in pixels.
const CHARACTER: (f64, f64) = (8.4, 19.0);
/// Space around the text, and above it for the title bar.
const MARGIN: f64 = 16.0;
const BAR: f64 = 34.0;

const STATEMENT: &str = "SELECT published_at, source, sentiment, title FROM mentions
WHERE aid = 183772 AND language = 'en' ORDER BY published_at DESC LIMIT 5;";

#[test]
fn the_screenshot_is_a_real_session() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--now", "2026-07-01T12:00:00Z", "sql"];
    let mut terminal =
        Terminal::start(&Start { size: SIZE, arguments: &arguments, environment: &[], state: folder.path() });
    terminal.prompt("tables.");
    terminal.clear();
    let (first, second) = STATEMENT.split_once('\n').unwrap();
    terminal.keys(&format!("{first}\r"));
    terminal.sees("savedsearch->");
    terminal.enter(second, "complete");
    terminal.enter("\\cost SELECT count(*) FROM mentions WHERE aid = 183772", "│ all ");
    terminal.enter("\\chart SELECT bucket_start, mentions FROM volume('183772', '30d')", "31 rows");
    let found = terminal.with_screen(svg);
    let path = repository().join("docs/screenshot.svg");
    if knob("SCREENS_UPDATE", 0) == 1 {
        fs::write(&path, &found).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap();
    assert_eq!(text(&kept), text(&found), "outdated: set SCREENS_UPDATE=1 and run this test");
}

/// The text of a picture, without positions and times.
fn text(svg: &str) -> String {
    let mut lines = Vec::new();
    for part in svg.split('>').skip(1) {
        let line = part.split('<').next().unwrap_or_default().trim();
        if !line.is_empty() {
            lines.push(line.to_owned());
        }
    }
    super::terminal::without_times(&lines.join("\n"))
}

/// Draws a screen as SVG.
fn svg(screen: &Screen) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let last = (0..rows).rev().find(|row| {
        (0..columns).any(|at| screen.cell(*row, at).is_some_and(|cell| !cell.contents().trim().is_empty()))
    });
    let shown = f64::from(last.map_or(0, |row| row + 1));
    let (width, height) = (f64::from(columns) * CHARACTER.0 + 2.0 * MARGIN, shown * CHARACTER.1 + BAR + MARGIN);
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         role=\"img\" aria-label=\"savedsearch sql\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1d1f27\"/>\n"
    );
    for (at, color) in ["#ff5f57", "#febc2e", "#28c840"].into_iter().enumerate() {
        let x = MARGIN + 4.0 + 18.0 * at as f64;
        let _ = writeln!(picture, "<circle cx=\"{x:.0}\" cy=\"18\" r=\"5.5\" fill=\"{color}\"/>");
    }
    picture.push_str("<g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\" xml:space=\"preserve\">\n");
    for row in 0..rows {
        let mut at = 0;
        while at < columns {
            let (style, begin) = (style(screen, row, at), at);
            let mut run = String::new();
            while at < columns && self::style(screen, row, at) == style {
                let cell = screen.cell(row, at);
                // Fonts disagree about the width of wide characters: what follows one has a position of its own.
                let wide = cell.is_some_and(vt100::Cell::is_wide);
                if wide && at > begin {
                    break;
                }
                match cell.filter(|cell| !cell.is_wide_continuation()) {
                    Some(cell) if !cell.contents().is_empty() => run.push_str(cell.contents()),
                    Some(_) => run.push(' '),
                    None => {}
                }
                at += if wide { 2 } else { 1 };
                if wide {
                    break;
                }
            }
            let begin = begin + u16::try_from(run.len() - run.trim_start().len()).unwrap();
            let run = run.trim();
            if run.is_empty() {
                continue;
            }
            let length = console::measure_text_width(run) as f64 * CHARACTER.0;
            let (x, y) = (MARGIN + f64::from(begin) * CHARACTER.0, BAR + f64::from(row + 1) * CHARACTER.1 - 5.0);
            let escaped = run.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let (color, bold) = style;
            let bold = if bold { " font-weight=\"bold\"" } else { "" };
            let _ = writeln!(
                picture,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{color}\"{bold}>{escaped}</text>"
            );
        }
    }
    picture.push_str("</g>\n</svg>\n");
    picture
}

/// Colour of a cell, and true for bold.
fn style(screen: &Screen, row: u16, at: u16) -> (&'static str, bool) {
    let Some(cell) = screen.cell(row, at) else { return ("#d5d7dd", false) };
    let color = match cell.fgcolor() {
        Color::Idx(1 | 9) => "#f2777a",
        Color::Idx(2 | 10) => "#99cc99",
        Color::Idx(3 | 11) => "#ffcc66",
        Color::Idx(4 | 12) => "#6ea8fe",
        Color::Idx(5 | 13) => "#cc99cc",
        Color::Idx(6 | 14) => "#66cccc",
        Color::Idx(_) => "#8a8f98",
        _ if cell.dim() => "#8a8f98",
        _ => "#d5d7dd",
    };
    (color, cell.bold())
}
