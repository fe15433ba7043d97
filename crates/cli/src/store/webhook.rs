//! `sync --webhook URL`: sends new mentions by POST, as NDJSON.
//!
//! The cursor of the URL advances after each part of them, in the order of the commits of the store, that was accepted. After a
//! failure, or if this process ends before, the next synchronization sends the rest.

use std::sync::Arc;

use datafusion_saved_search::{Connection, Error, ErrorKind, NewMentions, ReadMentions, Webhook};
use tokio::sync::mpsc::error::SendError;
use tokio::sync::mpsc::{Sender, channel};

use super::blocking;
use super::hand_over::{Handed, lines};
use crate::{Exit, in_command};

/// Mentions after which a part ends with their commit.
const PART: u64 = 1_000;
/// Largest body in bytes, unless a single mention is larger.
const BODY: usize = 1 << 20;

/// A webhook, and the mentions that it has not accepted yet.
pub(super) struct Sending {
    webhook: Webhook,
    new: NewMentions,
}

impl Sending {
    /// Prepares a webhook for the new mentions of some saved searches, or of all. What the store has at present is not new the
    /// first time.
    pub(super) fn begin(
        connection: &Arc<Connection>,
        url: &str,
        insecure: bool,
        aids: &[String],
    ) -> Result<Self, Error> {
        let webhook = Webhook::try_new(url, insecure)?;
        let new = webhook.new_mentions(connection, aids)?;
        Ok(Self { webhook, new })
    }

    /// Sends the new mentions, until a request fails.
    pub(super) async fn run(&self) -> Result<Handed, Exit> {
        let mut handed = Handed { mentions: Some(0), ..Handed::default() };
        loop {
            let (bodies, mut waiting) = channel(1);
            let new = self.new.clone();
            let reading = blocking(move || read(&new, &bodies));
            let sending = async {
                let mut sent = Ok(());
                while let Some(body) = waiting.recv().await {
                    // The rest of the part is read to count it.
                    if sent.is_ok() {
                        sent = self.webhook.send(body).await;
                    }
                }
                sent
            };
            let (part, sent) = tokio::join!(reading, sending);
            let part = part?;
            let waiting = part.mentions + part.left;
            handed.repeats |= part.repeats && part.mentions > 0;
            if let Err(error) = sent {
                let reason = error.line().worded(in_command);
                handed.failure = Some(format!("{reason}; mentions left for the next synchronization: {waiting}"));
                handed.mentions = handed.mentions.map(|before| before + waiting);
                return Ok(handed);
            }
            handed.mentions = handed.mentions.map(|before| before + part.mentions);
            let new = self.new.clone();
            blocking(move || new.advance(&part)).await?;
            if part.left == 0 {
                return Ok(handed);
            }
        }
    }
}

/// Reads a part of the new mentions, and passes it on in bodies.
fn read(new: &NewMentions, bodies: &Sender<Vec<u8>>) -> Result<ReadMentions, Error> {
    let stopped = |_: SendError<Vec<u8>>| Error::new(ErrorKind::Output, "stopped");
    let send = |body| bodies.blocking_send(body).map_err(stopped);
    let mut body = Vec::new();
    let part = new.read_some(PART, |batch| fill(&mut body, &lines(&batch)?, BODY, send))?;
    if !body.is_empty() {
        send(body)?;
    }
    Ok(part)
}

/// Adds lines to a body, which is sent each time when it would exceed a size.
fn fill(
    body: &mut Vec<u8>,
    lines: &[u8],
    largest: usize,
    send: impl Fn(Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        if !body.is_empty() && body.len() + line.len() > largest {
            send(std::mem::take(body))?;
        }
        body.extend_from_slice(line);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn bodies_have_whole_lines_and_a_largest_size() {
        let (sent, mut body) = (RefCell::new(Vec::new()), Vec::new());
        for lines in ["a\nbb\n", "ccc\ndddddddd\n", "", "e\n"] {
            let send = |body| {
                sent.borrow_mut().push(body);
                Ok(())
            };
            fill(&mut body, lines.as_bytes(), 5, send).expect("sent");
        }
        let expected: [&[u8]; 3] = [b"a\nbb\n", b"ccc\n", b"dddddddd\n"];
        assert_eq!((sent.into_inner(), body), (expected.map(<[u8]>::to_vec).to_vec(), b"e\n".to_vec()));
    }
}
