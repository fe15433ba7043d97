//! Implementation of the `FlightService` trait: dispatches calls and counts their status codes.

use std::future::ready;

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, HandshakeResponse,
    PollInfo, PutResult, SchemaResult, Ticket,
};
use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use tonic::{Code, Request, Response, Status, Streaming};

use super::super::command::{action_types, described, name};
use super::super::gate::session_of;
use super::super::status::code_name;
use super::Service;
use super::stream::{Answers, one};
use crate::boxed_future::boxed_futures;
use crate::error::shortened;

/// Bytes of a message that is not looked at.
const LONG: usize = 1_000;

/// The answer to a call, or the error.
type Answer<'a, T> = BoxFuture<'a, Result<Response<T>, Status>>;

impl Service {
    /// Records the outcome of a call in metrics and log. A name in a message may be as long as the client's message.
    fn called<T>(&self, kind: String, result: Result<T, Status>) -> Result<T, Status> {
        let code = result.as_ref().err().map_or(Code::Ok, Status::code);
        self.0.host.metrics.called(kind, code_name(code));
        if let Err(status) = &result {
            tracing::debug!(code = code_name(code), message = status.message(), "call failed");
        }
        result.map_err(|status| match status.message().len() {
            ..=LONG => status,
            _ => Status::new(status.code(), shortened(status.message().to_owned())),
        })
    }
}

impl FlightService for Service {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = Answers<FlightData>;
    type DoPutStream = Answers<PutResult>;
    type DoActionStream = Answers<arrow_flight::Result>;
    type ListActionsStream = Answers<ActionType>;
    type DoExchangeStream = Answers<FlightData>;

    boxed_futures! {
        fn handshake<'this>(
            &'this self,
            request: Request<Streaming<HandshakeRequest>>,
        ) -> Result<Response<Self::HandshakeStream>, Status> {
            self.answer_handshake(request)
        }

        fn list_flights<'this>(
            &'this self,
            request: Request<Criteria>,
        ) -> Result<Response<Self::ListFlightsStream>, Status> {
            let flights = session_of(&request).map(|_| Response::new(stream::empty().boxed()));
            Box::pin(ready(flights))
        }

        fn get_flight_info<'this>(
            &'this self,
            request: Request<FlightDescriptor>,
        ) -> Result<Response<FlightInfo>, Status> {
            self.answer_get_flight_info(request)
        }

        fn poll_flight_info<'this>(
            &'this self,
            request: Request<FlightDescriptor>,
        ) -> Result<Response<PollInfo>, Status> {
            self.answer_poll_flight_info(request)
        }

        fn get_schema<'this>(
            &'this self,
            request: Request<FlightDescriptor>,
        ) -> Result<Response<SchemaResult>, Status> {
            self.answer_get_schema(request)
        }

        fn do_get<'this>(&'this self, request: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
            self.answer_do_get(request)
        }

        fn do_put<'this>(
            &'this self,
            request: Request<Streaming<FlightData>>,
        ) -> Result<Response<Self::DoPutStream>, Status> {
            self.answer_do_put(request)
        }

        fn do_action<'this>(&'this self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
            self.answer_do_action(request)
        }

        fn list_actions<'this>(
            &'this self,
            _request: Request<Empty>,
        ) -> Result<Response<Self::ListActionsStream>, Status> {
            Box::pin(ready(Ok(Response::new(stream::iter(action_types().into_iter().map(Ok)).boxed()))))
        }

        fn do_exchange<'this>(
            &'this self,
            _request: Request<Streaming<FlightData>>,
        ) -> Result<Response<Self::DoExchangeStream>, Status> {
            let refused = Status::unimplemented("DoExchange is not supported: send SQL");
            Box::pin(ready(self.called("DoExchange".to_owned(), Err(refused))))
        }
    }
}

/// The calls that wait.
impl Service {
    fn answer_handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Answer<'_, Answers<HandshakeResponse>> {
        Box::pin(async move { self.called("Handshake".to_owned(), self.log_in(request).await) })
    }

    fn answer_get_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<'_, FlightInfo> {
        Box::pin(async move {
            let kind =
                described(request.get_ref()).map_or_else(|_| "GetFlightInfo".to_owned(), |command| name(&command));
            self.called(kind, self.info(request).await.map(Response::new))
        })
    }

    fn answer_poll_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<'_, PollInfo> {
        Box::pin(async move {
            // Complete at once: the query itself runs in DoGet.
            let info = self.info(request).await;
            self.called("PollFlightInfo".to_owned(), info.map(|info| Response::new(PollInfo::new().with_info(info))))
        })
    }

    fn answer_get_schema(&self, request: Request<FlightDescriptor>) -> Answer<'_, SchemaResult> {
        Box::pin(async move { self.called("GetSchema".to_owned(), self.schema(request).await.map(Response::new)) })
    }

    fn answer_do_get(&self, request: Request<Ticket>) -> Answer<'_, Answers<FlightData>> {
        Box::pin(async move {
            let answer = async {
                let session = session_of(&request)?;
                Ok(Response::new(self.fetch(session, request.into_inner()).await?))
            };
            self.called("DoGet".to_owned(), answer.await)
        })
    }

    fn answer_do_put(&self, request: Request<Streaming<FlightData>>) -> Answer<'_, Answers<PutResult>> {
        Box::pin(async move {
            let answer = async {
                let session = session_of(&request)?;
                let app_metadata = self.put(session, request.into_inner()).await?;
                Ok(Response::new(one(PutResult { app_metadata })))
            };
            self.called("DoPut".to_owned(), answer.await)
        })
    }

    fn answer_do_action(&self, request: Request<Action>) -> Answer<'_, Answers<arrow_flight::Result>> {
        Box::pin(async move {
            let known =
                action_types().into_iter().map(|action| action.r#type).find(|name| *name == request.get_ref().r#type);
            let answer = async {
                let session = session_of(&request)?;
                let answer = self.act(session, request.get_ref()).await?;
                let answer = answer.map(|body| Ok(arrow_flight::Result { body }));
                Ok(Response::new(stream::iter(answer).boxed()))
            };
            self.called(known.unwrap_or_else(|| "DoAction".to_owned()), answer.await)
        })
    }
}
