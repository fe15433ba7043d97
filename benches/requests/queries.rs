//! The queries that the benchmark counts and that a probed profile must answer: SQL, expected rows, minimum of
//! requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use datafusion_saved_search::simulator::{Corpus, CorpusSpec, Facts, SavedSearch};

/// The time of the service's fixed clock.
pub(crate) const NOW: &str = "2026-07-01T12:00:00Z";
/// A saved search with some thousands of mentions, and two smaller ones.
const BIG: &str = "183772";
const OTHER: &str = "184889";
const THIRD: &str = "186006";
/// A window that covers all mentions.
const ALL: &str = "published_at >= '2026-01-01' AND published_at < '2026-07-02'";

/// A query with its expected rows and the minimum of requests.
pub(crate) struct Query {
    pub(crate) name: &'static str,
    pub(crate) sql: String,
    pub(crate) least: u64,
    pub(crate) rows: Rows,
}

/// The expected rows of a query.
pub(crate) enum Rows {
    /// These, in this order.
    InOrder(Vec<Vec<String>>),
    /// These, in any order.
    Any(Vec<Vec<String>>),
    /// This many rows, each one of these.
    SomeOf(usize, Vec<Vec<String>>),
}

impl Rows {
    /// True if `rows` match.
    pub(crate) fn are(&self, rows: &[Vec<String>]) -> bool {
        let sorted = |rows: &[Vec<String>]| {
            let mut rows = rows.to_vec();
            rows.sort();
            rows
        };
        match self {
            Self::InOrder(expected) => rows == expected,
            Self::Any(expected) => sorted(rows) == sorted(expected),
            Self::SomeOf(count, of) => rows.len() == *count && rows.iter().all(|row| of.contains(row)),
        }
    }
}

/// Requests needed for this many mentions.
fn pages(mentions: usize) -> u64 {
    mentions.div_ceil(99).max(1) as u64
}

fn at(text: &str) -> DateTime<Utc> {
    text.parse().expect("an instant")
}

fn number(n: usize) -> Vec<String> {
    vec![n.to_string()]
}

/// Counts mentions by a key, as rows of key and count.
fn counted<'f>(facts: impl Iterator<Item = &'f Facts>, key: impl Fn(&Facts) -> Option<String>) -> Vec<Vec<String>> {
    let mut counts: BTreeMap<Option<String>, usize> = BTreeMap::new();
    for fact in facts {
        *counts.entry(key(fact)).or_default() += 1;
    }
    counts.into_iter().map(|(key, n)| vec![key.unwrap_or_else(|| "NULL".to_owned()), n.to_string()]).collect()
}

fn text(value: &Option<Arc<str>>) -> Option<String> {
    value.as_deref().map(str::to_owned)
}

fn rfc3339(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
}

/// The saved searches that the key may read.
struct World<'c> {
    searches: Vec<&'c SavedSearch>,
    now: DateTime<Utc>,
}

impl<'c> World<'c> {
    fn of(&self, aid: &str) -> Vec<&'c Facts> {
        let search = self.searches.iter().find(|search| search.aid == aid).expect("a saved search");
        search.mentions.iter().map(|mention| &mention.facts).collect()
    }

    fn between(&self, aid: &str, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<&'c Facts> {
        self.of(aid).into_iter().filter(|facts| (from..to).contains(&facts.published)).collect()
    }

    /// The profile's default window.
    fn week(&self, aid: &str) -> Vec<&'c Facts> {
        self.between(aid, self.now - TimeDelta::days(7), self.now)
    }

    /// Aids and names of the saved searches whose name begins with Acme.
    fn acme(&self) -> Vec<(&'c str, &'c str)> {
        let acme = self.searches.iter().filter(|search| search.name.starts_with("Acme"));
        acme.map(|search| (search.aid.as_str(), search.name.as_str())).collect()
    }

    /// Rows of `saved_searches` except recent searches: one that is in both lists is saved.
    fn listed(&self) -> Vec<(&'c SavedSearch, &'static str)> {
        let kind = |search: &SavedSearch| match (search.personal, search.shared) {
            (true, _) => Some("saved"),
            (false, true) => Some("team"),
            (false, false) => None,
        };
        self.searches.iter().filter_map(|search| Some((*search, kind(search)?))).collect()
    }
}

fn newest(mut facts: Vec<&Facts>, count: usize) -> Vec<&Facts> {
    facts.sort_by(|a, b| b.published.cmp(&a.published).then_with(|| a.id.cmp(&b.id)));
    facts.truncate(count);
    facts
}

fn ids(facts: &[&Facts]) -> Vec<Vec<String>> {
    facts.iter().map(|facts| vec![facts.id.to_string()]).collect()
}

#[expect(clippy::too_many_lines, reason = "a list of queries, each with its reasoning")]
pub(crate) fn queries(corpus: &Corpus, now: DateTime<Utc>) -> Vec<Query> {
    let world =
        World { searches: corpus.searches.iter().map(AsRef::as_ref).filter(|search| search.team == 0).collect(), now };
    let searches = world.searches.len() as u64;
    let acme = world.acme();
    let mut queries = Vec::new();
    let mut add = |name, sql: String, least, rows| queries.push(Query { name, sql, least, rows });

    // One page of ten in the service's sort order.
    add(
        "newest ten",
        format!("SELECT id FROM mentions WHERE aid = '{BIG}' ORDER BY published_at DESC, id LIMIT 10"),
        1,
        Rows::InOrder(ids(&newest(world.week(BIG), 10))),
    );

    // The same with an expression: still ten rows.
    let titles = newest(world.week(BIG), 10).into_iter().map(|f| vec![f.id.to_uppercase()]).collect();
    add(
        "expression over the newest ten",
        format!("SELECT upper(id) FROM mentions WHERE aid = '{BIG}' ORDER BY published_at DESC, upper(id) LIMIT 10"),
        1,
        Rows::InOrder(titles),
    );

    // The service can sort a saved search by reach: one request for each of the two.
    let mut reach: Vec<i64> =
        [BIG, OTHER].iter().flat_map(|aid| world.of(aid)).filter_map(|facts| facts.reach).collect();
    reach.sort_by(|a, b| b.cmp(a));
    add(
        "largest reach of two, merged",
        format!("SELECT reach FROM mentions WHERE aid IN ('{BIG}', '{OTHER}') AND {ALL} ORDER BY reach DESC LIMIT 20"),
        2,
        Rows::InOrder(reach.iter().take(20).map(|reach| vec![reach.to_string()]).collect()),
    );

    // The result has every mention of the month: all of their pages.
    let may = world.between(BIG, at("2026-05-01T00:00:00Z"), at("2026-06-01T00:00:00Z"));
    add(
        "a month",
        format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND date_trunc('month', published_at) = '2026-05-01'"),
        pages(may.len()),
        Rows::Any(ids(&may)),
    );

    // The service filters by language and sentiment: only the pages of matching mentions.
    let german = world.of(BIG).into_iter().filter(|facts| {
        facts.language.as_deref() == Some("de") && matches!(facts.sentiment.as_deref(), Some("negative" | "neutral"))
    });
    let german: Vec<&Facts> = german.collect();
    add(
        "declared filters",
        format!(
            "SELECT id FROM mentions WHERE aid = '{BIG}' AND {ALL} AND language = 'de' \
             AND (sentiment = 'negative' OR sentiment = 'neutral')"
        ),
        pages(german.len()),
        Rows::Any(ids(&german)),
    );

    // The service has no parameter for this filter, but more than one in twenty mentions match: the first page has
    // five.
    let far: Vec<&Facts> = world.of(BIG).into_iter().filter(|facts| facts.reach > Some(1_000)).collect();
    add(
        "residual filter, five rows",
        format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {ALL} AND reach > 1000 LIMIT 5"),
        1,
        Rows::SomeOf(5, ids(&far)),
    );

    // Rows 500 to 509 in the service's sort order: one page that starts there.
    let page = newest(world.of(BIG), 510).split_off(500);
    add(
        "offset 500",
        format!(
            "SELECT published_at FROM mentions WHERE aid = '{BIG}' AND {ALL} ORDER BY published_at DESC LIMIT 10 OFFSET 500"
        ),
        1,
        Rows::InOrder(page.iter().map(|facts| vec![rfc3339(facts.published)]).collect()),
    );

    // A response covers one window, so two windows and their pages.
    let day = |day: &str| {
        let start = at(&format!("{day}T00:00:00Z"));
        world.between(BIG, start, start + TimeDelta::days(1))
    };
    let (first, second) = (day("2026-05-02"), day("2026-06-10"));
    add(
        "two days apart",
        format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at::date IN ('2026-05-02', '2026-06-10')"),
        pages(first.len()) + pages(second.len()),
        Rows::Any(ids(&[first, second].concat())),
    );

    // A day in Berlin starts at 22:00 UTC in June: only the pages of that day.
    let berlin = world.between(BIG, at("2026-06-09T22:00:00Z"), at("2026-06-10T22:00:00Z"));
    add(
        "a day in Berlin",
        format!(
            "SELECT id FROM mentions WHERE aid = '{BIG}' AND (published_at AT TIME ZONE 'Europe/Berlin')::date = '2026-06-10'"
        ),
        pages(berlin.len()),
        Rows::Any(ids(&berlin)),
    );

    // Every response reports the total.
    add(
        "count",
        format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND {ALL} AND language = 'en'"),
        1,
        Rows::Any(vec![number(world.of(BIG).iter().filter(|f| f.language.as_deref() == Some("en")).count())]),
    );

    // The list names the saved searches; then one total for each.
    let totals = world.searches.iter().map(|search| (search.aid.clone(), world.week(&search.aid).len()));
    let mut many: Vec<_> = totals.filter(|(_, n)| *n > 20).collect();
    many.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    add(
        "count by saved search, having",
        "SELECT aid, count(*) AS n FROM mentions GROUP BY aid HAVING count(*) > 20 ORDER BY n DESC, aid".to_owned(),
        1 + searches,
        Rows::InOrder(many.into_iter().map(|(aid, n)| vec![aid, n.to_string()]).collect()),
    );

    // The overview counts by sentiment, including mentions without one.
    add(
        "count by sentiment",
        format!("SELECT sentiment, count(*) FROM mentions WHERE aid = '{BIG}' AND {ALL} GROUP BY sentiment"),
        1,
        Rows::Any(counted(world.of(BIG).into_iter(), |facts| text(&facts.sentiment))),
    );

    // The overview counts by language. Mentions without a language appear in no list, so all mentions of both saved
    // searches have to be read.
    let both = || [OTHER, THIRD].into_iter().flat_map(|aid| world.of(aid));
    add(
        "count by language over two",
        format!(
            "SELECT language, count(*) FROM mentions WHERE aid IN ('{OTHER}', '{THIRD}') AND {ALL} GROUP BY language"
        ),
        pages(world.of(OTHER).len()) + pages(world.of(THIRD).len()),
        Rows::Any(counted(both(), |facts| text(&facts.language))),
    );

    // The overview lists the top sources and the count of mentions from all others, here none.
    add(
        "count by source",
        format!(
            "SELECT source, count(*) FROM mentions WHERE aid = '{BIG}' AND {ALL} AND language = 'de' GROUP BY source"
        ),
        1,
        Rows::Any(counted(
            world.of(BIG).into_iter().filter(|facts| facts.language.as_deref() == Some("de")),
            |facts| text(&facts.source),
        )),
    );

    // The timeline counts by day in the time zone.
    let local = |zone: Tz| {
        move |facts: &Facts| Some(zone.from_utc_datetime(&facts.published.naive_utc()).date_naive().to_string())
    };
    add(
        "count by day in Berlin",
        format!(
            "SELECT (published_at AT TIME ZONE 'Europe/Berlin')::date, count(*) FROM mentions \
             WHERE aid = '{BIG}' AND {ALL} GROUP BY 1"
        ),
        1,
        Rows::Any(counted(world.of(BIG).into_iter(), local(Tz::Europe__Berlin))),
    );

    // The newest and the oldest mention; each of the two responses reports the total.
    let published = |aid: &str| world.of(aid).into_iter().map(|facts| facts.published);
    add(
        "first, last and count",
        format!("SELECT min(published_at), max(published_at), count(*) FROM mentions WHERE aid = '{BIG}' AND {ALL}"),
        2,
        Rows::Any(vec![vec![
            rfc3339(published(BIG).min().expect("mentions")),
            rfc3339(published(BIG).max().expect("mentions")),
            world.of(BIG).len().to_string(),
        ]]),
    );

    // The list once for both sides of the join, and the newest mention of each saved search, including those without
    // any.
    let latest = world.listed().into_iter().map(|(search, kind)| {
        let last = world.week(&search.aid).into_iter().map(|facts| facts.published).max();
        vec![search.name.clone(), kind.to_owned(), last.map_or("NULL".to_owned(), rfc3339)]
    });
    add(
        "latest mention of each saved search",
        "SELECT s.name, s.kind, max(m.published_at) FROM saved_searches s LEFT JOIN mentions m ON m.aid = s.aid \
         WHERE s.kind <> 'recent' GROUP BY s.name, s.kind"
            .to_owned(),
        1 + searches,
        Rows::Any(latest.collect()),
    );

    // The list, then a page of each Acme search: any of them may have the newest mentions.
    let mut first: Vec<_> = acme
        .iter()
        .flat_map(|(aid, name)| world.week(aid).into_iter().map(move |facts| (facts.published, *name)))
        .collect();
    first.sort_by(|a, b| b.cmp(a));
    add(
        "newest through a join",
        "SELECT m.published_at, s.name FROM saved_searches s JOIN mentions m ON m.aid = s.aid \
         WHERE s.name LIKE 'Acme%' AND s.kind = 'saved' ORDER BY m.published_at DESC LIMIT 5"
            .to_owned(),
        1 + acme.len() as u64,
        Rows::InOrder(first.iter().take(5).map(|(at, name)| vec![rfc3339(*at), (*name).to_owned()]).collect()),
    );

    // The list, and the pages of the Acme searches only.
    let of_acme: Vec<Vec<String>> = acme.iter().flat_map(|(aid, _)| ids(&world.week(aid))).collect();
    add(
        "IN with a subquery",
        "SELECT id FROM mentions WHERE aid IN (SELECT aid FROM saved_searches WHERE name LIKE 'Acme%')".to_owned(),
        1 + acme.iter().map(|(aid, _)| pages(world.week(aid).len())).sum::<u64>(),
        Rows::Any(of_acme),
    );

    // The list once, for the subquery and to find the saved search; then its newest mention.
    let least = world.searches.iter().map(|search| search.aid.as_str()).min().expect("a saved search");
    add(
        "scalar subquery",
        "SELECT id FROM mentions WHERE aid = (SELECT min(aid) FROM saved_searches WHERE kind <> 'recent') \
         ORDER BY published_at DESC, id LIMIT 1"
            .to_owned(),
        2,
        Rows::InOrder(ids(&newest(world.week(least), 1))),
    );

    // No saved search matches: the list alone is enough.
    add(
        "join without matches",
        "SELECT m.id FROM mentions m JOIN saved_searches s ON s.aid = m.aid WHERE s.name = 'nobody'".to_owned(),
        1,
        Rows::Any(Vec::new()),
    );

    // The list names all aids; one request for each that matches.
    let sixes: Vec<&str> =
        world.searches.iter().map(|search| search.aid.as_str()).filter(|aid| aid.contains("86")).collect();
    add(
        "aids by pattern",
        "SELECT aid, total_mentions FROM overview WHERE aid LIKE '%86%'".to_owned(),
        1 + sixes.len() as u64,
        Rows::Any(sixes.iter().map(|aid| vec![(*aid).to_owned(), world.week(aid).len().to_string()]).collect()),
    );

    // Totals, days and languages of a saved search are in one response.
    let languages =
        counted(world.week(BIG).into_iter().filter(|facts| facts.language.is_some()), |facts| text(&facts.language));
    add(
        "three tables from one response",
        format!(
            "SELECT DISTINCT b.name, b.mentions FROM overview('{BIG}') o JOIN volume('{BIG}') v ON v.aid = o.aid \
             JOIN breakdowns('{BIG}') b ON b.aid = v.aid \
             WHERE b.dimension = 'language' AND v.mentions > 0 AND o.total_mentions > 0"
        ),
        1,
        Rows::Any(languages),
    );

    // Contradictions and the schema cost no request.
    add(
        "contradiction and limit 0",
        format!(
            "SELECT id FROM mentions WHERE (aid = '{BIG}' AND aid = '{OTHER}') OR false UNION ALL SELECT id FROM mentions LIMIT 0"
        ),
        0,
        Rows::Any(Vec::new()),
    );
    queries
}

/// The corpus of the queries.
pub(crate) fn corpus() -> Arc<Corpus> {
    Arc::new(Corpus::generate(CorpusSpec { seed: 1, searches: 6, mentions: 6_000, now: at(NOW) }))
}
