//! Pointers as a tree, so that one walk over a document visits all of them.

/// A member of a document, with the targets at and below it.
#[derive(Debug, Clone)]
pub(super) struct Tree<T> {
    /// Known members, by name.
    pub(super) members: Vec<(String, Tree<T>)>,
    /// Targets for the value here.
    pub(super) here: Vec<T>,
    /// Set if a member is an item of an array, by its position.
    pub(super) positions: bool,
}

impl<T> Default for Tree<T> {
    fn default() -> Self {
        Self { members: Vec::new(), here: Vec::new(), positions: false }
    }
}

impl<T> Tree<T> {
    /// Adds a target at the end of these steps.
    pub(super) fn insert(&mut self, steps: &[String], what: T) {
        self.descend(steps).here.push(what);
    }

    /// Declares the value at the end of these steps as known and unwanted.
    pub(super) fn ignore(&mut self, steps: &[String]) {
        self.descend(steps);
    }

    /// The position of a member. Records of a service usually list their members in the same order, so the search
    /// starts after the last member found.
    pub(super) fn find(&self, name: &str, after: usize) -> Option<usize> {
        let (before, behind) = self.members.split_at(after.min(self.members.len()));
        let is = |(member, _): &(String, Self)| member == name;
        behind.iter().position(is).map(|at| at + before.len()).or_else(|| before.iter().position(is))
    }

    fn descend(&mut self, steps: &[String]) -> &mut Self {
        steps.iter().fold(self, |tree, step| {
            let at = tree.members.iter().position(|(name, _)| name == step).unwrap_or_else(|| {
                tree.positions |= step.parse::<usize>().is_ok();
                tree.members.push((step.clone(), Self::default()));
                tree.members.len() - 1
            });
            &mut tree.members[at].1
        })
    }
}
