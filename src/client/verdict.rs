//! Verdicts on scans, counts and lists in short fixed words, as `EXPLAIN ANALYZE` and `system.requests` show them.
//!
//! | verdict | meaning |
//! | --- | --- |
//! | `complete: 450 of 450 (total, overview)` | all mentions were received; the numbers in parentheses confirm it |
//! | `limited: 90 of 450` | as many as the query asked for |
//! | `repaired: 1 further pass; 450 of 450 (total)` | complete after the repairs that are named |
//! | `incomplete: …` | mentions are missing, for the reason that follows |
//! | `counted: 450 (total, timeline)` | the overview's count is used instead of the mentions; the numbers in parentheses confirm it |
//! | `doubted: …` | the overview's count is not used, for the reason that follows |

use std::fmt;

use crate::request::Beside;

/// Verdicts that are shown one by one; of more, the kinds are counted.
const SHOWN: usize = 3;

/// Numbers that the mentions of a scan were compared with.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Claims {
    pub(super) total: Option<u64>,
    pub(super) beside: Beside,
    /// Set if the opposite sort order begins where the mentions end.
    pub(super) opposite: bool,
}

impl Claims {
    /// Describes what confirms that this many mentions are all: numbers, or else the links between pages and the end that they
    /// show.
    pub(super) fn confirm(self, received: u64) -> String {
        let mut by = self.beside.equal_to(received);
        if self.total == Some(received) {
            by.insert(0, "total");
        }
        if self.opposite {
            by.push("opposite order");
        }
        if by.is_empty() {
            by.push("links");
        }
        format!("{}{} ({})", received, self.of(), by.join(", "))
    }

    /// The total, after a number of mentions.
    pub(super) fn of(self) -> String {
        self.total.map_or_else(String::new, |total| format!(" of {total}"))
    }
}

/// Verdict on a count of the overview, with the names of the numbers that confirm it.
pub(crate) fn counted(count: i64, by: &[&'static str]) -> String {
    format!("counted: {count} ({})", by.join(", "))
}

/// Verdict on a count of the overview that is not used.
pub(crate) fn doubted(reason: &str) -> String {
    format!("doubted: {reason}")
}

/// Verdicts of a scan, in the order in which they were reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdicts(Vec<String>);

impl Verdicts {
    /// Adds a verdict.
    pub(crate) fn add(&mut self, verdict: String) {
        self.0.push(verdict);
    }

    /// Adds those of another scan.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Number of verdicts.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        if self.0.len() <= SHOWN {
            return f.write_str(&self.0.join("; "));
        }
        let mut kinds: Vec<(&str, usize)> = Vec::new();
        for verdict in &self.0 {
            let kind = verdict.split(':').next().unwrap_or_default();
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((kind, 1)),
            }
        }
        let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        f.write_str(&kinds.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_names_what_confirms_it() {
        let beside = Beside { overview: Some(450), timeline: Some(450), listed: Some(440), lists: None };
        let claims = Claims { total: Some(450), beside, opposite: false };
        assert_eq!(claims.confirm(450), "450 of 450 (total, overview, timeline)");
        assert_eq!(Claims { total: Some(449), ..claims }.confirm(450), "450 of 449 (overview, timeline)");
        assert_eq!(Claims::default().confirm(7), "7 (links)");
        assert_eq!(Claims { opposite: true, ..Claims::default() }.confirm(500), "500 (opposite order)");
    }

    #[test]
    fn few_verdicts_are_shown_and_many_are_counted() {
        let mut verdicts = Verdicts::default();
        assert_eq!(verdicts.to_string(), "none");
        verdicts.add("doubted: x".to_owned());
        verdicts.add("complete: 3 of 3 (total)".to_owned());
        assert_eq!(verdicts.to_string(), "doubted: x; complete: 3 of 3 (total)");
        verdicts.extend(verdicts.clone());
        assert_eq!(verdicts.to_string(), "2 doubted, 2 complete");
    }
}
