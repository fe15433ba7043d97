//! Commands that the connection carries out itself: transactions, savepoints, cursors, and what a client drops.

use std::sync::Arc;

use pgwire::messages::response::TransactionStatus;

use super::super::command::Command;
use super::super::report::{Report, Severity};
use super::{
    Change, Connection, Hold, PORTALS, Portal, SAVEPOINTS, Savepoint, Stop, unknown_cursor, unknown_statement,
};
use crate::host::effects;
use crate::host::failure::Failure;

impl Connection {
    /// Does what is not for the engine.
    pub(super) async fn command(&mut self, command: Command) -> Result<(), Stop> {
        match command {
            Command::Begin => self.begin().await,
            Command::Commit => self.end(true).await,
            Command::Rollback => self.end(false).await,
            Command::Savepoint(name) => self.set_savepoint(name).await,
            Command::Release(name) => self.release(&name).await,
            Command::RollbackTo(name) => self.roll_back_to(&name).await,
            Command::Nothing(tag) => self.complete(tag).await,
            Command::Set { name, value, local } => {
                if local && self.status == TransactionStatus::Idle {
                    self.warn("25P01", "SET LOCAL can only be used in transaction blocks").await?;
                } else {
                    let change = self.change(&name, local)?;
                    self.set(&name, value.as_deref()).await?;
                    self.note(change);
                }
                self.complete("SET").await
            }
            Command::Reset(name) => {
                match name {
                    Some(name) => {
                        let change = self.change(&name, false)?;
                        self.set(&name, None).await?;
                        self.note(change);
                    }
                    None => self.reset().await?,
                }
                self.complete("RESET").await
            }
            Command::Show(name) => self.show(&name).await,
            Command::Copy(copy) => self.copy(copy).await,
            Command::Declare { cursor, sql, hold } => self.declare(cursor, sql, hold).await,
            Command::CloseCursor(cursor) => {
                match cursor {
                    Some(cursor) => {
                        self.portals.remove(&cursor).ok_or_else(|| unknown_cursor(&cursor))?;
                    }
                    None => self.portals.clear(),
                }
                self.complete("CLOSE CURSOR").await
            }
            Command::Deallocate(Some(name)) => {
                self.statements.remove(&name).ok_or_else(|| unknown_statement(&name))?;
                self.complete("DEALLOCATE").await
            }
            Command::Deallocate(None) => {
                self.statements.clear();
                self.complete("DEALLOCATE ALL").await
            }
            Command::DiscardAll => {
                self.statements.clear();
                self.portals.clear();
                self.discard().await?;
                self.reset().await?;
                self.complete("DISCARD ALL").await
            }
            Command::DiscardTemporary => {
                self.discard().await?;
                self.complete("DISCARD TEMP").await
            }
            Command::Refused(line) => Err(Report::error("0A000", line).into()),
            Command::Malformed(line) => Err(Report::error("42601", line).into()),
            // Planned or read, and not a command.
            Command::Statement | Command::Fetch { .. } => Ok(()),
        }
    }

    async fn begin(&mut self) -> Result<(), Stop> {
        if self.status == TransactionStatus::Transaction {
            self.warn("25001", "there is already a transaction in progress").await?;
        }
        self.status = TransactionStatus::Transaction;
        self.complete("BEGIN").await
    }

    /// Ends the transaction. One that has failed is rolled back, whatever the client asks for.
    async fn end(&mut self, commits: bool) -> Result<(), Stop> {
        if self.status == TransactionStatus::Idle {
            self.warn("25P01", "there is no transaction in progress").await?;
        }
        let commits = commits && self.status != TransactionStatus::Error;
        self.status = TransactionStatus::Idle;
        self.savepoints.clear();
        for portal in self.portals.values_mut().filter(|portal| commits && portal.hold == Hold::Declared) {
            portal.hold = Hold::Kept;
        }
        self.drop_portals();
        self.undo(commits).await?;
        self.complete(if commits { "COMMIT" } else { "ROLLBACK" }).await
    }

    async fn set_savepoint(&mut self, name: String) -> Result<(), Stop> {
        self.check_in_transaction("SAVEPOINT")?;
        let local: Vec<bool> = self.changes.iter().map(|change| change.local).collect();
        if let Some(last) = self.savepoints.last_mut()
            && last.name == name
            && last.local == local
        {
            last.count += 1;
            return self.complete("SAVEPOINT").await;
        }
        if self.savepoints.len() >= SAVEPOINTS {
            let line = format!("too many savepoints: a transaction is limited to {SAVEPOINTS}; release some");
            return Err(Report::error("54000", line).into());
        }
        let bytes = size_of::<Savepoint>() + name.len() + local.len();
        let held = self.shared.host.hold(&self.session, "savepoint", bytes)?;
        self.savepoints.push(Savepoint { name, local, count: 1, _held: held });
        self.complete("SAVEPOINT").await
    }

    async fn release(&mut self, name: &str) -> Result<(), Stop> {
        self.check_in_transaction("RELEASE SAVEPOINT")?;
        let at = self.savepoint(name)?;
        if self.savepoints[at].count > 1 {
            self.savepoints[at].count -= 1;
            self.savepoints.truncate(at + 1);
        } else {
            self.savepoints.truncate(at);
        }
        self.complete("RELEASE").await
    }

    async fn roll_back_to(&mut self, name: &str) -> Result<(), Stop> {
        self.check_in_transaction("ROLLBACK TO SAVEPOINT")?;
        let at = self.savepoint(name)?;
        // The savepoint stays.
        self.savepoints.truncate(at + 1);
        let before = self.savepoints[at].local.clone();
        let later = self.changes.split_off(before.len().min(self.changes.len()));
        self.changes.iter_mut().zip(before).for_each(|(change, local)| change.local = local);
        for Change { name, before, .. } in later.into_iter().rev() {
            self.set(&name, before.as_deref()).await?;
        }
        self.status = TransactionStatus::Transaction;
        self.complete("ROLLBACK").await
    }

    /// Declares a cursor, which is a portal that its client names.
    async fn declare(&mut self, cursor: String, sql: String, hold: bool) -> Result<(), Stop> {
        let alone = self.status == TransactionStatus::Idle;
        if alone && !hold {
            let line = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(Report::error("25P01", line).into());
        }
        if self.portals.contains_key(&cursor) {
            return Err(Report::error("42P03", format!("cursor \"{cursor}\" already exists")).into());
        }
        if self.portals.len() >= PORTALS {
            let line = format!("too many cursors: the connection is limited to {PORTALS}; close some");
            return Err(Report::error("53400", line).into());
        }
        let (mut prepared, planned) = self.prepare(sql, Vec::new()).await?;
        if !matches!(prepared.command, Command::Statement) || !prepared.parameters.is_empty() {
            return Err(Report::error("42601", "DECLARE CURSOR does not support parameters").into());
        }
        let portal = self.bind(&mut prepared, planned, Vec::new(), &[]).await?;
        let hold = match hold {
            true if alone => Hold::Kept,
            true => Hold::Declared,
            false => Hold::Transaction,
        };
        self.portals.insert(cursor, Portal { hold, ..portal });
        self.complete("DECLARE CURSOR").await
    }

    /// Drops the temporary tables of the session.
    async fn discard(&mut self) -> Result<(), Stop> {
        let (host, session) = (Arc::clone(&self.shared.host), Arc::clone(&self.session));
        let discarded = async move { effects::discard(&session).await };
        let session = Arc::clone(&self.session);
        self.unless_cancelled(host.away_to_free::<_, Failure>(&session, discarded)).await
    }

    fn check_in_transaction(&self, what: &str) -> Result<(), Stop> {
        match self.status {
            TransactionStatus::Idle => {
                Err(Report::error("25P01", format!("{what} can only be used in transaction blocks")).into())
            }
            _ => Ok(()),
        }
    }

    /// Place of the last savepoint of a name.
    fn savepoint(&self, name: &str) -> Result<usize, Stop> {
        let at = self.savepoints.iter().rposition(|savepoint| savepoint.name == name);
        at.ok_or_else(|| Report::error("3B001", format!("savepoint \"{name}\" does not exist")).into())
    }

    pub(super) async fn warn(&mut self, sqlstate: &'static str, line: &str) -> Result<(), Stop> {
        Ok(self.wire.report(&Report::new(Severity::Warning, sqlstate, line)).await?)
    }
}
