//! The subject of a member: the response, or something that has a state and errors of its own.

use crate::error::notice::words;

/// The subject of the members of an object, by the names of the objects around them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// The response: `meta`, `shards`, `result`.
    Response,
    /// Unknown: states of work that goes on, such as `pending`, do not count, and all others do.
    Unknown,
    /// Something else: `user`, `billing`. Its states and errors do not count, and flags such as `truncated` do.
    Other,
}

impl About {
    /// The subject of what stands within objects of these names, outermost first.
    pub(super) fn of(names: &[String]) -> Self {
        let mut about = Self::Response;
        for name in names {
            let words = words(name);
            // `shard3`, and the plural.
            let is = |list: &[&str]| {
                words.iter().any(|word| {
                    let word = word.trim_end_matches(|last: char| last.is_ascii_digit());
                    list.contains(&word) || word.strip_suffix('s').is_some_and(|word| list.contains(&word))
                })
            };
            // Below a part of a service, names are those of parts.
            if is(&PARTS) {
                return about;
            }
            if is(&THINGS)
                || completes_input(&words)
                || words.iter().any(|word| BEGINNINGS.iter().any(|begin| word.starts_with(begin)))
            {
                return Self::Other;
            }
            // An item of an array has a number.
            if !is(&RESPONSE) && !name.bytes().all(|byte| byte.is_ascii_digit()) {
                about = Self::Unknown;
            }
        }
        about
    }
}

/// True for the name of completions of what is typed.
pub(super) fn completes_input(words: &[String]) -> bool {
    words.windows(2).any(|two| two == ["auto", "complete"])
}

/// True for the name of the parts of a service.
pub(super) fn is_of_parts(words: &[String]) -> bool {
    words.last().is_some_and(|word| PARTS.contains(&word.as_str()))
}

/// True for an object that describes the response, rather than something that it contains. `within`: the names of the objects
/// around its members.
pub(super) fn is_of_response(within: &[String]) -> bool {
    const AROUND: [&str; 14] = [
        "data",
        "diagnostics",
        "error",
        "execution",
        "header",
        "mentions",
        "meta",
        "metadata",
        "overview",
        "response",
        "result",
        "results",
        "search",
        "status",
    ];
    within.last().is_none_or(|name| {
        let words = words(name);
        words.iter().all(|word| AROUND.contains(&word.as_str())) && words != ["search"]
    })
}

/// Parts of a service that may fail alone.
pub(super) const PARTS: [&str; 20] = [
    "connectors",
    "engines",
    "feeds",
    "indexes",
    "providers",
    "shard",
    "shards",
    "node",
    "nodes",
    "partition",
    "partitions",
    "backend",
    "backends",
    "replicas",
    "servers",
    "sources",
    "clusters",
    "indices",
    "segments",
    "regions",
];

/// Things with a state and with errors of their own.
const THINGS: [&str; 64] = [
    "account",
    "alert",
    "autocomplete",
    "avatar",
    "billing",
    "campaign",
    "capabilities",
    "companies",
    "company",
    "contact",
    "contract",
    "credit",
    "customer",
    "dashboard",
    "device",
    "digest",
    "download",
    "email",
    "export",
    "feature",
    "folder",
    "import",
    "integration",
    "invitation",
    "invite",
    "invoice",
    "license",
    "login",
    "me",
    "member",
    "membership",
    "newsletter",
    "notification",
    "onboarding",
    "organisation",
    "organization",
    "owner",
    "payment",
    "permission",
    "plugin",
    "poll",
    "preference",
    "profile",
    "project",
    "registration",
    "reminder",
    "role",
    "schedule",
    "seat",
    "session",
    "setting",
    "setup",
    "subscription",
    "survey",
    "tag",
    "team",
    "template",
    "ticket",
    "tour",
    "trial",
    "tutorial",
    "upload",
    "widget",
    "workspace",
];

/// First letters of things whose names have several forms, such as users and web hooks.
const BEGINNINGS: [&str; 3] = ["user", "verification", "webhook"];

/// The response, its parts, and the work that it is the result of.
const RESPONSE: [&str; 92] = [
    "api",
    "async",
    "backfill",
    "body",
    "calculation",
    "cluster",
    "completeness",
    "completion",
    "computation",
    "content",
    "count",
    "coverage",
    "crawl",
    "cursor",
    "data",
    "database",
    "dataset",
    "diagnostics",
    "elastic",
    "elasticsearch",
    "engine",
    "envelope",
    "error",
    "execution",
    "feed",
    "fetch",
    "freshness",
    "gateway",
    "header",
    "health",
    "hit",
    "host",
    "index",
    "indexing",
    "info",
    "ingest",
    "ingestion",
    "item",
    "job",
    "list",
    "load",
    "loading",
    "mention",
    "meta",
    "metadata",
    "operation",
    "outcome",
    "output",
    "overview",
    "page",
    "pagination",
    "paging",
    "payload",
    "performance",
    "pipeline",
    "processing",
    "progress",
    "quality",
    "query",
    "reindexing",
    "replica",
    "replication",
    "request",
    "response",
    "result",
    "retrieval",
    "row",
    "run",
    "sample",
    "sampling",
    "scan",
    "search",
    "searches",
    "segment",
    "server",
    "service",
    "snapshot",
    "source",
    "state",
    "stats",
    "status",
    "stream",
    "summary",
    "system",
    "task",
    "timeline",
    "timing",
    "truncation",
    "volume",
    "warning",
    "window",
    "worker",
];
