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
