//! Headers of a result as the user typed them, for people who read it.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{SelectItem, SetExpr, Statement as Ast};

use super::tree::output_names::header_of;

/// Headers of a result as the user typed them: `count(*)` and `1` instead of the engine's `Int64(1)`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers {
    /// Headers of the first columns; `None` for a column that keeps its name.
    first: Vec<Option<String>>,
    /// Headers of the last columns, after `*`. `None` if there is no `*`.
    last: Option<Vec<Option<String>>>,
}

impl Headers {
    /// The headers of a query; none for other statements.
    pub(crate) fn of(statement: &Statement) -> Self {
        let Statement::Statement(statement) = statement else { return Self::default() };
        let Ast::Query(query) = statement.as_ref() else { return Self::default() };
        let mut body = query.body.as_ref();
        loop {
            body = match body {
                SetExpr::Select(select) => return Self::of_items(&select.projection),
                SetExpr::Query(query) => query.body.as_ref(),
                // The first query names the columns.
                SetExpr::SetOperation { left, .. } => left,
                _ => return Self::default(),
            };
        }
    }

    fn of_items(items: &[SelectItem]) -> Self {
        let mut headers = Self::default();
        for item in items {
            let header = match item {
                SelectItem::UnnamedExpr(expr) => header_of(expr),
                SelectItem::ExprWithAlias { .. } => None,
                _ => {
                    headers.last = Some(Vec::new());
                    continue;
                }
            };
            headers.last.as_mut().unwrap_or(&mut headers.first).push(header);
        }
        headers
    }

    /// The schema with these headers.
    pub(crate) fn apply(&self, schema: SchemaRef) -> SchemaRef {
        let (count, first) = (schema.fields().len(), &self.first);
        let last = self.last.as_deref().unwrap_or_default();
        let fits = if self.last.is_some() { first.len() + last.len() <= count } else { first.len() == count };
        if !fits || first.iter().chain(last).all(Option::is_none) {
            return schema;
        }
        let header = |at: usize| match at.checked_sub(count - last.len()) {
            Some(at) => last.get(at),
            None => first.get(at),
        };
        let fields = schema.fields().iter().enumerate().map(|(at, field)| match header(at) {
            Some(Some(header)) => Arc::new(Field::clone(field).with_name(header)),
            _ => Arc::clone(field),
        });
        Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
    }
}

/// The batch under another schema of the same types.
pub(crate) fn with_schema(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    if Arc::ptr_eq(batch.schema_ref(), schema) {
        return Ok(batch);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), batch.columns().to_vec(), &options)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;

    use super::*;
    use crate::session::parse_statements;

    fn headers(sql: &str, columns: usize) -> Vec<String> {
        let statement = parse_statements(sql).expect("SQL").pop_front().expect("a statement");
        let fields: Vec<Field> = (0..columns).map(|at| Field::new(format!("c{at}"), DataType::Int64, true)).collect();
        let named = Headers::of(&statement).apply(Arc::new(Schema::new(fields)));
        named.fields().iter().map(|field| field.name().clone()).collect()
    }

    #[test]
    fn headers_are_as_typed() {
        assert_eq!(headers("SELECT 1, count(*), a AS b, c FROM t", 4), ["1", "count(*)", "c2", "c3"]);
        assert_eq!(headers("SELECT 'x' UNION ALL SELECT 2 + 2", 1), ["'x'"]);
        assert_eq!(headers("(SELECT -1)", 1), ["-1"]);
        assert_eq!(headers("SELECT 1, *, 2 + 2 FROM t", 5), ["1", "c1", "c2", "c3", "2 + 2"]);
        assert_eq!(headers("SELECT t.*, max(x) FROM t", 3), ["c0", "c1", "max(x)"]);
        assert_eq!(headers("SELECT *, 7, * FROM t", 7), ["c0", "c1", "c2", "c3", "c4", "c5", "c6"]);
        assert_eq!(headers("VALUES (1)", 1), ["c0"]);
        assert_eq!(headers("SELECT 1, 2", 3), ["c0", "c1", "c2"], "of another number of columns");
        assert_eq!(headers("EXPLAIN SELECT 1", 2), ["c0", "c1"]);
    }
}
