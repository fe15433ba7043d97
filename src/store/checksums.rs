//! Checksums of the blocks of files. The writer of Parquet pages adds none, so that a damaged page may decode to other values.
//!
//! ```text
//! a file is written ─ CRC-32 of each block ─▶ catalog ─▶ each block that is read is compared before it is decoded
//! ```
//!
//! Files of an earlier version of this program have no checksums, and are read as they are. Before rows are copied to another
//! file, its digest is compared as well.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use crc32fast::Hasher;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use super::storage::OpenFile;

/// Length of a block, but for the last one of a file, in bytes.
const BLOCK: u64 = LENGTH as u64;
const LENGTH: usize = 16 << 10;
/// Length of a checksum in bytes.
const SUM: usize = 4;
/// Problem of a file whose checksums differ.
pub(crate) const CHANGED: &str = "its contents have changed since it was written";

/// Checksums of the blocks of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Length of the file in bytes.
    pub(crate) length: u64,
    /// The CRC-32 of each block, in four bytes, the lowest first.
    pub(crate) blocks: Vec<u8>,
}

impl Sums {
    /// Extends a range of a file to whole blocks.
    pub(crate) fn whole(&self, range: &Range<u64>) -> Range<u64> {
        let end = range.end.div_ceil(BLOCK).saturating_mul(BLOCK);
        range.start / BLOCK * BLOCK..end.min(self.length)
    }

    /// True if the bytes of whole blocks, which are a range of the file, are as they were written.
    pub(crate) fn agree(&self, range: &Range<u64>, bytes: &[u8]) -> bool {
        let first = usize::try_from(range.start / BLOCK).unwrap_or(usize::MAX);
        let mut expected = self.blocks.chunks_exact(SUM).skip(first);
        let agrees = |block: &[u8]| expected.next().is_some_and(|sum| sum == crc32fast::hash(block).to_le_bytes());
        bytes.len() as u64 == range.end - range.start && bytes.chunks(LENGTH).all(agrees)
    }
}

/// Checksums of a file that is being written.
#[derive(Debug, Clone, Default)]
pub(super) struct Summing {
    block: Hasher,
    filled: usize,
    sums: Vec<u8>,
}

impl Summing {
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (block, rest) = bytes.split_at(bytes.len().min(LENGTH - self.filled));
            self.block.update(block);
            self.filled += block.len();
            if self.filled == LENGTH {
                self.end_block();
            }
            bytes = rest;
        }
    }

    fn end_block(&mut self) {
        self.sums.extend(std::mem::take(&mut self.block).finalize().to_le_bytes());
        self.filled = 0;
    }

    /// Returns the checksums of all blocks, as [`Sums`] has them.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.end_block();
        }
        self.sums
    }
}

/// An open file, each block of which is compared with its checksum when it is read.
#[derive(Clone)]
pub(super) struct CheckedFile(Arc<Open>);

struct Open {
    file: OpenFile,
    length: u64,
    sums: Option<Arc<Sums>>,
    /// The block that was read last, and its number: pages are shorter than a block.
    last: Mutex<Option<(u64, Bytes)>>,
}

impl CheckedFile {
    pub(super) fn new(file: OpenFile, sums: Option<Arc<Sums>>) -> io::Result<Self> {
        let length = file.length()?;
        if sums.as_ref().is_some_and(|sums| sums.length != length) {
            return Err(changed());
        }
        Ok(Self(Arc::new(Open { file, length, sums, last: Mutex::default() })))
    }
}

impl Open {
    fn block(&self, number: u64) -> io::Result<Bytes> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, block)) = last.as_ref().filter(|(of, _)| *of == number) {
            return Ok(block.clone());
        }
        let start = number.saturating_mul(BLOCK);
        let end = start.saturating_add(BLOCK).min(self.length);
        let mut block = vec![0; usize::try_from(end.saturating_sub(start)).unwrap_or_default()];
        self.file.read_exact_at(start, &mut block)?;
        if self.sums.as_ref().is_some_and(|sums| !sums.agree(&(start..end), &block)) {
            return Err(changed());
        }
        let block = Bytes::from(block);
        *last = Some((number, block.clone()));
        Ok(block)
    }
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, CHANGED)
}

impl Length for CheckedFile {
    fn len(&self) -> u64 {
        self.0.length
    }
}

impl ChunkReader for CheckedFile {
    type T = BlockReader;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BlockReader { file: self.clone(), next: start })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let end = start.saturating_add(length as u64);
        if end > self.0.length {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} of {}", self.0.length)));
        }
        let block = self.0.block(start / BLOCK)?;
        let first = usize::try_from(start % BLOCK).unwrap_or_default();
        if first + length <= block.len() {
            return Ok(block.slice(first..first + length));
        }
        let mut bytes = Vec::with_capacity(length);
        BlockReader { file: self.clone(), next: start }.take(length as u64).read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// Reads a file from a position on.
pub(super) struct BlockReader {
    file: CheckedFile,
    next: u64,
}

impl Read for BlockReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let open = &self.file.0;
        if self.next >= open.length || into.is_empty() {
            return Ok(0);
        }
        let block = open.block(self.next / BLOCK)?;
        let from = &block[usize::try_from(self.next % BLOCK).unwrap_or_default()..];
        let length = from.len().min(into.len());
        into[..length].copy_from_slice(&from[..length]);
        self.next += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_byte_that_changes_is_found_in_its_block_only() {
        let bytes: Vec<u8> = (0..3 * BLOCK + 100).map(|at| (at % 251) as u8).collect();
        let mut summing = Summing::default();
        bytes.chunks(1_000).for_each(|part| summing.update(part));
        let sums = Sums { length: bytes.len() as u64, blocks: summing.finish() };
        assert_eq!(sums.blocks.len(), 4 * SUM);
        assert_eq!(sums.whole(&(BLOCK + 1..3 * BLOCK + 1)), BLOCK..bytes.len() as u64);
        let open = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(bytes).expect("written");
            CheckedFile::new(OpenFile::Local(file), Some(Arc::new(sums.clone())))
        };
        let sound = open(&bytes).expect("its length is right");
        for range in [0..7, 100..40_000, 3 * LENGTH..bytes.len()] {
            assert_eq!(sound.get_bytes(range.start as u64, range.len()).expect("sound"), &bytes[range.clone()]);
            let mut read = Vec::new();
            sound.get_read(range.start as u64).expect("a reader").read_to_end(&mut read).expect("sound");
            assert_eq!(read, &bytes[range.start..]);
        }
        sound.get_bytes(bytes.len() as u64 - 1, 2).expect_err("too long");
        let mut damaged = bytes.clone();
        damaged[2 * LENGTH + 5] ^= 1;
        let damaged = open(&damaged).expect("its length is right");
        damaged.get_bytes(0, 2 * LENGTH).expect("the blocks before are sound");
        let error = damaged.get_bytes(2 * BLOCK - 1, 2).expect_err("damaged").to_string();
        assert!(error.contains(CHANGED), "{error}");
        assert!(open(&bytes[1..]).is_err());
    }
}
