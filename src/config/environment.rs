//! The only module that reads the environment: variables, and the user's folders and files.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::client::Secret;
use crate::error::{Error, ErrorKind, Result, nearest_name, one_line};
use crate::location::{CatalogUrl, Location};

/// Values from the environment. Command-line options take precedence.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `SAVEDSEARCH_BASE_URL`.
    pub base_url: Option<String>,
    /// `SAVEDSEARCH_API_KEY`.
    pub api_key: Option<Secret>,
    /// `SAVEDSEARCH_PROFILE`.
    pub profile: Option<PathBuf>,
    /// `SAVEDSEARCH_CONFIG`.
    pub config: Option<PathBuf>,
    /// `SAVEDSEARCH_STORE`.
    pub store: Option<Location>,
    /// `SAVEDSEARCH_CATALOG`.
    pub catalog: Option<CatalogUrl>,
}

impl Environment {
    /// Reads the variables of the process. An empty variable counts as unset.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an invalid key or location.
    pub fn read() -> Result<Self> {
        Ok(Self {
            base_url: variable("SAVEDSEARCH_BASE_URL"),
            api_key: variable("SAVEDSEARCH_API_KEY").map(|key| Secret::new(&key)).transpose()?,
            profile: variable("SAVEDSEARCH_PROFILE").map(PathBuf::from),
            config: variable("SAVEDSEARCH_CONFIG").map(PathBuf::from),
            store: variable("SAVEDSEARCH_STORE").map(Location::parse).transpose()?,
            catalog: variable("SAVEDSEARCH_CATALOG").map(|url| catalog_url(&url)).transpose()?,
        })
    }

    /// The configuration file if nothing else names a service: that of the environment, or the one in the user's configuration
    /// folder, which gives way to an address.
    pub fn config_file(&self) -> Option<PathBuf> {
        let usual = || self.base_url.is_none().then(default_config_file).flatten().filter(|path| path.is_file());
        self.config.clone().or_else(usual)
    }
}

/// Parses the address of a catalog. Its password may be in `PGPASSWORD`.
///
/// # Errors
/// [`ErrorKind::Config`] for an address of another kind.
pub fn catalog_url(text: &str) -> Result<CatalogUrl> {
    CatalogUrl::parse(text, variable("PGPASSWORD").as_deref())
}

/// Address of the collector of traces: `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, or else `OTEL_EXPORTER_OTLP_ENDPOINT`.
/// `None` if `OTEL_SDK_DISABLED` is `true`.
pub fn trace_collector() -> Option<String> {
    let disabled = variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let address = || variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT"));
    (!disabled).then(address).flatten()
}

/// Folder for state that outlives the process: `savedsearch` in `XDG_STATE_HOME`, or else in `~/.local/state` (XDG Base
/// Directory Specification).
pub fn state_folder() -> Option<PathBuf> {
    let state = variable("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/state")));
    state.map(|state| state.join("savedsearch"))
}

/// Default configuration file: `savedsearch/savedsearch.toml` in `XDG_CONFIG_HOME`, else in `~/.config` (XDG Base Directory
/// Specification). It need not exist.
pub fn default_config_file() -> Option<PathBuf> {
    let config = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")))?;
    Some(config.join("savedsearch").join("savedsearch.toml"))
}

/// True if an environment variable is set, and blank.
pub fn is_blank(name: &str) -> bool {
    #[expect(clippy::disallowed_methods, reason = "this is the only module that reads the environment")]
    std::env::var(name).is_ok_and(|value| value.trim().is_empty())
}

/// Value of an environment variable; `None` if it is unset or blank.
pub fn variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "this is the only module that reads the environment")]
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Reads a TOML file.
///
/// # Errors
/// [`ErrorKind::Config`] naming the file and, for a mistake in it, the line, whose content is not quoted.
pub fn read_toml<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bad = |what: String| Error::new(ErrorKind::Config, format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| bad(format!("cannot be read: {error}")))?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let told = bad(format!("line {line}: {}", one_line(&in_words(error.message()))));
        match meant(error.message()) {
            Some(near) => told.advice(format!("did you mean {near}?")),
            None => told,
        }
    })
}

/// The key that was probably meant, if the message of the parser is about an unknown one.
fn meant(message: &str) -> Option<&str> {
    let (name, expected) = message.strip_prefix("unknown field `")?.split_once('`')?;
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    nearest_name(name, &known)
}

/// The message of the parser in the words of TOML.
fn in_words(message: &str) -> String {
    let words = [
        ("invalid type: map", "invalid type: table"),
        ("invalid type: sequence", "invalid type: array"),
        ("expected a map", "expected a table"),
        ("expected a sequence", "expected an array [ … ]"),
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected u64", "expected a whole number of at least 0"),
        ("expected usize", "expected a whole number of at least 0"),
    ];
    words.iter().fold(message.to_owned(), |message, (word, meant)| message.replace(word, meant))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cases::each;

    #[test]
    fn mistakes_are_told_in_the_words_of_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("numbers.toml");
        let cases = [
            ("a = { b = 5 }", "line 1: invalid type: table, expected an array [ … ]"),
            ("a = [1]\nb = [-5]", "line 2: invalid value: integer `-5`, expected a whole number from 0 to 4294967295"),
        ];
        each(cases, |(text, told)| {
            std::fs::write(&path, text).expect("written");
            let error = read_toml::<BTreeMap<String, Vec<u32>>>(&path).expect_err(told).to_string();
            assert!(error.contains(told), "{error}");
        });
    }
}
