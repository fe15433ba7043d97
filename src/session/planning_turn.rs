//! Turns for planning. A function that parses or plans a statement takes one, so that no part of a server can forget the limit.
//!
//! Planning takes a thread, and memory for constants, which nothing reserves. Servers therefore get the turns from the share of the
//! user (`host/shares`), which has a few. A program that serves nobody has [unbounded](PlanningTurn::unbounded) ones.
//!
//! Invariant: the plans that a server makes of a user's statements have a turn of that user.

use tokio::sync::{Notify, SemaphorePermit};

/// Guard of a statement that is parsed or planned.
#[derive(Debug)]
#[must_use = "another statement may begin when it is dropped"]
pub(crate) struct PlanningTurn<'a>(Option<Bounded<'a>>);

#[derive(Debug)]
struct Bounded<'a> {
    permit: SemaphorePermit<'a>,
    /// That of a large statement.
    large: Option<SemaphorePermit<'a>>,
    ended: &'a Notify,
}

impl PlanningTurn<'static> {
    /// A turn without a limit, for statements of the program's own user: in the shell, the library and the driver.
    pub(crate) fn unbounded() -> Self {
        Self(None)
    }
}

#[cfg(feature = "host")]
impl<'a> PlanningTurn<'a> {
    /// A turn that ends when it is dropped: its permits are free then, and those who wait for one are notified. `large`: the permit
    /// of a large statement.
    pub(crate) fn bounded(permit: SemaphorePermit<'a>, large: Option<SemaphorePermit<'a>>, ended: &'a Notify) -> Self {
        Self(Some(Bounded { permit, large, ended }))
    }
}

impl Drop for PlanningTurn<'_> {
    fn drop(&mut self) {
        if let Some(Bounded { permit, large, ended }) = self.0.take() {
            drop((permit, large));
            ended.notify_waiters();
        }
    }
}
