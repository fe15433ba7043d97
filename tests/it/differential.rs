//! The same SQL must give the same result through our tables over the simulator and over a plain in-memory table.
//!
//! The in-memory table is built from the simulator's records with code from this file only. Queries are generated; a
//! failure is shrunk to the smallest failing query. `DIFFERENTIAL_SEED` repeats a run, `DIFFERENTIAL_CASES` sets the
//! count of queries.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Duration, SecondsFormat, Utc};
use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use datafusion_saved_search::CATALOG;
use datafusion_saved_search::simulator::{Corpus, CorpusSpec, KEY, Preset, Settings};
use datafusion_saved_search::{Clock, Connection, Profile, Secret, catalog, session, session_config};
use proptest::prelude::*;
use serde_json::Value;

use crate::support::{BIG, OTHER, World, knob, now, rows, runner, worded, written};

/// The columns used by generated queries.
const TEXTS: [(&str, &str); 9] = [
    ("id", "/id"),
    ("text", "/text"),
    ("title", "/title"),
    ("source", "/source/name"),
    ("author_handle", "/author/handle"),
    ("language", "/language"),
    ("country", "/country"),
    ("sentiment", "/sentiment/label"),
    ("type", "/type"),
];
const INTEGERS: [(&str, &str); 4] =
    [("seq", "/seq"), ("reach", "/reach"), ("engagement", "/engagement/total"), ("likes", "/engagement/likes")];
const TIMES: [(&str, &str); 2] = [("published_at", "/publishedAt"), ("indexed_at", "/indexedAt")];

/// A plain table of everything visible to the first team's key, in the form of a dialect.
pub(crate) fn oracle(corpus: &Corpus, preset: Preset) -> SessionContext {
    let mut aids = Vec::new();
    let mut records: Vec<Value> = Vec::new();
    for search in corpus.searches.iter().filter(|search| search.team == 0) {
        for mention in &search.mentions {
            aids.push(search.aid.clone());
            records.push(serde_json::from_str(&mention.json()).unwrap());
        }
    }
    let mut fields = vec![Field::new("aid", DataType::Utf8, false)];
    let mut columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from(aids))];
    for (name, pointer) in TEXTS {
        let values = records.iter().map(|r| r.pointer(pointer).and_then(Value::as_str));
        let values = values.map(|value| value.map(|value| written(preset, name, value)));
        if preset == Preset::Flags && matches!(name, "id" | "sentiment") {
            fields.push(Field::new(name, DataType::Int64, true));
            let numbers = values.map(|value| value.map(|value| value.parse::<i64>().unwrap()));
            columns.push(Arc::new(numbers.collect::<Int64Array>()));
        } else {
            fields.push(Field::new(name, DataType::Utf8, true));
            columns.push(Arc::new(values.collect::<StringArray>()));
        }
    }
    for (name, pointer) in INTEGERS {
        fields.push(Field::new(name, DataType::Int64, true));
        let values = records.iter().map(|r| r.pointer(pointer).and_then(Value::as_i64));
        columns.push(Arc::new(values.collect::<Int64Array>()));
    }
    for (name, pointer) in TIMES {
        fields.push(Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true));
        let values = records.iter().map(|r| {
            let text = r.pointer(pointer).and_then(Value::as_str)?;
            Some(text.parse::<DateTime<Utc>>().unwrap().timestamp_micros())
        });
        columns.push(Arc::new(values.collect::<TimestampMicrosecondArray>().with_timezone("UTC")));
    }
    fields.push(Field::new("sentiment_score", DataType::Float64, true));
    let values = records.iter().map(|r| r.pointer("/sentiment/score").and_then(Value::as_f64));
    columns.push(Arc::new(values.collect::<Float64Array>()));

    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let config = session_config().with_create_default_catalog_and_schema(true);
    let context = SessionContext::new_with_config(config);
    let (mut names, mut kinds, mut aids) = (Vec::new(), Vec::new(), Vec::new());
    for search in corpus.searches.iter().filter(|search| search.team == 0) {
        // One that is in both lists is saved.
        let listed = [("saved", search.personal), ("team", search.shared)];
        if let Some((kind, _)) = listed.iter().find(|(_, listed)| *listed) {
            names.push(Some(search.name.clone()));
            kinds.push(*kind);
            aids.push(search.aid.clone());
        }
    }
    let recent = matches!(preset, Preset::V4 | Preset::Names);
    for (aid, ..) in corpus.recent[0].iter().filter(|_| recent) {
        names.push(None);
        kinds.push("recent");
        aids.push(aid.clone());
    }
    let columns: [(&str, ArrayRef); 3] = [
        ("aid", Arc::new(StringArray::from(aids))),
        ("kind", Arc::new(StringArray::from(kinds))),
        ("name", Arc::new(StringArray::from(names))),
    ];
    let list = RecordBatch::try_from_iter(columns).unwrap();
    let table = MemTable::try_new(list.schema(), vec![vec![list]]).unwrap();
    context.register_table("saved_searches", Arc::new(table)).unwrap();
    context.register_table("mentions", Arc::new(MemTable::try_new(schema, vec![vec![batch]]).unwrap())).unwrap();
    context
}

#[derive(Clone)]
pub(crate) struct Query {
    conjuncts: Vec<String>,
    shape: Shape,
    limit: Option<usize>,
    offset: usize,
    /// Index of the session that runs the query.
    pub(crate) session: usize,
    /// Dialect of the query's values.
    preset: Preset,
}

#[derive(Clone, Debug)]
enum Shape {
    /// Columns of any rows.
    Rows(Vec<&'static str>),
    /// The key of the first rows.
    Ordered {
        key: &'static str,
        direction: &'static str,
    },
    /// The first rows, with further keys that break all ties.
    Top {
        key: &'static str,
        direction: &'static str,
        from: From,
    },
    Aggregate {
        keys: Vec<&'static str>,
        values: Vec<&'static str>,
        having: bool,
        from: From,
    },
    /// An aggregate over two aggregates.
    Union {
        key: &'static str,
        value: &'static str,
        all: &'static str,
    },
    Distinct(&'static str),
}

/// The FROM clause; mentions are `m`, saved searches `s`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum From {
    Mentions,
    Joined,
    JoinedTheOtherWay,
    Outer,
    OuterTheOtherWay,
    Full,
}

impl From {
    fn sql(self, mentions: &str) -> String {
        let mentions = format!("({mentions}) m");
        match self {
            Self::Mentions => mentions,
            Self::Joined => format!("saved_searches s JOIN {mentions} ON s.aid = m.aid"),
            Self::JoinedTheOtherWay => format!("{mentions} JOIN saved_searches s ON m.aid = s.aid AND s.name <> 'x'"),
            Self::Outer => format!("saved_searches s LEFT JOIN {mentions} ON m.aid = s.aid AND s.kind = 'saved'"),
            Self::OuterTheOtherWay => {
                format!("{mentions} LEFT JOIN saved_searches s ON m.aid = s.aid AND s.kind = 'team'")
            }
            Self::Full => format!("{mentions} FULL JOIN saved_searches s ON m.aid = s.aid AND s.kind = 'team'"),
        }
    }

    fn keys(self) -> &'static str {
        if self == Self::Mentions { "" } else { ", s.aid, s.kind" }
    }
}

impl Query {
    fn unlimited(&self) -> String {
        let filters = format!("WHERE {}", self.conjuncts.join(" AND "));
        let mentions = format!("SELECT * FROM mentions {filters}");
        let sql = match &self.shape {
            Shape::Rows(columns) => format!("SELECT {} FROM mentions {filters}", columns.join(", ")),
            Shape::Ordered { key, direction } => {
                format!("SELECT {key} FROM mentions {filters} ORDER BY {key} {direction}")
            }
            Shape::Top { key, direction, from } => {
                let (from, more) = (from.sql(&mentions), from.keys());
                format!("SELECT m.{key}, upper(m.id){more} FROM {from} ORDER BY m.{key} {direction}, m.aid, m.id{more}")
            }
            Shape::Aggregate { keys, values, having, from } => {
                let from = from.sql(&mentions);
                let columns: Vec<_> = keys.iter().chain(values).copied().collect();
                let groups = if keys.is_empty() { String::new() } else { format!(" GROUP BY {}", keys.join(", ")) };
                let having = if *having { " HAVING count(*) > 3" } else { "" };
                let order: Vec<_> = (1..=columns.len()).map(|n| n.to_string()).collect();
                format!("SELECT {} FROM {from}{groups}{having} ORDER BY {}", columns.join(", "), order.join(", "))
            }
            Shape::Union { key, value, all } => {
                let half = format!("SELECT {key} AS g, {value} AS n FROM ({mentions}) m GROUP BY 1");
                format!("SELECT g, count(*), max(n) FROM ({half} UNION {all} {half}) GROUP BY g ORDER BY g")
            }
            Shape::Distinct(column) => format!("SELECT DISTINCT {column} FROM mentions {filters}"),
        };
        worded(self.preset, sql)
    }

    pub(crate) fn sql(&self) -> String {
        let limit = self.limit.map(|limit| format!(" LIMIT {limit}")).unwrap_or_default();
        let offset = if self.offset > 0 { format!(" OFFSET {}", self.offset) } else { String::new() };
        format!("{}{limit}{offset}", self.unlimited())
    }
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {}: {}", self.session, self.sql())
    }
}

fn instant() -> impl Strategy<Value = DateTime<Utc>> {
    (0..100 * 86_400_i64, prop_oneof![Just(0), Just(0), 1..1_000_000_i64])
        .prop_map(|(seconds, micros)| now() - Duration::seconds(seconds) + Duration::microseconds(micros))
}

fn text_of(at: DateTime<Utc>) -> String {
    format!("'{}'", at.to_rfc3339_opts(SecondsFormat::Micros, true))
}

/// A conjunct that bounds time from below, in one of the common forms.
fn time() -> impl Strategy<Value = String> {
    let unit = prop_oneof![Just("minute"), Just("hour"), Just("day"), Just("week"), Just("month"), Just("quarter")];
    let of = prop_oneof![
        Just("published_at".to_owned()),
        Just("published_at::date".to_owned()),
        Just("CAST(published_at AS TIMESTAMP)".to_owned()),
        Just("arrow_cast(published_at, 'Timestamp(Second, None)')".to_owned()),
        Just("arrow_cast(published_at, 'Date64')".to_owned()),
        unit.clone().prop_map(|unit| format!("date_trunc('{unit}', published_at)")),
        Just("date_trunc('hour', date_trunc('week', published_at))".to_owned()),
        unit.clone().prop_map(|unit| format!("date_trunc('{unit}', published_at AT TIME ZONE 'America/New_York')")),
        Just("to_local_time(published_at AT TIME ZONE 'America/New_York')".to_owned()),
        unit.prop_map(|unit| {
            let zone = "AT TIME ZONE 'Europe/Berlin'";
            format!("date_trunc('{unit}', to_local_time(published_at {zone})) {zone}")
        }),
    ];
    // A month in another zone has other bounds than in UTC.
    let month = (0..4_u32, prop_oneof![Just("Europe/Berlin"), Just("Asia/Tokyo"), Just("America/New_York")]).prop_map(
        |(n, zone)| {
            let start = format!("'2026-{:02}-01T00:00:00'", 4 + n);
            format!("date_trunc('month', published_at AT TIME ZONE '{zone}') = {start}")
        },
    );
    let above = prop_oneof![Just(">"), Just(">="), Just(">=")];
    let below = prop_oneof![Just("<"), Just("<=")];
    prop_oneof![
        4 => (of.clone(), above.clone(), instant()).prop_map(|(of, op, at)| {
            let at = if of.ends_with("date") { format!("'{}'", at.date_naive()) } else { text_of(at) };
            format!("{of} {op} {at}")
        }),
        2 => (above, below, instant(), instant()).prop_map(|(above, below, a, b)| {
            let (from, to) = (a.min(b), a.max(b));
            format!("published_at {above} {} AND published_at {below} {}", text_of(from), text_of(to))
        }),
        2 => (instant(), instant())
            .prop_map(|(a, b)| format!("published_at BETWEEN {} AND {}", text_of(a.min(b)), text_of(a.max(b)))),
        1 => instant().prop_map(|at| format!("published_at::date = '{}'", at.date_naive())),
        1 => instant().prop_map(|at| format!("date_trunc('day', published_at) = '{}'", at.date_naive())),
        1 => (instant(), instant()).prop_map(|(a, b)| format!(
            "(published_at::date = '{}' OR published_at BETWEEN {} AND {})",
            b.date_naive(), text_of(a - Duration::days(1)), text_of(a),
        )),
        2 => month,
        1 => Just("date_part('year', published_at) = 2026".to_owned()),
        1 => Just("extract(year FROM published_at) >= 2026".to_owned()),
        1 => instant().prop_map(|at| format!("{} < published_at", text_of(at))),
        1 => (instant(), instant()).prop_map(|(a, b)| {
            let given = |at| format!("(SELECT arrow_cast({}, 'Timestamp(Microsecond, Some(\"UTC\"))'))", text_of(at));
            format!("published_at >= {} AND published_at <= {}", given(a.min(b)), given(a.max(b)))
        }),
    ]
}

fn filter() -> impl Strategy<Value = String> {
    let language = prop_oneof![Just("en"), Just("de"), Just("fr"), Just("xx"), Just("en,de"), Just("")];
    let sentiment = prop_oneof![Just("positive"), Just("negative"), Just("neutral")];
    prop_oneof![
        3 => language.clone().prop_map(|value| format!("language = '{value}'")),
        1 => (language.clone(), language.clone()).prop_map(|(a, b)| format!("language IN ('{a}', '{b}')")),
        1 => language.clone().prop_map(|value| format!("language <> '{value}'")),
        1 => (sentiment.clone(), sentiment).prop_map(|(a, b)| format!("(sentiment = '{a}' OR '{b}' = sentiment)")),
        1 => Just("country IN ('US', 'DE', 'GB', 'FR', 'JP')".to_owned()),
        1 => Just("country IS NULL".to_owned()),
        1 => Just("NOT (country = 'DE')".to_owned()),
        1 => Just("upper(source) LIKE 'X%'".to_owned()),
        1 => (0..100_000_i64).prop_map(|n| format!("reach > {n}")),
        1 => (0..100_000_i64).prop_map(|n| format!("coalesce(reach, 0) < {n}")),
        1 => Just("sentiment_score < -0.33".to_owned()),
        1 => Just("text LIKE '%battery%'".to_owned()),
        1 => Just("title IS NOT NULL".to_owned()),
        1 => language.prop_map(|value| format!("(language = '{value}' OR reach IS NULL)")),
        1 => Just("type = 'post' AND language = 'en'".to_owned()),
        1 => Just("indexed_at > published_at + INTERVAL '2 hours'".to_owned()),
    ]
}

fn aid() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(format!("aid = '{BIG}'")),
        2 => Just(format!("aid IN ('{BIG}', '{OTHER}')")),
        1 => Just(format!("(aid = '{OTHER}' OR aid = '{BIG}')")),
        1 => Just("aid IN ('183772', '184889', '186006', '187123')".to_owned()),
        1 => Just(format!("aid <> '{BIG}'")),
        1 => Just(format!("aid = '{BIG}' AND aid IN ('{BIG}', '{OTHER}')")),
        1 => Just("aid LIKE '%8_8%' ".to_owned()),
        1 => Just("aid IN (SELECT aid FROM saved_searches WHERE name LIKE 'Acme%')".to_owned()),
        1 => Just("aid NOT IN (SELECT aid FROM saved_searches WHERE kind = 'team')".to_owned()),
        1 => Just(
            "EXISTS (SELECT 1 FROM saved_searches s WHERE s.aid = mentions.aid AND s.kind = 'team')".to_owned()
        ),
        1 => Just("aid = (SELECT min(aid) FROM saved_searches WHERE kind = 'saved')".to_owned()),
        1 => Just("true".to_owned()),
    ]
}

pub(crate) fn query() -> impl Strategy<Value = Query> {
    let column = prop_oneof![
        Just("id"),
        Just("aid"),
        Just("published_at"),
        Just("language"),
        Just("reach"),
        Just("text"),
        Just("source"),
        Just("sentiment_score"),
        Just("seq"),
        Just("author_handle"),
    ];
    let key = prop_oneof![Just("published_at"), Just("reach"), Just("engagement"), Just("seq"), Just("language")];
    let direction = prop_oneof![
        Just(""),
        Just("DESC"),
        Just("DESC"),
        Just("DESC NULLS FIRST"),
        Just("ASC NULLS FIRST"),
        Just("ASC NULLS LAST"),
    ];
    let group = prop_oneof![
        Just("m.language"),
        Just("m.sentiment"),
        Just("m.country"),
        Just("m.source"),
        Just("upper(m.source)"),
        Just("m.type"),
        Just("m.published_at::date"),
        Just("date_trunc('day', m.published_at)"),
        Just("date_trunc('week', m.published_at AT TIME ZONE 'Europe/Berlin')"),
        Just("(m.published_at AT TIME ZONE 'America/New_York')::date"),
        Just("date_trunc('day', to_local_time(m.published_at AT TIME ZONE 'America/New_York'))"),
        Just("date_trunc('day', to_local_time(m.published_at AT TIME ZONE 'Asia/Tokyo')) AT TIME ZONE 'Asia/Tokyo'"),
        Just("date_part('month', m.published_at)"),
        Just("floor(extract(epoch FROM m.published_at) / 86400) * 86400"),
        Just("date_trunc('hour', m.published_at)"),
    ];
    let keys = (prop::option::of(Just("m.aid")), prop::option::weighted(0.6, group.clone()))
        .prop_map(|(aid, group)| aid.into_iter().chain(group).collect::<Vec<_>>());
    let counting = prop_oneof![
        3 => Just("count(*)"),
        1 => Just("count(m.id)"),
        1 => Just("count(m.language)"),
        1 => Just("count(DISTINCT m.sentiment)"),
        1 => Just("count(*) FILTER (WHERE m.sentiment = 'negative')"),
        1 => Just("sum(CASE WHEN m.language = 'de' THEN 2 ELSE 1 END)"),
        1 => Just("avg(CASE WHEN m.sentiment = 'negative' THEN 1 ELSE 0 END)"),
        1 => Just("count(*) FILTER (WHERE m.published_at >= '2026-06-01')"),
        1 => Just("sum(m.reach)"),
        1 => Just("bool_or(m.country = 'DE')"),
    ];
    let extreme = prop_oneof![
        2 => Just("max(m.published_at)"),
        2 => Just("min(m.published_at)"),
        1 => Just("max(m.reach)"),
        1 => Just("min(m.engagement)"),
        1 => Just("min(m.id)"),
    ];
    let union = (group, counting.clone(), prop_oneof![Just("ALL"), Just("")]);
    let values = prop_oneof![
        3 => prop::collection::vec(counting.clone(), 1..3),
        2 => prop::collection::vec(extreme.clone(), 1..3),
        1 => (counting, extreme).prop_map(|(counting, extreme)| vec![counting, extreme]),
    ];
    let from = prop_oneof![
        4 => Just(From::Mentions),
        1 => Just(From::Joined),
        1 => Just(From::JoinedTheOtherWay),
        1 => Just(From::Outer),
        1 => Just(From::OuterTheOtherWay),
        1 => Just(From::Full),
    ];
    let aggregate = (keys, values, prop::bool::weighted(0.2), from.clone());
    let shape = prop_oneof![
        3 => prop::collection::vec(column.clone(), 1..4).prop_map(|mut columns| {
            columns.dedup();
            let mut seen = std::collections::HashSet::new();
            columns.retain(|column| seen.insert(*column));
            Shape::Rows(columns)
        }),
        2 => (key.clone(), direction.clone()).prop_map(|(key, direction)| Shape::Ordered { key, direction }),
        2 => (key, direction, from).prop_map(|(key, direction, from)| Shape::Top { key, direction, from }),
        5 => aggregate.prop_map(|(keys, mut values, having, from)| {
            values.dedup();
            Shape::Aggregate { keys, values, having, from }
        }),
        1 => union.prop_map(|(key, value, all)| Shape::Union { key, value, all }),
        1 => column.prop_map(Shape::Distinct),
    ];
    let limit = prop_oneof![2 => Just(None), 1 => (0..300_usize).prop_map(Some)];
    let offset = prop_oneof![3 => Just(0), 1 => 0..250_usize];
    let filters = prop_oneof![2 => Just(Vec::new()), 3 => prop::collection::vec(filter(), 0..3)];
    let session = prop_oneof![4 => Just(0), 1 => 1..SESSIONS];
    (aid(), time(), filters, shape, limit, offset, session).prop_map(
        |(aid, time, filters, shape, limit, offset, session)| {
            let mut conjuncts = vec![aid, time];
            conjuncts.extend(filters);
            Query { conjuncts, shape, limit, offset, session, preset: Preset::V4 }
        },
    )
}

async fn run(context: &SessionContext, sql: &str) -> Result<Vec<Vec<String>>, String> {
    let frame = context.sql(sql).await.map_err(|error| error.to_string())?;
    let batches = tokio::time::timeout(std::time::Duration::from_secs(60), frame.collect()).await;
    let batches = batches.map_err(|_| "timed out".to_owned())?.map_err(|error| error.to_string())?;
    let wide: Vec<_> = batches.iter().map(|batch| batch.schema()).collect();
    if wide.iter().any(|schema| **schema != *wide[0]) {
        return Err("batches with different schemas".to_owned());
    }
    Ok(rows(&batches))
}

/// Queries the plain tables. Mentions are filtered first, and the query runs over the result in a second step: below a
/// filter on `published_at::date`, the engine treats `published_at` as a constant and drops sorts and groups.
async fn ask_oracle(oracle: &SessionContext, query: &Query) -> Result<(Query, SessionContext), String> {
    let text = |error: DataFusionError| error.to_string();
    let filtered = worded(query.preset, format!("SELECT * FROM mentions WHERE {}", query.conjuncts.join(" AND ")));
    let frame = oracle.sql(&filtered).await.map_err(text)?;
    let schema = Arc::clone(frame.schema().inner());
    let rows = frame.collect().await.map_err(text)?;
    let plain = SessionContext::new_with_config(session_config().with_create_default_catalog_and_schema(true));
    plain.register_table("mentions", Arc::new(MemTable::try_new(schema, vec![rows]).map_err(text)?)).map_err(text)?;
    let list = oracle.table_provider("saved_searches").await.map_err(text)?;
    plain.register_table("saved_searches", list).map_err(text)?;
    Ok((Query { conjuncts: vec!["true".to_owned()], ..query.clone() }, plain))
}

pub(crate) async fn compare(
    sessions: &[SessionContext],
    oracle: &SessionContext,
    query: &Query,
) -> Result<(), TestCaseError> {
    let fail = |what: &str, detail: String| TestCaseError::fail(format!("{what}: {query:?}\n{detail}"));
    let ours = run(&sessions[query.session], &query.sql()).await.map_err(|error| fail("we failed", error))?;
    let (asked, oracle) = ask_oracle(oracle, query).await.map_err(|error| fail("the oracle failed", error))?;
    let theirs = run(&oracle, &asked.sql()).await.map_err(|error| fail("the oracle failed", error))?;
    let ordered = matches!(query.shape, Shape::Ordered { .. } | Shape::Aggregate { .. } | Shape::Top { .. });
    if ordered {
        // Where ties are possible, only keys are selected, so that their order does not matter.
        prop_assert_eq!(&ours, &theirs, "{:?}", query);
        return Ok(());
    }
    prop_assert_eq!(ours.len(), theirs.len(), "{:?}", query);
    let sorted = |mut rows: Vec<Vec<String>>| {
        rows.sort();
        rows
    };
    if query.limit.is_none() && query.offset == 0 {
        prop_assert_eq!(sorted(ours), sorted(theirs), "{:?}", query);
        return Ok(());
    }
    // Any rows are correct, as long as they are a sub-multiset of all rows.
    let mut all = run(&oracle, &asked.unlimited()).await.map_err(|error| fail("the oracle failed", error))?;
    all.sort();
    for row in sorted(ours) {
        match all.binary_search(&row) {
            Ok(at) => drop(all.remove(at)),
            Err(_) => return Err(fail("unexpected row", format!("{row:?}"))),
        }
    }
    Ok(())
}

/// Count of sessions that must agree with the plain tables.
const SESSIONS: usize = 5;

/// Ours; one without our optimizer rules; ours over a service with a maximum window and smaller pages; ours over one
/// with relative periods only; and ours without counts from the overview.
async fn sessions(world: &World) -> [SessionContext; SESSIONS] {
    let over = |profile: Profile| {
        let connection = Connection::builder(world.service.base_url(), Secret::new(KEY).unwrap());
        connection.profile(profile).clock(Clock::fixed(now())).build().unwrap()
    };
    let mut sliced = Profile::v4();
    sliced.window.longest = Some("20d".to_owned().try_into().unwrap());
    sliced.page.max = 40;
    let mut relative = Profile::v4();
    relative.window.absolute = None;
    relative.counts = None;
    let foreign = SessionContext::new_with_config(session_config());
    foreign.register_catalog(CATALOG, catalog(&over(Profile::v4())).unwrap());
    let counting = session(&over(Profile::v4())).unwrap();
    counting.sql("SET savedsearch.count_from_overview = 'never'").await.unwrap();
    [world.context.clone(), foreign, session(&over(sliced)).unwrap(), session(&over(relative)).unwrap(), counting]
}

#[test]
fn generated_queries_agree_with_a_plain_table() {
    let (cases, seed) = (knob("DIFFERENTIAL_CASES", 800), knob("DIFFERENTIAL_SEED", rand::random()));
    println!("DIFFERENTIAL_SEED={seed} DIFFERENTIAL_CASES={cases}");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let corpus = Arc::new(Corpus::generate(CorpusSpec { seed, searches: 4, mentions: 600, now: now() }));
    let oracle = oracle(&corpus, Preset::V4);
    let settings = Settings { clock: Clock::fixed(now()), ..Settings::default() };
    let world = runtime.block_on(World::with(corpus, settings, Profile::v4()));
    let sessions = runtime.block_on(sessions(&world));
    runner(cases, seed)
        .run(&query(), |query| runtime.block_on(compare(&sessions, &oracle, &query)))
        .unwrap_or_else(|error| panic!("DIFFERENTIAL_SEED={seed}\n{error}"));
}

/// The same in the other dialects, with a tenth of the queries in each.
#[test]
fn generated_queries_agree_in_every_dialect() {
    let (cases, seed) = (knob("DIFFERENTIAL_CASES", 800), knob("DIFFERENTIAL_SEED", rand::random()));
    println!("DIFFERENTIAL_SEED={seed}");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let corpus = Arc::new(Corpus::generate(CorpusSpec { seed, searches: 4, mentions: 600, now: now() }));
    for preset in [Preset::Flags, Preset::Pages, Preset::Names] {
        let oracle = oracle(&corpus, preset);
        let settings = Settings { clock: Clock::fixed(now()), preset, ..Settings::default() };
        let profile = Profile::builtin(preset.name()).unwrap();
        let world = runtime.block_on(World::with(Arc::clone(&corpus), settings, profile));
        let sessions = [world.context.clone()];
        runner(cases.div_ceil(10), seed)
            .run(&query(), |query| {
                let query = Query { session: 0, preset, ..query };
                runtime.block_on(compare(&sessions, &oracle, &query))
            })
            .unwrap_or_else(|error| panic!("{preset}: DIFFERENTIAL_SEED={seed}\n{error}"));
    }
}
