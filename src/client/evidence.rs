//! Verdicts on the claims of a service. Every response is evidence, and no claim decides about rows on its own.
//!
//! | claim | confirmed by | contradicted by | what happens then |
//! | --- | --- | --- | --- |
//! | *all rows were returned*: they end at the total | overview or timeline of the same response | one of them counts more | the rest is requested as a window of its own; if that is not possible, the error names both numbers |
//! | *there are more*: the total exceeds what came | rows behind the last one | overview or timeline end with the last row | refused after one pass, with both numbers |
//! | *there are more*, and there is no other count | rows behind the last one | nothing new arrives | the window is cut; three passes at most ([`allowance`]), then an error with both numbers |
//! | *all rows were returned*, without a total | another count, the far side of a cut | the last row is a round number ([`is_round`]) | the first page of the opposite order has to begin with rows that are known; without that order, the overview has to count as many |
//! | *all rows were returned* | the page behind the last one is empty | a member of the response says that more follow, on the empty page as well | refused, naming the member |
//! | *the parts of a window are complete* | the total of the window before it was cut | their sum differs from it | the total is requested once more: if it is the same, the error names both numbers |
//! | *all rows were returned*: as many as the total | overview or timeline count as many or fewer | both count the same number, and it is larger | refused, with both numbers |
//! | *the far side of a cut has all* its mentions | it has those at its edge again | it lacks one, and another count contradicts the total | as above |
//! | *this is the window that was requested* | the echo covers it ([`Echo`](crate::request::Echo)) | it ends before, starts after, or lies outside | refused; a store keeps its days |
//! | *these are the mentions of the window* | the instant up to which the data is complete ([`Echo`](crate::request::Echo)) | it is earlier than the end of the window | refused, with both instants; a store keeps what it read later |
//! | *windows are half-open*, [from, to) | no mention of the instant at which they end | there is one, and none of the first instant | the first instant is requested again: a mention of it is an error |
//! | *the first rows* of a sort order were returned | each page begins at the row that its offset counts | rows are missing between them, although the total is unchanged | refused |
//! | *the first rows* of a sort order were returned | overview and timeline count no more than the total, on days of the window | both count more, or the timeline has a day outside of the window | refused |
//! | *the first rows* by time were returned | the first one is of the day with which the timeline begins or ends | it is of another day | refused |
//! | *this many match*: a count of the overview | total of the mention in the same response | they differ | the mentions are read |
//! | *this many match* in this window | the days of the timeline lie in it | one with mentions does not | the mentions are read |
//! | *this many match* a filter | a list whose requested values add up to the count, or all rows | the list has other values, or a smaller sum | refused if it has other values, else the mentions are read |
//! | *this is the largest value*, and it is NULL | there are no other mentions; the opposite order begins with NULL as well | it begins with a value | refused; with NULL at both ends, all mentions are read |
//! | *a page has at most this many rows* | no earlier page had more | one had | the number is the depth of paging, not the size of a page |
//!
//! Pure. Requests are sent by [`pages`](super::pages) and by the operator.

use crate::request::Beside;

/// Passes over the mentions of a scan before it is incomplete.
pub(super) const PASSES: u32 = 3;
/// Requests beyond them, for pages that came short once, and for those that show an end.
const SLACK: u64 = 8;

impl Beside {
    fn counts(self) -> impl Iterator<Item = (u64, &'static str)> {
        let named = [
            (self.overview, "overview"),
            (self.timeline, "timeline"),
            (self.lists, "sum of two lists"),
            (self.listed, "list"),
        ];
        named.into_iter().filter_map(|(count, name)| Some((count?, name)))
    }

    /// The exact count, of the overview or else of the timeline, if it exceeds a number of mentions, and its name.
    pub(crate) fn exact_above(self, number: u64) -> Option<(u64, &'static str)> {
        let exact = self.overview.map(|count| (count, "overview")).or(self.timeline.map(|sum| (sum, "timeline")));
        exact.filter(|(count, _)| *count > number)
    }

    /// The count that exceeds a total the most, and its name. A list counts a mention twice if it has several values, so it
    /// contradicts only a total that may be a limit.
    pub(crate) fn above(self, total: u64) -> Option<(u64, &'static str)> {
        self.counts().filter(|(count, name)| *count > total && (*name != "list" || is_round(total))).max()
    }

    /// The count of the overview, if the timeline has the same one and it exceeds a number of mentions: two counts against one.
    pub(super) fn both_above(self, number: u64) -> Option<u64> {
        self.overview.filter(|count| *count > number && self.timeline == Some(*count))
    }

    /// True if an exact count differs from a total, or a list exceeds it.
    pub(crate) fn contradicts(self, total: u64) -> bool {
        self.above(total).is_some() || [self.overview, self.timeline].into_iter().flatten().any(|count| count != total)
    }

    /// The largest of a total and the counts beside it.
    pub(crate) fn most(self, total: u64) -> u64 {
        self.above(total).map_or(total, |(count, _)| count)
    }

    /// The names of the counts of this number.
    pub(crate) fn equal_to(self, number: u64) -> Vec<&'static str> {
        self.counts().filter(|(count, name)| *count == number && !name.contains("list")).map(|(_, name)| name).collect()
    }

    /// The name of a count that ends with this row, if none goes beyond it.
    pub(crate) fn ends_at(self, row: u64) -> Option<&'static str> {
        let exact = self.counts().find(|(count, name)| *count == row && !name.contains("list"));
        exact.filter(|_| self.above(row).is_none()).map(|(_, name)| name)
    }
}

/// Requests that a scan may spend, given the distinct mentions that it has received: three passes over as many of an honest
/// service, in pages of this size, and those that show the ends of so many windows.
pub(crate) fn allowance(mentions: u64, page: u64, ends: u64) -> u64 {
    // Pages share a row.
    let advance = if page > 4 { page - 1 } else { page.max(1) };
    mentions.div_ceil(advance).max(1).saturating_mul(u64::from(PASSES)).saturating_add(SLACK * ends)
}

/// True for a number of rows at which services stop paging.
pub(crate) fn is_round(rows: u64) -> bool {
    rows >= 100 && (rows.is_multiple_of(100) || rows.is_power_of_two())
}

/// Advice for counts of one response that differ.
pub(crate) const WHICH: &str = "set trust = \"advisory\" in the profile's [total] or [counts], whichever is wrong";

/// Advice for a service that needs more requests than three passes take.
pub(crate) const LEFT_OUT: &str = "paging may end early, pages may lack mentions, or the number may count other mentions: \
                                   narrow the range of published_at, or check the profile's [depth], [page] and [total]";

/// Advice for pages that name the next one, if nothing else shows that they are complete.
pub(crate) const CURSORS: &str = "if a cursor is a place in the order of mentions, set stable = true in [offset] of the profile; if \
                                  windows exclude their end, set end = \"exclusive\" in [window]; narrow the window";

/// Advice for parts of a window with fewer mentions than the window.
pub(crate) const PARTS: &str = "windows may exclude their first or last instant: check [window] in the profile; if totals are rounded \
                                or estimates, set trust = \"advisory\" in [total] and [counts]";

/// Advice for a number of mentions that is close to a round total.
pub(crate) const ROUNDED: &str = "if the service rounds or estimates totals, set trust = \"advisory\" in [total] and [counts] of the \
                                  profile; otherwise pages lack mentions, or rows with equal sort keys have no stable order: narrow \
                                  the window";

/// Advice for mentions that come with several ids.
pub(crate) const IDS: &str = "the service writes the ids of mentions in several ways, or has another order of mentions with equal \
                              times in each response, so that some do not come again: set `id` of [tables.mentions] in the \
                              profile to a column whose values do not change, such as the url, or narrow the range of published_at";

/// Advice for an end that is not proven.
pub(crate) const NARROWER: &str = "narrow the range of published_at, or set [depth] in the profile";

/// Advice for a response that says that more mentions follow, although none do.
pub(crate) const FOLLOWS: &str = "the service limits what it returns: narrow the range of published_at; if the member means \
                                  something else, declare it in [complete] of the profile";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_beside_a_total_contradict_it() {
        let beside = Beside { overview: Some(200), timeline: Some(450), listed: Some(440), lists: None };
        assert_eq!((beside.above(200), beside.most(200)), (Some((450, "timeline")), 450));
        assert_eq!((beside.above(450), beside.most(500)), (None, 500));
        assert_eq!((beside.ends_at(450), beside.ends_at(200), beside.ends_at(440)), (Some("timeline"), None, None));
        assert_eq!(Beside::default().above(0), None);
    }

    #[test]
    fn three_passes_are_allowed() {
        assert_eq!(allowance(0, 100, 1), 11);
        assert_eq!(allowance(950, 100, 1), 38);
        assert_eq!(allowance(450, 100, 1), 23);
        assert_eq!(allowance(3, 1, 1), 17);
        assert_eq!(allowance(162, 100, 2), 22);
    }

    #[test]
    fn services_stop_at_round_rows() {
        assert!([100, 500, 1_000, 1_024, 10_000].into_iter().all(is_round));
        assert!([0, 64, 99, 973, 1_605].into_iter().all(|rows| !is_round(rows)));
    }
}
