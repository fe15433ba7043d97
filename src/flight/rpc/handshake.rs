//! Handshake: exchanges credentials for a session token.

use tokio::time::timeout;
use tonic::{Request, Response, Status, Streaming};

use arrow_flight::{BasicAuth, HandshakeRequest, HandshakeResponse};

use super::super::gate::caller_of;
use super::Service;
use super::stream::{Answers, PATIENCE, late, one};
use crate::host::auth::{Credentials, credentials};

impl Service {
    pub(super) async fn log_in(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Answers<HandshakeResponse>>, Status> {
        let caller = caller_of(request.extensions());
        let mut given =
            credentials(request.metadata().as_ref()).map_err(|rejection| self.0.host.sessions.rejected(rejection))?;
        // A client with credentials in its headers may send no message at all.
        if matches!(given, Credentials::None)
            && let Some(message) = timeout(PATIENCE, request.into_inner().message()).await.map_err(|_| late())??
        {
            given = message_credentials(&message.payload).unwrap_or(Credentials::None);
        }
        let (token, session) = self.0.host.sessions.log_in(&given, caller).await?;
        if let Some(caller) = caller {
            self.0.host.standing.log_in(caller.peer, &session.principal.name, session.is_proven());
        }
        let response = HandshakeResponse { protocol_version: 0, payload: token.clone().into() };
        let mut response = Response::new(one(response));
        let bearer =
            format!("Bearer {token}").parse().map_err(|_| Status::internal("the token is not a valid header value"))?;
        response.metadata_mut().insert("authorization", bearer);
        Ok(response)
    }
}

/// Reads the credentials from a message, the protocol's older alternative to headers.
fn message_credentials(payload: &[u8]) -> Option<Credentials> {
    let BasicAuth { username, password } = prost::Message::decode(payload).ok()?;
    (!username.is_empty()).then(|| Credentials::Basic(username, password.into()))
}
