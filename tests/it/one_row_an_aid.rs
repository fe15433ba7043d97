//! Entries of the list that name one aid are one row, so that joins on the aid multiply nothing.

use datafusion::prelude::SessionContext;
use datafusion_saved_search::{Error, ErrorKind, Profile, Secret, session};

use crate::support::{Answer, Scripted, World, each_async, rows};

/// A session over a service that has nothing but this list.
fn listed(list: &'static str) -> SessionContext {
    let service = Scripted::new(move |asked| {
        assert!(asked.list, "{}", asked.request.url);
        Answer::text(200, list)
    });
    session(&service.connect(Secret::new("key").unwrap(), Profile::v4())).unwrap()
}

async fn ask(context: &SessionContext, sql: &str) -> Vec<Vec<String>> {
    let frame = context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows(&frame.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}")))
}

const LIST: &str = r#"{"data": {
    "savedSearches": [
        {"aid": "2", "name": "B", "query": "b", "future": 1},
        {"aid": "1", "name": null, "query": "a"},
        {"aid": "2", "name": "B again", "owner": "ana"}],
    "teamSavedSearches": [
        {"aid": "1", "name": "A of the team", "query": "other", "team": {"id": "t", "name": "T"}},
        {"aid": "3", "name": "C"}],
    "recentSearches": [
        {"aid": "4", "query": "d", "searchedAt": "2026-06-03T00:00:00Z"},
        {"query": "not saved", "searchedAt": "2026-06-02T00:00:00Z"},
        {"aid": "1", "query": "a before", "searchedAt": "2026-06-01T00:00:00Z"},
        {"aid": "4", "query": "d before", "searchedAt": "2026-05-03T00:00:00Z"}]}}"#;

#[tokio::test]
async fn a_row_has_the_strongest_kind_and_the_first_value_of_its_entries() {
    let context = listed(LIST);
    let sql = "SELECT aid, kind, array_to_string(kinds, '+'), name, query, owner, team_name, searched_at, extra FROM saved_searches";
    assert_eq!(
        ask(&context, sql).await,
        [
            ["2", "saved", "saved", "B", "b", "ana", "NULL", "NULL", "{\"future\":1}"],
            ["1", "saved", "saved+team+recent", "A of the team", "a", "NULL", "T", "2026-06-01T00:00:00Z", "{}"],
            ["3", "team", "team", "C", "NULL", "NULL", "NULL", "NULL", "{}"],
            ["4", "recent", "recent", "NULL", "d", "NULL", "NULL", "2026-06-03T00:00:00Z", "{}"],
        ]
    );
    // Whatever is selected, and conditions see the row, not its entries.
    assert_eq!(ask(&context, "SELECT name FROM saved_searches").await, [["B"], ["A of the team"], ["C"], ["NULL"]]);
    assert_eq!(ask(&context, "SELECT count(*) FROM saved_searches").await, [["4"]]);
    assert_eq!(ask(&context, "SELECT aid FROM saved_searches WHERE kind = 'team'").await, [["3"]]);
    assert_eq!(
        ask(&context, "SELECT aid FROM saved_searches WHERE array_has(kinds, 'team') ORDER BY 1").await,
        [["1"], ["3"]]
    );
    assert_eq!(ask(&context, "SELECT aid FROM saved_searches WHERE query LIKE '%before'").await, [[""; 0]; 0]);
}

#[tokio::test]
async fn searches_of_the_history_alone_come_last() {
    let list = r#"{"data": {
        "recentSearches": [{"aid": "8", "query": "x"}, {"aid": "2", "query": "y"}, {"aid": "7", "query": "z"}],
        "savedSearches": [{"aid": "1", "name": "A"}, {"aid": "2", "name": "B"}], "teamSavedSearches": [{"aid": "3"}]}}"#;
    let order = ask(&listed(list), "SELECT aid FROM saved_searches").await;
    assert_eq!(order, [["2"], ["1"], ["3"], ["8"], ["7"]]);
}

#[tokio::test]
async fn the_history_is_as_it_came() {
    let context = listed(LIST);
    assert_eq!(
        ask(&context, "SELECT position, aid, name, query, searched_at, extra FROM recent_searches").await,
        [
            ["1", "4", "NULL", "d", "2026-06-03T00:00:00Z", "{}"],
            ["2", "NULL", "NULL", "not saved", "2026-06-02T00:00:00Z", "{}"],
            ["3", "1", "NULL", "a before", "2026-06-01T00:00:00Z", "{}"],
            ["4", "4", "NULL", "d before", "2026-05-03T00:00:00Z", "{}"],
        ]
    );
    assert_eq!(
        ask(
            &context,
            "SELECT r.position, s.name FROM recent_searches r LEFT JOIN saved_searches s USING (aid) ORDER BY 1"
        )
        .await,
        [["1", "NULL"], ["2", "NULL"], ["3", "A of the team"], ["4", "NULL"]]
    );
    let without = listed(r#"{"data": {"savedSearches": [{"aid": "1"}], "teamSavedSearches": []}}"#);
    assert_eq!(ask(&without, "SELECT count(*) FROM recent_searches").await, [["0"]]);
}

#[tokio::test]
async fn an_entry_without_an_aid_is_an_error_outside_of_the_history() {
    for list in [
        r#"{"data": {"savedSearches": [{"aid": "1"}, {"name": "x"}], "teamSavedSearches": []}}"#,
        r#"{"data": {"savedSearches": [], "teamSavedSearches": [{"aid": null}], "recentSearches": []}}"#,
    ] {
        for sql in ["SELECT aid FROM saved_searches", "SELECT name FROM saved_searches"] {
            let error = listed(list).sql(sql).await.unwrap().collect().await.expect_err("no aid");
            let error = Error::find(&error).unwrap();
            assert_eq!(error.kind(), ErrorKind::Contradiction, "{error}");
            assert!(error.to_string().contains("missing or invalid `aid`"), "{error}");
        }
    }
}

/// Statements in which a key of the table is no key of the rows: the engine must not drop a DISTINCT or a grouping.
#[tokio::test]
async fn what_multiplies_rows_ends_the_key() {
    let context = listed(LIST);
    let strings = |rows: &[&[&str]]| -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    };
    let unnested = "(SELECT aid, unnest(kinds) AS k FROM saved_searches)";
    let given = "(VALUES ('1', 'p'), ('9', 'q'), ('8', 'r')) v(aid, w)";
    let cases = [
        (format!("SELECT DISTINCT aid FROM {unnested} ORDER BY 1"), strings(&[&["1"], &["2"], &["3"], &["4"]])),
        (
            format!("SELECT aid, count(*) FROM {unnested} GROUP BY aid ORDER BY 1"),
            strings(&[&["1", "3"], &["2", "1"], &["3", "1"], &["4", "1"]]),
        ),
        (format!("SELECT count(*) FROM (SELECT aid, k FROM {unnested} GROUP BY aid, k)"), strings(&[&["6"]])),
        (
            "WITH u AS (SELECT aid, unnest(kinds) AS k FROM saved_searches) SELECT aid, count(*) FROM u GROUP BY aid ORDER BY 1"
                .to_owned(),
            strings(&[&["1", "3"], &["2", "1"], &["3", "1"], &["4", "1"]]),
        ),
        (
            format!("SELECT s.aid, count(*) FROM saved_searches s JOIN {unnested} u ON u.aid = s.aid GROUP BY s.aid ORDER BY 1"),
            strings(&[&["1", "3"], &["2", "1"], &["3", "1"], &["4", "1"]]),
        ),
        (format!("SELECT count(DISTINCT aid), count(aid) FROM {unnested}"), strings(&[&["4", "6"]])),
        (
            "SELECT DISTINCT aid FROM (SELECT aid FROM saved_searches UNION ALL SELECT aid FROM saved_searches) ORDER BY 1"
                .to_owned(),
            strings(&[&["1"], &["2"], &["3"], &["4"]]),
        ),
        (
            "SELECT aid, name, count(*) FROM (SELECT aid, name FROM saved_searches UNION ALL SELECT '1', 'x') \
             GROUP BY aid, name HAVING aid = '1' ORDER BY 2"
                .to_owned(),
            strings(&[&["1", "A of the team", "1"], &["1", "x", "1"]]),
        ),
        (
            "SELECT DISTINCT a.aid FROM saved_searches a, saved_searches b ORDER BY 1".to_owned(),
            strings(&[&["1"], &["2"], &["3"], &["4"]]),
        ),
        (
            "SELECT count(*) FROM (SELECT a.aid, b.aid AS other FROM saved_searches a, saved_searches b GROUP BY a.aid, b.aid)"
                .to_owned(),
            strings(&[&["16"]]),
        ),
        (
            "SELECT count(*) FROM (SELECT s.aid, v.w FROM saved_searches s CROSS JOIN (VALUES ('x'), ('y')) v(w) GROUP BY s.aid, v.w)"
                .to_owned(),
            strings(&[&["8"]]),
        ),
        (
            format!(
                "SELECT s.aid, s.name, count(*) FROM {given} LEFT JOIN saved_searches s ON s.aid = v.aid \
                 GROUP BY s.aid, s.name ORDER BY 3"
            ),
            strings(&[&["1", "A of the team", "1"], &["NULL", "NULL", "2"]]),
        ),
        (
            format!("SELECT s.aid, v.w FROM {given} LEFT JOIN saved_searches s ON s.aid = v.aid GROUP BY s.aid, v.w ORDER BY 2"),
            strings(&[&["1", "p"], &["NULL", "q"], &["NULL", "r"]]),
        ),
        (
            format!("SELECT DISTINCT s.aid, v.w FROM saved_searches s RIGHT JOIN {given} ON s.aid = v.aid ORDER BY 2"),
            strings(&[&["1", "p"], &["NULL", "q"], &["NULL", "r"]]),
        ),
        (
            format!("SELECT count(*) FROM (SELECT DISTINCT s.aid, v.w FROM saved_searches s FULL JOIN {given} ON s.aid = v.aid)"),
            strings(&[&["6"]]),
        ),
        (
            "SELECT aid, kind, count(*) FROM saved_searches GROUP BY ROLLUP (aid, kind) HAVING aid IS NULL OR aid = '1' ORDER BY 1, 2"
                .to_owned(),
            strings(&[&["1", "saved", "1"], &["1", "NULL", "1"], &["NULL", "NULL", "4"]]),
        ),
        // Columns that depend on the key need no grouping, as in PostgreSQL.
        (
            "SELECT s.aid, s.name, count(r.position) FROM saved_searches s LEFT JOIN recent_searches r ON r.aid = s.aid \
             GROUP BY s.aid ORDER BY 1"
                .to_owned(),
            strings(&[&["1", "A of the team", "1"], &["2", "B", "0"], &["3", "C", "0"], &["4", "NULL", "2"]]),
        ),
        (
            "SELECT name, kind, count(*) FROM saved_searches WHERE name IS NULL OR kind = 'team' GROUP BY name, kind ORDER BY 2"
                .to_owned(),
            strings(&[&["NULL", "recent", "1"], &["C", "team", "1"]]),
        ),
        (
            "WITH RECURSIVE r AS (SELECT aid, 1 AS n FROM saved_searches UNION ALL SELECT aid, n + 1 FROM r WHERE n < 3) \
             SELECT count(*) FROM (SELECT aid, n FROM r GROUP BY aid, n)"
                .to_owned(),
            strings(&[&["12"]]),
        ),
    ];
    each_async(cases, async |(sql, expected)| {
        assert_eq!(ask(&context, &sql).await, expected, "{sql}");
    })
    .await;
    ask(&context, "CREATE TABLE copied AS SELECT aid, name FROM saved_searches").await;
    ask(&context, "INSERT INTO copied SELECT aid, 'again' FROM saved_searches").await;
    assert_eq!(ask(&context, "SELECT count(*) FROM (SELECT DISTINCT aid FROM copied)").await, [["4"]]);
    assert_eq!(ask(&context, "SELECT count(*) FROM (SELECT aid, name FROM copied GROUP BY aid, name)").await, [["8"]]);
}

/// One saved search of the simulator is listed as saved and as team.
#[tokio::test]
async fn joins_on_the_aid_multiply_nothing() {
    let world = World::new().await;
    for (joined, alone) in [
        (
            "SELECT sum(total_mentions) FROM overview JOIN saved_searches USING (aid)",
            "SELECT sum(total_mentions) FROM overview",
        ),
        (
            "SELECT s.aid, count(m.id) FROM saved_searches s JOIN mentions m ON m.aid = s.aid GROUP BY 1 ORDER BY 1",
            "SELECT aid, count(*) FROM mentions GROUP BY 1 ORDER BY 1",
        ),
        (
            "SELECT s.aid, sum(v.mentions) FROM volume v JOIN saved_searches s ON v.aid = s.aid GROUP BY 1 ORDER BY 1",
            "SELECT aid, sum(mentions) FROM volume GROUP BY 1 ORDER BY 1",
        ),
        (
            "SELECT count(*) FROM mentions m LEFT JOIN saved_searches s ON m.aid = s.aid",
            "SELECT count(*) FROM mentions",
        ),
    ] {
        assert_eq!(world.rows(joined).await, world.rows(alone).await, "{joined}");
    }
}

/// The name of the saved search, in the tables whose responses do not have it.
mod names {
    use datafusion_saved_search::sql;

    use crate::support::{BIG, OTHER, World, each_async, pages, rows};

    /// Rows of a statement, and the requests that it cost.
    async fn cost(world: &World, statement: &str) -> (Vec<Vec<String>>, u64) {
        let before = world.service.requests();
        let frame = sql(&world.context, statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
        let batches = frame.collect().await.unwrap_or_else(|error| panic!("{statement}: {error}"));
        (rows(&batches), world.service.requests() - before)
    }

    #[tokio::test]
    async fn a_name_is_that_of_the_list_and_costs_it() {
        let world = World::new().await;
        let names = cost(&world, "SELECT aid, name, kind FROM saved_searches").await.0;
        let name = |aid: &str| names.iter().find(|row| row[0] == aid).map(|row| row[1].clone()).unwrap();
        // Recent searches are read only if their aid is named.
        let searches = u64::try_from(names.iter().filter(|row| row[2] != "recent").count()).unwrap();
        let quoted = name(BIG).replace('\'', "''");
        let by_aid =
            |statement: &str| statement.replace("{BIG}", BIG).replace("{OTHER}", OTHER).replace("{NAME}", &quoted);
        // One list, and what the rows cost without the name.
        let cases = [
            ("SELECT aid, name, count(*) FROM mentions GROUP BY aid, name", 1, 1 + searches),
            ("SELECT aid, m.name, total_mentions FROM overview m", 1, 1 + searches),
            ("SELECT aid, name FROM mentions WHERE aid = '{BIG}' ORDER BY published_at DESC LIMIT 5", 1, 2),
            (
                "SELECT aid, count(*), max(name) FROM volume WHERE aid = '{OTHER}' AND duration = '3d' GROUP BY aid",
                2,
                2,
            ),
            (
                "SELECT aid, upper(title), name FROM v4.mentions WHERE name = '{NAME}' ORDER BY published_at LIMIT 3",
                2,
                2,
            ),
            (
                "SELECT m.aid, m.name, o.name FROM mentions m JOIN overview o USING (aid) WHERE m.aid = '{BIG}' LIMIT 2",
                1,
                3,
            ),
            ("SELECT aid, name FROM mentions WHERE aid = '{BIG}' ORDER BY name, published_at DESC LIMIT 2", 1, 2),
            ("SELECT aid, max(name) FROM overview o WHERE aid = '{BIG}' GROUP BY aid ORDER BY max(o.name)", 1, 2),
            (
                "SELECT aid, name FROM saved_searches WHERE name IN (SELECT name FROM overview WHERE aid = '{BIG}')",
                1,
                2,
            ),
            (
                "WITH q AS (SELECT * FROM mentions) SELECT aid, (SELECT max(m.name) FROM mentions m WHERE m.aid = '{BIG}') FROM overview WHERE aid = '{BIG}'",
                1,
                2,
            ),
        ];
        each_async(cases, async |(statement, column, requests)| {
            let (found, requests_sent) = cost(&world, &by_aid(statement)).await;
            assert!(!found.is_empty(), "{statement}");
            for row in found {
                assert_eq!(row[column], name(&row[0]), "{statement}");
            }
            assert_eq!(requests_sent, requests, "{statement}");
        })
        .await;
    }

    #[tokio::test]
    async fn a_name_orders_rows_that_do_not_have_it() {
        let world = World::new().await;
        let by_join = "SELECT o.aid FROM overview o JOIN saved_searches s ON s.aid = o.aid ORDER BY s.name, o.aid";
        let expected = cost(&world, by_join).await.0;
        for statement in [
            "SELECT o.aid FROM overview o ORDER BY o.name, o.aid",
            "SELECT aid FROM overview ORDER BY name, aid",
            "SELECT overview.aid FROM overview ORDER BY overview.name, overview.aid",
        ] {
            assert_eq!(cost(&world, statement).await.0, expected, "{statement}");
        }
    }

    #[tokio::test]
    async fn a_subquery_has_its_own_name() {
        let world = World::new().await;
        let listed = "SELECT s.aid FROM saved_searches s WHERE EXISTS (SELECT 1 FROM overview WHERE name = '{NAME}')";
        let name = cost(&world, &format!("SELECT name FROM saved_searches WHERE aid = '{BIG}'")).await.0[0][0].clone();
        let every = cost(&world, "SELECT aid FROM saved_searches").await.0;
        assert_eq!(cost(&world, &listed.replace("{NAME}", &name.replace('\'', "''"))).await.0.len(), every.len());
        assert!(cost(&world, &listed.replace("{NAME}", "no such name")).await.0.is_empty());
    }

    #[tokio::test]
    async fn statements_that_have_a_meaning_without_it_keep_it() {
        let world = World::new().await;
        let (every, requests) = cost(&world, &format!("SELECT * FROM mentions WHERE aid = '{BIG}'")).await;
        assert_eq!(requests, pages(every.len() as u64));
        let width = every[0].len();
        let (with, _) = cost(&world, &format!("SELECT *, name FROM mentions WHERE aid = '{BIG}' LIMIT 1")).await;
        assert_eq!(with[0].len(), width + 1);
        let (with, _) = cost(&world, &format!("SELECT m.*, m.name FROM mentions m WHERE aid = '{BIG}' LIMIT 1")).await;
        assert_eq!(with[0].len(), width + 1);
        for (statement, expected) in [
            ("SELECT title AS name FROM (VALUES ('b'), ('a')) v(title) ORDER BY name", "a"),
            ("WITH mentions AS (SELECT 'own' AS name) SELECT name FROM mentions", "own"),
            (
                "SELECT name FROM mentions m JOIN (VALUES ('183772', 'other')) v(id, name) ON v.id = m.aid LIMIT 1",
                "other",
            ),
        ] {
            assert_eq!(cost(&world, statement).await.0[0], [expected], "{statement}");
        }
        for statement in [
            "WITH mentions AS (SELECT 1 AS x) SELECT name FROM mentions",
            "SELECT name FROM (SELECT aid FROM mentions) q",
            "SELECT s.name FROM breakdowns s, mentions m WHERE m.name = s.nope",
        ] {
            assert!(sql(&world.context, statement).await.is_err(), "{statement}");
        }
    }
}
