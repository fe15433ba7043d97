//! The steps of a new user, from an API key to query results: probing and checking a profile, named connections, record
//! and replay.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use datafusion_saved_search::Profile;
use datafusion_saved_search::profile::Evidence;
use datafusion_saved_search::simulator::{KEY, OTHER_KEY, Preset};

use crate::binary::{Simulate, err, out, savedsearch};
use crate::support::each;

/// Runs the program in a folder, with API keys in the environment.
fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = savedsearch(arguments);
    command.env("SAVEDSEARCH_API_KEY", KEY).env("RESEARCH_KEY", OTHER_KEY);
    command.current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn well(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}\n{}", err(output), out(output));
    out(output)
}

#[test]
fn every_dialect_is_probed_checked_recorded_and_replayed() {
    for preset in Preset::ALL {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let service = Simulate::start(&["--preset", preset.name(), "--mentions", "3000", "--searches", "4"]);
        let base = ["--base-url", service.base_url.as_str()];
        let with = |arguments: &[&str]| run(folder, &[&base, arguments].concat());

        let mut words = vec!["probe", "-o", "mine.toml"];
        if preset == Preset::Pages {
            // Its times have no zone. In winter, they may be those of London as well, and the probe does not guess.
            let alone = with(&["probe", "-o", "open.toml"]);
            let open = err(&alone).contains("the times of mentions have no zone: UTC, Europe/London fit the windows");
            assert_eq!(alone.status.code(), Some(if open { 3 } else { 0 }), "{}", err(&alone));
            words.extend(["--fact", "timezone.default = \"+00:00\""]);
        }
        let probed = with(&words);
        assert!(well(&probed).is_empty(), "{}", out(&probed));
        assert!(
            [
                "Observed:",
                "Capabilities:",
                "Test queries with the remaining requests:",
                "Wrote the profile to mine.toml."
            ]
            .iter()
            .all(|part| err(&probed).contains(part)),
            "{}",
            err(&probed)
        );
        assert!(Profile::read(&folder.join("mine.toml")).is_ok());
        assert!(well(&run(folder, &["profile", "check", "mine.toml"])).contains("not checked against a service"));
        let checked = well(&with(&["profile", "check", "mine.toml"]));
        assert!((4..=7).contains(&checked.matches(": ok, ").count()), "{preset}: {checked}");
        assert!(checked.contains("mentions in two days by overview and by reading"), "{preset}: {checked}");

        let sql = "SELECT s.name, count(*) AS mentions, max(m.published_at) AS newest FROM saved_searches s \
                   JOIN mentions m ON m.aid = s.aid WHERE s.kind = 'saved' GROUP BY s.name ORDER BY 1";
        let ask = ["--profile", "mine.toml", "--record", "recorded", "sql", "--format", "csv", "-c", sql];
        let live = well(&with(&ask));
        assert!(live.lines().count() > 2, "{preset}: {live}");
        for file in fs::read_dir(folder.join("recorded")).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            assert!(!text.contains(KEY), "{preset}: {text}");
        }
        let again = with(&ask);
        assert!(err(&again).contains("recorded: is not empty"), "{}", err(&again));
        drop(service);
        let replay = ["--profile", "mine.toml", "--replay", "recorded", "sql", "--format", "csv", "-c"];
        assert_eq!(well(&run(folder, &[&replay, [sql].as_slice()].concat())), live, "{preset}");
        let other = run(folder, &[&replay, ["SELECT * FROM mentions WHERE aid = 'other'"].as_slice()].concat());
        assert!(err(&other).contains("the recording has no response to /v4/search"), "{}", err(&other));
    }
}

#[test]
fn connections_have_names_and_are_asked_together() {
    let service = Simulate::start(&["--mentions", "400", "--searches", "4"]);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("comms.key"), KEY).unwrap();
    let base_url = &service.base_url;
    let config = format!(
        "default = 'comms'\n[connections.comms]\nbase_url = '{base_url}'\napi_key_file = 'comms.key'\n\
         [connections.research]\nbase_url = '{base_url}'\napi_key_env = 'RESEARCH_KEY'\nprofile = 'v4'\n"
    );
    fs::write(folder.join("savedsearch.toml"), config).unwrap();
    let sql = |options: &[&str], sql: &str| {
        let arguments = [["--config", "savedsearch.toml"].as_slice(), options, &["sql", "--format", "csv", "-c", sql]];
        run(folder, &arguments.concat())
    };
    let team = |team: &str| format!("SELECT DISTINCT team_name FROM {team}saved_searches WHERE team_name IS NOT NULL");
    assert_eq!(well(&sql(&[], &team(""))), "team_name\nComms\n");
    assert_eq!(well(&sql(&[], &team("research.v4."))), "team_name\nResearch\n");
    assert_eq!(well(&sql(&["--connection", "research"], &team(""))), "team_name\nResearch\n");
    let joined = "SELECT count(*) > 0 AS both FROM comms.v4.saved_searches a JOIN research.v4.saved_searches b ON a.query <> b.query";
    assert_eq!(well(&sql(&[], joined)), "both\ntrue\n");
    let requests = "SELECT total_mentions >= 0 AS seen FROM research.v4.overview WHERE aid IN \
                    (SELECT min(aid) FROM research.v4.saved_searches WHERE kind <> 'recent'); \
                    SELECT count(*) AS n FROM research.system.requests; SELECT count(*) AS n FROM system.requests";
    assert_eq!(well(&sql(&[], requests)), "seen\ntrue\nn\n2\nn\n0\n");
    let tables = well(&sql(&[], "SHOW TABLES"));
    for name in ["savedsearch,v4,mentions", "comms,v4,mentions", "research,v4,volume", "research,system,columns_seen"] {
        assert!(tables.contains(name), "{name}\n{tables}");
    }

    let missing = sql(&["--connection", "sales"], "SELECT 1");
    assert_eq!(missing.status.code(), Some(2));
    assert!(err(&missing).contains("unknown connection `sales`; available: comms, research"), "{}", err(&missing));
    let cases = [
        (
            "[connections.a]\nbase_url = 'http://x/v4'",
            "connection `a`: expected one of api_key_env, api_key_file and api_key_command",
        ),
        ("[connections.a]\nbase_url = 'http://x/v4'\napi_key = 'x'", "line 3: unknown field `api_key`"),
        (
            "[connections.A]\nbase_url = 'http://x/v4'\napi_key_env = 'RESEARCH_KEY'",
            "invalid name: expected lowercase letters, digits and `_`",
        ),
        (
            "[connections.a]\nbase_url = 'http://x/v4'\napi_key_env = 'NO_SUCH'",
            "environment variable NO_SUCH is not set",
        ),
        ("[connections]", "no connections are defined"),
    ];
    each(cases, |(text, why)| {
        fs::write(folder.join("bad.toml"), text).unwrap();
        let output = run(folder, &["--config", "bad.toml", "sql", "-c", "SELECT 1"]);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(err(&output).contains(why) && err(&output).lines().count() == 1, "{text}\n{}", err(&output));
    });
    let alone = run(folder, &["--connection", "comms", "sql", "-c", "SELECT 1"]);
    assert!(err(&alone).contains("--connection requires a configuration file"), "{}", err(&alone));
}

#[test]
fn profiles_are_shown_and_described() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for preset in Preset::ALL {
        let shown = well(&run(folder, &["profile", "show", preset.name()]));
        assert_eq!(shown, Profile::builtin_document(preset.name()).unwrap());
    }
    let unknown = run(folder, &["profile", "show", "mine"]);
    assert!(
        err(&unknown).contains("unknown built-in profile `mine`; available: v4, flags, pages, names"),
        "{}",
        err(&unknown)
    );
    let schema: serde_json::Value = serde_json::from_str(&well(&run(folder, &["profile", "schema"]))).unwrap();
    // The schema covers every section and key of the built-in profiles.
    for name in Profile::builtins() {
        let document: toml::Table = Profile::builtin_document(name).unwrap().parse().unwrap();
        for (section, value) in &document {
            let property = &schema["properties"][section];
            assert!(property.is_object(), "{name}: [{section}] is missing from the schema");
            let of = property["$ref"].as_str().and_then(|at| schema.pointer(at.trim_start_matches('#')));
            let of = of.or_else(|| schema.pointer(property["anyOf"][0]["$ref"].as_str()?.trim_start_matches('#')));
            for key in value.as_table().into_iter().flat_map(toml::Table::keys).filter(|_| section != "tables") {
                assert!(of.is_some_and(|of| of["properties"][key].is_object()), "{name}: {section}.{key}");
            }
        }
    }
    let broken = folder.join("broken.toml");
    fs::write(&broken, "name = 'x'\n[auth]\nhaeder = 'y'\n").unwrap();
    let output = run(folder, &["profile", "check", "broken.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("line 3: key `auth.haeder`: unknown field"), "{}", err(&output));
}

#[test]
fn a_profile_that_does_not_fit_is_told_by_its_check() {
    let service = Simulate::start(&["--preset", "flags", "--mentions", "300", "--searches", "2"]);
    let folder = tempfile::tempdir().unwrap();
    let text = Profile::builtin_document("flags").unwrap().replace("at = \"/summary\"", "at = \"/elsewhere\"");
    fs::write(folder.path().join("mine.toml"), text).unwrap();
    let output = run(folder.path(), &["--base-url", &service.base_url, "profile", "check", "mine.toml"]);
    assert_eq!(output.status.code(), Some(1), "{}", out(&output));
    let told = out(&output);
    assert!(told.contains("list: ok, ") && told.contains("the response has no `/elsewhere`"), "{told}");
    assert!(err(&output).contains("the service does not match mine.toml"), "{}", err(&output));
    // No service at the address: a single error line and no profile.
    drop(service);
    let probed = run(folder.path(), &["--base-url", "http://127.0.0.1:1/v4", "probe", "-o", "none.toml"]);
    assert_eq!(probed.status.code(), Some(1));
    assert!(err(&probed).starts_with("error: ") && !folder.path().join("none.toml").exists(), "{}", err(&probed));
}

#[test]
fn a_probe_keeps_what_is_there_and_goes_on_from_what_a_person_corrected() {
    let service = Simulate::start(&["--mentions", "2000", "--searches", "2"]);
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("mine.toml");
    let probe = |arguments: &[&str]| {
        run(folder.path(), &[&["--base-url", &service.base_url, "probe", "-o", "mine.toml"], arguments].concat())
    };
    well(&probe(&[]));
    let before = fs::read_to_string(&mine).unwrap();
    let kept = probe(&[]);
    assert_eq!(kept.status.code(), Some(2));
    assert!(
        err(&kept).contains("mine.toml exists; choose another file, or overwrite it with --force"),
        "{}",
        err(&kept)
    );
    assert_eq!(fs::read_to_string(&mine).unwrap(), before);
    // Documented keys are kept as they are; the others are probed again.
    let page = before.split("\n[page]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let corrected =
        "evidence = \"documented\"\nparameter = \"dataSize\"\nmax = 40    # of the manual\nbeyond = \"rejected\"\n";
    fs::write(&mine, before.replace(page, corrected)).unwrap();
    well(&probe(&["--resume", "mine.toml"]));
    let after = fs::read_to_string(&mine).unwrap();
    assert!(after.contains("max = 40    # of the manual") && after.contains("default = \"7d\""), "{after}");
    well(&probe(&["--force"]));
    assert!(!fs::read_to_string(&mine).unwrap().contains("of the manual"));
    // Three calls reveal almost nothing: the profile is written, and the sections to complete are named.
    let few = probe(&["--force", "--max-calls", "3"]);
    assert_eq!(few.status.code(), Some(3), "{}", err(&few));
    assert!(
        err(&few).contains("fill in [mentions], [window] from the service's documentation")
            && Profile::read(&mine).is_ok(),
        "{}",
        err(&few)
    );
}

#[test]
fn an_example_and_facts_are_tried_first_and_its_key_stays_secret() {
    let service = Simulate::start(&["--mentions", "2000", "--searches", "2"]);
    let folder = tempfile::tempdir().unwrap();
    let (key, base_url) = (KEY, &service.base_url);
    let example = format!(
        "curl -sS -H 'Authorization: Bearer {key}' '{base_url}/search?duration=30d&dataSize=20&sortBy=date_desc&zub=1'"
    );
    // The address is that of the example.
    let facts = ["--example", &example, "--fact", "page.max = 50", "--fact", "dataSize at most 100"];
    let probed = run(folder.path(), &[["probe", "-o", "mine.toml"].as_slice(), facts.as_slice()].concat());
    let (said, text) = (err(&probed), fs::read_to_string(folder.path().join("mine.toml")).unwrap());
    assert!(probed.status.success(), "{said}");
    let cases = [
        "Authorization: Bearer {key}: confirmed",
        "duration=30d: confirmed",
        "sortBy=date_desc: confirmed",
        "zub=1: not confirmed, its effect was not tested",
        "page.max = 50: taken as given",
        "one mention",
    ];
    each(cases, |fact| {
        assert!(said.contains(fact), "{fact}: {said}");
    });
    assert!(!said.contains(key) && !text.contains(key), "{said}{text}");
    let page = Profile::parse(&text, "mine.toml").unwrap().page;
    assert_eq!((page.max, page.evidence), (50, Evidence::Documented));
    let refused = run(folder.path(), &["probe", "--example", "wget https://x.test"]);
    assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
}

#[test]
fn a_connection_of_the_configuration_file_is_probed_and_checked() {
    let service = Simulate::start(&["--mentions", "600", "--searches", "2"]);
    let folder = tempfile::tempdir().unwrap();
    let text = format!("[connections.comms]\nbase_url = '{}'\napi_key_env = 'SAVEDSEARCH_API_KEY'\n", service.base_url);
    fs::write(folder.path().join("mine.cfg"), text).unwrap();
    let with = |arguments: &[&str]| run(folder.path(), &[&["--config", "mine.cfg"], arguments].concat());
    let probed = with(&["probe", "-o", "mine.toml"]);
    assert!(well(&probed).is_empty() && !err(&probed).contains("demo data"), "{}", err(&probed));
    assert!(well(&with(&["--connection", "comms", "profile", "check", "mine.toml"])).contains("counts: ok"));
}
