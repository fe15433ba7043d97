//! Responses of a recording, which take the place of a service: the same requests give the same conclusions, without a
//! network and in no time.
//!
//! A request gets the last response to it that is evidence: trouble that passes is none, and a request that was not recorded has
//! no response. Pure but for reading the files.

use std::path::Path;

use super::asker::{Pair, Reply, is_throttling};
use crate::client::{RecordedAnswer, Replay, Secret};
use crate::error::Result;

/// The requests of a probe, or of queries, with their responses.
#[derive(Debug, Default)]
pub struct Recording {
    answers: Vec<RecordedAnswer>,
}

impl Recording {
    /// Reads the folder that `--record` wrote.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Config`] if the folder has no recording, or if a file of it is damaged.
    pub fn read(folder: &Path) -> Result<Self> {
        Ok(Self { answers: Replay::all(folder)? })
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// True if there are no requests.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// The response to a request with the key in this form.
    pub(super) fn reply(&self, path: &str, key: &str, parameters: &[Pair]) -> Option<Reply> {
        let same = |answer: &&RecordedAnswer| {
            let asked = &answer.parameters;
            asked.len() == parameters.len() && parameters.iter().all(|pair| asked.contains(pair))
        };
        self.replies(path, key).filter(|(answer, _)| same(answer)).last().map(|(_, reply)| reply)
    }

    /// All responses to requests that have these parameters, with the key in this form.
    pub(super) fn replies_with(&self, path: &str, key: &str, parameters: &[Pair]) -> Vec<Reply> {
        let has = |answer: &&RecordedAnswer| parameters.iter().all(|pair| answer.parameters.contains(pair));
        self.replies(path, key).filter(|(answer, _)| has(answer)).map(|(_, reply)| reply).collect()
    }

    /// Responses of a rate limit other than status 429, after which the same request was answered.
    pub(super) fn limited(&self) -> Vec<Reply> {
        let mut found = Vec::new();
        for (number, answer) in self.answers.iter().enumerate() {
            let Ok(response) = &answer.response else { continue };
            let (status, text) = (response.status.as_u16(), String::from_utf8_lossy(&response.body).into_owned());
            let is_answer = |later: &RecordedAnswer| {
                let is_same =
                    later.path == answer.path && later.parameters == answer.parameters && later.key == answer.key;
                is_same && later.response.as_ref().is_ok_and(|response| response.status.is_success())
            };
            let may_be = status == 403 || (status != 429 && is_throttling(status, &response.headers, &text));
            if may_be && self.answers[number + 1..].iter().any(is_answer) {
                found.push(Reply::new(&answer.parameters, status, response.headers.clone(), text));
            }
        }
        found
    }

    fn replies(&self, path: &str, key: &str) -> impl Iterator<Item = (&RecordedAnswer, Reply)> {
        let form = move |answer: &&RecordedAnswer| {
            answer.key.as_ref().is_none_or(|sent| match (sent.split_once(": "), key.split_once(": ")) {
                (Some((name, value)), Some((other, form))) => name.eq_ignore_ascii_case(other) && value == form,
                _ => false,
            })
        };
        let of_path = self.answers.iter().filter(move |answer| answer.path == path).filter(form);
        of_path.filter_map(|answer| {
            let response = answer.response.as_ref().ok()?;
            let text = String::from_utf8_lossy(&response.body).into_owned();
            let status = response.status.as_u16();
            let passes = status >= 500 || is_throttling(status, &response.headers, &text);
            (!passes).then(|| (answer, Reply::new(&answer.parameters, status, response.headers.clone(), text)))
        })
    }
}

/// The header with the key as recordings have it, which is without the key.
pub(super) fn form_in_recordings(header: &str, format: &str) -> String {
    let hidden = Secret::REDACTED;
    format!("{header}: {}", format.replace("{key}", hidden).replace("{base64}", hidden))
}
