//! Messages of a service about its response, such as warnings, judged by their words.
//!
//! ```text
//! "2 of 5 shards failed"         the result, or what it comes from, is not whole   Partial
//! "something was left out"       something is not whole                            Suspicious
//! "parameter x is deprecated"    about requests, versions, accounts                Harmless
//! "see ticket 4711"              anything else                                     Unknown
//! ```
//!
//! Closed by default: a message is harmless only if it speaks of something that cannot lack mentions. Texts in quotation marks and
//! backticks are values of the request, and say nothing.

/// Meaning of a message for the completeness of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Notice {
    /// Nothing.
    Harmless,
    /// Not known.
    Unknown,
    /// Something is not whole.
    Suspicious,
    /// The result is not whole.
    Partial,
}

/// Words of what is not whole, whatever else the message says.
const STRONG: [&str; 12] = [
    "partial",
    "partially",
    "incomplete",
    "truncated",
    "clipped",
    "capped",
    "sampled",
    "omitted",
    "timeout",
    "timeouts",
    "timedout",
    "aborted",
];
/// Words of what is not whole, unless it is announced for a later time.
const WEAK: [&str; 16] = [
    "degraded",
    "disconnected",
    "down",
    "dropped",
    "failed",
    "failing",
    "failure",
    "failures",
    "interrupted",
    "lost",
    "missing",
    "offline",
    "skipped",
    "unavailable",
    "unreachable",
    "unresponsive",
];
/// Two words of the same, in this order.
const PAIRS: [(&str, &str); 19] = [
    ("timed", "out"),
    ("not", "all"),
    ("not", "every"),
    ("not", "complete"),
    ("not", "available"),
    ("not", "loaded"),
    ("not", "searched"),
    ("left", "out"),
    ("cut", "off"),
    ("could", "not"),
    ("couldn", "t"),
    ("can", "not"),
    ("unable", "to"),
    ("did", "not"),
    ("didn", "t"),
    ("no", "response"),
    ("some", "results"),
    ("some", "mentions"),
    ("best", "effort"),
];
/// Words of a message about something that has not happened yet.
const LATER: [&str; 6] = ["planned", "scheduled", "soon", "tomorrow", "upcoming", "will"];
/// The result, and what it comes from.
const RESULT: [&str; 38] = [
    "cluster",
    "clusters",
    "count",
    "counts",
    "coverage",
    "data",
    "documents",
    "entries",
    "hits",
    "index",
    "items",
    "list",
    "mention",
    "mentions",
    "overview",
    "pages",
    "posts",
    "query",
    "record",
    "records",
    "replica",
    "response",
    "result",
    "results",
    "rows",
    "search",
    "searches",
    "segment",
    "source",
    "timeline",
    "total",
    "totals",
    "volume",
    "archive",
    "aggregation",
    "aggregations",
    "buckets",
    "dataset",
];
/// Parts of a service that may fail alone.
const PARTS: [&str; 25] = [
    "backend",
    "backends",
    "connectors",
    "engines",
    "feed",
    "feeds",
    "indexes",
    "indices",
    "node",
    "nodes",
    "partition",
    "partitions",
    "provider",
    "providers",
    "regions",
    "replicas",
    "searches",
    "segments",
    "server",
    "servers",
    "shard",
    "shards",
    "sources",
    "workers",
    "upstream",
];
/// Subjects that cannot lack mentions: requests, versions and accounts.
const REQUEST: [&str; 37] = [
    "account",
    "api",
    "beta",
    "billing",
    "certificate",
    "credit",
    "credits",
    "deprecated",
    "deprecation",
    "docs",
    "documentation",
    "email",
    "experimental",
    "header",
    "headers",
    "key",
    "license",
    "maintenance",
    "obsolete",
    "param",
    "parameter",
    "parameters",
    "params",
    "password",
    "plan",
    "profile",
    "quota",
    "rate",
    "renew",
    "sdk",
    "subscription",
    "sunset",
    "token",
    "trial",
    "upgrade",
    "user",
    "version",
];

impl Notice {
    /// Judges a message.
    pub(crate) fn of(text: &str) -> Self {
        let words = words(&unquoted(text));
        let is_in = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        let pair = words.windows(2).any(|two| PAIRS.contains(&(two[0].as_str(), two[1].as_str())));
        let later = is_in(&LATER);
        let sign = is_in(&STRONG) || counts_some(&words) || (!later && (is_in(&WEAK) || pair));
        let (of_result, of_request) = (is_in(&RESULT) || is_in(&PARTS), is_in(&REQUEST));
        let well = words.iter().all(|word| ["ok", "none", "no", "success", "warnings"].contains(&word.as_str()));
        match () {
            () if sign && of_result => Self::Partial,
            () if sign && !of_request => Self::Suspicious,
            () if sign => Self::Unknown,
            () if of_request || later || well => Self::Harmless,
            () => Self::Unknown,
        }
    }
}

/// True if a message counts fewer parts of a service than there are: `2 of 5 shards`.
fn counts_some(words: &[String]) -> bool {
    words.windows(4).any(|four| {
        let number = |at: usize| four[at].parse::<u64>().ok();
        let fewer = number(0).zip(number(2)).is_some_and(|(some, all)| some < all && some > 0);
        fewer && ["of", "out"].contains(&four[1].as_str()) && PARTS.contains(&four[3].as_str())
    })
}

/// A text without what it has in backticks or quotation marks.
fn unquoted(text: &str) -> String {
    let parts = text.split(['`', '"']).enumerate();
    parts.filter(|(at, _)| at % 2 == 0).map(|(_, part)| part).collect::<Vec<_>>().join(" ")
}

/// The words of a name or a message in lower case: split at all characters that are no letters or digits, and before capital letters.
pub(crate) fn words(name: &str) -> Vec<String> {
    let (mut words, mut before) = (vec![String::new()], ' ');
    for character in name.chars() {
        let begins = character.is_uppercase() && (before.is_lowercase() || before.is_numeric());
        if begins || !character.is_alphanumeric() {
            words.push(String::new());
        }
        if character.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(character.to_lowercase());
        }
        before = character;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn a_message_is_harmless_only_if_it_cannot_be_about_missing_mentions() {
        let cases = [
            ("PARTIAL_RESULTS 3 of 5 shards failed", Notice::Partial),
            ("partialResults", Notice::Partial),
            ("2 of 8 partitions unavailable", Notice::Partial),
            ("1 of 3 feeds answered", Notice::Partial),
            ("not all searches could be loaded", Notice::Partial),
            ("some sources unavailable", Notice::Partial),
            ("The response is partial, see the docs of your plan", Notice::Partial),
            ("something was left out", Notice::Suspicious),
            ("TIMEOUT", Notice::Suspicious),
            ("Couldn't load everything", Notice::Suspicious),
            ("parameter `missing` could not be parsed", Notice::Unknown),
            ("no synonyms of \"missing results\"", Notice::Unknown),
            ("E4711", Notice::Unknown),
            ("rate limit: 3 of 60 requests left", Notice::Harmless),
            ("The parameter `sort` is deprecated; use `sortBy`", Notice::Harmless),
            ("API version 4 is supported until 2027", Notice::Harmless),
            ("The index will be unavailable on Sunday", Notice::Harmless),
            ("renew your account", Notice::Harmless),
            ("", Notice::Harmless),
            ("none", Notice::Harmless),
        ];
        each(cases, |(text, notice)| assert_eq!(Notice::of(text), notice, "{text}"));
    }
}
