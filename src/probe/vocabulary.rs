//! What services of this kind call things: the names that are tried, and the columns that fields become.
//!
//! Names are guesses until an answer shows that they do something. Fields are compared without case and punctuation, first
//! by their whole path, then by its last step.

/// The name of a column with those of fields that become it, the likeliest first.
pub(super) type Names = &'static [(&'static str, &'static [&'static str])];

pub(super) const MENTION: Names = &[
    ("id", &["id", "mentionid", "uuid", "guid", "documentid"]),
    ("seq", &["seq", "sequence", "position", "number"]),
    ("url", &["url", "link", "permalink"]),
    ("title", &["title", "headline", "subject"]),
    ("text", &["text", "body", "content", "fulltext", "message"]),
    ("snippet", &["snippet", "excerpt", "abstract"]),
    (
        "published_at",
        &[
            "publishedat",
            "published",
            "publicationdate",
            "publishdate",
            "pubdate",
            "date",
            "ts",
            "timestamp",
            "time",
            "postedat",
            "createdat",
            "created",
        ],
    ),
    ("indexed_at", &["indexedat", "indexed", "indexedts", "collectedat", "collected", "crawledat", "addedat"]),
    ("updated_at", &["updatedat", "updated", "modifiedat", "modified", "editedat", "edited", "editedts"]),
    ("source", &["sourcename", "source", "sitename", "site", "domain"]),
    ("source_type", &["sourcetype", "sourcecategory", "mediatype"]),
    ("platform", &["sourceplatform", "platform", "network"]),
    ("author_id", &["authorid"]),
    ("author_name", &["authorname", "authorfullname"]),
    ("author_handle", &["authorhandle", "authorscreenname", "authorusername", "author", "handle", "username"]),
    ("author_followers", &["authorfollowers", "followers"]),
    ("language", &["language", "lang", "languagecode"]),
    ("country", &["country", "countrycode"]),
    ("sentiment", &["sentimentlabel", "sentiment", "tone", "polarity", "mood"]),
    ("sentiment_score", &["sentimentscore", "score"]),
    ("reach", &["reach", "audience", "potentialreach", "impressions"]),
    ("likes", &["engagementlikes", "interactionslikes", "likes"]),
    ("comments", &["engagementcomments", "interactionscomments", "comments"]),
    ("shares", &["engagementshares", "interactionsshares", "shares"]),
    ("views", &["engagementviews", "interactionsviews", "views"]),
    ("engagement", &["engagementtotal", "interactionstotal", "engagement", "interactions"]),
    ("type", &["type", "kind", "contenttype", "mentiontype"]),
    ("parent_id", &["parentid"]),
    ("tags", &["tags"]),
    ("hashtags", &["hashtags"]),
    ("images", &["images"]),
];

pub(super) const SAVED_SEARCH: Names = &[
    ("name", &["name", "title", "label"]),
    ("kind", &["scope", "type", "kind", "category"]),
    ("query", &["query", "q", "expression", "keywords"]),
    ("team_id", &["teamid"]),
    ("team_name", &["teamname", "ownerteam", "team"]),
    ("owner", &["owner", "ownername", "createdby"]),
    ("languages", &["languages"]),
    ("created_at", &["createdat", "created", "createdon"]),
    ("updated_at", &["updatedat", "updated", "modified"]),
    ("searched_at", &["searchedat", "at"]),
];

pub(super) const OVERVIEW: Names = &[
    ("total_mentions", &["totalmentions", "totalresults", "mentions", "results", "count", "total", "hits"]),
    ("total_relation", &["totalrelation", "relation"]),
    ("unique_authors", &["uniqueauthors", "authors"]),
    ("total_reach", &["totalreach", "sumreach", "reachsum", "reach", "audience"]),
    ("total_engagement", &["totalengagement", "sumengagement", "engagement", "interactions"]),
    ("positive", &["sentimentpositive", "bysentimentpositive", "positive"]),
    ("neutral", &["sentimentneutral", "bysentimentneutral", "neutral"]),
    ("negative", &["sentimentnegative", "bysentimentnegative", "negative"]),
    ("unknown", &["sentimentunknown", "bysentimentnone", "sentimentnone", "unknown"]),
];

/// Labels of top lists with what their names contain.
pub(super) const BREAKDOWNS: &[(&str, &[&str])] = &[
    ("source", &["source", "site", "domain"]),
    ("author", &["author"]),
    ("keyword", &["keyword", "topic", "phrase"]),
    ("hashtag", &["hashtag"]),
    ("language", &["lang"]),
    ("country", &["countr"]),
    ("sentiment", &["sentiment", "tone", "mood", "polarity"]),
];

/// Columns that services filter by, the likeliest first.
pub(super) const FILTERED: [&str; 5] = ["language", "sentiment", "source", "type", "country"];

/// What entries of a list are called that stand for mentions without a value.
pub(super) const MISSING: &[&str] = &["unknown", "none", "null", "missing", "unset", "undefined", "notset"];

/// Where an answer tells how many records there are.
pub(super) const TOTALS: &[&str] = &["total", "totalresults", "totalcount", "count", "hits", "resultcount", "numfound"];

/// Forms of the key, the likeliest first: header and value.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("Authorization", "Bearer {key}"),
    ("Authorization", "Token {key}"),
    ("Authorization", "Basic {base64}"),
    ("Authorization", "{key}"),
    ("X-Api-Key", "{key}"),
    ("Authorization", "ApiKey {key}"),
];

/// Parameters that might ask for mentions, the likeliest first.
pub(super) const FLAGS: &[(&str, &str)] = &[
    ("mentions", "true"),
    ("include", "mentions"),
    ("view", "full"),
    ("withMentions", "true"),
    ("includeMentions", "true"),
    ("data", "true"),
    ("results", "true"),
    ("expand", "mentions"),
    ("details", "true"),
];

/// Relative periods that show whether a unit is taken, and their hours.
pub(super) const UNITS: &[(&str, i64)] = &[("60d", 1_440), ("30d", 720), ("48h", 48), ("3w", 504)];

/// The hours of a relative period or a name that is known.
pub(super) fn hours(label: &str) -> Option<i64> {
    UNITS.iter().chain(PERIODS).find(|(known, _)| *known == label).map(|(_, hours)| *hours)
}

/// Names of periods, and their hours.
pub(super) const PERIODS: &[(&str, i64)] = &[
    ("last_year", 8_760),
    ("last_week", 168),
    ("last_month", 720),
    ("last_day", 24),
    ("last_quarter", 2_184),
    ("day", 24),
    ("week", 168),
    ("month", 720),
    ("year", 8_760),
];

/// Pairs of parameters that might say a period by its ends.
pub(super) const ENDS: &[(&str, &str)] = &[
    ("from", "to"),
    ("since", "until"),
    ("start", "end"),
    ("dateFrom", "dateTo"),
    ("startDate", "endDate"),
    ("begin", "finish"),
];

/// Values of the sort parameter, the likeliest first.
pub(super) const SORTS: &[&str] =
    &["date_desc", "date_asc", "reach_desc", "newest", "oldest", "recent", "reach", "-date", "date", "engagement_desc"];

/// Bounds of a page, and depths of paging, that are seen.
pub(super) const PAGE_BOUNDS: &[u64] = &[1_000, 500, 250, 200, 100, 50, 20, 10];
pub(super) const DEPTHS: &[u64] = &[500, 1_000, 2_000, 5_000, 10_000];

/// A name without case and punctuation.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The column that a field becomes, with how likely that is (0 is likeliest): by its whole path, then by its last step.
pub(super) fn column(names: Names, path: &[String]) -> Option<(&'static str, usize)> {
    let last = path.last().map(|step| plain(step)).unwrap_or_default();
    let find = |name: &str| {
        let mut found = names.iter().filter_map(|(column, known)| {
            let at = known.iter().position(|known| *known == name)?;
            Some((*column, at))
        });
        found.next()
    };
    find(&plain(&path.concat())).or_else(|| find(&last).map(|(column, at)| (column, at + 100)))
}
