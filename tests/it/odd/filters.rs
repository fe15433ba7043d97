//! Filters that mean something else than the profile says.

use super::*;

/// A service whose parameter `language` selects by country.
fn by_country() -> Lab {
    Lab::new(|asked, body| {
        let country = asked.text("language").to_uppercase();
        if asked.list || country.is_empty() {
            return;
        }
        let (from, to) = period(asked);
        let mut of = corpus();
        of.retain(|mention| from <= mention.at && mention.at < to && mention.country == country);
        if asked.text("sortBy").starts_with("reach") {
            of.sort_by_key(|mention| mention.reach);
        }
        if asked.text("sortBy").ends_with("_desc") {
            of.reverse();
        }
        body["overview"] = overview(asked, &of);
        if body["mentions"].is_object() {
            body["mentions"] = page(asked, &of);
        }
    })
}

fn german(what: &str, rest: &str) -> String {
    format!("SELECT {what} FROM mentions WHERE {TWELVE_DAYS} AND language = 'de'{rest}")
}

async fn sorted_rows(lab: &Lab, sql: &str) -> Vec<Vec<String>> {
    let mut rows = lab.ask(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    if !sql.contains("ORDER BY") {
        rows.sort();
    }
    rows
}

/// Of 87 mentions in German, 29 are of Germany, where there are 145.
#[tokio::test(start_paused = true)]
async fn a_filter_that_a_mention_contradicts_is_not_used() {
    let statements = [
        german("id", ""),
        german("count(*)", ""),
        german("max(reach)", ""),
        german("min(reach), max(reach), count(*)", ""),
        german("country, count(*)", " GROUP BY 1"),
        german("id", " AND text LIKE '%1%' ORDER BY published_at DESC LIMIT 5"),
    ];
    each_async(statements, async |sql| {
        let honest = Lab::new(|_, _| {});
        assert_eq!(sorted_rows(&by_country(), &sql).await, sorted_rows(&honest, &sql).await, "{sql}");
    })
    .await;
    // A page through the filter, and all pages without it.
    let honest = Lab::new(|_, _| {});
    honest.ask(&format!("SELECT id FROM mentions WHERE {TWELVE_DAYS}")).await.unwrap();
    let lab = by_country();
    assert_eq!(lab.ask(&german("id", "")).await.unwrap().len(), honest_count_of("de"));
    assert_eq!(lab.service.requests(), 1 + honest.service.requests());
    let notes = lab.ask("SELECT message FROM system.warnings").await.unwrap().concat().concat();
    assert!(notes.contains("`language`") && notes.contains("reading without this filter"), "{notes}");
    // An honest service takes no more requests, and has no note.
    let honest = Lab::new(|_, _| {});
    assert_eq!(honest.ask(&german("id", "")).await.unwrap().len(), honest_count_of("de"));
    assert_eq!(honest.service.requests(), 1);
    let notes = honest.ask("SELECT message FROM system.warnings").await.unwrap().concat().concat();
    assert!(!notes.contains("filter"), "{notes}");
}

fn honest_count_of(language: &str) -> usize {
    let (from, to) = (instant("2026-06-14T00:00:00Z"), instant("2026-06-26T00:00:00Z"));
    corpus().iter().filter(|mention| from <= mention.at && mention.at < to && mention.language == language).count()
}

#[tokio::test(start_paused = true)]
async fn a_contradicted_filter_is_an_error_under_a_limit_and_on_a_later_page() {
    let texts = ["do not match the requested filters", "although `language` was requested to be `de`", "[filters]"];
    for rest in [" LIMIT 5", " ORDER BY published_at LIMIT 5", " ORDER BY reach DESC LIMIT 5"] {
        by_country().fails(&german("id", rest), &texts).await;
    }
    // Of 172 mentions in English, two pages.
    let lab = Lab::new(|asked, body| {
        if !asked.text("language").is_empty() && asked.number("dataFrom") > 0 {
            let items = body.pointer_mut("/mentions/items").and_then(Value::as_array_mut);
            items.into_iter().flatten().skip(5).for_each(|item| item["language"] = json!("fr"));
        }
    });
    let english = german("id", "").replace("'de'", "'en'");
    lab.fails(&english, &["a mention has the `language` `fr`", "requested to be `en`", "[filters]"]).await;
}

/// They would be stored as those with the value.
#[tokio::test]
async fn mentions_through_a_contradicted_filter_are_not_stored() {
    let folder = tempfile::TempDir::new().unwrap();
    let lab = Lab::stored(folder.path(), |asked, body| {
        if !asked.text("language").is_empty() {
            let items = body.pointer_mut("/mentions/items").and_then(Value::as_array_mut);
            items.into_iter().flatten().take(3).for_each(|item| item["language"] = json!("fr"));
        }
    });
    for _ in 0..2 {
        match lab.ask(&german("id", "")).await {
            Ok(rows) => assert_eq!(rows.len(), honest_count_of("de")),
            Err(error) => assert!(error.to_string().contains("a mention has the `language` `fr`"), "{error}"),
        }
    }
}
