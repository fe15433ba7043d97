//! Handshake: exchanges credentials for a session token.

use tokio::time::timeout;
use tonic::{Request, Response, Status, Streaming};

use arrow_flight::{HandshakeRequest, HandshakeResponse};

use super::super::auth::{Credentials, credentials, handshake_credentials};
use super::super::sessions::caller_of;
use super::Service;
use super::stream::{Answers, PATIENCE, late, one};

impl Service {
    pub(super) async fn log_in(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Answers<HandshakeResponse>>, Status> {
        let caller = caller_of(request.extensions());
        let mut given = credentials(request.metadata()).map_err(|rejection| self.0.sessions.rejected(rejection))?;
        // A client with credentials in its headers may send no message at all.
        if matches!(given, Credentials::None)
            && let Some(message) = timeout(PATIENCE, request.into_inner().message()).await.map_err(|_| late())??
        {
            given = handshake_credentials(&message.payload).unwrap_or(Credentials::None);
        }
        let (token, proven) = self.0.sessions.log_in(&given, caller).await?;
        if let Some(caller) = caller.filter(|_| proven) {
            self.0.standing.prove(caller.peer);
        }
        let response = HandshakeResponse { protocol_version: 0, payload: token.clone().into() };
        let mut response = Response::new(one(response));
        let bearer =
            format!("Bearer {token}").parse().map_err(|_| Status::internal("the token is not a valid header value"))?;
        response.metadata_mut().insert("authorization", bearer);
        Ok(response)
    }
}
