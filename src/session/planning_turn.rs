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
pub(crate) struct PlanningTurn<'a>(Option<(SemaphorePermit<'a>, &'a Notify)>);

impl PlanningTurn<'static> {
    /// A turn without a limit, for statements of the program's own user: in the shell, the library and the driver.
    pub(crate) fn unbounded() -> Self {
        Self(None)
    }
}

#[cfg(feature = "host")]
impl<'a> PlanningTurn<'a> {
    /// A turn that ends when it is dropped: its permit is free then, and those who wait for one are notified.
    pub(crate) fn bounded(permit: SemaphorePermit<'a>, ended: &'a Notify) -> Self {
        Self(Some((permit, ended)))
    }
}

impl Drop for PlanningTurn<'_> {
    fn drop(&mut self) {
        if let Some((permit, ended)) = self.0.take() {
            drop(permit);
            ended.notify_waiters();
        }
    }
}
