//! Mutated external input: profiles, response bodies, periods. None may cause a panic, a hang or a half-accepted
//! result.
//!
//! `FUZZ_CASES` sets the count of cases for each test (thousands for a nightly run). Inputs that failed are kept below
//! as separate cases.

use std::sync::Arc;

use datafusion_saved_search::decode::Decoder;
use datafusion_saved_search::profile::{Instants, Period, Zone};
use datafusion_saved_search::request::{Endpoint, PageRequest, Pages, RequestPlan};
use datafusion_saved_search::{ErrorKind, Profile};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::Config;

use crate::support::knob;

const V4: &str = include_str!("../../src/profile/builtin/v4.toml");
const BODY: &str = r#"{"requestId":"r","search":{"aid":"7"},"window":{"from":"2026-06-24T12:00:00Z","to":"2026-07-01T12:00:00Z","timezone":"UTC"},
"overview":{"totalMentions":2,"totalRelation":"eq","sentiment":{"positive":1},"volume":[{"start":"2026-01-01T00:00:00Z","count":2}]},
"mentions":{"total":2,"totalRelation":"eq","from":0,"items":[
{"id":"9007199254740993","seq":1,"text":"a \"b\" \u00e9 \ud83d\ude80","publishedAt":"2026-07-01T00:00:00Z","sentiment":{"label":"positive","score":-0.33},
 "engagement":{"likes":1,"total":1e3},"tags":["a",null,1],"future":{"a":[1,{"b":null}]}},
{"id":12,"publishedAt":1782864000,"updatedAt":"2026-07-01","source":{"name":"x"},"author":null,"reach":-0}]}}"#;

fn config(default: u32) -> Config {
    let cases = u32::try_from(knob("FUZZ_CASES", default.into())).unwrap();
    Config { cases, failure_persistence: None, ..Config::default() }
}

/// A fragment that is meaningful in some format.
fn token() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "",
            "{",
            "}",
            "[",
            "]",
            "\"",
            "\\",
            ",",
            ":",
            "null",
            "true",
            "1e400",
            "-0",
            "NaN",
            "\\ud800",
            "\\q",
            "\u{0}",
            "\u{1f680}",
            "18446744073709551616",
            "0.1",
            "{}",
            "[]",
            "\n",
            "=",
            "#",
            "..",
            "/",
            "~1",
            "7d",
            "0",
            "-1",
            "UTC",
            "id",
            "9999999999999999999w",
        ])
        .prop_map(str::to_owned),
        "[a-z0-9\\-:TZ.+]{1,12}",
        Just("[".repeat(300)),
        Just("9".repeat(400)),
    ]
}

/// Cuts, replaces and inserts pieces of `text`.
fn mutilated(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<Index>(), 0..40_usize, token(), prop::option::weighted(0.1, any::<u8>()));
    prop::collection::vec(change, 1..6).prop_map(move |changes| {
        let mut bytes = text.as_bytes().to_vec();
        for (at, cut, token, byte) in changes {
            let at = at.index(bytes.len() + 1);
            let end = (at + cut).min(bytes.len());
            let new = byte.map_or_else(|| token.into_bytes(), |byte| vec![byte]);
            bytes.splice(at..end, new);
        }
        bytes
    })
}

fn decoders() -> Vec<Decoder> {
    let profile = Arc::new(Profile::v4());
    let tables: Vec<_> = profile.tables.all().map(|table| Arc::new(table.clone())).collect();
    let decoder = |table: Arc<_>, lossy| {
        let table: Arc<datafusion_saved_search::profile::TableSpec> = table;
        let columns: Vec<usize> = (0..table.columns.len()).collect();
        Decoder::new(Arc::clone(&profile), table, &columns).lossy(lossy)
    };
    tables.into_iter().flat_map(|table| [decoder(Arc::clone(&table), false), decoder(table, true)]).collect()
}

fn request() -> PageRequest {
    let plan = RequestPlan {
        endpoint: Endpoint::Search,
        aid: Some("7".to_owned()),
        duration: Some("7d".to_owned()),
        named: None,
        timezone: Some("UTC".to_owned()),
        filters: Vec::new(),
        sort: None,
        pages: Some(Pages { size: 100, skip: 0, fetch: None, ordered: false }),
    };
    PageRequest { plan: Arc::new(plan), row: 0, size: 100, frozen: None, cursor: None }
}

fn decode_all(body: &[u8]) {
    for decoder in decoders() {
        match decoder.decode(&request(), body) {
            Ok(decoded) => {
                let rows = decoded.batch.num_rows();
                assert!(decoded.ids.iter().all(|ids| ids.len() == rows));
                assert!(decoded.times.iter().chain(&decoded.versions).all(|times| times.len() == rows));
                // Numbers that JSON does not have are read as NULL.
                let json = String::from_utf8_lossy(body).replace("NaN", "null").replace("Infinity", "0");
                assert!(
                    serde_json::from_str::<serde::de::IgnoredAny>(&json).is_ok() || decoded.mended > 0,
                    "invalid JSON was accepted"
                );
                decoded.batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
            }
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Contradiction), "{error}");
                assert!(!error.to_string().contains('\n') && error.to_string().len() < 2_000, "{error}");
            }
        }
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn bodies(body in mutilated(BODY)) {
        decode_all(&body);
    }

    #[test]
    fn bodies_of_anything(body in prop::collection::vec(any::<u8>(), 0..200)) {
        decode_all(&body);
    }

    #[test]
    fn profiles(text in mutilated(V4)) {
        match Profile::parse(&String::from_utf8_lossy(&text), "fuzzed.toml") {
            Ok(profile) => {
                // An accepted profile can be used.
                let decoder = Decoder::new(Arc::new(profile.clone()), Arc::new(profile.tables.mentions.clone()), &[0]);
                let _ = decoder.decode(&request(), BODY.as_bytes());
                request().parameters(&profile);
                profile.dimensions();
            }
            Err(error) => {
                prop_assert!(matches!(error.kind(), ErrorKind::Profile | ErrorKind::Unsupported), "{error}");
                prop_assert!(error.to_string().contains("fuzzed.toml") && !error.to_string().contains('\n'), "{error}");
            }
        }
    }

    #[test]
    fn periods(text in "[0-9a-zé]{0,6}|[0-9]{1,30}[hdw]|[0-9TZ:.+-]{0,24}\\.\\.[0-9TZ:.+-]{0,24}") {
        let mut window = Profile::v4().window;
        for instants in [Instants::Rfc3339, Instants::EpochS, Instants::EpochMs, Instants::Local, Instants::Date] {
            window.instants = instants;
            let known = window.check_words(&text).is_ok();
            if let Some((from, to)) = window.span_of(&text, Zone::UTC) {
                prop_assert_eq!(known, from < to);
                // A period is rendered with the same meaning.
                let again = window.words_of(from, to, Zone::UTC);
                let whole = from.timestamp_subsec_nanos() == 0 && to.timestamp_subsec_nanos() == 0;
                prop_assert!(!whole || window.span_of(&again, Zone::UTC) == Some((from, to)), "{text} {again}");
            }
            window.parameters(&text);
        }
        if let Ok(period) = Period::try_from(text.clone()) {
            prop_assert!(period.length() > chrono::TimeDelta::zero());
            prop_assert_eq!(period.to_string(), text);
        }
    }
}

/// Nesting deeper than any recursive reader could handle, in various places.
#[test]
fn depth_is_no_stack() {
    for levels in [100, 1_000, 200_000] {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        let (object, end) = ("{\"a\":".repeat(levels), "}".repeat(levels));
        for body in [
            open.clone(),
            format!("{open}{close}"),
            BODY.replace("[1,{\"b\":null}]", &format!("{open}{close}")),
            BODY.replace("[1,{\"b\":null}]", &format!("{object}1{end}")),
            BODY.replace("\"requestId\":\"r\"", &format!("\"requestId\":{open}{close}")),
            BODY.replace("\"reach\":-0", &format!("\"reach\":{object}1{end}")),
        ] {
            decode_all(body.as_bytes());
        }
    }
}
