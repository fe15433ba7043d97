//! What may be typed: the words that are completed, by what stands before them. Nothing is asked of the service.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::execution::FunctionRegistry;
use datafusion::prelude::SessionContext;

use crate::connection::Connection;
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
    /// Other catalogs.
    pub(super) catalogs: Vec<String>,
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
    /// The words of a session, with these saved searches.
    pub(super) async fn of(
        context: &SessionContext,
        connection: &Arc<Connection>,
        searches: &[(String, String)],
    ) -> Self {
        let mut words = Self::default();
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
        words.searches = searches.to_vec();
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
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '\\');
        let start = text.char_indices().rev().take_while(|(_, c)| is_word(*c)).last().map_or(text.len(), |(at, _)| at);
        let (before, word) = (text[..start].to_uppercase(), &text[start..]);
        let last = before.split_whitespace().next_back().unwrap_or_default();
        let of = |words: &mut dyn Iterator<Item = &str>| {
            let lower = word.to_lowercase();
            let fits = words.filter(|known| known.to_lowercase().starts_with(&lower));
            fits.map(|known| Candidate { shown: known.to_owned(), typed: known.to_owned() }).collect::<Vec<_>>()
        };
        let found = match last {
            "FROM" | "JOIN" | "DESCRIBE" | "\\D" => {
                of(&mut self.tables.iter().chain(&self.catalogs).map(String::as_str))
            }
            "SET" | "SHOW" | "RESET" => of(&mut self.settings.iter().map(String::as_str)),
            "\\C" => of(&mut self.catalogs.iter().map(String::as_str)),
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

    /// The values that may stand in a quote.
    fn values(&self, before: &str, typed: &str) -> Vec<Candidate> {
        let lower = before.to_lowercase();
        let lower = lower
            .trim_end_matches(|c: char| c == '(' || c == ',' || c == '[' || c == '\'' || c.is_numeric() || c == ' ');
        let column = lower.trim_end_matches("in").trim_end_matches(['=', '<', '>', ' ', '!']);
        let column = column.trim_end().rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
        let typed = typed.to_lowercase();
        let plain = |values: &mut dyn Iterator<Item = &str>| {
            let fits = values.filter(|value| value.to_lowercase().starts_with(&typed));
            fits.map(|value| Candidate { shown: value.to_owned(), typed: format!("{value}'") }).collect()
        };
        match column {
            "aid" => {
                let of_aid = |aid: &str| aid.starts_with(&typed);
                let fits =
                    self.searches.iter().filter(|(aid, name)| of_aid(aid) || name.to_lowercase().contains(&typed));
                let fits: Vec<_> = fits.collect();
                // Where several names fit, what was typed stays until one is left.
                let stays = fits.len() > 1 && !fits.iter().all(|(aid, _)| of_aid(aid));
                let candidate = |(aid, name): &(String, String)| Candidate {
                    shown: format!("{aid}  {name}"),
                    typed: if stays { typed.clone() } else { format!("{aid}'") },
                };
                fits.into_iter().map(candidate).collect()
            }
            "duration" => plain(&mut self.periods.iter().map(String::as_str)),
            "timezone" | "zone" => plain(&mut Zone::names()),
            _ => Vec::new(),
        }
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

/// Where the text of a quote begins that is not closed.
fn open_quote(text: &str) -> Option<usize> {
    let mut open = None;
    for (at, c) in text.char_indices() {
        if c == '\'' {
            open = if open.is_none() { Some(at + 1) } else { None };
        }
    }
    open
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
        assert_eq!(typed("… WHERE aid IN ('183772', 'glob"), ["184889'"]);
        assert_eq!(typed("… mentions(aid => 'acme"), ["183772'"]);
        assert_eq!(typed("… WHERE duration = '3"), ["30d'"]);
        assert_eq!(typed("… WHERE timezone = 'europe/berl"), ["Europe/Berlin'"]);
        assert_eq!(typed("… WHERE title = 'a"), [""; 0]);
        let (start, found) = words().complete("SELECT 'x' WHERE aid = 'gl");
        assert_eq!((start, found[0].shown.as_str()), (24, "184889  Globex"));
    }
}
