//! Completeness proofs of a scan by shared rows of consecutive pages, by counts elsewhere in a response, and by reading
//! in another sort order; and responses that do not contain the table.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use datafusion_saved_search::client::HttpLimits;
use datafusion_saved_search::profile::{End, Pointer, Trust};
use datafusion_saved_search::simulator::{Corpus, CorpusSpec, Fault, KEY, Preset, Settings, Simulator};
use datafusion_saved_search::{Clock, Connection, Error, ErrorKind, Profile, Secret, session};
use serde_json::{Value, json};

use crate::support::{BIG, InProcess, OTHER, Scripted, Virtual, corpus, each_async, now, pages, rows};

/// A session over a simulator with these faults and altered responses.
fn bent(faults: &[&str], bend: fn(&mut Value), change: impl Fn(&mut Profile)) -> (Virtual, Simulator) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let faults: Vec<Fault> = faults.iter().map(|text| text.parse().unwrap()).collect();
    let clock = Clock::starting_at(now());
    let simulator = Simulator::new(corpus(), Settings { clock: clock.clone(), faults, ..Settings::default() });
    let service = Scripted::altered(InProcess(simulator.clone(), HttpLimits::default()), move |response| {
        if let Ok(mut body) = serde_json::from_slice(&response.body) {
            bend(&mut body);
            response.body = body.to_string().into();
        }
    });
    let mut profile = Profile::v4();
    change(&mut profile);
    let address = format!("http://bent{}.test/v4", NUMBER.fetch_add(1, Ordering::Relaxed));
    let connection = Connection::builder(address, Secret::new(KEY).unwrap())
        .service(service)
        .clock(clock)
        .profile(profile)
        .build()
        .unwrap();
    let context = session(&connection).unwrap();
    (Virtual { simulator: simulator.clone(), connection, context }, simulator)
}

fn service(faults: &[&str], change: impl Fn(&mut Profile)) -> Virtual {
    let mut profile = Profile::v4();
    change(&mut profile);
    Virtual::new(corpus(), faults, Settings::default(), profile)
}

fn ids_of(rows: Vec<Vec<String>>) -> HashSet<String> {
    let ids: Vec<String> = rows.concat();
    let distinct: HashSet<String> = ids.iter().cloned().collect();
    assert_eq!(distinct.len(), ids.len(), "duplicate mentions");
    distinct
}

fn all_of(aid: &str) -> HashSet<String> {
    corpus().search(aid).unwrap().mentions.iter().map(|mention| mention.facts.id.to_string()).collect()
}

/// Reports the window like a service that counts time in microseconds, about half a second wider at both ends.
fn in_microseconds(body: &mut Value) {
    for (end, shift) in [("from", -400_003), ("to", 400_007)] {
        let at = body["window"][end].as_str().and_then(|at| at.parse::<DateTime<Utc>>().ok());
        if let Some(at) = at {
            let at = at + TimeDelta::microseconds(shift);
            body["window"][end] = json!(at.to_rfc3339_opts(SecondsFormat::Micros, true));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_relative_period_of_odd_instants_is_cut_where_paging_ends() {
    for (declared, fault) in [(false, "depth:rows=400,answer=400"), (true, "depth:rows=400,answer=400")] {
        let depth = |profile: &mut Profile| profile.depth.rows = declared.then_some(400);
        let (world, _) = bent(&[fault], in_microseconds, depth);
        let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '100d'");
        assert_eq!(ids_of(world.rows(&sql).await), all_of(BIG), "declared: {declared}");
        let newest = format!("{sql} ORDER BY published_at DESC");
        assert_eq!(ids_of(world.rows(&newest).await), all_of(BIG), "declared: {declared}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_depth_is_met_without_exact_totals_and_with_ends_that_belong_to_both_sides() {
    let lower_bound: fn(&mut Value) = |body| body["mentions"]["totalRelation"] = json!("gte");
    for declared in [None, Some(300)] {
        let change = |profile: &mut Profile| {
            (profile.depth.rows, profile.window.end) = (declared, End::Inclusive);
        };
        let (world, _) = bent(&["depth:rows=300,answer=400"], lower_bound, change);
        let sql = format!(
            "SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= '2026-01-01' AND published_at < '2026-07-02'"
        );
        assert_eq!(ids_of(world.rows(&sql).await), all_of(BIG), "{declared:?}");
    }
}

/// Mentions at the instant of a cut are in both parts, and an undeclared depth is met without proof of the first one: it is read
/// again, without those mentions.
#[tokio::test(start_paused = true)]
async fn an_undeclared_depth_is_met_by_windows_that_include_both_ends() {
    let spec = CorpusSpec { seed: 11, searches: 1, mentions: 900, now: now() };
    for (seconds, answer) in [(1, "400"), (1, "empty"), (7_200, "400"), (7_200, "empty")] {
        let corpus = Arc::new(Corpus::generate(spec).rounded_to(seconds));
        let aid = corpus.searches[0].aid.clone();
        let all: HashSet<String> =
            corpus.searches[0].mentions.iter().map(|mention| mention.facts.id.to_string()).collect();
        let faults = ["end-included".to_owned(), format!("depth:rows=200,answer={answer}")];
        for order in ["", " ORDER BY published_at", " ORDER BY published_at DESC"] {
            let mut profile = Profile::v4();
            profile.window.end = End::Inclusive;
            let world = Virtual::new(Arc::clone(&corpus), &faults, Settings::default(), profile);
            let sql = format!("SELECT id FROM mentions WHERE aid = '{aid}' AND duration = '100d'{order}");
            assert_eq!(ids_of(world.rows(&sql).await), all, "{seconds} s, {answer}:{order}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_error_of_depth_says_what_to_do() {
    for answer in ["400", "404", "empty", "last"] {
        let world = service(&[&format!("depth:rows=200,answer={answer}")], |profile| {
            profile.window.absolute = None;
            profile.counts = None;
        });
        let error = world.error(&format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '100d'")).await;
        let kinds = [ErrorKind::TooDeep, ErrorKind::Incomplete, ErrorKind::NotFound];
        assert!(kinds.contains(&error.kind()), "{answer}: {error}");
        assert!(error.to_string().contains("narrow the"), "{answer}: {error}");
        assert!(!error.to_string().contains("added or removed"), "{answer}: {error}");
    }
}

/// A pass can be proven or not, depending on where mentions arrive and disappear meanwhile. Most can; the others are refused.
#[tokio::test(start_paused = true)]
async fn pages_that_link_prove_a_set_that_moves_all_the_time() {
    let (mut proven, mut refused) = (0, 0);
    for (shift, places) in
        (0..6).flat_map(|shift| [["any", "any"], ["end", "any"], ["any", "end"]].map(|at| (shift, at)))
    {
        let corpus = Arc::new(Corpus::generate(CorpusSpec { seed: 11, searches: 1, mentions: 1_500, now: now() }));
        let aid = corpus.searches[0].aid.clone();
        let arrive = (1 + shift % 2..200).step_by(2).map(|request| format!("arrive:at={}@{request}", places[0]));
        let delete = (1 + shift % 3..200).step_by(3).map(|request| format!("delete:at={}@{request}", places[1]));
        let faults: Vec<String> = arrive.chain(delete).collect();
        let world = Virtual::new(corpus, &faults, Settings::default(), Profile::v4());
        let sql = format!("SELECT id FROM mentions WHERE aid = '{aid}' AND published_at >= '2026-01-01'");
        let got = match world.ask(&sql).await {
            Ok(rows) => ids_of(rows),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Incomplete, "{places:?}: {error}");
                refused += 1;
                continue;
            }
        };
        proven += 1;
        let requests = world.simulator.requests();
        let alive = |request| -> HashSet<String> {
            world.simulator.alive(&aid, request).into_iter().map(|mention| mention.facts.id.to_string()).collect()
        };
        let throughout = (1..=requests).map(alive).reduce(|all, now| &all & &now).unwrap();
        let ever = (1..=requests).map(alive).reduce(|all, now| &all | &now).unwrap();
        let lost: Vec<_> = throughout.difference(&got).collect();
        assert!(lost.is_empty(), "{places:?}: {lost:?} were lost");
        assert!(got.is_subset(&ever), "{places:?}");
    }
    assert!(proven >= 2 * refused, "{proven} proven, {refused} refused");
}

/// Numbered pages share no rows, so only a second pass reveals mentions that shifted between pages.
#[tokio::test(start_paused = true)]
async fn pages_without_a_total_are_believed_when_two_passes_agree() {
    let spec = CorpusSpec { seed: 11, searches: 1, mentions: 2_400, now: now() };
    let mut profile = Profile::builtin("pages").unwrap();
    (profile.total.trust, profile.total.at, profile.total.relation) = (Trust::Absent, None, None);
    profile.counts = None;
    let size = profile.page.max;
    for fault in [None, Some("delete:n=300,at=any@2"), Some("delete:n=300,at=any@3")] {
        let corpus = Arc::new(Corpus::generate(spec));
        let aid = corpus.searches[0].aid.clone();
        let settings = Settings { preset: Preset::Pages, ..Settings::default() };
        let world = Virtual::new(corpus, fault.as_slice(), settings, profile.clone());
        let sql = format!("SELECT id FROM mentions WHERE aid = '{aid}' AND duration = '30d'");
        match (fault, world.ask(&sql).await) {
            (None, rows) => {
                let passes = world.simulator.requests() * size / rows.unwrap().len() as u64;
                assert!(passes >= 2, "{passes} passes");
            }
            // Mentions shifted to pages already read. No later pass has the same mentions, so no two passes agree.
            (Some(_), rows) => assert_eq!(rows.expect_err("mentions were lost").kind(), ErrorKind::Incomplete),
        }
    }
}

/// Beyond the end, the service repeats its last page, which is then the first one as well.
#[tokio::test(start_paused = true)]
async fn a_full_page_may_be_all_of_them() {
    let profile = Profile::builtin("pages").unwrap();
    let size = usize::try_from(profile.page.max).unwrap();
    let corpus = Arc::new(Corpus::generate(CorpusSpec { seed: 11, searches: 1, mentions: 2_400, now: now() }));
    let search = &corpus.searches[0];
    let mut instants: Vec<_> = search.mentions.iter().map(|mention| mention.facts.published).collect();
    instants.sort_unstable();
    // A window that ends between two instants, with one, two and three pages.
    let ends = (1..instants.len()).filter(|at| instants[*at] > instants[at - 1]);
    let exact: Vec<usize> = ends.filter(|at| [size, 2 * size, 3 * size].contains(at)).collect();
    assert!(exact.contains(&size), "{exact:?}");
    for count in exact {
        let settings = Settings { preset: Preset::Pages, ..Settings::default() };
        let world = Virtual::new(Arc::clone(&corpus), &[] as &[&str], settings, profile.clone());
        let (aid, from, to) = (&search.aid, instants[0], instants[count]);
        let window = format!("published_at >= '{}' AND published_at < '{}'", from.to_rfc3339(), to.to_rfc3339());
        let rows = world.rows(&format!("SELECT id FROM mentions WHERE aid = '{aid}' AND {window}")).await;
        assert_eq!(rows.concat().len(), count);
    }
}

#[tokio::test(start_paused = true)]
async fn orders_that_prove_nothing_are_made_here() {
    let all = "published_at >= '2026-01-01' AND published_at < '2026-07-02'";
    let sql = format!("SELECT reach FROM mentions WHERE aid IN ('{BIG}', '{OTHER}') AND {all} ORDER BY reach DESC");
    let mut right: Vec<Option<i64>> = [BIG, OTHER]
        .iter()
        .flat_map(|aid| corpus().search(aid).unwrap().mentions.iter().map(|m| m.facts.reach).collect::<Vec<_>>())
        .collect();
    right.sort_by(|a, b| b.cmp(a));
    let right: Vec<String> =
        right.into_iter().map(|reach| reach.map_or("NULL".to_owned(), |reach| reach.to_string())).collect();
    for faults in [&["ties"] as &[&str], &["ties", "depth:rows=300,answer=400"], &[]] {
        let world = service(faults, |profile| {
            profile.depth.rows = faults.get(1).map(|_| 300);
            profile.depth.beyond = faults.get(1).map(|_| datafusion_saved_search::profile::DepthAnswer::BadRequest);
        });
        assert_eq!(world.rows(&sql).await.concat(), right, "{faults:?}");
        let requests = world.simulator.requests();
        let least: u64 = [BIG, OTHER].iter().map(|aid| pages(all_of(aid).len() as u64)).sum();
        assert!(faults.len() > 1 || requests == least, "{faults:?}: {requests} requests, expected {least}");
        // The service applies a limit within the reachable depth, but not a deeper one.
        if faults.len() > 1 {
            assert_eq!(world.rows(&format!("{sql} LIMIT 700")).await.concat(), right[..700], "{faults:?}");
        }
    }
    let world = service(&[], |_| {});
    assert_eq!(world.rows(&format!("{sql} LIMIT 20")).await.concat(), right[..20]);
    assert_eq!(world.simulator.requests(), 2, "the service sorts for a limit");
}

#[tokio::test(start_paused = true)]
async fn one_unknown_aid_of_several_is_named_or_left_out() {
    each_async([
        format!("SELECT count(*) FROM mentions WHERE aid IN ('{BIG}', 'nobody') AND duration = '100d'"),
        format!("SELECT count(DISTINCT id) FROM mentions WHERE aid IN ('{BIG}', 'nobody') AND duration = '100d'"),
        format!("SELECT sum(total_mentions) FROM overview WHERE aid IN ('{BIG}', 'nobody') AND duration = '100d'"),
        format!(
            "SELECT count(*) FROM (SELECT reach FROM mentions WHERE aid IN ('{BIG}', 'nobody') AND duration = '100d' \
             ORDER BY reach LIMIT 5000)"
        ),
    ], async |sql| {
        let world = service(&[], |_| {});
        let error = world.error(&sql).await;
        assert_eq!(
            (error.kind(), error.place().aid.as_deref()),
            (ErrorKind::NotFound, Some("nobody")),
            "{sql}: {error}"
        );
        world.rows("SET savedsearch.partial = 'on'").await;
        assert_eq!(world.rows(&sql).await, [[all_of(BIG).len().to_string()]], "{sql}");
        let warned = world.rows("SELECT DISTINCT aid FROM system.warnings").await;
        assert_eq!(warned, [["nobody"]], "{sql}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_number_of_the_overview_confirms_an_end_if_pages_tell_none() {
    let absent = |profile: &mut Profile| {
        (profile.total.trust, profile.total.at, profile.total.relation) = (Trust::Absent, None, None);
    };
    for (days, faults) in [(5, &[] as &[&str]), (40, &[])] {
        let world = service(faults, absent);
        let since = (now() - TimeDelta::days(days)).to_rfc3339();
        let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= '{since}'");
        let got = ids_of(world.rows(&sql).await);
        let (got, requests) = (got.len() as u64, world.simulator.requests());
        // Careful pages overlap by an instant.
        assert!(requests <= pages(got) + 1, "{days} days: {requests} requests for {got} mentions");
    }
    // A count that does not match proves nothing and loses no rows.
    let (world, _) = bent(&[], |body| body["overview"]["totalMentions"] = json!(3), absent);
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= '2026-01-01'");
    assert_eq!(ids_of(world.rows(&sql).await), all_of(BIG));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_has_nothing_of_a_table_is_an_error() {
    let optional = |profile: &mut Profile| {
        let tables = &mut profile.tables;
        for table in [&mut tables.saved_searches, &mut tables.overview, &mut tables.volume, &mut tables.breakdowns] {
            table.sections.iter_mut().for_each(|section| section.optional = true);
        }
    };
    let refused: fn(&mut Value) = |body| *body = json!({"success": false, "errorCode": 17, "errorMessage": "no"});
    let elsewhere: fn(&mut Value) = |body| {
        let volume = body["overview"]["volume"].take();
        body["overview"] = json!({"totalMentions": 5, "timeline": volume});
    };
    let pairs: fn(&mut Value) = |body| body["overview"]["volume"] = json!([[1_750_000_000_000_i64, 3]]);
    let map: fn(&mut Value) = |body| body["overview"]["volume"] = json!({"2026-06-30": 3});
    let of = format!("aid = '{BIG}'");
    each_async(
        [
            (refused, "SELECT aid FROM saved_searches".to_owned()),
            (refused, "SELECT id FROM mentions".to_owned()),
            (refused, format!("SELECT * FROM overview WHERE {of}")),
            (refused, format!("SELECT * FROM volume WHERE {of}")),
            (refused, format!("SELECT * FROM breakdowns WHERE {of}")),
            (refused, format!("SELECT id FROM mentions WHERE {of}")),
            (refused, format!("SELECT count(*) FROM mentions WHERE {of}")),
            (elsewhere, format!("SELECT * FROM volume WHERE {of}")),
            (pairs, format!("SELECT * FROM volume WHERE {of}")),
            (map, format!("SELECT * FROM volume WHERE {of}")),
        ],
        async |(bend, sql)| {
            let (world, _) = bent(&[], bend, optional);
            let error = world.error(&sql).await;
            // A code or a message of an error is the service's own word that the response is not complete.
            let named = ["errorMessage", "errorCode"].iter().any(|name| error.to_string().contains(name));
            let expected = if named { ErrorKind::Incomplete } else { ErrorKind::Contradiction };
            assert_eq!(error.kind(), expected, "{sql}: {error}");
        },
    )
    .await;
    // An empty response is valid if the overview counts no mentions.
    let (world, _) = bent(&[], |body| body["overview"] = json!({"totalMentions": 0}), optional);
    for table in ["volume", "breakdowns"] {
        assert!(world.rows(&format!("SELECT * FROM {table} WHERE {of}")).await.is_empty());
    }
}

#[test]
fn errors_inside_a_success_need_a_place_to_be_recognized_by() {
    let text = Profile::builtin_document("v4").unwrap();
    let text = text.replace("inside_success = false", "inside_success = true");
    let without = text.replace("code = \"/error/code\"\n", "").replace("message = \"/error/message\"\n", "");
    assert!(Profile::parse(&text, "mine").is_ok());
    let error = Profile::parse(&without, "mine").unwrap_err();
    assert!(error.to_string().contains("error.inside_success"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn lists_that_leave_mentions_out_never_make_them_nameless() {
    let all = |sql: &str| format!("{sql} FROM mentions WHERE aid = '{BIG}' AND duration = '100d'");
    let facts = corpus().search(BIG).unwrap().mentions.iter().map(|m| m.facts.clone()).collect::<Vec<_>>();
    let with = facts.iter().filter(|facts| facts.language.is_some()).count().to_string();
    let kinds = facts.iter().filter_map(|f| f.language.clone()).collect::<HashSet<_>>().len().to_string();
    let bends: [fn(&mut Value); 6] = [
        |body| body["overview"]["languages"] = json!([]),
        |body| body["overview"]["languages"] = json!(null),
        |body| drop(body["overview"].as_object_mut().map(|overview| overview.remove("languages"))),
        |body| drop(body["overview"]["languages"].as_array_mut().map(Vec::pop)),
        |body| body["overview"]["totalMentions"] = json!(5_000),
        |body| body["overview"]["otherCount"] = json!(0),
    ];
    for bend in bends {
        let (world, _) = bent(&[], bend, |_| {});
        let counted = world.rows(&all("SELECT count(language), count(DISTINCT language)")).await;
        assert_eq!(counted, [[with.clone(), kinds.clone()]]);
        for column in ["language", "country", "source"] {
            let sql = format!("{} GROUP BY 1", all(&format!("SELECT {column}, count(*)")));
            let mut counted = world.rows(&sql).await;
            world.rows("SET savedsearch.count_from_overview = 'never'").await;
            let mut read = world.rows(&sql).await;
            world.rows("SET savedsearch.count_from_overview = 'exact'").await;
            counted.sort();
            read.sort();
            assert_eq!(counted, read, "{column}");
        }
    }
    // Lists that are documented as complete may be trusted.
    let (world, _) = bent(
        &[],
        |_| {},
        |profile| {
            let counts = profile.counts.as_mut().unwrap();
            counts.evidence = datafusion_saved_search::profile::Evidence::Documented;
            counts.lists.iter_mut().for_each(|list| list.whole = list.column == "language");
        },
    );
    let before = world.simulator.requests();
    let sql = format!("{} GROUP BY 1", all("SELECT language, count(*)"));
    assert!(world.rows(&sql).await.iter().any(|row| row[0] == "NULL"));
    assert_eq!(world.simulator.requests() - before, 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_small_values_is_no_danger_if_errors_are_looked_for() {
    // Half a megabyte of empty objects, which take gigabytes when parsed into a document.
    let many: fn(&mut Value) = |body| {
        body["filler"] = Value::Array(vec![json!({}); 200_000]);
    };
    let (world, _) = bent(&[], many, |profile| {
        profile.error.inside_success = true;
        profile.error.code = Some(Pointer::try_from("/error/code".to_owned()).unwrap());
    });
    assert!(!world.rows(&format!("SELECT aid FROM overview WHERE aid = '{BIG}'")).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_failing_question_keeps_nobody_from_asking_another() {
    let world = service(&[&format!("500:aid={OTHER}")], |_| {});
    for _ in 0..3 {
        world.error(&format!("SELECT id FROM mentions WHERE aid = '{OTHER}'")).await;
    }
    let open = world.error(&format!("SELECT id FROM mentions WHERE aid = '{OTHER}'")).await;
    assert!(open.to_string().contains("circuit breaker open"), "{open}");
    assert!(!world.rows(&format!("SELECT id FROM mentions WHERE aid = '{BIG}'")).await.is_empty());
    assert!(!world.rows("SELECT aid FROM saved_searches").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn waits_without_end_are_errors() {
    for (status, wait) in [(429, "inf"), (503, "inf"), (503, "1e300"), (429, "NaN")] {
        let simulator = Simulator::new(corpus(), Settings { clock: Clock::fixed(now()), ..Settings::default() });
        // It asks clients to wait, twice.
        let (service, asks) = (InProcess(simulator.clone(), HttpLimits::default()), simulator);
        let service = Scripted::altered(service, move |response| {
            if asks.requests() < 3 {
                response.status = http::StatusCode::from_u16(status).unwrap();
                response.headers.insert("retry-after", wait.parse().unwrap());
            }
        });
        let connection =
            Connection::builder(format!("http://waits-{status}-{wait}.test/v4"), Secret::new(KEY).unwrap())
                .service(service)
                .clock(Clock::fixed(now()))
                .build()
                .unwrap();
        let context = session(&connection).unwrap();
        let batches = context.sql("SELECT aid FROM saved_searches").await.unwrap().collect().await;
        match batches {
            Ok(batches) => assert!(wait == "NaN" && !rows(&batches).is_empty()),
            Err(error) => {
                let error = Error::find(&error).unwrap().clone();
                assert!(matches!(error.kind(), ErrorKind::Throttled | ErrorKind::Unavailable), "{error}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn long_names_are_remembered_by_their_beginning() {
    let world = service(&[], |_| {});
    let long = "x".repeat(1 << 20);
    world.error(&format!("SELECT id FROM mentions WHERE aid = '{long}'")).await;
    let records = world.connection.client().log().records();
    assert!(records.iter().all(|record| record.parameters.len() < 3_000), "log entries must be bounded");
    assert!(records[0].parameters.contains(" bytes)"), "{}", &records[0].parameters[..100]);
    let error = world.context.sql(&format!("SET savedsearch.timezone = '{}'", &long[..100_000])).await.map(drop);
    error.expect_err("invalid time zone");
}

#[tokio::test(start_paused = true)]
async fn the_first_rows_of_an_order_are_right_whatever_mentions_with_equal_keys_do() {
    let mut keys: Vec<Option<i64>> =
        corpus().search(BIG).unwrap().mentions.iter().map(|mention| mention.facts.engagement).collect();
    keys.sort_by(|a, b| b.cmp(a));
    let shown = |key: &Option<i64>| key.map_or("NULL".to_owned(), |key| key.to_string());
    let right: Vec<String> = keys.iter().take(250).map(shown).collect();
    let mut answered = 0;
    for number in 0..30 {
        let settings = Settings { seed: number, ..Settings::default() };
        let world = Virtual::new(corpus(), &["ties"], settings, Profile::v4());
        let sql = format!(
            "SELECT engagement, id FROM mentions WHERE aid = '{BIG}' AND duration = '100d' \
             ORDER BY engagement DESC NULLS LAST LIMIT 250"
        );
        match world.context.sql(&sql).await.unwrap().collect().await {
            Err(error) => assert_eq!(Error::find(&error).unwrap().kind(), ErrorKind::Incomplete, "{error}"),
            Ok(batches) => {
                let rows = rows(&batches);
                assert_eq!(rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>(), right, "seed {number}");
                assert_eq!(rows.iter().map(|row| &row[1]).collect::<HashSet<_>>().len(), 250, "seed {number}");
                answered += 1;
            }
        }
    }
    assert!(answered > 20, "{answered}");
}

#[tokio::test(start_paused = true)]
async fn a_timeline_of_other_buckets_than_days_counts_no_days() {
    let weeks: fn(&mut Value) = |body| {
        let Some(days) = body["overview"]["volume"].as_array() else { return };
        let weeks = days.chunks(7).map(|week| {
            let count: i64 = week.iter().filter_map(|day| day["count"].as_i64()).sum();
            let mut merged = week[0].clone();
            merged["count"] = json!(count);
            merged["end"] = week[week.len() - 1]["end"].clone();
            merged
        });
        body["overview"]["volume"] = weeks.collect();
    };
    let shifted: fn(&mut Value) = |body| {
        for day in body["overview"]["volume"].as_array_mut().into_iter().flatten() {
            for end in ["start", "end"] {
                let at = day[end].as_str().and_then(|at| at.parse::<DateTime<Utc>>().ok());
                day[end] = json!(at.map(|at| (at + TimeDelta::hours(2)).to_rfc3339()));
            }
        }
    };
    let without_ends: fn(&mut Value) = |body| {
        body["overview"]["volume"].as_array_mut().into_iter().flatten().for_each(|day| day["end"] = Value::Null);
    };
    let sql = format!(
        "SELECT date_trunc('day', published_at) AS day, count(*) FROM mentions WHERE aid = '{BIG}' \
         AND published_at >= '2026-06-01' AND published_at < '2026-07-01' GROUP BY 1 ORDER BY 1"
    );
    let plain = service(&[], |_| {});
    let right = plain.rows(&sql).await;
    assert_eq!(plain.simulator.requests(), 1);
    for (bend, counted) in [(weeks, false), (shifted, false), (without_ends, true)] {
        let (world, _) = bent(&[], bend, |_| {});
        assert_eq!(world.rows(&sql).await, right);
        assert_eq!(world.simulator.requests() == 1, counted);
    }
}

/// A service that ignores a filter returns what matches among others. One that compares differently may leave that out.
#[tokio::test(start_paused = true)]
async fn a_filter_that_is_answered_with_none_of_its_values_is_an_error() {
    let others: fn(&mut Value) = |body| {
        let mentions = body["mentions"]["items"].as_array_mut();
        mentions.into_iter().flatten().for_each(|mention| mention["language"] = json!("xx"));
        if let Some(overview) = body["overview"].as_object_mut() {
            overview.remove("languages");
        }
    };
    let (world, _) = bent(&[], others, |_| {});
    for what in ["id", "count(*)"] {
        let sql = format!("SELECT {what} FROM mentions WHERE aid = '{BIG}' AND language = 'en'");
        let error = world.error(&sql).await;
        assert_eq!(error.kind(), ErrorKind::Contradiction, "{sql}: {error}");
        assert!(error.to_string().contains("[filters]"), "{error}");
    }
}

/// The labels of the days are a day early, so that the mention beside them is of a day that they do not count.
#[tokio::test(start_paused = true)]
async fn days_that_do_not_count_the_mention_beside_them_are_not_believed() {
    let early: fn(&mut Value) = |body| {
        for bucket in body["overview"]["volume"].as_array_mut().into_iter().flatten() {
            for end in ["start", "end"] {
                let at = bucket[end].as_str().and_then(|at| at.parse::<DateTime<Utc>>().ok());
                if let Some(at) = at {
                    bucket[end] = json!((at - TimeDelta::days(1)).to_rfc3339_opts(SecondsFormat::Secs, true));
                }
            }
        }
    };
    let sql = format!(
        "SELECT date_trunc('day', published_at), count(*) FROM mentions WHERE aid = '{BIG}' AND published_at >= \
         '2026-06-20' AND published_at < '2026-06-28' GROUP BY 1 ORDER BY 1"
    );
    let right = service(&[], |_| {}).rows(&sql).await;
    let (world, _) = bent(&[], early, |_| {});
    assert_eq!(world.rows(&sql).await, right);
    let count = sql.replace("date_trunc('day', published_at), ", "").replace(" GROUP BY 1 ORDER BY 1", "");
    assert_eq!(world.rows(&count).await, service(&[], |_| {}).rows(&count).await);
}

#[tokio::test(start_paused = true)]
async fn days_are_counted_from_mentions_if_there_is_no_timeline() {
    let none: fn(&mut Value) = |body| {
        if let Some(overview) = body["overview"].as_object_mut() {
            overview.remove("volume");
        }
    };
    let sql = format!(
        "SELECT date_trunc('day', published_at), count(*) FROM mentions WHERE aid = '{BIG}' AND published_at >= \
         '2026-06-20' AND published_at < '2026-06-28' GROUP BY 1 ORDER BY 1"
    );
    let (world, _) = bent(&[], none, |_| {});
    assert_eq!(world.rows(&sql).await, service(&[], |_| {}).rows(&sql).await);
}

/// Each mention has one language and one sentiment: two lists of the same sum are right about it.
#[tokio::test(start_paused = true)]
async fn two_lists_of_one_sum_contradict_a_smaller_total() {
    let less: fn(&mut Value) = |body| {
        for at in ["/mentions/total", "/overview/totalMentions"] {
            if let Some(total) = body.pointer_mut(at) {
                *total = json!(total.as_u64().unwrap_or_default() * 7 / 10);
            }
        }
        if let Some(overview) = body["overview"].as_object_mut() {
            overview.remove("volume");
        }
    };
    let (world, _) = bent(&[], less, |_| {});
    let sql = format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}'");
    let right = service(&[], |_| {}).rows(&sql).await;
    match world.ask(&sql).await {
        Ok(rows) => assert_eq!(rows, right),
        Err(error) => assert!(matches!(error.kind(), ErrorKind::Contradiction | ErrorKind::Incomplete), "{error}"),
    }
}
