//! Sets of ids.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use chrono::DateTime;

use crate::error::{Error, ErrorKind, Result};
use crate::request::Traits;

/// Ids by their hashes, which are not hashed again.
pub(super) type Ids = HashSet<u64, BuildHasherDefault<AsIs>>;

/// Traits of the mentions of a window, by the hashes of their ids.
#[derive(Debug, Default)]
pub(super) struct Known(HashMap<u64, Traits, BuildHasherDefault<AsIs>>);

impl Known {
    /// Remembers the rows of a page.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] if two mentions have one id: one of them would be lost as a duplicate.
    pub(super) fn take(&mut self, ids: &[u64], traits: &[Traits]) -> Result<()> {
        for (id, traits) in ids.iter().zip(traits) {
            let known = *self.0.entry(*id).or_insert(*traits);
            if !known.may_be(*traits) {
                return Err(several(known, *traits));
            }
        }
        Ok(())
    }

    /// Counts the mentions that came with one of the ids `gone`, and again with one of the ids `fresh`.
    pub(super) fn again(&self, gone: impl Iterator<Item = u64>, fresh: impl Iterator<Item = u64>) -> Again {
        let mut by_second: HashMap<i64, Vec<Traits>> = HashMap::new();
        for traits in gone.filter_map(|id| self.0.get(&id)) {
            by_second.entry(traits.seconds()).or_default().push(*traits);
        }
        let mut again = Again::default();
        for traits in fresh.filter_map(|id| self.0.get(&id)) {
            let Some(others) = by_second.get_mut(&traits.seconds()) else { continue };
            let at = others.iter().position(|other| other.shares_url(*traits));
            let Some(at) = at.or_else(|| others.iter().position(|other| other.may_be(*traits))) else { continue };
            let other = others.swap_remove(at);
            again.of_second += 1;
            again.of_url += u64::from(other.shares_url(*traits));
        }
        again
    }

    /// True if a page has none of the known ids, but most of its mentions are like known ones.
    pub(super) fn has_all_but_ids(&self, ids: &[u64], traits: &[Traits]) -> bool {
        if ids.len() < 2 || ids.iter().any(|id| self.0.contains_key(id)) {
            return false;
        }
        let mut by_second: HashMap<i64, Vec<Traits>> = HashMap::new();
        for known in self.0.values() {
            by_second.entry(known.seconds()).or_default().push(*known);
        }
        let is_like = |traits: &Traits| {
            by_second.get(&traits.seconds()).is_some_and(|known| known.iter().any(|known| known.may_be(*traits)))
        };
        2 * traits.iter().filter(|traits| is_like(traits)).count() > ids.len()
    }

    /// Approximate memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.capacity() * 18
    }
}

/// Numbers of mentions that came again with other ids, as far as their traits show.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Again {
    /// Those of one second, whose urls do not differ.
    pub(super) of_second: u64,
    /// Those of them that have the same url.
    pub(super) of_url: u64,
}

fn several(one: Traits, other: Traits) -> Error {
    let at = |traits: Traits| DateTime::from_timestamp(traits.seconds(), 0).unwrap_or_default();
    let how = match at(one) == at(other) {
        true => format!("both of {}, with different urls or sources", at(one)),
        false => format!("one of {}, and one of {}", at(one), at(other)),
    };
    Error::new(ErrorKind::Contradiction, format!("two mentions have the same id: {how}")).advice(
        "the ids may be unique only within a source: set `id` of [tables.mentions] in the profile to a column whose values are \
         unique, such as the url",
    )
}

/// See [`Ids`].
#[derive(Debug, Default)]
pub(super) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        // Not called for numbers of eight bytes.
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64, url: Option<u64>) -> Traits {
        Traits::new(second * 1_000_000, url, None)
    }

    #[test]
    fn a_mention_with_another_id_is_recognized_by_its_time_and_url() {
        let mut known = Known::default();
        let traits = [at(1, Some(7)), at(2, None), at(1, Some(8)), at(1, Some(7)), at(2, None), at(3, None)];
        known.take(&[1, 2, 3, 4, 5, 6], &traits).expect("ids of one mention each");
        let again = known.again([1, 2, 3].into_iter(), [4, 5, 6].into_iter());
        assert_eq!(again, Again { of_second: 2, of_url: 1 });
        assert_eq!(known.again([1, 9].into_iter(), [3, 6].into_iter()), Again::default(), "another url, another time");
        assert!(known.has_all_but_ids(&[7, 8, 9], &[at(1, None), at(3, None), at(9, None)]));
        assert!(!known.has_all_but_ids(&[7, 8], &[at(1, None), at(9, None)]), "half of them");
        assert!(!known.has_all_but_ids(&[1, 8, 9], &[at(1, None), at(2, None), at(3, None)]), "a known id");
    }
}
