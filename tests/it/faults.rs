//! Every fault of the simulator against every kind of query: the result matches the oracle without duplicates, or is a
//! typed error.
//!
//! The simulator runs in the process and time is virtual, so that waits take no real time. Over a fixed corpus, the
//! rows must equal the oracle's. Over a changing corpus, they must include the mentions that existed throughout the
//! query, and only mentions that existed at some time during it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion_saved_search::profile::Trust;
use datafusion_saved_search::simulator::{Corpus, CorpusSpec, Mention, Settings};
use datafusion_saved_search::{ErrorKind, Profile};
use proptest::prelude::*;

use crate::support::{BIG, OTHER, Virtual, knob, now, runner};

/// Mentions of three saved searches, many with equal timestamps.
fn corpus() -> Arc<Corpus> {
    static CORPUS: std::sync::LazyLock<Arc<Corpus>> = std::sync::LazyLock::new(|| {
        let spec = CorpusSpec { seed: 7, searches: 3, mentions: 500, now: now() };
        Arc::new(Corpus::generate(spec).rounded_to(300))
    });
    Arc::clone(&CORPUS)
}

/// Pages of 20 mentions, so that there are many.
fn profile() -> Profile {
    let mut profile = Profile::v4();
    profile.page.max = 20;
    profile
}

/// A kind of query: its SQL, and a predicate for the mentions it concerns.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    sql: &'static str,
    about: fn(&str, &Mention) -> bool,
    returned: Returned,
}

/// The part of the concerned mentions that a query returns.
#[derive(Clone, Copy, PartialEq)]
enum Returned {
    /// The aid and id of all.
    All,
    /// The ids of this many.
    Some(usize),
    /// The timestamps and ids of this many newest ones, sorted.
    Newest(usize),
    /// Their count.
    Count,
    /// Each language with its count.
    Languages,
}

const ALL: &str = "published_at >= '2026-01-01' AND published_at < '2026-07-02'";
const KINDS: [Kind; 9] = [
    Kind {
        name: "all",
        sql: "SELECT aid, id FROM mentions WHERE aid = '{BIG}' AND {ALL}",
        about: big,
        returned: Returned::All,
    },
    Kind {
        name: "filtered there",
        sql: "SELECT aid, id FROM mentions WHERE aid = '{BIG}' AND {ALL} AND language = 'en'",
        about: |aid, mention| big(aid, mention) && mention.facts.language.as_deref() == Some("en"),
        returned: Returned::All,
    },
    Kind {
        name: "filtered here",
        sql: "SELECT aid, id FROM mentions WHERE aid = '{BIG}' AND {ALL} AND author_handle LIKE 'user1%'",
        about: |aid, mention| {
            big(aid, mention) && mention.facts.author.as_deref().is_some_and(|author| author.starts_with("user1"))
        },
        returned: Returned::All,
    },
    Kind {
        name: "all in order",
        sql: "SELECT aid, id FROM mentions WHERE aid = '{BIG}' AND {ALL} ORDER BY published_at",
        about: big,
        returned: Returned::All,
    },
    Kind {
        name: "newest",
        sql: "SELECT published_at, id FROM mentions WHERE aid = '{BIG}' AND {ALL} ORDER BY published_at DESC LIMIT 45",
        about: big,
        returned: Returned::Newest(45),
    },
    Kind {
        name: "some",
        sql: "SELECT id FROM mentions WHERE aid = '{BIG}' AND {ALL} LIMIT 45",
        about: big,
        returned: Returned::Some(45),
    },
    Kind {
        name: "two saved searches",
        sql: "SELECT aid, id FROM mentions WHERE aid IN ('{BIG}', '{OTHER}') AND {ALL}",
        about: |aid, _| aid == BIG || aid == OTHER,
        returned: Returned::All,
    },
    Kind {
        name: "count",
        sql: "SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND {ALL}",
        about: big,
        returned: Returned::Count,
    },
    Kind {
        name: "languages",
        sql: "SELECT language, count(*) FROM mentions WHERE aid = '{BIG}' AND {ALL} GROUP BY language",
        about: big,
        returned: Returned::Languages,
    },
];

fn big(aid: &str, _: &Mention) -> bool {
    aid == BIG
}

impl Kind {
    fn text(&self) -> String {
        self.sql.replace("{BIG}", BIG).replace("{OTHER}", OTHER).replace("{ALL}", ALL)
    }

    /// Checks the rows of a query during which the service received these requests.
    fn check(&self, world: &Virtual, rows: &[Vec<String>], (first, last): (u64, u64)) -> Result<(), String> {
        let oracle = Oracle::new(world, *self, first, last);
        let known = |key: &String| oracle.ever.contains_key(key);
        let numbers = |of: &BTreeMap<String, Arc<Mention>>| of.len();
        match self.returned {
            Returned::All => {
                let got: BTreeSet<String> = rows.iter().map(|row| row.join(" ")).collect();
                ensure(got.len() == rows.len(), || {
                    format!("{} of {} rows are duplicates", rows.len() - got.len(), rows.len())
                })?;
                let lost: Vec<_> = oracle.throughout.keys().filter(|key| !got.contains(*key)).collect();
                ensure(lost.is_empty(), || {
                    format!("{} of {} mentions are lost: {lost:?}", lost.len(), oracle.throughout.len())
                })?;
                let foreign: Vec<_> = got.iter().filter(|key| !known(key)).collect();
                ensure(foreign.is_empty(), || format!("mentions that never existed: {foreign:?}"))
            }
            Returned::Some(limit) | Returned::Newest(limit) => {
                let ids: BTreeSet<&String> = rows.iter().filter_map(|row| row.last()).collect();
                ensure(ids.len() == rows.len(), || "duplicates".to_owned())?;
                ensure(ids.iter().all(|id| known(&format!("{BIG} {id}"))), || {
                    "mentions that never existed".to_owned()
                })?;
                let least = limit.min(numbers(&oracle.throughout));
                let most = limit.min(numbers(&oracle.ever));
                ensure((least..=most).contains(&rows.len()), || {
                    format!("{} rows, expected {least} to {most}", rows.len())
                })?;
                if self.returned == Returned::Some(limit) {
                    return Ok(());
                }
                ensure(rows.is_sorted_by(|a, b| a[0] >= b[0]), || "not sorted".to_owned())?;
                let Some(oldest) = rows.last().map(|row| row[0].clone()) else { return Ok(()) };
                let newer = oracle.throughout.iter().filter(|(_, mention)| instant(mention) > oldest);
                let lost: Vec<_> = newer.filter(|(key, _)| !ids.iter().any(|id| key.ends_with(id.as_str()))).collect();
                ensure(lost.is_empty(), || format!("{} newer mentions are lost", lost.len()))
            }
            Returned::Count => {
                let count = rows[0][0].parse().unwrap_or(usize::MAX);
                let (least, most) = (numbers(&oracle.throughout), numbers(&oracle.ever));
                ensure((least..=most).contains(&count), || format!("{count}, expected {least} to {most}"))
            }
            Returned::Languages => {
                let got: BTreeMap<&str, usize> =
                    rows.iter().map(|row| (row[0].as_str(), row[1].parse().unwrap_or(usize::MAX))).collect();
                let count = |of: &BTreeMap<String, Arc<Mention>>| {
                    of.values().fold(BTreeMap::<String, usize>::new(), |mut counts, mention| {
                        let language = mention.facts.language.as_deref().unwrap_or("NULL");
                        *counts.entry(language.to_owned()).or_default() += 1;
                        counts
                    })
                };
                let (least, most) = (count(&oracle.throughout), count(&oracle.ever));
                let low = least.iter().find(|(language, n)| got.get(language.as_str()).unwrap_or(&0) < n);
                let high = got.iter().find(|(language, n)| most.get(**language).unwrap_or(&0) < n);
                ensure(low.is_none() && high.is_none(), || format!("{got:?}, expected {least:?} to {most:?}"))
            }
        }
    }
}

fn ensure(holds: bool, message: impl Fn() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}

fn instant(mention: &Mention) -> String {
    mention.facts.published.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The mentions that a query concerns, by aid and id.
struct Oracle {
    throughout: BTreeMap<String, Arc<Mention>>,
    ever: BTreeMap<String, Arc<Mention>>,
}

impl Oracle {
    fn new(world: &Virtual, kind: Kind, first: u64, last: u64) -> Self {
        let prefix = if world.connection.profile().name == "names" { "m-" } else { "" };
        let state = |request: u64| -> BTreeMap<String, Arc<Mention>> {
            let searches = world.simulator.corpus().searches.iter();
            let all = searches.flat_map(|search| {
                let alive = world.simulator.alive(&search.aid, request);
                alive.into_iter().map(|mention| (search.aid.clone(), mention))
            });
            let about = all.filter(|(aid, mention)| (kind.about)(aid, mention));
            about.map(|(aid, mention)| (format!("{aid} {prefix}{}", mention.facts.id), mention)).collect()
        };
        let mut ever = state(first);
        let mut throughout = ever.clone();
        for request in first..=last {
            let now = state(request);
            throughout.retain(|key, _| now.contains_key(key));
            ever.extend(now);
        }
        Self { throughout, ever }
    }
}

/// The allowed outcomes of a fault.
#[derive(Debug, Clone, Copy)]
enum Must {
    /// Correct rows.
    Pass,
    /// An error of one of these kinds, unless the fault does not affect the query.
    Fail(&'static [ErrorKind]),
    /// Correct rows or any typed error.
    Either,
}

use ErrorKind::{
    Connect, Contradiction, Incomplete, Malformed, Redirect, Throttled, Timeout, TooLarge, Unauthorized, Unavailable,
};
use Must::{Either, Fail, Pass};

/// Faults by their numbers in the list of faults that a scan must survive, each with the allowed outcomes of a query
/// that reads all mentions of a saved search.
const FAULTS: &[(u32, &str, Must)] = &[
    (1, "429:retry-after=2@3-5", Pass),
    (2, "429:retry-after=date+7@2", Pass),
    (2, "429:reset=epoch+30@2-3", Pass),
    (3, "429:body=text@2-6", Pass),
    (3, "429:body=html", Fail(&[Throttled])),
    (4, "429:retry-after=0@2-4", Pass),
    (4, "429:retry-after=-5@2", Pass),
    (4, "429:retry-after=315360000@2", Fail(&[Throttled])),
    (7, "503@2-4", Pass),
    (7, "503:retry-after=3@2-4", Pass),
    (7, "500@10%", Either),
    (7, "502:body=html", Fail(&[Unavailable])),
    (8, "truncated:at=90@2-3", Pass),
    (8, "truncated:at=0", Fail(&[Malformed])),
    (9, "reset@2-4", Pass),
    (9, "reset:at=99", Fail(&[Connect])),
    (10, "trickle:ms=100", Pass),
    (10, "trickle:ms=10000@2", Pass),
    (10, "stall@3", Pass),
    (10, "stall", Fail(&[Timeout])),
    (11, "html@2-3", Pass),
    (11, "html", Fail(&[Malformed])),
    (12, "error-body@2-3", Pass),
    (12, "error-body", Fail(&[Unavailable])),
    (13, "utf8", Fail(&[Malformed])),
    (13, "escape", Fail(&[Malformed])),
    (13, "surrogate@2", Either),
    (14, "empty@3", Pass),
    (14, "empty@3-4", Pass),
    (14, "empty", Fail(&[Incomplete])),
    (15, "total:by=3@4", Pass),
    (15, "total:by=-3@50%", Either),
    (15, "total:by=5", Fail(&[Incomplete])),
    (16, "arrive:at=start@3-6", Either),
    (16, "arrive:n=3@50%", Either),
    (17, "delete:at=start@4", Either),
    (17, "delete:n=2@50%", Either),
    (17, "delete:n=25,at=start@5", Either),
    (18, "ties", Either),
    (19, "short:rows=3@4", Pass),
    (19, "short:rows=1@20%", Either),
    (20, "clamp:rows=7", Pass),
    (21, "depth:rows=60,answer=400", Pass),
    (21, "depth:rows=60,answer=404", Pass),
    (21, "depth:rows=60,answer=empty", Pass),
    (21, "depth:rows=60,answer=last", Pass),
    (22, "offset-ignored", Fail(&[Contradiction])),
    (23, "sort-ignored", Either),
    (23, "filters-ignored", Either),
    (23, "values:used=first", Either),
    (24, "twice@3", Pass),
    (24, "edit:n=3", Either),
    (26, "missing:field=snippet", Either),
    (26, "null:field=title", Either),
    (28, "extra", Pass),
    (29, "drift:field=engagement", Pass),
    (30, "big:field=reach", Pass),
    (31, "times", Pass),
    (36, "skew:seconds=600", Pass),
    (37, "401@4-", Fail(&[Unauthorized])),
    (38, "403:aid=184889", Either),
    (39, "redirect@3", Fail(&[Redirect])),
    (40, "400:body=echo@3-", Either),
    (40, "401:body=echo", Fail(&[Unauthorized])),
    (41, "bomb@2", Either),
    (41, "giant:mib=130", Fail(&[TooLarge])),
    (41, "deep", Fail(&[Malformed, Contradiction])),
    (42, "size-ignored", Pass),
    (43, "other-aid", Fail(&[Contradiction])),
    (43, "other-aid@3", Pass),
    (43, "other-window@2", Pass),
];

/// Relaxes the outcomes for queries that may not notice the fault and return correct rows.
fn checked(kind: &Kind, must: Must) -> Must {
    match must {
        // Queries that need fewer pages, or none, may never hit the fault or notice it.
        Fail(_) if kind.name != "all" => Either,
        Pass if kind.name == "all" => Pass,
        _ if kind.name != "all" => Either,
        other => other,
    }
}

async fn one(kind: &Kind, faults: &[String], seed: u64, profile: Profile, must: Must) -> Result<String, String> {
    let preset = profile.name.parse().unwrap();
    let world = Virtual::new(corpus(), faults, Settings { seed, preset, ..Settings::default() }, profile);
    let result = world.ask(&kind.text()).await;
    let span = (1, world.simulator.requests().max(1));
    match (result, must) {
        (Ok(rows), Pass | Either) => kind.check(&world, &rows, span).map(|()| "right".to_owned()),
        (Ok(_), Fail(kinds)) => Err(format!("success instead of {kinds:?}")),
        (Err(error), Pass) => Err(format!("error: {error}")),
        (Err(error), Fail(kinds)) if kinds.contains(&error.kind()) => Ok(format!("{:?}", error.kind())),
        (Err(error), Fail(kinds)) => Err(format!("{:?} instead of {kinds:?}: {error}", error.kind())),
        (Err(error), Either) => Ok(format!("{:?}", error.kind())),
    }
}

#[tokio::test(start_paused = true)]
async fn every_fault_against_every_kind_of_query() {
    let mut wrong = Vec::new();
    for (number, fault, must) in FAULTS {
        for kind in &KINDS {
            let outcome = one(kind, &[(*fault).to_owned()], 1, profile(), checked(kind, *must)).await;
            if knob("FAULTS_SHOWN", 0) > 0 {
                println!("{number:>3} {fault:<32} {:<20} {outcome:?}", kind.name);
            }
            if let Err(why) = outcome {
                wrong.push(format!("fault {number}, {fault}, {}: {why}", kind.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Faults for the services of all dialects, with the allowed outcomes of a query that reads all mentions.
const EVERYWHERE: &[(&str, Must)] = &[
    ("extra", Pass),
    ("503:retry-after=3@2", Pass),
    ("truncated@2", Pass),
    ("reset@2", Pass),
    ("html@2", Pass),
    ("error-body@2", Pass),
    ("401:body=echo", Fail(&[Unauthorized])),
    ("twice@2", Pass),
    ("trickle:ms=100@2", Pass),
    ("utf8", Fail(&[Malformed])),
    ("edit:n=3", Either),
    ("arrive:at=start@3", Either),
    ("delete:at=start@3", Either),
    ("delete:n=25,at=start@4", Either),
    ("ties", Either),
    ("clamp:rows=7", Either),
    ("short:rows=3@3", Either),
    ("empty@3", Either),
    ("sort-ignored", Either),
    ("filters-ignored", Either),
    ("other-aid@2", Either),
    ("depth:rows=130,answer=404", Either),
    ("depth:rows=130,answer=empty", Either),
    ("offset-ignored", Either),
    ("skew:seconds=300", Either),
];

/// Each dialect's own form of throttling, which the client must wait out.
const THROTTLED: [(&str, &str); 3] = [
    ("flags", "403:code=rate_exceeded@2"),
    ("pages", "429:body=text@2-3"),
    ("names", "503:code=slow_down,retry-after=date+7@2-3"),
];

#[tokio::test(start_paused = true)]
async fn faults_in_every_dialect() {
    let mut wrong = Vec::new();
    for (name, throttled) in THROTTLED {
        let mut profile = Profile::builtin(name).unwrap();
        profile.page.max = 20;
        // A page of another saved search is noticed only if the response echoes the aid.
        let shows = |fault: &str| profile.echo.aid.is_some() || !fault.starts_with("other-aid");
        let faults = EVERYWHERE.iter().filter(|(fault, _)| shows(fault));
        for (fault, must) in faults.chain([&(throttled, Pass)]) {
            let kinds = ["all", "newest", "languages"];
            for kind in KINDS.iter().filter(|kind| kinds.contains(&kind.name)) {
                let outcome = one(kind, &[(*fault).to_owned()], 1, profile.clone(), checked(kind, *must)).await;
                if knob("FAULTS_SHOWN", 0) > 0 {
                    println!("{name} {fault:<32} {:<20} {outcome:?}", kind.name);
                }
                if let Err(why) = outcome {
                    wrong.push(format!("{name}: {fault}, {}: {why}", kind.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Random pairs of faults. `FAULT_PAIRS` sets their count, `FAULT_SEED` the first seed.
#[tokio::test(start_paused = true)]
async fn seeded_pairs_of_faults() {
    let (count, first) = (knob("FAULT_PAIRS", 120), knob("FAULT_SEED", 1));
    let mut wrong = Vec::new();
    for seed in first..first + count {
        let pick = |salt: u64| usize::try_from(mix(seed, salt) % FAULTS.len() as u64).unwrap();
        let pair = [FAULTS[pick(1)].1.to_owned(), FAULTS[pick(2)].1.to_owned()];
        let kind = &KINDS[usize::try_from(mix(seed, 3)).unwrap() % KINDS.len()];
        if let Err(why) = one(kind, &pair, seed, profile(), Either).await {
            wrong.push(format!("seed {seed}: {} and {}, {}: {why}", pair[0], pair[1], kind.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Hashes a seed and a salt.
fn mix(seed: u64, salt: u64) -> u64 {
    let mixed = (seed ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 16
}

/// A random fault that may occur at any time, with a schedule.
fn any_fault() -> impl Strategy<Value = String> {
    let when = prop_oneof![
        (1..30_u64).prop_map(|n| format!("@{n}")),
        (1..20_u64, 1..8_u64).prop_map(|(n, more)| format!("@{n}-{}", n + more)),
        (5..60_u64).prop_map(|percent| format!("@{percent}%")),
    ];
    let place = prop::sample::select(vec!["any", "start", "end"]);
    let what = prop_oneof![
        4 => (1..4_u64, place.clone()).prop_map(|(n, at)| format!("delete:n={n},at={at}")),
        4 => (1..4_u64, place.clone()).prop_map(|(n, at)| format!("arrive:n={n},at={at}")),
        2 => (1..4_u64, place).prop_map(|(n, at)| format!("edit:n={n},at={at}")),
        6 => prop::sample::select(vec![
            "429:retry-after=3", "503", "truncated:at=70", "reset:at=30", "html", "error-body", "empty", "twice", "total:by=2",
            "total:by=-2", "surrogate", "trickle:ms=50", "skew:seconds=-300", "other-aid", "times", "sort-ignored",
        ]).prop_map(str::to_owned),
        2 => (1..19_u64).prop_map(|rows| format!("short:rows={rows}")),
    ];
    (what, when).prop_map(|(what, when)| what + &when)
}

/// A random property of the service that does not change.
fn any_nature() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        6 => Just(None),
        1 => Just(Some("ties".to_owned())),
        1 => (5..20_u64).prop_map(|rows| Some(format!("clamp:rows={rows}"))),
        2 => (40..200_u64, prop::sample::select(vec!["400", "404", "empty", "last"]))
            .prop_map(|(rows, answer)| Some(format!("depth:rows={rows},answer={answer}"))),
    ]
}

/// A random change to the profile.
fn any_profile() -> impl Strategy<Value = fn(&mut Profile)> {
    let nothing: fn(&mut Profile) = |_| {};
    let short_windows: fn(&mut Profile) = |profile| profile.window.longest = "20d".to_owned().try_into().ok();
    let no_total: fn(&mut Profile) = |profile| {
        profile.total.trust = Trust::Advisory;
        profile.counts = None;
    };
    let small: fn(&mut Profile) = |profile| profile.page.max = 6;
    prop_oneof![4 => Just(nothing), 1 => Just(short_windows), 1 => Just(no_total), 1 => Just(small)]
}

/// Random schedules of faults over a changing corpus. `FAULT_CASES` sets their count (10,000 for a nightly run),
/// `FAULT_SEED` the seed.
#[test]
fn random_faults_over_a_moving_corpus() {
    let (cases, seed) = (knob("FAULT_CASES", 300), knob("FAULT_SEED", 1));
    let mut runner = runner(cases, seed);
    let outcomes = std::sync::Mutex::new(BTreeMap::<String, u64>::new());
    let strategy =
        (prop::collection::vec(any_fault(), 0..4), any_nature(), any_profile(), 0..KINDS.len(), any::<u64>());
    let result = runner.run(&strategy, |(mut faults, nature, change, kind, seed)| {
        // If ties are reordered, arrivals and deletions can cancel out unnoticed, so only one of them is kept.
        if nature.as_deref() == Some("ties") {
            let gone = if seed % 2 == 0 { "delete" } else { "arrive" };
            faults.retain(|fault| !fault.starts_with(gone));
        }
        faults.extend(nature.clone());
        let mut profile = profile();
        change(&mut profile);
        // The first rows cannot be proven either if the mentions of one instant do not fit into a page.
        if nature.as_deref() == Some("ties") {
            profile.page.max = 20;
        }
        // Without a total, repeated empty pages look exactly like an empty window.
        if profile.total.trust != Trust::Exact {
            faults.retain(|fault| !fault.starts_with("empty"));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let outcome = runtime.block_on(one(&KINDS[kind], &faults, seed, profile, Either));
        let outcome = outcome.map_err(|why| TestCaseError::fail(format!("{}: {why}", KINDS[kind].name)))?;
        if knob("FAULTS_SHOWN", 0) > 0 {
            println!("{outcome:<14} {:<20} {faults:?} seed {seed}", KINDS[kind].name);
        }
        *outcomes.lock().unwrap().entry(outcome).or_default() += 1;
        Ok(())
    });
    let outcomes = outcomes.into_inner().unwrap();
    println!("random faults: {outcomes:?}");
    result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let right = outcomes.get("right").copied().unwrap_or_default();
    assert!(right * 2 > cases, "most cases should return correct rows: {outcomes:?}");
}

/// The first rows of a sort order are correct even if mentions of one instant are reordered in each response.
#[tokio::test(start_paused = true)]
async fn the_newest_of_tied_mentions() {
    for seed in 0..40 {
        let mut profile = profile();
        if seed % 2 == 0 {
            profile.window.longest = "20d".to_owned().try_into().ok();
        }
        let faults = ["reset:at=30@49%".to_owned(), "ties".to_owned()];
        let outcome = one(&KINDS[4], &faults, mix(seed, 7), profile, Either).await;
        assert!(outcome.is_ok(), "seed {seed}: {outcome:?}");
    }
}
