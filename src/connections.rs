//! Named connections, read from a file: several services or keys in one session, each a catalog.
//!
//! ```toml
//! default = "comms"                       # absent: the first one by name
//!
//! [connections.comms]
//! base_url = "https://api.example.com/v4"
//! api_key_env = "COMMS_KEY"               # or api_key_file = "comms.key"; neither if clients bring the key
//! profile = "mine.toml"                   # or the name of a built-in profile; absent: v4
//! insecure = true                         # allows an http address beyond this machine: the key travels in clear text
//! ```
//!
//! A table `[serve]` in the same file configures the server ([`ServeDocument`](crate::flight::ServeDocument)). Keys are
//! never part of the file: it names a variable or a file that holds one. Paths are relative to the file's folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::catalog::CATALOG;
use crate::client::Secret;
use crate::config::{read_toml, variable};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::Profile;

/// Connections defined in a file.
#[derive(Debug)]
pub struct Connections {
    /// Name of the default connection, whose tables queries use when they name no catalog.
    pub default: String,
    /// All connections by name.
    pub named: BTreeMap<String, Named>,
}

/// Settings of a connection.
#[derive(Debug)]
pub struct Named {
    /// Address of the service.
    pub base_url: String,
    /// Key, if the file names a source for it.
    pub key: Option<Secret>,
    /// Profile.
    pub profile: Profile,
    /// True if the key may be sent in clear text beyond this machine.
    pub insecure: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    default: Option<String>,
    connections: BTreeMap<String, Entry>,
    #[serde(rename = "serve")]
    _serve: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    base_url: String,
    api_key_env: Option<String>,
    api_key_file: Option<PathBuf>,
    profile: Option<PathBuf>,
    #[serde(default)]
    insecure: bool,
}

impl Connections {
    /// Reads a file. `choice` overrides the file's default connection.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an invalid file, name or key; those of [`Profile::named`].
    pub fn read(path: &Path, choice: Option<&str>) -> Result<Self> {
        let bad = |what: String| Error::new(ErrorKind::Config, format!("{}: {what}", path.display()));
        let document: Document = read_toml(path)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut named = BTreeMap::new();
        for (name, entry) in document.connections {
            let bad = |what: &str| bad(format!("connection `{name}`: {what}"));
            let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
            if !plain
                || name.is_empty()
                || name.starts_with(|first: char| first.is_ascii_digit())
                || [CATALOG, "datafusion", "information_schema"].contains(&name.as_str())
            {
                return Err(bad(&format!(
                    "invalid name: expected lowercase letters, digits and `_`, no leading digit, and none of {CATALOG}, \
                     datafusion and information_schema"
                )));
            }
            let key = match (entry.api_key_env, entry.api_key_file) {
                (Some(variable_name), None) => {
                    let key = variable(&variable_name).ok_or_else(|| {
                        bad(&format!("environment variable {variable_name} is not set")).advice("set it to the API key")
                    })?;
                    Some(Secret::new(&key)?)
                }
                (None, Some(file)) => Some(Secret::read(&folder.join(file))?),
                (None, None) => None,
                (Some(_), Some(_)) => return Err(bad("expected either api_key_env or api_key_file, not both")),
            };
            let profile =
                entry.profile.map_or_else(|| Ok(Profile::v4()), |profile| Profile::named(folder, &profile))?;
            named.insert(name, Named { base_url: entry.base_url, key, profile, insecure: entry.insecure });
        }
        let default = choice.map(str::to_owned).or(document.default).or_else(|| named.keys().next().cloned());
        let default = default.ok_or_else(|| bad("no connections are defined".to_owned()))?;
        if !named.contains_key(&default) {
            let names: Vec<&str> = named.keys().map(String::as_str).collect();
            return Err(bad(format!("unknown connection `{default}`; available: {}", names.join(", "))));
        }
        Ok(Self { default, named })
    }
}
