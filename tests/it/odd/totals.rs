//! Totals that a response does not call exact.

use super::*;

/// A service that counts at most 200 mentions, and has no timeline and no lists.
fn capped(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Lab {
    Lab::new(move |asked, body| {
        if !asked.list {
            let total = matching(asked).len().min(200);
            body["overview"] = json!({"totalMentions": total});
            if body["mentions"].is_object() {
                body["mentions"]["total"] = json!(total);
            }
            change(body);
        }
    })
}

/// Counts all mentions, or refuses to.
async fn is_right_or_refused(lab: &Lab) {
    for (sql, right) in [("SELECT count(*) FROM mentions WHERE {}", 1), ("SELECT id FROM mentions WHERE {}", 432)] {
        match lab.ask(&sql.replace("{}", TWELVE_DAYS)).await {
            Ok(rows) if right == 1 => assert_eq!(rows, [["432"]], "{sql}"),
            Ok(rows) => assert_eq!(rows.len(), right, "{sql}"),
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::Incomplete | ErrorKind::Contradiction), "{sql}: {error}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_total_that_its_response_calls_inexact_is_not_believed_wherever_it_says_so() {
    let members = [
        ("totalIsExact", json!(false)),
        ("isTotalExact", json!(false)),
        ("exactTotal", json!(false)),
        ("totalIsEstimate", json!(true)),
        ("totalCapped", json!(true)),
        ("isLowerBound", json!(true)),
        ("trackTotalHits", json!(false)),
        ("totalType", json!("approx")),
        ("countMode", json!("estimated")),
        ("totalPrecision", json!("atLeast")),
        ("accurate", json!(false)),
        ("relation", json!("gte")),
        ("approximate", json!(true)),
        ("totalFuzzy", json!(true)),
        ("totalReliable", json!(false)),
        ("countQualifier", json!("min")),
        ("totalType", json!("hll")),
        ("totalFormatted", json!("200+")),
    ];
    let cases = members.iter().flat_map(|member| ["/overview", "/mentions", ""].map(|place| (place, member.clone())));
    each_async(cases.collect::<Vec<_>>(), async |(place, (name, value))| {
        let lab = capped(move |body| {
            if let Some(object) = body.pointer_mut(place).filter(|object| object.is_object()) {
                object[name] = value.clone();
            }
        });
        is_right_or_refused(&lab).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_relation_is_believed_only_if_it_means_equality() {
    each_async(["approx", "estimate", "~", "lte", "roughly"], async |word| {
        let lab = capped(move |body| {
            if body["mentions"].is_object() {
                body["mentions"]["totalRelation"] = json!(word);
            }
        });
        is_right_or_refused(&lab).await;
    })
    .await;
    each_async(["eq", "exact", "equal", "="], async |word| {
        let lab = Lab::new(move |_, body| {
            if body["mentions"].is_object() {
                body["mentions"]["totalRelation"] = json!(word);
            }
        });
        let count = lab.ask(&format!("SELECT count(*) FROM mentions WHERE {TWELVE_DAYS}")).await.unwrap();
        assert_eq!((count, lab.service.requests()), (vec![vec!["432".to_owned()]], 1));
    })
    .await;
}

/// Members about other things cost no request.
#[tokio::test(start_paused = true)]
async fn members_about_something_else_leave_a_total_exact() {
    let members = [
        ("includeTotal", json!(true)),
        ("totalFormatted", json!("432")),
        ("totalReliable", json!(true)),
        ("countBy", json!("day")),
        ("countMode", json!("full")),
    ];
    let cases = members.iter().flat_map(|member| ["/overview", "/mentions", ""].map(|place| (place, member.clone())));
    each_async(cases.collect::<Vec<_>>(), async |(place, (name, value))| {
        let lab = Lab::new(move |asked, body| {
            if let Some(object) = body.pointer_mut(place).filter(|object| !asked.list && object.is_object()) {
                object[name] = value.clone();
            }
        });
        let count = lab.ask(&format!("SELECT count(*) FROM mentions WHERE {TWELVE_DAYS}")).await.unwrap();
        assert_eq!((count, lab.service.requests()), (vec![vec!["432".to_owned()]], 1), "{name} {place}");
    })
    .await;
}

/// The number of mentions on a page is the number of all of them only if something else says so.
#[tokio::test(start_paused = true)]
async fn a_total_that_is_the_number_of_mentions_on_a_full_page_is_not_believed() {
    let lab = Lab::new(|asked, body| {
        if !asked.list {
            let on_page = body["mentions"]["items"].as_array().map_or(0, Vec::len);
            body["overview"] = json!({"totalMentions": on_page});
            if body["mentions"].is_object() {
                body["mentions"]["total"] = json!(on_page);
            }
        }
    });
    is_right_or_refused(&lab).await;
    // One mention, which the timeline counts.
    let honest = Lab::new(|_, _| {});
    let one = "aid = '1' AND published_at >= '2026-06-20T00:00:00Z' AND published_at < '2026-06-20T00:40:00Z'";
    let count = honest.ask(&format!("SELECT count(*) FROM mentions WHERE {one}")).await.unwrap();
    assert_eq!((count, honest.service.requests()), (vec![vec!["1".to_owned()]], 1));
}

#[tokio::test(start_paused = true)]
async fn a_total_of_an_overview_that_its_response_calls_inexact_is_noted() {
    let lab = Lab::new(|asked, body| {
        if !asked.list {
            body["overview"]["totalIsExact"] = json!(false);
        }
    });
    let notes = "SELECT message FROM system.warnings";
    lab.ask("SELECT total_mentions FROM overview WHERE aid = '1'").await.unwrap();
    let told = lab.ask(notes).await.unwrap().concat();
    assert!(
        told.iter().any(|note| note.contains("total_mentions need not be") && note.contains("totalIsExact")),
        "{told:?}"
    );
    let honest = Lab::new(|_, _| {});
    honest.ask("SELECT total_mentions FROM overview WHERE aid = '1'").await.unwrap();
    assert!(!honest.ask(notes).await.unwrap().concat().iter().any(|note| note.contains("need not be")));
}
