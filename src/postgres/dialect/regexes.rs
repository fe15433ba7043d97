//! Regular expressions of PostgreSQL in the syntax of the engine. Only literals are translated.
//!
//! | PostgreSQL | here |
//! | --- | --- |
//! | `.` matches a line break | `(?s)` |
//! | `[[:alpha:]]` and other classes, of all scripts | properties of Unicode |
//! | `\y`, `\m`, `\M`, `\Z`, `[[:<:]]`, `[[:>:]]` | `\b`, `\b{start}`, `\b{end}`, `\z` |
//! | `[` within a class | `\[` |
//! | `\1`, `\&` in a replacement | `${1}`, `${0}` |
//! | `$` in a replacement | `$$` |
//! | another backslash in a replacement | refused: the engine has no form for it |
//! | all matches of a pattern such as `l*` are replaced | refused: the engine skips an empty match that follows another one |

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr as SqlExpr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
};
use regex::Regex;

use super::super::report::Report;
use super::expressions::{literal_of, text};
use super::unsupported;
use crate::session::is_regex;

/// Functions whose second argument is a pattern.
const WITH_PATTERN: [&str; 6] =
    ["regexp_count", "regexp_instr", "regexp_like", "regexp_match", "regexp_replace", "regexp_substr"];

/// Translates the pattern of an operator.
pub(super) fn of_operator(op: &BinaryOperator, right: &mut SqlExpr) {
    if is_regex(op) {
        translate(right, pattern);
    }
}

/// Translates the pattern and the replacement of a function.
///
/// # Errors
/// A replacement with a backslash of its own, and one of all matches of a pattern that matches some characters or none.
pub(super) fn of_function(name: &str, function: &mut Function) -> Result<(), Report> {
    if !WITH_PATTERN.contains(&name) {
        return Ok(());
    }
    of_pattern(function);
    if name == "regexp_replace" && replaces_nothing(function) {
        return Err(unsupported(
            "regexp_replace of all matches of a pattern that matches some characters or none is not supported: use a pattern \
             that matches at least one character, such as a+ instead of a*",
        ));
    }
    let Some(replaced) = expressions(function).nth(2).filter(|_| name == "regexp_replace") else { return Ok(()) };
    if literal_of(replaced).is_some_and(|literal| has_backslash(&literal)) {
        return Err(unsupported("a backslash in the replacement of regexp_replace is not supported"));
    }
    translate(replaced, replacement);
    Ok(())
}

/// Translates the pattern of a function, its second argument.
pub(super) fn of_pattern(function: &mut Function) {
    if let Some(expr) = expressions(function).nth(1) {
        translate(expr, pattern);
    }
}

/// The arguments that are expressions.
fn expressions(function: &mut Function) -> impl Iterator<Item = &mut SqlExpr> {
    let list = match &mut function.args {
        FunctionArguments::List(list) => list.args.as_mut_slice(),
        _ => &mut [],
    };
    list.iter_mut().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    })
}

/// True for a function that replaces all matches of a pattern which matches some characters or none, by something.
fn replaces_nothing(function: &mut Function) -> bool {
    let literals: Vec<Option<String>> = expressions(function).map(|argument| literal_of(argument)).collect();
    let [_, Some(pattern), replacement, flags] = literals.as_slice() else { return false };
    let all = flags.as_deref().is_none_or(|flags| flags.contains('g'));
    // These match no characters.
    let anchors = [r"\A", r"\z", r"\b{start}", r"\b{end}", r"\b", r"\B", "^", "$", "|"];
    let is_anchor = anchors.iter().fold(pattern.clone(), |rest, anchor| rest.replace(anchor, "")).is_empty();
    let matches_nothing = || Regex::new(&format!("^(?:{pattern})$")).is_ok_and(|regex| regex.is_match(""));
    all && replacement.as_deref() != Some("") && !is_anchor && matches_nothing()
}

/// True for a replacement with a backslash that refers to no group.
fn has_backslash(text: &str) -> bool {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\\' && !matches!(characters.next(), Some('&' | '1'..='9')) {
            return true;
        }
    }
    false
}

fn translate(expr: &mut SqlExpr, to: fn(&str) -> String) {
    if let Some(literal) = literal_of(expr) {
        let translated = to(&literal);
        if translated != literal {
            *expr = text(&translated);
        }
    }
}

fn pattern(text: &str) -> String {
    let (mut translated, mut any, mut rest) = (String::new(), false, text);
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        rest = match first {
            '\\' => {
                let Some(escaped) = after.chars().next() else {
                    translated.push('\\');
                    break;
                };
                match escaped {
                    'y' => translated.push_str(r"\b"),
                    'Y' => translated.push_str(r"\B"),
                    'm' => translated.push_str(r"\b{start}"),
                    'M' => translated.push_str(r"\b{end}"),
                    'Z' => translated.push_str(r"\z"),
                    'b' => translated.push_str(r"\x08"),
                    other => translated.extend(['\\', other]),
                }
                &after[escaped.len_utf8()..]
            }
            '[' => class(rest, &mut translated),
            other => {
                any |= other == '.';
                translated.push(other);
                after
            }
        };
    }
    // Some options at the beginning of a pattern say what `.` matches.
    let options = text.strip_prefix("(?").and_then(|rest| rest.split(|c: char| !c.is_ascii_lowercase()).next());
    let said = options.is_some_and(|options| options.contains(['m', 'n', 'p', 's', 'w']));
    if any && !said { format!("(?s){translated}") } else { translated }
}

/// Translates the class in brackets at the beginning of a text; returns what follows it.
fn class<'t>(text: &'t str, translated: &mut String) -> &'t str {
    for (known, boundary) in [("[[:<:]]", r"\b{start}"), ("[[:>:]]", r"\b{end}")] {
        if let Some(rest) = text.strip_prefix(known) {
            translated.push_str(boundary);
            return rest;
        }
    }
    let mut rest = &text[1..];
    translated.push('[');
    for literal in ["^", "]"] {
        if let Some(after) = rest.strip_prefix(literal) {
            translated.push_str(if literal == "]" { r"\]" } else { literal });
            rest = after;
        }
    }
    while let Some(first) = rest.chars().next() {
        let named = CLASSES.iter().find_map(|(name, class)| rest.strip_prefix(name).map(|after| (class, after)));
        let after = &rest[first.len_utf8()..];
        rest = match (first, named) {
            (_, Some((class, after))) => {
                translated.push_str(class);
                after
            }
            (']', _) => {
                translated.push(']');
                return after;
            }
            ('\\', _) => {
                translated.push('\\');
                let Some(escaped) = after.chars().next() else { return after };
                translated.push(escaped);
                &after[escaped.len_utf8()..]
            }
            ('[' | '&' | '~', _) => {
                translated.extend(['\\', first]);
                after
            }
            (other, _) => {
                translated.push(other);
                after
            }
        };
    }
    rest
}

/// Named classes within brackets.
const CLASSES: [(&str, &str); 12] = [
    ("[:blank:]", r" \t"),
    ("[:cntrl:]", r"\p{Cc}"),
    ("[:graph:]", r"\p{L}\p{M}\p{N}\p{P}\p{S}"),
    ("[:print:]", r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}"),
    ("[:punct:]", r"\p{P}\p{S}"),
    ("[:xdigit:]", "0-9A-Fa-f"),
    ("[:alpha:]", r"\p{Alphabetic}"),
    ("[:alnum:]", r"\p{Alphabetic}\p{Nd}"),
    ("[:upper:]", r"\p{Uppercase}"),
    ("[:lower:]", r"\p{Lowercase}"),
    ("[:digit:]", r"\p{Nd}"),
    ("[:space:]", r"\s"),
];

fn replacement(text: &str) -> String {
    let (mut translated, mut characters) = (String::new(), text.chars().peekable());
    while let Some(character) = characters.next() {
        match (character, characters.peek().copied()) {
            ('$', _) => translated.push_str("$$"),
            ('\\', Some('&')) => {
                characters.next();
                translated.push_str("${0}");
            }
            ('\\', Some(digit @ '1'..='9')) => {
                characters.next();
                translated.push_str(&format!("${{{digit}}}"));
            }
            (other, _) => translated.push(other),
        }
    }
    translated
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn patterns_mean_what_they_mean_in_postgresql() {
        let cases = [
            ("acme", "acme"),
            ("acme.*x", "(?s)acme.*x"),
            (r"a\.b", r"a\.b"),
            (r"\mword\M", r"\b{start}word\b{end}"),
            ("^[[:alpha:]_]+$", r"^[\p{Alphabetic}_]+$"),
            ("[[:<:]]a[[:>:]]", r"\b{start}a\b{end}"),
            ("[][a]", r"[\]\[a]"),
            ("[^a.]", "[^a.]"),
            ("(?n)a.b", "(?n)a.b"),
        ];
        each(cases, |(postgres, here)| {
            assert_eq!(pattern(postgres), here);
        });
        for (postgres, here) in [("$1", "$$1"), (r"[\&]", "[${0}]"), (r"\1x", "${1}x")] {
            assert_eq!(replacement(postgres), here);
        }
        for backslash in [r"a\\b", r"\0", r"\1\x", r"a\"] {
            assert!(has_backslash(backslash), "{backslash}");
        }
    }
}
