//! Names of saved searches kept between sessions, so that they complete before the list is requested.
//!
//! A private file in the user's state folder; entries are keyed by a digest of the API key. Read and write failures are
//! ignored: the next list restores the names.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::state_folder;
use crate::files;

/// Maximum number of API keys; the least recently used one is dropped.
const KEYS: usize = 32;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// Least recently used first.
    keys: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    key: String,
    /// Aid and name of each saved search.
    searches: Vec<(String, String)>,
}

/// Returns the saved searches of the last list for a key.
pub(super) fn recall(key: &str) -> Vec<(String, String)> {
    read().keys.into_iter().find(|entry| entry.key == key).map(|entry| entry.searches).unwrap_or_default()
}

/// Stores the saved searches of a key.
pub(super) fn remember(key: &str, searches: &[(String, String)]) {
    let Some(path) = path() else { return };
    let mut document = read();
    document.keys.retain(|entry| entry.key != key);
    document.keys.push(Entry { key: key.to_owned(), searches: searches.to_vec() });
    let many = document.keys.len().saturating_sub(KEYS);
    document.keys.drain(..many);
    if let Ok(text) = serde_json::to_string(&document) {
        // Completion works without the cache.
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
