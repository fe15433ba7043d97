//! The checks of a whole profile: section by section, then what concerns several of them.

use super::super::document::Profile;
use crate::error::ErrorKind;

/// A refused key: its path, the kind of the error, and what was expected.
pub(in super::super) type Refusal = (Vec<String>, ErrorKind, String);

/// Collects what is refused.
#[derive(Debug, Default)]
pub(in super::super) struct Checks(Vec<Refusal>);

impl Checks {
    /// All checks of a profile, those of contradictions before those of what is not supported yet.
    pub(in super::super) fn of(profile: &Profile) -> Self {
        let mut checks = Self::default();
        profile.auth.check(&mut checks);
        profile.mentions.check(&mut checks);
        profile.offset.check(&mut checks);
        profile.page.check(&mut checks);
        profile.depth.check(profile.page.max, &mut checks);
        profile.window.check(&mut checks);
        profile.timezone.check(&mut checks);
        profile.throttle.check(&mut checks);
        profile.error.check(&mut checks);
        profile.budget.check(profile.page.max, &mut checks);
        profile.total.check(&mut checks);
        profile.tables.check(&mut checks);
        profile.sort.check(&profile.tables.mentions, &mut checks);
        profile.filters.check(&profile.tables.mentions, &mut checks);
        if let Some(counts) = &profile.counts {
            counts.check(&profile.tables, &mut checks);
        }
        profile.tables.check_supported(&mut checks);
        checks
    }

    /// Refuses the value of a key, such as `page.max`, unless the condition holds.
    pub(in super::super) fn expect(&mut self, holds: bool, key: &str, message: impl Into<String>) {
        self.refuse_unless(holds, key, ErrorKind::Profile, message);
    }

    /// Refuses what can be written and has no effect yet.
    pub(super) fn not_yet(&mut self, said: bool, key: &str, what: &str) {
        self.refuse_unless(!said, key, ErrorKind::Unsupported, format!("{what} is not supported yet"));
    }

    fn refuse_unless(&mut self, holds: bool, key: &str, kind: ErrorKind, message: impl Into<String>) {
        if !holds {
            self.0.push((key.split('.').map(str::to_owned).collect(), kind, message.into()));
        }
    }

    /// The first refusal.
    pub(in super::super) fn first(self) -> Option<Refusal> {
        self.0.into_iter().next()
    }
}
