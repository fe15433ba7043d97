//! Mutated external input: response bodies, records, profiles, recordings, messages of PostgreSQL clients, periods. None may
//! cause a panic, a hang or a half-accepted result.
//!
//! The targets are those of `fuzz/`, which cargo-fuzz runs for as long as one likes. Here, each gets its seeds, and `FUZZ_CASES`
//! mutations of them (thousands for a nightly run). Inputs that failed are kept among the seeds.

#[path = "../../fuzz/src/lib.rs"]
#[allow(unreachable_pub, reason = "a library for cargo-fuzz")]
mod targets;

use std::fs;

use datafusion_saved_search::Profile;
use datafusion_saved_search::profile::{Instants, Period, Zone};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::Config;

use crate::support::{knob, repository, runner};

const BODY: &str = include_str!("../../fuzz/seeds/envelope/page.json");

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

/// Cuts, replaces and inserts pieces of one of these inputs.
fn mutilated(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<Index>(), 0..40_usize, token(), prop::option::weighted(0.1, any::<u8>()));
    let changes = prop::collection::vec(change, 1..6);
    (prop::sample::select(seeds), changes).prop_map(|(mut bytes, changes)| {
        for (at, cut, token, byte) in changes {
            let at = at.index(bytes.len() + 1);
            let end = (at + cut).min(bytes.len());
            let new = byte.map_or_else(|| token.into_bytes(), |byte| vec![byte]);
            bytes.splice(at..end, new);
        }
        bytes
    })
}

/// The files of a folder of the repository.
fn files(folder: &str) -> Vec<Vec<u8>> {
    let folder = repository().join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort_unstable();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Runs a target over its seeds, and over mutations of them.
fn fuzzed(target: fn(&[u8]), seeds: Vec<Vec<u8>>, cases: u64) {
    assert!(!seeds.is_empty());
    seeds.iter().for_each(|seed| target(seed));
    let mut runner = runner(knob("FUZZ_CASES", cases), knob("FUZZ_SEED", 0));
    let run = runner.run(&mutilated(seeds), |bytes| {
        target(&bytes);
        Ok(())
    });
    run.unwrap_or_else(|failed| panic!("{failed}"));
}

#[test]
fn bodies() {
    fuzzed(targets::envelope::target, files("fuzz/seeds/envelope"), 400);
}

#[test]
fn records() {
    fuzzed(targets::json::target, files("fuzz/seeds/json"), 400);
}

#[test]
fn profiles() {
    let seeds = [files("fuzz/seeds/profile"), files("src/profile/builtin")].concat();
    fuzzed(targets::profile::target, seeds, 400);
}

#[test]
fn recordings() {
    fuzzed(targets::recording::target, files("fuzz/seeds/recording"), 200);
}

#[test]
fn messages_of_postgresql_clients() {
    fuzzed(targets::pgwire::target, files("fuzz/seeds/pgwire"), 100);
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn bodies_of_anything(body in prop::collection::vec(any::<u8>(), 0..200)) {
        targets::envelope::target(&body);
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
            targets::envelope::target(body.as_bytes());
        }
    }
}
