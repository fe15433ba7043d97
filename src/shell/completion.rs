//! What may be typed: the words that are completed, by what stands before them. Nothing is asked of the service.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::execution::FunctionRegistry;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use super::splitter::behind;
use crate::connection::Connection;
use crate::error::one_line;
use crate::profile::Zone;

/// The words that there are at the moment.
#[derive(Debug, Default, Clone)]
pub(super) struct Words {
    /// Tables, as they are called without a catalog.
    pub(super) tables: Vec<String>,
    /// Columns, with their tables.
    columns: Vec<(String, String)>,
    pub(super) functions: Vec<String>,
    pub(super) settings: Vec<String>,
    /// Saved searches with their names, as the last list had them.
    searches: Vec<(String, String)>,
    catalogs: Vec<String>,
    /// Connections by name.
    pub(super) connections: Vec<String>,
    periods: Vec<String>,
}

/// A word that may be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// What is shown.
    pub(super) shown: String,
    /// What takes the place of what was typed.
    pub(super) typed: String,
}

/// The words of SQL that people type.
pub(super) const KEYWORDS: [&str; 71] = [
    "ALL",
    "ANALYZE",
    "AND",
    "AS",
    "ASC",
    "AT",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COUNT",
    "CREATE",
    "CROSS",
    "CURRENT_DATE",
    "DATE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "EXTRACT",
    "FALSE",
    "FILTER",
    "FIRST",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "ILIKE",
    "IN",
    "INNER",
    "INTERSECT",
    "INTERVAL",
    "IS",
    "JOIN",
    "LAST",
    "LATERAL",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "RIGHT",
    "SELECT",
    "SET",
    "SHOW",
    "TABLE",
    "TABLES",
    "THEN",
    "TIME",
    "TRUE",
    "UNION",
    "USING",
    "VALUES",
    "VIEW",
    "WHEN",
    "WHERE",
    "WITH",
    "ZONE",
];

impl Words {
    /// The words of a session, with these saved searches and connections.
    pub(super) async fn of(
        context: &SessionContext,
        connection: &Arc<Connection>,
        searches: Vec<(String, String)>,
        connections: Vec<String>,
    ) -> Self {
        let mut words = Self { searches, connections, ..Self::default() };
        let state = context.state();
        for (name, table) in tables(context).await {
            let schema = table.schema();
            words.columns.extend(schema.fields().iter().map(|field| (name.clone(), field.name().clone())));
            words.tables.push(name);
        }
        let functions = [state.udfs(), state.udafs(), state.udwfs()];
        words.functions = functions.into_iter().flatten().filter(|name| name.len() > 2).collect();
        let settings = state.config().options().entries().into_iter().map(|entry| entry.key);
        words.settings = settings.collect();
        words.settings.sort_by_key(|key| !key.starts_with("savedsearch."));
        words.catalogs = context.catalog_names();
        words.periods = connection.profile().window.usual();
        for words in [&mut words.tables, &mut words.functions, &mut words.catalogs] {
            words.sort();
            words.dedup();
        }
        words
    }

    /// What may be meant by the end of a text: where its last word begins, and the candidates, best first.
    pub(super) fn complete(&self, text: &str) -> (usize, Vec<Candidate>) {
        if let Some(start) = open_quote(text) {
            return (start, self.values(text[..start - 1].trim_end(), &text[start..]));
        }
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let start = text.char_indices().rev().take_while(|(_, c)| is_word(*c)).last().map_or(text.len(), |(at, _)| at);
        let (before, word) = (text[..start].to_uppercase(), &text[start..]);
        let last = before.split_whitespace().next_back().unwrap_or_default();
        let of = |words: &mut dyn Iterator<Item = &str>| {
            let lower = word.to_lowercase();
            let fits = words.filter(|known| known.to_lowercase().starts_with(&lower));
            fits.map(|known| Candidate { shown: known.to_owned(), typed: known.to_owned() }).collect::<Vec<_>>()
        };
        let found = match last {
            "FROM" | "JOIN" | "DESCRIBE" => of(&mut self.tables.iter().chain(&self.catalogs).map(String::as_str)),
            "SET" | "SHOW" => of(&mut self.settings.iter().map(String::as_str)),
            _ if word.is_empty() => Vec::new(),
            _ => {
                let mut found = of(&mut self.columns_in(text).into_iter());
                found.extend(of(&mut self.functions.iter().map(String::as_str)));
                let upper = word.chars().next().is_some_and(char::is_uppercase);
                let keywords = KEYWORDS.map(|word| if upper { word.to_owned() } else { word.to_lowercase() });
                found.extend(of(&mut keywords.iter().map(String::as_str)));
                found.extend(of(&mut self.tables.iter().map(String::as_str)));
                found
            }
        };
        let mut known = std::collections::HashSet::new();
        (start, found.into_iter().filter(|candidate| known.insert(candidate.typed.clone())).collect())
    }

    /// The columns of the tables that a text names; of all where it names none.
    fn columns_in<'w>(&'w self, text: &str) -> Vec<&'w str> {
        let lower = text.to_lowercase();
        let words: Vec<&str> = lower.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'))).collect();
        let named = |table: &str| words.contains(&table);
        let any = self.tables.iter().any(|table| named(table));
        let columns = self.columns.iter().filter(|(table, _)| named(table) || (!any && !table.contains('.')));
        columns.map(|(_, column)| column.as_str()).collect()
    }

    /// The values that may stand in a quote behind a text.
    fn values(&self, before: &str, typed: &str) -> Vec<Candidate> {
        let lower = typed.to_lowercase();
        let plain = |values: &mut dyn Iterator<Item = &str>| {
            let fits = values.filter(|value| value.to_lowercase().starts_with(&lower));
            fits.map(|value| Candidate { shown: value.to_owned(), typed: format!("{value}'") }).collect()
        };
        match compared(before).as_deref() {
            Some("aid") => {
                let of_aid = |aid: &str| aid.to_lowercase().starts_with(&lower);
                // What would move the cursor is no aid that anybody types.
                let searches = self.searches.iter().filter(|(aid, _)| !aid.contains(char::is_control));
                let fits = searches.filter(|(aid, name)| of_aid(aid) || name.to_lowercase().contains(&lower));
                let fits: Vec<_> = fits.collect();
                // Where several names fit, what was typed stays until one is left.
                let stays = fits.len() > 1 && !fits.iter().all(|(aid, _)| of_aid(aid));
                let candidate = |(aid, name): &(String, String)| Candidate {
                    shown: format!("{aid}  {}", one_line(name)),
                    typed: if stays { typed.to_owned() } else { format!("{}'", aid.replace('\'', "''")) },
                };
                fits.into_iter().map(candidate).collect()
            }
            Some("duration") => plain(&mut self.periods.iter().map(String::as_str)),
            Some("timezone" | "zone") => plain(&mut Zone::names()),
            _ => Vec::new(),
        }
    }
}

/// The column or argument that the value behind a text is compared with: `aid = `, `aid IN ('1', `, `aid => `.
fn compared(before: &str) -> Option<String> {
    let mut tokens = Vec::new();
    // What cannot be read is behind what can.
    let _ = Tokenizer::new(&GenericDialect {}, before).tokenize_with_location_into_buf(&mut tokens);
    let is_word =
        |token: &Token, word: &str| matches!(token, Token::Word(found) if found.value.eq_ignore_ascii_case(word));
    let tokens = tokens.into_iter().map(|token| token.token).filter(|token| !matches!(token, Token::Whitespace(_)));
    let tokens: Vec<Token> = tokens.collect();
    let mut back = tokens.into_iter().rev().peekable();
    let in_list = |token: &Token| {
        matches!(
            token,
            Token::Comma | Token::LParen | Token::LBracket | Token::SingleQuotedString(_) | Token::Number(..)
        )
    };
    while back.next_if(in_list).is_some() {}
    match back.next()? {
        Token::Eq | Token::Neq | Token::RArrow | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq => {}
        token if is_word(&token, "IN") => {
            back.next_if(|token| is_word(token, "NOT"));
        }
        token if is_word(&token, "ZONE") => return Some("zone".to_owned()),
        _ => return None,
    }
    match back.next()? {
        Token::Word(word) => Some(word.value.to_lowercase()),
        _ => None,
    }
}

/// The tables that need no catalog, by what they are called then: those of the default schema by their names alone.
pub(super) async fn tables(context: &SessionContext) -> Vec<(String, Arc<dyn TableProvider>)> {
    let state = context.state();
    let default = &state.config().options().catalog;
    let mut found = Vec::new();
    let Some(catalog) = context.catalog(&default.default_catalog) else { return found };
    for schema_name in catalog.schema_names() {
        let Some(schema) = catalog.schema(&schema_name) else { continue };
        for table_name in schema.table_names() {
            // One that went away meanwhile is none.
            if let Ok(Some(table)) = schema.table(&table_name).await {
                let own = schema_name == default.default_schema;
                found.push((if own { table_name } else { format!("{schema_name}.{table_name}") }, table));
            }
        }
    }
    found.sort_by(|(one, _), (other, _)| (one.contains('.'), one).cmp(&(other.contains('.'), other)));
    found
}

/// Where the text of a quote begins that is not closed; comments and names have no quotes.
fn open_quote(text: &str) -> Option<usize> {
    let mut tokens = Vec::new();
    Tokenizer::new(&GenericDialect {}, text).tokenize_with_location_into_buf(&mut tokens).err()?;
    // What cannot be read begins behind what can.
    let rest = text[behind(text, &tokens)..].trim_start();
    rest.starts_with('\'').then(|| text.len() - rest.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        let text = |text: &str| text.to_owned();
        Words {
            tables: vec![text("mentions"), text("overview"), text("system.requests")],
            columns: vec![
                (text("mentions"), text("published_at")),
                (text("overview"), text("positive")),
                (text("system.requests"), text("parameters")),
            ],
            functions: vec![text("power")],
            settings: vec![text("savedsearch.max_requests")],
            searches: vec![(text("183772"), text("Acme – brand")), (text("184889"), text("Globex"))],
            catalogs: vec![text("other")],
            connections: vec![text("here")],
            periods: vec![text("7d"), text("30d")],
        }
    }

    fn typed(text: &str) -> Vec<String> {
        words().complete(text).1.into_iter().map(|candidate| candidate.typed).collect()
    }

    #[test]
    fn words_are_completed_by_what_stands_before_them() {
        assert_eq!(typed("SELECT * FROM m"), ["mentions"]);
        assert_eq!(typed("select p"), ["published_at", "positive", "power", "partition"]);
        assert_eq!(typed("SELECT * FROM mentions WHERE P"), ["published_at", "power", "PARTITION"]);
        assert_eq!(typed("SET max"), [""; 0]);
        assert_eq!(typed("SET savedsearch.m"), ["savedsearch.max_requests"]);
        assert_eq!(typed("SELECT * FROM "), ["mentions", "overview", "system.requests", "other"]);
        assert_eq!(typed("SELECT "), [""; 0], "not all that there is");
    }

    #[test]
    fn values_are_completed_in_quotes() {
        assert_eq!(typed("SELECT * FROM mentions WHERE aid = '18"), ["183772'", "184889'"]);
        assert_eq!(typed("SELECT 1 WHERE aid IN ('183772', 'glob"), ["184889'"]);
        assert_eq!(typed("SELECT 1 FROM mentions(aid => 'acme"), ["183772'"]);
        assert_eq!(typed("SELECT 1 WHERE duration = '3"), ["30d'"]);
        assert_eq!(typed("SELECT 1 WHERE timezone = 'europe/berl"), ["Europe/Berlin'"]);
        assert_eq!(typed("SELECT 1 -- it's\n FROM mentions WHERE \"aid\" IN ('r-1', 7, 'glo"), ["184889'"]);
        assert_eq!(typed("SELECT 1 FROM mentions WHERE aid = 'a'' b"), [""; 0]);
        assert_eq!(typed("SELECT published_at AT TIME ZONE 'europe/berl"), ["Europe/Berlin'"]);
        assert_eq!(typed("SELECT 1 -- aid = 'gl"), [""; 0], "a comment");
        assert_eq!(typed("SELECT 1 FROM mentions WHERE title = 'a"), [""; 0]);
        let (start, found) = words().complete("SELECT 'x' WHERE aid = 'gl");
        assert_eq!((start, found[0].shown.as_str()), (24, "184889  Globex"));
    }
}
