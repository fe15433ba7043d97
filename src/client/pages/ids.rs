//! Sets of ids.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// Ids by their hashes, which are not hashed again.
pub(super) type Ids = HashSet<u64, BuildHasherDefault<AsIs>>;

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
