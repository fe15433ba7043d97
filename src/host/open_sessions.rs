//! Open sessions of a server, and the limits on their number, which nothing else decides.
//!
//! ```text
//! newcomer ─ below the limits ────────────────────────────────▶ open
//!         └ at one of them ─ a session that is idle is evicted ─▶ open
//!                          └ none is ───────────────────────────▶ refused
//! ```
//!
//! A login asks for room before it waits and before its session is made, since both take what others need. The session is counted when
//! it is added: others may have been added meanwhile.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::failure::{Code, Failure};
use super::peer::Peer;
use super::sessions::Session;
use super::settings::Limits;

/// Idle time below which a verified session is not evicted for another.
const RECENT: Duration = Duration::from_secs(60);

/// Key of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Found {
    /// Digest of the session token.
    Token([u8; 32]),
    /// Principal name and connection.
    Peer(Arc<str>, Option<Peer>),
}

/// See the module's documentation.
pub(super) struct OpenSessions {
    sessions: HashMap<Found, Arc<Session>>,
    /// Most sessions of a server.
    most: usize,
    /// Most sessions of a principal; `None` if all sessions have the same one.
    of_principal: Option<usize>,
    /// Time after which an unused session ends.
    idle: Duration,
}

impl OpenSessions {
    /// No session. `anonymous`: set if all sessions will have the same principal.
    pub(super) fn new(limits: &Limits, anonymous: bool) -> Self {
        let of_principal = (!anonymous).then_some(limits.sessions_per_principal);
        Self { sessions: HashMap::new(), most: limits.sessions, of_principal, idle: limits.session_idle() }
    }

    /// Checks that there is room for a session of a newcomer, if need be by evicting others.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there is none.
    pub(super) fn check_room(&self, newcomer: &str) -> Result<(), Failure> {
        self.evicted(newcomer).map(drop)
    }

    /// Adds a session, for which others may be evicted. Returns the one that is open: one with the same key may have been added since
    /// it was looked for.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there is no room.
    pub(super) fn add(&mut self, found: Found, session: Arc<Session>) -> Result<Arc<Session>, Failure> {
        for evicted in self.evicted(&session.principal.name)? {
            self.sessions.remove(&evicted);
        }
        Ok(Arc::clone(self.sessions.entry(found).or_insert(session)))
    }

    /// Uses an open session, unless it has expired.
    pub(super) fn used(&mut self, found: &Found) -> Option<Arc<Session>> {
        let session = self.sessions.get(found)?;
        if self.has_expired(session) {
            self.sessions.remove(found);
            return None;
        }
        session.touch();
        Some(Arc::clone(session))
    }

    /// Closes the sessions that are not to be kept.
    pub(super) fn retain(&mut self, mut keeps: impl FnMut(&Found, &Arc<Session>) -> bool) {
        self.sessions.retain(|found, session| keeps(found, session));
    }

    /// Closes sessions that have been idle for too long. Returns the remaining ones.
    pub(super) fn sweep(&mut self) -> Vec<Arc<Session>> {
        let idle = self.idle;
        self.sessions.retain(|_, session| !is_idle_for(session, idle));
        self.sessions.values().cloned().collect()
    }

    /// Number of open sessions.
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    fn has_expired(&self, session: &Session) -> bool {
        is_idle_for(session, self.idle)
    }

    /// Sessions that make room for one of a newcomer: at the limit of a principal, and at that of all sessions.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there are none.
    fn evicted(&self, newcomer: &str) -> Result<Vec<Found>, Failure> {
        let mut evicted = Vec::new();
        if let Some(most) = self.of_principal {
            evicted.extend(self.evicted_at(most, newcomer, Some(newcomer))?);
        }
        // One less is open then.
        let most = self.most + evicted.len();
        evicted.extend(self.evicted_at(most, newcomer, None)?);
        Ok(evicted)
    }

    /// The session that is evicted at a limit of all sessions, or of those of a principal: one with unverified credentials first, then
    /// the one that was idle longest. Of those that were used a moment ago, one of the principal with the most sessions goes, if
    /// these are more than the newcomer has. `None` below the limit.
    fn evicted_at(&self, most: usize, newcomer: &str, of: Option<&str>) -> Result<Option<Found>, Failure> {
        let counted =
            || self.sessions.iter().filter(|(_, session)| of.is_none_or(|name| *session.principal.name == *name));
        if counted().count() < most {
            return Ok(None);
        }
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        self.sessions.values().for_each(|session| *numbers.entry(&session.principal.name).or_default() += 1);
        let number = |name: &str| numbers.get(name).copied().unwrap_or_default();
        let own = number(newcomer) + 1;
        let idle = counted().filter_map(|(found, session)| {
            let (unproven, time) = (!session.is_proven(), session.idle()?);
            let rested = unproven || time >= RECENT;
            let number = if rested { usize::MAX } else { number(&session.principal.name) };
            (number > own).then(|| (number, unproven, time, found.clone()))
        });
        match idle.max_by_key(|(number, unproven, time, _)| (*number, *unproven, *time)) {
            Some((.., found)) => Ok(Some(found)),
            None => {
                let whose = of.unwrap_or("the server");
                let line = format!("too many sessions: {whose} is limited to {most}; close some, or try again later");
                Err(Failure::new(Code::ResourceExhausted, line))
            }
        }
    }
}

fn is_idle_for(session: &Session, longest: Duration) -> bool {
    session.idle().is_some_and(|time| time >= longest)
}
