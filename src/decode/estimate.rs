//! Counts that call themselves estimates: `estimated: true`, `docCountErrorUpperBound: 12` or `totalIsExact: false`, beside a total
//! or a list, or in an entry of the list. The list of a field may be one of several: what another one
//! says of itself does not count.

use serde_json::Value;

use super::Relation;
use super::accuracy::doubts_total;
use super::envelope::{below, is_wanted};
use super::json::{Json, Raw};
use super::pointer_tree::Tree;
use crate::error::Result;
use crate::error::notice::words;
use crate::profile::{Only, Pointer, SectionSpec};

/// Place of a list of counts.
#[derive(Debug)]
pub(crate) struct ListPlace {
    /// The list, or the records that hold it.
    at: Pointer,
    /// The list in each of the records.
    inside: Option<Pointer>,
    /// The record whose list it is.
    only: Option<Only>,
}

impl From<&SectionSpec> for ListPlace {
    fn from(section: &SectionSpec) -> Self {
        Self { at: section.at.clone(), inside: section.inside.clone(), only: section.only.clone() }
    }
}

impl ListPlace {
    /// The values whose members may call the counts of the list estimates: its entries, and the object around it in a record.
    ///
    /// # Errors
    /// Errors of the text.
    fn values(&self, raw: Raw<'_>) -> Result<Vec<Value>> {
        let Some(inside) = &self.inside else { return Ok(entries(raw)) };
        let around = inside.steps().split_last().map(|(_, around)| Pointer::of(around.iter().map(String::as_str)));
        let mut records = Json::new(raw.text);
        if records.peek()? != b'[' {
            return Ok(entries(raw));
        }
        records.enter();
        let (mut first, mut found) = (true, Vec::new());
        while records.item(&mut first)? {
            let record = records.value()?;
            if let Some(only) = &self.only
                && !is_wanted(record, only)?
            {
                continue;
            }
            if let Some(around) = &around
                && let Some(mut around) = below(record, around)?
            {
                found.extend(serde_json::from_str::<Value>(around.value()?.text));
            }
            if let Some(mut list) = below(record, inside)? {
                found.extend(entries(list.value()?));
            }
        }
        Ok(found)
    }
}

/// The entries of a list; none if the value is neither an array nor an object.
fn entries(list: Raw<'_>) -> Vec<Value> {
    match serde_json::from_str(list.text) {
        Ok(Value::Array(entries)) => entries,
        Ok(Value::Object(entries)) => entries.into_iter().map(|(_, value)| value).collect(),
        _ => Vec::new(),
    }
}

/// Places of counts in a response: of a total, and of lists.
#[derive(Debug, Default)]
pub(crate) struct CountPlaces {
    total: Option<Pointer>,
    /// The total of the mentions in the response, and its declared relation.
    mentions: Option<(Pointer, Option<Pointer>)>,
    lists: Vec<ListPlace>,
    tree: Tree<usize>,
}

impl CountPlaces {
    pub(crate) fn new(total: Option<Pointer>, lists: Vec<ListPlace>) -> Self {
        let mut tree = Tree::default();
        if let Some(total) = &total {
            tree.ignore(total.steps());
        }
        for (at, list) in lists.iter().enumerate() {
            tree.insert(list.at.steps(), at);
        }
        Self { total, mentions: None, lists, tree }
    }

    /// The same with the total of the mentions in the response, and its declared relation.
    pub(crate) fn beside_mentions(mut self, total: Option<Pointer>, relation: Option<Pointer>) -> Self {
        if let Some(total) = &total {
            self.tree.ignore(total.steps());
        }
        self.mentions = total.map(|total| (total, relation));
        self
    }

    /// True if a member of an object is said of the totals: the object is around one of them.
    fn is_around_total(&self, beside: &Beside) -> bool {
        let mentions = self.mentions.as_ref().map(|(total, _)| total);
        let mut parents = self.total.iter().chain(mentions).filter_map(|total| Some(total.steps().split_last()?.1));
        parents.any(|parent| parent.starts_with(&beside.within))
    }

    /// True for the declared relation of the mentions' total, with a word that is known to mean a lower bound: it is compared with
    /// the counts.
    fn is_lower_bound(&self, beside: &Beside) -> bool {
        let relation = self.mentions.as_ref().and_then(|(_, relation)| relation.as_ref());
        let steps = relation.and_then(|relation| relation.steps().split_last());
        beside.lower_bound && steps.is_some_and(|(name, parent)| *name == beside.name && parent == beside.within)
    }

    /// The places as a tree with the numbers of the lists; `None` if there are none.
    pub(super) fn tree(&self) -> Option<&Tree<usize>> {
        (self.total.is_some() || !self.lists.is_empty()).then_some(&self.tree)
    }
}

/// Counts of a response that call themselves estimates: for each, a member that says so, with its value.
#[derive(Debug, Default)]
pub(crate) struct Estimates {
    /// The total.
    pub(crate) total: Option<String>,
    /// The lists, in the order of their places.
    pub(crate) lists: Vec<Option<String>>,
}

/// A member of an object around the places of counts that calls counts estimates.
#[derive(Debug)]
struct Beside {
    /// Names of the objects around it.
    within: Vec<String>,
    name: String,
    /// The member with its value.
    said: String,
    /// Set if it says so of the counts in its object.
    of_counts: bool,
    /// Set if its value is a word that is known to mean a lower bound.
    lower_bound: bool,
}

/// Members of a response that may call its counts estimates, as they are found.
#[derive(Debug)]
pub(super) struct Said<'t> {
    /// Those around the places.
    beside: Vec<Beside>,
    lists: Vec<Option<Raw<'t>>>,
}

impl<'t> Said<'t> {
    pub(super) fn new(places: &CountPlaces) -> Self {
        Self { beside: Vec::new(), lists: vec![None; places.lists.len()] }
    }

    /// Notes a member of an object around a place, which is neither an object nor an array.
    pub(super) fn member(&mut self, within: &[String], name: &str, raw: Raw<'t>) {
        let words = words(name);
        let of_counts = calls_estimate(&words, raw);
        if (of_counts || doubts_total(&words, raw))
            && let Ok(value) = serde_json::from_str::<Value>(raw.text)
        {
            let name = name.to_owned();
            let said = described((&name, &value));
            let lower_bound = value.as_str().is_some_and(Relation::is_lower_bound);
            self.beside.push(Beside { within: within.to_vec(), name, said, of_counts, lower_bound });
        }
    }

    /// Notes the text of a list.
    pub(super) fn list(&mut self, list: usize, raw: Raw<'t>) {
        self.lists[list] = Some(raw);
    }

    /// Returns what was said of the counts.
    pub(super) fn estimates(self, places: &CountPlaces) -> Estimates {
        let Self { beside, lists } = self;
        // Of several members, the first by its name is shown.
        let first = |said_of: &dyn Fn(&Beside) -> bool| {
            let members = beside.iter().filter(|member| said_of(member));
            members.min_by(|one, other| one.name.cmp(&other.name)).map(|member| member.said.clone())
        };
        let beside = |place: &Pointer| {
            let (_, parent) = place.steps().split_last()?;
            first(&|member| member.of_counts && member.within == parent)
        };
        let doubts = |member: &Beside| places.is_around_total(member) && !places.is_lower_bound(member);
        let of_list = |(place, raw): (&ListPlace, Option<Raw<'_>>)| {
            let raw = raw.filter(|raw| matches!(raw.first(), b'[' | b'{'))?;
            let values = place.values(raw).unwrap_or_default();
            let mut within = values.iter().flat_map(members);
            beside(&place.at).or_else(|| Some(described(within.find(said_of_counts)?)))
        };
        Estimates {
            total: places.total.as_ref().and_then(|_| first(&doubts)),
            lists: places.lists.iter().zip(lists).map(of_list).collect(),
        }
    }
}

/// True for a member that calls counts estimates.
fn said_of_counts((name, value): &(&String, &Value)) -> bool {
    let words = words(name);
    is_of_counts(&words) && is_estimate(&words, value)
}

/// True for a member that calls the counts beside it estimates, by the words of its name.
pub(super) fn calls_estimate(words: &[String], value: Raw<'_>) -> bool {
    // An object, such as the one with the mentions, is none, and takes time to parse.
    let simple = !matches!(value.first(), b'{' | b'[');
    simple && is_of_counts(words) && serde_json::from_str(value.text).is_ok_and(|value| is_estimate(words, &value))
}

fn described((name, value): (&String, &Value)) -> String {
    format!("`{name}` is {value}")
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// True for a name that is said of counts, and of nothing else.
fn is_of_counts(words: &[String]) -> bool {
    const COUNTS: [&str; 25] = [
        "accuracy",
        "are",
        "approx",
        "approximate",
        "bound",
        "count",
        "counts",
        "doc",
        "error",
        "estimate",
        "estimated",
        "estimates",
        "exact",
        "is",
        "list",
        "lists",
        "margin",
        "max",
        "mentions",
        "relation",
        "sampled",
        "total",
        "totals",
        "type",
        "upper",
    ];
    words.iter().all(|word| COUNTS.contains(&word.as_str()))
}

fn is_estimate(words: &[String], value: &Value) -> bool {
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    match value {
        Value::Bool(true) => has(&["approx", "approximate", "estimate", "estimated", "estimates", "sampled"]),
        Value::Bool(false) => has(&["exact"]),
        Value::Number(number) => {
            has(&["error"]) && has(&["bound", "margin", "upper", "max"]) && number.as_f64() != Some(0.0)
        }
        Value::String(text) => {
            has(&["accuracy", "relation", "type", "kind", "quality"])
                && Relation::of(Some(text.as_str().into())) == Relation::About
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;
    use crate::decode::decode_tables;

    /// Reads a body for the counts at these places alone.
    fn read(body: &str, total: Option<Pointer>, lists: Vec<ListPlace>) -> Estimates {
        decode_tables(&[], &CountPlaces::new(total, lists), body.as_bytes()).1
    }

    #[test]
    fn a_list_may_call_itself_an_estimate() {
        let of = |entry: &str, beside: &str| {
            let body = format!(r#"{{"overview":{{"languages":[{{"name":"de","count":7{entry}}}]{beside}}}}}"#);
            let place = ListPlace { at: Pointer::of(["overview", "languages"]), inside: None, only: None };
            read(&body, None, vec![place]).lists.remove(0)
        };
        let cases = [
            (r#","estimated":true"#, ""),
            (r#","docCountErrorUpperBound":12"#, ""),
            (r#","countType":"approximate""#, ""),
            (r#","exact":false"#, ""),
            ("", r#","doc_count_error_upper_bound":3"#),
            ("", r#","countsAreEstimates":true"#),
        ];
        each(cases, |(entry, beside)| {
            assert!(of(entry, beside).is_some(), "{entry} {beside}");
        });
        for (entry, beside) in [
            ("", ""),
            (r#","docCountErrorUpperBound":0"#, r#","estimatedReach":true"#),
            (r#","estimated":false,"exact":true"#, r#","reachEstimated":true"#),
            (r#","type":"social","reachEstimated":true"#, r#","sampleSize":1000"#),
        ] {
            assert_eq!(of(entry, beside), None, "{entry} {beside}");
        }
    }

    /// The list of a field is one of several, each in a record with the name of its field.
    #[test]
    fn one_of_several_lists_may_call_itself_an_estimate() {
        let of = |entry: &str, source: &str, beside: &str| {
            let body = format!(
                r#"{{"facets":[{{"field":"lang","held":{{"values":[{{"value":"de","count":7{entry}}}]}}}},
                    {{"field":"site"{source},"held":{{"values":[{{"value":"x.com","count":7{source}}}]{source}}}}}]{beside}}}"#
            );
            let only = Some(Only { at: Pointer::of(["field"]), is: "lang".to_owned() });
            let place = ListPlace { at: Pointer::of(["facets"]), inside: Some(Pointer::of(["held", "values"])), only };
            read(&body, None, vec![place]).lists.remove(0)
        };
        let flag = r#","estimated":true"#;
        let said = Some("`estimated` is true".to_owned());
        assert_eq!(of(flag, "", ""), said, "in an entry");
        assert_eq!(of("", "", flag), said, "beside all lists");
        assert_eq!(of("", "", ""), None);
        assert_eq!(of("", flag, ""), None, "of another field");
        let body = format!(r#"{{"facets":[{{"values":[{{"count":7}}]{flag}}}]}}"#);
        let place = ListPlace { at: Pointer::of(["facets"]), inside: Some(Pointer::of(["values"])), only: None };
        assert_eq!(read(&body, None, vec![place]).lists, [said], "beside the list, in the record");
    }

    #[test]
    fn a_total_may_call_itself_an_estimate() {
        let of = |beside: &str| {
            let body = format!(r#"{{"mentions":{{"total":7,"items":[]{beside}}}}}"#);
            read(&body, Some(Pointer::of(["mentions", "total"])), Vec::new()).total
        };
        for beside in [r#","totalIsEstimate":true"#, r#","isExact":false"#, r#","totalType":"estimate""#] {
            assert!(of(beside).is_some(), "{beside}");
        }
        for beside in ["", r#","totalIsEstimate":false"#, r#","totalRelation":"eq""#, r#","reachIsEstimate":true"#] {
            assert_eq!(of(beside), None, "{beside}");
        }
    }
}
