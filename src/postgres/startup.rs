//! The beginning of a connection: encryption, cancel requests, credentials and the session.
//!
//! ```text
//! byte 0x16 ─▶ TLS at once · SSLRequest ─▶ TLS, or "N" · GSSENCRequest ─▶ "N" · CancelRequest ─▶ cancelled, closed
//! StartupMessage ─▶ credentials (SCRAM, a password, none) ─▶ session ─▶ settings, key for cancel requests, ready
//! ```
//!
//! If the server has TLS, a client that starts without encryption is refused before it can send a password.

use std::sync::Arc;
use std::time::Duration;

use crate::serving::Acceptor;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::startup::{Authentication, NegotiateProtocolVersion};
use secrecy::SecretString;
use tokio::time::timeout;

use super::report::{Report, Severity};
use super::server::Shared;
use super::settings::Settings;
use super::wire::{Lost, Message, Opening, Wire};
use crate::host::auth::{Auth, Credentials};
use crate::host::connection_limit::{Ended, Reason};
use crate::host::failure::{Code, Failure};
use crate::host::listener::ClientStream;
use crate::host::peer::Caller;
use crate::host::scram::{Exchange, MECHANISM, Verifier};
use crate::host::sessions::Session;

/// Time limit of a TLS handshake, and of a login.
const LOGIN: Duration = Duration::from_secs(60);
/// Bytes of a message with a password.
const PASSWORD: usize = 10_000;
/// SQLSTATE for a connection beyond the limit.
const TOO_MANY: &str = "53300";
/// First byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;
/// Protocol version 3.0.
const VERSION: i32 = 3 << 16;

/// A client that has logged in.
pub(super) struct Started {
    pub(super) wire: Wire,
    pub(super) session: Arc<Session>,
    pub(super) settings: Settings,
}

/// Starts a connection; `None` if it is over.
///
/// `ended` tells that the connection must be closed.
pub(super) async fn start(stream: ClientStream, shared: &Shared, ended: &Ended) -> Option<Started> {
    let caller = stream.caller();
    let (mut wire, parameters) = timeout(LOGIN, open(stream, shared)).await.ok()??;
    let started = tokio::select! {
        reason = ended.wait() => Err(closed(reason)),
        started = timeout(LOGIN, log_in(&mut wire, parameters, shared, caller)) => {
            started.unwrap_or_else(|_| Err(closed(Reason::NoLogin)))
        }
    };
    match started {
        Ok((session, settings)) => {
            wire.count(session.received());
            Some(Started { wire, session, settings })
        }
        Err(lost) => {
            end(&mut wire, lost).await;
            None
        }
    }
}

/// The end of a connection that must be closed. The codes are those of PostgreSQL.
pub(super) fn closed(reason: Reason) -> Lost {
    let (sqlstate, line) = match reason {
        Reason::MadeRoom => (TOO_MANY, "too many connections: this one was closed to make room for others"),
        Reason::Idle => ("57P05", "terminating connection due to idle-session timeout"),
        Reason::NoLogin => ("57014", "canceling authentication due to timeout"),
        Reason::LoggedOut => ("28000", "logged out: the users file has changed; connect again"),
    };
    Lost::Reported(Report::new(Severity::Fatal, sqlstate, line))
}

/// Tells a client why its connection ends.
pub(super) async fn end(wire: &mut Wire, lost: Lost) {
    if let Lost::Reported(report) = lost {
        // The client may have disconnected.
        if wire.report(&report).await.is_ok() && wire.flush().await.is_ok() {
            wire.close().await;
        }
    }
}

/// Reads up to the startup message. Returns its parameters, with the connection encrypted if that was agreed.
async fn open(stream: ClientStream, shared: &Shared) -> Option<(Wire, Startup)> {
    let caller = stream.caller();
    let patience = Duration::from_secs(shared.host.limits.unread_seconds);
    let (mut wire, mut encrypted) = match (stream.peek().await.ok()?, &shared.tls) {
        (HANDSHAKE, Some(tls)) => {
            let stream = timeout(LOGIN, tls.accept(stream)).await.ok()?.ok()?;
            // Otherwise the client may speak another protocol (RFC 7301).
            stream.get_ref().1.alpn_protocol()?;
            (Wire::new(Box::new(stream), patience), true)
        }
        (HANDSHAKE, None) => return None,
        _ => (Wire::new(Box::new(stream), patience), false),
    };
    let mut refused = 0;
    loop {
        match wire.opening().await {
            Ok(Opening::Tls) if !encrypted && shared.tls.is_some() => {
                wire.send_byte(b'S').await.ok()?;
                wire = encrypt(wire, shared.tls.as_ref()?, patience).await?;
                encrypted = true;
            }
            Ok(Opening::Tls | Opening::Gss) if refused < 2 => {
                refused += 1;
                wire.send_byte(b'N').await.ok()?;
            }
            Ok(Opening::Tls | Opening::Gss) => return None,
            Ok(Opening::Cancel { pid, secret }) => {
                shared.host.standing.answered(caller.peer);
                shared.running.cancel(pid, &secret);
                return None;
            }
            Ok(Opening::Startup { .. }) if shared.tls.is_some() && !encrypted => {
                let line = "this server requires TLS: connect with sslmode=require";
                end(&mut wire, Lost::Reported(Report::new(Severity::Fatal, "28000", line))).await;
                return None;
            }
            Ok(Opening::Startup { minor, parameters }) => return Some((wire, Startup { minor, parameters })),
            Err(lost) => {
                end(&mut wire, lost).await;
                return None;
            }
        }
    }
}

async fn encrypt(wire: Wire, tls: &Acceptor, patience: Duration) -> Option<Wire> {
    // Bytes that came before the handshake would count as encrypted.
    let socket = wire.into_socket().ok()?;
    let stream = timeout(LOGIN, tls.accept(socket)).await.ok()?.ok()?;
    Some(Wire::new(Box::new(stream), patience))
}

struct Startup {
    minor: u16,
    parameters: Vec<(String, String)>,
}

async fn log_in(
    wire: &mut Wire,
    startup: Startup,
    shared: &Shared,
    caller: Caller,
) -> Result<(Arc<Session>, Settings), Lost> {
    let Startup { minor, parameters } = startup;
    let options: Vec<String> =
        parameters.iter().filter(|(name, _)| name.starts_with("_pq_.")).map(|(name, _)| name.clone()).collect();
    if minor > 0 || !options.is_empty() {
        let negotiated = NegotiateProtocolVersion::new(VERSION, options);
        wire.send(PgWireBackendMessage::NegotiateProtocolVersion(negotiated)).await?;
    }
    let value = |name: &str| parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let fatal = |sqlstate, line: &str| Lost::Reported(Report::new(Severity::Fatal, sqlstate, line));
    let user = value("user").filter(|user| !user.is_empty());
    let user = user.ok_or_else(|| fatal("28000", "no PostgreSQL user name specified in startup packet"))?;
    if value("replication").is_some_and(|value| !matches!(value.as_str(), "false" | "off" | "0" | "no")) {
        return Err(fatal("0A000", "replication is not supported"));
    }
    let told = |failure: Failure| {
        shared.host.standing.answered(caller.peer);
        match failure.code {
            Code::ResourceExhausted => fatal(TOO_MANY, &failure.message()),
            _ => Lost::Reported(Report::from(failure).fatal()),
        }
    };
    let session = match shared.host.sessions.auth() {
        Auth::None => shared.host.sessions.find(Credentials::None, Some(caller)).await.map_err(told)?,
        Auth::PassThrough => {
            let password = password(wire).await?;
            let credentials = Credentials::Basic(user.clone(), password);
            while_there(wire, shared.host.sessions.find(credentials, Some(caller))).await?.map_err(told)?
        }
        Auth::Users(users) => match users.scram(&user) {
            Some(verifier) => {
                let proof = prove(wire, verifier.clone()).await?;
                let right = proof.is_some();
                let principal = while_there(wire, users.proven(&user, &verifier, right, Some(caller))).await?;
                let principal = principal.map_err(|rejection| told(shared.host.sessions.rejected(rejection)))?;
                if let Some(proof) = proof {
                    wire.send(PgWireBackendMessage::Authentication(Authentication::SASLFinal(proof.into()))).await?;
                }
                shared.host.sessions.of_principal(&principal, Some(caller.peer)).map_err(told)?
            }
            None => {
                let password = password(wire).await?;
                let credentials = Credentials::Basic(user.clone(), password);
                while_there(wire, shared.host.sessions.find(credentials, Some(caller))).await?.map_err(told)?
            }
        },
    };
    let database = value("database").filter(|name| !name.is_empty()).unwrap_or_else(|| user.clone());
    let settings = Settings::new(&user, &database, &session).map_err(|report| Lost::Reported(report.fatal()))?;
    wire.send(PgWireBackendMessage::Authentication(Authentication::Ok)).await?;
    let mut settings = settings;
    for (name, value) in parameters {
        let set = match name.as_str() {
            "user" | "database" | "replication" => Ok(()),
            "options" => settings.set_options(&value),
            name if name.starts_with("_pq_.") => Ok(()),
            name => settings.begin_with(name, &value),
        };
        set.map_err(|report| Lost::Reported(report.fatal()))?;
    }
    Ok((session, settings))
}

/// Waits for the check of credentials, unless the client disconnects, because it would keep its place in the queue.
async fn while_there<T>(wire: &mut Wire, verdict: impl Future<Output = T>) -> Result<T, Lost> {
    tokio::select! {
        verdict = verdict => Ok(verdict),
        () = wire.gone() => Err(Lost::Gone),
    }
}

/// Requests a password in the clear: inside TLS, or on this machine.
async fn password(wire: &mut Wire) -> Result<SecretString, Lost> {
    wire.send(PgWireBackendMessage::Authentication(Authentication::CleartextPassword)).await?;
    let body = answer(wire).await?;
    let password = body.strip_suffix(&[0]).and_then(|bytes| std::str::from_utf8(bytes).ok());
    let password =
        password.ok_or_else(|| Lost::Reported(Report::new(Severity::Fatal, "08P01", "malformed password message")))?;
    Ok(password.into())
}

/// Runs SCRAM. Returns the server's last message; `None` if the proof is wrong.
async fn prove(wire: &mut Wire, verifier: Verifier) -> Result<Option<String>, Lost> {
    let malformed = || Lost::Reported(Report::new(Severity::Fatal, "08P01", "malformed SCRAM message"));
    wire.send(PgWireBackendMessage::Authentication(Authentication::SASL(vec![MECHANISM.to_owned()]))).await?;
    // The name of the mechanism, the length of what follows, and the client's first message.
    let body = answer(wire).await?;
    let first =
        body.strip_prefix(MECHANISM.as_bytes()).and_then(|rest| rest.strip_prefix(&[0])).and_then(|rest| rest.get(4..));
    let first = first.and_then(|first| std::str::from_utf8(first).ok()).ok_or_else(malformed)?;
    let nonce = format!("{:032x}", rand::random::<u128>());
    let (exchange, challenge) = Exchange::begin(first, verifier, &nonce).ok_or_else(malformed)?;
    wire.send(PgWireBackendMessage::Authentication(Authentication::SASLContinue(challenge.into()))).await?;
    let last = answer(wire).await?;
    let last = std::str::from_utf8(&last).map_err(|_| malformed())?;
    Ok(exchange.finish(last))
}

/// Computes the verifier of a password, for the `scram_sha_256` of a users file.
pub fn scram_verifier(password: &str) -> String {
    postgres_protocol::password::scram_sha_256(password.as_bytes())
}

async fn answer(wire: &mut Wire) -> Result<bytes::Bytes, Lost> {
    wire.flush().await?;
    match wire.next(PASSWORD).await? {
        Some(Message::Password(body)) => Ok(body),
        Some(Message::Terminate) | None => Err(Lost::Gone),
        Some(_) => Err(Lost::Reported(Report::new(Severity::Fatal, "08P01", "expected a password message"))),
    }
}
