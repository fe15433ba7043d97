//! Writes responses in each dialect: lists, overviews, records and errors.
//!
//! All responses start out in the form of V4; the other dialects convert it.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::dataset::{Corpus, SavedSearch};
use super::dialect::Preset;
use super::query::Query;
use super::record::rfc3339;

const TEAMS: [(&str, &str); 2] = [("t-12", "Comms"), ("t-27", "Research")];

/// The result of a search.
pub(super) struct Found<'a> {
    pub(super) request_id: String,
    pub(super) aid: &'a str,
    pub(super) query: &'a Query,
    pub(super) now: DateTime<Utc>,
    /// The overview in the form of V4.
    pub(super) overview: &'a str,
    /// The page, if requested.
    pub(super) page: Option<Records>,
}

/// A page of records.
pub(super) struct Records {
    /// A number, null, or what a fault makes of it.
    pub(super) total: Value,
    /// In the form of the dialect.
    pub(super) items: Vec<String>,
}

/// The content of an error response.
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) code: String,
    pub(super) message: String,
    pub(super) field: Option<String>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self { status, code: code.to_owned(), message: message.into(), field: None }
    }
}

impl Preset {
    /// Writes the body of `/list`.
    pub(super) fn list(self, corpus: &Corpus, team: usize, request_id: &str) -> String {
        let own = || corpus.searches.iter().filter(move |search| search.team == team);
        let entries = |kind: &str, there: fn(&SavedSearch) -> bool| -> Vec<Value> {
            own().filter(|search| there(search)).map(|search| self.entry(search, team, kind)).collect()
        };
        let personal = entries("saved", |search| search.personal);
        let shared = entries("team", |search| search.shared);
        let recent = corpus.recent[team].iter();
        let body = match self {
            Self::V4 => {
                let recent: Vec<_> = recent
                    .map(|(aid, query, at)| json!({"aid": aid, "query": query, "searchedAt": rfc3339(*at)}))
                    .collect();
                json!({
                    "data": {"savedSearches": personal, "teamSavedSearches": shared, "recentSearches": recent},
                    "requestId": request_id,
                })
            }
            Self::Flags => Value::from([personal, shared].concat()),
            Self::Pages => json!({"searches": {"own": personal, "shared": shared}}),
            Self::Names => {
                let recent: Vec<_> =
                    recent.map(|(aid, query, at)| json!({"aid": aid, "q": query, "at": at.timestamp()})).collect();
                json!({"status": "ok", "saved": personal, "team": shared, "recent": recent})
            }
        };
        body.to_string()
    }

    fn entry(self, search: &SavedSearch, team: usize, kind: &str) -> Value {
        let (id, name) = TEAMS[team];
        match self {
            Self::V4 => json!({
                "aid": search.aid,
                "name": search.name,
                "type": kind,
                "team": {"id": id, "name": name},
                "owner": search.personal.then_some("ana@example.com"),
                "query": search.query,
                "languages": ["en", "de"],
                "createdAt": rfc3339(search.created_at),
                "updatedAt": rfc3339(search.created_at),
            }),
            Self::Flags => json!({
                "aid": number(&search.aid),
                "title": search.name,
                "scope": kind,
                "expression": search.query,
                "created": search.created_at.timestamp_millis(),
            }),
            Self::Pages => json!({
                "aid": search.aid,
                "name": search.name,
                "query": search.query,
                "owner": {"team": name},
                "created_on": search.created_at.date_naive().to_string(),
            }),
            Self::Names => json!({"aid": search.aid, "label": search.name, "q": search.query}),
        }
    }

    /// Writes the body of `/search`.
    pub(super) fn search(self, found: &Found<'_>) -> String {
        let Found { request_id, aid, query, overview, page, .. } = found;
        let id = Value::from(request_id.as_str());
        let items = |records: &Records| records.items.join(",");
        // Records are inserted as text, so that numbers that fit no type are kept.
        match self {
            Self::V4 => {
                let (from, to) = query.echoed();
                let window = json!({
                    "from": rfc3339(from),
                    "to": rfc3339(to),
                    "timezone": query.said,
                    "asOf": rfc3339(query.variant.copied_at.unwrap_or(found.now)),
                });
                let aid = json!({"aid": aid});
                let mentions = page.as_ref().map(|page| {
                    format!(
                        ",\"mentions\":{{\"total\":{},\"totalRelation\":\"eq\",\"from\":{},\"size\":{},\"items\":[{}]}}",
                        page.total,
                        query.data_from,
                        query.data_size,
                        items(page)
                    )
                });
                let mentions = mentions.unwrap_or_default();
                format!("{{\"requestId\":{id},\"search\":{aid},\"window\":{window},\"overview\":{overview}{mentions}}}")
            }
            Self::Flags => match page {
                Some(page) => format!("[{}]", items(page)),
                None => json!({"aid": number(aid), "summary": self.overview(overview, query)}).to_string(),
            },
            Self::Pages => {
                let page = page.as_ref();
                let number = query.data_from / query.data_size.max(1) + 1;
                format!(
                    "{{\"query\":{},\"stats\":{},\"paging\":{},\"data\":[{}]}}",
                    json!({"aid": aid, "timezone": query.said, "from": rfc3339(query.echoed().0), "to": rfc3339(query.echoed().1)}),
                    self.overview(overview, query),
                    json!({"count": page.map(|page| &page.total), "page": number}),
                    page.map(items).unwrap_or_default()
                )
            }
            Self::Names => {
                let results = page.as_ref().map(|page| format!(",\"results\":[{}]", items(page)));
                format!(
                    "{{\"status\":\"ok\",\"hits\":{},\"stats\":{}{}}}",
                    page.as_ref().map_or(&Value::Null, |page| &page.total),
                    self.overview(overview, query),
                    results.unwrap_or_default()
                )
            }
        }
    }

    /// The total that the dialect reports: that of `names` is approximate, rounded up to the next ten.
    pub(super) fn reported(self, total: i64) -> i64 {
        if self == Self::Names { (total + 9) / 10 * 10 } else { total }
    }

    /// Converts the overview from the form of V4.
    fn overview(self, overview: &str, query: &Query) -> Value {
        let of: Value = serde_json::from_str(overview).unwrap_or_default();
        let (sentiment, entries) = (&of["sentiment"], |name: &str| of[name].as_array().cloned().unwrap_or_default());
        let renamed = |name: &str, key: &str, count: &str| -> Vec<Value> {
            let entry = |entry: &Value| {
                let pairs = [(key, &entry["name"]), (count, &entry["count"])];
                pairs.map(|(name, value)| (name.to_owned(), value.clone())).into_iter().collect::<Map<_, _>>().into()
            };
            entries(name).iter().map(entry).collect()
        };
        let instant = |value: &Value| value.as_str().and_then(|at| at.parse::<DateTime<Utc>>().ok());
        let tones = ["positive", "neutral", "negative"];
        let tones = tones.map(|label| json!({"name": self.mood(label), "mentions": sentiment[label]}));
        match self {
            Self::V4 => of,
            Self::Flags => json!({
                "count": of["totalMentions"],
                "authors": of["uniqueAuthors"],
                "reach": of["totalReach"],
                "engagement": of["totalEngagement"],
                "moods": {"1": sentiment["positive"], "0": sentiment["neutral"], "-1": sentiment["negative"]},
                "timeline": entries("volume").iter().map(|day| json!({
                    "t": instant(&day["start"]).map(|at| at.timestamp_millis()),
                    "n": day["count"],
                })).collect::<Vec<_>>(),
                "sites": renamed("topSources", "key", "n"),
                "moreSites": of["otherCount"],
                "languages": renamed("languages", "key", "n"),
                "countries": renamed("countries", "key", "n"),
            }),
            Self::Pages => json!({
                "total_results": of["totalMentions"],
                "unique_authors": of["uniqueAuthors"],
                "audience": of["totalReach"],
                "interactions": of["totalEngagement"],
                "by_sentiment": {
                    "POSITIVE": sentiment["positive"],
                    "NEUTRAL": sentiment["neutral"],
                    "NEGATIVE": sentiment["negative"],
                    "NONE": sentiment["unknown"],
                },
                "by_day": entries("volume").iter().map(|day| json!({
                    "start": day["start"],
                    "end": day["end"],
                    "results": day["count"],
                })).collect::<Vec<_>>(),
                "by_source": renamed("topSources", "label", "results"),
                "by_language": renamed("languages", "label", "results"),
                "by_country": renamed("countries", "label", "results"),
            }),
            Self::Names => json!({
                "mentions": of["totalMentions"],
                "authors": of["uniqueAuthors"],
                "sum_reach": of["totalReach"],
                "sum_engagement": of["totalEngagement"],
                "since": query.echoed().0.timestamp(),
                "until": query.echoed().1.timestamp(),
                "tones": tones,
                "histogram": entries("volume").iter().map(|day| json!({
                    "since": instant(&day["start"]).map(|at| at.timestamp()),
                    "until": instant(&day["end"]).map(|at| at.timestamp()),
                    "mentions": day["count"],
                })).collect::<Vec<_>>(),
                "sources": renamed("topSources", "name", "mentions"),
                "languages": renamed("languages", "name", "mentions"),
                "countries": renamed("countries", "name", "mentions"),
            }),
        }
    }

    /// Converts a record from the form of V4.
    pub(super) fn record(self, record: String) -> String {
        if self == Self::V4 {
            return record;
        }
        let of: Value = serde_json::from_str(&record).unwrap_or_default();
        let instant = |name: &str| of[name].as_str().and_then(|at| at.parse::<DateTime<Utc>>().ok());
        let (millis, seconds) =
            (|name| instant(name).map(|at| at.timestamp_millis()), |name| instant(name).map(|at| at.timestamp()));
        let plain = |name| instant(name).map(|at| at.naive_utc().format("%Y-%m-%dT%H:%M:%S").to_string());
        let (source, author, engagement) = (&of["source"], &of["author"], &of["engagement"]);
        let mood = of["sentiment"]["label"].as_str().map(|label| self.mood(label));
        let written = match self {
            Self::V4 => of,
            Self::Flags => json!({
                "id": of["id"].as_str().map(number),
                "position": of["seq"],
                "published": millis("publishedAt"),
                "collected": millis("indexedAt"),
                "updated": millis("updatedAt"),
                "link": of["url"],
                "headline": of["title"],
                "body": of["text"],
                "language": of["language"],
                "country": of["country"],
                "site": source["name"],
                "author_name": author["name"],
                "author_handle": author["handle"],
                "sentiment": mood,
                "score": of["sentiment"]["score"],
                "reach": of["reach"],
                "likes": engagement["likes"],
                "engagement": engagement["total"],
                "kind": of["type"],
            }),
            Self::Pages => json!({
                "id": of["id"],
                "seq": of["seq"],
                "date": plain("publishedAt"),
                "indexed": plain("indexedAt"),
                "modified": plain("updatedAt"),
                "url": of["url"],
                "title": of["title"],
                "content": of["text"],
                "excerpt": of["snippet"],
                "lang": of["language"],
                "country": of["country"],
                "source": {"name": source["name"], "category": source["type"]},
                "author": {"name": author["name"], "screen_name": author["handle"]},
                "sentiment": mood,
                "sentiment_score": of["sentiment"]["score"],
                "audience": of["reach"],
                "interactions": {"likes": engagement["likes"], "total": engagement["total"]},
                "content_type": of["type"],
            }),
            Self::Names => json!({
                "id": of["id"].as_str().map(|id| format!("m-{id}")),
                "number": of["seq"],
                "ts": seconds("publishedAt"),
                "indexed_ts": seconds("indexedAt"),
                "edited_ts": seconds("updatedAt"),
                "url": of["url"],
                "title": of["title"],
                "text": of["text"],
                "language": of["language"],
                "country_code": of["country"],
                "source": source["name"],
                "author": author["handle"],
                "tone": mood,
                "score": of["sentiment"]["score"],
                "reach": of["reach"],
                "likes": engagement["likes"],
                "engagement": engagement["total"],
                "type": of["type"],
            }),
        };
        written.to_string()
    }

    /// The sentiment in the form of the dialect.
    fn mood(self, label: &str) -> Value {
        match (self, label) {
            (Self::V4, label) => label.into(),
            (Self::Flags, "positive") => 1.into(),
            (Self::Flags, "negative") => (-1).into(),
            (Self::Flags, _) => 0.into(),
            (Self::Pages, label) => label.to_uppercase().into(),
            (Self::Names, label) => label.chars().take(3).collect::<String>().into(),
        }
    }

    /// Returns the labels that the dialect writes as the requested sentiment. Records of a file may have other labels.
    pub(super) fn labels(self, asked: &str, search: &SavedSearch) -> BTreeSet<String> {
        let labels = search.mentions.iter().filter_map(|mention| mention.facts.sentiment.as_deref());
        let written_so = |label: &&str| match self.mood(label) {
            Value::String(text) => text == asked,
            other => asked.parse().is_ok_and(|asked: Value| asked == other),
        };
        labels.filter(written_so).map(str::to_owned).collect()
    }

    /// Writes an error response.
    pub(super) fn refuse(self, refusal: Refusal, request_id: &str) -> Response {
        let Refusal { mut status, code, message, field } = refusal;
        let place = field.map(|field| format!("{field}: ")).unwrap_or_default();
        match self {
            Self::V4 => {
                let mut error = json!({"code": code, "message": message});
                if !place.is_empty() {
                    error["field"] = place.trim_end_matches(": ").into();
                }
                answer(status, json!({"error": error, "requestId": request_id}).to_string())
            }
            Self::Flags => answer(status, json!({"reason": code, "message": format!("{place}{message}")}).to_string()),
            Self::Pages => {
                let mut response = answer(status, format!("{place}{message}"));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
                response
            }
            Self::Names => {
                if status != StatusCode::SERVICE_UNAVAILABLE {
                    status = StatusCode::OK;
                }
                let error = json!({"type": code, "detail": format!("{place}{message}")});
                answer(status, json!({"status": "error", "error": error}).to_string())
            }
        }
    }
}

/// Converts digits to a number; other texts stay strings.
fn number(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| text.into(), Value::from)
}

pub(super) fn answer(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
