//! Sums of bigint, which PostgreSQL has as numeric, and arithmetic with numeric.
//!
//! The plan of a statement is changed before its types are coerced: a sum of bigint is followed by a cast to numeric, so
//! that the aggregate itself stays the same, and what follows computes with numeric. The type of a sum of integer is bigint.
//! The engine has bigint for both; the plan shows which of them PostgreSQL has: literals, casts, and what is computed from
//! them.
//!
//! Averages of differences of times are computed in microseconds, whatever unit the times have, and those of numeric with 16 digits
//! after the point. A literal text of a UNION has the type of the other branches.
//!
//! A literal with a fraction is numeric beside a numeric, so `sum(a) / sum(b) = 0.5` is exact. Mathematical functions of `real` are
//! those of double precision.
//!
//! Invariant: columns keep their names.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, Cast, ScalarFunction, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Union, cast, lit,
};

use crate::functions::{DigitsKept, Numeric, TypeIn, numeric};
use crate::session::{is_of_sets, with_columns, with_outer_types, with_types_of_sets};

/// The type of a sum of bigint.
const SUM: DataType = DataType::Decimal128(20, 0);

/// The plan with PostgreSQL's types of sums.
///
/// # Errors
/// Errors of the engine's types.
pub(super) fn with_numeric(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !is_concerned(&plan)? {
        return Ok(plan);
    }
    with_outer_types(plan.rewrite_with_subqueries(&mut Numbers)?.data)
}

/// See [`with_numeric`].
struct Numbers;

impl TreeNodeRewriter for Numbers {
    type Node = LogicalPlan;

    fn f_down(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        // Both terms of a recursive query have the types that the first one has.
        let recursive = matches!(plan, LogicalPlan::RecursiveQuery(_));
        let next = if recursive { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue };
        Ok(Transformed::new(plan, false, next))
    }

    fn f_up(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        if matches!(plan, LogicalPlan::RecursiveQuery(_)) {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        let plan = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let expr = expr.transform_up(|expr| Ok(numeric_of(expr, &schema)))?;
            Ok(expr.update_data(|expr| name.restore(expr)))
        })?;
        // Inputs have other types than before.
        let plan = match plan.data {
            LogicalPlan::Union(union) => {
                let inputs = with_common_numbers(with_literals(union.inputs)?)?;
                LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)
            }
            LogicalPlan::Join(join) if is_of_sets(&join) => with_types_of_sets(join)?.recompute_schema()?,
            plan => plan.recompute_schema()?,
        };
        Ok(Transformed::yes(with_sums(having_below(plan)?)?))
    }
}

/// True for a plan with an operation of this file.
fn is_concerned(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::Union(_));
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                found |= match part {
                    Expr::AggregateFunction(function) => ["avg", "sum"].contains(&function.func.name()),
                    Expr::WindowFunction(function) => ["avg", "sum"].contains(&function.fun.name()),
                    Expr::BinaryExpr(operation) => matches!(operation.op, Operator::Divide | Operator::Multiply),
                    Expr::Literal(value, _) => matches!(value, ScalarValue::Float64(Some(_))),
                    Expr::ScalarFunction(function) => {
                        DigitsKept::named(function.name()).is_some()
                            || CHOOSING.contains(&function.name())
                            || OF_DOUBLES.contains(&function.name())
                    }
                    Expr::Case(_) => true,
                    _ => false,
                };
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    })?;
    Ok(found)
}

fn numeric_of(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::AggregateFunction(mut function) if function.func.name() == "avg" => {
            let changed = with_digits(&mut function.params.args, schema);
            Transformed::new_transformed(Expr::AggregateFunction(function), changed)
        }
        Expr::WindowFunction(mut function) if function.fun.name() == "avg" => {
            let changed = with_digits(&mut function.params.args, schema);
            Transformed::new_transformed(Expr::WindowFunction(function), changed)
        }
        Expr::ScalarFunction(mut function) => match digits_kept(&function, schema) {
            Some(call) => Transformed::yes(call),
            None => {
                let chooses = CHOOSING.contains(&function.name());
                let mut changed = chooses && with_typed_literals(function.args.iter_mut().collect(), schema);
                if OF_DOUBLES.contains(&function.name()) {
                    changed |= with_doubles(&mut function.args, schema);
                }
                Transformed::new_transformed(Expr::ScalarFunction(function), changed)
            }
        },
        Expr::Case(mut case) => {
            let results = case.when_then_expr.iter_mut().map(|(_, result)| result).chain(&mut case.else_expr);
            let changed = with_typed_literals(results.map(Box::as_mut).collect(), schema);
            Transformed::new_transformed(Expr::Case(case), changed)
        }
        other => arithmetic(other, schema),
    }
}

/// Mathematical functions that PostgreSQL has for double precision and numeric only. A test holds them against the engine's full
/// list.
const OF_DOUBLES: [&str; 30] = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "cot",
    "degrees",
    "exp",
    "floor",
    "ln",
    "log",
    "log10",
    "log2",
    "postgres_round",
    "power",
    "radians",
    "round",
    "signum",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
];

/// Casts numbers of single precision to double. Returns true if there were any.
fn with_doubles(args: &mut [Expr], schema: &DFSchema) -> bool {
    let mut changed = false;
    for arg in args {
        if arg.type_in(schema).is_ok_and(|data_type| data_type == DataType::Float32) {
            *arg = cast(arg.clone(), DataType::Float64);
            changed = true;
        }
    }
    changed
}

/// Functions that return one of their arguments.
const CHOOSING: [&str; 4] = ["coalesce", "greatest", "least", "nullif"];

/// Gives texts that are literals the type of the numbers beside them, as PostgreSQL does; the engine would make all of them texts.
/// Returns true if there were any.
fn with_typed_literals(values: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let is_text = |value: &Expr| matches!(value, Expr::Literal(value, _) if value.data_type().is_string());
    let types = values.iter().filter(|value| !is_text(value)).map(|value| value.type_in(schema));
    let Ok(types) = types.collect::<Result<Vec<_>>>() else { return false };
    let mut types = types.into_iter().filter(|other| !other.is_null());
    let Some(first) = types.next().filter(DataType::is_numeric) else { return false };
    let mut common = first;
    for other in types {
        common = match (other == common, other.is_numeric()) {
            (true, _) => common,
            (false, true) if other.is_integer() && common.is_integer() => DataType::Int64,
            (false, true) if other.is_floating() || common.is_floating() => DataType::Float64,
            _ => return false,
        };
    }
    let mut changed = false;
    for value in values.into_iter().filter(|value| is_text(value)) {
        *value = cast(value.clone(), common.clone());
        changed = true;
    }
    changed
}

/// `round(x, n)` and `trunc(x, n)` of a number with a fraction, which is numeric in PostgreSQL: of its digits.
fn digits_kept(function: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let kept = DigitsKept::named(function.name())?;
    let [number, places] = function.args.as_slice() else { return None };
    let floating = number.type_in(schema).is_ok_and(|of_number| of_number.is_floating());
    let args = vec![cast(number.clone(), DataType::Float64), cast(places.clone(), DataType::Int64)];
    floating.then(|| Expr::ScalarFunction(ScalarFunction::new_udf(kept.udf(), args)))
}

/// Averages microseconds instead of larger units, and numeric with more digits, to which the engine adds four. Returns true if there
/// were any.
fn with_digits(args: &mut [Expr], schema: &DFSchema) -> bool {
    /// Digits after the point before an average.
    const DIGITS: i8 = 12;
    let mut changed = false;
    for arg in args {
        let to = match arg.type_in(schema) {
            Ok(DataType::Duration(TimeUnit::Second | TimeUnit::Millisecond)) => {
                DataType::Duration(TimeUnit::Microsecond)
            }
            Ok(DataType::Decimal128(_, scale)) if scale < DIGITS => DataType::Decimal128(38, DIGITS),
            _ => continue,
        };
        *arg = cast(arg.clone(), to);
        changed = true;
    }
    changed
}

/// The branches of a UNION, with literal texts cast to the type that the other branches have for their column.
fn with_literals(inputs: Vec<Arc<LogicalPlan>>) -> Result<Vec<Arc<LogicalPlan>>> {
    let columns = inputs.first().map_or(0, |input| input.schema().fields().len());
    let is_literal = |input: &LogicalPlan, at: usize| {
        let LogicalPlan::Projection(projection) = input else { return false };
        let expr = projection.expr.get(at).map(|expr| expr.clone().unalias());
        matches!(expr, Some(Expr::Literal(value, _)) if value.data_type().is_string())
    };
    let wanted: Vec<Option<DataType>> = (0..columns)
        .map(|at| {
            let typed = inputs.iter().filter(|input| !is_literal(input, at) && at < input.schema().fields().len());
            let mut types = typed.map(|input| input.schema().field(at).data_type());
            let first = types.next()?;
            (!first.is_string() && !first.is_null() && types.all(|other| other == first)).then(|| first.clone())
        })
        .collect();
    let cast_literals = |input: Arc<LogicalPlan>| {
        let literals: Vec<bool> = (0..columns).map(|at| wanted[at].is_some() && is_literal(&input, at)).collect();
        let LogicalPlan::Projection(projection) = input.as_ref() else { return Ok(input) };
        if !literals.contains(&true) {
            return Ok(input);
        }
        let exprs = projection.expr.iter().zip(input.schema().fields()).zip(wanted.iter().zip(literals));
        let exprs = exprs.map(|((expr, field), (wanted, literal))| match wanted {
            Some(wanted) if literal => cast(expr.clone().unalias(), wanted.clone()).alias(field.name()),
            _ => expr.clone(),
        });
        let projection = Projection::try_new(exprs.collect(), Arc::clone(&projection.input))?;
        Ok(Arc::new(LogicalPlan::Projection(projection)))
    };
    inputs.into_iter().map(cast_literals).collect()
}

/// The branches of a UNION, with the common type of their numbers, which decides about sums of them.
fn with_common_numbers(inputs: Vec<Arc<LogicalPlan>>) -> Result<Vec<Arc<LogicalPlan>>> {
    let columns = inputs.first().map_or(0, |input| input.schema().fields().len());
    let common: Vec<Option<DataType>> = (0..columns).map(|at| common_number(&inputs, at)).collect();
    if common.iter().all(Option::is_none) {
        return Ok(inputs);
    }
    let to = |at: usize, known: &DataType| common.get(at)?.clone().filter(|common| common != known);
    inputs.into_iter().map(|input| with_columns(Arc::unwrap_or_clone(input), to).map(Arc::new)).collect()
}

/// The type of the numbers of a column, if its branches have several types.
fn common_number(inputs: &[Arc<LogicalPlan>], at: usize) -> Option<DataType> {
    let types = inputs.iter().map(|input| Some(input.schema().fields().get(at)?.data_type()));
    let types: Vec<&DataType> = types.collect::<Option<Vec<_>>>()?.into_iter().filter(|of| !of.is_null()).collect();
    let (first, others) = types.split_first()?;
    // Sums of integers are those of their own type.
    let integers = types.iter().all(|of| of.is_integer());
    if integers || !types.iter().all(|of| of.is_numeric()) || others.iter().all(|other| other == first) {
        return None;
    }
    others.iter().try_fold((*first).clone(), |common, other| type_union_coercion(&common, other))
}

/// Quotients and products of numeric.
fn arithmetic(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return Transformed::no(expr) };
    let (Ok(one), Ok(other)) = (left.type_in(schema), right.type_in(schema)) else {
        return Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }));
    };
    if let Some(operation) = operation(&one, op, &other) {
        return Transformed::yes(numeric(operation).call(vec![*left, *right]));
    }
    let numbers = op.supports_propagation() || matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply);
    let (as_left, as_right) = match numbers {
        true => (exact(&left, &other), exact(&right, &one)),
        false => (None, None),
    };
    let changed = as_left.is_some() || as_right.is_some();
    let (left, right) = (as_left.map_or(left, Box::new), as_right.map_or(right, Box::new));
    let expr = Expr::BinaryExpr(BinaryExpr { left, op, right });
    if changed { Transformed::yes(arithmetic(expr, schema).data) } else { Transformed::no(expr) }
}

/// A literal with a fraction beside a numeric: PostgreSQL has it as numeric, the engine as double precision.
fn exact(literal: &Expr, beside: &DataType) -> Option<Expr> {
    let Expr::Literal(ScalarValue::Float64(Some(number)), _) = literal else { return None };
    if !beside.is_decimal() {
        return None;
    }
    // The fewest digits that stand for the number.
    let text = number.to_string();
    let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let value = text.replace('.', "").parse::<i128>().ok()?;
    let precision = u8::try_from(value.unsigned_abs().to_string().len().max(scale)).ok()?;
    let scale = i8::try_from(scale).ok()?;
    (precision <= 20).then(|| lit(ScalarValue::Decimal128(Some(value), precision.max(1), scale)))
}

/// The operation that PostgreSQL computes with numeric in another way than the engine.
pub(super) fn operation(left: &DataType, op: Operator, right: &DataType) -> Option<Numeric> {
    let scale = |data_type: &DataType| match data_type {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => Some(*scale),
        data_type if data_type.is_integer() => Some(0),
        _ => None,
    };
    if !left.is_decimal() && !right.is_decimal() {
        return None;
    }
    match (scale(left)?, op, scale(right)?) {
        (_, Operator::Divide, _) => Some(Numeric::Divide),
        // The engine's product has the digits of both.
        (one @ 1.., Operator::Multiply, other @ 1..) if i16::from(one) + i16::from(other) > 20 => {
            Some(Numeric::Multiply)
        }
        _ => None,
    }
}

/// The node, with a projection above it that casts sums of bigint.
fn with_sums(plan: LogicalPlan) -> Result<LogicalPlan> {
    let (exprs, first, input) = match &plan {
        LogicalPlan::Aggregate(aggregate) => {
            (&aggregate.aggr_expr, plan.schema().fields().len() - aggregate.aggr_expr.len(), &aggregate.input)
        }
        LogicalPlan::Window(window) => (&window.window_expr, window.input.schema().fields().len(), &window.input),
        _ => return Ok(plan),
    };
    let sums: Vec<bool> = exprs.iter().map(|expr| is_sum_of_bigint(expr, input)).collect();
    if !sums.contains(&true) {
        return Ok(plan);
    }
    let of_sum = |at: usize| at.checked_sub(first).and_then(|at| sums.get(at)).copied().unwrap_or(false);
    let columns = plan.schema().iter().enumerate().map(|(at, (qualifier, field))| {
        let column = Column::new(qualifier.cloned(), field.name());
        match of_sum(at) && matches!(field.data_type(), DataType::Int64 | DataType::UInt64) {
            true => cast(Expr::Column(column), SUM).alias_qualified(qualifier.cloned(), field.name()),
            false => Expr::Column(column),
        }
    });
    // Rules of analysis replace it.
    let shown = |expr: &Expr| !matches!(expr, Expr::Column(column) if column.name == Aggregate::INTERNAL_GROUPING_ID);
    let columns = columns.filter(shown).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}

/// The node; a condition of HAVING stays directly above its aggregate, where rules look for it.
fn having_below(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Filter(filter) = &plan else { return Ok(plan) };
    let LogicalPlan::Projection(casts) = filter.input.as_ref() else { return Ok(plan) };
    let is_cast = |expr: &Expr| match expr {
        Expr::Column(_) => true,
        Expr::Alias(alias) => matches!(alias.expr.as_ref(), Expr::Cast(cast) if matches!(*cast.expr, Expr::Column(_))),
        _ => false,
    };
    if !matches!(casts.input.as_ref(), LogicalPlan::Aggregate(_)) || !casts.expr.iter().all(is_cast) {
        return Ok(plan);
    }
    let condition = filter.predicate.clone().transform_down(|expr| match expr {
        Expr::Column(column) => {
            let below = casts.expr[casts.schema.index_of_column(&column)?].clone().unalias();
            Ok(Transformed::new(below, true, TreeNodeRecursion::Jump))
        }
        other => Ok(Transformed::no(other)),
    })?;
    let filtered = LogicalPlanBuilder::from(Arc::clone(&casts.input)).filter(condition.data)?.build()?;
    Ok(LogicalPlan::Projection(Projection::try_new(casts.expr.clone(), Arc::new(filtered))?))
}

fn is_sum_of_bigint(expr: &Expr, input: &LogicalPlan) -> bool {
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

#[cfg(test)]
mod tests {
    use datafusion::functions::math;

    use super::*;

    /// A new function of the engine fails here, so that a developer determines if PostgreSQL has it for single precision.
    #[test]
    fn each_mathematical_function_of_the_engine_is_of_doubles_or_not() {
        // Of integers, of any number with a result of its type, and without an argument.
        const OTHERS: [&str; 9] = ["abs", "factorial", "gcd", "isnan", "iszero", "lcm", "nanvl", "pi", "random"];
        let engine = math::functions();
        for function in &engine {
            assert_ne!(OF_DOUBLES.contains(&function.name()), OTHERS.contains(&function.name()), "{}", function.name());
        }
        let known = |name: &&str| engine.iter().any(|function| function.name() == *name);
        let own: Vec<&str> = OF_DOUBLES.into_iter().filter(|name| !known(name)).collect();
        assert_eq!(own, ["postgres_round"], "a function of this crate");
    }
}
