//! Words and queries, compared with lists and trees that the tests write down themselves.

use super::*;
use crate::cases::each;
use crate::error::ErrorKind;
use crate::memory;

fn words_of(text: &str) -> Vec<String> {
    let mut words = Words::default();
    words.read(text).expect("words");
    assert_eq!(words.len(), words.iter().count());
    words.iter().map(str::to_owned).collect()
}

fn matches(text: &str, query: &str) -> bool {
    let mut words = Words::default();
    words.read(text).expect("words");
    Query::parse(query).and_then(|query| query.matches(&words)).unwrap_or_else(|error| panic!("{query}: {error}"))
}

#[test]
fn texts_become_words_without_case_and_accents() {
    let cases = [
        ("", &[][..]),
        ("  ,;!", &[]),
        ("Battery FIRE, again!", &["battery", "fire", "again"]),
        ("wi-fi example.com don't 3.5", &["wi", "fi", "example", "com", "don", "t", "3", "5"]),
        ("snake_case #tag @name", &["snake", "case", "tag", "name"]),
        ("Café cafe\u{301} CAFÉ", &["cafe", "cafe", "cafe"]),
        ("Straße STRASSE STRAẞE", &["strasse", "strasse", "strasse"]),
        ("Σίσυφος ΣΊΣΥΦΟΣ", &["σισυφοσ", "σισυφοσ"]),
        ("İstanbul ISTANBUL", &["istanbul", "istanbul"]),
        ("ёлка Ёлка елка", &["елка", "елка", "елка"]),
        ("ﬁre ＦＩＲＥ ①", &["fire", "fire", "1"]),
        ("so\u{ad}ft a\u{200d}b c\u{200b}d", &["soft", "ab", "c", "d"]),
        ("שָׁלוֹם كِتَاب كـتاب", &["שלום", "كتاب", "كتاب"]),
        ("हिन्दी भाषा", &["हिन्दी", "भाषा"]),
        ("電池が発火", &["電", "池", "が", "発", "火"]),
        ("ｶﾞｽ ガス カ\u{3099}ス", &["ガ", "ス", "ガ", "ス", "ガ", "ス"]),
        ("か が", &["か", "が"]),
        ("리콜을 \u{1105}\u{1175}\u{110f}\u{1169}\u{11af}", &["리", "콜", "을", "리", "콜"]),
        ("iPhoneの電池", &["iphone", "の", "電", "池"]),
        ("ไฟ", &["ไ", "ฟ"]),
        ("🔥fire🔥", &["fire"]),
    ];
    each(cases, |(text, right)| {
        assert_eq!(words_of(text), right, "{text}");
    });
}

/// All characters that may change: those that are left out are ideographs, or have no meaning.
fn characters() -> impl Iterator<Item = char> {
    ('\0'..='\u{1ffff}').chain('\u{2f800}'..='\u{2fa1f}')
}

#[test]
fn words_of_words_are_the_same() {
    for character in characters() {
        let words = words_of(&format!("a{character}b {character}"));
        assert_eq!(words_of(&words.join(" ")), words, "{character:?}");
    }
}

#[test]
fn a_character_is_the_same_in_small_and_large_letters() {
    // The small iota below a Greek vowel is an accent, but a letter beside a large vowel.
    let has_iota = |character: char| {
        matches!(character,
            '\u{345}'
            | '\u{1f80}'..='\u{1faf}'
            | '\u{1fb2}'..='\u{1fb4}' | '\u{1fb7}' | '\u{1fbc}'
            | '\u{1fc2}'..='\u{1fc4}' | '\u{1fc7}' | '\u{1fcc}'
            | '\u{1ff2}'..='\u{1ff4}' | '\u{1ff7}' | '\u{1ffc}')
    };
    for character in characters().filter(|character| !has_iota(*character)) {
        let words = words_of(&character.to_string());
        for other in [character.to_lowercase().to_string(), character.to_uppercase().to_string()] {
            assert_eq!(words_of(&other), words, "{character:?} and {other:?}");
        }
    }
}

#[test]
fn queries_select_texts() {
    let text = "Recall: a Battery fire in the Wi-Fi router. 電池が発火した。";
    let cases = [
        ("recall", true),
        ("RECALL fire", true),
        ("recall AND fire", true),
        ("recall water", false),
        ("water OR fire", true),
        ("recall or fire", false),
        ("\"battery fire\"", true),
        ("\"fire battery\"", false),
        ("“battery fire”", true),
        ("«battery fire»", true),
        ("wi-fi", true),
        ("wifi", false),
        ("\"fire in\" -water", true),
        ("fire -battery", false),
        ("fire –battery", false),
        ("fire NOT battery", false),
        ("-water", true),
        ("-(fire OR water)", false),
        ("NOT (water OR smoke)", true),
        ("batter*", true),
        ("batt", false),
        ("\"battery fi*\"", true),
        ("\"battery i*\"", false),
        ("water OR fire -recall", false),
        ("fire OR water -recall", true),
        ("(fire OR water) -recall", false),
        ("（fire OR water）-smoke", true),
        ("電池", true),
        ("池電", false),
        ("電*", true),
        ("発火 OR 火災", true),
        ("\"電池が 発火\"", true),
        ("電 火", true),
    ];
    each(cases, |(query, right)| {
        assert_eq!(matches(text, query), right, "{query}");
    });
    for (text, query) in [("STRAẞE", "straße"), ("strasse", "STRAẞE"), ("straße", "STRAẞ*")] {
        assert!(matches(text, query), "{query} in {text}");
    }
}

#[test]
fn a_wrong_query_names_the_place() {
    let cases = [
        ("", 1),
        ("   ", 4),
        ("fire OR", 8),
        ("OR fire", 1),
        ("fire AND OR water", 10),
        ("fire (water", 6),
        ("fire) water", 5),
        ("()", 2),
        ("fire \"water", 6),
        ("fire \"\"", 7),
        ("fire - water", 6),
        ("feu – eau", 5),
        ("fire --water", 7),
        ("fire !!", 6),
        ("fi*re", 1),
        ("*fire", 1),
        ("fire *", 6),
        ("fire! fir.*", 7),
        ("\"b* fire\"", 2),
        ("é NOT", 6),
    ];
    each(cases, |(query, place)| {
        let error = Query::parse(query).expect_err(query);
        assert_eq!(error.kind(), ErrorKind::Query, "{query}: {error}");
        assert!(error.to_string().contains(&format!("at character {place};")), "{query}: {error}");
    });
}

#[test]
fn queries_are_bounded() {
    for query in ["a ".repeat(300), "a".repeat(5_000), "-".repeat(5_000)] {
        assert_eq!(Query::parse(&query).expect_err("too long").kind(), ErrorKind::TooLarge);
    }
    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Query::parse(&nested(16)).is_ok());
    assert_eq!(Query::parse(&nested(17)).expect_err("too deep").kind(), ErrorKind::Query);
}

/// The values were computed manually, from the formula in docs/tables.md.
#[test]
fn scores_grow_with_occurrences_and_shrink_with_length() {
    let score = |text: &str, query: &str| {
        let mut words = Words::default();
        words.read(text).expect("words");
        Query::parse(query).and_then(|query| query.score(&words)).expect("a score")
    };
    let filled = |words: usize| format!("fire{}", " x".repeat(words - 1));
    assert!((score(&filled(40), "fire") - 1.0).abs() < 1e-12);
    assert!((score(&filled(40), "fire x") - (1.0 + 39.0 * 2.2 / 40.2)).abs() < 1e-12);
    assert!((score(&filled(80), "fire") - 2.2 / 3.1).abs() < 1e-12);
    assert_eq!(score("fire", "water"), 0.0);
    assert_eq!(score("fire", "-water"), 0.0);
    assert_eq!(score("fire water", "fire -water"), 0.0);
    assert!(score("fire and fire", "fire") > score("fire and water", "fire"));
}

/// Texts with as many words for their length as there can be, and as much of them.
#[test]
fn words_take_no_more_memory_than_was_asked_for() {
    for (text, share) in
        [("a ", 5), ("電", 14), ("\u{fdfa}", 32), ("\u{3316}", 32), ("e\u{301}", 32), ("\u{94d}", 32), ("x", 32)]
    {
        let text = text.repeat((1 << 20) / text.len());
        let mut words = Words::default();
        words.read(&text).expect("words");
        assert!(
            words.held() <= share * text.len(),
            "{} bytes for {} of {:?}",
            words.held(),
            text.len(),
            text.chars().next()
        );
    }
}

/// Both take long for long texts.
#[tokio::test]
async fn reading_and_searching_end_with_their_statement() {
    memory::tests::counted();
    let statement = std::sync::Arc::new(memory::StatementMemory::default());
    let mut words = Words::default();
    memory::within(&statement, async {
        words.read(&"a b ".repeat(50_000)).expect("words");
        let queries = ["nowhere", "a", "\"b c\""].map(|query| Query::parse(query).expect("a query"));
        assert_eq!(queries.each_ref().map(|query| query.matches(&words).expect("it goes on")), [false, true, false]);
        statement.end();
        for query in &queries {
            assert_eq!(query.score(&words).expect_err("it has ended").kind(), ErrorKind::Memory);
        }
        for text in ["a".repeat(1 << 20), "é".repeat(1 << 20), "a b".to_owned()] {
            assert_eq!(words.read(&text).expect_err("it has ended").kind(), ErrorKind::Memory);
        }
    })
    .await;
}

/// Words in several spellings, and each without case and accents, written manually.
/// Two are longer than a key of an index.
const SPELLINGS: [(&[&str], &[&str]); 17] = [
    (&["recall", "Recall", "RÉCALL", "ＲＥＣＡＬＬ"], &["recall"]),
    (&["fire", "FIRE", "ﬁre"], &["fire"]),
    (&["firearm"], &["firearm"]),
    (
        &["Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"],
        &["donaudampfschifffahrtselektrizitatenhauptbetriebswerkbauunterbeamtengesellschaft"],
    ),
    // Its byte 48 is within a character.
    (&["aΛΛΛΛΛΛΛΛΛΛΛΛΛΛΛΛΛΛΛΛΛΛΛΛΛΛΛΛΛΛ"], &["aλλλλλλλλλλλλλλλλλλλλλλλλλλλλλλ"]),
    (&["Straße", "STRASSE", "STRAẞE"], &["strasse"]),
    (&["café", "cafe\u{301}", "CAFE"], &["cafe"]),
    (&["wi-fi", "Wi\u{2011}Fi"], &["wi", "fi"]),
    (&["don't"], &["don", "t"]),
    (&["йод", "ИОД", "и\u{306}од"], &["иод"]),
    (&["Σίσυφος", "ΣΙΣΥΦΟΣ"], &["σισυφοσ"]),
    (&["हिन्दी"], &["हिन्दी"]),
    (&["電池"], &["電", "池"]),
    (&["池電"], &["池", "電"]),
    (&["電"], &["電"]),
    (&["ｶﾞｽ", "ガス"], &["ガ", "ス"]),
    (&["리콜", "\u{1105}\u{1175}\u{110f}\u{1169}\u{11af}"], &["리", "콜"]),
];

/// A small generator of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).expect("a small number")
    }

    /// A word in one of its spellings, and what it is.
    fn word(&mut self) -> (&'static str, &'static [&'static str]) {
        let (spellings, words) = SPELLINGS[self.below(SPELLINGS.len())];
        (spellings[self.below(spellings.len())], words)
    }
}

/// A query as the test evaluates it.
enum Tree {
    Words { words: Vec<String>, open: bool },
    All(Vec<Tree>),
    Any(Vec<Tree>),
    Not(Box<Tree>),
}

impl Tree {
    /// A random query, and its text.
    fn random(numbers: &mut Numbers, depth: usize) -> (Self, String) {
        match numbers.below(if depth == 0 { 4 } else { 8 }) {
            0 | 1 => {
                let (text, words) = numbers.word();
                (Self::Words { words: words.iter().map(|word| (*word).to_owned()).collect(), open: false }, text.into())
            }
            2 => {
                let (mut words, mut texts) = (Vec::new(), Vec::new());
                for _ in 0..=numbers.below(3) {
                    let (text, more) = numbers.word();
                    words.extend(more.iter().map(|word| (*word).to_owned()));
                    texts.push(text);
                }
                (Self::Words { words, open: false }, format!("\"{}\"", texts.join(" ")))
            }
            3 => {
                let (_, words) = numbers.word();
                let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
                let last = words.pop().expect("a word");
                let letters = last.chars().count();
                let beginning: String = last.chars().take(1 + numbers.below(letters)).collect();
                words.push(beginning);
                let text = format!("\"{}*\"", words.join(" "));
                (Self::Words { words, open: true }, text)
            }
            4 => {
                let (tree, text) = Self::random(numbers, 0);
                let sign = ["-", "NOT ", "−"][numbers.below(3)];
                (Self::Not(Box::new(tree)), format!("{sign}{text}"))
            }
            choice => {
                let parts: Vec<_> = (0..2 + numbers.below(2)).map(|_| Self::random(numbers, depth - 1)).collect();
                let (trees, texts): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
                let text = |between: &str| format!("({})", texts.join(between));
                match choice {
                    5 => (Self::All(trees), text(" ")),
                    6 => (Self::All(trees), text(" AND ")),
                    _ => (Self::Any(trees), text(" OR ")),
                }
            }
        }
    }

    fn holds(&self, text: &[&str]) -> bool {
        match self {
            Self::All(trees) => trees.iter().all(|tree| tree.holds(text)),
            Self::Any(trees) => trees.iter().any(|tree| tree.holds(text)),
            Self::Not(tree) => !tree.holds(text),
            Self::Words { words, open } => text.windows(words.len()).any(|part| {
                let (last, before) = (words.len() - 1, &words[..words.len() - 1]);
                let ends = if *open { part[last].starts_with(&words[last]) } else { part[last] == words[last] };
                ends && part[..last] == *before
            }),
        }
    }
}

#[test]
fn random_queries_select_the_texts_that_a_naive_search_selects() {
    let between = [" ", ", ", ". ", "\n", " 🔥 ", "/", " – ", "。", "\u{200b}"];
    let (mut numbers, mut matched) = (Numbers(46), 0);
    for case in 0..4_000 {
        let (mut text, mut right) = (String::new(), Vec::new());
        for _ in 0..numbers.below(9) {
            let (spelling, words) = numbers.word();
            text.push_str(spelling);
            text.push_str(between[numbers.below(between.len())]);
            right.extend_from_slice(words);
        }
        let (tree, query) = Tree::random(&mut numbers, 2);
        let mut words = Words::default();
        words.read(&text).expect("words");
        let parsed = Query::parse(&query).unwrap_or_else(|error| panic!("case {case}: {query}: {error}"));
        let found = parsed.matches(&words).expect("memory");
        assert_eq!(found, tree.holds(&right), "case {case}: {query:?} in {text:?}");
        matched += usize::from(found);
        #[cfg(feature = "store")]
        if found && let Some(sought) = parsed.sought() {
            let mut keys = std::collections::BTreeSet::new();
            words.for_each_key(|key| {
                keys.insert(key.to_owned());
            });
            assert!(is_found(&sought, &keys), "case {case}: {query:?} in {text:?}: {sought:?}");
        }
    }
    assert!((500..3_500).contains(&matched), "{matched} of 4,000 matched");
}

/// True if a text with these keys is among those that an index finds.
#[cfg(feature = "store")]
fn is_found(sought: &Sought, keys: &std::collections::BTreeSet<String>) -> bool {
    match sought {
        Sought::Key(key) => keys.contains(key),
        Sought::Beginning(beginning) => keys.iter().any(|key| key.starts_with(beginning.as_str())),
        Sought::All(all) => all.iter().all(|sought| is_found(sought, keys)),
        Sought::Any(any) => any.iter().any(|sought| is_found(sought, keys)),
    }
}

/// A query narrows the rows of an index as far as its words do.
#[cfg(feature = "store")]
#[test]
fn keys_of_a_query() {
    let key = |key: &str| Sought::Key(key.to_owned());
    let sought = |query: &str| Query::parse(query).expect("a query").sought();
    assert_eq!(sought("Fire"), Some(key("fire")));
    assert_eq!(sought("\"battery fi*\""), Some(Sought::All(vec![key("battery"), Sought::Beginning("fi".into())])));
    assert_eq!(sought("電池火災"), Some(Sought::All(vec![key("電池"), key("池火"), key("火災")])));
    assert_eq!(sought("電*"), Some(key("電")));
    assert_eq!(sought("fire -water"), Some(key("fire")));
    assert_eq!(sought("fire OR 電池"), Some(Sought::Any(vec![key("fire"), key("電池")])));
    let beginning = |beginning: &str| Sought::Beginning(beginning.to_owned());
    assert_eq!(sought("fi* OR b OR fire* OR first OR fi*"), Some(Sought::Any(vec![key("b"), beginning("fi")])));
    assert_eq!(sought("fire OR fi*"), Some(beginning("fi")));
    assert_eq!(sought("fire OR -water"), None);
    assert_eq!(sought("-water"), None);
    let long = "x".repeat(60);
    assert_eq!(sought(&long), Some(key(&long[..48])));
}
