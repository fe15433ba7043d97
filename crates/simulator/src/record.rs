//! The JSON of a generated mention, in the form of V4.
//!
//! A corpus may have more than a million records, and each request writes a page of them. Records are therefore serialized
//! from borrowed fields, without an intermediate document.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::dataset::{Facts, SOURCES, skewed};
use super::story::{self, Setting};

/// Characters of a text that its snippet has.
const SNIPPET: usize = 120;

/// A record. Members are in alphabetical order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    author: Option<Author<'a>>,
    country: Option<&'a str>,
    engagement: Engagement,
    hashtags: Vec<&'a str>,
    id: &'a str,
    images: Vec<String>,
    indexed_at: &'a str,
    language: Option<&'a str>,
    parent_id: Option<&'a str>,
    published_at: &'a str,
    reach: Option<i64>,
    sentiment: Option<Sentiment<'a>>,
    seq: i64,
    snippet: &'a str,
    source: Source<'a>,
    tags: [&'a str; 0],
    text: &'a str,
    title: Option<&'a str>,
    r#type: Option<&'a str>,
    updated_at: &'a str,
    url: Option<String>,
}

#[derive(Serialize)]
struct Author<'a> {
    followers: Option<i32>,
    handle: &'a str,
    id: String,
    name: Option<String>,
}

#[derive(Serialize)]
struct Engagement {
    comments: Option<i64>,
    likes: Option<i64>,
    shares: Option<i64>,
    total: Option<i64>,
    views: Option<i64>,
}

#[derive(Serialize)]
struct Sentiment<'a> {
    label: &'a str,
    score: f64,
}

#[derive(Serialize)]
struct Source<'a> {
    name: Option<&'a str>,
    platform: Option<&'a str>,
    r#type: Option<&'a str>,
}

/// Writes the record of a generated mention. The fields that are not among `facts` are drawn from `seed`.
pub(super) fn written(facts: &Facts, seed: u64, seq: i64, setting: &Setting) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5bd1_e995);
    // Words were once drawn here. The draws remain, so that the fields drawn after them keep their values.
    for _ in 0..20 + skewed(&mut rng, 220) {
        let _: usize = rng.random_range(0..40);
    }
    let (title, text) = setting.tell(facts, seed);
    let source = SOURCES.iter().find(|(name, ..)| facts.source.as_deref() == Some(name));
    let published = rfc3339(facts.published);
    let indexed = rfc3339(facts.published + TimeDelta::seconds(rng.random_range(0..20_000)));
    let sentiment = facts.sentiment.as_deref().map(|label| {
        let strength = f64::from(rng.random_range(1..100)) / 100.0;
        let score = match label {
            "positive" => strength,
            "negative" => -strength,
            _ => 0.0,
        };
        Sentiment { label, score }
    });
    let snippet = text.char_indices().nth(SNIPPET).map_or(&*text, |(end, _)| &text[..end]);
    let url = rng.random_bool(0.9).then(|| format!("https://example.org/{}/{seq}", facts.id));
    let titled = rng.random_bool(0.4) || setting.titled(facts);
    let author = facts.author.as_deref().map(|handle| {
        let name = rng.random_bool(0.5).then(|| story::name_of(handle));
        let followers = rng.random_bool(0.6).then(|| rng.random_range(0..1_000_000));
        Author { followers, handle, id: format!("a-{handle}"), name }
    });
    let images = (0..rng.random_range(0..3)).map(|n| format!("https://img.example.org/{seq}/{n}.jpg")).collect();
    let total = facts.engagement;
    let record = Record {
        author,
        country: facts.country.as_deref(),
        engagement: Engagement {
            comments: total.map(|total| total - total / 2),
            likes: total.map(|total| total / 2),
            shares: total.map(|_| 0),
            total,
            views: None,
        },
        hashtags: facts.hashtag.as_deref().into_iter().collect(),
        id: &facts.id,
        images,
        indexed_at: &indexed,
        language: facts.language.as_deref(),
        parent_id: None,
        published_at: &published,
        reach: facts.reach,
        sentiment,
        seq,
        snippet,
        source: Source {
            name: facts.source.as_deref(),
            platform: source.map(|source| source.2),
            r#type: source.map(|source| source.1),
        },
        tags: [],
        text: &text,
        title: titled.then_some(&*title),
        r#type: facts.kind.as_deref(),
        updated_at: &indexed,
        url,
    };
    serde_json::to_string(&record).expect("texts and numbers are JSON")
}

/// Formats an instant as the service does.
pub(super) fn rfc3339(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}
