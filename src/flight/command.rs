//! What clients say: descriptors, tickets and actions, taken apart. Pure.

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

/// An action, with its message. Those of Flight SQL come inside an `Any`, those of Flight itself bare.
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

/// The actions by their names, with what they do.
const ACTIONS: [(&str, &str); 8] = [
    ("CreatePreparedStatement", "Prepares a statement: ActionCreatePreparedStatementRequest"),
    ("ClosePreparedStatement", "Closes a prepared statement: ActionClosePreparedStatementRequest"),
    ("CancelQuery", "Cancels a query: ActionCancelQueryRequest"),
    ("CancelFlightInfo", "Cancels a query: CancelFlightInfoRequest"),
    ("RenewFlightEndpoint", "Keeps a result for longer: RenewFlightEndpointRequest"),
    ("SetSessionOptions", "Sets catalog, schema and savedsearch.* of the session: SetSessionOptionsRequest"),
    ("GetSessionOptions", "Gives the options of the session: GetSessionOptionsRequest"),
    ("CloseSession", "Ends the session, its token and its temporary tables: CloseSessionRequest"),
];

/// The actions, for those who ask.
pub(super) fn action_types() -> Vec<ActionType> {
    ACTIONS.iter().map(|(name, what)| ActionType { r#type: (*name).into(), description: (*what).into() }).collect()
}

/// The command in a descriptor.
///
/// # Errors
/// INVALID_ARGUMENT for what is none.
pub(super) fn described(descriptor: &FlightDescriptor) -> Result<Command, Status> {
    if descriptor.cmd.is_empty() {
        return Err(Status::invalid_argument("the descriptor has no command: this server speaks Flight SQL"));
    }
    parse(&descriptor.cmd)
}

/// The command in a message.
///
/// # Errors
/// INVALID_ARGUMENT for what is none.
pub(super) fn parse(bytes: &Bytes) -> Result<Command, Status> {
    let any =
        Any::decode(bytes.as_ref()).map_err(|_| Status::invalid_argument("the command is no Flight SQL message"))?;
    Command::try_from(any).map_err(|_| Status::invalid_argument("the Flight SQL message cannot be read"))
}

/// What a command is called, for errors and metrics: the last part of its type's address.
pub(super) fn name(command: &Command) -> String {
    if let Command::Unknown(_) = command {
        // What a client makes up is no name.
        return "unknown command".to_owned();
    }
    let name = command.type_url().rsplit(['.', '/']).next().unwrap_or_default();
    name.to_owned()
}

/// What an action asks for.
///
/// # Errors
/// INVALID_ARGUMENT for a message that cannot be read, UNIMPLEMENTED for what this server does not do.
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
            return Err(Status::unimplemented("there are no transactions: the service is read-only"));
        }
        "CreatePreparedSubstraitPlan" => return Err(Status::unimplemented("there are no Substrait plans: send SQL")),
        other => {
            let shown: String = other.chars().filter(|c| !c.is_control()).take(60).collect();
            return Err(Status::unimplemented(format!("there is no action `{shown}`")));
        }
    })
}

fn unpack<M: ProstMessageExt>(body: &Bytes) -> Result<M, Status> {
    let bad = || Status::invalid_argument("the action's message cannot be read");
    let any = Any::decode(body.as_ref()).map_err(|_| bad())?;
    any.unpack().ok().flatten().ok_or_else(bad)
}

fn bare<M: Message + Default>(body: &Bytes) -> Result<M, Status> {
    M::decode(body.as_ref()).map_err(|_| Status::invalid_argument("the action's message cannot be read"))
}

/// An error of the Flight library as a status.
pub(super) fn flight_status(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        error => Status::invalid_argument(crate::error::one_line(&error.to_string())),
    }
}
