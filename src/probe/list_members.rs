//! Members of the entries of a list that may be the ids of saved searches, by the form of their values. Pure.
//!
//! Names only rank them: a search that is answered with one of the values confirms a member.

use std::collections::HashSet;

use serde_json::Value;

use super::asker::Pair;
use super::candidates::AID;
use super::shape::{arrays, at, instant, leaves, objects, said};
use super::vocabulary::plain;

/// A member of the entries of a list that may be their id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IdMember {
    /// Name of the member.
    pub(super) name: String,
    /// Set if one of its values is known from a request that works.
    pub(super) is_given: bool,
}

/// Members of the entries of all lists in a response whose values are short words or numbers, each of them once, beside a text
/// that may be a name: the likeliest first. `given`: parameters of a request that works.
pub(super) fn id_members(body: &Value, given: &[Pair]) -> Vec<IdMember> {
    let mut found = Vec::new();
    for (depth, entries) in lists(body) {
        let Some(first) = entries.first() else { continue };
        for (path, _) in leaves(first) {
            let Some(name) = path.last() else { continue };
            let Some((form, ids)) = ids_at(&entries, &path) else { continue };
            // A short number may be there by chance.
            let is = |(parameter, value): &Pair| {
                ids.contains(value) && (parameter == AID || parameter == name || value.len() > 3)
            };
            let member = IdMember { name: name.clone(), is_given: given.iter().any(is) };
            let differ = ids.iter().any(|id| id.len() != ids[0].len());
            found.push(((!member.is_given, depth, form, differ, !plain(name).ends_with("id")), member));
        }
    }
    found.sort_by_key(|(rank, _)| *rank);
    let mut names = HashSet::new();
    found.into_iter().map(|(_, member)| member).filter(|member| names.insert(member.name.clone())).collect()
}

/// All arrays of objects in a response, with the number of arrays around each.
fn lists(body: &Value) -> Vec<(usize, Vec<&Value>)> {
    /// Arrays in each other.
    const DEPTH: usize = 4;
    let mut found = Vec::new();
    let mut open: Vec<Vec<&Value>> = arrays(body).into_iter().map(|(_, entries)| entries).collect();
    for depth in 0..DEPTH {
        let values = open.iter().flatten().copied().flat_map(leaves);
        let inner: Vec<Vec<&Value>> = values.filter_map(|(_, value)| objects(value)).collect();
        found.extend(std::mem::replace(&mut open, inner).into_iter().map(|entries| (depth, entries)));
    }
    found
}

/// The values at a path of all entries as text, with the rank of their form; `None` if they are not ids.
fn ids_at(entries: &[&Value], path: &[String]) -> Option<(usize, Vec<String>)> {
    let values: Vec<&Value> = entries.iter().map(|entry| at(entry, path)).collect::<Option<_>>()?;
    let ids: Vec<String> = values.iter().map(|value| id(value)).collect::<Option<_>>()?;
    let is_named = |entry: &&Value| leaves(entry).iter().any(|(other, value)| other.as_slice() != path && names(value));
    let is_list = ids.iter().collect::<HashSet<_>>().len() == ids.len() && entries.iter().all(is_named);
    is_list.then(|| (values.iter().map(|value| form(value)).max().unwrap_or_default(), ids))
}

/// The text of a value that may be an id: a number, or a short text without blanks.
fn id(value: &Value) -> Option<String> {
    const LONGEST: usize = 64;
    let part = |c: char| c.is_alphanumeric() || "-_.:".contains(c);
    let is_id = match value {
        Value::Number(number) => number.is_u64(),
        Value::String(text) => !text.is_empty() && text.len() <= LONGEST && text.chars().all(part),
        _ => false,
    };
    said(value).filter(|_| is_id)
}

/// Rank of the form of an id: with digits, then what may be a time or a date, then a word.
fn form(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    let is_date = !text.contains(char::is_alphabetic) && text.matches(['.', '-', ':']).count() > 1;
    match () {
        () if is_date || instant(value).is_some() => 1,
        () if value.is_number() || text.contains(|c: char| c.is_ascii_digit()) => 0,
        () => 2,
    }
}

/// True for a text that may be a name: with letters, and neither a time nor an address.
fn names(value: &Value) -> bool {
    value.as_str().is_some_and(|text| {
        let is_address = text.contains("://") || text.starts_with('/');
        text.contains(char::is_alphabetic) && !is_address && instant(value).is_none()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cases::each;

    fn first(body: &Value, given: &[Pair]) -> Option<String> {
        id_members(body, given).into_iter().next().map(|member| member.name)
    }

    #[test]
    fn an_id_is_told_by_its_values() {
        let cases = [
            (json!({"a": [{"projekt_id": 5511, "name": "x"}, {"projekt_id": 5512, "name": "y"}]}), Some("projekt_id")),
            (json!([{"veille": "v-301", "nom": "Marque"}, {"veille": "v-302", "nom": "Crise"}]), Some("veille")),
            (
                json!({"a": {"b": [{"namae": "x", "kensaku": "ks1"}, {"namae": "y", "kensaku": "ks2"}]}}),
                Some("kensaku"),
            ),
            // A date, and a number that several entries have.
            (
                json!({"a": [{"angelegt": "13.02.2026", "nummer": 17, "rang": 1, "titel": "x"},
                    {"angelegt": "14.02.2026", "nummer": 18, "rang": 1, "titel": "y"}]}),
                Some("nummer"),
            ),
            // In folders.
            (
                json!({"a": [{"ordner": "A 1", "b": [{"kennung": "k1", "titel": "x y"}]}, {"ordner": "B 2", "b": []}]}),
                Some("kennung"),
            ),
            (json!({"links": [{"rel": "self", "href": "/v4/list"}, {"rel": "next", "href": "/v4/list?page=2"}]}), None),
            (json!({"a": [{"veille": "v-301"}, {"veille": "v-302"}]}), None),
        ];
        each(cases, |(body, expected)| assert_eq!(first(&body, &[]).as_deref(), expected, "{body}"));
    }

    #[test]
    fn a_value_of_a_request_that_works_tells_the_id() {
        let body = json!({"a": [{"code": "c1", "monitor": "alpha", "title": "x"}, {"code": "c2", "monitor": "beta", "title": "y"}]});
        let given = |name: &str, value: &str| [(name.to_owned(), value.to_owned())];
        assert_eq!(first(&body, &[]).as_deref(), Some("code"));
        assert_eq!(first(&body, &given("thema", "alpha")).as_deref(), Some("monitor"));
        // A page size may be one of the numbers of a list.
        let body = json!({"a": [{"nummer": 17, "stufe": 20, "titel": "x"}, {"nummer": 18, "stufe": 30, "titel": "y"}]});
        let is_given = |given: &[Pair]| id_members(&body, given).iter().any(|member| member.is_given);
        assert!(!is_given(&given("anzahl", "20")) && is_given(&given("nummer", "17")) && is_given(&given(AID, "17")));
    }
}
