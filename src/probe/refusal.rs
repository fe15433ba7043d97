//! Reads the form of the key, the accepted parameters and values, and the structure of the body from an error response.
//! Pure.

use http::HeaderMap;
use serde_json::Value;

use super::candidates::NONSENSE;
use super::shape::{Path, each_once, leaves, said, walk};
use super::vocabulary::plain;

/// Maximum length of a word of a refusal that is sent back as a candidate.
const LONGEST: usize = 40;

/// Returns the key forms that a refusal names: header, and value with `{key}` or `{base64}`. A value that the text shows comes
/// before the scheme of a challenge, and a header that is only named comes last.
pub(super) fn key_forms(headers: &HeaderMap, text: &str) -> Vec<(String, String)> {
    let (mut forms, mut named, mut challenges) = (Vec::new(), Vec::new(), Vec::new());
    for challenge in headers.get_all(http::header::WWW_AUTHENTICATE) {
        let scheme = challenge.to_str().unwrap_or_default().split([' ', ',']).next().unwrap_or_default();
        match scheme {
            "" => {}
            "Basic" => challenges.push(("Authorization".to_owned(), "Basic {base64}".to_owned())),
            scheme => challenges.push(("Authorization".to_owned(), format!("{scheme} {{key}}"))),
        }
    }
    let part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let header = |word: &str| {
        let name = word.to_ascii_lowercase();
        let like_one = name.starts_with("x-") || name.contains("api-key") || name.contains("-token");
        (name == "authorization" || (like_one && name.len() > 3)) && word.chars().all(part)
    };
    let mut rest = text;
    while let Some(start) = rest.find(part) {
        let after = &rest[start..];
        let end = after.find(|c| !part(c)).unwrap_or(after.len());
        let (word, behind) = after.split_at(end);
        let quoted = rest[..start].ends_with(['\'', '"', '`']) && behind.starts_with(['\'', '"', '`']);
        rest = behind;
        // `… in the 'apikey' request header`
        let of_header = behind.trim_start_matches(['\'', '"', '`', ' ']);
        let is_named = quoted
            && word.len() > 3
            && ["header", "request header", "http header"].iter().any(|words| of_header.starts_with(words));
        if header(word) || is_named {
            let value = behind.trim_start_matches([':', '=', ' ', '`', '\'']);
            let said = behind.trim_start().starts_with([':', '=']);
            match said {
                true => forms.push((word.to_owned(), key_format(value))),
                false => named.push((word.to_owned(), "{key}".to_owned())),
            }
        }
    }
    forms.extend(challenges.into_iter().chain(named));
    forms.retain(|(_, format): &(String, String)| format.len() <= LONGEST + 10);
    forms
}

/// Replaces the placeholder in a header value by `{key}`.
pub(super) fn key_format(value: &str) -> String {
    const SCHEMES: [&str; 5] = ["Bearer", "Token", "ApiKey", "Key", "Basic"];
    let line = value.lines().next().unwrap_or_default();
    let line = line.split(['"', '`', '\'', ',', ';']).next().unwrap_or_default();
    // Placeholders are in brackets, in capitals, or dots.
    let bracket = line.find(['<', '{', '[', '…', '$']).or_else(|| line.find("..."));
    if let Some(at) = bracket {
        return format!("{}{{key}}", &line[..at]);
    }
    // `Token token="KEY"`: the value is in quotes.
    if line.ends_with('=') && value[line.len()..].starts_with('"') {
        return format!("{line}\"{{key}}\"");
    }
    let stands_for = |word: &str| {
        let name = plain(word);
        let capitals = word.bytes().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-'));
        let whose = ["key", "token", "secret"].iter().any(|end| name.ends_with(end));
        ["xxx", "redacted"].contains(&name.as_str())
            || whose && (capitals || name.starts_with("your") || name.len() < 9)
    };
    // The placeholder is the second word, or what follows an equals sign in a word: `Token token=YOUR_KEY`.
    let mut at = 0;
    for (number, word) in line.split(' ').enumerate().take(2) {
        let value = word.find('=').map_or(0, |mark| mark + 1);
        if (number > 0 || value > 0) && stands_for(&word[value..]) {
            return format!("{}{{key}}", &line[..at + value]);
        }
        at += word.len() + 1;
    }
    match line.split_whitespace().next() {
        Some("Basic") => "Basic {base64}".to_owned(),
        Some(scheme) if SCHEMES.contains(&scheme) => format!("{scheme} {{key}}"),
        _ => "{key}".to_owned(),
    }
}

/// Returns the parameter names that a refusal of an unknown parameter lists.
pub(super) fn parameters(message: &str) -> Vec<String> {
    let name = |word: &String| word.chars().all(|c| c.is_ascii_alphanumeric() || "_-.[]".contains(c));
    values_of(message).into_iter().filter(|word| word != NONSENSE).filter(name).collect()
}

/// True for the refusal of an unknown parameter, rather than of a value.
pub(super) fn is_about_parameters(message: &str) -> bool {
    let text = message.to_lowercase();
    let of = ["parameter", "query parameter", "argument", "query argument"];
    let has = |words: &str| {
        // `unsupported parameter value` is about a value.
        let is_value =
            |after: &str| ["value", "type", "format"].iter().any(|word| after.trim_start().starts_with(word));
        text.match_indices(words).any(|(at, _)| !is_value(&text[at + words.len()..]))
    };
    UNKNOWN.iter().chain(&NOT_KNOWN).any(|words| of.iter().any(|of| has(&format!("{words} {of}"))))
        || announces_parameters(&text)
}

/// True if a text, in lower case, has a list after a heading for parameters: `supported parameters: a, b`, `parámetros admitidos: a,
/// b`. Those of a heading such as `invalid parameters` or `use the parameters` are not all that there are.
fn announces_parameters(text: &str) -> bool {
    const SOME: [&str; 19] = [
        "requir",
        "need",
        "must",
        "missing",
        "invalid",
        "unknown",
        "unsupported",
        "unrecogni",
        "unexpected",
        "undefined",
        "not",
        "with",
        "use",
        "send",
        "set",
        "add",
        "pass",
        "give",
        "both",
    ];
    /// Words between `parameters` and its colon.
    const BETWEEN: usize = 3;
    let plural = |word: &str| {
        let ascii: String = word.chars().map(|c| if "áàâã".contains(c) { 'a' } else { c }).collect();
        ["parameters", "parametros", "parametres", "parametri"].contains(&ascii.replace(['é', 'è', 'ê'], "e").as_str())
    };
    text.split([';', '\n']).flat_map(|part| part.split(". ")).any(|sentence| {
        let headed = sentence.match_indices(": ").map(|(at, _)| (&sentence[..at], &sentence[at + 2..]));
        let stated = sentence.find(" are ").map(|at| (&sentence[..at], &sentence[at + 5..]));
        headed.chain(stated).any(|(heading, list)| {
            let words = heading.rsplit(": ").next().unwrap_or_default().split(|c: char| !c.is_alphanumeric());
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            words.iter().rev().take(BETWEEN + 1).any(|word| plural(word))
                && !words.iter().any(|word| SOME.iter().any(|some| word.starts_with(some)))
                && listed(list).len() > 1
        })
    })
}

/// Words before the name of a parameter that a service does not have.
const UNKNOWN: [&str; 7] =
    ["unknown", "unrecognized", "unrecognised", "unsupported", "unexpected", "no such", "undefined"];
/// Words after it.
const NOT_KNOWN: [&str; 6] = [
    "is not a supported",
    "is not a valid",
    "is not a known",
    "is not a recognized",
    "is not a recognised",
    "is not an allowed",
];

/// True if a refusal says that a service has no parameter of this name, rather than that a value is invalid.
pub(super) fn refuses_name(message: &str, name: &str) -> bool {
    let text = message.to_lowercase();
    let name = name.to_lowercase();
    let quote = |c: char| "'\"`: ".contains(c);
    let of = ["parameter", "parameters", "query parameter", "argument", "query argument"];
    text.match_indices(&name).any(|(at, _)| {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        if before.ends_with(part) || after.starts_with(part) {
            return false;
        }
        let (before, after) = (before.trim_end_matches(quote), after.trim_start_matches(quote));
        // `unexpected parameter type for since`, `is not a valid parameter value`
        let of_value = |after: &str| {
            let next = after.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            ["for", "format", "in", "of", "type", "value", "values"].contains(&next)
        };
        let led = UNKNOWN.iter().any(|word| of.iter().any(|of| before.ends_with(&format!("{word} {of}"))));
        let said = |words: &str| of.iter().rev().find_map(|of| after.strip_prefix(&format!("{words} {of}")));
        (led && !of_value(after)) || NOT_KNOWN.iter().filter_map(|words| said(words)).any(|rest| !of_value(rest))
    })
}

/// Returns words that may be the parameter that a refusal is about, in whatever language: a text that a sentence of the refusal has as
/// well (`{"feld": "projekt", "meldung": "Pflichtangabe fehlt: projekt"}`), and the only word before or behind a colon.
pub(super) fn subjects(body: &Value) -> Vec<String> {
    let texts: Vec<&str> = texts(body).into_iter().map(|(_, text)| text).collect();
    let is_word = |word: &str| {
        let part = |c: char| c.is_ascii_alphanumeric() || "_-.[]".contains(c);
        word.len() > 1 && is_name(word) && word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(part)
    };
    let sentences: Vec<&str> = texts.iter().copied().filter(|text| text.contains(' ')).collect();
    let is_said = |word: &&str| sentences.iter().any(|sentence| words_of(sentence).contains(word));
    let alone = texts.iter().copied().filter(is_said);
    let behind = sentences.iter().filter_map(|sentence| Some(sentence.rsplit_once(": ")?.1));
    let before = sentences.iter().filter_map(|sentence| Some(sentence.split_once(':')?.0));
    let marks = ['\'', '"', '`', '.', ' '];
    let words = alone.chain(behind).chain(before).map(|word| word.trim_matches(marks)).filter(|word| is_word(word));
    each_once(words.map(str::to_owned))
}

/// Separates the [`statements`] of a refusal.
const APART: &str = "\n\n";

/// Words that say that something is missing.
const MISSES: [&str; 7] = ["required", "missing", "mandatory", "requires", "provide", "specify", "supply"];

/// The words of a text, without the marks around them.
fn words_of(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| c.is_whitespace() || "'\"`,;:(){}!?".contains(c));
    words.map(|word| word.trim_end_matches('.')).filter(|word| !word.is_empty()).collect()
}

/// True if the word at this place says that something is missing.
fn misses(words: &[&str], at: usize) -> bool {
    /// Words that miss something after one of [`NOT`].
    const ABSENT: [&str; 8] = ["present", "provided", "specified", "supplied", "given", "null", "blank", "empty"];
    // An apostrophe ends a word: `can't`.
    const NOT: [&str; 4] = ["not", "be", "cannot", "t"];
    let is = |of: &[&str], at: usize| words.get(at).is_some_and(|word| of.contains(&word.to_lowercase().as_str()));
    is(&MISSES, at) || (is(&ABSENT, at) && (1..3).any(|n| at >= n && is(&NOT, at - n)))
}

/// Returns the names of parameters that a refusal misses: `filter[aid]: is required`, `topic is missing`, `missing parameter q`,
/// `'since' is not present`, `from must not be null`.
pub(super) fn required(message: &str) -> Vec<String> {
    each_once(message.split(APART).flat_map(required_in))
}

/// As [`required`], of a single statement.
fn required_in(statement: &str) -> Vec<String> {
    const BETWEEN: [&str; 36] = [
        "t",
        "isn",
        "wasn",
        "this",
        "valid",
        "following",
        "not",
        "be",
        "cannot",
        "can",
        "may",
        "should",
        "please",
        "you",
        "present",
        "is",
        "are",
        "was",
        "a",
        "an",
        "the",
        "parameter",
        "parameters",
        "query",
        "argument",
        "field",
        "value",
        "must",
        "for",
        "search",
        "request",
        "and",
        "or",
        "param",
        "empty",
        "one",
    ];
    // Said of a parameter whose name may be a word of a sentence as well: `search: is required`.
    if let Some(name) = statement.strip_suffix(": is required").filter(|name| is_name(name)) {
        return vec![name.to_owned()];
    }
    let words = words_of(statement);
    let between = |word: &&str| BETWEEN.contains(&word.to_lowercase().as_str());
    let name = |word: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.[]".contains(c);
        word.len() <= LONGEST && word.chars().all(plain) && word.starts_with(|c: char| c.is_ascii_alphabetic())
    };
    let mut found: Vec<String> = Vec::new();
    for at in (0..words.len()).filter(|at| misses(&words, *at)) {
        let before = words[..at].iter().rev().find(|word| !between(word));
        let after = words[at + 1..].iter().find(|word| !between(word));
        for word in [before, after].into_iter().flatten().filter(|word| name(word)) {
            if !found.iter().any(|known| known == word) && !MISSES.contains(&word.to_lowercase().as_str()) {
                found.push((*word).to_owned());
            }
        }
    }
    found
}

/// Returns the values that a refusal lists: in brackets, in quotes, after a colon or a word such as `expected`, or
/// separated by bars. Empty for a sentence, and for a list of parameters. Examples are in [`examples`].
pub(super) fn values(message: &str) -> Vec<String> {
    if is_about_parameters(message) {
        return Vec::new();
    }
    let mut found = values_of(message);
    // What was sent is often repeated.
    found.retain(|word| word != NONSENSE);
    if is_bound(&found) { Vec::new() } else { found }
}

/// True for the words of a bound: `a whole number of 0 or more`.
fn is_bound(words: &[String]) -> bool {
    const BEYOND: [&str; 6] = ["more", "less", "greater", "fewer", "higher", "lower"];
    let [.., number, beyond] = words else { return false };
    BEYOND.contains(&beyond.as_str()) && number.ends_with(|c: char| c.is_ascii_digit())
}

/// The longest list of a message: `Must be one of a, b, c. For other periods use since and until.`
fn values_of(message: &str) -> Vec<String> {
    let whole = listed_in(message);
    let sentences = sentences(message).into_iter().map(listed_in);
    sentences.filter(|list| list.len() > whole.len()).max_by_key(Vec::len).unwrap_or(whole)
}

/// The sentences of a text. An abbreviation such as `e.g.` does not end one.
fn sentences(text: &str) -> Vec<&str> {
    let (mut found, mut start) = (Vec::new(), 0);
    for (at, _) in text.match_indices(". ") {
        let word = text[start..at].rsplit(|c: char| c.is_whitespace() || "(,;:".contains(c)).next().unwrap_or_default();
        let is_short = |part: &str| (1..3).contains(&part.chars().count()) && part.chars().all(char::is_alphabetic);
        let is_initial = word.chars().count() == 1 && text[at + 2..].chars().nth(1) == Some('.');
        let is_abbreviation = (word.contains('.') && word.split('.').all(is_short)) || is_initial;
        if !is_abbreviation {
            found.push(&text[start..at]);
            start = at + 2;
        }
    }
    found.push(&text[start..]);
    found
}

fn listed_in(message: &str) -> Vec<String> {
    // Values begin after the last word that announces them, or after the last colon.
    const ANNOUNCE: [&str; 14] = [
        "one of",
        "expected",
        "supported",
        "allowed",
        "permitted",
        "valid values",
        "possible values",
        "accepted",
        "accepts",
        "parameters",
        "use",
        "try",
        "choose from",
        "options",
    ];
    // After these, only words that stand alone are values.
    const VAGUE: [&str; 4] = ["must be", "can be", "should be", "either"];
    let lists = bracketed(message);
    if let Some((_, list)) = lists.iter().filter(|(_, list)| list.len() > 1).max_by_key(|(_, list)| list.len()) {
        return list.clone();
    }
    let before = |at: usize| message[..at].trim_end().to_ascii_lowercase();
    let announces = |at: usize| ANNOUNCE.iter().any(|word| before(at).ends_with(word)) || before(at).ends_with(':');
    if let Some((_, list)) = lists.into_iter().find(|(at, _)| announces(*at)) {
        return list;
    }
    let announced = ANNOUNCE.iter().filter_map(|word| word_at(message, word)).max();
    let vague = VAGUE.iter().filter_map(|word| word_at(message, word)).max();
    if let Some(start) = vague.filter(|_| announced.is_none()) {
        let tail = sentences(&message[start..]).first().copied().unwrap_or_default();
        let tail = example_words(tail).map_or(tail, |(before, _)| before.trim_end_matches([' ', ',', '(']));
        let found = listed(tail);
        return if found.len() > 1 && found.iter().all(|word| !word.contains(' ')) { found } else { Vec::new() };
    }
    let colon = message.rfind(": ").map(|at| at + 2);
    let start = match (announced, colon) {
        (Some(word), Some(colon)) if colon > word => Some(colon),
        (Some(word), _) => Some(word),
        (None, colon) => colon,
    };
    let Some(tail) = start.and_then(|start| message.get(start..)) else { return Vec::new() };
    let tail = tail.trim_start_matches([':', ' ']);
    // `Allowed sort(s) are …`, `supported parameters are …`.
    let verb = ["are ", "are: ", "is ", "include ", "includes "];
    let tail = verb.iter().find_map(|verb| Some(&tail[word_before(tail, verb)?..])).unwrap_or(tail);
    let tail = example_words(tail).map_or(tail, |(before, _)| before.trim_end_matches([' ', ',', '(']));
    for quote in ['\'', '"', '`'] {
        let quoted: Vec<String> =
            tail.split(quote).skip(1).step_by(2).map(|word| unexplained(word).to_owned()).collect();
        if quoted.len() >= 2 {
            return quoted.into_iter().filter(|word| !word.is_empty() && word.len() <= LONGEST).collect();
        }
        // One pair of quotes around all.
        if let [list] = quoted.as_slice()
            && tail.starts_with(quote)
            && list.contains(',')
        {
            return listed(list);
        }
    }
    let mut found = listed(tail);
    if let Some(first) = found.first().and_then(|first| without_heading(first, &found[1..])) {
        found[0] = first;
    }
    // A sentence is not a list.
    let list = match found.as_slice() {
        [one] => !one.contains(' ') || one.contains(['<', '{']),
        _ => tail.contains([',', '|', ';']) || tail.contains(" or ") || tail.contains(" / "),
    };
    if list && found.len() <= 40 { found } else { Vec::new() }
}

/// The last word of the first item of a list, if the words before it are a heading: all items but these words have the same mark, as in
/// `valeurs admises date_desc, date_asc`.
fn without_heading(first: &str, others: &[String]) -> Option<String> {
    let (heading, word) = first.rsplit_once(' ')?;
    let mark = word.chars().find(|c| "_-:.".contains(*c))?;
    let is_marked = |item: &String| item.contains(mark) && !item.contains(' ');
    let is_heading =
        !others.is_empty() && others.iter().all(is_marked) && heading.chars().all(|c| c.is_alphabetic() || c == ' ');
    is_heading.then(|| word.to_owned())
}

/// Position after a verb that follows at most one word of a text.
fn word_before(text: &str, verb: &str) -> Option<usize> {
    let at = match text.starts_with(verb) {
        true => 0,
        false => text.find(&format!(" {verb}"))? + 1,
    };
    (text[..at].split_whitespace().count() <= 1).then_some(at + verb.len())
}

/// The lists in brackets, each with its position. The index of a name (`filter[lang]`) and the letters of a pattern
/// (`^[1-9][0-9]*[dh]$`) are none.
fn bracketed(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('[') {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| !c.is_whitespace() && !":=('\"`".contains(c)) {
            continue;
        }
        let mut depth = 0_u32;
        let end = text[at..].char_indices().find(|(_, c)| {
            depth = match c {
                '[' => depth + 1,
                ']' => depth.saturating_sub(1),
                _ => depth,
            };
            depth == 0
        });
        let Some(end) = end.map(|(end, _)| at + end) else { continue };
        if text[end + 1..].starts_with(['*', '+', '?', '{', '[', '$']) {
            continue;
        }
        found.push((at, listed(&text[at + 1..end])));
    }
    found
}

/// The parts of a list.
fn listed(text: &str) -> Vec<String> {
    let separators: &[char] = if text.contains('|') { &['|'] } else { &[',', ';'] };
    let parts =
        text.split(separators).flat_map(|part| part.split(" or ")).flat_map(|part| part.split(" / ")).map(clean);
    let mut found = each_once(parts.filter(|part| !part.is_empty()));
    // Words before a list of single words: `erlaubt sind neueste, aelteste`.
    if let Some((first, rest)) = found.split_first_mut()
        && !rest.is_empty()
        && rest.iter().all(|word| !word.contains(' '))
        && first.split_whitespace().count() > 2
        && let Some((_, last)) = first.rsplit_once(' ')
    {
        *first = clean(last);
    }
    let short = |word: &String| word.len() <= LONGEST && word.split_whitespace().count() <= 3;
    if found.iter().all(short) { found } else { found.into_iter().filter(|word| !word.contains(' ')).collect() }
}

/// Position after the last occurrence of a word as a separate word, in any case.
fn word_at(text: &str, word: &str) -> Option<usize> {
    // Only ASCII letters change, so that positions stay.
    let lower = text.to_ascii_lowercase();
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let alone = |at: &usize| {
        let (before, after) = (lower[..*at].chars().next_back(), lower[at + word.len()..].chars().next());
        !before.is_some_and(part) && !after.is_some_and(part)
    };
    lower.match_indices(word).map(|(at, _)| at).filter(alone).last().map(|at| at + word.len())
}

/// Splits a text at the words that introduce an example.
fn example_words(text: &str) -> Option<(&str, &str)> {
    const WORDS: [&str; 6] = ["such as", "look like", "looks like", "for example", "for instance", "e.g."];
    let lower = text.to_ascii_lowercase();
    let first = WORDS.iter().filter_map(|word| {
        let at = lower.find(word)?;
        let alone = !lower[..at].ends_with(|c: char| c.is_alphanumeric());
        let after = lower[at + word.len()..].starts_with([' ', ':', ',']);
        (alone && after).then_some((at, at + word.len()))
    });
    let (before, after) = first.min()?;
    Some((&text[..before], &text[after..]))
}

/// Returns the examples that a refusal has: `such as P7D or PT24H`, `e.g. 60`.
pub(super) fn examples(message: &str) -> Vec<String> {
    let Some((_, tail)) = example_words(message) else { return Vec::new() };
    let tail = tail.trim_start_matches([':', ',', ' ']);
    // Up to the end of the sentence, or of the parenthesis.
    let end = tail.char_indices().find(|(at, c)| match c {
        ';' | ')' | '\n' => true,
        '.' => tail[at + 1..].chars().next().is_none_or(char::is_whitespace),
        _ => false,
    });
    let tail = end.map_or(tail, |(end, _)| &tail[..end]);
    let parts =
        tail.split([',', '|']).flat_map(|part| part.split(" or ")).flat_map(|part| part.split(" and ")).map(clean);
    let parts = parts.filter(|part| !part.is_empty() && part.len() <= LONGEST && part.split_whitespace().count() <= 3);
    each_once(parts)
}

/// Returns the unit, `h`, `d` or `w`, if a refusal asks for a number alone: `must be an integer: the number of days`.
pub(super) fn unit_of_number(message: &str) -> Option<char> {
    let number = ["integer", "number of", "numeric"].iter().any(|word| word_at(message, word).is_some());
    let units = [('h', "hours"), ('d', "days"), ('w', "weeks")];
    let mut named = units.into_iter().filter(|(_, unit)| word_at(message, unit).is_some());
    let (unit, _) = named.next().filter(|_| number)?;
    named.next().is_none().then_some(unit)
}

/// Returns the numbers that a refusal lists as the only ones, in ascending order: `must be one of 10, 25, 50, 100`.
pub(super) fn sizes(message: &str) -> Vec<u64> {
    let mut sizes: Vec<u64> = values(message).iter().filter_map(|value| value.parse().ok()).collect();
    let all = sizes.len() == values(message).len();
    sizes.sort_unstable();
    if all && sizes.len() > 1 && sizes[0] > 0 { sizes } else { Vec::new() }
}

/// Returns the least number that a refusal names: `at least 10`, `between 10 and 100`, `minimum is 10`.
pub(super) fn least(message: &str) -> Option<u64> {
    let words = ["at least", "minimum", "min", "no less than", "not less than", "between", "smaller than"];
    let behind = words.iter().find_map(|word| word_at(message, word))?;
    let number = message[behind..].split(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty())?;
    number.parse().ok().filter(|least| *least > 0)
}

/// Returns the least number of a refusal of another one, in whatever language: the smaller end of a range that the number is outside
/// of, such as `from 10 to 100`, or the only number that is larger than the refused one.
pub(super) fn least_beside(message: &str, refused: u64) -> Option<u64> {
    /// Bytes between the ends of a range.
    const BETWEEN: usize = 16;
    let mut numbers: Vec<(usize, usize, u64)> = Vec::new();
    let mut at = 0;
    for part in message.split(|c: char| !c.is_ascii_alphanumeric()) {
        numbers.extend(part.parse().ok().map(|number| (at, at + part.len(), number)));
        at += part.len() + message[at + part.len()..].chars().next().map_or(0, char::len_utf8);
    }
    numbers.retain(|(.., number)| *number != refused);
    let is_range = |(_, end, from): &(usize, usize, u64), (start, _, to): &(usize, usize, u64)| {
        let between = &message[*end..*start];
        let is_apart = between.len() <= BETWEEN && !between.contains([',', ';', '\n']) && !between.contains(". ");
        is_apart && from < to && !(*from..=*to).contains(&refused)
    };
    let range = numbers.windows(2).find(|pair| is_range(&pair[0], &pair[1])).map(|pair| pair[0].2);
    let only = || match numbers.as_slice() {
        [(.., number)] if *number > refused => Some(*number),
        _ => None,
    };
    range.or_else(only)
}

fn clean(word: &str) -> String {
    let word = word.trim().trim_start_matches("and ").trim_start_matches("or ");
    let word = unexplained(word);
    let word = word.trim_matches(['\'', '"', '`', '.', ' ', '(', ')', ':']);
    // In brackets, as in `such as [now-7d]`.
    let inner = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
    inner.filter(|inner| !inner.contains(' ')).unwrap_or(word).to_owned()
}

/// A value without the explanation behind it, as in `1 (newest)`, `1 = newest` and `1=newest`.
fn unexplained(word: &str) -> &str {
    let ends = [" (", " = ", " – ", " — ", " → ", " -> ", " => "].into_iter().filter_map(|mark| word.find(mark));
    // Other values may have such a sign.
    let number = word.split_once('=').filter(|(before, after)| {
        let is_number = !before.is_empty() && before.bytes().all(|byte| byte.is_ascii_digit());
        is_number && after.starts_with(char::is_alphabetic)
    });
    ends.chain(number.map(|(before, _)| before.len())).min().map_or(word, |end| &word[..end])
}

/// All strings of a refusal; of an array of objects, those of its first item.
fn texts(body: &Value) -> Vec<(Path, &str)> {
    /// Strings of an array.
    const ITEMS: usize = 8;
    let mut texts: Vec<(Path, &str)> = Vec::new();
    let mut open: Vec<(Path, &Value)> = vec![(Path::new(), body)];
    while let Some((path, value)) = open.pop() {
        for (below, leaf) in leaves(value) {
            let at: Path = path.iter().chain(&below).cloned().collect();
            match leaf {
                Value::String(text) => texts.push((at, text)),
                Value::Array(items) if items.first().is_some_and(Value::is_object) => {
                    let at = at.into_iter().chain(["0".to_owned()]).collect();
                    open.push((at, &items[0]));
                }
                // Such as `loc: ["query", "sortBy"]`.
                Value::Array(items) => {
                    let items = items.iter().take(ITEMS).enumerate();
                    let step = |number: usize| at.iter().cloned().chain([number.to_string()]).collect();
                    texts.extend(items.filter_map(|(number, item)| Some((step(number), item.as_str()?))));
                }
                _ => {}
            }
        }
    }
    texts
}

/// Returns the message of a refusal: what it says of parameters, or its longest string of several words.
pub(super) fn message(body: &Value) -> Option<String> {
    let sentences = texts(body).into_iter().map(|(_, text)| text).filter(|text| text.contains(' '));
    let sentence = match by_parameter(body) {
        Some((_, reasons)) => Some(reasons.join("; ")),
        None => sentences.max_by_key(|text| text.len()).map(str::to_owned),
    };
    match accepted(body) {
        Some(values) => Some(format!("{} (one of [{}])", sentence.unwrap_or_default(), values.join(", "))),
        None => sentence,
    }
}

/// The reasons of a refusal that has an object of parameters, each with an array of sentences, and the place of the object:
/// `{"errors": {"aid": ["The field is required."]}}`, as frameworks of web services write them.
fn by_parameter(body: &Value) -> Option<(Path, Vec<String>)> {
    let says = |(name, reasons): (&String, &Value)| -> Option<Vec<String>> {
        let reasons = reasons.as_array().filter(|reasons| !reasons.is_empty())?.iter();
        let texts: Option<Vec<&str>> = reasons.map(|text| text.as_str().filter(|text| text.contains(' '))).collect();
        // A list of the reasons of all parameters has the name of one.
        let general = [
            "errors", "error", "messages", "message", "details", "detail", "warnings", "reasons", "examples",
            "example", "values", "allowed", "links", "hints", "options",
        ];
        let named = is_name(name) && !general.contains(&plain(name).as_str());
        texts.filter(|_| named).map(|texts| texts.into_iter().map(|text| said_of(name, text)).collect())
    };
    walk(body).into_iter().find_map(|(path, value)| {
        let members = value.as_object()?;
        let reasons: Vec<Vec<String>> = members.iter().filter_map(says).collect();
        // The whole response, or an object of errors.
        let of_errors = path.last().map_or(reasons.len() == members.len(), |name| {
            let name = plain(name);
            ["error", "invalid", "violation", "field", "detail", "param"].iter().any(|word| name.contains(word))
        });
        (!reasons.is_empty() && of_errors).then(|| (path, reasons.concat()))
    })
}

/// True for a text that may be the name of a parameter.
fn is_name(text: &str) -> bool {
    text.len() <= LONGEST && !text.is_empty() && !text.contains(char::is_whitespace)
}

/// A sentence about a parameter, which it need not name, or names in words: `The monitor id field is required.`
fn said_of(name: &str, text: &str) -> String {
    let is_named = text.split(|c: char| c.is_whitespace() || "'\"`,:".contains(c)).any(|word| word == name);
    let words = words_of(text);
    let is_missed = (0..words.len()).any(|at| misses(&words, at));
    match (is_named, required(text).is_empty()) {
        // A name such as `search` is not told from the words of the sentence.
        (_, true) if is_missed => format!("{name}: is required"),
        (true, _) => text.to_owned(),
        (false, true) => format!("{name}: {text}"),
        (false, false) => format!("{name}: is required"),
    }
}

/// Values in a list of their own: `allowedValues: ["newest", "oldest"]`.
fn accepted(body: &Value) -> Option<Vec<String>> {
    const WORDS: [&str; 14] = [
        "allow",
        "accept",
        "valid",
        "permit",
        "support",
        "possib",
        "expect",
        "option",
        "values",
        "choice",
        "enum",
        "available",
        "oneof",
        "known",
    ];
    let mut open: Vec<&Value> = vec![body];
    let mut found: Vec<Vec<String>> = Vec::new();
    while let Some(value) = open.pop() {
        if let Some(items) = value.as_array() {
            open.extend(items.iter().filter(|item| item.is_object()));
        }
        for (path, leaf) in leaves(value) {
            let Some(items) = leaf.as_array() else { continue };
            open.extend(items.iter().filter(|item| item.is_object()));
            let named = path.last().is_some_and(|name| WORDS.iter().any(|word| plain(name).contains(word)));
            let texts: Option<Vec<String>> = items.iter().map(said).collect();
            let short = |texts: &Vec<String>| texts.len() > 1 && texts.iter().all(|text| text.len() <= LONGEST);
            found.extend(texts.filter(|texts| named && short(texts)));
        }
    }
    found.into_iter().max_by_key(Vec::len)
}

/// All texts of a refusal, its message first.
pub(super) fn words(body: &Value) -> String {
    let mut texts: Vec<&str> = texts(body).into_iter().map(|(_, text)| text).collect();
    texts.sort_by_key(|text| (!text.contains(' '), usize::MAX - text.len()));
    texts.join("\n")
}

/// The texts of a refusal, each with the parameter that stands beside it: `{"name": "aid", "reason": "is required"}` is `aid: is
/// required`.
pub(super) fn statements(body: &Value) -> String {
    const NAMES: [&str; 8] = ["name", "param", "parameter", "field", "property", "path", "key", "loc"];
    let mut statements = by_parameter(body).map(|(_, reasons)| reasons).unwrap_or_default();
    let mut open = vec![body];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items.iter().filter(|item| item.is_object())),
            Value::Object(members) => {
                let of = |inner: &Value, name: &str| {
                    let known = NAMES.contains(&plain(name).as_str());
                    let text = match inner {
                        Value::String(text) => text.as_str(),
                        // `loc: ["query", "aid"]`
                        Value::Array(items) => items.last()?.as_str()?,
                        _ => return None,
                    };
                    Some(text.to_owned()).filter(|text| known && is_name(text))
                };
                // `source: {"parameter": "aid"}`
                let inner = members.values().filter_map(Value::as_object).flatten();
                let name = members.iter().chain(inner).find_map(|(name, value)| of(value, name));
                let codes = members.values().filter_map(Value::as_str).filter(|code| is_of_unknown(code));
                statements.extend(name.iter().zip(codes).map(|(name, _)| format!("unknown parameter {name}")));
                let texts = members.values().filter_map(Value::as_str).filter(|text| text.contains(' '));
                statements.extend(texts.map(|text| match &name {
                    Some(name) => said_of(name, text),
                    None => text.to_owned(),
                }));
                open.extend(members.values());
            }
            _ => {}
        }
    }
    statements.join(APART)
}

/// True for the code of a refusal of an unknown parameter: `unsupported_parameter`.
fn is_of_unknown(code: &str) -> bool {
    let code = plain(code);
    let of = ["parameter", "queryparameter"];
    UNKNOWN.iter().any(|word| code.strip_prefix(&plain(word)).is_some_and(|rest| of.contains(&rest)))
}

/// Paths of the code, the message and the offending parameter in a refusal.
pub(super) fn places(body: &Value) -> (Option<Path>, Option<Path>, Option<Path>) {
    let texts = texts(body);
    let named = |words: &[&str]| {
        let is = |word: &str| {
            let of = |(path, _): &&(Path, &str)| {
                path.last().is_some_and(|last| plain(last) == word || plain(last).ends_with(word))
            };
            texts.iter().find(of).map(|(path, _)| path.clone())
        };
        words.iter().find_map(|word| is(word))
    };
    let code = named(&["code", "reason", "type", "error"]);
    let message = named(&["message", "detail", "description", "msg", "title", "reason"]).or_else(|| {
        let sentence = texts.iter().filter(|(_, text)| text.contains(' ')).max_by_key(|(_, text)| text.len());
        sentence.map(|(path, _)| path.clone())
    });
    // The reasons rather than their title.
    let message = by_parameter(body).map(|(at, _)| at).filter(|at| !at.is_empty()).or(message);
    let code = code.filter(|code| Some(code) != message.as_ref());
    (code, message, named(&["field", "parameter", "param"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cases::each;

    #[test]
    fn a_reason_is_said_of_the_parameter_beside_it() {
        let cases = [
            json!({"detail": "One or more parameters are invalid.", "invalid_params": [{"name": "q", "reason": "is required"}]}),
            json!({"detail": [{"loc": ["query", "q"], "msg": "field required", "type": "missing"}]}),
            json!({"errors": [{"title": "Missing Parameter", "source": {"parameter": "q"}, "detail": "is required"}]}),
            json!({"title": "One or more validation errors occurred.", "errors": {"q": ["The q field is required."]}}),
            json!({"message": "The given data was invalid.", "errors": {"q": ["The query text field is required."]}}),
            json!({"q": ["This field is required."]}),
            json!({"errors": [{"type": "field", "msg": "Value is required", "path": "q", "location": "query"}]}),
            json!({"error": "param is missing or the value is empty: q"}),
        ];
        each(cases, |body| {
            assert_eq!(required(&statements(&body)).first().map(String::as_str), Some("q"), "{body}");
        });
        // `search` may be a word of the sentence, and the title has none of the names.
        let cases = [
            json!({"errors": [{"title": "Invalid query parameter", "detail": "search is required", "source": {"parameter": "search"}}]}),
            json!({"errors": [{"title": "Invalid query parameter", "detail": "The search parameter is missing.", "source": {"parameter": "search"}}]}),
        ];
        each(cases, |body| {
            assert_eq!(required(&statements(&body)), ["search"], "{body}");
        });
    }

    #[test]
    fn a_parameter_may_be_refused_by_its_name() {
        for refusal in
            ["`zone` is not a supported query parameter.", "Unknown parameter 'zone'.", "Unrecognized parameter: zone"]
        {
            assert!(refuses_name(refusal, "zone") && !refuses_name(refusal, "zon"), "{refusal}");
        }
        let cases = [
            "`zone` must be one of UTC, CET",
            "Unknown value 'x' of parameter zone",
            "unknown timezone zone",
            "Unexpected parameter zone for since",
            "`zone` is not a valid parameter value",
        ];
        each(cases, |refusal| {
            assert!(!refuses_name(refusal, "zone"), "{refusal}");
        });
        let refusal =
            json!({"errors": [{"code": "unsupported_parameter", "detail": "not so", "source": {"parameter": "zone"}}]});
        assert!(refuses_name(&statements(&refusal), "zone"), "{}", statements(&refusal));
    }

    #[test]
    fn lists_of_parameters_and_values_may_follow_a_verb() {
        let all = ["topic", "since", "limit"];
        for refusal in [
            "`zzq` is not a supported query parameter. Supported query parameters are topic, since, limit.",
            "Unknown parameter 'zzq'. Known parameters are topic, since, limit",
        ] {
            assert_eq!(parameters(refusal), all, "{refusal}");
        }
        for refusal in [
            "'zzq' is not supported. Supported parameters: topic, since, limit",
            "Parámetro desconocido: zzq. Parámetros admitidos: topic, since, limit",
            "zzq: the parameters of a search are topic, since and limit",
        ] {
            assert!(is_about_parameters(refusal) && values(refusal).is_empty(), "{refusal}");
        }
        assert_eq!(parameters("zzq no. Parámetros admitidos: topic, since, limit"), all);
        for refusal in [
            "sortBy: valor no admitido. Valores admitidos: recientes, antiguas",
            "range requires the parameters: since, until",
            "Invalid parameters: since, until",
            "duration: use one of 7d, 30d",
            "Unsupported parameter value for duration. Allowed: 7d, 30d",
            "`zzq` is not a valid parameter value of sortBy. Allowed: newest, oldest",
            "Allowed periods: 7d, 30d. For others use the parameters: since, until",
        ] {
            assert!(!is_about_parameters(refusal), "{refusal}");
        }
        let sorts = "Requested sort(s) `zzq` is not allowed. Allowed sort(s) are `published_at, reach`.";
        assert_eq!(values(sorts), ["published_at", "reach"]);
    }

    #[test]
    fn values_may_be_explained() {
        let cases = [
            "sortBy: expected one of 1 (newest), 2 (oldest)",
            "sortBy: expected one of 1=newest, 2=oldest",
            "sortBy: expected one of 1 — newest, 2 — oldest",
            "sortBy: expected one of 1 -> newest, 2 -> oldest",
            "sortBy: zzq. Allowed values: '1 (newest)', '2 (oldest)'",
        ];
        each(cases, |refusal| {
            assert_eq!(values(refusal), ["1", "2"], "{refusal}");
        });
        assert_eq!(values("sort: one of [date=desc, date=asc]"), ["date=desc", "date=asc"]);
    }

    #[test]
    fn a_refusal_may_name_the_header_of_the_key() {
        let text = "Supply a valid API key in the 'apikey' request header.";
        assert_eq!(key_forms(&HeaderMap::new(), text), [("apikey".to_owned(), "{key}".to_owned())]);
    }

    #[test]
    fn refusals_name_what_they_miss() {
        let cases = [
            ("filter[aid]: is required", "filter[aid]"),
            ("topic is missing", "topic"),
            ("Missing required query parameter 'search_id'.", "search_id"),
            ("The parameter `q` is required", "q"),
            ("missing parameter: monitor", "monitor"),
            ("topic is required.", "topic"),
            ("Required parameter topic was not provided", "topic"),
            ("You must provide the topic parameter.", "topic"),
            ("topic: can't be blank", "topic"),
            ("Please specify topic.", "topic"),
        ];
        each(cases, |(refusal, first)| {
            assert_eq!(required(refusal).first().map(String::as_str), Some(first), "{refusal}");
        });
        assert!(required("the service is overloaded").is_empty());
    }

    #[test]
    fn a_refusal_in_any_language_names_its_parameter() {
        let cases = [
            (json!({"feld": "projekt_id", "meldung": "Pflichtangabe fehlt: projekt_id"}), ["projekt_id"].as_slice()),
            (json!({"erreur": {"code": "veille", "message": "Paramètre obligatoire absent : veille"}}), &["veille"]),
            (json!({"kekka": "shippai", "code": "E826", "riyuu": "hissu: kensaku"}), &["kensaku", "hissu"]),
            (json!({"error": "tema: es obligatorio"}), &["tema"]),
            (json!({"error": "no se puede"}), &[]),
        ];
        each(cases, |(body, expected)| assert_eq!(subjects(&body), expected, "{body}"));
    }

    #[test]
    fn refusals_tell_what_would_be_taken() {
        let cases = [
            ("sortBy: `zzq` is no order: newest, oldest", ["newest", "oldest"].as_slice()),
            ("`zzq` is no order: -published, published", &["-published", "published"]),
            (
                "Invalid value for 'duration': zzq, must be one of [TODAY, LAST_7_DAYS, LAST_90_DAYS]",
                &["TODAY", "LAST_7_DAYS", "LAST_90_DAYS"],
            ),
            ("Invalid value for 'sortBy': zzq. Allowed values: 'date:desc', 'date:asc'", &["date:desc", "date:asc"]),
            (
                "Invalid value for 'sortBy': zzq, expected published_at desc|published_at asc",
                &["published_at desc", "published_at asc"],
            ),
            ("Invalid value for 'duration': zzq; supported: P7D, P30D", &["P7D", "P30D"]),
            ("bad period: <n>h, <n>d or FROM..TO", &["<n>h", "<n>d", "FROM..TO"]),
            ("we are sorry but this is not what anybody would have wanted to ask us at all today", &[]),
            ("failed to parse duration [zzq], expected date math such as now-7d", &[]),
            ("Result window is too large, it must be less than: [1000] but was [1020]", &["1000"]),
            ("duration must match \"^[1-9][0-9]*[dhw]$\"", &[]),
            ("Unknown sortBy: zzq. Use byDate / byReach", &["byDate", "byReach"]),
            ("duration must be last_N_hours or last_N_days", &["last_N_hours", "last_N_days"]),
            ("unknown parameter duration; parameters: searchId, last, startMs, endMs", &[]),
            ("dataSize must be a number or a word", &[]),
            ("[sortBy] zzq is unknown, known are [newest, oldest]", &["newest", "oldest"]),
            ("orden: valor no admitido. Valores admitidos: recientes, antiguas", &["recientes", "antiguas"]),
            ("tri : valeurs admises date_desc, date_asc, portee_desc", &["date_desc", "date_asc", "portee_desc"]),
            ("sortierung: erlaubt sind neueste, aelteste", &["neueste", "aelteste"]),
        ];
        each(cases, |(refusal, expected)| {
            assert_eq!(values(refusal), expected, "{refusal}");
        });
        let unknown = "Unknown parameter 'zzq'. Parameters: aid, duration, withData, from, to";
        assert_eq!(parameters(unknown), ["aid", "duration", "withData", "from", "to"]);
        // `country` contains "try", `user` contains "use".
        let unknown = "Unknown parameter 'zzq'. Parameters: aid, withData, country, user, site";
        assert_eq!(parameters(unknown), ["aid", "withData", "country", "user", "site"]);
        let unknown = "'zzq' is unknown. Supported parameters: aid, view, filter[lang], filter[source]";
        assert_eq!(parameters(unknown), ["aid", "view", "filter[lang]", "filter[source]"]);
        assert!(parameters("contains unrecognized parameter: [zzq]").is_empty());
    }

    #[test]
    fn a_bound_is_no_list_of_values() {
        for refusal in ["hpp: expected a whole number of 0 or more", "size: expected 1000 or less"] {
            assert!(values(refusal).is_empty(), "{refusal}: {:?}", values(refusal));
        }
    }

    #[test]
    fn abbreviations_and_headings_are_no_values() {
        let cases = [
            ("startDate: expected e.g. 2026-11-01", [].as_slice(), ["2026-11-01"].as_slice()),
            ("startDate must be a date, e.g. 2026-11-01", &[], &["2026-11-01"]),
            ("tri : valeurs admises date_desc, date_asc", &["date_desc", "date_asc"], &[]),
            ("Use one of 7 days, 1 month. For others, e.g. 90 days, ask us", &["7 days", "1 month"], &["90 days"]),
        ];
        each(cases, |(refusal, listed, shown)| {
            assert_eq!(values(refusal), strings(listed), "{refusal}");
            assert!(shown.iter().all(|shown| examples(refusal).iter().any(|example| example == shown)), "{refusal}");
        });
        assert_eq!(sentences("one of a, b. For z.B. x use c. d"), ["one of a, b", "For z.B. x use c", "d"]);
    }

    #[test]
    fn refusals_tell_names_with_blanks_explanations_and_examples() {
        let cases = [
            (
                "period: use one of 7 days, 1 month, 3 months",
                ["7 days", "1 month", "3 months"].as_slice(),
                [].as_slice(),
            ),
            ("sortBy: 1 (newest), 2 (oldest)", &["1", "2"], &[]),
            ("Invalid value for 'sortBy': zzq. Allowed values: '1 (newest)', '2 (oldest)'", &["1", "2"], &[]),
            ("sortBy: use one of `1 = newest`, `2 = oldest`", &["1", "2"], &[]),
            ("sortBy: use one of 1 – the newest first, 2 – the oldest first", &["1", "2"], &[]),
            ("Allowed values: \"7 days (a week)\", \"30 days (a month)\"", &["7 days", "30 days"], &[]),
            ("timezone: expected minutes from UTC, such as 60", &[], &["60"]),
            ("duration: expected an ISO 8601 duration such as P7D or PT24H", &[], &["P7D", "PT24H"]),
            ("duration: expected <n>h, <n>d or <n>w, such as 30d", &["<n>h", "<n>d", "<n>w"], &["30d"]),
            ("timezone: 'x' is not an IANA time zone (e.g. Europe/Paris).", &[], &["Europe/Paris"]),
            ("duration: two epoch seconds such as A-B", &[], &["A-B"]),
            ("you may like what we have", &[], &[]),
            ("duration must look like last_7_days or last_24_hours", &[], &["last_7_days", "last_24_hours"]),
        ];
        each(cases, |(refusal, listed, shown)| {
            assert_eq!(
                (values(refusal).as_slice(), examples(refusal).as_slice()),
                (strings(listed).as_slice(), strings(shown).as_slice()),
                "{refusal}"
            );
        });
    }

    #[test]
    fn values_may_be_in_a_list_of_their_own() {
        for body in [
            json!({"error": {"message": "'zzq' is not a valid order", "allowedValues": ["newest", "oldest"]}}),
            json!({"errors": [{"detail": "not supported", "meta": {"accepted": ["newest", "oldest"]}}], "ids": ["1", "2"]}),
        ] {
            assert_eq!(values(&message(&body).expect("a message")), ["newest", "oldest"], "{body}");
        }
        let other = json!({"message": "not so", "ids": ["1", "2"], "accepted": ["one"]});
        assert_eq!(message(&other).as_deref(), Some("not so"));
    }

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn refusals_tell_what_they_miss() {
        let cases = [
            ("filter[aid]: is required", ["filter[aid]"].as_slice()),
            ("Required request parameter 'startDate' for method parameter type Date is not present", &["startDate"]),
            ("The dateFrom field is required.", &["dateFrom"]),
            ("since must not be null", &["since"]),
            ("start_date was not provided", &["start_date"]),
            ("`from` cannot be blank", &["from"]),
            ("the topic is not known", &[]),
        ];
        each(cases, |(refusal, names)| {
            let missed = required(refusal);
            assert!(names.iter().all(|name| missed.iter().any(|missed| missed == name)), "{refusal}: {missed:?}");
            assert!(!names.is_empty() || missed.is_empty(), "{refusal}: {missed:?}");
        });
    }

    #[test]
    fn refusals_tell_which_sizes_are_taken() {
        assert_eq!(sizes("dataSize must be one of 10, 25, 50, 100"), [10, 25, 50, 100]);
        assert_eq!(sizes("dataSize: allowed values are [100, 25]"), [25, 100]);
        assert!(sizes("dataSize must be between 1 and 100").is_empty() && sizes("at most 100").is_empty());
        assert_eq!(
            examples("expected date math such as [now-7d], [now-24h] or a range"),
            ["now-7d", "now-24h", "a range"]
        );
        assert_eq!(unit_of_number("The duration must be an integer: the number of days."), Some('d'));
        assert_eq!((unit_of_number("must be days or hours"), unit_of_number("an integer")), (None, None));
        assert_eq!((least("dataSize: at least 20"), least("must be between 5 and 100")), (Some(20), Some(5)));
        assert_eq!((least("dataSize: at most 200"), least("administrator")), (None, None));
        let cases = [
            ("size: from 10 to 100", 5, Some(10)),
            ("size: from 10 to 100", 100_000, Some(10)),
            ("taille : entre 10 et 100", 5, Some(10)),
            ("anzahl=5: mindestens 10", 5, Some(10)),
            ("10 <= n <= 100, got 5", 5, Some(10)),
            // It is no bound for a number within, and the number of something else is none.
            ("size: from 10 to 100", 13, None),
            ("kensuu: 30 made", 100_000, None),
            ("(plan: Pro 5, limit 30)", 100_000, None),
            ("size=5 is wrong", 5, None),
        ];
        each(cases, |(refusal, refused, expected)| {
            assert_eq!(least_beside(refusal, refused), expected, "{refusal} {refused}");
        });
    }

    #[test]
    fn refusals_tell_the_form_of_the_key() {
        let cases = [
            ("Send the header Authorization: Token token=<your key>", "Authorization", "Token token={key}"),
            ("Send the header Authorization: Token token=…", "Authorization", "Token token={key}"),
            ("Send the header X-Auth-Token: <your key>", "X-Auth-Token", "{key}"),
            ("Missing header X-Api-Key", "X-Api-Key", "{key}"),
            ("Use Authorization: Key YOUR_KEY", "Authorization", "Key {key}"),
            ("Use Authorization: Bearer", "Authorization", "Bearer {key}"),
            ("Send the header Authorization: Token token=YOUR_KEY", "Authorization", "Token token={key}"),
            ("Send Authorization: Token token=\"YOUR_TOKEN\"", "Authorization", "Token token=\"{key}\""),
            ("expected Authorization: GenieKey YOUR_API_KEY", "Authorization", "GenieKey {key}"),
            ("expected X-Api-Key: key=APIKEY", "X-Api-Key", "key={key}"),
            ("Set Authorization: YOUR_TOKEN and try again", "Authorization", "{key}"),
        ];
        each(cases, |(refusal, header, format)| {
            let forms = key_forms(&HeaderMap::new(), refusal);
            assert_eq!(forms, [(header.to_owned(), format.to_owned())], "{refusal}");
        });
        let challenge =
            HeaderMap::from_iter([(http::header::WWW_AUTHENTICATE, "Basic realm=\"x\"".parse().expect("a value"))]);
        assert_eq!(key_forms(&challenge, ""), [("Authorization".to_owned(), "Basic {base64}".to_owned())]);
    }

    #[test]
    fn the_words_of_a_refusal_are_found_in_whatever_envelope() {
        let pointer = |path: Option<Path>| path.map(|path| path.join("/"));
        let (code, message, field) = places(
            &json!({"errors": [{"status": "400", "code": "bad", "detail": "not so", "source": {"parameter": "sortBy"}}]}),
        );
        assert_eq!(pointer(code).as_deref(), Some("errors/0/code"));
        assert_eq!(pointer(message).as_deref(), Some("errors/0/detail"));
        assert_eq!(pointer(field).as_deref(), Some("errors/0/source/parameter"));
        let (_, message, _) = places(&json!({"errors": ["sortBy: no such order"]}));
        assert_eq!(pointer(message).as_deref(), Some("errors/0"));
        let body = json!({"detail": [{"loc": ["query", "sortBy"], "msg": "not a member", "type": "enum", "ctx": {"enum_values": ["newest", "oldest"]}}]});
        assert!(
            words(&body).contains("sortBy")
                && values(&super::message(&body).expect("a message")) == ["newest", "oldest"]
        );
        let (code, message, _) = places(&json!({"success": false, "errorCode": "BAD", "errorMessage": "not so"}));
        assert_eq!((pointer(code).as_deref(), pointer(message).as_deref()), (Some("errorCode"), Some("errorMessage")));
    }
}
