//! Messages on a connection: framing, limits and buffers.
//!
//! A message is read completely before it is decoded. Its size is limited, with a lower limit before the login. Messages to
//! the client are encoded by the crate `pgwire`. Messages from the client are decoded here, so that a malformed message is
//! an error, not a panic. Formats: PostgreSQL documentation, "Message Formats".

use std::io;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::report::{Report, Severity};
use super::rows::Rows;
use crate::host::shares::Received;
use crate::host::unread;

/// Time after which memory for input is asked for again.
const ROOM: Duration = Duration::from_secs(1);
/// Size of encoded messages, in bytes, at which they are sent.
const SENT: usize = 64 << 10;
/// Maximum capacity of a buffer that a connection keeps, in bytes.
const KEPT: usize = 256 << 10;
/// Messages and statements, and bytes of them as one, after which other connections of the thread come first.
const TURN: usize = 16;
const TURN_BYTES: usize = 512;
/// Bytes that are read ahead while a statement runs.
const AHEAD: usize = 1 << 20;
/// Bytes of a message that starts a connection (PostgreSQL has the same limit).
const STARTUP: usize = 10_000;

/// A connection, with or without TLS.
pub(super) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Socket for T {}

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum Lost {
    /// The client has closed it, or the network has failed, so no error can be sent.
    Gone,
    /// The error is sent to the client, and the connection closed.
    Reported(Report),
}

impl From<io::Error> for Lost {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// First message of a client.
#[derive(Debug)]
pub(super) enum Opening {
    Tls,
    Gss,
    Cancel {
        pid: i32,
        secret: Bytes,
    },
    Startup {
        /// Minor version of the protocol 3.
        minor: u16,
        /// Names and values, in the order sent.
        parameters: Vec<(String, String)>,
    },
}

/// A message of a client that has started.
#[derive(Debug)]
pub(super) enum Message {
    /// A password, or a step of SASL.
    Password(Bytes),
    Query(String),
    Parse {
        name: String,
        sql: String,
        types: Vec<u32>,
    },
    Bind {
        portal: String,
        statement: String,
        formats: Vec<i16>,
        values: Vec<Option<Bytes>>,
        results: Vec<i16>,
    },
    DescribeStatement(String),
    DescribePortal(String),
    Execute {
        portal: String,
        /// Rows to send; 0: all.
        rows: usize,
    },
    CloseStatement(String),
    ClosePortal(String),
    Flush,
    Sync,
    Terminate,
    /// A part of a copy that failed to start: ignored, as PostgreSQL does.
    Copy,
}

/// A connection with its buffers.
pub(super) struct Wire {
    socket: Box<dyn Socket>,
    input: BytesMut,
    /// Most bytes that the input buffer has held since it was made.
    longest: usize,
    output: BytesMut,
    /// Counts the input that is not answered yet, once the user is known.
    received: Option<Received>,
    /// Bytes of the message that is being answered.
    current: usize,
    /// Time within which the client must read what is sent.
    patience: Duration,
    /// Set if the client may still send a message that was refused.
    refused: bool,
    /// Messages and statements since other connections came first; see [`pause`](Self::pause).
    since_pause: usize,
}

impl Wire {
    pub(super) fn new(socket: Box<dyn Socket>, patience: Duration) -> Self {
        let (input, output) = (BytesMut::new(), BytesMut::new());
        let refused = false;
        Self { socket, input, longest: 0, output, received: None, current: 0, patience, refused, since_pause: 0 }
    }

    /// Counts messages that are not answered yet against the share of a user from now on.
    pub(super) fn count(&mut self, received: Received) {
        self.received = Some(received);
    }

    /// Takes the socket back, for TLS.
    ///
    /// # Errors
    /// [`Lost::Reported`] if the client has sent more already, which would count as encrypted.
    pub(super) fn into_socket(self) -> Result<Box<dyn Socket>, Lost> {
        match self.input.is_empty() {
            true => Ok(self.socket),
            false => Err(violation("data after the request for TLS")),
        }
    }

    /// Reads the first message of a client, or the next one before it starts.
    ///
    /// # Errors
    /// [`Lost`] for a message that starts no connection of this protocol.
    pub(super) async fn opening(&mut self) -> Result<Opening, Lost> {
        let opening = self.read_opening().await;
        self.refused = opening.is_err();
        opening
    }

    async fn read_opening(&mut self) -> Result<Opening, Lost> {
        self.fill(8).await?;
        let length = self.length(0)?;
        if !(8..=STARTUP).contains(&length) {
            return Err(violation("invalid length of startup packet"));
        }
        self.fill(length).await?;
        let mut body = self.input.split_to(length).freeze();
        body.advance(4);
        let code = body.get_u32();
        match (code >> 16, code & 0xffff) {
            (1234, 5679) => Ok(Opening::Tls),
            (1234, 5680) => Ok(Opening::Gss),
            (1234, 5678) => {
                let pid = body.try_get_i32().map_err(|_| violation("malformed cancel request"))?;
                Ok(Opening::Cancel { pid, secret: body })
            }
            (3, minor) => {
                let minor = u16::try_from(minor).unwrap_or(u16::MAX);
                let mut parameters = Vec::new();
                loop {
                    let name = text(&mut body)?;
                    if name.is_empty() {
                        return Ok(Opening::Startup { minor, parameters });
                    }
                    parameters.push((name, text(&mut body)?));
                }
            }
            (major, minor) => {
                let line = format!("unsupported frontend protocol {major}.{minor}: server supports 3.0");
                Err(Lost::Reported(Report::new(Severity::Fatal, "0A000", line)))
            }
        }
    }

    /// Reads the next message; `None` if the client has closed the connection. `most` limits its bytes.
    ///
    /// # Errors
    /// [`Lost`] for malformed or too long messages, and for those that do not fit into the user's share of the memory,
    /// because the start of the next message is unknown.
    pub(super) async fn next(&mut self, most: usize) -> Result<Option<Message>, Lost> {
        let message = self.read_next(most).await;
        self.refused = message.is_err();
        message
    }

    async fn read_next(&mut self, most: usize) -> Result<Option<Message>, Lost> {
        self.current = 0;
        self.pause(0).await;
        if self.fill(5).await.is_err() {
            return Ok(None);
        }
        let length = self.length(1)?;
        if length < 4 {
            return Err(violation("invalid message length"));
        }
        if length > most {
            let line = format!("message too long: {length} bytes, the limit is {most}");
            return Err(Lost::Reported(Report::new(Severity::Fatal, "54000", line)));
        }
        self.fill(length + 1).await?;
        let mut body = self.input.split_to(length + 1).freeze();
        if self.input.is_empty() && self.longest > KEPT {
            (self.input, self.longest) = (BytesMut::new(), 0);
        }
        self.current = length;
        self.hold(self.input.len())?;
        let kind = body.get_u8();
        body.advance(4);
        decode(kind, body).map(Some)
    }

    /// Resolves when the client has closed the connection. Reads ahead what the client sends meanwhile.
    pub(super) async fn gone(&mut self) {
        loop {
            if self.input.len() >= AHEAD {
                return std::future::pending().await;
            }
            if self.hold(self.input.len()).is_err() {
                // The user's share may have room later.
                sleep(ROOM).await;
                continue;
            }
            self.input.reserve(4 << 10);
            match self.socket.read_buf(&mut self.input).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
        }
    }

    /// Encodes a message. What has gathered is sent when it is much, or by [`flush`](Self::flush).
    ///
    /// # Errors
    /// [`Lost`] if the connection is closed, or the client does not read.
    pub(super) async fn send(&mut self, message: PgWireBackendMessage) -> Result<(), Lost> {
        let before = self.output.len();
        if let Err(error) = message.encode(&mut self.output) {
            self.output.truncate(before);
            let line = format!("cannot send a message: {error}");
            return Err(Lost::Reported(Report::new(Severity::Fatal, "54000", line)));
        }
        self.flush_if_much().await
    }

    /// Encodes a row.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    pub(super) async fn send_row(&mut self, rows: &Rows, row: usize) -> Result<(), Lost> {
        self.output.put_u8(b'D');
        let start = self.output.len();
        self.output.put_i32(0);
        rows.put(&mut self.output, row);
        let length = i32::try_from(self.output.len() - start).unwrap_or(i32::MAX);
        self.output[start..start + 4].copy_from_slice(&length.to_be_bytes());
        self.flush_if_much().await
    }

    /// Sends a byte that is not part of a message: the answer to a request for encryption.
    ///
    /// # Errors
    /// [`Lost`] if the connection is closed.
    pub(super) async fn send_byte(&mut self, byte: u8) -> Result<(), Lost> {
        self.output.extend_from_slice(&[byte]);
        self.flush().await
    }

    /// Sends an error or a notice.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    pub(super) async fn report(&mut self, report: &Report) -> Result<(), Lost> {
        let fields = report.fields();
        self.send(match report.severity {
            Severity::Error | Severity::Fatal => PgWireBackendMessage::ErrorResponse(ErrorResponse::new(fields)),
            _ => PgWireBackendMessage::NoticeResponse(NoticeResponse::new(fields)),
        })
        .await
    }

    /// Sends what has gathered if it is much. To encode more takes a while: others of the thread come first.
    async fn flush_if_much(&mut self) -> Result<(), Lost> {
        if self.output.len() < SENT {
            return Ok(());
        }
        self.flush().await?;
        yield_now().await;
        Ok(())
    }

    /// Counts a message, or a statement of so many bytes in one. After a few, other connections of the thread come first: what a client
    /// has sent already is there at once, and much of it needs no wait to be answered.
    pub(super) async fn pause(&mut self, bytes: usize) {
        self.since_pause += 1 + bytes / TURN_BYTES;
        if self.since_pause >= TURN {
            self.since_pause = 0;
            yield_now().await;
        }
    }

    /// Sends what has gathered.
    ///
    /// # Errors
    /// [`Lost`] if the connection is closed, or the client does not read.
    pub(super) async fn flush(&mut self) -> Result<(), Lost> {
        let sent = async {
            self.socket.write_all(&self.output).await?;
            self.socket.flush().await
        };
        timeout(self.patience, sent).await.map_err(|_| Lost::Gone)??;
        self.output.clear();
        if self.output.capacity() > KEPT {
            self.output = BytesMut::new();
        }
        Ok(())
    }

    /// Ends the connection, once the error of a message that was refused is sent: what the client still sends is dropped, so that
    /// the network does not drop the error.
    pub(super) async fn close(&mut self) {
        (self.input, self.received) = (BytesMut::new(), None);
        if self.refused {
            unread::close(&mut self.socket).await;
        }
    }

    /// Reads until this many bytes are there.
    async fn fill(&mut self, bytes: usize) -> Result<(), Lost> {
        while self.input.len() < bytes {
            self.hold(self.input.len())?;
            self.input.reserve((bytes - self.input.len()).min(64 << 10));
            if self.socket.read_buf(&mut self.input).await? == 0 {
                return Err(Lost::Gone);
            }
        }
        Ok(())
    }

    /// Counts the given bytes of the input, and those of the message that is being answered.
    fn hold(&mut self, bytes: usize) -> Result<(), Lost> {
        self.longest = self.longest.max(bytes);
        let all = bytes.saturating_add(self.current);
        let held = self.received.as_mut().map_or(Ok(()), |received| received.hold(all));
        held.map_err(|failure| Lost::Reported(Report::from(failure).fatal()))
    }

    /// The length in a message, which counts itself.
    fn length(&self, offset: usize) -> Result<usize, Lost> {
        let length = self.input.get(offset..).and_then(|bytes| bytes.first_chunk::<4>());
        let length = length.map(|bytes| i32::from_be_bytes(*bytes)).and_then(|length| usize::try_from(length).ok());
        length.ok_or_else(|| violation("invalid message length"))
    }
}

fn violation(what: &str) -> Lost {
    Lost::Reported(Report::new(Severity::Fatal, "08P01", what))
}

fn decode(kind: u8, mut body: Bytes) -> Result<Message, Lost> {
    let short = |_| violation("message ends too early");
    let message = match kind {
        b'p' => Message::Password(body.split_off(0)),
        b'Q' => Message::Query(text(&mut body)?),
        b'P' => {
            let (name, sql) = (text(&mut body)?, text(&mut body)?);
            let count = body.try_get_u16().map_err(short)?;
            let types = (0..count).map(|_| body.try_get_u32().map_err(short));
            Message::Parse { name, sql, types: types.collect::<Result<_, _>>()? }
        }
        b'B' => {
            let (portal, statement) = (text(&mut body)?, text(&mut body)?);
            let formats = codes(&mut body)?;
            let count = body.try_get_u16().map_err(short)?;
            let mut values = Vec::new();
            for _ in 0..count {
                values.push(match body.try_get_i32().map_err(short)? {
                    -1 => None,
                    length => {
                        let length = usize::try_from(length).ok().filter(|length| *length <= body.len());
                        Some(body.split_to(length.ok_or_else(|| violation("invalid length of a parameter"))?))
                    }
                });
            }
            Message::Bind { portal, statement, formats, values, results: codes(&mut body)? }
        }
        b'D' | b'C' => {
            let target = body.try_get_u8().map_err(short)?;
            let name = text(&mut body)?;
            match (kind, target) {
                (b'D', b'S') => Message::DescribeStatement(name),
                (b'D', b'P') => Message::DescribePortal(name),
                (b'C', b'S') => Message::CloseStatement(name),
                (b'C', b'P') => Message::ClosePortal(name),
                _ => return Err(violation("expected a target of S (statement) or P (portal)")),
            }
        }
        b'E' => {
            let portal = text(&mut body)?;
            let rows = body.try_get_i32().map_err(short)?;
            Message::Execute { portal, rows: usize::try_from(rows).unwrap_or(0) }
        }
        b'H' => Message::Flush,
        b'S' => Message::Sync,
        b'X' => Message::Terminate,
        b'd' | b'c' | b'f' => {
            body.clear();
            Message::Copy
        }
        _ => return Err(violation("unknown message type")),
    };
    match body.is_empty() {
        true => Ok(message),
        false => Err(violation("message has more data than expected")),
    }
}

/// A text that ends with a zero byte.
fn text(body: &mut Bytes) -> Result<String, Lost> {
    let end = memchr(body).ok_or_else(|| violation("unterminated string in message"))?;
    let bytes = body.split_to(end);
    body.advance(1);
    let text = std::str::from_utf8(&bytes);
    let line = "invalid byte sequence for encoding \"UTF8\"";
    text.map(str::to_owned).map_err(|_| Lost::Reported(Report::new(Severity::Fatal, "22021", line)))
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == 0)
}

/// Format codes: 0 is text, 1 binary.
fn codes(body: &mut Bytes) -> Result<Vec<i16>, Lost> {
    let short = |_| violation("message ends too early");
    let count = body.try_get_u16().map_err(short)?;
    let codes = (0..count).map(|_| body.try_get_i16().map_err(short)).collect::<Result<Vec<_>, _>>()?;
    match codes.iter().all(|code| matches!(code, 0 | 1)) {
        true => Ok(codes),
        false => Err(violation("unknown format code")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use pgwire::messages::copy::CopyData;

    use super::super::startup::end;
    use super::*;
    use crate::host::shares::tests::share_of_a_mebibyte;

    /// A message with a text of so many bytes.
    fn query(bytes: usize) -> Vec<u8> {
        let length = u32::try_from(bytes + 5).expect("a short text").to_be_bytes();
        [&b"Q"[..], &length, &vec![b'x'; bytes], &[0]].concat()
    }

    #[tokio::test]
    async fn a_message_counts_against_the_share_of_the_user_until_it_is_answered() {
        let share = share_of_a_mebibyte();
        let (mut client, server) = tokio::io::duplex(16 << 10);
        let mut wire = Wire::new(Box::new(server), Duration::from_secs(60));
        wire.count(Received::new(&share));
        let sent = [query(800_000), query(800_000), query(2_000_000)].concat();
        let sending = tokio::spawn(async move { client.write_all(&sent).await });
        for _ in 0..2 {
            let message = wire.next(4 << 20).await;
            assert!(matches!(message, Ok(Some(Message::Query(text))) if text.len() == 800_000));
            assert!(share.pool().reserved() >= 700_000, "it is being answered");
        }
        let Err(Lost::Reported(report)) = wire.next(4 << 20).await else { panic!("more than 1 MiB was received") };
        assert!(report.fields().contains(&(b'C', "53200".to_owned())), "{report:?}");
        drop(wire);
        assert_eq!(share.pool().reserved(), 0);
        sending.await.expect("a task").expect_err("the connection is closed");
    }

    /// Nothing else would run meanwhile: all of them are there at once.
    #[tokio::test]
    async fn other_tasks_of_the_thread_come_between_messages() {
        const MESSAGES: usize = 1_000;
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let mut wire = Wire::new(Box::new(server), Duration::from_secs(60));
        client.write_all(&query(10).repeat(MESSAGES)).await.expect("sent");
        let turns = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&turns);
        let other = tokio::spawn(async move {
            loop {
                counts.fetch_add(1, Ordering::Relaxed);
                yield_now().await;
            }
        });
        for _ in 0..MESSAGES {
            wire.next(1 << 20).await.expect("a message").expect("a message");
        }
        assert!(turns.load(Ordering::Relaxed) >= MESSAGES / TURN - 1, "{turns:?}");
        other.abort();
    }

    #[tokio::test]
    async fn the_error_of_a_message_that_is_too_long_arrives() {
        for (sent, most) in [(query(3_000_000), 2 << 20), ([&[0, 1, 0, 0][..], &[0; 100_000]].concat(), 0)] {
            let (mut client, server) = tokio::io::duplex(16 << 10);
            let mut wire = Wire::new(Box::new(server), Duration::from_secs(60));
            let sending = tokio::spawn(async move {
                client.write_all(&sent).await.expect("what is sent is read");
                let mut answer = Vec::new();
                client.read_to_end(&mut answer).await.expect("an answer");
                answer
            });
            let outcome = if most == 0 { wire.opening().await.map(drop) } else { wire.next(most).await.map(drop) };
            end(&mut wire, outcome.expect_err("too long")).await;
            drop(wire);
            assert_eq!(sending.await.expect("an answer").first(), Some(&b'E'));
        }
    }

    #[tokio::test]
    async fn long_messages_leave_no_long_buffers_and_an_idle_connection_counts_nothing() {
        let share = share_of_a_mebibyte();
        let (mut client, server) = tokio::io::duplex(8 << 20);
        let mut wire = Wire::new(Box::new(server), Duration::from_secs(60));
        wire.count(Received::new(&share));
        client.write_all(&query(1_000_000)).await.expect("sent");
        wire.next(4 << 20).await.expect("a message").expect("a message");
        let row = CopyData::new(vec![b'x'; 1_000_000].into());
        wire.send(PgWireBackendMessage::CopyData(row)).await.expect("sent");
        assert!(wire.input.capacity() <= KEPT && wire.output.capacity() <= KEPT);
        drop(client);
        assert!(wire.next(4 << 20).await.expect("no message").is_none());
        assert_eq!(share.pool().reserved(), 0);
    }
}
