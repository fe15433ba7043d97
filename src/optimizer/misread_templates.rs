//! Notes on templates of `to_char` that are hardly meant: months for minutes, as in `'HH24:MM'`, minutes for months, a part that is there
//! twice while another is missing, as in `'YYYY-DD-DD'`, and hours of a 12-hour clock without `AM`.
//!
//! ```text
//! template ─▶ parts: Year, Month, Day, Gap, Hour, Month ─▶ notes
//! ```
//!
//! Templates of PostgreSQL and those of the engine have the same parts, and other names for them.

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::error::shortened;

/// Returns a note on each such template of a plan.
pub(super) fn misread_templates(plan: &LogicalPlan) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::ScalarFunction(ScalarFunction { func, args }) = part
                    && let [_, Expr::Literal(template, _), ..] = args.as_slice()
                    && let Some(template) = template.try_as_str().flatten()
                {
                    notes.extend(notes_on(func.name(), template));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(notes)
}

/// A part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Year,
    /// The number of a month.
    Month,
    /// The name of a month, or its Roman number.
    MonthName,
    /// The day of a month.
    Day,
    /// The hour of a 24-hour clock.
    Hour,
    /// The hour of a 12-hour clock.
    Hour12,
    Minute,
    Second,
    /// `AM` or `PM`.
    Half,
    /// Any other part.
    Other,
    /// A space, a text in quotes, or several characters between two parts.
    Gap,
}

/// Names of the parts in one kind of templates.
struct Names {
    month: &'static str,
    day: &'static str,
    hour: &'static str,
    hour12: &'static str,
    minute: &'static str,
    half: &'static str,
}

const POSTGRES: Names = Names { month: "MM", day: "DD", hour: "HH24", hour12: "HH", minute: "MI", half: "AM" };
const ENGINE: Names = Names { month: "%m", day: "%d", hour: "%H", hour12: "%I", minute: "%M", half: "%p" };

/// Parts of templates of PostgreSQL in lower case, longer ones first; prefixes have no part.
const PARTS: [(&str, Option<Part>); 36] = [
    ("y,yyy", Some(Part::Year)),
    ("yyyy", Some(Part::Year)),
    ("iyyy", Some(Part::Year)),
    ("yyy", Some(Part::Year)),
    ("iyy", Some(Part::Year)),
    ("yy", Some(Part::Year)),
    ("iy", Some(Part::Year)),
    ("month", Some(Part::MonthName)),
    ("mon", Some(Part::MonthName)),
    ("rm", Some(Part::MonthName)),
    ("fm", None),
    ("tm", None),
    ("fx", None),
    ("mm", Some(Part::Month)),
    ("mi", Some(Part::Minute)),
    ("ms", Some(Part::Other)),
    ("us", Some(Part::Other)),
    ("iddd", Some(Part::Other)),
    ("ddd", Some(Part::Other)),
    ("dd", Some(Part::Day)),
    ("day", Some(Part::Other)),
    ("dy", Some(Part::Other)),
    ("hh24", Some(Part::Hour)),
    ("hh12", Some(Part::Hour12)),
    ("hh", Some(Part::Hour12)),
    ("sssss", Some(Part::Other)),
    ("ssss", Some(Part::Other)),
    ("ss", Some(Part::Second)),
    ("a.m.", Some(Part::Half)),
    ("p.m.", Some(Part::Half)),
    ("am", Some(Part::Half)),
    ("pm", Some(Part::Half)),
    ("ww", Some(Part::Other)),
    ("iw", Some(Part::Other)),
    ("tz", Some(Part::Other)),
    ("y", Some(Part::Year)),
];

fn notes_on(function: &str, template: &str) -> Vec<String> {
    let (names, parts) = match function {
        "postgres_to_char" => (POSTGRES, parts_of(&template.to_lowercase(), of_postgres)),
        "to_char" => (ENGINE, parts_of(template, of_engine)),
        _ => return Vec::new(),
    };
    let meanings = misplaced(&parts, &names).into_iter().chain(without_half(&parts, &names));
    meanings.map(|meaning| shortened(format!("in the template '{template}' of to_char, {meaning}"))).collect()
}

/// A part in the place of another one.
fn misplaced(parts: &[Part], names: &Names) -> Option<String> {
    use Part::{Day, Hour, Hour12, Minute, Month, MonthName, Second, Year};
    let Names { month, day, minute, .. } = names;
    let beside =
        |first: &[Part], second: Part| parts.windows(2).any(|pair| first.contains(&pair[0]) && pair[1] == second);
    if beside(&[Hour, Hour12], Month) || beside(&[Month], Second) {
        return Some(format!("`{month}` is the month; minutes are `{minute}`"));
    }
    if beside(&[Year, Day], Minute) {
        return Some(format!("`{minute}` is the minute; the month is `{month}`"));
    }
    let count = |part: Part| parts.iter().filter(|found| **found == part).count();
    if count(Day) > 1 && count(Month) + count(MonthName) == 0 {
        return Some(format!("`{day}` is there twice; the month is `{month}`"));
    }
    (count(Month) > 1 && count(Day) == 0).then(|| format!("`{month}` is there twice; the day is `{day}`"))
}

/// An hour that is the same in the morning and in the evening.
fn without_half(parts: &[Part], names: &Names) -> Option<String> {
    let Names { hour, hour12, half, .. } = names;
    let is_alone = parts.contains(&Part::Hour12) && !parts.contains(&Part::Half) && !parts.contains(&Part::Hour);
    is_alone.then(|| format!("`{hour12}` is the hour of a 12-hour clock; use `{hour}`, or add `{half}`"))
}

/// The parts of a template, of which `first` reads the first one, if the text begins with one, with its length in bytes.
fn parts_of(template: &str, first: impl Fn(&str) -> Option<(Option<Part>, usize)>) -> Vec<Part> {
    let (mut parts, mut rest, mut between) = (Vec::new(), template, 0_usize);
    while let Some(next) = rest.chars().next() {
        let (part, length) = match first(rest) {
            Some((part, length)) => (part, length),
            None => {
                between += 1;
                ((next.is_whitespace() || between == 2).then_some(Part::Gap), next.len_utf8())
            }
        };
        if part.is_some_and(|part| part != Part::Gap) {
            between = 0;
        }
        parts.extend(part);
        rest = rest.get(length..).unwrap_or_default();
    }
    parts
}

/// The first part of a template of PostgreSQL in lower case. A text in quotes is a gap.
fn of_postgres(rest: &str) -> Option<(Option<Part>, usize)> {
    if let Some(quoted) = rest.strip_prefix('"') {
        let length = quoted.find('"').map_or(rest.len(), |end| end + 2);
        return Some((Some(Part::Gap), length));
    }
    PARTS.iter().find(|(name, _)| rest.starts_with(name)).map(|(name, part)| (*part, name.len()))
}

/// The first part of a template of the engine, such as `%H` or `%-d`.
fn of_engine(rest: &str) -> Option<(Option<Part>, usize)> {
    let behind = rest.strip_prefix('%')?.trim_start_matches(['-', '_', '.', ':', '#', '0', '3', '6', '9']);
    let letter = behind.chars().next()?;
    let part = match letter {
        'Y' | 'y' | 'G' | 'g' => Part::Year,
        'm' => Part::Month,
        'b' | 'B' | 'h' => Part::MonthName,
        'd' | 'e' => Part::Day,
        'H' | 'k' => Part::Hour,
        'I' | 'l' => Part::Hour12,
        'M' => Part::Minute,
        'S' => Part::Second,
        'p' | 'P' | 'r' => Part::Half,
        _ => Part::Other,
    };
    Some((Some(part), rest.len() - behind.len() + letter.len_utf8()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn months_after_hours_and_minutes_after_years_are_noted() {
        let noted = |function: &str, template: &str| !notes_on(function, template).is_empty();
        for template in ["YYYY-MM-DD HH24:MM:SS", "hh24:mm", "YYYYMMDDHH24MMSS", "MM:SS", "HH24.MM", "YYYY-MI-DD"] {
            assert!(noted("postgres_to_char", template), "{template}");
        }
        for template in ["%Y-%m-%d %H:%m", "%H:%m:%S", "%Y-%M-%d", "%d/%M/%Y", "%F %-H:%m"] {
            assert!(noted("to_char", template), "{template}");
        }
        for template in [
            "YYYY-MM-DD HH24:MI:SS",
            "HH24:MI MM/DD",
            "YYYYMMDDHH24MISS",
            "HH24 MM",
            "DD.MM.YYYY",
            "FMMonth DD, YYYY",
            "YYYY-MM-DD\"T\"HH24:MI:SS.US",
            "HH24\"h\"MM",
            "Day, DD Mon YYYY",
            "YYYY-DDD",
            "IYYY-IW",
            "FM999,999.00",
        ] {
            assert!(!noted("postgres_to_char", template), "{template}");
        }
        for template in ["%Y-%m-%d %H:%M:%S", "%d.%m.%Y %H%M", "%M:%S", "%Y-%m-%dT%H:%M:%S%.3f%:z", "%d %b %Y", "100%"]
        {
            assert!(!noted("to_char", template), "{template}");
        }
        assert!(!noted("concat", "HH24:MM"));
    }

    #[test]
    fn a_part_that_is_there_twice_in_place_of_another_is_noted() {
        let note = |template: &str, meaning: &str| vec![format!("in the template '{template}' of to_char, {meaning}")];
        let cases = [
            ("postgres_to_char", "YYYY-DD-DD", "`DD` is there twice; the month is `MM`"),
            ("postgres_to_char", "YYYY-MM-MM", "`MM` is there twice; the day is `DD`"),
            ("to_char", "%Y-%d-%d", "`%d` is there twice; the month is `%m`"),
            ("to_char", "%m/%m/%Y", "`%m` is there twice; the day is `%d`"),
        ];
        each(cases, |(function, template, meaning)| assert_eq!(notes_on(function, template), note(template, meaning)));
        let right = [("postgres_to_char", "DD Mon DD"), ("postgres_to_char", "MM-DD MM"), ("to_char", "%d %B, %d")];
        each(right, |(function, template)| assert_eq!(notes_on(function, template), [""; 0], "{template}"));
    }

    #[test]
    fn an_hour_of_a_12_hour_clock_without_its_half_is_noted() {
        let note = |template: &str, meaning: &str| vec![format!("in the template '{template}' of to_char, {meaning}")];
        let (hour, engine) = (
            "`HH` is the hour of a 12-hour clock; use `HH24`, or add `AM`",
            "`%I` is the hour of a 12-hour clock; use `%H`, or add `%p`",
        );
        let cases = [
            ("postgres_to_char", "YYYY-MM-DD HH:MI", hour),
            ("postgres_to_char", "hh12:mi:ss", hour),
            ("to_char", "%Y-%m-%d %I:%M", engine),
            ("to_char", "%-l", engine),
        ];
        each(cases, |(function, template, meaning)| assert_eq!(notes_on(function, template), note(template, meaning)));
        let both = notes_on("postgres_to_char", "YYYY-MM-DD HH:MM");
        assert!(
            both.len() == 2 && both[0].ends_with("minutes are `MI`") && both[1].ends_with("or add `AM`"),
            "{both:?}"
        );
        let right = [
            ("postgres_to_char", "HH:MI AM"),
            ("postgres_to_char", "HH12:MI p.m."),
            ("to_char", "%I:%M %p"),
            ("to_char", "%r"),
            ("to_char", "%l %P"),
        ];
        each(right, |(function, template)| assert_eq!(notes_on(function, template), [""; 0], "{template}"));
    }
}
