//! Completion of SQL from the text before the cursor. Sends no request.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::DataType;
use datafusion::execution::FunctionRegistry;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use super::splitter::behind;
use crate::connection::Connection;
use crate::error::one_line;
use crate::profile::{Origin, TableSpec, Zone};
use crate::session::literal;
use crate::session::suggestion::tables_of;
use crate::table::ApiTable;

/// Words known at the moment.
#[derive(Debug, Default, Clone)]
pub(crate) struct Words {
    /// Tables, by their names in the current catalog.
    pub(crate) tables: Vec<String>,
    /// Pairs of table and column.
    columns: Vec<(String, String)>,
    pub(crate) functions: Vec<String>,
    pub(super) settings: Vec<String>,
    /// Aids and names of saved searches, from the last list.
    searches: Vec<(String, String)>,
    catalogs: Vec<String>,
    /// Connections by name.
    pub(super) connections: Vec<String>,
    periods: Vec<String>,
    /// Pairs of column and value: those that the profile declares, and those of the last result.
    values: Vec<(String, String)>,
}

/// A completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Text of the list of candidates.
    pub(crate) shown: String,
    /// Replacement of the typed word.
    pub(crate) typed: String,
    /// Replacement of the typed word if this candidate is chosen from a list. It differs from `typed` if several saved searches
    /// match: the shell then leaves the typed part.
    pub(crate) chosen: String,
}

impl Candidate {
    fn new(shown: &str, typed: String) -> Self {
        Self { shown: shown.to_owned(), chosen: typed.clone(), typed }
    }
}

/// SQL keywords.
pub(crate) const KEYWORDS: [&str; 71] = [
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
    /// Gathers the words of a session.
    pub(crate) async fn of(
        context: &SessionContext,
        connection: &Arc<Connection>,
        searches: Vec<(String, String)>,
        connections: Vec<String>,
    ) -> Self {
        let mut words = Self { searches, connections, ..Self::default() };
        let state = context.state();
        for (name, table) in tables_of(context).await {
            let schema = table.schema();
            words.columns.extend(schema.fields().iter().map(|field| (name.clone(), field.name().clone())));
            if let Some(own) = table.downcast_ref::<ApiTable>() {
                words.values.extend(labels(own.spec()));
            }
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

    /// Adds values of string columns of a result, which a next query may filter by.
    pub(super) fn add_values(&mut self, batches: &[RecordBatch]) {
        /// Rows read, since this happens before every prompt.
        const ROWS: usize = 1_000;
        /// Values per column.
        const MOST: usize = 50;
        /// Longer strings are prose.
        const LONGEST: usize = 60;
        let Some(schema) = batches.first().map(RecordBatch::schema) else { return };
        for (at, field) in schema.fields().iter().enumerate().filter(|(_, field)| field.data_type() == &DataType::Utf8)
        {
            let values = batches.iter().flat_map(|batch| batch.column(at).as_string::<i32>()).take(ROWS);
            let short = values.flatten().filter(|value| value.len() <= LONGEST && !value.contains(char::is_control));
            let distinct: BTreeSet<&str> = short.collect();
            let pairs = distinct.into_iter().take(MOST).map(|value| (field.name().clone(), value.to_owned()));
            self.values.extend(pairs.collect::<Vec<_>>());
        }
    }

    /// Completes the word at the end of `text`; `after` is the text behind the cursor. Returns where the word begins, and
    /// the candidates, best first.
    pub(crate) fn complete(&self, text: &str, after: &str) -> (usize, Vec<Candidate>) {
        if let Some(start) = open_quote(text) {
            return (start, self.quoted(text[..start - 1].trim_end(), &text[start..]));
        }
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let start = text.char_indices().rev().take_while(|(_, c)| is_word(*c)).last().map_or(text.len(), |(at, _)| at);
        let (before, word) = (text[..start].to_uppercase(), &text[start..]);
        let last = before.split_whitespace().next_back().unwrap_or_default();
        let sources = self.sources(&format!("{text} {after}"));
        if let Some((alias, typed)) = word.split_once('.')
            && let Some((_, table)) = sources.iter().find(|(name, _)| name.eq_ignore_ascii_case(alias))
        {
            let lower = typed.to_lowercase();
            let columns = self.columns.iter().filter(|(of, column)| of == table && column.starts_with(&lower));
            let candidate = |(_, column): &(String, String)| {
                let word = format!("{alias}.{column}");
                Candidate::new(&word, word.clone())
            };
            return (start, columns.map(candidate).collect());
        }
        let of = |words: &mut dyn Iterator<Item = &str>| {
            let lower = word.to_lowercase();
            let fits = words.filter(|known| known.to_lowercase().starts_with(&lower));
            fits.map(|known| Candidate::new(known, known.to_owned())).collect::<Vec<_>>()
        };
        let found = match last {
            "FROM" | "JOIN" | "DESCRIBE" => of(&mut self.tables.iter().chain(&self.catalogs).map(String::as_str)),
            "SET" | "SHOW" => of(&mut self.settings.iter().map(String::as_str)),
            // After these a column follows, so that there is something to offer before a letter is typed.
            "SELECT" | "DISTINCT" | "WHERE" | "AND" | "OR" | "ON" | "BY" | "HAVING" if word.is_empty() => {
                of(&mut self.columns_of(&sources).into_iter())
            }
            _ if word.is_empty() && before.trim_end().ends_with(',') => of(&mut self.columns_of(&sources).into_iter()),
            _ if word.is_empty() => Vec::new(),
            _ => {
                let mut found = of(&mut self.columns_of(&sources).into_iter());
                found.extend(of(&mut sources.iter().map(|(alias, _)| alias.as_str())));
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

    /// Tables that a statement names, each with the name that it has there: `mentions AS m`, `mentions m`, `mentions`.
    fn sources(&self, statement: &str) -> Vec<(String, String)> {
        let mut tokens = Vec::new();
        // A statement that is being typed may end in an open quote; the tokens before it count.
        let _ = Tokenizer::new(&GenericDialect {}, statement).tokenize_with_location_into_buf(&mut tokens);
        let words = tokens.into_iter().filter_map(|token| match token.token {
            Token::Whitespace(_) => None,
            Token::Word(word) => Some(word.value),
            other => Some(other.to_string()),
        });
        let words: Vec<String> = words.collect();
        let mut found = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let schema = at.checked_sub(2).filter(|_| words[at - 1] == ".").map(|at| words[at].as_str());
            let qualified =
                schema.map_or_else(|| word.to_lowercase(), |schema| format!("{schema}.{word}").to_lowercase());
            let Some(table) = self.tables.iter().find(|table| **table == qualified) else { continue };
            let mut next = words[at + 1..].iter().map(String::as_str);
            let alias = match next.next() {
                Some(word) if word.eq_ignore_ascii_case("as") => next.next(),
                other => other,
            };
            let is_name = |word: &&str| {
                word.starts_with(|c: char| c.is_alphabetic() || c == '_')
                    && !KEYWORDS.contains(&word.to_uppercase().as_str())
            };
            let name = alias.filter(is_name).unwrap_or(word);
            found.push((name.to_owned(), table.clone()));
        }
        found
    }

    /// Columns of these tables, or of the tables of the service if there are none.
    fn columns_of<'w>(&'w self, sources: &[(String, String)]) -> Vec<&'w str> {
        let named = |table: &str| sources.iter().any(|(_, source)| source == table);
        let columns =
            self.columns.iter().filter(|(table, _)| named(table) || (sources.is_empty() && !table.contains('.')));
        columns.map(|(_, column)| column.as_str()).collect()
    }

    /// Values for an open quote.
    fn quoted(&self, before: &str, typed: &str) -> Vec<Candidate> {
        let lower = typed.replace("''", "'").to_lowercase();
        let plain = |values: &mut dyn Iterator<Item = &str>| {
            let fits = values.filter(|value| value.to_lowercase().starts_with(&lower));
            fits.map(|value| Candidate::new(value, behind_quote(value))).collect()
        };
        match compared(before).as_deref() {
            Some("aid") => {
                let of_aid = |aid: &str| aid.to_lowercase().starts_with(&lower);
                // Control characters would move the cursor.
                let searches = self.searches.iter().filter(|(aid, _)| !aid.contains(char::is_control));
                let fits = searches.filter(|(aid, name)| of_aid(aid) || name.to_lowercase().contains(&lower));
                let fits: Vec<_> = fits.collect();
                // The typed part of a name stays until a single candidate is left.
                let stays = fits.len() > 1 && !fits.iter().all(|(aid, _)| of_aid(aid));
                let candidate = |(aid, name): &(String, String)| Candidate {
                    shown: format!("{aid}  {}", one_line(name)),
                    typed: if stays { typed.to_owned() } else { behind_quote(aid) },
                    chosen: behind_quote(aid),
                };
                fits.into_iter().map(candidate).collect()
            }
            Some("duration") => plain(&mut self.periods.iter().map(String::as_str)),
            Some("timezone" | "zone") => plain(&mut Zone::names()),
            Some(column) => {
                let of_column = self.values.iter().filter(|(of, _)| of == column).map(|(_, value)| value.as_str());
                let distinct: BTreeSet<&str> = of_column.collect();
                plain(&mut distinct.into_iter())
            }
            None => Vec::new(),
        }
    }
}

/// Pairs of column and value that a profile declares: labels of sections, such as the values of `dimension`.
fn labels(table: &TableSpec) -> Vec<(String, String)> {
    let columns = table.columns.iter().filter(|column| column.origin == Origin::Section);
    let labels = table.sections.iter().map(|section| section.label.clone()).filter(|label| !label.is_empty());
    columns.flat_map(|column| labels.clone().map(|label| (column.name.clone(), label))).collect()
}

/// Returns the column or argument that the next value is for: `aid = `, `aid IN ('1', `, `aid => `, `AT TIME ZONE`.
fn compared(before: &str) -> Option<String> {
    let mut tokens = Vec::new();
    // An error is at the end; the tokens before it count.
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

/// A text as the part of a literal behind its first quote, which is typed already.
fn behind_quote(text: &str) -> String {
    literal(text).split_off(1)
}

/// Returns the offset of the text in an open single quote.
fn open_quote(text: &str) -> Option<usize> {
    let mut tokens = Vec::new();
    Tokenizer::new(&GenericDialect {}, text).tokenize_with_location_into_buf(&mut tokens).err()?;
    // The token that cannot be read follows the last one.
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
            values: vec![(text("sentiment"), text("negative")), (text("sentiment"), text("neutral"))],
        }
    }

    fn typed(text: &str) -> Vec<String> {
        words().complete(text, "").1.into_iter().map(|candidate| candidate.typed).collect()
    }

    #[test]
    fn words_are_completed_by_what_stands_before_them() {
        assert_eq!(typed("SELECT * FROM m"), ["mentions"]);
        assert_eq!(typed("select p"), ["published_at", "positive", "power", "partition"]);
        assert_eq!(typed("SELECT * FROM mentions WHERE P"), ["published_at", "power", "PARTITION"]);
        assert_eq!(typed("SET max"), [""; 0]);
        assert_eq!(typed("SET savedsearch.m"), ["savedsearch.max_requests"]);
        assert_eq!(typed("SELECT * FROM "), ["mentions", "overview", "system.requests", "other"]);
        assert_eq!(typed("SELECT "), ["published_at", "positive"], "of the tables of the service");
        assert_eq!(typed("SELECT 1 FROM overview WHERE "), ["positive"]);
        assert_eq!(typed("SELECT 1 FROM overview ORDER BY "), ["positive"]);
        assert_eq!(typed("SELECT 1 FROM overview LIMIT "), [""; 0]);
        let (start, found) = words().complete("SELECT ", " FROM overview");
        assert_eq!((start, found.len(), found[0].typed.as_str()), (7, 1, "positive"), "the table behind the cursor");
    }

    #[test]
    fn columns_of_an_alias_are_completed() {
        assert_eq!(typed("SELECT m. FROM mentions m WHERE m.pub"), ["m.published_at"]);
        assert_eq!(typed("SELECT 1 FROM mentions AS men JOIN overview o ON o."), ["o.positive"]);
        assert_eq!(typed("SELECT 1 FROM mentions AS men WHERE me"), ["men", "mentions"]);
        assert_eq!(typed("SELECT 1 FROM system.requests WHERE "), ["parameters"]);
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
        assert_eq!(typed("SELECT 1 FROM mentions m WHERE m.sentiment = 'ne"), ["negative'", "neutral'"]);
        let (start, found) = words().complete("SELECT 'x' WHERE aid = 'gl", "");
        assert_eq!((start, found[0].shown.as_str()), (24, "184889  Globex"));
        // The letter of both names stays, but each can be chosen.
        let (_, found) = words().complete("SELECT 1 WHERE aid = 'e", "");
        let found: Vec<_> = found.iter().map(|candidate| (&*candidate.typed, &*candidate.chosen)).collect();
        assert_eq!(found, [("e", "183772'"), ("e", "184889'")]);
    }
}
