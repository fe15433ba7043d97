//! Reads from a refusal the form of the key, the accepted parameters and values, and the structure of its body. Pure.

use http::HeaderMap;
use serde_json::Value;

use super::shape::{Path, each_once, leaves};
use super::vocabulary::plain;

/// Maximum length of a word of a refusal that is sent back as a candidate.
const LONGEST: usize = 40;

/// Returns the key forms that a refusal names: header, and value with `{key}` or `{base64}`.
pub(super) fn key_forms(headers: &HeaderMap, text: &str) -> Vec<(String, String)> {
    let mut forms: Vec<(String, String)> = Vec::new();
    for challenge in headers.get_all(http::header::WWW_AUTHENTICATE) {
        let scheme = challenge.to_str().unwrap_or_default().split([' ', ',']).next().unwrap_or_default();
        match scheme {
            "" => {}
            "Basic" => forms.push(("Authorization".to_owned(), "Basic {base64}".to_owned())),
            scheme => forms.push(("Authorization".to_owned(), format!("{scheme} {{key}}"))),
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
        rest = behind;
        if header(word) {
            let value = behind.trim_start_matches([':', '=', ' ', '`', '\'']);
            let said = behind.trim_start().starts_with([':', '=']);
            let format = if said { key_format(value) } else { "{key}".to_owned() };
            forms.push((word.to_owned(), format));
        }
    }
    forms.retain(|(_, format)| format.len() <= LONGEST + 10);
    forms
}

/// Replaces the placeholder in a header value by `{key}`.
fn key_format(value: &str) -> String {
    let line = value.lines().next().unwrap_or_default();
    let line = line.split(['"', '`', '\'', ',', ';']).next().unwrap_or_default();
    // Placeholders are in brackets, in capitals, or dots.
    let bracket = line.find(['<', '{', '[', '…', '$']).or_else(|| line.find("..."));
    if let Some(at) = bracket {
        return format!("{}{{key}}", &line[..at]);
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let stands_for = |word: &str| {
        let word = plain(word);
        ["key", "apikey", "yourkey", "yourapikey", "token", "yourtoken", "xxx", "redacted"].contains(&word.as_str())
    };
    match words.as_slice() {
        [scheme, placeholder, ..] if stands_for(placeholder) => format!("{scheme} {{key}}"),
        [scheme] | [scheme, ..] if ["Bearer", "Token", "ApiKey", "Key"].contains(scheme) => format!("{scheme} {{key}}"),
        _ => "{key}".to_owned(),
    }
}

/// Returns the parameter names that a refusal of an unknown parameter lists.
pub(super) fn parameters(message: &str) -> Vec<String> {
    let name = |word: &String| word.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    values(message).into_iter().filter(name).collect()
}

/// Returns the values that a refusal lists: in brackets, in quotes, after a colon or a word such as `expected`, or
/// separated by bars. Empty for a sentence.
pub(super) fn values(message: &str) -> Vec<String> {
    let listed = |text: &str| -> Vec<String> {
        let separators: &[char] = if text.contains('|') { &['|'] } else { &[',', ';'] };
        let parts = text.split(separators).flat_map(|part| part.split(" or ")).map(clean);
        let found = each_once(parts.filter(|part| !part.is_empty()));
        let short = |word: &String| word.len() <= LONGEST && word.split_whitespace().count() <= 2;
        if found.iter().all(short) { found } else { found.into_iter().filter(|word| !word.contains(' ')).collect() }
    };
    if let Some((_, rest)) = message.split_once('[')
        && let Some((inside, _)) = rest.split_once(']')
    {
        return listed(inside);
    }
    // Values begin after the last word that announces them, or after the last colon.
    let lower = message.to_ascii_lowercase();
    let words = [
        "one of",
        "expected",
        "supported",
        "allowed",
        "permitted",
        "valid values",
        "accepted",
        "parameters",
        "use",
        "try",
    ];
    let announced = words.iter().filter_map(|word| Some(lower.rfind(word)? + word.len())).max();
    let colon = message.rfind(": ").map(|at| at + 2);
    let start = match (announced, colon) {
        (Some(word), Some(colon)) if colon > word => Some(colon),
        (Some(word), _) => Some(word),
        (None, colon) => colon,
    };
    let Some(tail) = start.and_then(|start| message.get(start..)) else { return Vec::new() };
    let tail = tail.trim_start_matches([':', ' ']);
    for quote in ['\'', '"', '`'] {
        let quoted: Vec<String> = tail.split(quote).skip(1).step_by(2).map(str::to_owned).collect();
        if quoted.len() >= 2 {
            return quoted.into_iter().filter(|word| !word.is_empty() && word.len() <= LONGEST).collect();
        }
    }
    let found = listed(tail);
    // A sentence is not a list.
    let list = tail.contains([',', '|', ';']) || tail.contains(" or ") || found.len() == 1;
    if list && found.len() <= 40 { found } else { Vec::new() }
}

fn clean(word: &str) -> String {
    let word = word.trim().trim_start_matches("and ").trim_start_matches("or ");
    word.trim_matches(['\'', '"', '`', '.', ' ', '(', ')', ':']).to_owned()
}

/// All strings of a refusal; of an array of objects, those of the first.
fn texts(body: &Value) -> Vec<(Path, &str)> {
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
                _ => {}
            }
        }
    }
    texts
}

/// Returns the message of a refusal: its longest string of several words.
pub(super) fn message(body: &Value) -> Option<String> {
    let sentences = texts(body).into_iter().map(|(_, text)| text).filter(|text| text.contains(' '));
    sentences.max_by_key(|text| text.len()).map(str::to_owned)
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
    let message = named(&["message", "detail", "description", "title", "reason"]).or_else(|| {
        let sentence = texts.iter().filter(|(_, text)| text.contains(' ')).max_by_key(|(_, text)| text.len());
        sentence.map(|(path, _)| path.clone())
    });
    let code = code.filter(|code| Some(code) != message.as_ref());
    (code, message, named(&["field", "parameter", "param"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refusals_tell_what_would_be_taken() {
        for (refusal, expected) in [
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
        ] {
            assert_eq!(values(refusal), expected, "{refusal}");
        }
        let unknown = "Unknown parameter 'zzq'. Parameters: aid, duration, withData, from, to";
        assert_eq!(parameters(unknown), ["aid", "duration", "withData", "from", "to"]);
    }

    #[test]
    fn refusals_tell_the_form_of_the_key() {
        for (refusal, header, format) in [
            ("Send the header Authorization: Token token=<your key>", "Authorization", "Token token={key}"),
            ("Send the header Authorization: Token token=…", "Authorization", "Token token={key}"),
            ("Send the header X-Auth-Token: <your key>", "X-Auth-Token", "{key}"),
            ("Missing header X-Api-Key", "X-Api-Key", "{key}"),
            ("Use Authorization: Key YOUR_KEY", "Authorization", "Key {key}"),
            ("Use Authorization: Bearer", "Authorization", "Bearer {key}"),
        ] {
            let forms = key_forms(&HeaderMap::new(), refusal);
            assert_eq!(forms, [(header.to_owned(), format.to_owned())], "{refusal}");
        }
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
        let (code, message, _) = places(&json!({"success": false, "errorCode": "BAD", "errorMessage": "not so"}));
        assert_eq!((pointer(code).as_deref(), pointer(message).as_deref()), (Some("errorCode"), Some("errorMessage")));
    }
}
