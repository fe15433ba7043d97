//! Texts that a service orders or writes in another way than its rows.

use super::*;

/// Titles in the order of a dictionary, which ignores case.
const TITLES: [&str; 5] = ["alpha", "Beta", "beta", "gamma", "Zulu"];

fn title(mention: &Mention) -> &'static str {
    TITLES[mention.number % TITLES.len()]
}

/// A service that sorts by the title in an order of its own.
fn titled(collation: &str, order: fn(&str) -> String) -> Lab {
    let profile = format!(
        "extends = \"v4\"\nname = \"titled\"\n[sort]\nvalues = [\n\
         {{ value = \"date_desc\", column = \"published_at\", direction = \"desc\", nulls = \"last\" }},\n\
         {{ value = \"date_asc\", column = \"published_at\", direction = \"asc\", nulls = \"last\" }},\n\
         {{ value = \"title_asc\", column = \"title\", direction = \"asc\", nulls = \"last\"{collation} }},\n\
         {{ value = \"title_desc\", column = \"title\", direction = \"desc\", nulls = \"last\"{collation} }},\n]\n"
    );
    Lab::with(Profile::parse(&profile, "titled.toml").unwrap(), move |asked, body| {
        if asked.list || !body["mentions"].is_object() {
            return;
        }
        let mut of = matching(asked);
        if asked.text("sortBy").starts_with("title") {
            of.sort_by_key(|mention| order(title(mention)));
            if asked.text("sortBy") == "title_desc" {
                of.reverse();
            }
        }
        body["mentions"] = page(asked, &of);
        for item in body.pointer_mut("/mentions/items").and_then(Value::as_array_mut).into_iter().flatten() {
            let number: usize = item["id"].as_str().unwrap().parse().unwrap();
            item["title"] = json!(TITLES[number % TITLES.len()]);
        }
    })
}

#[tokio::test(start_paused = true)]
async fn texts_are_sorted_by_the_service_only_in_a_declared_collation() {
    let without_case = || titled("", str::to_lowercase);
    let mut titles: Vec<&str> = (0..108).map(|number| TITLES[number % TITLES.len()]).collect();
    titles.sort_unstable();
    let cases = [
        ("SELECT min(title) FROM mentions WHERE {}", vec!["Beta"]),
        ("SELECT max(title) FROM mentions WHERE {}", vec!["gamma"]),
        ("SELECT title FROM mentions WHERE {} ORDER BY title LIMIT 2", titles[..2].to_vec()),
        ("SELECT title FROM mentions WHERE {} ORDER BY title DESC LIMIT 2", vec!["gamma", "gamma"]),
    ];
    each_async(cases, async |(sql, right)| {
        let rows = without_case().ask(&sql.replace("{}", THREE_DAYS)).await.unwrap();
        assert_eq!(rows.concat(), right, "{sql}");
    })
    .await;
    // A declared collation is used.
    let bytes = titled(", collation = \"bytes\"", str::to_owned);
    let first = format!("SELECT min(title) FROM mentions WHERE {THREE_DAYS}");
    assert_eq!((bytes.ask(&first).await.unwrap(), bytes.service.requests()), (vec![vec!["Beta".to_owned()]], 1));
    // The service's own order of texts is not returned as if it were ours.
    let sql = "SELECT title FROM mentions(aid => '1', duration => '7d', sort_by => 'title_asc') LIMIT 3";
    let plan = without_case().context.sql(sql).await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(plan.contains("sort_by = 'title_asc'") && plan.contains("collation"), "{plan}");
}

/// The mentions of a request, of which the last ones of twelve days are in another language.
fn with_rare(asked: &Asked, language: &'static str) -> Vec<Mention> {
    let mut of = matching(asked);
    of.iter_mut().filter(|mention| mention.number >= 490).for_each(|mention| mention.language = language);
    of
}

/// A service with a rare language, which its list and its mentions write in these ways.
fn rare(profile: Profile, listed: &'static str, written: &'static str) -> Lab {
    Lab::with(profile, move |asked, body| {
        if asked.list {
            return;
        }
        body["overview"] = overview(asked, &with_rare(asked, listed));
        if body["mentions"].is_object() {
            body["mentions"] = page(asked, &with_rare(asked, written));
        }
    })
}

/// The languages of twelve days, as mentions have them.
fn languages(written: &'static str) -> Vec<Vec<String>> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let (from, to) = (instant("2026-06-14T00:00:00Z"), instant("2026-06-26T00:00:00Z"));
    for mention in corpus().iter().filter(|mention| from <= mention.at && mention.at < to) {
        *counts.entry(if mention.number >= 490 { written } else { mention.language }).or_default() += 1;
    }
    counts.into_iter().map(|(language, count)| vec![language.to_owned(), count.to_string()]).collect()
}

fn by_language() -> String {
    format!("SELECT language, count(*) FROM mentions WHERE {TWELVE_DAYS} GROUP BY 1 ORDER BY 1")
}

#[tokio::test(start_paused = true)]
async fn groups_are_written_as_in_mentions() {
    each_async(["PT", "pt ", "Pt", "unknown", "Other", ""], async |listed| {
        let lab = rare(Profile::v4(), listed, "pt");
        assert_eq!(lab.ask(&by_language()).await.unwrap(), languages("pt"), "{listed}");
    })
    .await;
    let honest = rare(Profile::v4(), "pt", "pt");
    assert_eq!((honest.ask(&by_language()).await.unwrap(), honest.service.requests()), (languages("pt"), 1));
    // A word for NULL is one in lists as well.
    let document = Profile::builtin_document("v4").unwrap();
    let column = r#"{ name = "language", type = "utf8", at = "/language" }"#;
    assert!(document.contains(column));
    let nulls = document.replace(column, &column.replace(" }", r#", nulls = ["zz"] }"#));
    let lab = rare(Profile::parse(&nulls, "nulls.toml").unwrap(), "zz", "zz");
    let rows = lab.ask(&by_language()).await.unwrap();
    let mut right = languages("zz");
    right.last_mut().unwrap()[0] = "NULL".to_owned();
    assert_eq!((rows, lab.service.requests()), (right, 1));
}

/// A profile of a service whose responses with mentions have no overview.
fn apart() -> Profile {
    Profile::parse("extends = \"v4\"\nname = \"apart\"\n[mentions]\nwith_overview = false\n", "apart.toml").unwrap()
}

#[tokio::test(start_paused = true)]
async fn groups_of_an_overview_without_mentions_are_compared_with_some() {
    let lab = |upper: bool| {
        Lab::with(apart(), move |asked, body| {
            if asked.list {
                return;
            }
            if asked.number("dataSize") > 0 {
                body.as_object_mut().unwrap().remove("overview");
            } else if upper {
                for entry in body["overview"]["languages"].as_array_mut().into_iter().flatten() {
                    entry["name"] = json!(entry["name"].as_str().unwrap().to_uppercase());
                }
            }
        })
    };
    let groups = by_language();
    let mut right = Lab::new(|_, _| {}).ask(&groups).await.unwrap();
    right.sort();
    assert_eq!(lab(true).ask(&groups).await.unwrap(), right);
    let honest = lab(false);
    for requests in [2, 3] {
        assert_eq!((honest.ask(&groups).await.unwrap(), honest.service.requests()), (right.clone(), requests));
    }
}

/// A filter that ignores case, and a list that repeats the requested value.
#[tokio::test(start_paused = true)]
async fn a_filter_without_case_is_compared_with_mentions_that_come_apart() {
    let lab = Lab::with(apart(), |asked, body| {
        if asked.list {
            return;
        }
        let (from, to) = period(asked);
        let mut of = corpus();
        of.retain(|mention| from <= mention.at && mention.at < to);
        of.retain(|mention| is_any_of(mention.language, &asked.text("language").to_lowercase()));
        match asked.number("dataSize") {
            0 => {
                if asked.text("language") == "EN" {
                    of.iter_mut().for_each(|mention| mention.language = "EN");
                }
                body["overview"] = overview(asked, &of);
            }
            _ => {
                body.as_object_mut().unwrap().remove("overview");
                body["mentions"] = page(asked, &of);
            }
        }
    });
    match lab.ask(&format!("SELECT count(*) FROM mentions WHERE {TWELVE_DAYS} AND language = 'EN'")).await {
        Ok(rows) => assert_eq!(rows, [["0"]]),
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Incomplete | ErrorKind::Contradiction), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn times_that_are_texts_are_compared_by_their_letters_with_a_note() {
    let mut profile = Profile::v4();
    profile.sort.values.retain(|sort| sort.column != "published_at");
    profile.tables.mentions.time = None;
    for column in profile.tables.mentions.columns.iter_mut().filter(|column| column.name == "published_at") {
        (column.kind, column.is_unzoned) = (ColumnType::Utf8, true);
    }
    let of = |rest: &str| format!("FROM mentions WHERE aid = '1' AND duration = '7d' {rest}");
    let cases = [
        (format!("SELECT id {}", of("ORDER BY published_at DESC LIMIT 1")), true),
        (format!("SELECT max(published_at) {}", of("")), true),
        (format!("SELECT count(*) {}", of("AND published_at >= '2026'")), true),
        (format!("SELECT id, published_at {}", of("LIMIT 1")), false),
    ];
    each_async(cases, async |(sql, is_noted)| {
        let lab = Lab::with(profile.clone(), |_, _| {});
        lab.ask(&sql).await.unwrap();
        let notes = lab.ask("SELECT message FROM system.warnings").await.unwrap().concat();
        assert_eq!(notes.iter().any(|note| note.contains("compared by its letters")), is_noted, "{sql}: {notes:?}");
    })
    .await;
}
