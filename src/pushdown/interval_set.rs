//! Sets of instants as disjoint ranges.

/// A half-open range [from, to) of instants in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Range {
    /// First instant; `OPEN.from`: open to the past.
    pub(super) from: i64,
    /// First instant after the range; `OPEN.to`: open to the future.
    pub(super) to: i64,
}

impl Range {
    /// All instants.
    pub(super) const OPEN: Self = Self { from: i64::MIN, to: i64::MAX };

    /// The start, unless the range is open to the past.
    pub(super) fn start(self) -> Option<i64> {
        (self.from != Self::OPEN.from).then_some(self.from)
    }

    /// The end, unless the range is open to the future.
    pub(super) fn end(self) -> Option<i64> {
        (self.to != Self::OPEN.to).then_some(self.to)
    }
}

/// A set of instants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ranges {
    /// Non-empty, disjoint and non-adjacent ranges in order of time.
    spans: Vec<Range>,
    /// Set if the set is exactly what the underlying conjuncts allow.
    pub(super) exact: bool,
}

impl Ranges {
    /// All instants.
    pub(super) fn all() -> Self {
        Self { spans: vec![Range::OPEN], exact: true }
    }

    /// Returns the union of these ranges.
    pub(super) fn of(spans: impl IntoIterator<Item = Range>, exact: bool) -> Self {
        let mut spans: Vec<Range> = spans.into_iter().filter(|span| span.from < span.to).collect();
        spans.sort_unstable();
        let mut apart: Vec<Range> = Vec::with_capacity(spans.len());
        for span in spans {
            match apart.last_mut() {
                Some(last) if span.from <= last.to => last.to = last.to.max(span.to),
                _ => apart.push(span),
            }
        }
        Self { spans: apart, exact }
    }

    /// The ranges, disjoint and in order of time.
    pub(super) fn spans(&self) -> &[Range] {
        &self.spans
    }

    /// Returns the set marked as a superset: the conjuncts exclude some of its instants.
    pub(super) fn widened(self) -> Self {
        Self { exact: false, ..self }
    }

    /// Returns the intersection.
    pub(super) fn and(&self, other: &Self) -> Self {
        let pairs = self.spans.iter().flat_map(|a| other.spans.iter().map(move |b| (a, b)));
        let common = pairs.map(|(a, b)| Range { from: a.from.max(b.from), to: a.to.min(b.to) });
        Self::of(common, self.exact && other.exact)
    }

    /// Returns the union.
    pub(super) fn or(&self, other: &Self) -> Self {
        Self::of(self.spans.iter().chain(&other.spans).copied(), self.exact && other.exact)
    }

    /// Maps each range with `widen`.
    pub(super) fn map(&self, exact: bool, widen: impl Fn(Range) -> Range) -> Self {
        Self::of(self.spans.iter().copied().map(widen), exact)
    }

    /// Reduces the set to at most `most` ranges by filling the smallest gaps.
    pub(super) fn at_most(mut self, most: usize) -> Self {
        while self.spans.len() > most.max(1) {
            let gap = |pair: &[Range]| pair[1].from.saturating_sub(pair[0].to);
            let (at, _) = self.spans.windows(2).map(gap).enumerate().min_by_key(|(_, gap)| *gap).unwrap_or((0, 0));
            let next = self.spans.remove(at + 1);
            self.spans[at].to = next.to;
            self.exact = false;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranges() -> impl Strategy<Value = Ranges> {
        let span = (0..60_i64, 0..12_i64).prop_map(|(from, length)| Range { from, to: from + length });
        let open = prop_oneof![
            Just(Range::OPEN),
            (0..60_i64).prop_map(|to| Range { to, ..Range::OPEN }),
            (0..60_i64).prop_map(|from| Range { from, ..Range::OPEN }),
        ];
        let span = prop_oneof![6 => span, 1 => open];
        prop::collection::vec(span, 0..5).prop_map(|spans| Ranges::of(spans, true))
    }

    fn has(ranges: &Ranges, at: i64) -> bool {
        ranges.spans().iter().any(|span| span.from <= at && at < span.to)
    }

    proptest! {
        #[test]
        fn sets_are_what_their_instants_are(a in ranges(), b in ranges(), at in -5..70_i64, most in 1..4_usize) {
            prop_assert_eq!(has(&a.and(&b), at), has(&a, at) && has(&b, at));
            prop_assert_eq!(has(&a.or(&b), at), has(&a, at) || has(&b, at));
            prop_assert!(a.or(&b).spans().windows(2).all(|pair| pair[0].to < pair[1].from));
            let fewer = a.clone().at_most(most);
            prop_assert!(fewer.spans().len() <= most && (!has(&a, at) || has(&fewer, at)));
            prop_assert!(!fewer.exact || fewer == a);
        }
    }
}
