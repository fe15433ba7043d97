//! Spelling of the values that the lists of an overview count. A list may have `EN` for mentions that are written `en`, names for
//! codes, or an entry for all other values. Groups of a count would then not be those of the mentions.
//!
//! ```text
//! values of mentions in the response, or of earlier ones ─▶ a value of the list is among them      ─▶ right
//!                                                       ├─ it is written like those that are    ─▶ right
//!                                                       └─ anything else                        ─▶ the mentions are read
//! no mentions come with the overview ─▶ one page of them, once
//! ```

use std::collections::{BTreeSet, HashMap};

use arrow::array::AsArray;

use super::answer::{Answer, filtered_list};
use super::stand_ins::sum;
use super::stream::Driver;
use crate::decode::Decoded;
use crate::error::Result;
use crate::profile::CountList;
use crate::pushdown::{EDGE_PAGE, Summary, SummaryRows};
use crate::request::RequestPlan;

/// Entries of lists that stand for mentions without a value, or for those with any other.
const PLACEHOLDERS: [&str; 14] = [
    "-",
    "(none)",
    "(not set)",
    "missing",
    "n/a",
    "nil",
    "none",
    "not set",
    "null",
    "other",
    "others",
    "rest",
    "undefined",
    "unknown",
];

impl Driver {
    /// Requests a page of mentions if none come with the overview, and none that came before show how they write the values of the
    /// lists that a count uses.
    pub(super) async fn see_spelling(&self, summary: &Summary, plan: &RequestPlan, answer: &Answer) -> Result<()> {
        let total = answer.total()?.filter(|total| *total > 0);
        let (Some(total), true) = (total, answer.is_exact()? && !summary.approximate) else { return Ok(()) };
        if self.with_mentions(&answer.request).is_some() {
            return Ok(());
        }
        let profile = self.config.connection.profile();
        let counting = match &summary.rows {
            SummaryRows::List(list) => Some(list),
            SummaryRows::Total | SummaryRows::Days(_) | SummaryRows::Firsts(_) => None,
        };
        let filtered = answer.request.plan.filters.iter().filter_map(|term| filtered_list(profile, term));
        let (mut columns, mut unproven) = (Vec::new(), false);
        for list in counting.into_iter().chain(filtered) {
            // A response without the list is read as such where the list is used.
            let Ok((mut names, numbers)) = answer.list(list) else { continue };
            self.without_null_words(list, &mut names);
            // Mentions are read if the list does not count all of them.
            let counts_all = list.whole || sum(&numbers) == Some(total);
            unproven |= counts_all && self.unproven_value(list, &names, &numbers, None).is_some();
            columns.push(&list.column);
        }
        let pages = plan.pages.or(self.config.plan.template.pages).filter(|_| unproven);
        let Some(pages) = pages else { return Ok(()) };
        // A few show it, too, if each record is paid for.
        let size = profile.budget.cost_per_record.map_or(pages.size, |_| pages.size.min(EDGE_PAGE));
        let page = self.filtered(plan, pages, plan.filters.clone(), size).await?;
        for column in columns {
            self.config.connection.note_values(column, values_of(&page, column));
        }
        Ok(())
    }

    /// Replaces the names in a list that mean that mentions have no value, as in the mentions themselves.
    pub(super) fn without_null_words(&self, list: &CountList, names: &mut [Option<String>]) {
        let column = self.config.spec.column(&list.column);
        let nulls: &[String] = column.map_or(&[][..], |column| &column.nulls[..]);
        let is_null = |name: &String| Some(name) == list.missing.as_ref() || nulls.contains(name);
        names.iter_mut().filter(|name| name.as_ref().is_some_and(is_null)).for_each(|name| *name = None);
    }

    /// A value of a list of which no mention shows that it is written in this way: neither one on the page nor an earlier one.
    pub(super) fn unproven_value(
        &self,
        list: &CountList,
        names: &[Option<String>],
        numbers: &[i64],
        page: Option<&Decoded>,
    ) -> Option<String> {
        let counted = names.iter().zip(numbers).filter(|(_, number)| **number > 0);
        let counted: Vec<&str> = counted.filter_map(|(name, _)| name.as_deref()).collect();
        let mut seen = self.config.connection.seen_values(&list.column);
        seen.extend(page.into_iter().flat_map(|page| values_of(page, &list.column)));
        unproven(&counted, &seen).map(str::to_owned)
    }
}

/// The values of a column of texts on a page.
fn values_of(page: &Decoded, column: &str) -> Vec<String> {
    let values = page.batch.column_by_name(column).and_then(|values| values.as_string_opt::<i32>());
    values.into_iter().flatten().flatten().map(str::to_owned).collect()
}

/// Letters of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Letters {
    /// None that have a case.
    None,
    Lower,
    Upper,
    Both,
}

impl Letters {
    fn of(text: &str) -> Self {
        match (text.chars().any(char::is_lowercase), text.chars().any(char::is_uppercase)) {
            (false, false) => Self::None,
            (true, false) => Self::Lower,
            (false, true) => Self::Upper,
            (true, true) => Self::Both,
        }
    }
}

/// The first of the counted values that is not written like those that mentions have.
fn unproven<'v>(counted: &[&'v str], seen: &BTreeSet<String>) -> Option<&'v str> {
    let (known, others): (Vec<&str>, Vec<&str>) = counted.iter().copied().partition(|value| seen.contains(*value));
    if known.is_empty() {
        return others.first().copied();
    }
    let letters: BTreeSet<Letters> = known.iter().map(|value| Letters::of(value)).collect();
    let mut alike: HashMap<String, usize> = HashMap::new();
    for value in counted {
        *alike.entry(value.trim().to_lowercase()).or_default() += 1;
    }
    others.into_iter().find(|value| {
        let (own, folded) = (Letters::of(value), value.trim().to_lowercase());
        let usual = own == Letters::None || letters.contains(&own) || letters.len() > 1;
        let plain = !folded.is_empty() && value.trim() == *value && !PLACEHOLDERS.contains(&folded.as_str());
        !(usual && plain && alike.get(&folded) == Some(&1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn a_value_of_a_list_is_proven_by_mentions_that_are_written_like_it() {
        let cases: [(&[&str], &[&str], Option<&str>); 13] = [
            (&["en", "de"], &["en", "de"], None),
            (&["en", "de", "pt"], &["en", "de"], None),
            (&["EN", "DE"], &["en", "de"], Some("EN")),
            (&["English", "German"], &["en"], Some("English")),
            (&["en", "PT"], &["en"], Some("PT")),
            (&["en", "pt "], &["en"], Some("pt ")),
            (&["en", ""], &["en"], Some("")),
            (&["en", "unknown"], &["en"], Some("unknown")),
            (&["x.com", "Other"], &["x.com", "Herald"], Some("Other")),
            (&["x.com", "Herald", "BBC"], &["x.com", "Herald"], None),
            (&["en", "de", "DE"], &["en", "de", "FR"], Some("DE")),
            (&["7", "9"], &["7"], None),
            (&[], &[], None),
        ];
        each(cases, |(counted, seen, right)| {
            let seen = seen.iter().map(|value| (*value).to_owned()).collect();
            assert_eq!(unproven(counted, &seen), right, "{counted:?}");
        });
    }
}
