//! Parsing of client messages: descriptors, tickets and actions. No I/O.

use arrow_flight::error::FlightError;
use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, Any, Command,
    ProstMessageExt,
};
use arrow_flight::{Action, ActionType, CancelFlightInfoRequest, FlightDescriptor, RenewFlightEndpointRequest};
use prost::Message;
use prost::bytes::Bytes;
use tonic::Status;

use super::options::{GetSessionOptionsRequest, SetSessionOptionsRequest};
use crate::session::not_supported;

/// A parsed action. Flight SQL wraps its action messages in an `Any`; Flight's own actions send them bare.
#[derive(Debug)]
pub(super) enum Act {
    Prepare(ActionCreatePreparedStatementRequest),
    ClosePrepared(ActionClosePreparedStatementRequest),
    CancelQuery(ActionCancelQueryRequest),
    CancelInfo(CancelFlightInfoRequest),
    Renew(RenewFlightEndpointRequest),
    SetOptions(SetSessionOptionsRequest),
    Options,
    CloseSession,
}

/// Names and descriptions of the supported actions.
const ACTIONS: [(&str, &str); 8] = [
    ("CreatePreparedStatement", "Prepares a statement: ActionCreatePreparedStatementRequest"),
    ("ClosePreparedStatement", "Closes a prepared statement: ActionClosePreparedStatementRequest"),
    ("CancelQuery", "Cancels a query: ActionCancelQueryRequest"),
    ("CancelFlightInfo", "Cancels a query: CancelFlightInfoRequest"),
    ("RenewFlightEndpoint", "Extends the expiration time of a result: RenewFlightEndpointRequest"),
    ("SetSessionOptions", "Sets the session's catalog, schema and savedsearch.* options: SetSessionOptionsRequest"),
    ("GetSessionOptions", "Returns the session's options: GetSessionOptionsRequest"),
    ("CloseSession", "Closes the session, revokes its token and drops its temporary tables: CloseSessionRequest"),
];

/// Lists the supported actions, for ListActions.
pub(super) fn action_types() -> Vec<ActionType> {
    ACTIONS.iter().map(|(name, what)| ActionType { r#type: (*name).into(), description: (*what).into() }).collect()
}

/// Parses the command of a descriptor.
///
/// # Errors
/// INVALID_ARGUMENT if the descriptor carries no valid Flight SQL command.
pub(super) fn described(descriptor: &FlightDescriptor) -> Result<Command, Status> {
    if descriptor.cmd.is_empty() {
        return Err(Status::invalid_argument("the descriptor carries no command: expected Flight SQL"));
    }
    parse(&descriptor.cmd)
}

/// Parses a Flight SQL command.
///
/// # Errors
/// INVALID_ARGUMENT if the bytes are not a Flight SQL command.
pub(super) fn parse(bytes: &Bytes) -> Result<Command, Status> {
    let any =
        Any::decode(bytes.as_ref()).map_err(|_| Status::invalid_argument("the command is not a Flight SQL message"))?;
    Command::try_from(any).map_err(|_| Status::invalid_argument("malformed Flight SQL message"))
}

/// Returns the name of a command for errors and metrics: the last segment of its type URL.
pub(super) fn name(command: &Command) -> String {
    if let Command::Unknown(_) = command {
        // A name chosen by the client must not become a metric label.
        return "unknown command".to_owned();
    }
    let name = command.type_url().rsplit(['.', '/']).next().unwrap_or_default();
    name.to_owned()
}

/// Parses an action.
///
/// # Errors
/// INVALID_ARGUMENT for a malformed message, UNIMPLEMENTED for an unsupported action.
pub(super) fn act(action: &Action) -> Result<Act, Status> {
    let body = &action.body;
    Ok(match action.r#type.as_str() {
        "CreatePreparedStatement" => Act::Prepare(unpack(body)?),
        "ClosePreparedStatement" => Act::ClosePrepared(unpack(body)?),
        "CancelQuery" => Act::CancelQuery(unpack(body)?),
        "CancelFlightInfo" => Act::CancelInfo(bare(body)?),
        "RenewFlightEndpoint" => Act::Renew(bare(body)?),
        "SetSessionOptions" => Act::SetOptions(bare(body)?),
        "GetSessionOptions" => {
            bare::<GetSessionOptionsRequest>(body)?;
            Act::Options
        }
        "CloseSession" => Act::CloseSession,
        "BeginTransaction" | "EndTransaction" | "BeginSavepoint" | "EndSavepoint" => {
            return Err(Status::unimplemented(not_supported("transactions are")));
        }
        "CreatePreparedSubstraitPlan" => {
            return Err(Status::unimplemented("Substrait plans are not supported: send SQL"));
        }
        other => {
            let shown: String = other.chars().filter(|c| !c.is_control()).take(60).collect();
            return Err(Status::unimplemented(format!("unknown action `{shown}`")));
        }
    })
}

fn unpack<M: ProstMessageExt>(body: &Bytes) -> Result<M, Status> {
    let bad = || Status::invalid_argument("malformed action message");
    let any = Any::decode(body.as_ref()).map_err(|_| bad())?;
    any.unpack().ok().flatten().ok_or_else(bad)
}

fn bare<M: Message + Default>(body: &Bytes) -> Result<M, Status> {
    M::decode(body.as_ref()).map_err(|_| Status::invalid_argument("malformed action message"))
}

/// Converts an error of the Flight library to a status.
pub(super) fn flight_status(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        error => Status::invalid_argument(crate::error::one_line(&error.to_string())),
    }
}
