//! Time windows in words.

use crate::exec::WindowRead;

/// `7d` as "the last 7 days"; other periods as they are.
pub(crate) fn period_in_words(period: &str) -> String {
    let (number, unit) = period.split_at(period.len() - period.chars().next_back().map_or(0, char::len_utf8));
    let unit = match unit {
        "h" => "hour",
        "d" => "day",
        "w" => "week",
        _ => return format!("the default window, {period}"),
    };
    match number.parse::<u64>() {
        Ok(1) => format!("the last {unit}"),
        Ok(number) => format!("the last {number} {unit}s"),
        Err(_) => format!("the default window, {period}"),
    }
}

/// The note of a query that has no time filter: the window that it reads.
pub(crate) fn window_note(windows: &[WindowRead]) -> Option<String> {
    let window = windows.iter().find(|window| window.default)?;
    let period = period_in_words(&window.words);
    let range = window.time.as_deref().map_or(String::new(), |time| format!("`{time} >= …` or "));
    Some(format!("no time filter: reading {period}; add {range}`duration = '…'` to change this"))
}
