//! Numbers that PostgreSQL has as integer or smallint. The engine has bigint for them and for bigint; the plan shows which of them
//! PostgreSQL has: literals, casts, and what is computed from them.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{AggregateFunction, Cast, WindowFunction};
use datafusion::logical_expr::{BinaryExpr, Distinct, Expr, LogicalPlan, Operator};

use crate::functions::TypeIn;

/// True for an expression that is a sum of numbers of which one is not integer or smallint.
pub(super) fn is_sum_of_bigint(expr: &Expr, input: &LogicalPlan) -> bool {
    let (name, arguments) = match expr {
        Expr::Alias(alias) => return is_sum_of_bigint(&alias.expr, input),
        Expr::AggregateFunction(AggregateFunction { func, params }) => (func.name(), &params.args),
        Expr::WindowFunction(function) => {
            let WindowFunction { fun, params } = function.as_ref();
            (fun.name(), &params.args)
        }
        _ => return false,
    };
    name == "sum" && arguments.iter().all(|argument| !is_integer(argument, &[input]))
}

/// True for an expression that has PostgreSQL's type integer or smallint.
fn is_integer(expr: &Expr, inputs: &[&LogicalPlan]) -> bool {
    const OF_ARGUMENTS: [&str; 9] =
        ["coalesce", "greatest", "least", "nullif", "abs", "nvl", "unnest", "make_array", "generate_series"];
    const OF_VALUES: [&str; 6] = ["min", "max", "first_value", "last_value", "lag", "lead"];
    const LENGTHS: [&str; 13] = [
        "length",
        "char_length",
        "character_length",
        "octet_length",
        "bit_length",
        "strpos",
        "ascii",
        "cardinality",
        "array_length",
        "array_position",
        "array_ndims",
        "levenshtein",
        "ntile",
    ];
    let all = |exprs: &[Expr]| !exprs.is_empty() && exprs.iter().all(|expr| is_integer(expr, inputs));
    let by_name = |name: &str, arguments: &[Expr]| {
        LENGTHS.contains(&name)
            || OF_ARGUMENTS.contains(&name) && all(arguments)
            || OF_VALUES.contains(&name) && arguments.first().is_some_and(|value| is_integer(value, inputs))
    };
    let small = |data_type: &DataType| {
        matches!(data_type, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16)
    };
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(value)), _) => i32::try_from(*value).is_ok(),
        Expr::Literal(value, _) => value.is_null() || small(&value.data_type()),
        Expr::Alias(alias) => is_integer(&alias.expr, inputs),
        Expr::Column(column) => inputs
            .iter()
            .any(|input| input.schema().maybe_index_of_column(column).is_some_and(|at| is_integer_column(input, at))),
        Expr::Cast(Cast { field, .. }) => small(field.data_type()),
        Expr::Negative(operand) => is_integer(operand, inputs),
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo,
            right,
        }) => is_integer(left, inputs) && is_integer(right, inputs),
        Expr::Case(case) => case
            .when_then_expr
            .iter()
            .map(|(_, then)| then.as_ref())
            .chain(case.else_expr.as_deref())
            .all(|result| is_integer(result, inputs)),
        Expr::ScalarSubquery(subquery) => is_integer_column(&subquery.subquery, 0),
        Expr::ScalarFunction(function) => {
            by_name(function.func.name(), &function.args)
                || function.func.name() != "sum" && merged_type(expr, inputs).is_some_and(|known| small(&known))
        }
        Expr::AggregateFunction(function) => by_name(function.func.name(), &function.params.args),
        Expr::WindowFunction(function) => by_name(function.fun.name(), &function.params.args),
        _ => false,
    }
}

fn merged_type(expr: &Expr, inputs: &[&LogicalPlan]) -> Option<DataType> {
    inputs.iter().find_map(|input| expr.type_in(input.schema()).ok())
}

/// As [`is_integer`], for a column of a plan.
fn is_integer_column(plan: &LogicalPlan, at: usize) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => {
            projection.expr.get(at).is_some_and(|expr| is_integer(expr, &[&projection.input]))
        }
        LogicalPlan::SubqueryAlias(alias) => is_integer_column(&alias.input, at),
        LogicalPlan::Subquery(subquery) => is_integer_column(&subquery.subquery, at),
        LogicalPlan::Filter(filter) => is_integer_column(&filter.input, at),
        LogicalPlan::Sort(sort) => is_integer_column(&sort.input, at),
        LogicalPlan::Limit(limit) => is_integer_column(&limit.input, at),
        LogicalPlan::Distinct(Distinct::All(input)) => is_integer_column(input, at),
        LogicalPlan::Distinct(Distinct::On(on)) => {
            on.select_expr.get(at).is_some_and(|expr| is_integer(expr, &[&on.input]))
        }
        LogicalPlan::Aggregate(aggregate) => {
            let keys = plan.schema().fields().len() - aggregate.aggr_expr.len();
            let expr = match at.checked_sub(keys) {
                Some(at) => aggregate.aggr_expr.get(at),
                None => aggregate.group_expr.get(at),
            };
            expr.is_some_and(|expr| is_integer(expr, &[&aggregate.input]))
        }
        LogicalPlan::Window(window) => match at.checked_sub(window.input.schema().fields().len()) {
            Some(at) => window.window_expr.get(at).is_some_and(|expr| is_integer(expr, &[&window.input])),
            None => is_integer_column(&window.input, at),
        },
        LogicalPlan::Join(join) => match at.checked_sub(join.left.schema().fields().len()) {
            Some(at) => is_integer_column(&join.right, at),
            None => is_integer_column(&join.left, at),
        },
        LogicalPlan::Union(union) => union.inputs.iter().all(|input| is_integer_column(input, at)),
        LogicalPlan::Values(values) => {
            values.values.iter().all(|row| row.get(at).is_some_and(|value| is_integer(value, &[])))
        }
        LogicalPlan::Unnest(unnest) => {
            unnest.dependency_indices.get(at).is_some_and(|at| is_integer_column(&unnest.input, *at))
        }
        LogicalPlan::TableScan(scan) => {
            let field = plan.schema().field(at);
            matches!(field.data_type(), DataType::Int8 | DataType::Int16 | DataType::Int32)
                || scan
                    .table_name
                    .table()
                    .split(['(', '#'])
                    .next()
                    .is_some_and(|name| ["generate_series", "range"].contains(&name))
        }
        _ => false,
    }
}
