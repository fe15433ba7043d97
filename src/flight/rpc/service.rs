//! Implementation of the `FlightService` trait: dispatches calls and counts their status codes.

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, HandshakeResponse,
    PollInfo, PutResult, SchemaResult, Ticket,
};
use futures::{StreamExt, stream};
use tonic::{Code, Request, Response, Status, Streaming};

use super::super::command::{action_types, described, name};
use super::super::gate::session_of;
use super::super::status::code_name;
use super::Service;
use super::stream::{Answers, one};

impl Service {
    /// Records the outcome of a call in metrics and log.
    fn called<T>(&self, kind: String, result: Result<T, Status>) -> Result<T, Status> {
        let code = result.as_ref().err().map_or(Code::Ok, Status::code);
        self.0.host.metrics.called(kind, code_name(code));
        if let Err(status) = &result {
            tracing::debug!(code = code_name(code), message = status.message(), "call failed");
        }
        result
    }
}

#[tonic::async_trait]
impl FlightService for Service {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = Answers<FlightData>;
    type DoPutStream = Answers<PutResult>;
    type DoActionStream = Answers<arrow_flight::Result>;
    type ListActionsStream = Answers<ActionType>;
    type DoExchangeStream = Answers<FlightData>;

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        self.called("Handshake".to_owned(), self.log_in(request).await)
    }

    async fn list_flights(&self, request: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        session_of(&request)?;
        Ok(Response::new(stream::empty().boxed()))
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> {
        let kind = described(request.get_ref()).map_or_else(|_| "GetFlightInfo".to_owned(), |command| name(&command));
        self.called(kind, self.info(request).await.map(Response::new))
    }

    async fn poll_flight_info(&self, request: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        // Complete at once: the query itself runs in DoGet.
        let info = self.info(request).await;
        self.called("PollFlightInfo".to_owned(), info.map(|info| Response::new(PollInfo::new().with_info(info))))
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        self.called("GetSchema".to_owned(), self.schema(request).await.map(Response::new))
    }

    async fn do_get(&self, request: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let answer = async {
            let session = session_of(&request)?;
            Ok(Response::new(self.fetch(session, request.into_inner()).await?))
        };
        self.called("DoGet".to_owned(), answer.await)
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> {
        let answer = async {
            let session = session_of(&request)?;
            let _busy = session.busy();
            let app_metadata = self.put(session, request.into_inner()).await?;
            Ok(Response::new(one(PutResult { app_metadata })))
        };
        self.called("DoPut".to_owned(), answer.await)
    }

    async fn do_action(&self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        let known =
            action_types().into_iter().map(|action| action.r#type).find(|name| *name == request.get_ref().r#type);
        let answer = async {
            let session = session_of(&request)?;
            let answer = self.act(session, request.get_ref()).await?;
            let answer = answer.map(|body| Ok(arrow_flight::Result { body }));
            Ok(Response::new(stream::iter(answer).boxed()))
        };
        self.called(known.unwrap_or_else(|| "DoAction".to_owned()), answer.await)
    }

    async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        Ok(Response::new(stream::iter(action_types().into_iter().map(Ok)).boxed()))
    }

    async fn do_exchange(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoExchangeStream>, Status> {
        self.called("DoExchange".to_owned(), Err(Status::unimplemented("DoExchange is not supported: send SQL")))
    }
}
