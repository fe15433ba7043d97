//! Settings of a connection: SET, RESET and SHOW, the time zone and the search path, and what the end of a transaction undoes.

use std::sync::Arc;

use arrow::array::{RecordBatch, StringArray};
use pgwire::messages::PgWireBackendMessage as Reply;
use pgwire::messages::response::TransactionStatus;
use pgwire::messages::startup::ParameterStatus;

use super::super::report::Report;
use super::super::rows::Layout;
use super::{CHANGES, Change, Connection, Planned, Stop, shown};
use crate::catalog::SCHEMA;
use crate::error::describe;
use crate::host::effects;
use crate::host::planner::may_set;
use crate::session::{literal, time_zone};

/// Maximum length of a value in bytes. A connection keeps values until it is closed.
const VALUE: usize = 4 << 10;
/// The engine's setting of the time zone.
const ZONE: &str = "savedsearch.timezone";
/// The engine's name for it.
const ENGINE_ZONE: &str = "datafusion.execution.time_zone";

impl Connection {
    /// Changes a setting of the connection, or of the engine's session; `None` restores its default.
    pub(super) async fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), Stop> {
        // The end of a transaction may undo many.
        self.wire.pause(0).await;
        if let Some(long) = value.filter(|value| value.len() > VALUE) {
            let line = format!("the value of the setting is too long: {} bytes, the limit is {VALUE}", long.len());
            return Err(Report::error("22023", line).into());
        }
        let name = if [ZONE, ENGINE_ZONE].contains(&name) { "timezone" } else { name };
        if may_set(name) {
            return self.set_in_engine(name, value).await;
        }
        let mut value = value.map(str::to_owned);
        if name == "timezone" && value.is_some() {
            self.set_in_engine(ZONE, value.as_deref()).await?;
            value = Some(time_zone(&self.session.context));
        }
        if name.eq_ignore_ascii_case("search_path") {
            self.use_path(value.as_deref()).await?;
        }
        if let Some((name, value)) = self.settings.set(name, value.as_deref())? {
            self.wire.send(Reply::ParameterStatus(ParameterStatus::new(name, value))).await?;
        }
        if name == "timezone" && value.is_none() { self.use_zone().await } else { Ok(()) }
    }

    /// A change of a setting that is about to be made in a transaction.
    ///
    /// # Errors
    /// 53200 if its former value does not fit into the user's share of the memory, 54000 for too many changes.
    pub(super) fn change(&self, name: &str, local: bool) -> Result<Option<Change>, Stop> {
        if self.status == TransactionStatus::Idle {
            return Ok(None);
        }
        if self.changes.len() >= CHANGES {
            let line = format!("too many changes of settings: a transaction is limited to {CHANGES}; end it");
            return Err(Report::error("54000", line).into());
        }
        let before = match may_set(name) {
            true => {
                let state = self.session.context.state_ref();
                let entries = state.read().config_options().entries();
                let Some(entry) = entries.into_iter().find(|entry| entry.key == name) else { return Ok(None) };
                entry.value
            }
            false => self.settings.get(name),
        };
        let bytes = size_of::<Change>() + name.len() + before.as_ref().map_or(0, String::len);
        let held = self.shared.host.hold(&self.session, "setting of a transaction", bytes)?;
        Ok(Some(Change { name: name.to_owned(), before, local, _held: held }))
    }

    /// Notes a change that was made.
    pub(super) fn note(&mut self, change: Option<Change>) {
        let Some(change) = change else { return };
        if !change.local {
            // The new value outlives the transaction.
            let same = self.changes.iter_mut().filter(|known| known.name == change.name);
            same.for_each(|known| known.local = false);
        }
        self.changes.push(change);
    }

    /// Undoes the changes of settings that end with the transaction, the last one first.
    pub(super) async fn undo(&mut self, commits: bool) -> Result<(), Stop> {
        for Change { name, before, local, .. } in std::mem::take(&mut self.changes).into_iter().rev() {
            if local || !commits {
                self.set(&name, before.as_deref()).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn set_in_engine(&mut self, name: &str, value: Option<&str>) -> Result<(), Stop> {
        // RESET restores the value of the startup message.
        let first = self.settings.of_engine().iter().rev().find(|(known, _)| known == name);
        let first = first.map(|(_, value)| value.clone());
        let value = value.or(first.as_deref());
        let sql = match value {
            Some(value) => format!("SET {name} = {}", literal(value)),
            None => format!("RESET {name}"),
        };
        let Planned { statement, .. } = self.plan(sql, Vec::new(), Vec::new()).await?;
        Ok(effects::run(&self.shared.host, &self.session, &statement, None).await?)
    }

    /// Makes the connection's time zone that of the engine.
    pub(super) async fn use_zone(&mut self) -> Result<(), Stop> {
        let zone = self.settings.get("timezone").filter(|zone| zone != "UTC");
        self.set_in_engine(ZONE, zone.as_deref()).await
    }

    /// Makes the first schema of a search path that exists the one of names without a schema. If a part has no effect, the
    /// client gets a warning.
    pub(super) async fn use_path(&mut self, path: Option<&str>) -> Result<(), Stop> {
        let first = self.settings.first_value("search_path");
        let path = path.or(first.as_deref()).unwrap_or(SCHEMA);
        let catalog = self.session.context.catalog(self.settings.database());
        let known = catalog.map(|catalog| catalog.schema_names()).unwrap_or_default();
        let names = path.split(',').map(|name| name.trim().trim_matches(['"', '\'']).to_owned());
        let (found, missing): (Vec<String>, Vec<String>) = names
            .filter(|name| !["", "$user", "pg_catalog", "information_schema"].contains(&name.as_str()))
            .partition(|name| known.contains(name));
        let schema = found.first().map_or(SCHEMA, String::as_str);
        let without_effect: Vec<&str> = missing.iter().chain(found.iter().skip(1)).map(String::as_str).collect();
        let set = format!("SET datafusion.catalog.default_schema = {}", literal(schema));
        let set = self.session.context.sql(&set).await;
        set.map_err(|error| Report::error("3F000", describe(&error)))?;
        if !without_effect.is_empty() {
            let line = format!(
                "search_path: {} has no effect; names without a schema are those of {schema}",
                without_effect.join(", ")
            );
            self.warn("01000", &line).await?;
        }
        Ok(())
    }

    pub(super) async fn reset(&mut self) -> Result<(), Stop> {
        for (name, value) in self.settings.reset() {
            self.wire.send(Reply::ParameterStatus(ParameterStatus::new(name, value))).await?;
        }
        effects::reset_settings(&self.session)?;
        self.use_path(None).await?;
        self.changes.clear();
        self.begin_engine().await?;
        self.use_zone().await
    }

    pub(super) async fn show(&mut self, name: &str) -> Result<(), Stop> {
        let all = match name {
            "all" => self.settings.all(),
            name => vec![(name.to_owned(), self.settings.get(name).unwrap_or_default())],
        };
        let (names, values): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let schema = shown(name);
        let texts = |texts: Vec<String>| Arc::new(StringArray::from(texts)) as _;
        let columns = match name {
            "all" => vec![texts(names.clone()), texts(values), texts(vec![String::new(); names.len()])],
            _ => vec![texts(values)],
        };
        let failed = |error: arrow::error::ArrowError| Report::error("XX000", error.to_string());
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(failed)?;
        if let Some(layout) = Layout::new(&schema, &[]) {
            let rows = layout.rows(&batch).map_err(failed)?;
            for row in 0..rows.len() {
                self.wire.send_row(&rows, row).await?;
            }
        }
        self.complete("SHOW").await
    }
}
