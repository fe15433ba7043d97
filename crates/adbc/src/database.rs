//! Driver and database: options, and the service that they name.

use std::sync::Arc;

use adbc_core::Optionable;
use adbc_core::error::Result;
use adbc_core::options::{OptionConnection, OptionDatabase, OptionValue};
use datafusion_saved_search::error::{Phrase, use_words_of_program};

use crate::connection::Connection;
use crate::error::{named_option, wrong};
use crate::runtime::wait;
use crate::target::{Options, Target, text_of};

/// The driver.
#[derive(Debug, Default)]
pub struct Driver;

/// A service with its key, or the demo data.
pub struct Database {
    target: Arc<Target>,
    /// Session settings of new connections.
    settings: Vec<(String, String)>,
}

impl adbc_core::Driver for Driver {
    type DatabaseType = Database;

    fn new_database(&mut self) -> Result<Database> {
        self.new_database_with_opts([])
    }

    fn new_database_with_opts(
        &mut self,
        opts: impl IntoIterator<Item = (OptionDatabase, OptionValue)>,
    ) -> Result<Database> {
        // Users of a driver have the program, and not the library.
        use_words_of_program();
        let mut options = Options::default();
        for (option, value) in opts {
            options.set(option, value)?;
        }
        let settings = std::mem::take(&mut options.settings);
        let target = wait(async move { Target::open(&options).await })??;
        Ok(Database { target, settings })
    }
}

impl adbc_core::Database for Database {
    type ConnectionType = Connection;

    fn new_connection(&self) -> Result<Connection> {
        self.new_connection_with_opts([])
    }

    fn new_connection_with_opts(
        &self,
        opts: impl IntoIterator<Item = (OptionConnection, OptionValue)>,
    ) -> Result<Connection> {
        let mut connection = Connection::open(&self.target, self.settings.clone())?;
        for (option, value) in opts {
            connection.set_option(option, value)?;
        }
        Ok(connection)
    }
}

impl Optionable for Database {
    type Option = OptionDatabase;

    /// Changes a session setting of connections that are opened later.
    fn set_option(&mut self, key: OptionDatabase, value: OptionValue) -> Result<()> {
        let name = key.as_ref().to_owned();
        // `store` is the folder here, which belongs to the open connections.
        if name == "savedsearch.store" || !datafusion_saved_search::embedded::Session::is_setting(&name) {
            let message =
                Phrase::from("option ") + named_option(&name) + " cannot be changed once the database is open";
            return Err(wrong(message, "open another database"));
        }
        let value = text_of(&name, value)?;
        self.settings.retain(|(known, _)| *known != name);
        self.settings.push((name, value));
        Ok(())
    }

    fn get_option_string(&self, key: OptionDatabase) -> Result<String> {
        match key.as_ref() {
            "uri" if self.target.demo.is_none() => Ok(self.target.connection.client().base_url().to_string()),
            "savedsearch.demo" => Ok(self.target.demo.is_some().to_string()),
            name => {
                let known = self.settings.iter().find(|(known, _)| known == name);
                known.map(|(_, value)| value.clone()).ok_or_else(|| not_found(name))
            }
        }
    }

    fn get_option_bytes(&self, key: OptionDatabase) -> Result<Vec<u8>> {
        Err(not_found(key.as_ref()))
    }

    fn get_option_int(&self, key: OptionDatabase) -> Result<i64> {
        let name = key.as_ref().to_owned();
        self.get_option_string(key)?.parse().map_err(|_| not_found(&name))
    }

    fn get_option_double(&self, key: OptionDatabase) -> Result<f64> {
        Err(not_found(key.as_ref()))
    }
}

/// The error of an option that has no value, or none of this type.
pub(crate) fn not_found(name: &str) -> adbc_core::error::Error {
    adbc_core::error::Error::with_message_and_status(
        format!("no value of option {name}"),
        adbc_core::error::Status::NotFound,
    )
}
