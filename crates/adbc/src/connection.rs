//! A connection: a session over the tables of a database.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use adbc_core::error::{Error, Result, Status};
use adbc_core::options::{InfoCode, ObjectDepth, OptionConnection, OptionValue};
use adbc_core::schemas::{GET_STATISTIC_NAMES_SCHEMA, GET_TABLE_TYPES_SCHEMA};
use adbc_core::{CancelHandle, Optionable};
use arrow::array::{RecordBatch, RecordBatchReader, StringArray};
use arrow::datatypes::Schema;
use datafusion_saved_search::embedded::{Failure, Session, TABLE, TEMPORARY, VIEW};
use tokio_util::sync::CancellationToken;

use crate::database::not_found;
use crate::error::{failed, unknown_option, unsupported};
use crate::info;
use crate::objects::{Wanted, matches, objects};
use crate::reader::known;
use crate::runtime::wait;
use crate::statement::{Last, Statement};
use crate::statistics::statistics;
use crate::target::{Target, text_of};

/// A session with settings, views and temporary tables of its own.
pub struct Connection {
    session: Arc<Session>,
    target: Arc<Target>,
    running: Arc<Running>,
    /// Last runs of statements, by the number of the statement. Calls of a statement wait for each other; those of its connection do
    /// not wait for them.
    runs: Vec<(u64, Weak<Mutex<Last>>)>,
    /// Number of statements that were created.
    created: u64,
}

/// Options that return parts of the account of a statement, also while it runs: `savedsearch.statement.7.requests`.
const STATEMENT: &str = "savedsearch.statement.";

/// Cancels what runs.
#[derive(Debug, Default)]
pub(crate) struct Running(Mutex<CancellationToken>);

impl Running {
    /// Token of work that begins now.
    pub(crate) fn begin(&self) -> CancellationToken {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).child_token()
    }

    /// Replaces the token that the next work begins with.
    pub(crate) fn under(&self, token: CancellationToken) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }
}

/// Cancels what runs at the time of the call.
pub(crate) struct Cancel(pub(crate) Arc<Running>);

impl CancelHandle for Cancel {
    fn try_cancel(&self) -> Result<()> {
        let mut token = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        token.cancel();
        *token = CancellationToken::new();
        Ok(())
    }
}

impl Connection {
    pub(crate) fn open(target: &Arc<Target>, settings: Vec<(String, String)>) -> Result<Self> {
        let (target, opened) = (Arc::clone(target), Arc::clone(target));
        let session = wait(async move {
            let session = Session::open(&opened.connection, &opened.named)?;
            for (name, value) in settings {
                session.set(&name, &value).await?;
            }
            Ok(session)
        })?;
        let session = Arc::new(session.map_err(|failure| failed(&failure))?);
        Ok(Self { session, target, running: Arc::default(), runs: Vec::new(), created: 0 })
    }

    /// A part of the account of a statement, by the name of its option.
    fn of_statement(&self, option: &str) -> Option<String> {
        let (number, part) = option.strip_prefix(STATEMENT)?.split_once('.')?;
        let number: u64 = number.parse().ok()?;
        let last = self.runs.iter().find(|(known, _)| *known == number)?.1.upgrade()?;
        last.lock().unwrap_or_else(PoisonError::into_inner).part(part)
    }
}

impl adbc_core::Connection for Connection {
    type StatementType = Statement;

    fn new_statement(&mut self) -> Result<Statement> {
        let (last, number) = (Arc::default(), self.created);
        self.created += 1;
        self.runs.retain(|(_, last)| last.strong_count() > 0);
        self.runs.push((number, Arc::downgrade(&last)));
        let (session, target, running) = (&self.session, &self.target, &self.running);
        Ok(Statement::new(Arc::clone(session), Arc::clone(target), Arc::clone(running), last, number))
    }

    fn get_cancel_handle(&self) -> Box<dyn CancelHandle> {
        Box::new(Cancel(Arc::clone(&self.running)))
    }

    fn get_info(&self, codes: Option<HashSet<InfoCode>>) -> Result<Box<dyn RecordBatchReader + Send + 'static>> {
        Ok(known(info::batch(codes)?))
    }

    fn get_objects(
        &self,
        depth: ObjectDepth,
        catalog: Option<&str>,
        db_schema: Option<&str>,
        table_name: Option<&str>,
        table_type: Option<Vec<&str>>,
        column_name: Option<&str>,
    ) -> Result<Box<dyn RecordBatchReader + Send + 'static>> {
        let session = Arc::clone(&self.session);
        let tables = wait(async move { session.tables().await })?.map_err(|failure| failed(&failure))?;
        let wanted = Wanted { catalog, schema: db_schema, table: table_name, kinds: table_type, column: column_name };
        Ok(known(objects(depth, &wanted, &self.session.schemas(), &tables)?))
    }

    fn get_table_schema(&self, catalog: Option<&str>, db_schema: Option<&str>, table_name: &str) -> Result<Schema> {
        let session = Arc::clone(&self.session);
        let named = |name: Option<&str>| name.filter(|name| !name.is_empty()).map(str::to_owned);
        let (catalog, schema, name) = (named(catalog), named(db_schema), table_name.to_owned());
        let found = wait(async move { session.table_schema(catalog.as_deref(), schema.as_deref(), &name).await })?;
        found.map_err(|failure| failed(&failure))
    }

    fn get_table_types(&self) -> Result<Box<dyn RecordBatchReader + Send + 'static>> {
        let types = StringArray::from(vec![TABLE, VIEW, TEMPORARY]);
        Ok(known(RecordBatch::try_new(GET_TABLE_TYPES_SCHEMA.clone(), vec![Arc::new(types)])?))
    }

    /// None besides those that ADBC names.
    fn get_statistic_names(&self) -> Result<Box<dyn RecordBatchReader + Send + 'static>> {
        Ok(known(RecordBatch::new_empty(GET_STATISTIC_NAMES_SCHEMA.clone())))
    }

    /// The exact numbers of rows of temporary tables, which need no request.
    fn get_statistics(
        &self,
        catalog: Option<&str>,
        db_schema: Option<&str>,
        table_name: Option<&str>,
        _approximate: bool,
    ) -> Result<Box<dyn RecordBatchReader + Send + 'static>> {
        let session = Arc::clone(&self.session);
        let tables = wait(async move { session.tables().await })?.map_err(|failure| failed(&failure))?;
        let mut wanted = Vec::new();
        for table in tables.into_iter().filter(|table| table.kind == TEMPORARY) {
            if matches(&table.catalog, catalog)?
                && matches(&table.schema, db_schema)?
                && matches(&table.name, table_name)?
            {
                wanted.push(table);
            }
        }
        let session = Arc::clone(&self.session);
        let counted = wait(async move {
            let mut counted = Vec::new();
            for table in wanted {
                let rows = session.count(&table).await?;
                counted.push((table, rows));
            }
            Ok::<_, Failure>(counted)
        })?;
        let counted = counted.map_err(|failure| failed(&failure))?;
        let counts: Vec<_> = counted.iter().map(|(table, rows)| (table, *rows)).collect();
        Ok(known(statistics(&counts)?))
    }

    fn commit(&mut self) -> Result<()> {
        Err(transactions())
    }

    fn rollback(&mut self) -> Result<()> {
        Err(transactions())
    }

    fn read_partition(&self, _partition: impl AsRef<[u8]>) -> Result<Box<dyn RecordBatchReader + Send + 'static>> {
        Err(unsupported("results are not partitioned", "execute the statement as a query"))
    }
}

/// The error of a transaction.
fn transactions() -> Error {
    Error::with_message_and_status("there are no transactions: the service is read-only", Status::InvalidState)
}

impl Optionable for Connection {
    type Option = OptionConnection;

    fn set_option(&mut self, key: OptionConnection, value: OptionValue) -> Result<()> {
        let name = key.as_ref().to_owned();
        let text = text_of(&name, value)?;
        match (&key, text.as_str()) {
            (OptionConnection::AutoCommit | OptionConnection::ReadOnly, "true") => Ok(()),
            (OptionConnection::AutoCommit | OptionConnection::ReadOnly, _) => {
                let message = "there are no transactions and no writes: the service is read-only";
                Err(unsupported(message, "leave autocommit and read-only on"))
            }
            (OptionConnection::CurrentCatalog, _) => {
                self.session.use_catalog(&text).map_err(|failure| failed(&failure))
            }
            (OptionConnection::CurrentSchema, _) => self.session.use_schema(&text).map_err(|failure| failed(&failure)),
            (OptionConnection::Other(_), _) if Session::is_setting(&name) => self.change(&name, text),
            _ => {
                let own = [OptionConnection::CurrentCatalog, OptionConnection::CurrentSchema];
                let settings = Session::settings();
                let known = own.iter().map(AsRef::<str>::as_ref).chain(settings.iter().map(String::as_str));
                Err(unknown_option(&name, &known.collect::<Vec<&str>>()))
            }
        }
    }

    fn get_option_string(&self, key: OptionConnection) -> Result<String> {
        let (catalog, schema) = self.session.current();
        match &key {
            OptionConnection::AutoCommit | OptionConnection::ReadOnly => Ok("true".to_owned()),
            OptionConnection::CurrentCatalog => Ok(catalog),
            OptionConnection::CurrentSchema => Ok(schema),
            OptionConnection::Other(name) if name == "savedsearch.demo" => Ok(self.target.demo.is_some().to_string()),
            OptionConnection::Other(name) if name.starts_with(STATEMENT) => {
                self.of_statement(name).ok_or_else(|| not_found(name))
            }
            key => self.session.setting(key.as_ref()).ok_or_else(|| not_found(key.as_ref())),
        }
    }

    fn get_option_bytes(&self, key: OptionConnection) -> Result<Vec<u8>> {
        Err(not_found(key.as_ref()))
    }

    fn get_option_int(&self, key: OptionConnection) -> Result<i64> {
        let name = key.as_ref().to_owned();
        self.get_option_string(key)?.parse().map_err(|_| not_found(&name))
    }

    fn get_option_double(&self, key: OptionConnection) -> Result<f64> {
        Err(not_found(key.as_ref()))
    }
}

impl Connection {
    fn change(&self, name: &str, value: String) -> Result<()> {
        let (session, name) = (Arc::clone(&self.session), name.to_owned());
        wait(async move { session.set(&name, &value).await })?.map_err(|failure| failed(&failure))
    }
}
