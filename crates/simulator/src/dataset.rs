//! The corpus: saved searches of two teams and their mentions, generated from a seed or loaded from a file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use flate2::bufread::GzDecoder;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::record::{rfc3339, written};
use super::story::Setting;

/// The size and seed of a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CorpusSpec {
    /// Equal seeds give equal corpora, given equal other fields.
    pub seed: u64,
    /// Saved searches of the first team; the second has a quarter as many, at least one.
    pub searches: usize,
    /// Total mentions of the first team's saved searches, unevenly distributed.
    pub mentions: usize,
    /// Publication times are before this instant.
    pub now: DateTime<Utc>,
}

/// The complete content of the service.
#[derive(Debug)]
pub struct Corpus {
    /// Saved searches in the order of the list.
    pub searches: Vec<Arc<SavedSearch>>,
    /// Recent searches of each team: (aid, query, time of the search).
    pub recent: [Vec<(String, String, DateTime<Utc>)>; 2],
}

/// A saved search and its mentions.
#[derive(Debug, Clone)]
pub struct SavedSearch {
    /// Identifier.
    pub aid: String,
    /// Name.
    pub name: String,
    /// Query text.
    pub query: String,
    /// Team that owns it, 0 or 1.
    pub team: usize,
    /// Listed among the personal saved searches.
    pub personal: bool,
    /// Listed among the team's saved searches.
    pub shared: bool,
    /// Time of creation.
    pub created_at: DateTime<Utc>,
    /// Mentions in the order of publication.
    pub mentions: Vec<Arc<Mention>>,
}

/// A mention: the fields that queries use, and the source of its JSON record.
#[derive(Debug, Clone)]
pub struct Mention {
    /// The fields used by filters, sort orders and aggregates.
    pub facts: Facts,
    body: Body,
    /// Count of edits.
    edits: u16,
}

/// The fields of a mention used by filters, sort orders and aggregates.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Identifier, unique within a saved search.
    pub id: Box<str>,
    /// Time of publication.
    pub published: DateTime<Utc>,
    /// Language.
    pub language: Option<Arc<str>>,
    /// Country.
    pub country: Option<Arc<str>>,
    /// Name of the source.
    pub source: Option<Arc<str>>,
    /// Sentiment label.
    pub sentiment: Option<Arc<str>>,
    /// Type of the mention.
    pub kind: Option<Arc<str>>,
    /// Handle of the author.
    pub author: Option<Arc<str>>,
    /// Keyword of the overview.
    pub keyword: Option<Arc<str>>,
    /// Hashtag of the overview.
    pub hashtag: Option<Arc<str>>,
    /// Reach.
    pub reach: Option<i64>,
    /// Engagement.
    pub engagement: Option<i64>,
}

#[derive(Debug, Clone)]
enum Body {
    /// Generated on demand from this seed: a million records do not take a gigabyte of memory.
    Seeded { seed: u64, seq: i64, setting: Arc<Setting> },
    /// The line of the file.
    Stored(Box<RawValue>),
}

/// The error of a corpus that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// File.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
    /// A line is not a mention record.
    #[error("{path}: line {line}: invalid mention record: {error}")]
    Record {
        /// File.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Cause.
        error: serde_json::Error,
    },
    /// The file with the saved searches is not an array of them.
    #[error("{path}: invalid saved searches: {error}; expected an array of objects with aid, name and query")]
    SavedSearches {
        /// File.
        path: PathBuf,
        /// Cause.
        error: serde_json::Error,
    },
}

const NAMES: [&str; 12] = [
    "Acme – brand",
    "Acme – products",
    "Initech",
    "Globex Europe",
    "Umbrella recalls",
    "Wayne Foundation",
    "Stark energy",
    "Hooli vs. Pied Piper",
    "Soylent – food safety",
    "Tyrell",
    "Cyberdyne – AI",
    "Größenwahn & Söhne",
];
pub(super) const LANGUAGES: [&str; 6] = ["en", "de", "fr", "es", "ja", "ar"];
pub(super) const COUNTRIES: [&str; 7] = ["US", "DE", "GB", "FR", "ES", "JP", "BR"];
pub(super) const SOURCES: [(&str, &str, &str); 7] = [
    ("x.com", "social", "x"),
    ("reddit.com", "forum", "reddit"),
    ("news.example.org", "news", "web"),
    ("blog.example.net", "blog", "web"),
    ("youtube.com", "video", "youtube"),
    ("instagram.com", "social", "instagram"),
    ("zeitung.example.de", "news", "web"),
];
const SENTIMENTS: [&str; 3] = ["positive", "neutral", "negative"];
const KINDS: [&str; 4] = ["post", "comment", "article", "repost"];
const KEYWORDS: [&str; 10] =
    ["launch", "recall", "battery", "price", "support", "outage", "Qualität", "sécurité", "発表", "قادم"];

impl Corpus {
    /// Generates a corpus.
    pub fn generate(spec: CorpusSpec) -> Self {
        let CorpusSpec { seed, searches, mentions, now } = spec;
        let symbols = Symbols::default();
        let others = (searches / 4).max(1);
        // Weights of 1, 1/2, 1/3, … give a few large saved searches and many small ones.
        let weights: f64 = (1..=searches).map(|rank| 1.0 / rank as f64).sum();
        let mut all = Vec::with_capacity(searches + others);
        let mut left = mentions;
        for index in 0..searches + others {
            let first_team = index < searches;
            let count = if !first_team {
                (mentions / searches.max(1) / 4).min(500)
            } else if index + 1 == searches {
                left
            } else {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
                let share = (mentions as f64 / (index + 1) as f64 / weights) as usize;
                share.min(left)
            };
            left -= if first_team { count } else { 0 };
            all.push(generate_search(seed, index, usize::from(!first_team), count, now, &symbols));
        }
        let recent = |team: usize| {
            let entries = (0..3).map(|n| {
                let number = 991 + 10 * team + n;
                let age = TimeDelta::hours(5 * i64::try_from(n).unwrap_or_default() + 1);
                (format!("r-{number}"), format!("acme AND {}", KEYWORDS[n]), whole_second(now - age))
            });
            entries.collect()
        };
        Self { searches: all.into_iter().map(Arc::new).collect(), recent: [recent(0), recent(1)] }
    }

    /// Rounds publication times down to multiples of `seconds`, so that many mentions share an instant.
    #[must_use]
    pub fn rounded_to(mut self, seconds: i64) -> Self {
        for search in &mut self.searches {
            for mention in &mut Arc::make_mut(search).mentions {
                let facts = &mut Arc::make_mut(mention).facts;
                let at = facts.published.timestamp().div_euclid(seconds.max(1)) * seconds.max(1);
                facts.published = DateTime::from_timestamp(at, 0).unwrap_or(facts.published);
            }
        }
        self
    }

    /// Loads newline-delimited JSON, optionally gzipped: records in the form of `/search`, each with its `aid`. A
    /// `saved_searches.json` in the same folder names the saved searches; without it, the aid is the name.
    ///
    /// # Errors
    /// [`LoadError`] with the file and the line.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let read = |error| LoadError::Read { path: path.to_owned(), error };
        let file = BufReader::new(File::open(path).map_err(read)?);
        let unpacked: Box<dyn Read> =
            if path.extension().is_some_and(|e| e == "gz") { Box::new(GzDecoder::new(file)) } else { Box::new(file) };
        let symbols = Symbols::default();
        let mut searches = load_searches(path)?;
        let mut known: HashMap<String, usize> =
            searches.iter().enumerate().map(|(index, search)| (search.aid.clone(), index)).collect();
        for (index, line) in BufReader::new(unpacked).lines().enumerate() {
            let line = line.map_err(read)?;
            if line.trim().is_empty() {
                continue;
            }
            let record = |error| LoadError::Record { path: path.to_owned(), line: index + 1, error };
            let stored: Stored = serde_json::from_str(&line).map_err(record)?;
            let search = *known.entry(stored.aid.clone()).or_insert_with(|| {
                searches.push(named_search(&stored.aid, &stored.aid, &stored.aid));
                searches.len() - 1
            });
            let facts = stored.facts(&symbols);
            let body = Body::Stored(RawValue::from_string(line).map_err(record)?);
            searches[search].mentions.push(Arc::new(Mention { facts, body, edits: 0 }));
        }
        for search in &mut searches {
            search.mentions.sort_by_key(|mention| mention.facts.published);
            if let Some(first) = search.mentions.first() {
                search.created_at = first.facts.published;
            }
        }
        let searches = searches.into_iter().map(Arc::new).collect();
        Ok(Self { searches, recent: [Vec::new(), Vec::new()] })
    }

    /// Looks up a saved search by aid.
    pub fn search(&self, aid: &str) -> Option<&Arc<SavedSearch>> {
        self.searches.iter().find(|search| search.aid == aid)
    }
}

impl Mention {
    /// The record in the form of `/search`.
    pub fn json(&self) -> String {
        let record = match &self.body {
            Body::Stored(raw) => raw.get().to_owned(),
            Body::Seeded { seed, seq, setting } => written(&self.facts, *seed, *seq, setting),
        };
        if self.edits == 0 { record } else { self.as_edited(&record) }
    }

    /// Applies the edits to a record: each adds a like and moves `updatedAt` by an hour.
    fn as_edited(&self, record: &str) -> String {
        let Ok(mut record) = serde_json::from_str::<Value>(record) else { return record.to_owned() };
        let updated = record["updatedAt"].as_str().and_then(|at| at.parse::<DateTime<Utc>>().ok());
        let updated = updated.unwrap_or(self.facts.published) + TimeDelta::hours(self.edits.into());
        record["updatedAt"] = Value::from(rfc3339(updated));
        if let Some(likes) = record["engagement"]["likes"].as_i64() {
            record["engagement"]["likes"] = Value::from(likes + i64::from(self.edits));
        }
        record.to_string()
    }

    /// Returns the mention after one more edit.
    pub(super) fn edited(&self) -> Self {
        Self { edits: self.edits + 1, ..self.clone() }
    }

    /// Generates a mention that arrives after the corpus was made.
    pub(super) fn arrived(id: Box<str>, published: DateTime<Utc>, seed: u64, setting: Arc<Setting>) -> Self {
        let facts = seeded_facts(id, published, seed, &Symbols::default());
        Self { facts, body: Body::Seeded { seed, seq: 1, setting }, edits: 0 }
    }
}

fn generate_search(
    seed: u64,
    index: usize,
    team: usize,
    count: usize,
    now: DateTime<Utc>,
    symbols: &Symbols,
) -> SavedSearch {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ (0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(index as u64 + 1)));
    let aid = (183_772 + 1_117 * index).to_string();
    let name = match NAMES.get(index) {
        Some(name) => (*name).to_owned(),
        None => format!("{} {}", NAMES[index % NAMES.len()], index / NAMES.len() + 1),
    };
    let setting = Arc::new(Setting::new(&name, now));
    // 90 days, a third of the mentions in five bursts of an hour each. Whole seconds, so that ties occur.
    let span: i64 = 90 * 86_400;
    let bursts: Vec<i64> = (0..5).map(|_| rng.random_range(3_600..span)).collect();
    let last = whole_second(now) - TimeDelta::seconds(1);
    let mut ages: Vec<i64> = (0..count)
        .map(|_| {
            if rng.random_bool(0.33) {
                bursts[rng.random_range(0..bursts.len())] - rng.random_range(0..3_600)
            } else {
                rng.random_range(0..span)
            }
        })
        .collect();
    ages.sort_unstable_by(|a, b| b.cmp(a));
    let mentions = ages.into_iter().enumerate().map(|(position, age)| {
        let seq = 3_571_010 + i64::try_from(position).unwrap_or_default();
        let own_seed = rng.random();
        // Above 2^53, where a float would merge neighbours.
        let id = (9_007_199_254_740_993 + 2 * position as u64 + 1_000_000_000 * index as u64).to_string();
        let facts = seeded_facts(id.into(), last - TimeDelta::seconds(age), own_seed, symbols);
        let body = Body::Seeded { seed: own_seed, seq, setting: Arc::clone(&setting) };
        Arc::new(Mention { facts, body, edits: 0 })
    });
    SavedSearch {
        query: format!("{} OR #{}", name.to_lowercase(), name.split(' ').next().unwrap_or_default().to_lowercase()),
        team,
        personal: index % 3 != 2,
        // Every sixth is in both lists.
        shared: index % 3 == 2 || index % 6 == 1,
        created_at: whole_second(now) - TimeDelta::days(400 - i64::try_from(index % 300).unwrap_or_default()),
        mentions: mentions.collect(),
        aid,
        name,
    }
}

fn seeded_facts(id: Box<str>, published: DateTime<Utc>, seed: u64, symbols: &Symbols) -> Facts {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let sometimes = |rng: &mut ChaCha8Rng, share: f64, from: &[&str]| {
        rng.random_bool(share).then(|| from[skewed(rng, from.len())].to_owned())
    };
    let sources = SOURCES.map(|(name, ..)| name);
    let mut take = |share, from: &[&str]| sometimes(&mut rng, share, from).map(|text| symbols.of(&text));
    let (language, country) = (take(0.95, &LANGUAGES), take(0.6, &COUNTRIES));
    let (source, sentiment, kind) = (take(1.0, &sources), take(0.9, &SENTIMENTS), take(1.0, &KINDS));
    let (keyword, hashtag) = (take(1.0, &KEYWORDS), take(0.5, &KEYWORDS));
    let author = rng.random_bool(0.97).then(|| symbols.of(&format!("user{}", skewed(&mut rng, 2_000))));
    let reach = rng.random_bool(0.7).then(|| rng.random_range(0..100_000));
    let engagement = rng.random_bool(0.8).then(|| rng.random_range(0..500));
    Facts { id, published, language, country, source, sentiment, kind, author, keyword, hashtag, reach, engagement }
}

/// A random index, skewed towards the first ones.
pub(super) fn skewed(rng: &mut ChaCha8Rng, len: usize) -> usize {
    let unit: f64 = rng.random();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below len")]
    let at = (unit * unit * len as f64) as usize;
    at.min(len - 1)
}

fn whole_second(at: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp(at.timestamp(), 0).unwrap_or(at)
}

fn named_search(aid: &str, name: &str, query: &str) -> SavedSearch {
    SavedSearch {
        aid: aid.to_owned(),
        name: name.to_owned(),
        query: query.to_owned(),
        team: 0,
        personal: true,
        shared: false,
        created_at: DateTime::UNIX_EPOCH,
        mentions: Vec::new(),
    }
}

fn load_searches(data: &Path) -> Result<Vec<SavedSearch>, LoadError> {
    #[derive(Deserialize)]
    struct Named {
        aid: String,
        name: String,
        query: String,
    }
    let path = data.with_file_name("saved_searches.json");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(LoadError::Read { path, error }),
    };
    let named: Vec<Named> = serde_json::from_str(&text).map_err(|error| LoadError::SavedSearches { path, error })?;
    Ok(named.iter().map(|n| named_search(&n.aid, &n.name, &n.query)).collect())
}

/// The fields of a stored record that queries use.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    aid: String,
    id: Value,
    published_at: DateTime<Utc>,
    title: Option<String>,
    language: Option<String>,
    country: Option<String>,
    source: Option<Named>,
    author: Option<Handle>,
    sentiment: Option<Label>,
    reach: Option<i64>,
    engagement: Option<Total>,
    #[serde(rename = "type")]
    kind: Option<String>,
    hashtags: Option<Vec<Option<String>>>,
}

#[derive(Deserialize)]
struct Named {
    name: Option<String>,
}

#[derive(Deserialize)]
struct Handle {
    handle: Option<String>,
}

#[derive(Deserialize)]
struct Label {
    label: Option<String>,
}

#[derive(Deserialize)]
struct Total {
    total: Option<i64>,
}

impl Stored {
    fn facts(self, symbols: &Symbols) -> Facts {
        let symbol = |text: Option<String>| text.map(|text| symbols.of(&text));
        // The longest word of the title serves as the keyword.
        let words = self.title.iter().flat_map(|title| title.split(|c: char| !c.is_alphanumeric()));
        let keyword = words.max_by_key(|word| word.len()).filter(|word| word.len() > 3).map(str::to_lowercase);
        Facts {
            id: self.id.as_str().map_or_else(|| self.id.to_string(), str::to_owned).into(),
            published: self.published_at,
            language: symbol(self.language),
            country: symbol(self.country),
            source: symbol(self.source.and_then(|source| source.name)),
            sentiment: symbol(self.sentiment.and_then(|sentiment| sentiment.label)),
            kind: symbol(self.kind),
            author: symbol(self.author.and_then(|author| author.handle)),
            keyword: symbol(keyword),
            hashtag: symbol(self.hashtags.unwrap_or_default().into_iter().flatten().next()),
            reach: self.reach,
            engagement: self.engagement.and_then(|engagement| engagement.total),
        }
    }
}

/// Interned strings.
#[derive(Default)]
struct Symbols(std::cell::RefCell<HashMap<String, Arc<str>>>);

impl Symbols {
    fn of(&self, text: &str) -> Arc<str> {
        let mut known = self.0.borrow_mut();
        if let Some(symbol) = known.get(text) {
            return Arc::clone(symbol);
        }
        let symbol: Arc<str> = text.into();
        known.insert(text.to_owned(), Arc::clone(&symbol));
        symbol
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus(seed: u64) -> Corpus {
        let now = DateTime::from_timestamp(1_780_000_000, 0).expect("an instant");
        Corpus::generate(CorpusSpec { seed, searches: 4, mentions: 1_000, now })
    }

    fn bytes(corpus: &Corpus) -> String {
        corpus.searches.iter().flat_map(|search| &search.mentions).map(|mention| mention.json()).collect()
    }

    #[test]
    fn equal_seeds_give_equal_bytes_and_others_do_not() {
        assert_eq!(bytes(&corpus(1)), bytes(&corpus(1)));
        assert_ne!(bytes(&corpus(1)), bytes(&corpus(2)));
    }

    #[test]
    fn the_corpus_has_the_size_asked_for_and_looks_real() {
        let corpus = corpus(1);
        let first_team = corpus.searches.iter().filter(|search| search.team == 0);
        assert_eq!(first_team.map(|search| search.mentions.len()).sum::<usize>(), 1_000);
        let size = bytes(&corpus).len() / 1_000;
        assert!((300..2_000).contains(&size), "{size} bytes per record");
        let mentions = &corpus.searches[0].mentions;
        assert!(mentions.iter().any(|m| m.facts.country.is_none()) && mentions.iter().any(|m| m.facts.reach.is_none()));
        assert!(mentions.windows(2).any(|pair| pair[0].facts.published == pair[1].facts.published), "no ties");
        assert!(mentions.iter().all(|m| m.facts.id.parse::<u64>().is_ok_and(|id| id > 1 << 53)));
    }

    #[test]
    fn saved_searches_that_are_no_array_are_named_with_their_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("mentions.ndjson");
        std::fs::write(&data, "").expect("written");
        std::fs::write(folder.path().join("saved_searches.json"), "{\"1\": \"Acme\"}").expect("written");
        let error = Corpus::load(&data).map(drop).expect_err("not an array").to_string();
        assert!(
            error.contains("saved_searches.json: invalid saved searches: ") && error.contains("an array"),
            "{error}"
        );
    }
}
