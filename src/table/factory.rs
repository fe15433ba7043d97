//! `CREATE EXTERNAL TABLE … STORED AS SAVEDSEARCH`: a table of a service, given by its address, in any DataFusion
//! session.
//!
//! ```sql
//! CREATE EXTERNAL TABLE mentions STORED AS SAVEDSEARCH LOCATION 'https://api.example.com/v4'
//! OPTIONS (api_key_file '/run/secrets/api-key', profile 'mine.toml')
//! ```
//!
//! The statement contains the location of the key, never the key itself, because statements are logged and displayed. Tables
//! with the same address, key, profile and options share a connection, and with it responses and limits.

use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::Result as DataFusionResult;
use datafusion::logical_expr::CreateExternalTable;

use super::ApiTable;
use crate::boxed_future::boxed_futures;
use crate::client::Secret;
use crate::config::variable;
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::profile::Profile;

/// Creates tables of a service by `CREATE EXTERNAL TABLE … STORED AS SAVEDSEARCH LOCATION 'https://…/v4' OPTIONS (…)`.
///
/// | option | |
/// | --- | --- |
/// | `table` | table of the service; default: the name of the created table |
/// | `api_key_file`, `api_key_env` | location of the API key; default: the variable `SAVEDSEARCH_API_KEY` |
/// | `profile` | file, or the name of a built-in profile; default: `v4` |
/// | `insecure` | `true` allows an http address beyond this machine |
///
/// Tables with the same address, key location, profile and `insecure` share a connection. The key is read once per
/// connection: after changing it, drop the tables. Variables that hold keys must start with `SAVEDSEARCH_`. A statement
/// chooses the address that a key is sent to: if statements come from untrusted users, remove the factory from the
/// session. [`install`](crate::install) registers the factory; to register it elsewhere:
///
/// ```
/// use std::sync::Arc;
///
/// use datafusion_saved_search::SavedSearchFactory;
/// use datafusion_saved_search::datafusion::prelude::SessionContext;
///
/// let context = SessionContext::new();
/// let factory = Arc::new(SavedSearchFactory::default());
/// context.state_ref().write().table_factories_mut().insert(SavedSearchFactory::FORMAT.to_owned(), factory);
/// ```
#[derive(Debug, Default)]
pub struct SavedSearchFactory {
    connections: Mutex<HashMap<Source, Weak<Connection>>>,
}

/// The options that identify a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Source {
    base_url: String,
    key: KeySource,
    profile: Option<PathBuf>,
    insecure: bool,
}

/// The location of the API key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum KeySource {
    File(PathBuf),
    Variable(String),
}

/// Default variable that holds the key.
const KEY: &str = "SAVEDSEARCH_API_KEY";
/// Required prefix of variables whose values a statement may send to a service.
const KEYS: &str = "SAVEDSEARCH_";
/// The options, all of them optional.
const OPTIONS: [&str; 5] = ["api_key_env", "api_key_file", "insecure", "profile", "table"];

impl SavedSearchFactory {
    /// The name after `STORED AS`.
    pub const FORMAT: &str = "SAVEDSEARCH";

    fn connection(&self, source: &Source) -> Result<Arc<Connection>> {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = connections.get(source).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let key = match &source.key {
            KeySource::File(path) => Secret::read(path)?,
            KeySource::Variable(name) => Secret::new(&variable(name).ok_or_else(|| {
                let message = format!("no API key: environment variable {name} is not set");
                Error::new(ErrorKind::Config, message)
                    .advice("set it, or use OPTIONS (api_key_env 'NAME') or OPTIONS (api_key_file 'PATH')")
            })?)?,
        };
        let builder = Connection::builder(&source.base_url, key);
        let builder = match &source.profile {
            Some(profile) => builder.profile(Profile::named(Path::new(""), profile)?),
            None => builder,
        };
        let connection = if source.insecure { builder.insecure() } else { builder }.build()?;
        connections.retain(|_, connection| connection.strong_count() > 0);
        connections.insert(source.clone(), Arc::downgrade(&connection));
        Ok(connection)
    }

    fn table(&self, command: &CreateExternalTable) -> Result<ApiTable> {
        let bad = |message: String| Error::new(ErrorKind::Config, message);
        let mut options = known_options(&command.options)?;
        let [base_url] = command.locations.as_slice() else {
            return Err(bad("LOCATION requires a single address".to_owned()).advice("expected http(s)://host/…/v4"));
        };
        if !command.schema.fields().is_empty() {
            return Err(bad("columns come from the profile".to_owned()).advice("remove the column list"));
        }
        let key = match (options.remove("api_key_file"), options.remove("api_key_env")) {
            (Some(path), None) => KeySource::File(path.into()),
            (None, Some(name)) if name.starts_with(KEYS) => KeySource::Variable(name),
            (None, Some(name)) => {
                let message = format!("api_key_env requires a variable whose name starts with {KEYS}, found `{name}`");
                return Err(bad(message).advice("rename it: statements may not send other variables to an address"));
            }
            (None, None) => KeySource::Variable(KEY.to_owned()),
            (Some(_), Some(_)) => return Err(bad("set either api_key_env or api_key_file, not both".to_owned())),
        };
        let insecure = match options.remove("insecure").as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(other) => return Err(bad(format!("insecure must be true or false, found `{other}`"))),
        };
        let profile = options.remove("profile").map(PathBuf::from);
        let connection = self.connection(&Source { base_url: base_url.clone(), key, profile, insecure })?;
        let asked = options.remove("table");
        let name = asked.as_deref().unwrap_or(command.name.table());
        let tables = || connection.profile().tables.all();
        let spec = tables().find(|table| *table.name == *name).ok_or_else(|| {
            let known: Vec<&str> = tables().map(|table| table.name.as_ref()).collect();
            bad(format!("the service has no table `{name}`; available: {}", known.join(", ")))
                .advice("select one with OPTIONS (table 'mentions')")
        })?;
        Ok(ApiTable::new(Arc::clone(&connection), spec))
    }
}

/// Returns the options without the prefix that the engine adds to names without a dot.
fn known_options(given: &HashMap<String, String>) -> Result<BTreeMap<&'static str, String>> {
    let mut options = BTreeMap::new();
    for (name, value) in given {
        let name = name.strip_prefix("format.").unwrap_or(name).to_lowercase();
        let Some(known) = OPTIONS.into_iter().find(|known| *known == name) else {
            let error = Error::new(ErrorKind::Config, format!("unknown option `{name}`"));
            return Err(match (name.as_str(), nearest(&name, OPTIONS)) {
                ("api_key" | "key" | "token", _) => {
                    error.advice("statements are logged: give the key's location with api_key_env or api_key_file")
                }
                (_, Some(near)) => error.advice(format!("did you mean {near}?")),
                (_, None) => error.advice(format!("available options: {}", OPTIONS.join(", "))),
            });
        };
        options.insert(known, value.clone());
    }
    Ok(options)
}

impl TableProviderFactory for SavedSearchFactory {
    boxed_futures! {
        fn create<'this, 'state, 'command>(
            &'this self,
            _state: &'state dyn Session,
            command: &'command CreateExternalTable,
        ) -> DataFusionResult<Arc<dyn TableProvider>> {
            let table = self.table(command).map(|table| Arc::new(table) as Arc<dyn TableProvider>);
            Box::pin(ready(table.map_err(Into::into)))
        }
    }
}
