//! Capabilities of a service with its probed profile, their cost, and the sections left to complete.

use std::fmt;

use super::candidates::SIZE;
use super::observations::{Findings, Form, MentionsParameter};
use super::shape::Type;

/// A capability of the probed service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ability {
    /// Name of the capability.
    pub what: &'static str,
    /// Set if the service supports it.
    pub works: bool,
    /// Details, or the fallback if it is not supported.
    pub how: String,
}

/// Derives the capabilities from the findings. If the service refuses each search of the profile, it has none that need one.
pub(super) fn abilities(found: &Findings) -> Vec<Ability> {
    const OF_SEARCHES: [&str; 4] = ["overview", "timeline", "mentions", "count(*)"];
    let refused = why_refused(found);
    let abilities = seen(found).into_iter().map(|ability| match &refused {
        Some(why) if OF_SEARCHES.contains(&ability.what) => Ability { works: false, how: why.clone(), ..ability },
        _ => ability,
    });
    abilities.collect()
}

/// The reason why the service refuses each search of the profile, if it does.
fn why_refused(found: &Findings) -> Option<String> {
    let always = found.asked == Some(MentionsParameter::Always);
    match found.ends.as_slice() {
        [] if found.size_is_refused && always => {
            let name = found.parameter(SIZE);
            Some(format!("each search is sent with {name}, which the service refuses; set [page]"))
        }
        [] => None,
        _ if found.window.absolute.is_some() => None,
        ends => Some(format!("each search needs {}, and no window is known; set [window]", ends.join(" and "))),
    }
}

/// Capabilities that responses showed.
fn seen(found: &Findings) -> Vec<Ability> {
    let ability = |what, works, how: String| Ability { what, works, how };
    let listed = found.lists.len();
    let page = found.page.map_or(10, |page| page.max);
    let first_only = found.has_first_page_only();
    let mentions = match &found.asked {
        Some(_) if first_only => format!("the first {page} of a window only; set [offset]"),
        Some(MentionsParameter::Flag(name, value)) => format!("with {name}={value}, up to {page} per request"),
        Some(_) => format!("up to {page} per request"),
        None => "not found; set [mentions] and [tables.mentions]".to_owned(),
    };
    let orders: Vec<String> = found
        .usable_sorts()
        .map(|sort| format!("{} {}", sort.column, if sort.descending { "DESC" } else { "ASC" }))
        .collect();
    let filters: Vec<&str> = found.filters.iter().map(|(_, column)| column.as_str()).collect();
    let mut periods: Vec<String> =
        found.window.units.iter().map(|(_, template)| template.replace("{n}", "<n>")).collect();
    periods.extend(found.window.names.iter().map(|(name, _)| name.clone()));
    let ends = found.window.absolute.as_ref().map(|absolute| match &absolute.form {
        Form::Template(template) => template.clone(),
        Form::Separate(from, to) => format!("{from} and {to}"),
    });
    let observed = !periods.is_empty() || found.window.is_of_instants();
    periods.extend(ends);
    vec![
        ability(
            "saved searches",
            listed > 0,
            format!("{listed} list{}, one request", if listed == 1 { "" } else { "s" }),
        ),
        ability(
            "overview",
            found.counted.is_some(),
            match &found.counted {
                Some(_) => "one request per saved search".to_owned(),
                None => "no total found".to_owned(),
            },
        ),
        ability(
            "timeline",
            found.timeline.is_some(),
            match &found.timeline {
                Some(_) => "one request per saved search".to_owned(),
                None => "not found in the overview".to_owned(),
            },
        ),
        ability("mentions", found.asked.is_some(), mentions),
        ability("count(*)", found.counts, how_counted(found).to_owned()),
        ability(
            "sort orders",
            !orders.is_empty(),
            match orders.is_empty() {
                true => "sorted locally after reading all mentions".to_owned(),
                false => orders.join(", "),
            },
        ),
        ability(
            "filters",
            !filters.is_empty(),
            match filters.is_empty() {
                true => "applied locally after reading".to_owned(),
                false => format!("{}; others are applied locally", filters.join(", ")),
            },
        ),
        ability(
            "time windows",
            observed,
            match periods.is_empty() {
                true => "none found; set [window]".to_owned(),
                false => periods.join(", "),
            },
        ),
    ]
}

/// The way in which mentions are counted, in words.
fn how_counted(found: &Findings) -> &'static str {
    match (found.counts, found.has_first_page_only()) {
        (true, false) => "from the overview, one request",
        (true, true) => "from the overview, one request, unless it takes mentions",
        (false, false) => "by reading all mentions",
        (false, true) => "it takes all mentions, and only the first page of them is known",
    }
}

/// Required profile sections that could not be determined.
pub(super) fn holes(found: &Findings) -> Vec<&'static str> {
    let time = found.columns.kind("published_at");
    let holes = [
        ("tables.saved_searches", found.lists.is_empty()),
        ("search", found.aid_ignored),
        ("mentions", found.asked.is_none()),
        ("offset", found.has_first_page_only()),
        ("page", found.size_is_refused),
        ("tables.mentions", found.asked.is_some() && time != Some(Type::Timestamp)),
        ("tables.mentions", !found.unknown_times.is_empty()),
        ("window", found.window.widest.is_none() && !found.window.is_of_instants()),
        ("tables.overview", found.overview.is_none()),
    ];
    holes.into_iter().filter(|(_, lacks)| *lacks).map(|(section, _)| section).collect()
}

impl fmt::Display for Ability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<16} {:<4} {}", self.what, if self.works { "yes" } else { "no" }, self.how)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::observations::Absolute;

    #[test]
    fn searches_that_are_refused_are_no_capability() {
        let found = || Findings {
            asked: Some(MentionsParameter::Always),
            counts: true,
            counted: Some(vec!["total".to_owned()]),
            ..Findings::default()
        };
        let told = |found: &Findings| {
            let of = |what: &str| abilities(found).into_iter().find(|ability| ability.what == what);
            ["overview", "mentions", "count(*)"].map(|what| of(what).map(|ability| ability.works))
        };
        assert_eq!(told(&found()), [Some(true); 3]);
        let mut needs_ends = Findings { ends: vec!["from".to_owned(), "to".to_owned()], ..found() };
        assert_eq!(told(&needs_ends), [Some(false); 3]);
        let form = Form::Separate("from".to_owned(), "to".to_owned());
        needs_ends.window.absolute = Some(Absolute { form, instants: "date", inclusive: Some(true) });
        assert_eq!(told(&needs_ends), [Some(true); 3]);
        assert_eq!(told(&Findings { size_is_refused: true, ..found() }), [Some(false); 3]);
    }
}
