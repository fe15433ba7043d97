//! Sends GET requests one by one and keeps a log of them; or takes the responses from a recording.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use serde_json::Value;
use tokio::time::sleep;
use url::Url;

use super::recorded::{Recording, form_in_recordings};
use super::refusal;
use super::vocabulary::GIVEN;
use crate::client::{AnswerSource, HttpRequest, Question, Secret, Unsent, asked_wait, value_of};
use crate::error::{Error, ErrorKind, Result, one_line};
use crate::profile::{Auth, Evidence, Profile, ResetFormat, Throttle};
use crate::request::RequestKey;

/// Response timeout.
const PATIENCE: Duration = Duration::from_secs(30);
/// Delay before a failed request is retried.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest back-off that a service may request.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A parameter with its value.
pub(super) type Pair = (String, String);

/// A response.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    /// Parameters of the request.
    pub(super) asked: Vec<Pair>,
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    /// The body, if it is JSON.
    pub(super) body: Option<Value>,
    /// The body as text, with the key redacted.
    pub(super) text: String,
    /// The parameter that it refuses as unknown, if only its list of other parameters shows that.
    unknown: Option<String>,
    /// Names of parameters in requests that differ from the usual ones, by the usual names.
    names: Arc<Vec<(String, String)>>,
    /// The parameter, by its name in requests, that the service refused before as one that it does not have: the request was not
    /// sent, and that refusal takes the place of a response.
    unsent: Option<String>,
}

/// A request that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Endpoint and parameters, with the key redacted.
    pub question: String,
    /// HTTP status; `None` if there was no response.
    pub status: Option<u16>,
}

/// Sends a limited number of requests.
#[derive(Debug)]
pub(super) struct Asker {
    source: Source,
    auth: Auth,
    left: u64,
    pub(super) calls: Vec<Call>,
    /// Names of parameters in requests that differ from the usual ones, by the usual names.
    pub(super) names: Arc<Vec<(String, String)>>,
    /// Ends of a window, which searches without another absolute one need.
    pub(super) ends: Vec<Pair>,
    /// Names of parameters that were sent, those that were known then as the usual ones, each with the number of requests.
    pub(super) sent: BTreeMap<String, usize>,
    /// Header with the total of a search, if no body has it.
    pub(super) total_header: Option<String>,
    /// Refusals of parameters that an endpoint does not have, by the endpoint and their names in requests.
    refused: BTreeMap<(String, String), Reply>,
    /// All parameters of a search by their names in requests, if a refusal lists them.
    pub(super) listed: Vec<String>,
    /// Those with usual names, under their names in requests, of searches that were answered.
    taken: BTreeSet<String>,
    /// Responses of a rate limit other than status 429, after which the same request was answered.
    limited: Vec<Reply>,
    /// Set once a refusal with a number of seconds was repeated after them, and was a refusal again.
    waited_for_nothing: bool,
    /// Lists in refusals, each with the name of a parameter that was sent and is not in it.
    lists: Vec<(String, Vec<String>)>,
}

/// Origin of the responses.
#[derive(Debug)]
enum Source {
    Service(Service),
    Recording(Arc<Recording>),
}

#[derive(Debug, Clone)]
struct Service {
    source: Arc<dyn AnswerSource>,
    base_url: Url,
    key: Secret,
}

impl Asker {
    pub(super) fn new(source: Arc<dyn AnswerSource>, base_url: Url, key: Secret, calls: u64) -> Self {
        Self::of(Source::Service(Service { source, base_url, key }), calls)
    }

    /// Takes all responses from a recording. Requests cost nothing, and those that were not recorded have no response.
    pub(super) fn recorded(recording: Arc<Recording>) -> Self {
        // More than the steps of a probe ask for.
        Self::of(Source::Recording(recording), 10_000)
    }

    fn of(source: Source, left: u64) -> Self {
        let auth = Auth { evidence: Evidence::Assumed, header: "Authorization".into(), format: "Bearer {key}".into() };
        Self {
            source,
            auth,
            left,
            calls: Vec::new(),
            names: Arc::default(),
            ends: Vec::new(),
            sent: BTreeMap::new(),
            total_header: None,
            refused: BTreeMap::new(),
            listed: Vec::new(),
            taken: BTreeSet::new(),
            limited: Vec::new(),
            waited_for_nothing: false,
            lists: Vec::new(),
        }
    }

    /// True if there is no service to ask.
    pub(super) fn is_recording(&self) -> bool {
        matches!(self.source, Source::Recording(_))
    }

    /// The responses of a recording to searches that have these parameters among others; none of a service.
    pub(super) fn recorded_with(&mut self, parameters: &[Pair]) -> Vec<Reply> {
        let Source::Recording(recording) = &self.source else { return Vec::new() };
        let parameters = renamed(parameters, &self.names);
        let key = form_in_recordings(&self.auth.header, &self.auth.format);
        let mut replies = recording.replies_with("search", &key, &parameters);
        for reply in &mut replies {
            let question = said("search", &reply.asked);
            *reply = self.marked(reply.clone(), &reply.asked).0;
            reply.asked = usual(&reply.asked, &self.names);
            reply.names = Arc::clone(&self.names);
            *reply = reply.clone().with_header(self.total_header.as_deref());
            if self.calls.iter().all(|call| call.question != question) {
                self.calls.push(Call { question, status: Some(reply.status) });
            }
        }
        replies
    }

    /// Responses of a rate limit other than status 429, after which the same request was answered.
    pub(super) fn limited(&self) -> Vec<Reply> {
        match &self.source {
            Source::Service(_) => self.limited.clone(),
            Source::Recording(recording) => recording.limited(),
        }
    }

    /// True for a refusal that may be a rate limit in unknown words: the key was accepted before, and the text has a number of seconds.
    fn may_wait(&self, status: u16, text: &str) -> bool {
        let is_accepted = self.calls.iter().any(|call| call.status == Some(200));
        status == 403 && !self.waited_for_nothing && is_accepted && seconds_in(text).is_some()
    }

    /// Sends the key in another form from now on.
    pub(super) fn send_key(&mut self, header: &str, format: &str) {
        self.auth = Auth { evidence: Evidence::Assumed, header: header.into(), format: format.into() };
    }

    /// Requests that may still be sent.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Sends a request; `None` if none is left, or if a recording has no response to it. Temporary trouble is not evidence: a
    /// request that fails or gets a 5xx status is retried once, and a throttled one after a wait.
    ///
    /// # Errors
    /// Returns the failure of a request that failed twice.
    pub(super) async fn ask(&mut self, path: &str, parameters: &[Pair]) -> Result<Option<Reply>> {
        let own = renamed(parameters, &self.names);
        let refused = |(name, _): &Pair| Some((name.clone(), self.refused.get(&(path.to_owned(), name.clone()))?));
        if let Some((name, refusal)) = own.iter().find_map(refused) {
            // Whatever its value, the parameter is refused again.
            let (asked, names) = (parameters.to_vec(), Arc::clone(&self.names));
            return Ok(Some(Reply { asked, names, unsent: Some(name), ..refusal.clone() }));
        }
        let reply = self.send(path, parameters).await?;
        let header = self.total_header.as_deref().filter(|_| path == "search");
        let reply = reply.map(|reply| reply.with_header(header));
        let Some(reply) = reply else { return Ok(None) };
        let (reply, left_out) = if path == "search" { self.marked(reply, &own) } else { (reply, Vec::new()) };
        if reply.is_refusal() {
            let says = [reply.statements(), reply.message()];
            for (name, _) in own {
                let is_refused = left_out.contains(&name) || says.iter().any(|text| refusal::refuses_name(text, &name));
                if name.len() > 2 && is_refused {
                    self.refused.insert((path.to_owned(), name), reply.clone());
                }
            }
        }
        Ok(Some(reply))
    }

    /// Learns from the response to a search which parameters the service has. Returns the response, marked if it is the refusal of one
    /// that its list of parameters lacks, and all such parameters.
    fn marked(&mut self, reply: Reply, own: &[Pair]) -> (Reply, Vec<String>) {
        if !reply.is_refusal() {
            let given: Vec<&str> = GIVEN.iter().map(|usual| own_name(usual, &self.names)).collect();
            let taken = own.iter().map(|(name, _)| name).filter(|name| given.contains(&name.as_str()));
            self.taken.extend(taken.cloned());
            return (reply, Vec::new());
        }
        let is_told = [reply.statements(), reply.message()].iter().any(|text| refusal::is_about_parameters(text));
        let left_out = self.left_out(&reply, own, is_told);
        (Reply { unknown: left_out.first().filter(|_| !is_told).cloned(), ..reply }, left_out)
    }

    /// Parameters that were sent and that a refusal names, but leaves out of its list of parameters. `is_told`: the refusal says that it
    /// is about parameters. Otherwise the list must have several of those that searches were answered with, or one, and be the same for
    /// another name.
    fn left_out(&mut self, refusal: &Reply, own: &[Pair], is_told: bool) -> Vec<String> {
        let listed = refusal::parameters(&refusal.message());
        let names = own.iter().map(|(name, _)| name);
        let left_out: Vec<String> =
            names.filter(|name| !listed.contains(name) && refusal.mentions(name).is_some()).cloned().collect();
        let Some(first) = left_out.first().filter(|_| listed.len() > 1) else { return Vec::new() };
        let known = listed.iter().filter(|name| self.taken.contains(*name)).count();
        let is_same = self.lists.iter().any(|(name, list)| *list == listed && !left_out.contains(name));
        self.lists.push((first.clone(), listed.clone()));
        let is_list = match is_told {
            true => known > 0 || self.taken.is_empty(),
            false => known > 1 || (known > 0 && is_same),
        };
        if !is_list {
            return Vec::new();
        }
        self.listed = listed;
        left_out
    }

    /// True if searches do not have this parameter.
    pub(super) fn refuses(&self, usual: &str) -> bool {
        self.refused.contains_key(&("search".to_owned(), own_name(usual, &self.names).to_owned()))
    }

    async fn send(&mut self, path: &str, parameters: &[Pair]) -> Result<Option<Reply>> {
        /// Throttled attempts per request.
        const WAITS: u32 = 5;
        /// Failed attempts per request.
        const FAILURES: u32 = 2;
        let asked = parameters;
        let sent = |(name, _): &&Pair| asked.iter().any(|(other, _)| other == name);
        let ends = self.ends.iter().filter(|_| path == "search" && !self.ends.iter().any(|end| sent(&end)));
        let own: Vec<Pair> = renamed(asked, &self.names).into_iter().chain(ends.cloned()).collect();
        let parameters = own.as_slice();
        asked.iter().for_each(|(name, _)| *self.sent.entry(name.clone()).or_default() += 1);
        let named = |reply: Reply| Reply { asked: asked.to_vec(), names: Arc::clone(&self.names), ..reply };
        let Service { source, base_url, key: secret } = match &self.source {
            Source::Service(service) => service.clone(),
            Source::Recording(recording) => {
                let form = form_in_recordings(&self.auth.header, &self.auth.format);
                let reply = recording.reply(path, &form, parameters);
                self.left = self.left.saturating_sub(1);
                let status = reply.as_ref().map(|reply| reply.status);
                let call = status.map(|status| Call { question: said(path, parameters), status: Some(status) });
                self.calls.extend(call.filter(|call| !self.calls.contains(call)));
                return Ok(reply.map(named));
            }
        };
        let (mut failed, mut waits, mut failures, mut limited) = (None, 0, 0, None);
        while waits < WAITS && failures < FAILURES {
            if self.left == 0 {
                return failed.map_or(Ok(None), Err);
            }
            self.left -= 1;
            let mut url = base_url.clone();
            url.set_path(&format!("{}/{path}", base_url.path().trim_end_matches('/')));
            if !parameters.is_empty() {
                url.query_pairs_mut().extend_pairs(parameters);
            }
            let question = String::from(secret.redact(&said(path, parameters)));
            let key = RequestKey::new(path, parameters.to_vec());
            let request = HttpRequest { url, headers: HeaderMap::from_iter([secret.header(&self.auth)?]) };
            match source.ask(Question::unlimited(key, request, PATIENCE)).await.map(|exchange| exchange.answer) {
                Ok(Some(Ok(answer))) => {
                    let status = answer.status.as_u16();
                    let text = String::from(secret.redact(&String::from_utf8_lossy(&answer.body)));
                    let is_limit = is_throttling(status, &answer.headers, &text);
                    let is_limit = is_limit || (waits == 0 && self.may_wait(status, &text));
                    self.calls.push(Call { question, status: Some(status) });
                    if is_limit && self.left > 0 {
                        waits += 1;
                        sleep(wait(&answer.headers, &text)?).await;
                        limited = (status != 429).then(|| Reply::new(parameters, status, answer.headers, text));
                        continue;
                    }
                    if status >= 500 && failures + 1 < FAILURES && self.left > 0 {
                        failures += 1;
                        sleep(PAUSE).await;
                        continue;
                    }
                    self.waited_for_nothing |= limited.is_some() && status == 403;
                    self.limited.extend(limited.filter(|_| (200..300).contains(&status)));
                    // Parsed after redaction: words of the body may be sent back as candidates.
                    return Ok(Some(named(Reply::new(parameters, status, answer.headers, text))));
                }
                Ok(Some(Err(failure))) => {
                    self.calls.push(Call { question, status: None });
                    failures += 1;
                    failed = Some(Error::new(failure.kind, secret.redact(&failure.message)));
                }
                Ok(None) => {
                    self.calls.push(Call { question, status: None });
                    failures += 1;
                    let message = format!("no response within {} s", PATIENCE.as_secs());
                    failed = Some(Error::new(ErrorKind::Timeout, message));
                }
                Err(Unsent::Refused(error)) => return Err(error),
                Err(Unsent::Panicked(message)) => return Err(Error::new(ErrorKind::Connect, message)),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => {
                Err(Error::new(ErrorKind::Throttled, "the service throttled every attempt").advice("probe again later"))
            }
        }
    }
}

/// The name of a parameter in requests, by its usual name. `names`: names that differ, as pairs of the usual name and the one in
/// requests.
pub(super) fn own_name<'n>(usual: &'n str, names: &'n [(String, String)]) -> &'n str {
    names.iter().find(|(name, _)| name == usual).map_or(usual, |(_, own)| own)
}

/// The usual name of a parameter, by its name in requests. `names`: as for [`own_name`].
pub(super) fn usual_name<'n>(own: &'n str, names: &'n [(String, String)]) -> &'n str {
    names.iter().find(|(_, name)| name == own).map_or(own, |(usual, _)| usual)
}

/// Sums up numbers of requests by the usual names of their parameters, which may have been learnt after the first requests. `names`: as
/// for [`own_name`].
pub(super) fn by_usual_names<'n>(
    requests: impl Iterator<Item = (&'n String, usize)>,
    names: &[(String, String)],
) -> BTreeMap<String, usize> {
    let mut sums: BTreeMap<String, usize> = BTreeMap::new();
    requests.for_each(|(name, number)| *sums.entry(usual_name(name, names).to_owned()).or_default() += number);
    sums
}

/// Parameters with their names in requests.
fn renamed(parameters: &[Pair], names: &[(String, String)]) -> Vec<Pair> {
    parameters.iter().map(|(name, value)| (own_name(name, names).to_owned(), value.clone())).collect()
}

/// Parameters with their usual names.
pub(super) fn usual(parameters: &[Pair], names: &[(String, String)]) -> Vec<Pair> {
    parameters.iter().map(|(name, value)| (usual_name(name, names).to_owned(), value.clone())).collect()
}

/// A request in one line.
fn said(path: &str, parameters: &[Pair]) -> String {
    let said: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{path} {}", said.join(" ")).trim_end().to_owned()
}

/// True for a throttled response: status 429, or 401, 403 or 503 with a `Retry-After` header or words about a rate
/// limit.
pub(super) fn is_throttling(status: u16, headers: &HeaderMap, text: &str) -> bool {
    let says = |word: &str| text.to_ascii_lowercase().contains(word);
    let words = ["rate limit", "ratelimit", "rate_limit", "too many requests", "throttl", "quota", "slow down"];
    let named = headers.contains_key(http::header::RETRY_AFTER) || words.into_iter().any(says);
    status == 429 || (matches!(status, 401 | 403 | 503) && named)
}

/// Detects the format of a rate limit's reset time: seconds since 1970, seconds from now, or a timestamp.
pub(super) fn reset_format(text: &str) -> ResetFormat {
    match text.parse::<i64>() {
        Ok(1_000_000_000..) => ResetFormat::EpochS,
        Ok(_) => ResetFormat::Seconds,
        Err(_) => ResetFormat::Iso,
    }
}

/// Returns the only number of a text that may be one of seconds to wait: `retry in 3 seconds`.
fn seconds_in(text: &str) -> Option<u64> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let mut numbers = words.filter_map(|word| word.parse().ok()).filter(|seconds| (1..=60).contains(seconds));
    numbers.next().filter(|_| numbers.next().is_none())
}

/// Returns the wait before a throttled request is retried: as requested by the service in a header or in its text, else 10 s.
fn wait(headers: &HeaderMap, text: &str) -> Result<Duration> {
    let usual = Profile::v4().throttle;
    let reset = usual.reset.as_deref().and_then(|name| headers.get(name)?.to_str().ok()).unwrap_or_default();
    let throttle = Throttle { reset_format: reset_format(reset.trim()), ..usual };
    let told = || seconds_in(text).map(Duration::from_secs);
    let wait = asked_wait(&throttle, headers).or_else(told).unwrap_or(Duration::from_secs(10));
    if wait > LONGEST_WAIT {
        let message = format!("the service requests a wait of {} s", wait.as_secs());
        return Err(Error::new(ErrorKind::Throttled, message).advice("probe again after that"));
    }
    Ok(wait)
}

/// True for a word by which a response says that it is an error.
fn is_failure(word: &str) -> bool {
    ["error", "fail", "failed", "failure"].contains(&word.to_ascii_lowercase().as_str())
}

impl Reply {
    pub(super) fn new(asked: &[Pair], status: u16, headers: HeaderMap, text: String) -> Self {
        let body = serde_json::from_str(&text).ok().map(super::shape::opened);
        let names = Arc::default();
        Self { asked: asked.to_vec(), status, headers, body, text, unknown: None, names, unsent: None }
    }

    /// The response with this header beside its body, as the client reads it for a profile with `headers`. An error stays as it is.
    pub(super) fn with_header(self, name: Option<&str>) -> Self {
        let Some(name) = name.filter(|_| !self.is_refusal()) else { return self };
        let read = value_of(&self.headers, name).map(|value| (name.to_owned(), value));
        let read: serde_json::Map<String, Value> = read.into_iter().collect();
        let body = self.body.map(|body| serde_json::json!({"body": body, "headers": read}));
        Self { body, ..self }
    }

    /// Time of the response by the service's clock, in microseconds since 1970.
    pub(super) fn date(&self) -> Option<i64> {
        let date = self.headers.get(http::header::DATE)?.to_str().ok()?;
        let date = httpdate::parse_http_date(date).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        i64::try_from(date.as_micros()).ok()
    }

    /// Status and beginning of the body in one line, for people.
    pub(super) fn line(&self) -> String {
        /// Characters of a body: a refusal is much shorter.
        const MOST: usize = 2_000;
        let line: String = one_line(&self.text).chars().take(MOST).collect();
        format!("status {}: {line}", self.status)
    }

    /// The message of a refusal, else its body.
    pub(super) fn message(&self) -> String {
        let message = self.body.as_ref().and_then(refusal::message).unwrap_or_else(|| self.text.clone());
        match &self.unknown {
            Some(name) => format!("unknown parameter {name}: {message}"),
            None => message,
        }
    }

    /// All that a refusal says, each text with the parameter that it is about.
    pub(super) fn statements(&self) -> String {
        self.body.as_ref().map_or_else(|| self.text.clone(), refusal::statements)
    }

    /// True if it refuses the request: by its status, without JSON, or with a sentence and neither numbers nor arrays.
    pub(super) fn is_refusal(&self) -> bool {
        let Some(body) = &self.body else { return true };
        let leaves = super::shape::leaves(body);
        let counts = leaves.iter().any(|(path, value)| {
            let name = path.last().map(|name| super::vocabulary::plain(name)).unwrap_or_default();
            let status = name.ends_with("status") || name.ends_with("code");
            // A list of words says what would be accepted.
            let words = value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(Value::is_string));
            let moment = super::shape::instant(value).is_some();
            (value.is_array() && !words) || (value.is_number() && !status && !moment)
        });
        let sentence = leaves.iter().any(|(_, value)| value.as_str().is_some_and(|text| text.contains(' ')));
        let failed = leaves.iter().any(|(path, value)| {
            let name = super::vocabulary::plain(&path.concat());
            matches!(name.as_str(), "success" | "ok") && value.as_bool() == Some(false)
                || matches!(name.as_str(), "status" | "result") && value.as_str().is_some_and(is_failure)
        });
        !(200..300).contains(&self.status) || failed || (sentence && !counts)
    }

    /// True if it refuses the request because of one of these parameters, as far as it says why: the only evidence that a value was
    /// refused. The refusal of another parameter, because of which the request was not sent, is none.
    pub(super) fn is_refusal_of(&self, parameters: &[&str]) -> bool {
        let own: Vec<&str> = parameters.iter().map(|usual| own_name(usual, &self.names)).collect();
        let mut others =
            self.asked.iter().map(|(usual, _)| own_name(usual, &self.names)).filter(|name| !own.contains(name));
        let says = [self.statements(), self.message()];
        let is_unknown = |name: &str| says.iter().any(|text| refusal::refuses_name(text, name));
        self.is_refusal()
            && match &self.unsent {
                Some(name) => own.contains(&name.as_str()),
                None => own.iter().any(|name| is_unknown(name)) || !others.any(is_unknown),
            }
    }

    /// Position of a word in what the response says, as a word of its own: in its message, then in its other texts. Names of
    /// members are not what it says.
    pub(super) fn mentions(&self, word: &str) -> Option<usize> {
        let body = self.body.as_ref().filter(|body| body.is_object());
        let text = body.map_or_else(|| self.text.clone(), refusal::words);
        let word = own_name(word, &self.names);
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let places = text.match_indices(word).map(|(at, _)| at);
        places.into_iter().find(|at| {
            let before = text[..*at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(part) && !after.is_some_and(part)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_may_name_the_seconds_to_wait() {
        let cases = [
            ("{\"code\": \"OVER_QUOTA\", \"text\": \"limit exceeded, retry in 3 seconds\"}", Some(3)),
            ("Limite atteinte, réessayez dans 20 secondes", Some(20)),
            ("30 requests in 10 minutes", None),
            ("status 403, code E42", None),
        ];
        crate::cases::each(cases, |(text, seconds)| assert_eq!(seconds_in(text), seconds, "{text}"));
    }

    #[test]
    fn requests_before_a_name_was_learnt_count_as_those_after_it() {
        let [own, usual, other] = ["periodo", "duration", "lang"].map(str::to_owned);
        let names = [(usual.clone(), own.clone())];
        let sums = by_usual_names([(&own, 1), (&other, 2), (&usual, 3)].into_iter(), &names);
        assert_eq!(sums, BTreeMap::from([(usual, 4), (other, 2)]));
    }

    #[test]
    fn the_same_list_for_several_names_is_that_of_the_parameters() {
        let mut asker = Asker::recorded(Arc::new(Recording::default()));
        asker.names = Arc::new(vec![("aid".to_owned(), "tema".to_owned())]);
        let pair = |name: &str| (name.to_owned(), "x".to_owned());
        let reply =
            |asked: &[Pair], status: u16, body: &Value| Reply::new(asked, status, HeaderMap::new(), body.to_string());
        let refused = |asker: &mut Asker, name: &str, list: &str| {
            let asked = [pair("tema"), pair(name)];
            let body = json!({"mensaje": format!("{name} no existe. Hay: {list}")});
            let (reply, left_out) = asker.marked(reply(&asked, 400, &body), &asked);
            (left_out, refusal::values(&reply.message()))
        };
        let asked = [pair("tema")];
        asker.marked(reply(&asked, 200, &json!({"total": 7, "menciones": []})), &asked);
        // Once, it may be a list of values.
        assert_eq!(refused(&mut asker, "zona", "tema, idioma, orden").0, [""; 0]);
        let (left_out, values) = refused(&mut asker, "duration", "tema, idioma, orden");
        assert_eq!((left_out, values), (vec!["duration".to_owned()], Vec::new()));
        assert_eq!(asker.listed, ["tema", "idioma", "orden"]);
        // Without a name that is known to work.
        for name in ["sortBy", "orden"] {
            let (left_out, values) = refused(&mut asker, name, "recientes, antiguas");
            assert_eq!((left_out.len(), values.len()), (0, 2), "{name}");
        }
        // What it is about is said.
        let body = json!({"mensaje": "zona no existe. Parámetros admitidos: tema, idioma"});
        let asked = [pair("tema"), pair("zona")];
        assert_eq!(asker.marked(reply(&asked, 400, &body), &asked).1, ["zona"]);
    }
}
