//! Dashboards: files of a folder, which version control can keep. They are read when they are opened.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::{SessionSettings, read_toml};
use crate::error::{Error, ErrorKind, Result, describe};

/// Bytes of a file: what is larger is no dashboard.
const LONGEST: u64 = 256 << 10;
/// Seconds between two runs that a dashboard can ask for. Timers of browsers end at 2^31 ms, which are 24.8 days.
const REFRESH: RangeInclusive<u64> = 60..=24 * 86_400;

/// Folder of dashboards; it may be absent.
#[derive(Debug, Clone)]
pub(super) struct Folder(Option<PathBuf>);

/// A dashboard, `NAME.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Dashboard {
    title: String,
    /// Age from which results are read again, from `1m` to `24d`; without it, only on demand.
    #[serde(default)]
    refresh: Option<String>,
    /// The same in seconds.
    #[serde(skip_deserializing)]
    refresh_seconds: Option<u64>,
    queries: Vec<Panel>,
}

/// A query of a dashboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Panel {
    title: String,
    sql: String,
    #[serde(default)]
    chart: Form,
}

/// Form in which a result is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    /// Lines, bars or points, by the columns.
    #[default]
    Chart,
    Lines,
    Bars,
    /// Bars or areas on each other.
    Stacked,
    Points,
    /// Shades by weekday and hour.
    Heatmap,
    /// The last value of the first row, large.
    Number,
    Table,
}

/// Name and title of a dashboard.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Entry {
    name: String,
    title: String,
    /// Set instead of a title if the file is invalid.
    error: Option<String>,
}

impl Folder {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self(folder)
    }

    /// Checks that the folder can be read, and every dashboard in it. A link to a file that does not exist is no error here: the list
    /// of dashboards shows it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] with the file and line.
    pub(super) fn check(&self) -> Result<()> {
        let Some(folder) = &self.0 else { return Ok(()) };
        std::fs::read_dir(folder).map_err(|error| {
            let line = format!("cannot read the folder of dashboards {}: {error}", folder.display());
            Error::new(ErrorKind::Config, line)
        })?;
        let mut there = self.names().into_iter().filter(|(_, path)| path.exists());
        there.try_for_each(|(_, path)| Dashboard::read(&path).map(drop))
    }

    /// Path of the folder, for people.
    pub(super) fn path(&self) -> Option<String> {
        self.0.as_ref().map(|folder| folder.display().to_string())
    }

    /// All dashboards with their files, or the mistakes in them.
    pub(super) fn all(&self) -> impl Iterator<Item = (PathBuf, Result<Dashboard>)> {
        self.names().into_iter().map(|(_, path)| {
            let read = Dashboard::read(&path);
            (path, read)
        })
    }

    /// All dashboards by name.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let entry = |(name, path): (String, PathBuf)| match Dashboard::read(&path) {
            Ok(Dashboard { title, .. }) => Entry { name, title, error: None },
            Err(error) => Entry { title: name.clone(), name, error: Some(error.to_string()) },
        };
        self.names().into_iter().map(entry).collect()
    }

    /// Reads a dashboard; `None` if the folder has none of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] with the file and line.
    pub(super) fn read(&self, name: &str) -> Result<Option<Dashboard>> {
        // Only names that the folder lists: a name cannot lead out of it.
        let found = self.names().into_iter().find(|(known, _)| known == name);
        found.map(|(_, path)| Dashboard::read(&path)).transpose()
    }

    fn names(&self) -> Vec<(String, PathBuf)> {
        let entries = self.0.as_ref().and_then(|folder| std::fs::read_dir(folder).ok());
        let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
        let named = paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
        let named = named.filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path)));
        // Hidden files are those of other programs, such as the backup of an editor.
        let mut named: Vec<_> = named.filter(|(name, _)| !name.starts_with('.')).collect();
        named.sort();
        named
    }
}

impl Dashboard {
    /// Titles and texts of the queries.
    pub(super) fn queries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.queries.iter().map(|panel| (panel.title.as_str(), panel.sql.as_str()))
    }

    fn read(path: &Path) -> Result<Self> {
        let bad = |what: String| Error::new(ErrorKind::Config, format!("{}: {what}", path.display()));
        // Opening a pipe waits for its writer.
        let file = std::fs::metadata(path).map_err(|error| bad(format!("cannot be read: {error}")))?;
        if !file.is_file() || file.len() > LONGEST {
            return Err(bad(format!("a dashboard is a regular file of at most {} KiB", LONGEST >> 10)));
        }
        let mut read: Self = read_toml(path)?;
        if read.queries.is_empty() {
            return Err(bad("a dashboard needs [[queries]]".to_owned()));
        }
        if let Some(age) = &read.refresh {
            // The same words as the setting that they become.
            let mut settings = SessionSettings::default();
            let set = datafusion::common::config::ExtensionOptions::set(&mut settings, "freshness", age);
            set.map_err(|error| bad(format!("refresh: {}", describe(&error))))?;
            let seconds = settings.freshness.as_secs();
            if !REFRESH.contains(&seconds) {
                return Err(bad(format!("refresh: `{age}` is not between 1m and 24d")));
            }
            read.refresh_seconds = Some(seconds);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_files_and_links_to_nothing_leave_the_others_as_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let text = "title = \"Brand\"\n[[queries]]\ntitle = \"a\"\nsql = \"SELECT 1\"\n";
        std::fs::write(at("brand.toml"), text).expect("written");
        std::fs::write(at(".hidden.toml"), "no dashboard").expect("written");
        std::os::unix::fs::symlink(at("nowhere"), at(".#brand.toml")).expect("a link");
        std::os::unix::fs::symlink(at("nowhere"), at("gone.toml")).expect("a link");
        let dashboards = Folder::new(Some(folder.path().to_owned()));
        dashboards.check().expect("the others are valid");
        let found = dashboards.entries();
        let told: Vec<_> = found.iter().map(|entry| (entry.name.as_str(), entry.error.is_some())).collect();
        assert_eq!(told, [("brand", false), ("gone", true)]);
        assert!(found[1].error.as_ref().is_some_and(|error| error.contains("gone.toml: cannot be read")), "{found:?}");
        assert_eq!(dashboards.read(".hidden").expect("not read"), None);
    }

    #[test]
    fn a_folder_lists_its_dashboards_and_a_name_cannot_lead_out_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).expect("a folder");
        let text = "title = \"Brand\"\nrefresh = \"15m\"\n[[queries]]\ntitle = \"a\"\nsql = \"SELECT 1\"\n";
        std::fs::write(folder.path().join("outside.toml"), text).expect("written");
        std::fs::write(inner.join("brand.toml"), text).expect("written");
        std::fs::write(inner.join("notes.md"), text).expect("written");
        let dashboards = Folder::new(Some(inner.clone()));
        dashboards.check().expect("valid");
        let read = dashboards.read("brand").expect("valid").expect("it is there");
        assert_eq!((read.refresh_seconds, read.queries[0].chart), (Some(900), Form::Chart));
        assert_eq!(dashboards.read("../outside").expect("valid"), None);
        std::fs::write(inner.join("bad.toml"), "title = \"x\"\nqueries = []\nchart = 1\n").expect("written");
        let error = dashboards.check().expect_err("unknown field").to_string();
        assert!(error.contains("bad.toml: line 3"), "{error}");
        std::fs::create_dir(inner.join("folder.toml")).expect("a folder");
        std::fs::write(inner.join("large.toml"), vec![b'#'; 300 << 10]).expect("written");
        for name in ["folder", "large"] {
            let error = dashboards.read(name).expect_err("no dashboard").to_string();
            assert!(error.contains("a regular file of at most 256 KiB"), "{error}");
        }
        for refresh in ["0s", "59s", "25d", "36500d"] {
            std::fs::write(inner.join("often.toml"), text.replace("15m", refresh)).expect("written");
            let error = dashboards.read("often").expect_err("no refresh").to_string();
            assert!(error.contains(&format!("often.toml: refresh: `{refresh}` is not between 1m and 24d")), "{error}");
        }
        for refresh in ["1m", "24d"] {
            std::fs::write(inner.join("often.toml"), text.replace("15m", refresh)).expect("written");
            assert!(dashboards.read("often").is_ok(), "{refresh}");
        }
        let entries = dashboards.entries();
        assert!(entries[0].error.is_some() && entries[1].title == "Brand", "{entries:?}");
    }
}
