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

    /// Approximate memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.capacity() * 18
    }
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
