//! Unseen services, one per seed: the profile that a probe writes for each must answer queries correctly or reject
//! them.

mod service;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use datafusion_saved_search::client::{Direct, HttpService};
use datafusion_saved_search::probe::{Facts, Probed, probe, probe_knowing};
use datafusion_saved_search::profile::{ColumnSpec, Only, Origin, Scope};
use datafusion_saved_search::profile_check::compare;
use datafusion_saved_search::{Clock, Connection, Profile, Secret, session};

use self::service::{AID, Entries, Hard, KEY, Mention, Trouble, Unseen};
use crate::support::{knob, now, rows};

/// Requests that a probe may send.
const CALLS: u64 = 25;

type Rows = Vec<Vec<String>>;

async fn probed(service: &Arc<Unseen>, calls: u64) -> Result<Probed, String> {
    let address = "http://unseen.test/v4".parse().unwrap();
    let service = Arc::clone(service);
    probe(Arc::new(Direct::new(service)), address, Secret::new(KEY).unwrap(), calls)
        .await
        .map_err(|error| error.to_string())
}

/// The column for a field of the service, by its path.
fn column(profile: &Profile, path: &[String]) -> Option<String> {
    let has = |column: &&ColumnSpec| {
        let field = matches!(&column.origin, Origin::Field(at, Scope::Record) if at.steps() == path);
        // An id of two fields begins with one of them.
        field && column.joined_with.is_empty()
    };
    profile.tables.mentions.columns.iter().find(has).map(|column| column.name.clone())
}

fn instant(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Queries with their expected rows; the query is `None` if the profile lacks a column for it.
fn questions(service: &Unseen, profile: &Profile) -> Vec<(&'static str, Option<String>, Rows)> {
    let all = service.mentions();
    let name = |path: &str| column(profile, &service.located(path));
    let (language, source) = (name(&service.fields.language), name(&service.fields.source));
    let (reach, text) = (name(&service.fields.reach), name(&service.fields.text));
    let (from, to) = (service.now - TimeDelta::days(12), service.now - TimeDelta::days(3));
    // The time that windows refer to.
    let time = profile.tables.mentions.time.as_deref().unwrap_or("published_at");
    let received = name(&service.fields.seen).is_some_and(|seen| seen == time);
    let when = |mention: &Mention| if received { mention.seen } else { mention.at };
    let within: Vec<&Mention> = all.iter().filter(|mention| from <= when(mention) && when(mention) < to).collect();
    let recent = |days: i64| all.iter().filter(move |mention| when(mention) >= service.now - TimeDelta::days(days));
    let range = format!("aid = '{AID}' AND {time} >= '{}' AND {time} < '{}'", instant(from), instant(to));
    let one = |value: String| vec![vec![value]];
    let count = |n: usize| one(n.to_string());
    let ids = |mentions: Vec<&Mention>| mentions.iter().map(|mention| vec![mention.id.clone()]).collect::<Rows>();
    let counted = |of: &dyn Fn(&Mention) -> Option<String>, mentions: &[&Mention]| {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        mentions.iter().filter_map(|mention| of(mention)).for_each(|key| *counts.entry(key).or_default() += 1);
        counts.into_iter().map(|(key, count)| vec![key, count.to_string()]).collect::<Rows>()
    };
    let newest = {
        let mut sorted = within.clone();
        sorted.sort_by(|a, b| when(b).cmp(&when(a)).then(a.id.cmp(&b.id)));
        sorted
    };
    // The default window, which applies to queries without a time filter: that of the service if none is sent.
    let sent = Some(profile.window.default.as_str()).filter(|_| !profile.window.is_unknown());
    let default = service.period(sent);
    let usual: Vec<&Mention> = all
        .iter()
        .filter(|m| default.is_some_and(|(from, to)| from <= service.windowed(m) && service.windowed(m) < to))
        .collect();
    let day = |mention: &Mention| Some(when(mention).date_naive().to_string());
    let select = |what: &str, rest: &str| Some(format!("SELECT {what} FROM mentions WHERE {range} {rest}"));
    let is = |column: &Option<String>, condition: &str| {
        column.as_ref().and_then(|column| select("count(*)", &format!("AND {column} {condition}")))
    };
    let times = || within.iter().map(|mention| instant(when(mention)));
    let top = |label: usize| {
        let name = &service.lists.1[label];
        let at = |path: &[String]| path.iter().rev().take(2).any(|step| step == name);
        let mut sections = profile.tables.breakdowns.sections.iter();
        let of_field = |only: &Only| only.is == *name;
        let section = sections.find(|section| at(section.at.steps()) || section.only.as_ref().is_some_and(of_field))?;
        let label = &section.label;
        Some(format!(
            "SELECT name, mentions FROM breakdowns WHERE aid = '{AID}' AND dimension = '{label}' AND mentions > 0 ORDER BY name"
        ))
    };
    let timed = service.timeline.0 != Entries::None && !service.has(Hard::Running);
    let volume = format!("SELECT sum(mentions) FROM volume WHERE aid = '{AID}'");
    vec![
        ("list", Some("SELECT count(DISTINCT aid) FROM saved_searches".to_owned()), count(3)),
        ("count in a range", select("count(*)", ""), count(within.len())),
        ("ids in a range", select("id", &format!("ORDER BY {time} DESC, id")), ids(newest.clone())),
        ("newest", select("id", &format!("ORDER BY {time} DESC, id LIMIT 10")), ids(newest[..10].to_vec())),
        (
            "oldest",
            select("id", &format!("ORDER BY {time}, id LIMIT 5")),
            ids(newest.iter().rev().take(5).copied().collect()),
        ),
        (
            "first and last",
            select(&format!("min({time}), max({time})"), ""),
            vec![vec![times().min().unwrap(), times().max().unwrap()]],
        ),
        (
            "distinct",
            Some(format!(
                "SELECT count(DISTINCT id) FROM mentions WHERE aid = '{AID}' AND {time} >= '{}'",
                instant(service.now - TimeDelta::days(40))
            )),
            count(recent(40).count()),
        ),
        (
            "days",
            select(&format!("CAST({time} AS DATE) AS d, count(*)"), "GROUP BY d ORDER BY d"),
            counted(&day, &within),
        ),
        ("language", is(&language, "= 'de'"), count(within.iter().filter(|m| m.language == Some("de")).count())),
        ("no language", is(&language, "IS NULL"), count(within.iter().filter(|m| m.language.is_none()).count())),
        (
            "two sources",
            is(&source, "IN ('x.com', 'reddit.com')"),
            count(within.iter().filter(|m| ["x.com", "reddit.com"].contains(&m.source)).count()),
        ),
        (
            "by source",
            source.as_ref().and_then(|s| select(&format!("{s}, count(*)"), "GROUP BY 1 ORDER BY 1")),
            counted(&|mention| Some(mention.source.to_owned()), &within),
        ),
        (
            "reach",
            reach.as_ref().and_then(|r| select(&format!("sum({r})"), "")),
            one(within.iter().map(|m| m.reach).sum::<i64>().to_string()),
        ),
        ("text", is(&text, "LIKE 'Battery%'"), count(within.iter().filter(|m| m.text.starts_with("Battery")).count())),
        (
            "second five",
            select("id", &format!("ORDER BY {time} DESC, id LIMIT 5 OFFSET 5")),
            ids(newest[5..10].to_vec()),
        ),
        ("usual period", Some(format!("SELECT count(*) FROM mentions WHERE aid = '{AID}'")), count(usual.len())),
        ("timeline", Some(volume).filter(|_| timed), count(usual.len())),
        ("top sources", top(1), counted(&|mention| Some(mention.source.to_owned()), &usual)),
    ]
}

/// Outcomes of the queries to a service.
#[derive(Debug, Default)]
struct Share {
    right: u64,
    typed: Vec<String>,
    wrong: Vec<String>,
}

fn connected(service: &Arc<Unseen>, profile: &Profile) -> Arc<Connection> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let address = format!("http://unseen{}.test/v4", NUMBER.fetch_add(1, Ordering::Relaxed));
    Connection::builder(address, Secret::new(KEY).unwrap())
        .service(Arc::clone(service) as _)
        .clock(Clock::fixed(service.now))
        .profile(profile.clone())
        .build()
        .unwrap()
}

async fn asked(service: &Arc<Unseen>, found: &Probed) -> Share {
    let profile = Profile::parse(&found.document, "probed").unwrap();
    let context = session(&connected(service, &profile)).unwrap();
    let mut share = Share::default();
    for (name, sql, expected) in questions(service, &profile) {
        let Some(sql) = sql else {
            match name {
                // The service has no timeline.
                "timeline" => share.right += 1,
                _ => share.typed.push(format!("{name}: no such column")),
            }
            continue;
        };
        let answer = match context.sql(&sql).await {
            Ok(frame) => frame.collect().await.map(|batches| rows(&batches)),
            Err(error) => Err(error),
        };
        match answer {
            Ok(rows) if rows == expected => share.right += 1,
            Ok(rows) => {
                let (few, of) = (rows.iter().take(3), expected.iter().take(3));
                let lengths = (rows.len(), expected.len());
                let shown = format!("{:?} for {:?}", few.collect::<Vec<_>>(), of.collect::<Vec<_>>());
                share.wrong.push(format!("{name}: {lengths:?} rows, {shown}\n      {sql}"));
            }
            Err(error) => {
                share.typed.push(format!("{name}: {}", error.to_string().chars().take(200).collect::<String>()))
            }
        }
    }
    share
}

/// The seeds to run.
fn seeds() -> std::ops::Range<u64> {
    let first = knob("UNSEEN_SEED", 1);
    first..first + knob("UNSEEN_CASES", 24)
}

#[tokio::test(start_paused = true)]
async fn one_example_makes_up_for_what_refusals_do_not_say() {
    let (mut wrong, mut good) = (Vec::new(), 0);
    let seeds = 1..=knob("UNSEEN_CASES", 12);
    for seed in seeds.clone() {
        let service = Arc::new(Unseen::silent(seed, now()));
        let mut facts = Facts::default();
        let key = Secret::new(KEY).unwrap();
        facts.example(&service.example(), Some(&key)).unwrap();
        let source = Arc::new(Direct::new(Arc::clone(&service) as Arc<dyn HttpService>));
        let address = "http://unseen.test/v4".parse().unwrap();
        let found = probe_knowing(source, address, key, CALLS, None, facts).await.unwrap();
        assert!(found.calls.len() as u64 <= CALLS, "seed {seed}: {} calls", found.calls.len());
        let share = asked(&service, &found).await;
        println!("seed {seed}: {} right, {} refused, {} wrong", share.right, share.typed.len(), share.wrong.len());
        share.typed.iter().for_each(|text| println!("   refused {text}"));
        if knob("UNSEEN_SHOWN", 0) > 0 {
            println!("{}\n{}\n{found}", service.example(), found.document);
            found.calls.iter().for_each(|call| println!("{:?} {}", call.status, call.question));
        }
        good += u64::from(share.right >= 16);
        wrong.extend(share.wrong.into_iter().map(|text| format!("seed {seed}: {text}")));
    }
    let all = seeds.count() as u64;
    println!("{good} of {all} services with 16 of 18 right; {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(good * 10 >= all * 9, "{good} of {all} services");
}

/// Difficulties by number: each alone, then three at a time.
fn difficulties(case: u64) -> Vec<Hard> {
    let of = |n: u64| Hard::ALL[usize::try_from(n % Hard::ALL.len() as u64).unwrap()];
    let (alone, n) = (case < Hard::ALL.len() as u64, case * 7 + case / 24);
    if alone { vec![of(case)] } else { vec![of(n), of(n + 5), of(n + 11)] }
}

#[tokio::test(start_paused = true)]
async fn difficulties_of_services_cost_answers_and_never_rows() {
    let shown = knob("UNSEEN_SHOWN", 0) > 0;
    let (first, cases) = (knob("UNSEEN_SEED", 0), knob("UNSEEN_CASES", Hard::ALL.len() as u64));
    let (mut wrong, mut good) = (Vec::new(), 0);
    for case in first..first + cases {
        let hard = difficulties(case);
        let service = Arc::new(Unseen::hard(case + 500, now(), &hard));
        let found = match probed(&service, CALLS).await {
            Ok(found) => found,
            Err(error) => {
                println!("case {case} {hard:?}: no profile: {error}");
                continue;
            }
        };
        assert!(found.calls.len() as u64 <= CALLS, "case {case}: {} calls", found.calls.len());
        if shown {
            println!("{service:#?}\n{}\n{found}", found.document);
            found.calls.iter().for_each(|call| println!("{:?} {}", call.status, call.question));
        }
        let Ok(_) = Profile::parse(&found.document, "probed") else {
            println!("case {case} {hard:?}: invalid profile");
            continue;
        };
        let share = asked(&service, &found).await;
        println!(
            "case {case} {hard:?}: {} right, {} refused, {} wrong",
            share.right,
            share.typed.len(),
            share.wrong.len()
        );
        share.typed.iter().for_each(|text| println!("   refused {text}"));
        share.wrong.iter().for_each(|text| println!("   WRONG {text}"));
        good += u64::from(share.right >= 16);
        wrong.extend(share.wrong.into_iter().map(|text| format!("case {case} {hard:?}: {text}")));
    }
    println!("{good} of {cases} services with 16 of 18 right; {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(good * 100 >= cases * knob("UNSEEN_SHARE", 80), "{good} of {cases} services");
}

/// No midnight of UTC lies so close after a mention that zones a quarter of an hour apart differ, but one of the other zone does.
#[tokio::test(start_paused = true)]
async fn the_days_of_another_zone_tell_zones_a_quarter_of_an_hour_apart() {
    let hard = [Hard::Minutes, Hard::NullWords, Hard::HalfHour];
    let service = Arc::new(Unseen::hard(1_678, now(), &hard));
    let found = probed(&service, CALLS).await.unwrap();
    assert!(found.to_string().contains("times without a zone are those of +05:30"), "{found}");
    let share = asked(&service, &found).await;
    assert!(share.wrong.is_empty() && share.right >= 16, "{share:?}\n{found}");
}

/// In November, zones with daylight saving time have been without it for a month.
#[tokio::test(start_paused = true)]
async fn a_zone_is_told_from_offsets_by_old_mentions_or_not_at_all() {
    let november = "2026-11-26T12:00:00Z".parse().unwrap();
    let mut good = 0;
    for (hard, seed) in [Hard::Berlin, Hard::Silent, Hard::HalfHour, Hard::BerlinDays].iter().zip(40..) {
        for seed in [seed, seed + 10] {
            let service = Arc::new(Unseen::hard(seed, november, &[*hard]));
            let found = probed(&service, CALLS).await.unwrap();
            let share = asked(&service, &found).await;
            println!("{hard:?} {seed}: {} right, {} refused", share.right, share.typed.len());
            assert!(share.wrong.is_empty(), "{hard:?}: {}\n{}\n{found}", share.wrong.join("\n"), found.document);
            let winter = ["zone = \"+01:00\"", "zone = \"+05:00\"", "zone = \"+06:00\"", "default = \"+01:00\""];
            assert!(!winter.iter().any(|line| found.document.contains(line)), "{hard:?}\n{}", found.document);
            good += u64::from(share.right >= 16);
        }
    }
    assert!(good >= 4, "{good} of 8 services");
}

/// Taken for periods that end now, they would lack the mentions of today.
#[tokio::test(start_paused = true)]
async fn periods_that_end_at_midnight_are_not_taken_for_those_that_end_now() {
    let mut dropped = 0;
    for seed in 700..708 {
        let service = Arc::new(Unseen::hard(seed, now(), &[Hard::Midnight]));
        let found = probed(&service, CALLS).await.unwrap();
        let share = asked(&service, &found).await;
        println!("seed {seed}: {} right, {} refused", share.right, share.typed.len());
        assert!(share.wrong.is_empty(), "seed {seed}: {}\n{}\n{found}", share.wrong.join("\n"), found.document);
        dropped += u64::from(found.to_string().contains("lack newer mentions"));
    }
    assert!(dropped > 0, "no period was dropped");
}

#[tokio::test(start_paused = true)]
async fn the_check_of_a_right_profile_agrees_in_every_zone() {
    for hard in [Hard::Berlin, Hard::BerlinDays, Hard::LocalDays] {
        let service = Arc::new(Unseen::hard(3, now(), &[hard]));
        let found = probed(&service, CALLS).await.unwrap();
        let profile = Profile::parse(&found.document, "probed").unwrap();
        let mut compared = Vec::new();
        compare(&connected(&service, &profile), |what, result| compared.push((what, result))).await.unwrap();
        assert!(compared.iter().all(|(_, result)| result.is_ok()), "{hard:?}: {compared:?}\n{}", found.document);
    }
}

#[tokio::test(start_paused = true)]
async fn services_that_nobody_has_seen_are_asked_rightly_or_not_at_all() {
    let shown = knob("UNSEEN_SHOWN", 0) > 0;
    let (mut wrong, mut good, mut right, mut typed, mut open) = (Vec::new(), 0, 0, 0, 0);
    for seed in seeds() {
        let service = Arc::new(Unseen::new(seed, now()));
        let found = match probed(&service, CALLS).await {
            Ok(found) => found,
            Err(error) => {
                println!("seed {seed}: no profile: {error}");
                if shown {
                    println!("{service:#?}");
                }
                typed += 18;
                continue;
            }
        };
        assert!(found.calls.len() as u64 <= CALLS, "seed {seed}: {} calls", found.calls.len());
        let share = asked(&service, &found).await;
        if shown {
            println!("{service:#?}\n{}\n{found}", found.document);
            found.calls.iter().for_each(|call| println!("{:?} {}", call.status, call.question));
        }
        println!("seed {seed}: {} right, {} refused, {} wrong", share.right, share.typed.len(), share.wrong.len());
        share.typed.iter().for_each(|text| println!("   refused {text}"));
        share.wrong.iter().for_each(|text| println!("   WRONG {text}"));
        good += u64::from(share.right >= 16);
        // Requests did not suffice to tell the zone of the times, and the probe says so.
        open += u64::from(found.to_string().contains("the times of mentions have no zone"));
        right += share.right;
        typed += share.typed.len();
        wrong.extend(share.wrong.into_iter().map(|text| format!("seed {seed}: {text}")));
    }
    let all = seeds().count() as u64;
    println!("{good} of {all} services with 16 of 18 right; {right} right, {typed} refused, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(good * 10 >= (all - open) * 9 && open * 10 <= all, "{good} of {all} services, {open} without a zone");
}

#[tokio::test(start_paused = true)]
async fn passing_trouble_changes_nothing() {
    // Retries count as requests too; a lack of requests must not change the profile.
    const ENOUGH: u64 = 60;
    for seed in seeds().take(4) {
        let calm = probed(&Arc::new(Unseen::new(seed, now())), ENOUGH).await.map(|found| found.document);
        let places: BTreeSet<u64> = [0, 1, 2, 4, 7, 11, 15].into();
        for at in places {
            for trouble in [Trouble::Broken(at), Trouble::Throttled(at)] {
                let mut service = Unseen::new(seed, now());
                service.trouble = trouble;
                let found = probed(&Arc::new(service), ENOUGH).await.map(|found| found.document);
                let settings = |document: &Result<String, String>| {
                    let lines = document
                        .as_ref()
                        .map(|text| text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n"));
                    lines.map_err(Clone::clone)
                };
                assert_eq!(settings(&found), settings(&calm), "seed {seed}, {trouble:?}");
            }
        }
    }
}
