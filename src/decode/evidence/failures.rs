//! Members that report a failure, or a partial result.

use super::lengths::{is_of_counts, length};
use super::subject::{About, PARTS, completes_input, is_of_parts, is_of_response};
use super::{DEPTH, LONGEST, Member, Says, bare, count_of, has_items, is_none, members_of, tells};
use crate::decode::json::{Json, Raw};
use crate::error::notice::{Notice, words};

/// True if a member reports a failure, or a partial result. `within`: the names of the objects around it.
pub(super) fn reports_failure(
    words: &[String],
    within: &[String],
    about: About,
    raw: Raw<'_>,
    siblings: &[Member<'_>],
) -> bool {
    let stated = Stated { words, within, about, raw, siblings };
    !stated.is_option() && stated.reports_failure()
}

/// Words of what failed, or is a part. The first five are failures.
const BAD: [&str; 16] = [
    "error",
    "errors",
    "failed",
    "failure",
    "failures",
    "incomplete",
    "partial",
    "partially",
    "truncated",
    "degraded",
    "aborted",
    "interrupted",
    "timeout",
    "timedout",
    "sampled",
    "clipped",
];
const FAILURES: usize = 5;
/// Two words of the same, in this order.
const PAIRS: [(&str, &str); 11] = [
    ("timed", "out"),
    ("time", "out"),
    ("terminated", "early"),
    ("cut", "off"),
    ("search", "cutoff"),
    ("quota", "exceeded"),
    ("limit", "exceeded"),
    ("limit", "reached"),
    ("cap", "reached"),
    ("max", "reached"),
    ("maximum", "reached"),
];
/// Words of what is whole.
const GOOD: [&str; 9] =
    ["complete", "completed", "success", "successful", "succeeded", "ok", "whole", "exhaustive", "ready"];
/// Not yet the answer, or not from the data.
const BUSY: [&str; 4] = ["processing", "indexing", "reindexing", "maintenance"];
/// The same, said of the response itself: a saved search may run as well.
const UNREADY: [&str; 9] =
    ["building", "calculating", "computing", "loading", "pending", "queued", "refreshing", "running", "unfinished"];
const AWAY: [&str; 3] = ["unavailable", "unreachable", "unresponsive"];
/// Words of indexes that are built.
const INDEXES: [&str; 6] = ["backfill", "index", "indexing", "reindex", "reindexing", "search"];

/// A member, with what stands around it and beside it.
#[derive(Clone, Copy)]
struct Stated<'s, 't> {
    words: &'s [String],
    within: &'s [String],
    about: About,
    raw: Raw<'t>,
    siblings: &'s [Member<'t>],
}

impl Stated<'_, '_> {
    fn has(&self, list: &[&str]) -> bool {
        self.words.iter().any(|word| list.contains(&word.as_str()))
    }

    fn ends_with(&self, list: &[&str]) -> bool {
        self.words.last().is_some_and(|word| list.contains(&word.as_str()))
    }

    /// True if one of these is its only word.
    fn is(&self, list: &[&str]) -> bool {
        matches!(self.words, [word] if list.contains(&word.as_str()))
    }

    /// As [`is`](Self::is), for a member of an object that describes the response.
    fn is_said_of_response(&self, list: &[&str]) -> bool {
        is_of_response(self.within) && self.is(list)
    }

    /// True if the words of the object around it meet a condition.
    fn is_in(&self, condition: impl Fn(&[String]) -> bool) -> bool {
        self.within.last().is_some_and(|name| condition(&words(name)))
    }

    fn is_in_overview(&self) -> bool {
        self.is_in(|names| names == ["overview"])
    }

    /// True for what was asked for, or is possible: it is not what happened.
    fn is_option(&self) -> bool {
        const OPTION: [&str; 13] = [
            "allow", "allowed", "allows", "accept", "support", "supports", "include", "ignore", "retry", "show",
            "return", "enable", "can",
        ];
        // Objects whose members are options.
        const OPTIONS: [&str; 5] = ["capabilities", "features", "permissions", "preferences", "settings"];
        let options = |names: &[String]| names.iter().any(|name| OPTIONS.contains(&name.as_str()));
        self.has(&OPTION) || (self.about == About::Other && self.is_in(options))
    }

    fn reports_failure(mut self) -> bool {
        let Self { words, within, raw, siblings, .. } = self;
        if !matches!(raw.first(), b'{' | b'[') && is_of_another(words) {
            self.about = About::Other;
        }
        if self.about == About::Other {
            return self.is_affirmed() && self.is_a_part_of_another();
        }
        const ERRORS: [&str; 6] = ["exception", "exceptions", "fault", "faults", "problem", "problems"];
        if is_error_code(words, within, raw)
            || (is_of_response(within) && counts_failures(words, raw))
            || (self.ends_with(&ERRORS) && tells(raw, 0))
            || is_sampled(words, within, raw, siblings)
        {
            return true;
        }
        if self.is_affirmed() && self.is_bad() {
            return !self.is_paged();
        }
        let of_response = |list: &[&str]| self.is_said_of_response(list);
        let is_unready = of_response(&["capped", "cut"]) || of_response(&AWAY) || of_response(&UNREADY);
        (self.is_affirmed() && is_unready) || self.value_reports_failure()
    }

    /// Judges the value of a member of the response, or of something unknown.
    fn value_reports_failure(&self) -> bool {
        let Self { words, about, raw, siblings, .. } = *self;
        let known = about == About::Response;
        match raw.first() {
            b't' => self.is_in_progress() || (known && self.is(&BUSY)),
            b'f' => self.fails() || (self.is_in_overview() && self.is_said_of_response(&["done", "final", "finished"])),
            b'[' | b'{' if is_warning(words) => notice_of(raw, 0) >= Notice::Suspicious,
            b'[' if warns(words) => speaks_of_a_part(raw, 0),
            b'[' => self.lists_failures() && has_items(raw),
            b'{' => (self.ends_with(&BAD[..FAILURES]) || self.is_said_of_response(&AWAY)) && tells(raw, 0),
            b'"' if matches!(raw.inner(), "false" | "False" | "FALSE") => self.fails(),
            b'"' if matches!(&*raw.inner().to_lowercase(), "no" | "n") && self.is_of_whole() => self.fails(),
            b'"' if raw.inner() == "0" && self.is_flag_of_whole() => self.fails(),
            b'0' if raw.text == "0" && self.is_flag_of_whole() && known && siblings_are_no_counts(siblings) => true,
            b'"' if is_warning(words) => notice_of(raw, 0) >= Notice::Suspicious,
            b'"' if warns(words) => speaks_of_a_part(raw, 0),
            b'0'..=b'9' | b'"' if is_fraction(words, about, raw) => true,
            b'"' => self.text_reports_failure(),
            b'1'..=b'9' => self.number_reports_failure(),
            _ => false,
        }
    }

    /// True for a name of what failed, or is a part. The limit of requests says nothing about a result.
    fn is_bad(&self) -> bool {
        self.has(&BAD) || self.has_pair()
    }

    fn has_pair(&self) -> bool {
        !self.has(&["rate"]) && self.words.windows(2).any(|two| PAIRS.contains(&(two[0].as_str(), two[1].as_str())))
    }

    /// True for a value that affirms the name. A text beside an error is its message, `timeout: 1` is a duration, and
    /// `partialMatches: 1` a count.
    fn is_affirmed(&self) -> bool {
        match self.raw.first() {
            b't' => true,
            b'"' => match &*self.raw.inner().to_lowercase() {
                "true" => true,
                "yes" | "y" | "1" => self.is_flag(),
                _ => false,
            },
            _ => self.raw.text == "1" && self.is_flag(),
        }
    }

    /// True for the name of what is true or false, in whatever notation.
    fn is_flag(&self) -> bool {
        const FLAGS: [&str; 8] =
            ["incomplete", "partial", "partially", "truncated", "degraded", "aborted", "interrupted", "clipped"];
        let pair = || {
            let last_two = self.words.last_chunk::<2>().map(|[first, second]| (first.as_str(), second.as_str()));
            last_two.is_some_and(|two| self.has_pair() && PAIRS.contains(&two))
        };
        (self.ends_with(&FLAGS) || pair()) && !self.is_in(is_of_counts)
    }

    /// True for a part that may be one of the response, although its name is that of something else: not `profileIncomplete`.
    fn is_a_part_of_another(&self) -> bool {
        let timed_out = self.words.windows(2).any(|two| two == ["timed", "out"]);
        let account = |of: &String| ["account", "profile"].contains(&of.as_str());
        let of_account = matches!(self.words, [.., of, last] if last == "incomplete" && account(of));
        (self.has(&["incomplete", "partial", "partially", "timedout", "truncated"]) || timed_out) && !of_account
    }

    /// True if rows continue on another page: this one is not all of them, and says so.
    fn is_paged(&self) -> bool {
        self.has(&["incomplete", "partial", "truncated"])
            && !self.is_in_overview()
            && self.siblings.iter().any(|(name, raw)| {
                matches!(
                    length(&words(name), self.within, *raw, &[]),
                    Some(Says::More | Says::Pages(2..) | Says::LastPage(2..))
                )
            })
    }

    /// True in an object about an index: `indexing: {inProgress: true}`.
    fn is_in_index(&self) -> bool {
        self.is_in(
            |names| matches!(names, [word] if INDEXES[..5].contains(&word.as_str()) || BUSY.contains(&word.as_str())),
        )
    }

    /// True for the name of work that goes on: `indexingInProgress`.
    fn is_in_progress(&self) -> bool {
        let ends = matches!(self.words, [.., first, second] if first == "in" && second == "progress");
        let indexes = self.words.len() == 2 || self.has(&INDEXES);
        (ends && indexes && (is_of_response(self.within) || self.is_in_index()))
            || (self.is_in_index() && self.is(&["active", "ongoing", "pending", "running"]))
    }

    /// True for the name of a whole, such as `complete`. A number beside others is a count.
    fn is_of_whole(&self) -> bool {
        !self.is_bad() && !self.is_paged() && !self.is_in(is_of_counts) && self.ends_with(&GOOD)
    }

    /// As [`is_of_whole`](Self::is_of_whole), for one that may be 0: `complete: 0`.
    fn is_flag_of_whole(&self) -> bool {
        const FLAGS: [&str; 6] = ["complete", "exhaustive", "ok", "ready", "success", "whole"];
        let is_flag = self.ends_with(&FLAGS)
            && (self.words.len() == 1 || self.has(&["all", "is", "result", "results", "search"]));
        is_flag && self.is_of_whole()
    }

    /// True for a name whose negation reports a failure.
    fn fails(&self) -> bool {
        let known = self.about == About::Response;
        self.has(&GOOD) && !self.is_bad() && !self.is_paged() && (known || !self.has(&["ready"]))
    }

    /// True for the name of parts that are not there. Numbers of sources that are excluded may be those of the request, elsewhere.
    fn names_absent(&self) -> bool {
        self.has(&["missing", "unavailable", "unreachable", "unresponsive", "skipped"])
            || (is_of_response(self.within) && self.has(&["excluded", "omitted", "dropped"]))
    }

    /// True for the name of a list of failures. Sources that are excluded are the choice of the saved search.
    fn lists_failures(&self) -> bool {
        let failures = &BAD[..FAILURES];
        let parts = self.has(&PARTS) && !self.has(&["excluded"]) && (self.names_absent() || self.has(failures));
        let left_out =
            self.is_said_of_response(&AWAY) || self.is_said_of_response(&["dropped", "missing", "omitted", "skipped"]);
        self.ends_with(failures) || parts || left_out
    }

    fn text_reports_failure(&self) -> bool {
        const STATES: [&str; 9] =
            ["status", "state", "result", "completeness", "coverage", "outcome", "quality", "health", "fidelity"];
        let text = self.raw.inner().to_lowercase().replace([' ', '-'], "_");
        let known = self.about == About::Response;
        // `teamError: "upstream timeout"`, and not one of an earlier response or of a saved search.
        let own = known && !self.has(&["last", "latest", "margin", "previous"]) && self.within.len() <= 2;
        let message = (self.ends_with(&["error", "errors", "failure"]) && (own || self.words.len() == 1))
            || matches!(self.words, [first, second] if first == "error" && ERROR_TEXTS.contains(&second.as_str()));
        // The state of a part may stand under its name: `sources: {"x.com": "timeout"}`.
        let state = self.ends_with(&STATES) || self.is_in(is_of_parts);
        let away = self.is_said_of_response(&AWAY) && text != "no";
        (state && self.is_state_of_a_part(&text)) || ((message || away) && !is_none(&text))
    }

    fn is_state_of_a_part(&self, text: &str) -> bool {
        const UNFINISHED: [&str; 4] = ["pending", "processing", "in_progress", "queued"];
        // A saved search may run, wait or have expired as well.
        const OF_RESPONSE: [&str; 14] = [
            "running",
            "started",
            "starting",
            "waiting",
            "loading",
            "computing",
            "calculating",
            "building",
            "refreshing",
            "unfinished",
            "not_ready",
            "canceled",
            "cancelled",
            "expired",
        ];
        BAD.contains(&text)
            || ["timed_out", "fail"].contains(&text)
            || text.starts_with("partial_")
            || (self.about == About::Response && UNFINISHED.contains(&text))
            || ((is_of_response(self.within) || self.is_in_index()) && OF_RESPONSE.contains(&text))
    }

    fn number_reports_failure(&self) -> bool {
        let Self { words: own, within, raw, siblings, .. } = *self;
        let of = |name: &str| siblings.iter().find(|(sibling, _)| words(sibling) == [name]).map(|(_, raw)| *raw);
        let number = |name: &str| of(name).and_then(|raw| raw.text.parse::<u64>().ok());
        let parts = || self.has(&PARTS) || ["total", "successful", "succeeded"].iter().any(|name| of(name).is_some());
        // Shards that were skipped need not be read.
        let missing = answered(own, within, siblings).is_some_and(|good| {
            let skipped = number("skipped").unwrap_or_default();
            count_of(raw).is_some_and(|all| good.saturating_add(skipped) < all)
        });
        // Shards that a query need not read are skipped, too, but clusters are not.
        let clusters = || self.is_in(|names| names.iter().any(|name| name == "clusters"));
        let lacks = (self.names_absent() && (self.has(&PARTS) || clusters())) || self.is_said_of_response(&AWAY);
        let left_out = self.has(&["omitted", "suppressed", "dropped", "withheld"])
            && (self.has(&["count", "results", "result", "mentions", "items", "records", "rows", "documents"])
                || (own.len() == 1 && is_of_response(within)));
        (self.has(&BAD[..FAILURES]) && (parts() || self.has(&["partial"]))) || missing || lacks || left_out
    }
}

/// True if a member may report a failure or a partial result, as far as anyone knows: a warning of unknown meaning, or a word that is
/// also said of whole results.
pub(super) fn may_report_failure(words: &[String], within: &[String], about: About, raw: Raw<'_>) -> bool {
    const FLAGS: [&str; 6] = ["approximate", "fallback", "limited", "reduced", "restricted", "stale"];
    if about == About::Other {
        return false;
    }
    if is_warning(words) {
        return !raw.is_null() && notice_of(raw, 0) == Notice::Unknown;
    }
    let flag = matches!(words, [word] if FLAGS.contains(&word.as_str()));
    is_of_response(within) && flag && (raw.first() == b't' || (raw.first() == b'"' && tells(raw, 0)))
}

/// True for the name of a member about something else than the response: `billingStatus`, `autoComplete`. Those of objects say so
/// themselves.
fn is_of_another(words: &[String]) -> bool {
    const RESULT: [&str; 9] =
        ["data", "list", "mentions", "query", "response", "result", "results", "search", "searches"];
    let named = |word: &String| {
        // The entries of a list may be those of a team.
        !["team", "teams", "folder", "folders"].contains(&word.as_str())
            && About::of(std::slice::from_ref(word)) == About::Other
    };
    words.len() > 1
        && (words.iter().any(named) || completes_input(words))
        && !words.iter().any(|word| RESULT.contains(&word.as_str()))
}

/// True for the number of failures of a response: `errors: 2`, `errorCount: 3`, `failed: 1`.
fn counts_failures(words: &[String], raw: Raw<'_>) -> bool {
    const FAILURES: [&str; 7] = ["error", "errors", "exceptions", "failed", "failure", "failures", "timeouts"];
    const COUNTED: [&str; 9] = ["count", "counts", "fatal", "num", "number", "of", "queries", "search", "total"];
    let failures = |word: &String| FAILURES.contains(&word.as_str());
    // The names of counts are those of failures and of counting. `error: 7` is a code, and 200 none of an error.
    let counts = words.iter().any(failures)
        && words.iter().all(|word| failures(word) || COUNTED.contains(&word.as_str()) || word == "timeout");
    let timeouts = matches!(words, [first, second] if first == "timeout" && second == "count");
    let number = matches!(raw.first(), b'0'..=b'9' | b'"').then(|| count_of(raw)).flatten();
    (counts || timeouts) && number.is_some_and(|number| number > 0 && !(number == 200 && words == ["error"]))
}

/// The number of those that answered, beside the number of all of them: `total: 5, successful: 3`, `sourcesQueried: 5,
/// sourcesResponded: 3`.
fn answered(words: &[String], within: &[String], siblings: &[Member<'_>]) -> Option<u64> {
    const ALL: [&str; 4] = ["total", "expected", "queried", "requested"];
    const GOOD: [&str; 2] = ["successful", "succeeded"];
    // Said of parts, these are about the response. Mentions may be answered, too.
    const WELL: [&str; 9] =
        ["answered", "completed", "healthy", "ok", "online", "reachable", "responded", "responding", "up"];
    let place = |words: &[String], list: &[&str]| words.iter().position(|word| list.contains(&word.as_str()));
    let without = |words: &[String], place: usize| {
        let (before, after) = (&words[..place], &words[place + 1..]);
        [before, after].concat()
    };
    let kind = without(words, place(words, &ALL)?);
    let of_parts = kind.iter().any(|word| PARTS.contains(&word.as_str()))
        || within.last().map(|name| self::words(name)).is_some_and(|name| is_of_parts(&name) || name == ["hosts"]);
    if !of_parts && !kind.is_empty() {
        return None;
    }
    let numbers = siblings.iter().filter_map(|(name, raw)| {
        let words = self::words(name);
        let place = place(&words, &GOOD).or_else(|| place(&words, &WELL).filter(|_| of_parts))?;
        (without(&words, place) == kind).then(|| count_of(*raw))?
    });
    numbers.max()
}

/// True if none of the members of an object counts what is not complete.
fn siblings_are_no_counts(siblings: &[Member<'_>]) -> bool {
    const COUNTS: [&str; 7] = ["failed", "incomplete", "pending", "queued", "remaining", "running", "total"];
    !siblings.iter().any(|(name, raw)| {
        matches!(&*words(name), [word] if COUNTS.contains(&word.as_str())) && count_of(*raw).is_some()
    })
}

/// True if a member says that a result is computed from a sample: `sampling: 0.5`, `samplingLevel: "SMALL"`, `enabled: true` in an
/// object `sampling`.
fn is_sampled(words: &[String], within: &[String], raw: Raw<'_>, siblings: &[Member<'_>]) -> bool {
    const LEVELS: [&str; 5] = ["level", "method", "mode", "strategy", "type"];
    const RATES: [&str; 7] = ["factor", "fraction", "percent", "percentage", "rate", "ratio", "share"];
    const SWITCHES: [&str; 4] = ["active", "applied", "enabled", "on"];
    // Levels that read everything, or that need not be of a sample.
    const WHOLE: [&str; 17] = [
        "",
        "100%",
        "all",
        "auto",
        "complete",
        "default",
        "disabled",
        "exact",
        "false",
        "full",
        "never",
        "no",
        "none",
        "null",
        "off",
        "unsampled",
        "whole",
    ];
    let contains = |words: &[String], list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let around = |list: &[&str]| within.last().is_some_and(|name| contains(&self::words(name), list));
    let inside = |list: &[&str]| words.len() == 1 && around(list);
    let alone = matches!(words, [word] if word == "sampling");
    let last = |list: &[&str]| words.last().is_some_and(|word| list.contains(&word.as_str()));
    // A sample may be of a type without being one of the result.
    let sampling = contains(words, &["sampling"]) || inside(&["sampling"]) || words == ["sample", "level"];
    let level = alone || (sampling && last(&LEVELS));
    let rate = alone || ((sampling || contains(words, &["sample"]) || inside(&["sample"])) && contains(words, &RATES));
    let on = alone || (inside(&["sampling"]) && last(&SWITCHES));
    let sampled = match raw.first() {
        b't' => on,
        b'0'..=b'9' => rate && is_part(raw),
        b'"' if share_of(raw).is_some() => rate && is_part(raw),
        b'"' => {
            let text = raw.inner().to_lowercase();
            (level && !WHOLE.contains(&text.trim())) || (on && text == "true")
        }
        _ => false,
    };
    // `enabled: false, rate: 0.5`, and `enabled: true, rate: 1`
    let whole = |(name, raw): &Member<'_>| {
        let words = self::words(name);
        let named = |list: &[&str]| words.last().is_some_and(|word| list.contains(&word.as_str()));
        (around(&["sample", "sampling"]) || contains(&words, &["sample", "sampling"]))
            && ((named(&SWITCHES) && raw.first() == b'f')
                || (named(&RATES) && share_of(*raw).is_some_and(|share| share == 1.0 || share == 100.0)))
    };
    sampled && (alone || !siblings.iter().any(whole))
}

/// A share of a whole as it is written, also in quotes and with a percent sign.
fn share_of(raw: Raw<'_>) -> Option<f64> {
    bare(raw).trim().trim_end_matches('%').trim_end().parse().ok()
}

/// True for the share of a whole, as a fraction or in percent, that is less than all of it.
fn is_part(raw: Raw<'_>) -> bool {
    share_of(raw).is_some_and(|share| (share > 0.0 && share < 1.0) || (share > 1.0 && share < 100.0))
        || (bare(raw).contains('%') && share_of(raw).is_some_and(|share| share == 1.0))
}

/// True for the name of a message.
fn warns(words: &[String]) -> bool {
    const MESSAGES: [&str; 6] = ["message", "messages", "notice", "notices", "info", "notes"];
    words.len() == 1 && MESSAGES.contains(&words[0].as_str())
}

/// True for the name of a warning, whose words are judged more strictly than those of a message.
fn is_warning(words: &[String]) -> bool {
    const TEXTS: [&str; 10] =
        ["code", "codes", "count", "data", "list", "message", "messages", "response", "search", "text"];
    words.iter().any(|word| word == "warning" || word == "warnings")
        && words.iter().all(|word| word == "warning" || word == "warnings" || TEXTS.contains(&word.as_str()))
}

/// The meaning of a warning, or the worst one of several. The texts of an object, such as its code, are one message.
fn notice_of(raw: Raw<'_>, depth: usize) -> Notice {
    if raw.text.len() > LONGEST {
        return Notice::Unknown;
    }
    match raw.first() {
        b'[' if depth < DEPTH => {
            let (mut json, mut first, mut worst) = (Json::new(raw.text), true, Notice::Harmless);
            json.enter();
            while let Ok(true) = json.item(&mut first) {
                let Ok(warning) = json.value() else { return Notice::Unknown };
                worst = worst.max(notice_of(warning, depth + 1));
            }
            worst
        }
        b'{' => {
            let mut texts = Vec::new();
            texts_of(raw, depth, &mut texts);
            notice_of_text(&texts.join(" "))
        }
        b'"' => notice_of_text(raw.inner()),
        _ if tells(raw, 0) => Notice::Unknown,
        _ => Notice::Harmless,
    }
}

/// The texts in an object of a warning.
fn texts_of(raw: Raw<'_>, depth: usize, texts: &mut Vec<String>) {
    match raw.first() {
        b'{' if depth < DEPTH => {
            members_of(raw).unwrap_or_default().iter().for_each(|(_, raw)| texts_of(*raw, depth + 1, texts));
        }
        // Links name pages, not what happened.
        b'"' if !raw.inner().starts_with("http") => texts.push(raw.inner().to_owned()),
        _ => {}
    }
}

fn notice_of_text(text: &str) -> Notice {
    let notice = Notice::of(text);
    // `Your team has members who did not answer the survey`
    let other = words(text).iter().any(|word| About::of(std::slice::from_ref(word)) == About::Other);
    if other && notice == Notice::Suspicious { Notice::Unknown } else { notice }
}

/// True if a message, or one of several, says that a result is not all of it.
fn speaks_of_a_part(raw: Raw<'_>, depth: usize) -> bool {
    // Said of results, or of what they come from.
    const SIGNS: [&str; 10] = [
        "partial result",
        "results are partial",
        "result is partial",
        "timed out",
        "did not answer",
        "did not respond",
        "not all results",
        "some results",
        "results may be missing",
        "results were omitted",
    ];
    // Also said of other things.
    const OF_ANYTHING: [&str; 3] = ["incomplete", "truncated", "unavailable"];
    // Results, and what they come from, beside the parts of a service.
    const RESULT: [&str; 14] = [
        "coverage", "data", "index", "list", "mentions", "query", "records", "response", "result", "results", "rows",
        "search", "searches", "source",
    ];
    if raw.text.len() > LONGEST {
        return false;
    }
    match raw.first() {
        b'[' if depth < DEPTH => {
            let (mut json, mut first) = (Json::new(raw.text), true);
            json.enter();
            while let Ok(true) = json.item(&mut first) {
                let Ok(message) = json.value() else { return false };
                if speaks_of_a_part(message, depth + 1) {
                    return true;
                }
            }
            return false;
        }
        b'{' if depth < DEPTH => {
            let speaks = |(_, raw): &Member<'_>| speaks_of_a_part(*raw, depth + 1);
            return members_of(raw).is_ok_and(|members| members.iter().any(speaks));
        }
        b'"' => {}
        _ => return false,
    }
    let text = raw.inner().to_lowercase();
    let words = words(&text);
    // `Your account profile is incomplete`
    let of_result = words.iter().any(|word| RESULT.contains(&word.as_str()) || PARTS.contains(&word.as_str()));
    let other = !of_result && words.iter().any(|word| About::of(std::slice::from_ref(word)) == About::Other);
    // An announcement says nothing about this result.
    let announced = text.contains("will be unavailable");
    SIGNS.iter().any(|sign| text.contains(sign))
        || (!other && OF_ANYTHING.iter().any(|sign| text.contains(sign) && !(announced && *sign == "unavailable")))
}

/// True for the code of an error in a response of success: `code: 50001`, `status: 500`, `errno: 7`, `ret: -1`.
fn is_error_code(words: &[String], within: &[String], raw: Raw<'_>) -> bool {
    let names: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = bare(raw);
    // `206 Partial Content`
    let text = match text.split_once(' ') {
        Some((code, reason)) if code.len() == 3 && reason.starts_with(|first: char| first.is_alphabetic()) => code,
        _ => text,
    };
    let Ok(code) = text.parse::<i64>() else { return false };
    // Elsewhere, a code is one of the data.
    const AROUND: [&str; 6] = ["error", "header", "meta", "response", "result", "status"];
    if within.last().is_some_and(|name| !AROUND.contains(&name.as_str())) {
        return false;
    }
    match names.as_slice() {
        ["errno" | "errcode"] | ["err" | "error", "no" | "code" | "number"] => code != 0 && code != 200,
        ["status" | "code" | "ret" | "retcode"]
        | ["status" | "http" | "response" | "return" | "ret", "code" | "status"]
        | ["http" | "response", "status", "code"] => {
            // Codes of HTTP, and those of services that begin with them.
            let of_http = (3..=5).contains(&text.len()) && matches!(text.as_bytes()[0], b'4' | b'5');
            code < 0 || code == 206 || of_http
        }
        _ => false,
    }
}

/// True for the share of a whole, as a fraction or in percent, that is less than all of it: `coverage: 0.6`.
fn is_fraction(words: &[String], about: About, raw: Raw<'_>) -> bool {
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    // A service may know the sentiment of a part of its mentions, and return all of them.
    let of_values = has(&["author", "emotion", "geo", "language", "location", "sentiment"]);
    let completion = about == About::Response
        && has(&["completion"])
        && words.iter().all(|word| {
            ["completion", "index", "percent", "percentage", "query", "rate", "ratio", "result", "search"]
                .contains(&word.as_str())
        });
    // A number may count what is complete, a fraction may not.
    let complete = about == About::Response
        && matches!(words, [word] if word == "complete")
        && share_of(raw).is_some_and(|share| share < 1.0);
    let share = completion
        || complete
        || (has(&["completeness", "coverage"]) && !of_values)
        || (has(&["progress"]) && !of_values && about == About::Response)
        || (has(&["percent", "percentage", "pct"]) && has(&["complete", "completed", "done", "processed", "searched"]));
    share && is_part(raw)
}

/// Names of the texts of an error.
const ERROR_TEXTS: [&str; 9] = ["code", "description", "detail", "details", "message", "msg", "reason", "text", "type"];
