//! Keys of a profile document: their positions, and their values as text.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// Entry of `system.profile`: (name, value, evidence).
pub(super) type Dimension = (String, String, Option<String>);

/// Path of the innermost key whose value, or own text, covers the span.
pub(super) fn key_at(table: &DeTable<'_>, span: &Range<usize>) -> Vec<String> {
    let covers = |outer: Range<usize>| outer.start <= span.start && span.start < outer.end.max(outer.start + 1);
    for (key, value) in table.iter() {
        if covers(key.span()) {
            return vec![key.get_ref().to_string()];
        }
        let inner = match value.get_ref() {
            DeValue::Table(inner) => Some(key_at(inner, span)).filter(|path| !path.is_empty()),
            DeValue::Array(items) => items
                .iter()
                .find(|item| covers(item.span()))
                .map(|item| item.get_ref().as_table().map(|inner| key_at(inner, span)).unwrap_or_default()),
            _ => None,
        };
        if inner.is_some() || covers(value.span()) {
            let mut path = vec![key.get_ref().to_string()];
            path.extend(inner.unwrap_or_default());
            return path;
        }
    }
    Vec::new()
}

/// Span of the longest existing prefix of the path.
pub(super) fn span_of(table: &DeTable<'_>, path: &[String]) -> Option<Range<usize>> {
    let (first, rest) = path.split_first()?;
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == first)?;
    let inner = value.get_ref().as_table().and_then(|inner| span_of(inner, rest));
    inner.or_else(|| Some(key.span()))
}

/// Lists every section as (name, content on one line, evidence). Within a table, columns and sections are separate
/// entries.
pub(super) fn dimensions(text: &str) -> Vec<Dimension> {
    let Ok(document) = text.parse::<toml::Table>() else { return Vec::new() };
    let mut found = Vec::new();
    for (name, value) in document {
        let toml::Value::Table(section) = value else {
            found.push((name, text_of(&value), None));
            continue;
        };
        if name == "tables" {
            list_tables(&name, section, &mut found);
        } else {
            list_section(&name, &section, &mut found);
        }
    }
    found
}

fn list_tables(path: &str, tables: toml::Table, found: &mut Vec<Dimension>) {
    for (name, value) in tables {
        let path = format!("{path}.{name}");
        match value {
            toml::Value::Table(further) if name == "further" => list_tables(&path, further, found),
            toml::Value::Table(section) => list_section(&path, &section, found),
            _ => {}
        }
    }
}

fn list_section(name: &str, section: &toml::Table, found: &mut Vec<Dimension>) {
    let evidence = section.get("evidence").and_then(toml::Value::as_str).map(str::to_owned);
    for (key, value) in section.iter().filter(|(key, _)| *key != "evidence") {
        found.push((format!("{name}.{key}"), text_of(value), evidence.clone()));
    }
}

fn text_of(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
