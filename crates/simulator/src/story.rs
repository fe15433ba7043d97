//! The words of generated mentions: titles, texts and names of authors that read like mentions of the saved search.
//!
//! A fixed story, told relative to the `now` of the corpus, gives demonstrations something to find: quiet weeks, a launch
//! twelve days ago, a recall or an outage five days ago that lasts two days, then apologies. The age of a mention chooses
//! the chapter, its sentiment the tone, its source the voice (news, review, post, question), its language the words, which
//! are in `story/*.txt`. Only the words follow the story. The number of mentions does not, because times are generated
//! elsewhere and tests depend on them.
//!
//! Invariant: words depend only on the seed and the id of a mention, the fields that it already has, and `now`. Nothing
//! here draws from the generator's random numbers, so a change of words moves no other field. Brands, products and
//! people are fictional.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use chrono::{DateTime, TimeDelta, Utc};

use super::dataset::Facts;

/// Hours since the later chapters began. The first chapter is everything before the launch.
const LAUNCH: i64 = 12 * 24;
const CRISIS: i64 = 5 * 24;
const RECOVERY: i64 = 3 * 24;
/// Mentions with this reach have titles, so that the top mentions tell the story.
const FAR: i64 = 90_000;

const PHASES: [&str; 5] = ["quiet", "launch", "recall", "outage", "recovery"];
const SENTIMENTS: [&str; 3] = ["positive", "neutral", "negative"];
/// Position in [`SENTIMENTS`], also for mentions without a sentiment.
const NEUTRAL: usize = 1;
/// Voices, and the register that serves a voice without lines of its own.
const VOICES: [(&str, usize); 4] = [("news", 0), ("review", 0), ("social", 1), ("forum", 1)];
const REGISTERS: [&str; 2] = ["formal", "casual"];
/// From 3, because some languages have other forms for 2.
const NUMBERS: [&str; 7] = ["3", "4", "5", "6", "7", "8", "9"];

/// The prefix of the names of saved searches, brand, launched product, older product, and what goes wrong.
const BRANDS: [(&str, &str, &str, &str, Phase); 11] = [
    ("Acme", "Acme", "Acme One", "Acme Go", Phase::Recall),
    ("Initech", "Initech", "Initech Ledger", "Initech Forms", Phase::Outage),
    ("Globex", "Globex", "Globex Connect", "Globex Mail", Phase::Outage),
    ("Umbrella", "Umbrella", "Umbrella Pulse", "Umbrella Therm", Phase::Recall),
    ("Wayne", "Wayne", "Wayne Pass", "Wayne Card", Phase::Outage),
    ("Stark", "Stark", "Stark Cell", "Stark Panel", Phase::Recall),
    ("Hooli", "Hooli", "Hooli Box", "Hooli Chat", Phase::Outage),
    ("Soylent", "Soylent", "Soylent FreshCheck", "Soylent Scale", Phase::Recall),
    ("Tyrell", "Tyrell", "Tyrell Iris", "Tyrell Lens", Phase::Recall),
    ("Cyberdyne", "Cyberdyne", "Cyberdyne Scribe", "Cyberdyne Translate", Phase::Outage),
    ("Größenwahn", "Größenwahn & Söhne", "Brühwerk Due", "Brühwerk", Phase::Recall),
];

const FIRST_NAMES: [&str; 20] = [
    "Alba", "Amir", "Bruna", "Clément", "Dalia", "Edda", "Emil", "Farid", "Greta", "Haruka", "Ines", "Jonas", "Kenji",
    "Lucía", "Mads", "Nadia", "Oskar", "Priya", "Samira", "Tomás",
];
const LAST_NAMES: [&str; 20] = [
    "Abendroth",
    "Alcázar",
    "Bellweather",
    "Brightwater",
    "Castellan",
    "Delacroix",
    "Ekwall",
    "Farrow",
    "Grünfeld",
    "Haddad",
    "Ishikawa",
    "Juvonen",
    "Kestrel",
    "Lindqvist",
    "Marlowe",
    "Okonjo",
    "Pemberly",
    "Quintero",
    "Rosenthal",
    "Vasconcelos",
];

static LANGUAGES: LazyLock<[Language; 6]> = LazyLock::new(|| {
    [
        ("en", include_str!("story/en.txt")),
        ("de", include_str!("story/de.txt")),
        ("fr", include_str!("story/fr.txt")),
        ("es", include_str!("story/es.txt")),
        ("ja", include_str!("story/ja.txt")),
        ("ar", include_str!("story/ar.txt")),
    ]
    .map(|(code, words)| Language::parse(code, words))
});

/// A chapter of the story: position in [`PHASES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Quiet,
    Launch,
    Recall,
    Outage,
    Recovery,
}

/// A way to write that depends on the source: position in [`VOICES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    News,
    Review,
    Social,
    Forum,
}

impl Voice {
    fn of(source: Option<&str>) -> Self {
        match source {
            Some("x.com" | "instagram.com") => Self::Social,
            Some("reddit.com") => Self::Forum,
            Some("blog.example.net" | "youtube.com") => Self::Review,
            _ => Self::News,
        }
    }
}

/// A title and the first sentences of the text.
type Line = (&'static str, &'static str);

/// The words of a language. Blanks in braces are filled by [`Blanks`].
struct Language {
    code: &'static str,
    /// By phase, sentiment and voice.
    tales: [[[Vec<Line>; 4]; 3]; 5],
    /// Sentences that fit every phase, by sentiment and register.
    remarks: [[Vec<&'static str>; 2]; 3],
    /// Questions that end a forum post.
    questions: Vec<&'static str>,
    /// The price, the design and so on, with the article.
    aspects: Vec<&'static str>,
    recall: &'static str,
    outage: &'static str,
    /// Label of the keyword.
    topic: &'static str,
    /// Cities by country; the entry without a country serves mentions of unknown origin.
    places: HashMap<&'static str, Vec<&'static str>>,
}

impl Language {
    /// Parses a file of sections. A section begins with a line `# NAME`; its other lines are sentences, lists with
    /// ` ~ ` between the items, or `TITLE ~ TEXT`.
    fn parse(code: &'static str, words: &'static str) -> Self {
        let mut sections: HashMap<&'static str, Vec<&'static str>> = HashMap::new();
        let mut section = "";
        for line in words.lines().filter(|line| !line.is_empty()) {
            match line.strip_prefix("# ") {
                Some(name) => section = name,
                None => sections.entry(section).or_default().push(line),
            }
        }
        let sentences = |name: &str| sections.get(name).cloned().unwrap_or_default();
        let word = |name: &str| sentences(name).first().copied().unwrap_or_default();
        let items = |name: &str| word(name).split(" ~ ").collect::<Vec<&'static str>>();
        let lines = |phase: &str, sentiment: &str, (voice, register): (&str, usize)| {
            let own = sentences(&format!("{phase} {sentiment} {voice}"));
            let shared = sentences(&format!("{phase} {sentiment} {}", REGISTERS[register]));
            let lines = own.into_iter().chain(shared);
            lines.filter_map(|line| line.split_once(" ~ ")).collect::<Vec<Line>>()
        };
        let countries = sections.keys().filter_map(|name| Some((*name, name.strip_prefix("places")?.trim_start())));
        Self {
            code,
            tales: PHASES.map(|phase| SENTIMENTS.map(|sentiment| VOICES.map(|voice| lines(phase, sentiment, voice)))),
            remarks: SENTIMENTS
                .map(|sentiment| REGISTERS.map(|register| sentences(&format!("remarks {sentiment} {register}")))),
            questions: sentences("questions"),
            aspects: items("aspects"),
            recall: word("recall"),
            outage: word("outage"),
            topic: word("topic"),
            places: countries.map(|(name, country)| (country, items(name))).collect(),
        }
    }

    /// Returns the language of a mention, English if unknown.
    fn of(code: Option<&str>) -> &'static Self {
        let languages = &*LANGUAGES;
        languages.iter().find(|language| Some(language.code) == code).unwrap_or(&languages[0])
    }
}

/// The part of the story that all mentions of a saved search share: brand, products, and the present.
#[derive(Debug)]
pub(super) struct Setting {
    brand: Cow<'static, str>,
    /// The product of the launch.
    product: Cow<'static, str>,
    /// The product before the launch.
    staple: Cow<'static, str>,
    /// Hashtag of the brand.
    tag: String,
    /// The recall, for devices, or the outage, for services.
    crisis: Phase,
    now: DateTime<Utc>,
}

impl Setting {
    /// Creates the setting of a saved search. Names that are not the generator's become brands themselves.
    pub(super) fn new(search: &str, now: DateTime<Utc>) -> Self {
        type Words = (Cow<'static, str>, Cow<'static, str>, Cow<'static, str>, Phase);
        let (brand, product, staple, crisis): Words = match BRANDS.iter().find(|known| search.starts_with(known.0)) {
            Some(&(_, brand, product, staple, crisis)) => (brand.into(), product.into(), staple.into(), crisis),
            None => {
                let (product, staple) = (format!("{search} Plus"), format!("{search} Classic"));
                (search.to_owned().into(), product.into(), staple.into(), Phase::Outage)
            }
        };
        let tag = brand.chars().take_while(|c| c.is_alphanumeric()).collect();
        Self { brand, product, staple, tag, crisis, now }
    }

    /// True for mentions that always have a title: those of the last day, which a first query shows, and those with a
    /// large reach.
    pub(super) fn titled(&self, facts: &Facts) -> bool {
        self.now - facts.published <= TimeDelta::days(1) || facts.reach.is_some_and(|reach| reach >= FAR)
    }

    /// Writes the title and the text of a mention. Equal seeds and ids give equal words.
    pub(super) fn tell(&self, facts: &Facts, seed: u64) -> (String, String) {
        let mut draws = Draws::new(seed, &facts.id);
        let language = Language::of(facts.language.as_deref());
        let sentiment = SENTIMENTS.iter().position(|label| facts.sentiment.as_deref() == Some(*label));
        let sentiment = sentiment.unwrap_or(NEUTRAL);
        let voice = Voice::of(facts.source.as_deref());
        let (_, register) = VOICES[voice as usize];
        let lines = &language.tales[self.phase(facts.published) as usize][sentiment][voice as usize];
        let (headline, lead) = draws.pick(lines);
        let blanks = self.blanks(language, facts, &mut draws);
        let mut title = String::with_capacity(96);
        blanks.fill(headline, &mut title);
        let mut text = String::with_capacity(512);
        blanks.fill(lead, &mut text);

        let remarks = &language.remarks[sentiment][register];
        let first = draws.index(remarks.len());
        let second = first + 1 + draws.index(remarks.len().saturating_sub(1));
        let mut more: Vec<&str> = remarks.iter().cycle().skip(first).take(1).copied().collect();
        // One in six is long, in paragraphs.
        let long = voice != Voice::Social && draws.index(6) == 0;
        if long {
            more = remarks.clone();
            if sentiment != NEUTRAL {
                more.extend(&language.remarks[NEUTRAL][register]);
            }
        } else if voice != Voice::Social {
            more.extend(remarks.iter().cycle().skip(second).take(1));
        }
        if voice == Voice::Forum {
            more.push(draws.pick(&language.questions));
        }
        for sentence in more {
            let gap = if text.ends_with('。') { "" } else { " " };
            text.push_str(if long { "\n\n" } else { gap });
            self.blanks(language, facts, &mut draws).fill(sentence, &mut text);
        }
        self.label(language, facts, voice, &mut text);
        (title, text)
    }

    /// Adds the keyword that the overview counts, and the hashtag.
    fn label(&self, language: &Language, facts: &Facts, voice: Voice, text: &mut String) {
        if voice != Voice::Social {
            if let Some(keyword) = &facts.keyword {
                text.push_str(&format!("\n\n{}: {keyword}", language.topic));
            }
            return;
        }
        text.push_str(&format!(" #{}", self.tag));
        let hashtag = facts.hashtag.as_ref().filter(|hashtag| facts.keyword.as_ref() != Some(*hashtag));
        for word in facts.keyword.iter().chain(hashtag) {
            text.push_str(&format!(" #{word}"));
        }
    }

    fn phase(&self, at: DateTime<Utc>) -> Phase {
        match (self.now - at).num_hours() {
            ..RECOVERY => Phase::Recovery,
            RECOVERY..CRISIS => self.crisis,
            CRISIS..LAUNCH => Phase::Launch,
            _ => Phase::Quiet,
        }
    }

    fn blanks<'a>(&'a self, language: &'a Language, facts: &Facts, draws: &mut Draws) -> Blanks<'a> {
        let country = facts.country.as_deref().unwrap_or_default();
        let places = language.places.get(country).or_else(|| language.places.get(""));
        let crisis = if self.crisis == Phase::Recall { language.recall } else { language.outage };
        Blanks {
            setting: self,
            place: draws.pick(places.map(Vec::as_slice).unwrap_or_default()),
            number: draws.pick(&NUMBERS),
            aspect: draws.pick(&language.aspects),
            crisis,
        }
    }
}

/// The words for the blanks of a template.
struct Blanks<'a> {
    setting: &'a Setting,
    place: &'a str,
    number: &'a str,
    aspect: &'a str,
    crisis: &'a str,
}

impl Blanks<'_> {
    fn fill(&self, template: &str, text: &mut String) {
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            text.push_str(before);
            text.push_str(self.word(name).unwrap_or_default());
            rest = after;
        }
        text.push_str(rest);
    }

    fn word(&self, name: &str) -> Option<&str> {
        Some(match name {
            "brand" => &*self.setting.brand,
            "product" => &*self.setting.product,
            "staple" => &*self.setting.staple,
            "place" => self.place,
            "number" => self.number,
            "aspect" => self.aspect,
            "crisis" => self.crisis,
            _ => return None,
        })
    }
}

/// Returns the name of an author, always the same for a handle.
pub(super) fn name_of(handle: &str) -> String {
    let mut draws = Draws::new(0, handle);
    format!("{} {}", draws.pick(&FIRST_NAMES), draws.pick(&LAST_NAMES))
}

/// Numbers drawn from a seed and an id, by SplitMix64.
struct Draws(u64);

impl Draws {
    fn new(seed: u64, id: &str) -> Self {
        // FNV-1a, which stays the same in every version of Rust.
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(seed ^ id.bytes().fold(0xcbf2_9ce4_8422_2325, hash))
    }

    /// Draws an index of a list of this length, 0 if it is empty.
    fn index(&mut self, len: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let drawn = (mixed ^ (mixed >> 31)).checked_rem(len as u64).unwrap_or_default();
        usize::try_from(drawn).unwrap_or_default()
    }

    fn pick<T: Copy + Default>(&mut self, from: &[T]) -> T {
        from.get(self.index(from.len())).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;

    use super::*;
    use crate::cases::each;
    use crate::{Corpus, CorpusSpec, Mention, dataset};

    const NAMES: [&str; 7] = ["brand", "product", "staple", "place", "number", "aspect", "crisis"];

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_780_000_000, 0).expect("an instant")
    }

    fn corpus(seed: u64, searches: usize, mentions: usize) -> Corpus {
        Corpus::generate(CorpusSpec { seed, searches, mentions, now: now() })
    }

    fn record(mention: &Mention) -> Value {
        serde_json::from_str(&mention.json()).expect("a record")
    }

    #[test]
    fn equal_seeds_tell_equal_stories() {
        let words = |seed| -> Vec<(Value, Value)> {
            let corpus = corpus(seed, 2, 200);
            let records = corpus.searches.iter().flat_map(|search| &search.mentions).map(|mention| record(mention));
            records.map(|record| (record["title"].clone(), record["text"].clone())).collect()
        };
        assert_eq!(words(1), words(1));
        assert_ne!(words(1), words(2));
        assert_eq!(name_of("user7"), name_of("user7"));
    }

    #[test]
    fn every_slot_has_lines_and_every_brace_a_name() {
        let check = |template: &str| {
            assert!(!template.is_empty());
            let mut rest = template;
            while let Some((before, after)) = rest.split_once('{') {
                assert!(!before.contains('}'), "{template}");
                let (name, after) = after.split_once('}').expect(template);
                assert!(NAMES.contains(&name), "{template}");
                rest = after;
            }
            assert!(!rest.contains('}'), "{template}");
        };
        for language in LANGUAGES.iter() {
            let mut count = 0;
            for (phase, sentiments) in language.tales.iter().enumerate() {
                for (sentiment, voices) in sentiments.iter().enumerate() {
                    for (lines, (voice, _)) in voices.iter().zip(VOICES) {
                        let place = (language.code, PHASES[phase], SENTIMENTS[sentiment], voice);
                        assert!(!lines.is_empty(), "{place:?}");
                        count += lines.len();
                        lines.iter().for_each(|(title, text)| [*title, *text].into_iter().for_each(check));
                    }
                }
            }
            assert!(count >= 60, "{}: {count} lines", language.code);
            let remarks = language.remarks.iter().flatten();
            assert!(remarks.clone().all(|sentences| sentences.len() >= 2), "{}", language.code);
            remarks.flatten().chain(&language.questions).chain(&language.aspects).copied().for_each(check);
            [language.recall, language.outage, language.topic].into_iter().for_each(check);
            assert!(language.questions.len() >= 2 && language.aspects.len() >= 4, "{}", language.code);
            for country in dataset::COUNTRIES.iter().chain(&[""]) {
                assert!(language.places[country].len() >= 3, "{} {country}", language.code);
            }
        }
    }

    #[test]
    fn the_generator_knows_no_other_languages_sources_and_brands() {
        let codes: Vec<_> = LANGUAGES.iter().map(|language| language.code).collect();
        assert_eq!(codes, dataset::LANGUAGES);
        for search in &corpus(1, 24, 24).searches {
            assert!(BRANDS.iter().any(|known| search.name.starts_with(known.0)), "{}", search.name);
        }
        let voices: Vec<_> = dataset::SOURCES.iter().map(|source| Voice::of(Some(source.0))).collect();
        for voice in [Voice::News, Voice::Review, Voice::Social, Voice::Forum] {
            assert!(voices.contains(&voice), "{voice:?}");
        }
        let other = Setting::new("delta-rs", now());
        assert_eq!((&*other.brand, &*other.product, &*other.tag), ("delta-rs", "delta-rs Plus", "delta"));
    }

    #[test]
    fn the_newest_mentions_have_titles_and_some_others_have_none() {
        let corpus = corpus(1, 12, 20_000);
        let titles = |mentions: &[Arc<Mention>]| -> Vec<bool> {
            mentions.iter().map(|mention| record(mention)["title"].is_string()).collect()
        };
        let largest = corpus.search("183772").expect("the first saved search");
        assert_eq!(titles(&largest.mentions[largest.mentions.len() - 5..]), [true; 5]);
        let own: Vec<_> = corpus.searches.iter().filter(|search| search.team == 0).collect();
        let mut newest: Vec<_> = own.iter().flat_map(|search| search.mentions.iter().rev().take(5).cloned()).collect();
        newest.sort_by_key(|mention| std::cmp::Reverse(mention.facts.published));
        assert_eq!(titles(&newest[..5]), [true; 5]);
        let share = titles(&largest.mentions).iter().filter(|titled| **titled).count() * 100 / largest.mentions.len();
        assert!((35..55).contains(&share), "{share} percent have titles");
    }

    #[test]
    fn each_chapter_is_told_in_its_days() {
        let setting = Setting::new("Acme – brand", now());
        let facts = |days: i64, language: &str, sentiment: &str, source: &str| Facts {
            id: "9".into(),
            published: now() - TimeDelta::days(days),
            language: Some(language.into()),
            country: None,
            source: Some(source.into()),
            sentiment: Some(sentiment.into()),
            kind: None,
            author: None,
            keyword: Some("battery".into()),
            hashtag: Some("battery".into()),
            reach: None,
            engagement: None,
        };
        let cases = [
            (40, Phase::Quiet),
            (12, Phase::Quiet),
            (11, Phase::Launch),
            (6, Phase::Launch),
            (4, Phase::Recall),
            (3, Phase::Recall),
            (2, Phase::Recovery),
            (0, Phase::Recovery),
            (-1, Phase::Recovery),
        ];
        each(cases, |(days, phase)| {
            assert_eq!(setting.phase(now() - TimeDelta::days(days)), phase, "{days} days ago");
        });
        for seed in 0..50 {
            let (title, text) = setting.tell(&facts(4, "en", "negative", "news.example.org"), seed);
            assert!(title.contains("Acme") && !text.contains('{'), "{title}: {text}");
            assert!(text.ends_with("\n\nTopic: battery"), "{text}");
            let (_, text) = setting.tell(&facts(20, "de", "positive", "x.com"), seed);
            assert!(text.ends_with(" #Acme #battery") && !text.contains("Acme One"), "{text}");
            let (title, text) = setting.tell(&facts(1, "de", "neutral", "zeitung.example.de"), seed);
            assert!(title.contains("Acme One") && text.contains("Rückruf"), "{title}: {text}");
        }
    }
}
