//! Lists of saved searches that are cut, and say so.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_list_that_fills_its_page_is_not_taken_for_whole() {
    let list = |beside: Value| {
        Lab::new(move |asked, body| {
            if asked.list {
                let entries: Vec<Value> = (1..=4).map(|aid| json!({"aid": aid.to_string()})).collect();
                *body = json!({"data": {"savedSearches": entries, "teamSavedSearches": []}});
                body.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
            }
        })
    };
    let cut = [
        json!({"limit": 4, "returned": 4, "offset": 0}),
        json!({"maxItems": 4}),
        json!({"paging": {"cursors": {"before": "a", "after": "b"}}}),
        json!({"meta": {"perPage": "4"}}),
        json!({"pageSize": 4}),
    ];
    each_async(cut, async |beside| {
        list(beside)
            .fails("SELECT aid FROM saved_searches", &["the list of saved searches continues", "[list] pages"])
            .await;
    })
    .await;
    let whole = [
        json!({"limit": 100, "returned": 4, "offset": 0}),
        json!({"limit": 4, "total": 4}),
        json!({"paging": {"cursors": {"after": "b"}, "hasMore": false}}),
    ];
    each_async(whole, async |beside| {
        assert_eq!(list(beside).ask("SELECT aid FROM saved_searches").await.unwrap().len(), 4);
    })
    .await;
}
