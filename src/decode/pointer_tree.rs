//! Pointers as a tree, so that one walk over a document meets all of them.

/// A member of a document and what is wanted at and below it.
#[derive(Debug, Clone)]
pub(super) struct Tree<T> {
    /// Members that are known, by name.
    pub(super) members: Vec<(String, Tree<T>)>,
    /// What is wanted here.
    pub(super) here: Vec<T>,
    /// Known, and not wanted at all.
    pub(super) ignored: bool,
}

impl<T> Default for Tree<T> {
    fn default() -> Self {
        Self { members: Vec::new(), here: Vec::new(), ignored: false }
    }
}

impl<T> Tree<T> {
    /// Wants something at the end of these steps.
    pub(super) fn insert(&mut self, steps: &[String], what: T) {
        self.descend(steps).here.push(what);
    }

    /// Declares what is at the end of these steps as known and unwanted.
    pub(super) fn ignore(&mut self, steps: &[String]) {
        self.descend(steps).ignored = true;
    }

    /// The position of a member. Records of one service list their members in one order, so the search starts behind
    /// the member that was met last.
    pub(super) fn find(&self, name: &str, after: usize) -> Option<usize> {
        let (before, behind) = self.members.split_at(after.min(self.members.len()));
        let is = |(member, _): &(String, Self)| member == name;
        behind.iter().position(is).map(|at| at + before.len()).or_else(|| before.iter().position(is))
    }

    fn descend(&mut self, steps: &[String]) -> &mut Self {
        steps.iter().fold(self, |tree, step| {
            let at = tree.members.iter().position(|(name, _)| name == step).unwrap_or_else(|| {
                tree.members.push((step.clone(), Self::default()));
                tree.members.len() - 1
            });
            &mut tree.members[at].1
        })
    }
}
