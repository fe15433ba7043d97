//! The file of an index: sorted keys, and the rows of each.
//!
//! ```text
//! magic │ block │ block │ … │ footer │ length and checksum of the footer │ magic
//!
//! footer   the file that it belongs to; for each column and 65,536 rows: the first key, place and checksum of each block
//! block    for each key: the part that differs from the key before, and the rows, as differences
//! ```
//!
//! Blocks are read one by one, and each is compared with its checksum. Whatever is wrong is an error here, which the caller takes
//! for a missing index.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::mem;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::memory;
use crate::store::region::DataFile;
use crate::store::storage::{NewFile, OpenFile, Storage};
use crate::words::{Sought, Words, rules};

/// Number of rows whose words are sorted together. It bounds the memory that writing takes.
pub(super) const SEGMENT: u64 = 1 << 16;
/// Bits of a word of [`Rows`].
const BITS: usize = 64;
/// Size at which a block is complete, in bytes.
const BLOCK: usize = 16 << 10;
/// Its last character is the version of the format, and of the rules by which words become keys.
const MAGIC: [u8; 8] = *b"SSWORDS1";
/// Length of the last part: two numbers of four bytes, and the magic number.
const TRAILER: usize = 16;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Footer {
    /// Digest of the rules by which texts became words.
    rules: String,
    /// Digest of the file of mentions.
    digest: String,
    /// Number of its rows.
    rows: u64,
    columns: Vec<Column>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    /// The blocks of each segment.
    segments: Vec<Vec<Block>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    /// The first key.
    key: String,
    at: u64,
    bytes: u32,
    crc: u32,
}

/// An index that is being written. Nothing is left of one that is not finished.
pub(super) struct IndexWriter {
    output: BufWriter<NewFile>,
    at: u64,
    footer: Footer,
    /// Rows of the segment by key, in order.
    keys: HashMap<String, Vec<u16>>,
    /// Number of rows of the column so far.
    row: u64,
}

impl IndexWriter {
    /// Begins the index of a file of mentions, at a path.
    pub(super) fn create(storage: &Storage, path: &Path, of: &DataFile) -> io::Result<Self> {
        let mut output = BufWriter::new(storage.create(path)?);
        output.write_all(&MAGIC)?;
        let footer =
            Footer { rules: rules().to_owned(), digest: of.digest.clone(), rows: of.rows, columns: Vec::new() };
        Ok(Self { output, at: MAGIC.len() as u64, footer, keys: HashMap::new(), row: 0 })
    }

    /// Begins a column. Its rows follow.
    pub(super) fn begin(&mut self, column: &str) {
        self.footer.columns.push(Column { name: column.to_owned(), segments: Vec::new() });
        self.row = 0;
    }

    /// Adds the words of the next row; `None` if it has no text.
    pub(super) fn push(&mut self, words: Option<&Words>) -> io::Result<()> {
        if let Some(words) = words {
            let row = u16::try_from(self.row % SEGMENT).map_err(io::Error::other)?;
            let keys = &mut self.keys;
            words.for_each_key(|key| match keys.get_mut(key) {
                Some(rows) if rows.last() == Some(&row) => {}
                Some(rows) => rows.push(row),
                None => {
                    keys.insert(key.to_owned(), vec![row]);
                }
            });
        }
        self.row += 1;
        if self.row.is_multiple_of(SEGMENT) { self.end_segment() } else { Ok(()) }
    }

    /// Ends a column.
    pub(super) fn end(&mut self) -> io::Result<()> {
        if self.row.is_multiple_of(SEGMENT) { Ok(()) } else { self.end_segment() }
    }

    fn end_segment(&mut self) -> io::Result<()> {
        let mut keys: Vec<(String, Vec<u16>)> = mem::take(&mut self.keys).into_iter().collect();
        keys.sort_unstable();
        let (mut segment, mut block) = (Vec::new(), Keys::default());
        for (key, rows) in keys {
            block.push(key, &rows);
            if block.bytes.len() >= BLOCK {
                segment.push(self.write(&mem::take(&mut block))?);
            }
        }
        if !block.bytes.is_empty() {
            segment.push(self.write(&block)?);
        }
        if let Some(column) = self.footer.columns.last_mut() {
            column.segments.push(segment);
        }
        Ok(())
    }

    fn write(&mut self, keys: &Keys) -> io::Result<Block> {
        self.output.write_all(&keys.bytes)?;
        let bytes = u32::try_from(keys.bytes.len()).map_err(io::Error::other)?;
        let block = Block { key: keys.first.clone(), at: self.at, bytes, crc: crc32fast::hash(&keys.bytes) };
        self.at += u64::from(bytes);
        Ok(block)
    }

    /// Completes the index and makes it durable under its name. Returns its length in bytes.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        let footer = serde_json::to_vec(&self.footer)?;
        let bytes = u32::try_from(footer.len()).map_err(io::Error::other)?;
        self.output.write_all(&footer)?;
        self.output.write_all(&bytes.to_le_bytes())?;
        self.output.write_all(&crc32fast::hash(&footer).to_le_bytes())?;
        self.output.write_all(&MAGIC)?;
        self.output.into_inner().map_err(io::IntoInnerError::into_error)?.publish()?;
        Ok(self.at + u64::from(bytes) + TRAILER as u64)
    }
}

/// The keys of a block that is being written.
#[derive(Debug, Default)]
struct Keys {
    first: String,
    last: String,
    bytes: Vec<u8>,
}

impl Keys {
    fn push(&mut self, key: String, rows: &[u16]) {
        if self.bytes.is_empty() {
            self.first.clone_from(&key);
        }
        let shared = self.last.bytes().zip(key.bytes()).take_while(|(last, next)| last == next).count();
        let rest = &key.as_bytes()[shared..];
        put_number(&mut self.bytes, shared);
        put_number(&mut self.bytes, rest.len());
        self.bytes.extend_from_slice(rest);
        let (mut differences, mut last) = (Vec::with_capacity(rows.len()), 0);
        for row in rows {
            put_number(&mut differences, usize::from(row - last));
            last = *row;
        }
        put_number(&mut self.bytes, differences.len());
        self.bytes.extend_from_slice(&differences);
        self.last = key;
    }
}

/// An index that can be read.
#[derive(Debug)]
pub(super) struct IndexFile {
    file: OpenFile,
    footer: Footer,
}

impl IndexFile {
    /// Opens the index of a file of mentions.
    ///
    /// # Errors
    /// I/O errors; `InvalidData` if it is damaged, or belongs to another file or version.
    pub(super) fn open(storage: &Storage, path: &Path, of: &DataFile) -> io::Result<Self> {
        let file = storage.open(path)?;
        let end = file.length()?.checked_sub(TRAILER as u64).ok_or_else(damaged)?;
        let trailer = read_at(&file, end, TRAILER)?;
        let [length, crc] = [&trailer[..4], &trailer[4..8]].map(|bytes| bytes.try_into().map(u32::from_le_bytes));
        let (length, crc) = (length.map_err(io::Error::other)?, crc.map_err(io::Error::other)?);
        let start = end.checked_sub(u64::from(length)).filter(|_| trailer[8..] == MAGIC).ok_or_else(damaged)?;
        if read_at(&file, 0, MAGIC.len())? != MAGIC {
            return Err(damaged());
        }
        let footer = read_at(&file, start, usize::try_from(length).map_err(io::Error::other)?)?;
        if crc32fast::hash(&footer) != crc {
            return Err(damaged());
        }
        let footer: Footer = serde_json::from_slice(&footer).map_err(|_| damaged())?;
        if footer.rules != rules() || footer.digest != of.digest || footer.rows != of.rows {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "belongs to another file or version"));
        }
        Ok(Self { file, footer })
    }

    /// True if it has the words of a column.
    pub(super) fn has(&self, column: &str) -> bool {
        self.footer.columns.iter().any(|of| of.name == column)
    }

    /// Reads everything, and compares it with the checksums.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn check(&mut self) -> io::Result<()> {
        let Self { file, footer } = self;
        let mut blocks = footer.columns.iter().flat_map(|column| &column.segments).flatten();
        blocks.try_for_each(|block| read(file, block).map(drop))
    }

    /// Rows of a segment whose text in a column may match; `None` if the index lacks the column.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn rows(&mut self, column: &str, sought: &Sought, segment: usize) -> io::Result<Option<Rows>> {
        let Self { file, footer } = self;
        let Some(column) = footer.columns.iter().find(|of| of.name == column) else { return Ok(None) };
        let blocks = column.segments.get(segment).ok_or_else(damaged)?;
        found(file, blocks, sought).map(Some)
    }
}

/// Rows of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rows(Vec<u64>);

impl Rows {
    pub(super) fn none() -> Self {
        Self(vec![0; 1 << 10])
    }

    fn insert(&mut self, row: usize) -> io::Result<()> {
        let bits = self.0.get_mut(row / BITS).ok_or_else(damaged)?;
        *bits |= 1 << (row % BITS);
        Ok(())
    }

    /// Keeps the rows that the other one has as well.
    pub(super) fn keep(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(bits, other)| *bits &= other);
    }

    /// Adds the rows of the other one.
    pub(super) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(bits, other)| *bits |= other);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|bits| *bits == 0)
    }

    /// The rows from one position to another, in order.
    pub(super) fn within(&self, from: usize, to: usize) -> impl Iterator<Item = usize> {
        let words = self.0.iter().enumerate().skip(from / BITS).take_while(move |(at, _)| at * BITS < to);
        let rows = words.filter(|(_, bits)| **bits != 0).flat_map(|(at, bits)| {
            (0..BITS).filter(move |bit| (*bits >> *bit) & 1 == 1).map(move |bit| at * BITS + bit)
        });
        rows.filter(move |row| (from..to).contains(row))
    }
}

/// Rows of a segment that have what is sought.
fn found(file: &OpenFile, blocks: &[Block], sought: &Sought) -> io::Result<Rows> {
    let mut rows = Rows::none();
    match sought {
        Sought::Key(key) => look_up(file, blocks, key, false, &mut rows)?,
        Sought::Beginning(beginning) => look_up(file, blocks, beginning, true, &mut rows)?,
        Sought::Any(any) => {
            for sought in any {
                rows.add(&found(file, blocks, sought)?);
            }
        }
        Sought::All(all) => {
            for (at, sought) in all.iter().enumerate() {
                if at == 0 {
                    rows = found(file, blocks, sought)?;
                } else if !rows.is_empty() {
                    rows.keep(&found(file, blocks, sought)?);
                }
            }
        }
    }
    Ok(rows)
}

/// Adds the rows of a key; `open`: of all keys with this beginning.
fn look_up(file: &OpenFile, blocks: &[Block], key: &str, open: bool, rows: &mut Rows) -> io::Result<()> {
    let first = blocks.partition_point(|block| block.key.as_str() <= key).saturating_sub(1);
    for block in &blocks[first..] {
        if block.key.as_str() > key && !(open && block.key.starts_with(key)) {
            break;
        }
        let bytes = read(file, block)?;
        let (mut rest, mut current) = (bytes.as_slice(), Vec::new());
        while !rest.is_empty() {
            let shared = take_number(&mut rest)?;
            if shared > current.len() {
                return Err(damaged());
            }
            current.truncate(shared);
            let length = take_number(&mut rest)?;
            current.extend_from_slice(take(&mut rest, length)?);
            let length = take_number(&mut rest)?;
            let mut differences = take(&mut rest, length)?;
            let begins = current.starts_with(key.as_bytes());
            if begins && (open || current.len() == key.len()) {
                let mut row = 0;
                while !differences.is_empty() {
                    row = take_number(&mut differences)?.checked_add(row).ok_or_else(damaged)?;
                    rows.insert(row)?;
                }
            } else if current.as_slice() > key.as_bytes() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Reads a block, unless the statement has ended.
fn read(file: &OpenFile, block: &Block) -> io::Result<Vec<u8>> {
    memory::check().map_err(io::Error::other)?;
    let bytes = read_at(file, block.at, usize::try_from(block.bytes).map_err(io::Error::other)?)?;
    if crc32fast::hash(&bytes) == block.crc { Ok(bytes) } else { Err(damaged()) }
}

fn read_at(file: &OpenFile, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(at, &mut bytes)?;
    Ok(bytes)
}

/// Appends a number, seven bits a byte.
fn put_number(bytes: &mut Vec<u8>, mut number: usize) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

/// Takes a number from the beginning.
fn take_number(bytes: &mut &[u8]) -> io::Result<usize> {
    let mut number = 0;
    for shift in (0..usize::BITS).step_by(7) {
        let byte = take(bytes, 1)?[0];
        number |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(damaged())
}

/// Takes some bytes from the beginning.
fn take<'b>(bytes: &mut &'b [u8], length: usize) -> io::Result<&'b [u8]> {
    let all = *bytes;
    let (taken, rest) = all.split_at_checked(length).ok_or_else(damaged)?;
    *bytes = rest;
    Ok(taken)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: u64 = 66_000;

    fn mentions(digest: &str, rows: u64) -> DataFile {
        let (path, digest) = ("a.parquet".to_owned(), digest.to_owned());
        DataFile { path, rows, bytes: 0, footer: 0, times: (0, 0), schema: 0, digest, blocks: Vec::new() }
    }

    /// The text of a row; `None` if it has none.
    fn text(row: u64) -> Option<String> {
        let rare = [5, 65_535, 65_536, 65_999].contains(&row);
        let (even, rare) = (if row.is_multiple_of(2) { "even" } else { "" }, if rare { "rare" } else { "" });
        (row % 17 != 3).then(|| format!("{even} w{} {rare} w{} 電池{}", row % 1_000, row % 1_000, row % 7))
    }

    /// Rows of several segments, compared with the texts.
    #[test]
    fn rows_are_those_whose_texts_have_the_keys() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = Storage::of_folder(folder.path().to_owned());
        let (path, of) = (folder.path().join("a.words"), mentions("1", COUNT));
        let texts: Vec<Option<String>> = (0..COUNT).map(text).collect();
        let mut writer = IndexWriter::create(&storage, &path, &of).expect("an index");
        let mut words = Words::default();
        for column in ["empty", "text"] {
            writer.begin(column);
            for text in &texts {
                let text = text.as_deref().filter(|_| column == "text");
                words.read(text.unwrap_or_default()).expect("words");
                writer.push(text.is_some().then_some(&words)).expect("a row");
            }
            writer.end().expect("a column");
        }
        let bytes = writer.finish().expect("complete");
        assert_eq!(path.metadata().expect("a file").len(), bytes);
        let mut index = IndexFile::open(&storage, &path, &of).expect("an index");
        index.check().expect("no damage");
        assert!(index.has("empty") && index.has("text") && !index.has("other"));
        let key = |key: &str| Sought::Key(key.to_owned());
        let has = |text: &str, word: &str| text.split(' ').any(|other| other == word);
        type Case<'a> = (Sought, &'a dyn Fn(&str) -> bool);
        let cases: [Case<'_>; 9] = [
            (key("rare"), &|text| has(text, "rare")),
            (key("even"), &|text| has(text, "even")),
            (key("w7"), &|text| has(text, "w7")),
            (key("a"), &|_| false),
            (key("zzz"), &|_| false),
            (key("電池"), &|_| true),
            (Sought::Beginning("w99".to_owned()), &|text| text.contains(" w99")),
            (Sought::All(vec![key("even"), key("w8"), key("電")]), &|text| has(text, "even") && has(text, "w8")),
            (Sought::Any(vec![key("w1"), key("w2"), key("rare")]), &|text| {
                ["w1", "w2", "rare"].into_iter().any(|word| has(text, word))
            }),
        ];
        for (sought, holds) in &cases {
            for (segment, texts) in texts.chunks(1 << 16).enumerate() {
                let texts = texts.iter().enumerate();
                let right: Vec<usize> = texts
                    .filter(|(_, text)| matches!(text, Some(text) if holds(text.as_str())))
                    .map(|(row, _)| row)
                    .collect();
                let rows = index.rows("text", sought, segment).expect("no damage").expect("a column");
                assert_eq!(rows.within(0, 1 << 16).collect::<Vec<_>>(), right, "{sought:?} in {segment}");
                let part: Vec<usize> = right.into_iter().filter(|row| (70..1_000).contains(row)).collect();
                assert_eq!(rows.within(70, 1_000).collect::<Vec<_>>(), part, "{sought:?} in {segment}");
            }
        }
        let rows = index.rows("empty", &key("rare"), 0).expect("no damage").expect("a column");
        assert_eq!(rows, Rows::none());
        assert_eq!(index.rows("other", &key("rare"), 0).expect("no damage"), None);
        assert!(index.rows("text", &key("rare"), 2).is_err());
        for other in [mentions("2", COUNT), mentions("1", COUNT + 1)] {
            assert!(IndexFile::open(&storage, &path, &other).is_err(), "the index of another file");
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "no temporary files remain");
    }

    /// A block whose checksum is right, and whose numbers are not.
    #[test]
    fn rows_beyond_all_numbers_are_damage() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = Storage::of_folder(folder.path().to_owned());
        let (path, of) = (folder.path().join("a.words"), mentions("1", 1));
        let mut writer = IndexWriter::create(&storage, &path, &of).expect("an index");
        writer.begin("text");
        let mut differences = Vec::new();
        [1, usize::MAX].into_iter().for_each(|number| put_number(&mut differences, number));
        let mut keys = Keys { first: "a".to_owned(), ..Keys::default() };
        for number in [0, 1] {
            put_number(&mut keys.bytes, number);
        }
        keys.bytes.push(b'a');
        put_number(&mut keys.bytes, differences.len());
        keys.bytes.extend_from_slice(&differences);
        let block = writer.write(&keys).expect("written");
        writer.footer.columns[0].segments.push(vec![block]);
        writer.finish().expect("complete");
        let mut index = IndexFile::open(&storage, &path, &of).expect("an index");
        assert!(index.rows("text", &Sought::Key("a".to_owned()), 0).is_err());
    }

    #[tokio::test]
    async fn a_look_up_ends_with_its_statement() {
        memory::tests::counted();
        let folder = tempfile::tempdir().expect("a folder");
        let storage = Storage::of_folder(folder.path().to_owned());
        let (path, of) = (folder.path().join("a.words"), mentions("1", 1));
        let mut writer = IndexWriter::create(&storage, &path, &of).expect("an index");
        let mut words = Words::default();
        words.read("fire").expect("words");
        writer.begin("text");
        writer.push(Some(&words)).expect("a row");
        writer.end().expect("a column");
        writer.finish().expect("complete");
        let mut index = IndexFile::open(&storage, &path, &of).expect("an index");
        let statement = std::sync::Arc::new(memory::StatementMemory::default());
        memory::within(&statement, async {
            let fire = Sought::Key("fire".to_owned());
            assert!(index.rows("text", &fire, 0).is_ok());
            statement.end();
            assert!(index.rows("text", &fire, 0).is_err());
        })
        .await;
    }

    #[test]
    fn an_index_by_other_rules_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = Storage::of_folder(folder.path().to_owned());
        let (path, of) = (folder.path().join("a.words"), mentions("1", 0));
        for (other, is_used) in [(None, true), (Some("f".repeat(64)), false)] {
            let mut writer = IndexWriter::create(&storage, &path, &of).expect("an index");
            assert_eq!(writer.footer.rules.len(), 64);
            writer.footer.rules = other.unwrap_or(writer.footer.rules);
            writer.finish().expect("complete");
            assert_eq!(IndexFile::open(&storage, &path, &of).is_ok(), is_used);
        }
    }
}
