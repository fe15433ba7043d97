//! Words of a text.
//!
//! A word is a run of letters, digits and marks. Everything else separates words: `wi-fi` and `example.com` are two words each.
//! Scripts without spaces between words (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) are read character by character,
//! so that a phrase of characters is found anywhere in a text.
//!
//! Words are compared without case, accents and compatibility forms: `Straße` is `STRASSE`, `café` is `cafe`, `ﬁre` is `fire`,
//! and fullwidth letters are letters. Marks that change a letter into another one stay, such as vowel signs of Hindi and the voicing
//! mark of Japanese. Unicode's data is that of ICU, in the crates that also serve domain names.

#[cfg(feature = "store")]
use std::sync::LazyLock;

#[cfg(feature = "store")]
use data_encoding::HEXLOWER;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};
#[cfg(feature = "store")]
use sha2::{Digest, Sha256};

use crate::error::{Error, ErrorKind, Result};
use crate::memory;

/// Maximum number of bytes of a key in an index.
#[cfg(feature = "store")]
const KEY: usize = 48;

/// Bytes of memory that the words of a text take for each of its bytes, at most: a sign that is short for a sentence becomes 15
/// times as long, in memory that doubles while it grows.
const ROOM: u64 = 32;
/// Bytes or characters of a text between two checks that the statement goes on.
const CHECKED: usize = 64 << 10;

/// Words of a text, in order. Its memory is used again for the next text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words {
    /// The words, one after another.
    folded: String,
    /// The place in `folded` at which each word begins. It ends where the next one begins.
    starts: Vec<u32>,
    /// Set if the next character continues the last word.
    open: bool,
}

/// The part that a character has in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Begins or continues a word.
    Letter,
    /// Continues a word, and is none alone.
    Mark,
    /// A word of its own.
    Single,
    /// Separates words.
    Between,
}

impl Words {
    /// Reads the words of a text, instead of those before.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`] if there is not enough for them; those of [`memory::check`]; [`ErrorKind::TooLarge`] beyond 4 GiB.
    pub(crate) fn read(&mut self, text: &str) -> Result<()> {
        let _room = memory::room(ROOM.saturating_mul(text.len() as u64))?;
        self.folded.clear();
        self.starts.clear();
        self.open = false;
        let (mut rest, mut unchecked) = (text, 0);
        while !rest.is_empty() {
            let next = &rest.as_bytes()[..rest.len().min(CHECKED)];
            let plain = next.iter().position(|byte| !byte.is_ascii()).unwrap_or(next.len());
            let (ascii, other) = rest.split_at(plain);
            for byte in ascii.bytes() {
                let kind = if byte.is_ascii_alphanumeric() { Kind::Letter } else { Kind::Between };
                self.push(char::from(byte.to_ascii_lowercase()), kind)?;
            }
            // ASCII characters neither change nor combine with what stays of their neighbours.
            let other_until = other.bytes().position(|byte| byte.is_ascii()).unwrap_or(other.len());
            let (other, after) = other.split_at(other_until);
            self.read_other(other)?;
            unchecked += plain + other.len();
            if unchecked >= CHECKED {
                memory::check()?;
                unchecked = 0;
            }
            rest = after;
        }
        Ok(())
    }

    /// Reads characters beyond ASCII.
    fn read_other(&mut self, text: &str) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let (mut read, mut checked) = (0_usize, Ok(()));
        let characters = text.chars().take_while(|_| {
            read += 1;
            if read.is_multiple_of(CHECKED) {
                checked = memory::check();
            }
            checked.is_ok()
        });
        for character in folded(characters) {
            self.push(character, Kind::of(character))?;
        }
        checked
    }

    fn push(&mut self, character: char, kind: Kind) -> Result<()> {
        match (kind, self.open) {
            (Kind::Between, _) | (Kind::Mark, false) => {
                self.open = false;
                return Ok(());
            }
            (Kind::Letter | Kind::Mark, true) => {
                self.folded.push(character);
                return Ok(());
            }
            (Kind::Letter, false) => self.open = true,
            (Kind::Single, _) => self.open = false,
        }
        let start = u32::try_from(self.folded.len());
        self.starts.push(start.map_err(|_| {
            Error::new(ErrorKind::TooLarge, "a text has more than 4 GiB of words").advice("search in a part of it")
        })?);
        self.folded.push(character);
        Ok(())
    }

    /// Number of words.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// The words, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        (0..self.len()).map(|position| self.at(position))
    }

    /// The word at a position; empty beyond the last one.
    pub(crate) fn at(&self, position: usize) -> &str {
        let Some(start) = self.starts.get(position) else { return "" };
        let end = self.starts.get(position + 1).map_or(self.folded.len(), |end| *end as usize);
        &self.folded[*start as usize..end]
    }

    /// Bytes of memory that it holds.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.folded.capacity() + self.starts.capacity() * size_of::<u32>()
    }

    /// Passes on the keys by which an index finds the text: its words, and pairs of characters that are words. Some come
    /// several times.
    #[cfg(feature = "store")]
    pub(crate) fn for_each_key(&self, mut take: impl FnMut(&str)) {
        let mut pair = String::new();
        let mut before: Option<&str> = None;
        for word in self.iter() {
            take(key_of(word));
            let single = is_single(word).then_some(word);
            if let (Some(before), Some(single)) = (before, single) {
                take(pair_of(&mut pair, before, single));
            }
            before = single;
        }
    }
}

/// Digest of what this file does with each character. It changes with the data of Unicode, which comes with the compiler and with
/// ICU: an index by other rules is not used. The rules of keys belong to the version of the index.
#[cfg(feature = "store")]
pub(crate) fn rules() -> &'static str {
    /// It takes some milliseconds: most characters that there can be have no meaning.
    static RULES: LazyLock<String> = LazyLock::new(|| {
        let (mut digest, (major, minor, update)) = (Sha256::new(), char::UNICODE_VERSION);
        // By this version, the letters of characters that ICU does not know are the same.
        digest.update([major, minor, update]);
        let known = ('\0'..=char::MAX).filter(|character| {
            !matches!(category(*character), GeneralCategory::Unassigned | GeneralCategory::PrivateUse)
        });
        for character in known.clone() {
            digest.update(u32::from(character).to_le_bytes());
            digest.update([Kind::of(character) as u8]);
        }
        // A line each: nothing combines with the end of a line.
        let lines: String = folded(known.flat_map(|character| [character, '\n'])).collect();
        digest.update(lines);
        HEXLOWER.encode(&digest.finalize())
    });
    &RULES
}

/// Key of a word in an index: its beginning.
#[cfg(feature = "store")]
pub(super) fn key_of(word: &str) -> &str {
    let mut end = word.len().min(KEY);
    while !word.is_char_boundary(end) {
        end -= 1;
    }
    &word[..end]
}

/// Key of two words that follow each other, which are a character each.
#[cfg(feature = "store")]
pub(super) fn pair_of<'p>(pair: &'p mut String, first: &str, second: &str) -> &'p str {
    pair.clear();
    pair.push_str(first);
    pair.push_str(second);
    pair
}

/// True for a word that is a character of a script without spaces.
#[cfg(feature = "store")]
pub(super) fn is_single(word: &str) -> bool {
    word.chars().next().is_some_and(is_unspaced)
}

impl Kind {
    fn of(character: char) -> Self {
        let category = category(character);
        let mark = GeneralCategoryGroup::Mark.contains(category);
        let letter = GeneralCategoryGroup::Letter.contains(category) || GeneralCategoryGroup::Number.contains(category);
        match (letter, mark) {
            (false, false) => Self::Between,
            _ if is_unspaced(character) => Self::Single,
            (true, _) => Self::Letter,
            (false, true) => Self::Mark,
        }
    }
}

/// True for characters that words consist of, also those that words are compared without.
pub(super) fn is_within_word(character: char) -> bool {
    Kind::of(character) != Kind::Between || is_ignored(character)
}

/// Characters as they are compared.
fn folded(characters: impl Iterator<Item = char>) -> impl Iterator<Item = char> {
    let decomposed = DecomposingNormalizerBorrowed::new_nfkd().normalize_iter(characters);
    let folded = decomposed.filter(|character| !is_ignored(*character)).flat_map(without_case);
    ComposingNormalizerBorrowed::new_nfc().normalize_iter(folded)
}

fn category(character: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(character)
}

/// The small letters of a character. By way of the large ones, as case folding: `ß` becomes `ss`, and both forms of sigma one.
/// Small ones come before these, because `ẞ` is large and has no other large form.
fn without_case(character: char) -> impl Iterator<Item = char> {
    character.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

/// True for accents, optional vowels, and characters without a form, which words are compared without.
fn is_ignored(character: char) -> bool {
    /// The space without a width.
    const SPACE: char = '\u{200b}';
    /// The Arabic line that stretches a word.
    const STRETCH: char = '\u{640}';
    match category(character) {
        GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark => is_accent(character),
        GeneralCategory::Format => character != SPACE,
        _ => character == STRETCH,
    }
}

/// True for marks of Latin, Greek, Cyrillic, Hebrew and Arabic, of symbols, and for selectors of variants.
fn is_accent(mark: char) -> bool {
    matches!(mark,
        '\u{300}'..='\u{36f}'
        | '\u{483}'..='\u{489}'
        | '\u{591}'..='\u{5c7}'
        | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}'
        | '\u{670}'
        | '\u{6d6}'..='\u{6ed}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{fe20}'..='\u{fe2f}'
        | '\u{e0100}'..='\u{e01ef}')
}

/// True for characters of scripts without spaces between words, and for Korean, whose words have endings without a space.
fn is_unspaced(character: char) -> bool {
    matches!(character,
        // Thai and Lao.
        '\u{e00}'..='\u{eff}'
        // Burmese.
        | '\u{1000}'..='\u{109f}'
        | '\u{a9e0}'..='\u{a9ff}'
        | '\u{aa60}'..='\u{aa7f}'
        // Korean.
        | '\u{1100}'..='\u{11ff}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7ff}'
        // Khmer.
        | '\u{1780}'..='\u{17ff}'
        // Chinese and Japanese.
        | '\u{2e80}'..='\u{2fdf}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3021}'..='\u{302f}'
        | '\u{3031}'..='\u{3035}'
        | '\u{303b}'
        | '\u{3041}'..='\u{31bf}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{1aff0}'..='\u{1b16f}'
        | '\u{20000}'..='\u{3ffff}')
}
