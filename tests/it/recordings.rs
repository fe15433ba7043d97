//! A profile is inferred from recorded requests: each recording in `tests/fixtures/probe` has one difficulty and the
//! conclusions, and a recorded probe gives the same profile again without a service.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use datafusion_saved_search::client::{Direct, Exchanges, HttpLimits, Recorder};
use datafusion_saved_search::probe::{Facts, Probed, Recording, infer, probe};
use datafusion_saved_search::simulator::{KEY, Preset, Settings, Simulator};
use datafusion_saved_search::{Clock, Profile, Secret};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::queries::{NOW, corpus};
use crate::support::{InProcess, repository};

/// A recording with the conclusions from it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    about: String,
    /// Texts that profile and report contain.
    concludes: Vec<String>,
    /// Facts that a person states.
    #[serde(default)]
    facts: Vec<String>,
    /// A request that works.
    #[serde(default)]
    example: Option<String>,
    /// Texts that the profile does not contain.
    never: Vec<String>,
    exchanges: Vec<Exchange>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    ask: String,
    key: String,
    status: u16,
    headers: Vec<(String, String)>,
    body: Value,
}

/// Writes the exchanges as a recording.
fn write(folder: &Path, case: &Case) {
    let head = json!({"base_url": "https://recorded.test/v4", "begun": "2026-06-30T12:00:00Z"});
    std::fs::write(folder.join("recording.json"), head.to_string()).unwrap();
    for (number, Exchange { ask, key, status, headers, body }) in case.exchanges.iter().enumerate() {
        let exchange = json!({
            "question": format!("/v4/{ask}"), "key": key, "status": status, "headers": headers, "body": body.to_string()
        });
        std::fs::write(folder.join(format!("{:05}.json", number + 1)), exchange.to_string()).unwrap();
    }
}

fn inferred(folder: &Path, stated: &[String], example: Option<&str>) -> Probed {
    let mut facts = Facts::default();
    if let Some(example) = example {
        facts.example(example, None).unwrap();
    }
    stated.iter().for_each(|fact| facts.fact(fact).unwrap());
    infer(Recording::read(folder).unwrap(), None, facts).unwrap()
}

#[test]
fn recordings_of_odd_services_lead_to_the_right_conclusions() {
    let folder = repository().join("tests/fixtures/probe");
    let (mut cases, mut wrong) = (0, Vec::new());
    let files: BTreeSet<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    for file in files {
        let case: Case = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let recording = tempfile::tempdir().unwrap();
        write(recording.path(), &case);
        let found = inferred(recording.path(), &case.facts, case.example.as_deref());
        let told = format!("{}\n{found}", found.document);
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        Profile::parse(&found.document, &name).unwrap();
        let lacks = case.concludes.iter().filter(|text| !told.contains(*text)).map(|text| format!("lacks {text}"));
        let has = case.never.iter().filter(|text| found.document.contains(*text)).map(|text| format!("has {text}"));
        wrong.extend(lacks.chain(has).map(|what| format!("{name} ({}): {what}", case.about)));
        cases += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases > 10, "{cases} recordings");
}

/// The lines of a profile without the notes, which name the number of requests.
fn entries(document: &str) -> Vec<&str> {
    document.lines().filter(|line| !line.starts_with('#')).collect()
}

#[tokio::test(start_paused = true)]
async fn a_recorded_probe_gives_the_same_profile_without_a_service() {
    let now: DateTime<Utc> = NOW.parse().unwrap();
    for preset in Preset::ALL {
        let settings = Settings { clock: Clock::fixed(now), preset, ..Settings::default() };
        let service = Arc::new(InProcess(Simulator::new(corpus(), settings), HttpLimits::default()));
        let (folder, key) = (tempfile::tempdir().unwrap(), Secret::new(KEY).unwrap());
        let recorder = Recorder::begin(key.clone(), folder.path(), "http://probed.test/v4", now).unwrap();
        let source = Exchanges::Recorded(recorder).over(Arc::new(Direct::new(service)));
        let found = probe(source, "http://probed.test/v4".parse().unwrap(), key, 25).await.unwrap();
        let again = inferred(folder.path(), &[], None);
        assert_eq!(entries(&found.document), entries(&again.document), "{preset}");
        assert_eq!(again.recorded, Some(found.calls.len()), "{preset}");
        assert!(again.to_string().contains("and sent none"), "{again}");
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            assert!(!text.contains(KEY), "{text}");
        }
    }
}

#[test]
fn a_recording_without_a_list_is_an_error_with_the_last_response() {
    let folder = tempfile::tempdir().unwrap();
    let refused = Exchange {
        ask: "list".to_owned(),
        key: "authorization: Bearer <redacted>".to_owned(),
        status: 401,
        headers: Vec::new(),
        body: json!({"message": "no such key"}),
    };
    let (about, facts) = (String::new(), Vec::new());
    let case = Case { about, concludes: Vec::new(), facts, example: None, never: Vec::new(), exchanges: vec![refused] };
    write(folder.path(), &case);
    let error = infer(Recording::read(folder.path()).unwrap(), None, Facts::default()).unwrap_err().to_string();
    assert!(error.contains("no known form of the key") && error.contains("no such key"), "{error}");
}
