//! Checks of a complete profile: each section by itself, then across sections.

use super::super::document::Profile;
use crate::error::ErrorKind;

/// A rejected key: its path, the kind of error, and the expected value.
pub(in super::super) type Refusal = (Vec<String>, ErrorKind, String);

/// Collects rejections.
#[derive(Debug, Default)]
pub(in super::super) struct Checks(Vec<Refusal>);

impl Checks {
    /// Runs all checks of a profile. Contradictions come before unsupported values.
    pub(in super::super) fn of(profile: &Profile) -> Self {
        let mut checks = Self::default();
        profile.auth.check(&mut checks);
        profile.list.check(&mut checks);
        profile.search.check(&mut checks);
        profile.mentions.check(&mut checks);
        profile.offset.check(&mut checks);
        profile.page.check(&mut checks);
        profile.depth.check(profile.page.max, &mut checks);
        profile.window.check(&mut checks);
        profile.timezone.check(&mut checks);
        profile.throttle.check(&mut checks);
        profile.error.check(&mut checks);
        profile.budget.check(profile.page.max, &mut checks);
        profile.store.check(&mut checks);
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

    /// Rejects the value of a key, such as `page.max`, unless the condition holds.
    pub(in super::super) fn expect(&mut self, holds: bool, key: &str, message: impl Into<String>) {
        self.refuse_unless(holds, key, ErrorKind::Profile, message);
    }

    /// Rejects a value that is valid but has no effect yet.
    pub(super) fn not_yet(&mut self, said: bool, key: &str, what: &str) {
        self.refuse_unless(!said, key, ErrorKind::Unsupported, format!("{what} is not supported yet"));
    }

    fn refuse_unless(&mut self, holds: bool, key: &str, kind: ErrorKind, message: impl Into<String>) {
        if !holds {
            self.0.push((key.split('.').map(str::to_owned).collect(), kind, message.into()));
        }
    }

    /// First rejection.
    pub(in super::super) fn first(self) -> Option<Refusal> {
        self.0.into_iter().next()
    }
}
