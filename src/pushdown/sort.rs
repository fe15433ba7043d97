//! Sort orders of SQL as values of the service's sort parameter.

use arrow::compute::SortOptions;

use crate::profile::{Direction, Nulls, Profile, SortValue};

/// A sort order that the service supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceOrder {
    /// Value of the sort parameter.
    pub value: String,
    /// The column of `mentions` that it sorts by.
    pub column: String,
    /// Direction and position of NULLs, as declared by the profile.
    pub options: SortOptions,
}

/// Returns the service's sort order by this column of `mentions`; `None` if the profile declares none. The position of
/// NULLs must be the one that SQL asks for, unless the column has no NULLs, and texts must have a declared collation.
pub(crate) fn service_order(profile: &Profile, column: &str, options: SortOptions) -> Option<ServiceOrder> {
    let mentions = &profile.tables.mentions;
    let nullable = mentions.column(column)?.nullable;
    profile.sort.values.iter().filter(|sort| sort.is_ours(mentions)).find_map(|sort| {
        let SortValue { value, column: by, direction, nulls, collation: _ } = sort;
        let promised = SortOptions { descending: *direction == Direction::Desc, nulls_first: *nulls == Nulls::First };
        let same =
            promised.descending == options.descending && (!nullable || promised.nulls_first == options.nulls_first);
        (by == column && same).then(|| ServiceOrder { value: value.clone(), column: by.clone(), options: promised })
    })
}

/// Returns the service's sort order by the same column in the other direction, with NULLs at the same end.
pub(crate) fn opposite_order(profile: &Profile, order: &ServiceOrder) -> Option<ServiceOrder> {
    let options = SortOptions { descending: !order.options.descending, ..order.options };
    service_order(profile, &order.column, options)
}

/// Returns the sort order that the service knows by this value.
pub(crate) fn order_named(profile: &Profile, value: &str) -> Option<ServiceOrder> {
    let known = profile.sort.values.iter().find(|known| known.value == value)?;
    let options =
        SortOptions { descending: known.direction == Direction::Desc, nulls_first: known.nulls == Nulls::First };
    Some(ServiceOrder { value: known.value.clone(), column: known.column.clone(), options })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_the_services_only_if_nulls_come_alike() {
        let profile = Profile::v4();
        let order = |column, descending, nulls_first| {
            service_order(&profile, column, SortOptions { descending, nulls_first }).map(|order| order.value)
        };
        assert_eq!(order("reach", true, false).as_deref(), Some("reach_desc"));
        assert_eq!(order("reach", true, true), None);
        // `published_at` has no NULLs.
        assert_eq!(order("published_at", true, true).as_deref(), Some("date_desc"));
        assert_eq!(order("text", false, false), None);
    }

    #[test]
    fn an_order_of_texts_is_ours_only_with_a_declared_collation() {
        let order = |value: &str| {
            let document = Profile::builtin_document("v4").expect("a built-in profile");
            let (first, value) = (
                "values = [\n    { value = \"date_desc\"",
                format!("values = [\n{value},\n    {{ value = \"date_desc\""),
            );
            let profile = Profile::parse(&document.replacen(first, &value, 1), "sorted")?;
            let options = SortOptions { descending: false, nulls_first: false };
            let known = ["title", "id", "tags"].iter().find_map(|column| service_order(&profile, column, options));
            Ok::<_, crate::error::Error>(known.map(|order| order.value))
        };
        let by = |column: &str, more: &str| {
            format!("{{ value = \"x\", column = \"{column}\", direction = \"asc\", nulls = \"last\"{more} }}")
        };
        for column in ["title", "id"] {
            assert_eq!(order(&by(column, "")).expect("a profile"), None, "{column}");
            let declared = order(&by(column, ", collation = \"bytes\"")).expect("a profile");
            assert_eq!(declared.as_deref(), Some("x"), "{column}");
        }
        assert_eq!(order(&by("tags", "")).expect("a profile"), None);
        let refused = order(&by("reach", ", collation = \"bytes\"")).expect_err("a number").to_string();
        assert!(refused.contains("`collation` only with a utf8 column"), "{refused}");
    }
}
