//! Filters that a mention in the response contradicts: it has none of the requested values. So the parameter filters by something
//! else than its column, or compares differently, and mentions with a requested value may be missing.
//!
//! ```text
//! a mention of the first page contradicts a filter ─▶ the window is read without that filter, and mentions are compared here
//! one of a later page, or under a limit            ─▶ contradiction, since rows have been output, or the wrong ones were requested
//! ```
//!
//! Nothing is assumed about the mentions that a response lacks: those that it has may be more than match the filter, or others.

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;

use super::stream::Driver;
use crate::error::{Error, ErrorKind, shortened};
use crate::request::{FilterTerm, RequestPlan};

/// Filters of a request that mentions in its response contradict.
pub(super) struct Contradicted {
    /// The other filters.
    pub(super) others: Vec<FilterTerm>,
    /// The error that names a contradicted one.
    pub(super) error: Error,
}

impl Driver {
    /// The filters of a plan that a mention of a page contradicts; `None` if all mentions have requested values.
    pub(super) fn contradicted(&self, plan: &RequestPlan, page: &RecordBatch) -> Option<Contradicted> {
        let known = &self.config.connection.profile().filters.parameters;
        // Parts of a window, by the values of a list, have filters of their own.
        let of_query = &self.config.plan.template.filters;
        let (mut others, mut error) = (Vec::new(), None);
        for term in &plan.filters {
            let column =
                known.iter().find(|known| known.parameter == term.parameter).map(|known| known.column.as_str());
            let column = column.filter(|_| of_query.contains(term));
            let values = column.and_then(|name| Some((name, page.column_by_name(name)?)));
            match values.and_then(|(name, values)| Some((name, other_value(values, &term.values)?))) {
                None => others.push(term.clone()),
                Some((name, value)) => error = error.or_else(|| Some(contradicts(term, name, value.as_deref()))),
            }
        }
        let error = self.at_plan(error?, plan);
        Some(Contradicted { others, error })
    }

    /// Notes that mentions are read without a filter.
    pub(super) fn note_contradicted(&self, plan: &RequestPlan, error: &Error) {
        let note = format!("{}: reading without this filter, which takes more requests", error.message());
        self.config.connection.client().log().note(&self.query.budget, plan.aid.clone(), note);
    }
}

/// The first value of a column that is not among those requested, NULL or not; `None` if there is none, or if values of its type are
/// not requested.
fn other_value(column: &ArrayRef, requested: &[String]) -> Option<Option<String>> {
    let is_requested = |value: &str| requested.iter().any(|known| known == value);
    if let Some(texts) = column.as_string_opt::<i32>() {
        let other = texts.iter().find(|text| !text.is_some_and(is_requested));
        return other.map(|text| text.map(str::to_owned));
    }
    let numbers = column.as_primitive_opt::<Int64Type>()?;
    let mut texts = numbers.iter().map(|number| number.map(|number| number.to_string()));
    texts.find(|text| !text.as_deref().is_some_and(is_requested))
}

fn contradicts(term: &FilterTerm, column: &str, value: Option<&str>) -> Error {
    let (parameter, requested) = (&term.parameter, shortened(term.values.join("`, `")));
    let found = value
        .map_or_else(|| format!("no `{column}`"), |value| format!("the `{column}` `{}`", shortened(value.to_owned())));
    let message = format!(
        "the service returned mentions that do not match the requested filters: a mention has {found}, although `{parameter}` was \
         requested to be `{requested}`"
    );
    Error::new(ErrorKind::Contradiction, message).advice(format!(
        "mentions may be missing, as the parameter filters by something else, or compares differently: remove `{parameter}` from \
         [filters] of the profile, to compare mentions here, or set its `column` to the one that it filters by"
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringArray};

    use super::*;

    #[test]
    fn a_value_that_was_not_requested_is_found() {
        let requested = ["de".to_owned(), "7".to_owned()];
        let texts =
            |texts: Vec<Option<&str>>| other_value(&(Arc::new(StringArray::from(texts)) as ArrayRef), &requested);
        assert_eq!(texts(vec![Some("de"), Some("7")]), None);
        assert_eq!(texts(vec![Some("de"), Some("de-AT")]), Some(Some("de-AT".to_owned())));
        assert_eq!(texts(vec![None, Some("de")]), Some(None));
        assert_eq!(texts(Vec::new()), None);
        let numbers = |numbers: Vec<i64>| other_value(&(Arc::new(Int64Array::from(numbers)) as ArrayRef), &requested);
        assert_eq!((numbers(vec![7, 7]), numbers(vec![7, 8])), (None, Some(Some("8".to_owned()))));
    }
}
