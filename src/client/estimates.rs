//! Grounds of estimates, kept for other processes: the last list of saved searches, and totals of windows.
//!
//! They are in one private file in the user's state folder, with an entry for each key at its service. An entry has
//! identifiers of saved searches, digests of requests, and numbers: no mention, no filter and no key. The file is replaced
//! atomically and without a lock: of two processes that write at once, one may lose what it knew. A file that is not one of estimates
//! is ignored, and replaced. One that cannot be read is ignored, and kept: it may be right.
//!
//! Invariant: the file decides what an estimate says, never what is requested or what a result contains.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{fmt, io};

#[cfg(any(feature = "store", test))]
use chrono::TimeDelta;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::auth::name_of;
use crate::files;
use crate::request::RequestKey;

/// Name of the file.
const FILE: &str = "estimates.json";
/// Maximum number of keys in the file; the least recently used one is dropped.
const KEYS: usize = 16;
/// Maximum number of saved searches of a list that is kept.
const SEARCHES: usize = 10_000;
/// Maximum number of totals of a key; the oldest are dropped.
const TOTALS: usize = 1_000;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// Least recently used first.
    keys: Vec<Entry>,
}

/// Grounds of the estimates of one key.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Digest of the key and the address of its service.
    key: String,
    list: Option<List>,
    /// Rows of the largest page that was smaller than requested, 0 if there was none.
    smaller_page: u64,
    /// Totals by the digest of the request for the overview of their window.
    totals: HashMap<String, Total>,
}

/// Saved searches that a query reads if it names none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    at: DateTime<Utc>,
    aids: Vec<String>,
}

/// Number of mentions of a window when it was last read or counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Total {
    pub(super) at: DateTime<Utc>,
    pub(super) mentions: u64,
    /// Instants of the window, if they are known.
    #[serde(default)]
    pub(super) span: Option<WindowInstants>,
}

/// Instants of a window, [from, to); those of a relative period end when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WindowInstants {
    /// Digest of the request without its window.
    of: String,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
}

/// A window that ends this much later than another is taken to be within it: mentions of the last hours change an estimate little.
#[cfg(any(feature = "store", test))]
const LATER: TimeDelta = TimeDelta::days(1);

impl WindowInstants {
    /// The instants of a window. `rest`: its request without the window.
    pub(super) fn new(rest: &RequestKey, from: DateTime<Utc>, to: DateTime<Utc>) -> Self {
        Self { of: digest(rest), from, to }
    }

    /// True if it contains another window of the same mentions, but for its last day.
    #[cfg(any(feature = "store", test))]
    fn contains(&self, other: &Self) -> bool {
        let until = self.to.checked_add_signed(LATER).unwrap_or(self.to);
        self.of == other.of && self.from <= other.from && other.to <= until
    }
}

#[cfg(any(feature = "store", test))]
impl Total {
    /// The smaller of two totals.
    fn smaller(self, other: Self) -> Self {
        if other.mentions < self.mentions { other } else { self }
    }

    /// The smallest of these totals whose window contains another one, if there is any.
    pub(super) fn least_of<'t>(totals: impl Iterator<Item = &'t Self>, within: &WindowInstants) -> Option<Self> {
        let containing = totals.filter(|total| total.span.as_ref().is_some_and(|span| span.contains(within)));
        containing.cloned().reduce(Self::smaller)
    }
}

/// Grounds of the estimates of one key, as earlier processes left them, and as this one will.
#[derive(Debug)]
pub(super) struct Grounds {
    path: PathBuf,
    /// Contents of the file when the process started.
    earlier: Entry,
    /// The list that this process has requested.
    list: Mutex<Option<List>>,
    /// The reason for which the file was ignored, until it was told.
    problem: Mutex<Option<String>>,
}

impl Grounds {
    /// Reads the entry of a key from the file in a folder.
    pub(super) fn read(folder: &Path, identity: [u8; 32]) -> Self {
        let (path, key) = (folder.join(FILE), name_of(identity));
        let (document, problem) = match read(&path) {
            Ok(document) => (document, None),
            Err(unusable) => (Document::default(), Some(unusable.reason)),
        };
        if let Some(problem) = &problem {
            tracing::warn!("{problem}");
        }
        let earlier = document.keys.into_iter().find(|entry| entry.key == key);
        let earlier = earlier.unwrap_or_else(|| Entry { key, ..Entry::default() });
        Self { path, earlier, list: Mutex::default(), problem: Mutex::new(problem) }
    }

    /// The saved searches of the last list of an earlier process, and the time of that list.
    pub(super) fn earlier_list(&self) -> Option<(Vec<String>, DateTime<Utc>)> {
        self.earlier.list.as_ref().map(|list| (list.aids.clone(), list.at))
    }

    /// The total of a window that an earlier process has read or counted.
    pub(super) fn earlier_total(&self, window: &RequestKey) -> Option<Total> {
        self.earlier.totals.get(&digest(window)).cloned()
    }

    /// The smallest total of a window that contains another one, and that an earlier process has read or counted.
    #[cfg(any(feature = "store", test))]
    pub(super) fn earlier_limit(&self, within: &WindowInstants) -> Option<Total> {
        Total::least_of(self.earlier.totals.values(), within)
    }

    /// Rows of the largest page that was smaller than requested in an earlier process, 0 if there was none.
    pub(super) fn earlier_page(&self) -> u64 {
        self.earlier.smaller_page
    }

    /// Notes the list that this process has requested.
    pub(super) fn note_list(&self, aids: Vec<String>, at: DateTime<Utc>) {
        let list = (aids.len() <= SEARCHES).then_some(List { at, aids });
        *self.list.lock().unwrap_or_else(PoisonError::into_inner) = list;
    }

    /// The reason for which the file was ignored, once.
    pub(super) fn take_problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Adds what this process knows to the file. A file that cannot be written is left as it is: every query works without.
    pub(super) fn write(&self, totals: Vec<(RequestKey, Total)>, smaller_page: u64) {
        let mut document = match read(&self.path) {
            Ok(document) => document,
            Err(Unusable { is_read: true, .. }) => Document::default(),
            Err(Unusable { reason, .. }) => {
                tracing::warn!("{reason}");
                *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
                return;
            }
        };
        let key = &self.earlier.key;
        let at = document.keys.iter().position(|entry| entry.key == *key);
        let mut entry = at.map_or_else(|| self.earlier.clone(), |at| document.keys.remove(at));
        if let Some(list) = self.list.lock().unwrap_or_else(PoisonError::into_inner).as_ref()
            && entry.list.as_ref().is_none_or(|known| known.at <= list.at)
        {
            entry.list = Some(list.clone());
        }
        entry.smaller_page = entry.smaller_page.max(smaller_page);
        for (window, total) in totals {
            let window = digest(&window);
            if entry.totals.get(&window).is_none_or(|known| known.at <= total.at) {
                entry.totals.insert(window, total);
            }
        }
        if entry.totals.len() > TOTALS {
            let mut instants: Vec<_> = entry.totals.values().map(|total| total.at).collect();
            instants.sort_unstable_by(|one, other| other.cmp(one));
            let oldest = instants[TOTALS - 1];
            entry.totals.retain(|_, total| total.at >= oldest);
            // Many may be of one instant.
            let surplus = entry.totals.len() - TOTALS;
            let of_it = entry.totals.iter().filter(|(_, total)| total.at == oldest).map(|(window, _)| window.clone());
            for window in of_it.take(surplus).collect::<Vec<_>>() {
                entry.totals.remove(&window);
            }
        }
        document.keys.push(entry);
        let surplus = document.keys.len().saturating_sub(KEYS);
        document.keys.drain(..surplus);
        if let Ok(text) = serde_json::to_string(&document) {
            let _ = files::replace(&self.path, &text);
        }
    }
}

/// A file that is ignored.
struct Unusable {
    reason: String,
    /// Set if the file was read, and is not one of estimates.
    is_read: bool,
}

/// Reads a file; without one, nothing is known.
fn read(path: &Path) -> Result<Document, Unusable> {
    let ignored = |what: &str, error: &dyn fmt::Display, is_read| {
        let reason = format!("{}: {what}: {error}; estimates do without it", path.display());
        Unusable { reason, is_read }
    };
    const INVALID: &str = "not a valid file of estimates";
    match files::read(path) {
        Ok(None) => Ok(Document::default()),
        Ok(Some(text)) => serde_json::from_str(&text).map_err(|error| ignored(INVALID, &error, true)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(ignored(INVALID, &error, true)),
        Err(error) => Err(ignored("cannot be read", &error, false)),
    }
}

/// Identifies a request without its values.
fn digest(window: &RequestKey) -> String {
    let parts = window.parameters().iter().flat_map(|(name, value)| [name, value]);
    let digest = parts.fold(Sha256::new().chain_update(window.path()), |digest, part| {
        digest.chain_update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes()).chain_update(part)
    });
    name_of(digest.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    fn at(hour: u32) -> DateTime<Utc> {
        format!("2026-07-01T{hour:02}:00:00Z").parse().expect("valid instant")
    }

    fn window(aid: &str) -> RequestKey {
        RequestKey::new("search", vec![("aid".to_owned(), aid.to_owned())])
    }

    fn total(hour: u32, mentions: u64) -> Total {
        Total { at: at(hour), mentions, span: None }
    }

    #[test]
    fn a_window_has_no_more_mentions_than_one_that_contains_it() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let span = |aid: &str, from: u32, to: u32| WindowInstants::new(&window(aid), at(from), at(to));
        let of = |aid: &str, mentions: u64, from: u32, to: u32| {
            let total = Total { span: Some(span(aid, from, to)), ..total(to, mentions) };
            (window(&format!("{aid} {from} {to}")), total)
        };
        let first = Grounds::read(folder.path(), [1; 32]);
        first.write(vec![of("7", 500, 2, 10), of("7", 400, 3, 10), of("7", 90, 6, 10), of("8", 1, 0, 10)], 0);
        let later = Grounds::read(folder.path(), [1; 32]);
        let limit = |within: WindowInstants| later.earlier_limit(&within).map(|total| total.mentions);
        each([(2, Some(500)), (3, Some(400)), (5, Some(400)), (6, Some(90)), (1, None)], |(from, expected)| {
            assert_eq!(limit(span("7", from, 9)), expected, "from {from}:00");
        });
        assert_eq!(limit(span("9", 4, 9)), None, "of another saved search");
        // What was published since the total was read is little.
        let ending = |to: DateTime<Utc>| limit(WindowInstants { to, ..span("7", 5, 9) });
        assert_eq!((ending(at(10) + LATER), ending(at(11) + LATER)), (Some(400), None));
    }

    #[test]
    fn a_later_process_knows_what_earlier_ones_read() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let first = Grounds::read(folder.path(), [1; 32]);
        assert_eq!((first.earlier_list(), first.earlier_total(&window("7"))), (None, None));
        first.note_list(vec!["7".to_owned(), "8".to_owned()], at(1));
        first.write(vec![(window("7"), total(1, 500)), (window("8"), total(3, 40))], 25);
        // Another key, and another process that has counted one window before the first one did.
        Grounds::read(folder.path(), [2; 32]).write(vec![(window("7"), total(9, 1))], 0);
        let other = Grounds::read(folder.path(), [1; 32]);
        other.write(vec![(window("8"), total(2, 41)), (window("9"), total(2, 3))], 10);
        let later = Grounds::read(folder.path(), [1; 32]);
        assert_eq!(later.earlier_list(), Some((vec!["7".to_owned(), "8".to_owned()], at(1))));
        let totals = ["7", "8", "9", "10"].map(|aid| later.earlier_total(&window(aid)));
        assert_eq!(totals, [Some(total(1, 500)), Some(total(3, 40)), Some(total(2, 3)), None]);
        assert_eq!((later.earlier_page(), later.take_problem()), (25, None));
        let text = std::fs::read_to_string(folder.path().join(FILE)).expect("written");
        let document: Document = serde_json::from_str(&text).expect("valid");
        let requests: Vec<&String> = document.keys.iter().flat_map(|entry| entry.totals.keys()).collect();
        let is_digest = |text: &String| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(requests.len() == 4 && requests.into_iter().all(is_digest), "a digest stands for a request: {text}");
    }

    #[test]
    fn the_file_is_bounded_and_the_newest_stay() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let first = Grounds::read(folder.path(), [0; 32]);
        let many: Vec<_> = (0..TOTALS + 5).map(|aid| (window(&aid.to_string()), total(2, 1))).collect();
        first.write(vec![(window("old"), total(1, 1))], 0);
        first.write(many, 0);
        first.note_list((0..=SEARCHES).map(|aid| aid.to_string()).collect(), at(1));
        first.write(Vec::new(), 0);
        let read =
            || serde_json::from_str::<Document>(&std::fs::read_to_string(folder.path().join(FILE)).expect("read"));
        let document = read().expect("valid");
        assert_eq!((document.keys[0].totals.len(), document.keys[0].list.as_ref()), (TOTALS, None));
        assert!(!document.keys[0].totals.contains_key(&digest(&window("old"))));
        for key in 1..=u8::try_from(KEYS).expect("few") {
            Grounds::read(folder.path(), [key; 32]).write(Vec::new(), 1);
        }
        let document = read().expect("valid");
        assert_eq!((document.keys.len(), document.keys[0].key.as_str()), (KEYS, name_of([1; 32]).as_str()));
    }

    #[test]
    fn a_file_that_cannot_be_used_is_ignored_told_and_replaced() {
        let folder = tempfile::tempdir().expect("temporary folder");
        each([&b""[..], b"{\"keys\":7}", b"{\"keys\":[],\"format\":2}", b"\0", b"\xff"], |text| {
            std::fs::write(folder.path().join(FILE), text).expect("written");
            let estimates = Grounds::read(folder.path(), [1; 32]);
            let problem = estimates.take_problem().expect("it is told");
            assert!(problem.contains("estimates.json: not a valid file of estimates"), "{problem}");
            assert_eq!((estimates.take_problem(), estimates.earlier_list()), (None, None));
            estimates.write(vec![(window("7"), total(1, 5))], 0);
            let later = Grounds::read(folder.path(), [1; 32]);
            assert_eq!((later.take_problem(), later.earlier_total(&window("7"))), (None, Some(total(1, 5))));
        });
    }

    /// A link to itself cannot be opened, and could be replaced.
    #[cfg(unix)]
    #[test]
    fn a_file_that_cannot_be_read_is_kept_and_told() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join(FILE);
        let grounds = Grounds::read(folder.path(), [1; 32]);
        std::os::unix::fs::symlink(&path, &path).expect("a link");
        grounds.write(vec![(window("7"), total(1, 5))], 0);
        assert!(path.symlink_metadata().expect("kept").is_symlink());
        let problem = grounds.take_problem().expect("it is told");
        assert!(problem.contains("estimates.json: cannot be read: "), "{problem}");
    }
}
