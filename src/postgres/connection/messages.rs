//! Messages of a client, each with its reply.

use arrow::datatypes::Schema;
use pgwire::messages::PgWireBackendMessage as Reply;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete};
use pgwire::messages::response::EmptyQueryResponse;
use postgres_types::Type;

use super::super::command::split;
use super::super::report::{Report, Severity};
use super::super::rows::Layout;
use super::super::wire::{Lost, Message};
use super::{Connection, PORTALS, STATEMENTS, Stop, cancelled, unknown_portal, unknown_statement};
use crate::host::cached_plan::Basis;

/// Estimated bytes of the columns of a result.
fn bytes_of_schema(schema: &Schema) -> usize {
    /// Bytes of a column besides its name.
    const COLUMN: usize = 256;
    schema.fields().iter().map(|field| COLUMN + field.name().len()).sum()
}

impl Connection {
    /// Acts on a message.
    pub(super) async fn act(&mut self, message: Message) -> Result<(), Stop> {
        match message {
            Message::Query(text) => {
                self.shared.host.allow_length(&text)?;
                let statements = self.on_text(text.clone(), |text| Ok(split(text))).await?;
                if statements.len() > STATEMENTS {
                    let has = statements.len();
                    let line =
                        format!("too many statements in a message: {has}, the limit is {STATEMENTS}; send several");
                    return Err(Report::error("54000", line).into());
                }
                if statements.is_empty() {
                    self.wire.send(Reply::EmptyQueryResponse(EmptyQueryResponse::new())).await?;
                }
                let mut at = 0;
                for sql in statements {
                    self.wire.pause(sql.len()).await;
                    if self.cancelled.is_cancelled() {
                        return Err(cancelled().into());
                    }
                    let begin = text[at..].find(&sql).map_or(at, |from| at + from);
                    at = if text[begin..].starts_with(&sql) { begin + sql.len() } else { begin };
                    self.begin_time();
                    let prepared = self.prepare(sql, Vec::new()).await;
                    let behind = |stop: Stop| stop.behind(text[..begin].chars().count());
                    let (mut prepared, planned) = prepared.map_err(behind)?;
                    if !prepared.parameters.is_empty() {
                        return Err(Report::error("42P02", "there is no parameter $1").into());
                    }
                    let mut portal = self.bind(&mut prepared, planned, Vec::new(), &[]).await.map_err(behind)?;
                    if !portal.layout.is_empty() {
                        self.wire.send(Reply::RowDescription(portal.layout.description())).await?;
                    }
                    self.execute(&mut portal, 0).await.map_err(behind)?;
                }
                Ok(())
            }
            Message::Parse { name, sql, types } => self.parse(name, &sql, &types).await,
            Message::Bind { portal, statement, formats, values, results } => {
                let mut prepared = self.statements.remove(&statement).ok_or_else(|| unknown_statement(&statement))?;
                let bound = self.bind_values(&mut prepared, &formats, &values, &results).await;
                self.statements.insert(statement, prepared);
                let bound = bound?;
                if !portal.is_empty() && self.portals.contains_key(&portal) {
                    return Err(Report::error("42P03", format!("portal \"{portal}\" already exists")).into());
                }
                // The one without a name replaces another.
                if !portal.is_empty() && self.portals.len() >= PORTALS {
                    let line = format!("too many portals: the connection is limited to {PORTALS}; close some");
                    return Err(Report::error("53400", line).into());
                }
                self.portals.insert(portal, bound);
                Ok(self.wire.send(Reply::BindComplete(BindComplete::new())).await?)
            }
            Message::DescribeStatement(name) => {
                let prepared = self.statements.get_mut(&name).ok_or_else(|| unknown_statement(&name))?;
                prepared.described = true;
                let types = prepared.parameters.iter().map(Type::oid).collect();
                let layout = Layout::new(&prepared.schema, &[]);
                self.wire.send(Reply::ParameterDescription(ParameterDescription::new(types))).await?;
                self.describe(layout.as_ref()).await
            }
            Message::DescribePortal(name) => {
                let portal = self.portals.get(&name).ok_or_else(|| unknown_portal(&name))?;
                let layout = portal.layout.clone();
                self.describe(Some(&layout)).await
            }
            Message::Execute { portal: name, rows } => {
                let mut portal = self.portals.remove(&name).ok_or_else(|| unknown_portal(&name))?;
                self.execute(&mut portal, rows).await?;
                self.portals.insert(name, portal);
                Ok(())
            }
            Message::CloseStatement(name) => {
                self.statements.remove(&name);
                Ok(self.wire.send(Reply::CloseComplete(CloseComplete::new())).await?)
            }
            Message::ClosePortal(name) => {
                self.portals.remove(&name);
                Ok(self.wire.send(Reply::CloseComplete(CloseComplete::new())).await?)
            }
            Message::Flush => Ok(self.wire.flush().await?),
            Message::Password(_) => {
                Err(Lost::Reported(Report::new(Severity::Fatal, "08P01", "unexpected password")).into())
            }
            Message::Copy | Message::Sync | Message::Terminate => Ok(()),
        }
    }

    async fn describe(&mut self, layout: Option<&Layout>) -> Result<(), Stop> {
        let reply = match layout.filter(|layout| !layout.is_empty()) {
            Some(layout) => Reply::RowDescription(layout.description()),
            None => Reply::NoData(NoData::new()),
        };
        Ok(self.wire.send(reply).await?)
    }

    async fn parse(&mut self, name: String, sql: &str, types: &[u32]) -> Result<(), Stop> {
        if !name.is_empty() && self.statements.contains_key(&name) {
            return Err(Report::error("42P05", format!("prepared statement \"{name}\" already exists")).into());
        }
        let most = self.shared.host.limits.statements;
        // The one without a name replaces another.
        if !name.is_empty() && self.statements.len() >= most {
            let line = format!("too many prepared statements: the session is limited to {most}; close some");
            return Err(Report::error("53400", line).into());
        }
        self.shared.host.allow_length(sql)?;
        let mut statements = self.on_text(sql.to_owned(), |text| Ok(split(text))).await?;
        if statements.len() > 1 {
            let line = "cannot insert multiple commands into a prepared statement";
            return Err(Report::error("42601", line).into());
        }
        let declared = types.iter().map(|oid| match oid {
            0 => Ok(None),
            oid => {
                let known = Type::from_oid(*oid);
                let known =
                    known.ok_or_else(|| Report::error("42704", format!("type with OID {oid} does not exist")))?;
                Ok(Some(known).filter(|known| *known != Type::UNKNOWN))
            }
        });
        let declared = declared.collect::<Result<Vec<_>, Report>>()?;
        let (basis, key) = (Basis::of(&self.session.context), self.plan_key(declared.clone()));
        let (mut prepared, planned) = self.prepare(statements.pop().unwrap_or_default(), declared).await?;
        prepared.plan = planned.and_then(|planned| self.cached(&planned, basis, key));
        let types = (types.len() + prepared.parameters.len()) * size_of::<Option<Type>>();
        let bytes = sql.len() + name.len() + types + bytes_of_schema(&prepared.schema);
        prepared._held = Some(self.shared.host.hold(&self.session, "prepared statement", bytes)?);
        self.statements.insert(name, prepared);
        Ok(self.wire.send(Reply::ParseComplete(ParseComplete::new())).await?)
    }
}
