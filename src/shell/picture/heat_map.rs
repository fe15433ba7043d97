//! A heat map: a square for each hour of each weekday, the darker, the larger its number.

use std::fmt::Write;

use super::canvas::{Anchor, Canvas};
use super::{BESIDE, COLORS, INK, LINE, MARGIN, PALE, SMALL, TITLE};
use crate::shell::chart::measured;
use crate::shell::heat_map::HeatMap;

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
/// Letters of a short name of a day.
const SHORT: usize = 3;
/// Width of the names of days.
const NAMES: f64 = 40.0;
/// Default height of a square.
const SQUARE: f64 = 30.0;
/// Shade of a square without mentions, which shows that it is part of the map.
const LEAST: f64 = 0.06;

/// Default height in pixels.
pub(super) fn height(map: &HeatMap) -> f64 {
    let title = if map.title.is_some() { TITLE } else { 0.0 };
    let subtitle = if map.subtitle.is_some() { LINE } else { 0.0 };
    2.0 * MARGIN + title + subtitle + 7.0 * SQUARE + LINE + below(map)
}

/// Height of the notes below the squares.
fn below(map: &HeatMap) -> f64 {
    if often(map).is_some() { 2.0 * LINE } else { LINE }
}

/// Sentence about the weekdays that the period has more often than others, whose squares are darker for that.
fn often(map: &HeatMap) -> Option<String> {
    let often = DAYS.iter().zip(map.often).filter(|(_, often)| *often);
    let names: Vec<String> = often.map(|(name, _)| format!("{name}s")).collect();
    let (last, rest) = names.split_last()?;
    let all = if rest.is_empty() { last.clone() } else { format!("{} and {last}", rest.join(", ")) };
    Some(format!("The period has more {all} than other weekdays."))
}

/// The picture as SVG.
pub(super) fn paint(map: &HeatMap, width: f64, height: f64) -> String {
    let mut canvas = Canvas::new(width, height);
    let top = canvas.heading(width, map.title.as_deref(), map.subtitle.as_deref()) + LINE;
    let left = MARGIN + NAMES;
    let across = (width - MARGIN - left) / 24.0;
    let down = ((height - MARGIN - below(map) - top) / 7.0).max(1.0);
    let most = map.hours.iter().flatten().copied().fold(0.0, f64::max);
    for hour in (0_u8..24).step_by(3) {
        let middle = left + (f64::from(hour) + 0.5) * across;
        canvas.text((middle, top - BESIDE), Anchor::Middle, SMALL, PALE, &hour.to_string());
    }
    for (day, (name, hours)) in DAYS.iter().zip(&map.hours).enumerate() {
        let name = &name[..SHORT];
        let y = top + day as f64 * down;
        canvas.text((left - BESIDE, y + down / 2.0 + SMALL * 0.36), Anchor::End, SMALL, INK, name);
        for (hour, value) in hours.iter().enumerate() {
            // Roots, so that small numbers differ from none.
            let share = if most > 0.0 { (value.max(0.0) / most).sqrt() } else { 0.0 };
            let _ = writeln!(
                canvas.out,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"3\" fill=\"{}\" fill-opacity=\"{:.3}\">\
                 <title>{name} {hour}:00: {}</title></rect>",
                left + hour as f64 * across + 1.0,
                y + 1.0,
                (across - 2.0).max(1.0),
                (down - 2.0).max(1.0),
                COLORS[0],
                LEAST + (1.0 - LEAST) * share,
                measured(*value)
            );
        }
    }
    let zone = map.zone.map_or(String::new(), |zone| format!(" ({zone})"));
    let note = format!("Hours of the day{zone}; darkest: {}", measured(most));
    canvas.text((width - MARGIN, height - MARGIN), Anchor::End, SMALL, PALE, &note);
    let often = often(map);
    canvas.text((width - MARGIN, height - MARGIN - LINE), Anchor::End, SMALL, PALE, &often.unwrap_or_default());
    canvas.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weekdays_that_a_period_has_more_often_are_said() {
        let of = |often: [bool; 7]| {
            let map = HeatMap { title: None, subtitle: None, zone: None, hours: [[0.0; 24]; 7], often };
            paint(&map, 800.0, height(&map))
        };
        let three = of([true, false, false, false, false, true, true]);
        assert!(three.contains(">The period has more Mondays, Saturdays and Sundays than other weekdays.<"), "{three}");
        assert!(three.contains(">Mon<") && three.contains("<title>Sun 23:00: 0</title>"), "{three}");
        let one = of([false, true, false, false, false, false, false]);
        assert!(one.contains(">The period has more Tuesdays than other weekdays.<"), "{one}");
        assert!(!of([false; 7]).contains("The period"));
    }
}
