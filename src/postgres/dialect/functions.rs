//! Functions that have another name or another result in PostgreSQL.
//!
//! | call | translation |
//! | --- | --- |
//! | `every`, `variance`, `ceiling`, `sign`, `transaction_timestamp()`, … | the engine's name |
//! | `mod(a, b)`, `div(a, b)` | `a % b`, the whole part of `a / b` |
//! | `round(x)` of double precision | half to even |
//! | `array_length`, `array_upper`, `array_lower`, `array_ndims` | NULL for an empty array |
//! | `make_interval(days => 10)` | arguments by their place |
//! | `percentile_disc(p) WITHIN GROUP (ORDER BY x)` | an element of the sorted values |
//! | `json_build_object`, `json_agg`, `to_json`, `row_to_json` | structures, which clients receive as JSON |
//! | `array(SELECT x …)` | `array_agg` in a subquery |
//! | `generate_series(…)`, `string_to_table(…)` in SELECT | rows |
//! | patterns and replacements of `regexp_…` | see `regexes` |
//! | `date(x)`, `int4(x)`, `text(x)`, … | casts |
//!
//! [`REFUSED`] lists functions without a translation, with the form to write instead.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, DuplicateTreatment, Expr as SqlExpr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, Ident, ObjectName, OrderByExpr, OrderByOptions, TimezoneInfo, Value,
};

use super::array_of_rows::array_of_rows;
use super::expressions::{cast_to, digits_of, literal_of, number, pair, text};
use super::time_zone::TimeZone;
use super::{check_copies, is_numeric, regexes, spans, unsupported};
use crate::functions::Unit;
use crate::postgres::report::Report;
use crate::session::{call, members, syntax};

/// Functions that have the same meaning under another name.
const RENAMED: [(&str, &str); 11] = [
    ("every", "bool_and"),
    ("variance", "var_samp"),
    ("ceiling", "ceil"),
    ("sign", "signum"),
    ("transaction_timestamp", "now"),
    ("statement_timestamp", "now"),
    ("clock_timestamp", "now"),
    ("array_cat", "array_concat"),
    ("array_remove", "array_remove_all"),
    ("array_replace", "array_replace_all"),
    ("char_length", "character_length"),
];

/// Functions that are refused, with the form to write instead.
const REFUSED: [(&str, &str); 40] = [
    ("jsonb_build_object", "use json_build_object"),
    ("jsonb_agg", "use json_agg"),
    ("jsonb_object_agg", "use json_agg(json_build_object('key', k, 'value', v))"),
    ("json_object_agg", "use json_agg(json_build_object('key', k, 'value', v))"),
    ("json_build_array", "use to_json(ARRAY[…]), with items of one type"),
    ("to_jsonb", "use to_json"),
    ("json_extract_path_text", "use ->>"),
    ("json_array_elements", "use unnest of an array"),
    ("jsonb_array_elements", "use unnest of an array"),
    ("json_each", "use the columns of the table"),
    ("json_array_length", "use cardinality of an array"),
    ("md5", "there are no hashes here"),
    ("sha224", "there are no hashes here"),
    ("sha256", "there are no hashes here"),
    ("make_timestamptz", "use make_timestamp(…) AT TIME ZONE '…'"),
    ("mode", "use GROUP BY with ORDER BY count(*) DESC LIMIT 1"),
    ("to_number", "use a cast: x::numeric"),
    ("format", "use || or concat"),
    ("regexp_matches", "use regexp_match for the first match"),
    ("regexp_split_to_array", "use string_to_array"),
    ("regexp_split_to_table", "use string_to_table"),
    ("nextval", "there are no sequences: use row_number()"),
    ("currval", "there are no sequences: use row_number()"),
    ("setval", "there are no sequences: use row_number()"),
    ("lastval", "there are no sequences: use row_number()"),
    ("pg_sleep", "clients wait by themselves"),
    ("setseed", "random numbers have no seed here"),
    ("timeofday", "use now()"),
    ("to_tsvector", "use match(text, 'words')"),
    ("to_tsquery", "use match(text, 'words')"),
    ("plainto_tsquery", "use match(text, 'words')"),
    ("ts_rank", "use match_score(text, 'words')"),
    ("similarity", "use levenshtein(a, b)"),
    ("crosstab", "use aggregates with FILTER"),
    ("txid_current", "there are no transactions that write"),
    ("unistr", "use E'\\u0041'"),
    ("normalize", "texts are compared by their bytes"),
    ("sind", "use sin(radians(x))"),
    ("cosd", "use cos(radians(x))"),
    ("tand", "use tan(radians(x))"),
];

/// Casts that are written as functions.
fn type_of_cast(name: &str) -> Option<SqlType> {
    Some(match name {
        "date" => SqlType::Date,
        "int2" => SqlType::Int2(None),
        "int4" => SqlType::Int4(None),
        "int8" => SqlType::Int8(None),
        "float4" => SqlType::Real,
        "float8" => SqlType::DoublePrecision,
        "bool" => SqlType::Boolean,
        "text" => SqlType::Text,
        _ => return None,
    })
}

/// The arguments of a call, if they are expressions by their place.
fn arguments(function: &Function) -> Option<Vec<SqlExpr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let plain = list.duplicate_treatment.is_none() && list.clauses.is_empty();
    let each = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    each.collect::<Option<Vec<_>>>().filter(|_| plain)
}

/// Translates a call, whose arguments are translated already. `None` leaves it as it is.
pub(super) fn translated(name: &str, function: &mut Function) -> Result<Option<SqlExpr>, Report> {
    if let Some((_, advice)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return Err(Report::error("42883", format!("function {name} is not supported; {advice}")));
    }
    regexes::of_function(name, function)?;
    sort_distinct(name, function);
    if let ("array_remove", Some([array, SqlExpr::Value(value)])) = (name, arguments(function).as_deref())
        && matches!(value.value, Value::Null)
    {
        return Ok(Some(call("array_compact", vec![array.clone()])));
    }
    if let Some((_, engine)) = RENAMED.iter().find(|(known, _)| *known == name) {
        function.name = ObjectName::from(vec![Ident::new(*engine)]);
        return Ok(None);
    }
    if let ("array", FunctionArguments::Subquery(query)) = (name, &function.args) {
        return array_of_rows(query).map(Some);
    }
    match name {
        "make_interval" => return made_interval(function).map(Some),
        "percentile_disc" => return discrete(function).map(Some),
        "json_agg" => return Ok(Some(json_of_group(function))),
        _ => {}
    }
    match arguments(function) {
        Some(arguments) => of_arguments(name, function, arguments),
        None => Ok(None),
    }
}

/// As [`translated`], for a call whose arguments are expressions by their place.
fn of_arguments(name: &str, function: &mut Function, arguments: Vec<SqlExpr>) -> Result<Option<SqlExpr>, Report> {
    // Their arguments stand in the translation several times.
    if matches!((name, arguments.len()), ("date_trunc", 3) | ("array_lower" | "trim_array", 2)) {
        arguments.iter().try_for_each(|argument| check_copies(argument, 3))?;
    }
    let nested = |expr: &SqlExpr| SqlExpr::Nested(Box::new(expr.clone()));
    Ok(match (name, arguments.as_slice()) {
        ("date_trunc" | "age" | "isfinite", values) => of_times(name, values),
        ("trim_array", values) => of_arrays(name, function, values),
        (_, values) if name.starts_with("array_") => of_arrays(name, function, values),
        ("mod", [left, right]) => Some(pair(nested(left), BinaryOperator::Modulo, nested(right))),
        ("div", [left, right]) => {
            let quotient = call("trunc", vec![pair(nested(left), BinaryOperator::Divide, nested(right))]);
            Some(quotient)
        }
        ("round", [value]) if !is_literal_numeric(value) => {
            Some(call("postgres_round", vec![value.clone(), flag(value)]))
        }
        ("to_hex", [value])
            if digits_of(value).is_some_and(|digits| digits.parse::<i32>().is_ok_and(|value| value < 0)) =>
        {
            // Of 32 bits, as the type of a literal has.
            Some(call("to_hex", vec![pair(value.clone(), BinaryOperator::Plus, number(&(1_i64 << 32).to_string()))]))
        }
        ("make_date", [_, _, _]) => Some(call("postgres_make_date", arguments)),
        ("gen_random_uuid" | "uuid_generate_v4", []) => {
            Some(call(super::CAST, vec![call("uuid", Vec::new()), text("uuid")]))
        }
        ("encode", [value, format])
            if literal_of(format).is_some_and(|format| format.eq_ignore_ascii_case("base64")) =>
        {
            Some(call("encode", vec![value.clone(), text("base64pad")]))
        }
        ("num_nulls" | "num_nonnulls", values) if !values.is_empty() => {
            let test = |value: &SqlExpr| {
                let is = if name == "num_nulls" { SqlExpr::IsNull } else { SqlExpr::IsNotNull };
                cast_to(SqlExpr::Nested(Box::new(is(Box::new(value.clone())))), SqlType::Int4(None))
            };
            values.iter().map(test).reduce(|left, right| pair(left, BinaryOperator::Plus, right))
        }
        ("to_json" | "row_to_json", [value]) => Some(call("postgres_json", vec![named_members(value)])),
        ("json_build_object", values) if values.len() % 2 == 0 => {
            if values.iter().step_by(2).any(|key| literal_of(key).is_none()) {
                return Err(unsupported("json_build_object: keys that are no literals are not supported"));
            }
            Some(call("named_struct", arguments.iter().map(named_members).collect()))
        }
        ("concat", values) => Some(call("concat", values.iter().map(|value| output(value, "output")).collect())),
        ("concat_ws", [separator, values @ ..]) => {
            let values = values.iter().map(|value| output(value, "output"));
            Some(call("concat_ws", [separator.clone()].into_iter().chain(values).collect()))
        }
        ("regexp_substr", [value, pattern]) => {
            let whole = call("concat", vec![text("("), pattern.clone(), text(")")]);
            Some(call("array_element", vec![call("regexp_match", vec![value.clone(), whole]), number("1")]))
        }
        // The step of times may be written as a text.
        ("generate_series", [first, last, step]) => {
            spans::of_step(step).map(|step| call("generate_series", vec![first.clone(), last.clone(), step]))
        }
        ("string_to_table", [_, _, ..]) => Some(call("unnest", vec![call("string_to_array", arguments)])),
        (_, [value]) => type_of_cast(name).map(|data_type| cast_to(value.clone(), data_type)),
        _ => None,
    })
}

/// Translates a function of times.
fn of_times(name: &str, arguments: &[SqlExpr]) -> Option<SqlExpr> {
    match (name, arguments) {
        // Days of another zone than the session's.
        ("date_trunc", [unit, time, zone]) => {
            let instant = cast_to(time.clone(), SqlType::Timestamp(None, TimezoneInfo::Tz));
            let there = call(TimeZone::NAME, vec![zone.clone(), instant.clone()]);
            let shorter = ["hour", "minute", "second", "milliseconds", "millisecond", "microseconds", "microsecond"];
            if literal_of(unit).is_some_and(|unit| shorter.contains(&unit.to_lowercase().as_str())) {
                // A clock that is set back shows a time twice: the instant says which one it is.
                let start = call("date_trunc", vec![unit.clone(), there.clone()]);
                let since = pair(there, BinaryOperator::Minus, start);
                return Some(pair(instant, BinaryOperator::Minus, since));
            }
            Some(call(TimeZone::NAME, vec![zone.clone(), call("date_trunc", vec![unit.clone(), there])]))
        }
        ("date_trunc", [unit, time]) => literal_of(unit).and_then(|unit| truncated(&unit, time)),
        ("age", [time]) => Some(call(
            "age",
            vec![cast_to(call("current_date", Vec::new()), SqlType::Timestamp(None, TimezoneInfo::None)), time.clone()],
        )),
        ("isfinite", [value]) => {
            let known = SqlExpr::Nested(Box::new(SqlExpr::IsNotNull(Box::new(value.clone()))));
            Some(call("nullif", vec![known, SqlExpr::value(Value::Boolean(false))]))
        }
        _ => None,
    }
}

/// Translates a function of arrays. Several are NULL for an empty array.
fn of_arrays(name: &str, function: &Function, arguments: &[SqlExpr]) -> Option<SqlExpr> {
    let zero_as_null = |expr: SqlExpr| call("nullif", vec![expr, number("0")]);
    match (name, arguments) {
        ("array_length", [_, _]) => Some(zero_as_null(SqlExpr::Function(function.clone()))),
        ("array_upper", [array, dimension]) => {
            Some(zero_as_null(call("array_length", vec![array.clone(), dimension.clone()])))
        }
        ("array_lower", [array, dimension]) => {
            let length = zero_as_null(call("array_length", vec![array.clone(), dimension.clone()]));
            // One for every length.
            Some(pair(pair(length.clone(), BinaryOperator::Minus, length), BinaryOperator::Plus, number("1")))
        }
        ("array_ndims", [array]) => {
            let dimensions = call("array_ndims", vec![array.clone()]);
            let length = zero_as_null(call("cardinality", vec![array.clone()]));
            Some(pair(dimensions, BinaryOperator::Plus, pair(length.clone(), BinaryOperator::Minus, length)))
        }
        ("trim_array", [array, count]) => {
            let length = cast_to(call("cardinality", vec![array.clone()]), SqlType::BigInt(None));
            let rest = pair(length, BinaryOperator::Minus, SqlExpr::Nested(Box::new(count.clone())));
            Some(call("array_slice", vec![array.clone(), number("1"), rest]))
        }
        ("array_fill", [value, SqlExpr::Array(lengths)]) if lengths.elem.len() == 1 => {
            Some(call("array_repeat", vec![value.clone(), lengths.elem[0].clone()]))
        }
        ("array_dims", [array]) => {
            let length = zero_as_null(call("cardinality", vec![array.clone()]));
            let length = cast_to(length, SqlType::Text);
            Some(pair(pair(text("[1:"), BinaryOperator::StringConcat, length), BinaryOperator::StringConcat, text("]")))
        }
        ("array_to_string", [array, rest @ ..]) => {
            let array = output(array, "output[]");
            Some(call("array_to_string", [array].into_iter().chain(rest.iter().cloned()).collect()))
        }
        _ => None,
    }
}

/// `date_trunc` of a unit that the engine does not know.
fn truncated(unit: &str, time: &SqlExpr) -> Option<SqlExpr> {
    let of = |unit: &str| call("date_trunc", vec![text(unit), time.clone()]);
    let unit = unit.to_lowercase();
    let (years, first) = match unit.as_str() {
        "milliseconds" | "microseconds" => return Some(of(unit.trim_end_matches('s'))),
        "decades" | "decade" => (10, 0),
        "century" => (100, 1),
        "millennium" => (1_000, 1),
        _ => {
            let plain = match Unit::named(&unit)? {
                Unit::Year => "year",
                Unit::Month => "month",
                Unit::Week => "week",
                Unit::Day => "day",
                Unit::Hour => "hour",
                Unit::Minute => "minute",
                Unit::Second => "second",
                Unit::Millisecond => "millisecond",
                Unit::Microsecond => "microsecond",
                Unit::Millennium | Unit::Century | Unit::Decade => return None,
            };
            return (plain != unit).then(|| of(plain));
        }
    };
    // The years since its first one.
    let year = call("date_part", vec![text("year"), time.clone()]);
    let since = pair(
        pair(year, BinaryOperator::Minus, number(&first.to_string())),
        BinaryOperator::Modulo,
        number(&years.to_string()),
    );
    let months = pair(since, BinaryOperator::Multiply, number("12"));
    let numbers = [number("0"), months, number("0"), number("0"), number("0"), number("0"), number("0")];
    Some(pair(of("year"), BinaryOperator::Minus, call("make_interval", numbers.into())))
}

/// A value as the text that clients receive.
fn output(value: &SqlExpr, name: &str) -> SqlExpr {
    match literal_of(value) {
        Some(_) => value.clone(),
        None => call(super::CAST, vec![value.clone(), text(name)]),
    }
}

/// `substring(value FROM pattern)`: what the first group of the pattern matched, or else the whole pattern.
pub(super) fn first_match(value: &SqlExpr, pattern: &SqlExpr) -> SqlExpr {
    let mut found = call("regexp_match", vec![value.clone(), pattern.clone()]);
    if let SqlExpr::Function(function) = &mut found {
        regexes::of_pattern(function);
    }
    call("array_element", vec![found, number("1")])
}

/// True for a number that PostgreSQL has as numeric: the engine rounds it in the same way.
fn is_literal_numeric(value: &SqlExpr) -> bool {
    digits_of(value).is_some()
}

/// Tells the function of rounding whether PostgreSQL has the number as numeric, unless a column is of double precision.
fn flag(value: &SqlExpr) -> SqlExpr {
    SqlExpr::value(Value::Boolean(is_numeric(value)))
}

/// `make_interval` with its arguments by their place.
fn made_interval(function: &Function) -> Result<SqlExpr, Report> {
    const NAMES: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];
    let wrong = || Report::error("42883", "make_interval takes years, months, weeks, days, hours, mins and secs");
    let FunctionArguments::List(list) = &function.args else { return Err(wrong()) };
    let mut values: [Option<SqlExpr>; 7] = Default::default();
    for (at, argument) in list.args.iter().enumerate() {
        let (at, value) = match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (Some(at), value),
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                (NAMES.iter().position(|known| name.value.eq_ignore_ascii_case(known)), value)
            }
            _ => return Err(wrong()),
        };
        let place = at.and_then(|at| values.get_mut(at)).filter(|place| place.is_none()).ok_or_else(wrong)?;
        *place = Some(value.clone());
    }
    Ok(call("make_interval", values.map(|value| value.unwrap_or_else(|| number("0"))).into()))
}

/// The items of a group that are sorted, without NULLs, and their number.
fn discrete(function: &Function) -> Result<SqlExpr, Report> {
    let fraction = arguments(function).and_then(|arguments| match <[SqlExpr; 1]>::try_from(arguments) {
        Ok([fraction]) => Some(fraction),
        Err(_) => None,
    });
    let (Some(fraction), [sort], None) = (fraction, function.within_group.as_slice(), &function.over) else {
        return Err(unsupported("percentile_disc takes a fraction: percentile_disc(0.5) WITHIN GROUP (ORDER BY x)"));
    };
    let present = SqlExpr::IsNotNull(Box::new(sort.expr.clone()));
    let both = match &function.filter {
        Some(filter) => pair(SqlExpr::Nested(filter.clone()), BinaryOperator::And, present),
        None => present,
    };
    let of_group = |name: &str, sorted: bool| {
        let mut aggregate = call(name, vec![sort.expr.clone()]);
        if let SqlExpr::Function(function) = &mut aggregate {
            function.filter = Some(Box::new(both.clone()));
            if let (FunctionArguments::List(list), true) = (&mut function.args, sorted) {
                list.clauses = vec![FunctionArgumentClause::OrderBy(vec![sort.clone()])];
            }
        }
        aggregate
    };
    let place = call(
        "ceil",
        vec![pair(SqlExpr::Nested(Box::new(fraction)), BinaryOperator::Multiply, of_group("count", false))],
    );
    let place = call("greatest", vec![cast_to(place, SqlType::BigInt(None)), number("1")]);
    Ok(call("array_element", vec![of_group("array_agg", true), place]))
}

/// Sorts the values of an aggregate with DISTINCT, as PostgreSQL does to find equal ones.
fn sort_distinct(name: &str, function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    let distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct) && list.clauses.is_empty();
    if distinct
        && ["array_agg", "json_agg", "string_agg"].contains(&name)
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(value))) = list.args.first()
    {
        let options = OrderByOptions { asc: None, nulls_first: Some(false) };
        let sort = OrderByExpr { expr: value.clone(), options, with_fill: None };
        list.clauses = vec![FunctionArgumentClause::OrderBy(vec![sort])];
    }
}

/// `json_agg(x …)` as JSON of `array_agg(x …)`.
fn json_of_group(function: &Function) -> SqlExpr {
    let mut group = function.clone();
    group.name = ObjectName::from(vec![Ident::new("array_agg")]);
    if let FunctionArguments::List(list) = &mut group.args
        && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] = list.args.as_mut_slice()
    {
        *value = named_members(value);
    }
    call("postgres_json", vec![SqlExpr::Function(group)])
}

/// A row that is written out, such as `row(1, 'a')`, with the names that PostgreSQL gives its members in JSON.
fn named_members(value: &SqlExpr) -> SqlExpr {
    match members(value) {
        Some(members) if !members.is_empty() => {
            let named = members.iter().zip(1_usize..);
            let named = named.flat_map(|(member, at)| [text(&format!("f{at}")), named_members(member)]);
            call("named_struct", named.collect())
        }
        _ => value.clone(),
    }
}

/// Turns calls that make rows, in an item of SELECT, into those that the engine unnests.
pub(super) fn rows_of_item(expr: &mut SqlExpr) {
    let is = |function: &Function, name: &str| {
        function.name.to_string().trim_start_matches("pg_catalog.").eq_ignore_ascii_case(name)
    };
    syntax::edit_expressions(expr, &mut |part| {
        let SqlExpr::Function(function) = &*part else { return };
        if is(function, "generate_series") || is(function, "json_object_keys") {
            let series = std::mem::replace(part, SqlExpr::value(Value::Null));
            *part = call("unnest", vec![series]);
        } else if is(function, "unnest")
            && let FunctionArguments::List(list) = &function.args
            && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))] = list.args.as_slice()
            && let SqlExpr::Function(inside) = inner
            && is(inside, "unnest")
        {
            // A list that was written as such.
            *part = inner.clone();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_in_one_list() {
        for (name, _) in REFUSED {
            assert!(RENAMED.iter().all(|(renamed, _)| *renamed != name) && type_of_cast(name).is_none(), "{name}");
        }
    }
}
