//! The names of saved searches from one session to the next, so that they complete before the list was asked for.
//!
//! A file in the user's state folder, for the user alone; its entries are found by a digest of the key. What cannot be read
//! or written is done without: the next list brings the names back.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::state_folder;
use crate::files;

/// Keys that are remembered; the one that was not used for longest is forgotten.
const KEYS: usize = 32;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// Those used last come last.
    keys: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    key: String,
    /// Aids with their names.
    searches: Vec<(String, String)>,
}

/// The saved searches that the last list had for a key.
pub(super) fn recall(key: &str) -> Vec<(String, String)> {
    read().keys.into_iter().find(|entry| entry.key == key).map(|entry| entry.searches).unwrap_or_default()
}

/// Remembers the saved searches of a key.
pub(super) fn remember(key: &str, searches: &[(String, String)]) {
    let Some(path) = path() else { return };
    let mut document = read();
    document.keys.retain(|entry| entry.key != key);
    document.keys.push(Entry { key: key.to_owned(), searches: searches.to_vec() });
    let many = document.keys.len().saturating_sub(KEYS);
    document.keys.drain(..many);
    if let Ok(text) = serde_json::to_string(&document) {
        // It is a convenience.
        let _ = files::replace(&path, &text);
    }
}

fn read() -> Document {
    let text = path().and_then(|path| files::read(&path).ok().flatten());
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn path() -> Option<PathBuf> {
    Some(state_folder()?.join("searches.json"))
}
