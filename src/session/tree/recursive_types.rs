//! Types of recursive queries.
//!
//! The rows of `WITH RECURSIVE` have the types of its first term. The engine casts those of the recursive term to them, even if
//! that loses something: `SELECT 1 AS n UNION ALL SELECT n * 1.5 FROM t` is 1 for ever. The standard requires types that fit, so
//! such a statement is refused. A cast that is written stays.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, LogicalPlan};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr as SqlExpr, Query, SelectItem, SetExpr};

use crate::error::{Error, ErrorKind};
use crate::functions::TypeIn;
use crate::session::syntax::{self, Reader};

/// Refuses recursive terms that lose parts of their values.
///
/// # Errors
/// [`ErrorKind::Query`] with the column and its two types.
pub(in crate::session) fn check_recursive_types(statement: &Statement, plan: &LogicalPlan) -> Result<()> {
    let mut terms = Terms::default();
    syntax::read_statement(statement, &mut terms);
    if terms.0.is_empty() {
        return Ok(());
    }
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::RecursiveQuery(query) = node else { return Ok(TreeNodeRecursion::Continue) };
        let LogicalPlan::Projection(projection) = query.recursive_term.as_ref() else {
            return Ok(TreeNodeRecursion::Continue);
        };
        let written = terms.0.iter().find(|term| term.name == query.name);
        for (at, (expr, field)) in projection.expr.iter().zip(query.static_term.schema().fields()).enumerate() {
            let expr = expr.clone().unalias();
            let Expr::Cast(Cast { expr: value, field: to }) = &expr else { continue };
            let from = value.type_in(projection.input.schema())?;
            let of_statement = written.and_then(|term| term.casts.get(at)).copied().unwrap_or_default();
            if loses(&from, to.data_type()) && casts(&expr) > of_statement {
                let (name, first) = (field.name(), named(to.data_type()));
                let message = format!(
                    "WITH RECURSIVE {}: column {name} is {} in the recursive term, but {first} in the first one",
                    query.name,
                    named(&from)
                );
                return Err(Error::new(ErrorKind::Query, message)
                    .advice("cast one of the two to the other type")
                    .into());
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Number of casts around a value.
fn casts(expr: &Expr) -> usize {
    match expr {
        Expr::Cast(cast) => 1 + casts(&cast.expr),
        _ => 0,
    }
}

/// As [`casts`], in a statement.
fn written_casts(expr: &SqlExpr) -> usize {
    match expr {
        SqlExpr::Cast { expr, .. } => 1 + written_casts(expr),
        SqlExpr::Nested(expr) => written_casts(expr),
        _ => 0,
    }
}

/// True if the engine's cast from one type to another may lose a part of a value without an error.
fn loses(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Date64, Float32, Float64, Timestamp};
    let float = |data_type: &DataType| matches!(data_type, Float32 | Float64);
    let scale = |data_type: &DataType| match data_type {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => Some(*scale),
        integer if integer.is_integer() => Some(0),
        _ => None,
    };
    match (scale(from), scale(to)) {
        (Some(from), Some(to)) => from > to,
        (None, Some(_)) => float(from),
        _ => matches!((from, to), (Float64, Float32)) || matches!((from, to), (Timestamp(..), Date32 | Date64)),
    }
}

/// A type in the words of SQL.
fn named(data_type: &DataType) -> String {
    match data_type {
        DataType::Float32 => "real".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            format!("decimal({precision}, {scale})")
        }
        DataType::Date32 | DataType::Date64 => "date".to_owned(),
        DataType::Timestamp(..) => "timestamp".to_owned(),
        integer if integer.is_integer() => "integer".to_owned(),
        other => other.to_string(),
    }
}

/// The recursive term of a query, as written.
struct Term {
    name: String,
    /// Casts around the value of each column.
    casts: Vec<usize>,
}

/// The recursive terms of a statement.
#[derive(Default)]
struct Terms(Vec<Term>);

impl Reader for Terms {
    fn pre_visit_query(&mut self, query: &Query) {
        let Some(with) = query.with.as_ref().filter(|with| with.recursive) else { return };
        for cte in &with.cte_tables {
            let SetExpr::SetOperation { right, .. } = cte.query.body.as_ref() else { continue };
            let mut casts = Vec::new();
            if let SetExpr::Select(select) = right.as_ref() {
                casts.extend(select.projection.iter().map(|item| match item {
                    SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => written_casts(expr),
                    _ => 0,
                }));
            }
            let name = &cte.alias.name;
            let name = if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() };
            self.0.push(Term { name, casts });
        }
    }
}
