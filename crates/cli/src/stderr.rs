//! Lines on stderr that are no events of the log: addresses, notes and errors. Beside a log of JSON objects, they are objects as well.

use std::sync::atomic::{AtomicBool, Ordering};

use chrono::SecondsFormat;
use datafusion_saved_search::Clock;
use serde_json::json;
use tracing::Level;

/// Set if all lines are JSON objects.
static JSON: AtomicBool = AtomicBool::new(false);

/// Writes all further lines as JSON objects.
pub(crate) fn write_json() {
    JSON.store(true, Ordering::Relaxed);
}

/// Writes a line. As text, it begins with `label`.
pub(crate) fn tell(level: Level, label: &str, line: &str) {
    if JSON.load(Ordering::Relaxed) {
        let at = Clock::system().now().to_rfc3339_opts(SecondsFormat::Micros, true);
        eprintln!("{}", json!({ "timestamp": at, "level": level.as_str(), "message": line, "target": "savedsearch" }));
    } else {
        eprintln!("{label}{line}");
    }
}
