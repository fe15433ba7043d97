//! Arrays: their text form, comparisons with ANY and ALL, and subscripts.

use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array as SqlArray, ArrayElemTypeDef, BinaryOperator, DataType as SqlType, Expr as SqlExpr, Function,
    FunctionArg, FunctionArgExpr, FunctionArguments, Subscript, Value,
};
use postgres_types::Type;

use super::super::report::Report;
use super::expressions::{cast_to, joined, literal_of, number, pair, text, when, whole_number};
use super::type_names::{scale_of, type_named};
use super::{CAST, check_copies, unsupported};
use crate::functions::{NotAnArray, items};
use crate::session::{call, without_exponent};

/// True for an item whose text is the one that was written.
pub(super) fn is_written(item: &SqlExpr) -> bool {
    literal_of(item).is_some() || matches!(item, SqlExpr::Value(value) if !matches!(value.value, Value::Number(..)))
}

/// The items of an array that is written as one.
fn written_items(expr: &SqlExpr) -> Option<&[SqlExpr]> {
    match expr {
        SqlExpr::Array(array) => Some(&array.elem),
        SqlExpr::Nested(inner) => written_items(inner),
        SqlExpr::Cast { expr, data_type: SqlType::Array(_), .. } => written_items(expr),
        SqlExpr::Function(Function { name, args: FunctionArguments::List(list), .. }) if name.to_string() == CAST => {
            match list.args.first() {
                // The cast of each item would round it.
                _ if to_integers(&list.args) => None,
                Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(array @ SqlExpr::Array(_)))) => written_items(array),
                _ => None,
            }
        }
        _ => None,
    }
}

/// True for the arguments of a cast to an array of integers.
fn to_integers(arguments: &[FunctionArg]) -> bool {
    match arguments {
        [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(to)), ..] => {
            literal_of(to).is_some_and(|to| to.starts_with("int") && !to.starts_with("interval"))
        }
        _ => false,
    }
}

/// A comparison with any or all items of an array that is written as a text or item by item; `None` for another array.
pub(super) fn compared(
    left: &SqlExpr,
    op: &BinaryOperator,
    right: &SqlExpr,
    all: bool,
) -> Result<Option<SqlExpr>, Report> {
    if let Some(items) =
        written_items(right).filter(|items| !items.iter().any(|item| matches!(item, SqlExpr::Array(_))))
    {
        let in_list = |negated| SqlExpr::InList { expr: Box::new(left.clone()), list: items.to_vec(), negated };
        return Ok(Some(match (op, all) {
            _ if items.is_empty() => SqlExpr::value(Value::Boolean(all)),
            (BinaryOperator::Eq, false) => in_list(false),
            (BinaryOperator::NotEq, true) => in_list(true),
            _ => {
                check_copies(left, items.len())?;
                let each = items.iter().map(|item| pair(left.clone(), op.clone(), item.clone())).collect();
                let joint = if all { BinaryOperator::And } else { BinaryOperator::Or };
                joined(each, &joint).unwrap_or_else(|| SqlExpr::value(Value::Boolean(all)))
            }
        }));
    }
    let Some(literal) = literal_of(right) else { return Ok(None) };
    let items = read_items(&literal)?;
    check_copies(left, items.len())?;
    let each = items.into_iter().map(|item| {
        pair(left.clone(), op.clone(), item.map_or_else(|| SqlExpr::value(Value::Null), |item| text(&item)))
    });
    let joint = if all { BinaryOperator::And } else { BinaryOperator::Or };
    Ok(joined(each.collect(), &joint).or_else(|| Some(SqlExpr::value(Value::Boolean(all)))))
}

/// The items of an array in its text form.
fn read_items(literal: &str) -> Result<Vec<Option<String>>, Report> {
    items(literal).map_err(|error| {
        let code = if error == NotAnArray::Nested { "0A000" } else { "22P02" };
        Report::error(code, error.line(literal))
    })
}

/// An array of the items of a literal, which are of the type if there is one.
pub(super) fn array_of(literal: &str, to: Option<&SqlType>) -> Result<SqlExpr, Report> {
    let items = read_items(literal)?;
    let elem = items.iter().map(|item| item.as_ref().map_or_else(|| SqlExpr::value(Value::Null), |item| text(item)));
    let array = SqlExpr::Array(SqlArray { elem: elem.collect(), named: true });
    if let Some(exact) = to.filter(|to| keeps_digits(to)).and_then(|_| numbers(&items)) {
        return Ok(exact);
    }
    let to =
        to.cloned().unwrap_or_else(|| SqlType::Array(ArrayElemTypeDef::SquareBracket(Box::new(SqlType::Text), None)));
    // Empty ones and those of missing items have no type of their own.
    Ok(cast_to(array, plain_array(to)))
}

/// True for an array of numerics without a scale.
fn keeps_digits(array: &SqlType) -> bool {
    let SqlType::Array(ArrayElemTypeDef::SquareBracket(item, _)) = array else { return false };
    type_named(item) == Some(Type::NUMERIC) && scale_of(item).is_none()
}

/// An array of numbers with all of their digits; `None` if one is not a number, or if all are missing.
fn numbers(items: &[Option<String>]) -> Option<SqlExpr> {
    let digits: Vec<Option<String>> = items
        .iter()
        .map(|item| item.as_ref().map_or(Some(None), |item| without_exponent(item.trim()).map(Some)))
        .collect::<Option<_>>()?;
    let scales = digits.iter().flatten().map(|digits| digits.split_once('.').map_or(0, |(_, fraction)| fraction.len()));
    let scale = scales.max().filter(|scale| *scale <= 37)?;
    let elem = digits.iter().map(|item| item.as_ref().map_or_else(|| SqlExpr::value(Value::Null), |item| text(item)));
    let array = SqlExpr::Array(SqlArray { elem: elem.collect(), named: true });
    Some(call("arrow_cast", vec![array, text(&format!("List(Decimal128(38, {scale}))"))]))
}

/// The type with items that the engine knows.
fn plain_array(data_type: SqlType) -> SqlType {
    match data_type {
        SqlType::Array(ArrayElemTypeDef::SquareBracket(item, length)) => {
            let texts = matches!(type_named(&item), Some(Type::UUID | Type::JSON | Type::NAME | Type::BPCHAR));
            SqlType::Array(ArrayElemTypeDef::SquareBracket(if texts { Box::new(SqlType::Text) } else { item }, length))
        }
        other => other,
    }
}

/// Subscripts count from one: there is nothing at zero and below.
pub(super) fn subscripts(root: &SqlExpr, chain: &mut [AccessExpr]) -> Result<Option<SqlExpr>, Report> {
    let mut outside = Vec::new();
    for access in chain.iter_mut() {
        match access {
            AccessExpr::Subscript(Subscript::Index { index }) if literal_of(index).is_none() => {
                match whole_number(index) {
                    Some(1..) => {}
                    Some(_) => {
                        outside.push(SqlExpr::value(Value::Boolean(false)));
                        *index = number("1");
                    }
                    None => outside.push(pair(index.clone(), BinaryOperator::GtEq, number("1"))),
                }
            }
            AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) => {
                for bound in [&*lower_bound, &*upper_bound].into_iter().flatten() {
                    if whole_number(bound).is_none() {
                        return Err(unsupported("bounds of slices that are no literals are not supported"));
                    }
                }
                let least = |bound: &Option<SqlExpr>| bound.as_ref().and_then(whole_number);
                if least(lower_bound).is_some_and(|at| at < 1) {
                    *lower_bound = Some(number("1"));
                }
                // No items at all.
                if least(upper_bound).is_some_and(|at| at < 1) {
                    (*lower_bound, *upper_bound) = (Some(number("2")), Some(number("1")));
                }
                // The engine requires both; beyond the last item there is nothing.
                lower_bound.get_or_insert_with(|| number("1"));
                upper_bound.get_or_insert_with(|| number(&i32::MAX.to_string()));
            }
            _ => {}
        }
    }
    Ok(joined(outside, &BinaryOperator::And).map(|inside| {
        when(inside, SqlExpr::CompoundFieldAccess { root: Box::new(root.clone()), access_chain: chain.to_vec() })
    }))
}
