//! The tables in other applications' sessions: installed, created by address, and in several catalogs.

use std::sync::Arc;

use datafusion_saved_search::datafusion::execution::SessionStateBuilder;
use datafusion_saved_search::datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_saved_search::simulator::{KEY, Settings, Simulator};
use datafusion_saved_search::{
    Clock, Connection, Error, ErrorKind, Profile, SavedSearchFactory, Secret, catalog, install, plan_cost, session,
};

use crate::support::{BIG, OTHER, World, corpus, each_async, now, rows};

async fn rows_of(context: &SessionContext, sql: &str) -> Vec<Vec<String>> {
    let frame = context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    rows(&frame.collect().await.unwrap_or_else(|error| panic!("{sql}\n{error}")))
}

fn connection(world: &World, profile: Profile) -> Arc<Connection> {
    let builder = Connection::builder(world.service.base_url(), Secret::new(KEY).unwrap());
    builder.profile(profile).clock(Clock::fixed(now())).build().unwrap()
}

/// A plain session in which tables of a service can be created by address.
fn foreign() -> SessionContext {
    let context = SessionContext::new();
    let factory = Arc::new(SavedSearchFactory::default());
    let name = SavedSearchFactory::FORMAT.to_owned();
    context.state_ref().write().table_factories_mut().insert(name, factory);
    context
}

/// A temporary folder (deleted on drop) and the path of a key file in it.
fn key_file() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, KEY).unwrap();
    (folder, path.display().to_string())
}

#[tokio::test]
async fn installed_in_a_session_of_ones_own_the_tables_ask_for_as_little_as_in_ours() {
    let world = World::new().await;
    // The session keeps its own default catalog.
    let config = SessionConfig::new().with_information_schema(true);
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    let context = SessionContext::new_with_state(install(builder, &connection(&world, Profile::v4())).unwrap().build());
    context.sql("CREATE TABLE brands AS VALUES ('183772', 'ours')").await.unwrap().collect().await.unwrap();
    let sql = "SELECT b.column2, count(*) FROM brands b JOIN savedsearch.v4.mentions m ON m.aid = b.column1 GROUP BY 1";
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let before = world.service.requests();
    let found = rows_of(&context, sql).await;
    let (ours, _) = world.cost(&format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}'")).await;
    assert_eq!(found, [["ours".to_owned(), ours[0][0].clone()]]);
    assert_eq!(world.service.requests() - before, 3, "the list and an overview, plus an overview for the comparison");
    assert!(plan_cost(&plan).scans.iter().any(|scan| &*scan.table == "mentions"));
    // Settings, the function `now` and the table functions are installed too.
    context.sql("SET savedsearch.max_requests = 5").await.unwrap();
    assert_eq!(rows_of(&context, "SELECT now() = date_trunc('second', now())").await, [["true"]]);
    let called = format!("SELECT count(*) FROM savedsearch.v4.mentions(aid => '{BIG}')");
    assert_eq!(rows_of(&context, &called).await, [[ours[0][0].clone()]]);
}

#[tokio::test]
async fn a_builder_without_anything_becomes_a_session_as_ours() {
    let world = World::new().await;
    let builder = install(SessionStateBuilder::new(), &connection(&world, Profile::v4())).unwrap();
    let context = SessionContext::new_with_state(builder.build());
    let sql = "SELECT aid, count(*) FROM mentions GROUP BY 1 ORDER BY 1";
    assert_eq!(rows_of(&context, sql).await, world.rows(sql).await);
}

/// Two planners of relations once handed a table to each other until the stack overflowed.
#[tokio::test]
async fn a_connection_is_installed_once() {
    let world = World::new().await;
    let [one, two] = [connection(&world, Profile::v4()), connection(&world, Profile::v4())];
    let sql = "SELECT aid, count(*) FROM mentions GROUP BY 1 ORDER BY 1";
    let expected = world.rows(sql).await;
    // The same connection again changes nothing.
    let twice = install(install(SessionStateBuilder::new(), &one).unwrap(), &one).unwrap();
    let context = SessionContext::new_with_state(twice.build());
    assert_eq!(rows_of(&context, sql).await, expected);
    let state = session(&one).unwrap().state();
    let again = install(SessionStateBuilder::new_from_existing(state.clone()), &one).unwrap();
    assert_eq!(rows_of(&SessionContext::new_with_state(again.build()), sql).await, expected);
    // Another one is refused in any order, and the session remains as it is.
    let builders = [
        (install(SessionStateBuilder::new(), &one).unwrap(), &two),
        (install(SessionStateBuilder::new(), &two).unwrap(), &one),
        (SessionStateBuilder::new_from_existing(state.clone()), &two),
    ];
    for (builder, other) in builders {
        let error = install(builder, other).map(drop).expect_err("another connection");
        let own = Error::find(&error).unwrap();
        assert!(own.kind() == ErrorKind::Config && own.to_string().contains("already installed"), "{own}");
    }
    let context = SessionContext::new_with_state(state);
    assert_eq!(rows_of(&context, sql).await, expected);
    // It becomes a further catalog, whichever of the two is installed.
    for (first, other) in [(&one, &two), (&two, &one)] {
        let context = session(first).unwrap();
        context.register_catalog("other", catalog(other).unwrap());
        assert_eq!(rows_of(&context, sql).await, expected);
        assert_eq!(rows_of(&context, &sql.replace("mentions", "other.v4.mentions")).await, expected);
    }
}

#[tokio::test]
async fn a_session_that_exists_gets_the_tables_and_keeps_its_own() {
    let world = World::new().await;
    let old = SessionContext::new();
    rows_of(&old, "CREATE TABLE brands AS VALUES ('183772', 'ours')").await;
    let builder = SessionStateBuilder::new_from_existing(old.state());
    let context = SessionContext::new_with_state(install(builder, &connection(&world, Profile::v4())).unwrap().build());
    let expected = world.rows(&format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}'")).await;
    let before = world.service.requests();
    let sql = "SELECT b.column2, count(*) FROM brands b JOIN savedsearch.v4.mentions m ON m.aid = b.column1 GROUP BY 1";
    assert_eq!(rows_of(&context, sql).await, [["ours".to_owned(), expected[0][0].clone()]]);
    assert_eq!(world.service.requests() - before, 2, "the list and an overview");
}

/// Faults of a response reach the client as over the network, and waits take no time.
#[tokio::test(start_paused = true)]
async fn a_simulator_within_the_process_is_a_service_with_its_faults() {
    let clock = Clock::fixed(now());
    let faults = vec!["truncated@1".parse().unwrap(), "429:retry-after=10@2".parse().unwrap()];
    let simulator = Simulator::new(corpus(), Settings { clock: clock.clone(), faults, ..Settings::default() });
    let builder = Connection::builder("http://process-of-embedder.invalid/v4", Secret::new(KEY).unwrap());
    let connection = builder.service(Arc::new(simulator.clone())).clock(clock).build().unwrap();
    let context = session(&connection).unwrap();
    let sql = format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND duration = '365d'");
    let search = simulator.corpus().search(BIG).unwrap();
    assert_eq!(rows_of(&context, &sql).await, [[search.mentions.len().to_string()]]);
    assert_eq!(simulator.requests(), 3, "two failed");
}

#[tokio::test]
async fn table_functions_follow_the_name_into_its_catalog() {
    let world = World::new().await;
    let other = World::with(
        Arc::new(datafusion_saved_search::simulator::Corpus::generate(
            datafusion_saved_search::simulator::CorpusSpec { seed: 99, searches: 4, mentions: 700, now: now() },
        )),
        Settings { clock: Clock::fixed(now()), ..Settings::default() },
        Profile::v4(),
    )
    .await;
    world.context.register_catalog("other", catalog(&connection(&other, Profile::v4())).unwrap());
    let count = |of: &str| format!("SELECT count(*) FROM {of}(aid => '{BIG}', duration => '30d')");
    let theirs = other.rows(&count("mentions")).await;
    assert_eq!(world.rows(&count("other.v4.mentions")).await, theirs);
    assert_ne!(world.rows(&count("mentions")).await, theirs);
    // Tables that are not part of the service have no table function.
    let error = world.context.sql("SELECT * FROM system.requests('1')").await.expect_err("no such function");
    assert!(error.to_string().contains("table function"), "{error}");
}

#[tokio::test]
async fn a_table_comes_by_the_address_of_its_service() {
    let world = World::new().await;
    let (_folder, key) = key_file();
    let context = foreign();
    let create = |name: &str, options: &str| {
        format!(
            "CREATE EXTERNAL TABLE {name} STORED AS SAVEDSEARCH LOCATION '{}' OPTIONS ({options})",
            world.service.base_url()
        )
    };
    let key_option = format!("api_key_file '{key}'");
    // Named after a table of the service, or with the option `table`.
    rows_of(&context, &create("saved_searches", &key_option)).await;
    rows_of(&context, &create("coverage", &format!("{key_option}, table 'mentions'"))).await;
    let list = "SELECT aid, name FROM saved_searches ORDER BY aid, name";
    assert_eq!(rows_of(&context, list).await, world.rows(list).await);
    let period = "duration = '2026-06-20T00:00:00Z..2026-06-25T00:00:00Z'";
    let ids = |table: &str| format!("SELECT id FROM {table} WHERE aid = '{OTHER}' AND {period} ORDER BY id");
    assert_eq!(rows_of(&context, &ids("coverage")).await, world.rows(&ids("mentions")).await);

    let cases = [
        ("x", key_option.clone(), "the service has no table `x`; available: saved_searches, mentions, overview"),
        ("x", format!("{key_option}, table 'mention'"), "the service has no table `mention`"),
        (
            "mentions",
            "api_key 'secret-in-sql'".to_owned(),
            "unknown option `api_key`; statements are logged: give the key's location",
        ),
        ("mentions", format!("{key_option}, profil 'v4'"), "unknown option `profil`; did you mean profile?"),
        ("mentions", format!("{key_option}, insecure 'perhaps'"), "insecure must be true or false"),
        ("mentions", format!("{key_option}, api_key_env 'KEY'"), "set either api_key_env or api_key_file"),
        (
            "mentions",
            "api_key_env 'SAVEDSEARCH_NO_SUCH_KEY'".to_owned(),
            "no API key: environment variable SAVEDSEARCH_NO_SUCH_KEY is not set",
        ),
        (
            "mentions",
            "api_key_env 'HOME'".to_owned(),
            "api_key_env requires a variable whose name starts with SAVEDSEARCH_",
        ),
        ("mentions", format!("{key_option}, profile 'nowhere.toml'"), "cannot read profile nowhere.toml"),
    ];
    each_async(cases, async |(name, options, expected)| {
        let error = context.sql(&create(name, &options)).await.expect_err(expected);
        let own = Error::find(&error).unwrap_or_else(|| panic!("{error}"));
        assert!(own.to_string().contains(expected), "{own}");
        assert_eq!(own.kind(), ErrorKind::Config, "{own}");
        assert!(!own.to_string().contains("secret-in-sql"), "{own}");
    })
    .await;
    let columns = format!(
        "CREATE EXTERNAL TABLE mentions (id TEXT) STORED AS SAVEDSEARCH LOCATION '{}' OPTIONS ({key_option})",
        world.service.base_url()
    );
    let error = context.sql(&columns).await.expect_err("columns").to_string();
    assert!(error.contains("columns come from the profile"), "{error}");
}

#[tokio::test]
async fn a_further_table_of_the_profile_is_a_table_of_sql() {
    let world = World::new().await;
    let text = r#"
        extends = "v4"
        [tables.further.authors]
        evidence = "documented"
        description = "an author with many mentions"
        sections = [{ at = "/overview/topAuthors", optional = true }]
        columns = [
            { name = "aid", type = "utf8", null = false, from = "aid" },
            { name = "author", type = "utf8", at = "/name" },
            { name = "mentions", type = "int64", at = "/count" },
            { name = "duration", type = "utf8", null = false, from = "duration" },
            { name = "timezone", type = "utf8", null = false, from = "timezone" },
        ]
    "#;
    let context = session(&connection(&world, Profile::parse(text, "mine.toml").unwrap())).unwrap();
    let further =
        format!("SELECT author, mentions FROM authors WHERE aid = '{BIG}' AND duration = '30d' ORDER BY 1, 2");
    let list = format!(
        "SELECT name, mentions FROM breakdowns WHERE aid = '{BIG}' AND duration = '30d' AND dimension = 'author' ORDER BY 1, 2"
    );
    let expected = world.rows(&list).await;
    assert!(!expected.is_empty());
    let before = world.service.requests();
    assert_eq!(rows_of(&context, &further).await, expected);
    assert_eq!(world.service.requests() - before, 1);
    let called = format!("SELECT author, mentions FROM authors(aid => '{BIG}', duration => '30d') ORDER BY 1, 2");
    assert_eq!(rows_of(&context, &called).await, expected);
    let shared = format!("SELECT count(*) FROM authors a JOIN overview o ON a.aid = o.aid WHERE a.aid = '{BIG}'");
    let before = world.service.requests();
    rows_of(&context, &shared).await;
    assert_eq!(world.service.requests() - before, 1, "one response has both tables");
}
