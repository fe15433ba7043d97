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
    /// Set if the value here has to be looked at before it is read.
    pub(super) checked: bool,
    /// Number of this object among those of the whole tree.
    pub(super) number: usize,
}

impl<T> Default for Tree<T> {
    fn default() -> Self {
        Self { members: Vec::new(), here: Vec::new(), positions: false, checked: false, number: 0 }
    }
}

impl<T> Tree<T> {
    /// Adds a target at the end of these steps.
    pub(super) fn insert(&mut self, steps: &[String], what: T) {
        self.descend(steps).here.push(what);
    }

    /// Adds a target whose value has to be looked at before it is read.
    pub(super) fn insert_checked(&mut self, steps: &[String], what: T) {
        let node = self.descend(steps);
        node.here.push(what);
        node.checked = true;
    }

    /// Declares the value at the end of these steps as known and unwanted.
    pub(super) fn ignore(&mut self, steps: &[String]) {
        self.descend(steps);
    }

    /// The position of a member.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|(member, _)| member == name)
    }

    /// Steps to the first value for which `is` is true.
    pub(super) fn path_to(&self, is: &impl Fn(&Self) -> bool) -> Option<Vec<String>> {
        if is(self) {
            return Some(Vec::new());
        }
        self.members.iter().find_map(|(name, member)| {
            let below = member.path_to(is)?;
            Some([vec![name.clone()], below].concat())
        })
    }

    /// Numbers the objects from `next` on, and returns the number after the last one.
    pub(super) fn numbered(&mut self, next: usize) -> usize {
        self.number = next;
        self.members.iter_mut().fold(next + 1, |next, (_, member)| member.numbered(next))
    }

    /// Calls `found` with each target.
    pub(super) fn each(&self, found: &mut impl FnMut(&T)) {
        self.here.iter().for_each(&mut *found);
        self.members.iter().for_each(|(_, member)| member.each(found));
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
