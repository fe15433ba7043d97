//! Determines how to request the next page of a list: by a link or a value in the response, or by the number of a page or an
//! entry; and what in a response of mentions may name the next page.

use serde_json::Value;

use super::asker::{Pair, Reply};
use super::candidates::{AID, pair};
use super::dialogue::Dialogue;
use super::shape::{Path, instant, leaves, pointer, said, saved_searches, whole};
use super::vocabulary::plain;
use crate::error::Result;

/// Requests spent on the pages of the list.
const TRIES: usize = 3;

impl Dialogue {
    /// Looks for further pages, if the first one says that there are some.
    pub(super) async fn list_pages(&mut self, first: &Reply, aid: &Path) -> Result<()> {
        let Some(body) = &first.body else { return Ok(()) };
        let aids = |body: &Value| aids(body, aid);
        let count = aids(body).len();
        let mut tried = false;
        for (asked, entry) in continuations(body, count).into_iter().take(TRIES) {
            tried = true;
            let Some(reply) = self.asker.ask("list", &asked).await? else { break };
            let known = aids(body);
            let more = reply.body.as_ref().map(&aids).unwrap_or_default();
            if !more.is_empty() && more.iter().all(|aid| !known.contains(aid)) {
                let said: Vec<String> = asked.iter().map(|(name, value)| format!("{name}={value}")).collect();
                self.found.saw("list", format!("{} returned {} other entries of the list", said.join("&"), more.len()));
                // The saved search with the most mentions may be one of them.
                self.listed.extend(more);
                self.found.list_pages = Some(entry);
                return Ok(());
            }
        }
        if tried {
            let text = "the list says that it has more entries, and no usual parameter returned them; set `pages`";
            self.found.could_not_tell("list.pages", text);
        }
        Ok(())
    }
}

fn aids(body: &Value, aid: &Path) -> Vec<String> {
    let name = aid.last().map_or(AID, String::as_str);
    saved_searches(body, name).into_iter().flat_map(|list| list.aids).collect()
}

/// Requests for the second page of a list, the likeliest first, each with the entry of the profile that describes it. Empty if
/// nothing in the list says that there are more entries.
fn continuations(body: &Value, count: usize) -> Vec<(Vec<Pair>, String)> {
    let text = |name: &str| toml::Value::String(name.to_owned()).to_string();
    let cursor = |name: &str, next: &Path| {
        format!("{{ parameter = {}, unit = \"cursor\", next = {} }}", text(name), text(&pointer(next)))
    };
    let named = |path: &Path, word: &str| path.iter().any(|step| plain(step).contains(word));
    let next = next_pages(body).into_iter();
    let mut found: Vec<(Vec<Pair>, String)> = next
        .filter_map(|(pairs, path)| {
            let entry = cursor(&pairs.last()?.0, &path);
            Some((pairs, entry))
        })
        .collect();
    // An account is none.
    let counts = |path: &Path| path.iter().any(|step| plain(step).replace("account", "").contains("count"));
    // Numbers of other things.
    let other = |path: &Path| ["shard", "cluster", "quota", "usage", "ratelimit"].iter().any(|word| named(path, word));
    let more = leaves(body).into_iter().filter(|(path, _)| !other(path)).any(|(path, value)| {
        let total = named(&path, "total") || counts(&path);
        let flag = named(&path, "more") && value == &Value::Bool(true);
        flag || (total && !named(&path, "page") && whole(value).is_some_and(|total| total > count as u64))
    });
    if found.is_empty() && more {
        let numbered = |name: &str, unit: &str, first: u64, value: u64| {
            let entry = format!("{{ parameter = {}, unit = \"{unit}\", first = {first} }}", text(name));
            (vec![pair(name, value)], entry)
        };
        // The list says which page it is: `resultsPage: 0`.
        let is_page = |path: &Path| path.last().is_some_and(|name| plain(name).ends_with("page"));
        let from_zero = leaves(body).iter().any(|(path, value)| is_page(path) && whole(value) == Some(0));
        found.push(if from_zero { numbered("page", "page", 0, 1) } else { numbered("page", "page", 1, 2) });
        found.push(numbered("offset", "row", 0, count as u64));
        found.push(numbered("from", "row", 0, count as u64));
    }
    found
}

/// Values in a response that may name the next page, by their paths, each with the parameters of a request for it, the likeliest
/// first. The last parameter is the cursor.
pub(super) fn next_pages(body: &Value) -> Vec<(Vec<Pair>, Path)> {
    let named = |path: &Path, word: &str| path.iter().any(|step| plain(step).contains(word));
    let mut found = Vec::new();
    for (path, value) in leaves(body) {
        let Some(next) = said(value).filter(|next| !next.is_empty() && next != "false") else { continue };
        let forward = named(&path, "next") || (named(&path, "cursor") && !named(&path, "prev"));
        let link = ["more", "older", "continu", "forward"].iter().any(|word| named(&path, word)) && next.contains('?');
        if !(forward || link) || value.is_boolean() {
            continue;
        }
        if let Some((_, query)) = next.split_once('?') {
            let mut pairs: Vec<Pair> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
            pairs.sort_by_key(places_a_page);
            found.push((pairs, path));
            continue;
        }
        let own = path.last().map(|name| name.trim_start_matches("next").trim_start_matches('_')).unwrap_or_default();
        let mut letters = own.chars();
        let own = letters.next().map(|first| first.to_ascii_lowercase().to_string() + letters.as_str());
        let usual = ["cursor", "page", "pageToken", "after"].map(str::to_owned);
        let names = own.into_iter().filter(|own| !own.is_empty()).chain(usual);
        found.extend(names.map(|name| (vec![pair(&name, &next)], path.clone())));
    }
    found
}

/// Rank of a parameter as the place of a page, the largest for the likeliest: others may have the size, or an end of the window.
fn places_a_page((name, value): &Pair) -> usize {
    /// Parts of names, the least likely first.
    const WORDS: [&[&str]; 3] = [
        &["start", "from", "next"],
        &["page", "offset", "skip"],
        &["cursor", "token", "after", "marker", "continu", "scroll"],
    ];
    const SIZE: [&str; 6] = ["size", "limit", "perpage", "count", "rows", "max"];
    let name = plain(name);
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let is_time = instant(&Value::from(value.as_str())).is_some();
    if has(&SIZE) || is_time {
        return 0;
    }
    WORDS.iter().rposition(|words| has(words)).map_or(0, |rank| rank + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cases::each;

    fn first(body: &Value) -> Option<(String, String)> {
        let found = continuations(body, aids(body, &vec![AID.to_owned()]).len()).into_iter().next()?;
        let pairs: Vec<String> = found.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Some((pairs.join("&"), found.1))
    }

    #[test]
    fn a_list_says_how_it_goes_on() {
        let items = json!([{"aid": "1"}, {"aid": "2"}]);
        let cases = [
            (
                json!({"items": items, "links": {"next": "/v4/list?cursor=abc"}}),
                "cursor=abc",
                "{ parameter = \"cursor\", unit = \"cursor\", next = \"/links/next\" }",
            ),
            (
                json!({"items": items, "links": {"next": "/v4/list?page[number]=2&page[size]=2&sort=name"}}),
                "page[size]=2&sort=name&page[number]=2",
                "{ parameter = \"page[number]\", unit = \"cursor\", next = \"/links/next\" }",
            ),
            (
                json!({"items": items, "nextPageToken": "t9"}),
                "pageToken=t9",
                "{ parameter = \"pageToken\", unit = \"cursor\", next = \"/nextPageToken\" }",
            ),
            (
                json!({"items": items, "resultsTotal": 4, "resultsPage": 0, "resultsPageSize": 2}),
                "page=1",
                "{ parameter = \"page\", unit = \"page\", first = 0 }",
            ),
            (json!({"items": items, "total": 9}), "page=2", "{ parameter = \"page\", unit = \"page\", first = 1 }"),
        ];
        each(cases, |(body, asked, entry)| {
            assert_eq!(first(&body), Some((asked.to_owned(), entry.to_owned())), "{body}");
        });
        for whole in [
            json!({"items": items, "total": 2, "next": null}),
            json!({"items": items, "hasMore": false}),
            json!({"items": items, "_shards": {"total": 5, "successful": 5}, "total": {"value": 2}}),
        ] {
            assert_eq!(first(&whole), None, "{whole}");
        }
    }
}
