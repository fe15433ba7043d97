//! Functions that replace operations which the engine computes differently from the SQL standard, or from PostgreSQL.
//!
//! Rules of `optimizer` and `session` insert the functions, and most aggregate functions, `lag` and `lead` replace those of the engine.
//! Users see the names of the functions only in EXPLAIN. Each file has one function or a family of them, with the operation that
//! it replaces and the reason. The functions in `postgres` are used in translated statements of PostgreSQL clients. Those of
//! `json` and `words` are for users as well.
//!
//! Invariant: a function returns what the standard requires, or an error. It never returns another value.

mod array_membership;
mod checked_arithmetic;
mod checked_sum;
mod comparable_interval;
mod corrected;
mod digits_kept;
mod exact_decimal;
mod float_extremes;
mod frame_key;
mod in_domain;
mod in_values;
mod interval_part;
mod json;
mod local_arithmetic;
mod matched_groups;
mod moving;
mod nested_extreme;
mod nested_key;
mod nested_order;
mod only_value;
mod opaque;
mod patterns;
mod percentile;
mod positive_zero;
mod postgres;
mod precise;
mod rounded_time;
mod series;
mod shift;
mod sorted_aggregates;
mod time_texts;
mod types;
mod unknown_range;
mod words;
mod wrapper;

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{AggregateUDF, ReturnFieldArgs, ScalarUDF, ScalarUDFImpl, WindowUDF};

pub(crate) use self::array_membership::Membership;
#[cfg(feature = "host")]
pub(crate) use self::checked_arithmetic::OUT_OF_RANGE;
pub(crate) use self::checked_arithmetic::{Arithmetic, checked_arithmetic};
pub(crate) use self::checked_sum::sum_udaf;
pub(crate) use self::comparable_interval::{comparable_interval, has_interval};
pub(crate) use self::corrected::corrected;
#[cfg(feature = "postgres")]
pub(crate) use self::local_arithmetic::instant_of;
pub(crate) use self::local_arithmetic::{minus_interval, plus_interval};
pub(crate) use self::patterns::{like_pattern, like_pattern_of, regex_of_similar, similar_pattern};

pub(crate) use self::digits_kept::DigitsKept;
pub(crate) use self::exact_decimal::exact_decimal;
pub(crate) use self::float_extremes::float_extremes;
pub(crate) use self::frame_key::frame_key;
pub(crate) use self::in_domain::{has_domain, in_domain};
pub(crate) use self::in_values::InValues;
pub(crate) use self::interval_part::{has_interval_part, interval_part};
pub(crate) use self::json::json_operator;
pub(crate) use self::nested_extreme::NestedExtreme;
pub(crate) use self::nested_key::nested_key;
pub(crate) use self::nested_order::NestedOrder;
pub(crate) use self::only_value::OnlyValue;
pub(crate) use self::opaque::Opaque;
use self::percentile::percentile_cont;
pub(crate) use self::positive_zero::positive_zero;
#[cfg(feature = "postgres")]
pub(crate) use self::postgres::{NotAnArray, Unit, intervals, items, put_text, read_interval};
pub(crate) use self::postgres::{Numeric, PostgresCast, listed_named, numeric, start_of_day, time_text};
#[cfg(feature = "host")]
pub(crate) use self::precise::TOO_MANY_DIGITS;
pub(crate) use self::precise::precise;
pub(crate) use self::rounded_time::rounded_time;
pub(crate) use self::series::{times_in_steps, with_series};
pub(crate) use self::time_texts::{complete_time, interval_with_unit};
#[cfg(feature = "postgres")]
pub(crate) use self::time_texts::{midnight_of, without_zone};
pub(crate) use self::types::TypeIn;
pub(crate) use self::unknown_range::with_unknown_range;
pub(crate) use self::words::OfWords;
#[cfg(feature = "store")]
pub(crate) use self::words::match_of;
pub(crate) use self::wrapper::known_preimage;
#[cfg(feature = "host")]
pub(crate) use self::wrapper::{wrapped_aggregate_methods, wrapped_methods, wrapped_order_methods};

/// Key in the metadata of a field: the type that a protocol has for it.
pub(crate) const PROTOCOL_TYPE: &str = "savedsearch.protocol_type";

/// Returns all functions, for the registry of a session, by which plans that travel find them.
pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    let arithmetic = [Arithmetic::Add, Arithmetic::Subtract, Arithmetic::Multiply, Arithmetic::Negate];
    let mut all: Vec<Arc<ScalarUDF>> = arithmetic.map(checked_arithmetic).into();
    all.extend([
        comparable_interval(),
        plus_interval(),
        minus_interval(),
        interval_part(),
        frame_key(),
        nested_key(),
        positive_zero(),
        rounded_time(),
        exact_decimal(),
        precise(),
        DigitsKept::Rounded.udf(),
        DigitsKept::Cut.udf(),
    ]);
    all.extend([times_in_steps(false), times_in_steps(true)]);
    all.extend([like_pattern(), similar_pattern(), InValues::udf(), OnlyValue::udf(), Opaque::udf()]);
    all.extend([PostgresCast::udf(), postgres::PostgresToChar::udf(), postgres::Years::udf()]);
    all.extend([start_of_day(), time_text()]);
    all.extend(postgres::listed());
    all.extend([Numeric::Divide, Numeric::Multiply].map(numeric));
    all.extend(NestedOrder::ALL.map(NestedOrder::udf));
    all.extend(json::all());
    all.extend([OfWords::Match, OfWords::Score].map(OfWords::udf));
    all.extend([Membership::One, Membership::Any, Membership::All].map(Membership::udf));
    all
}

/// As [`all`], aggregate functions.
pub(crate) fn aggregates() -> Vec<Arc<AggregateUDF>> {
    let nested = NestedExtreme::ALL.map(NestedExtreme::udaf);
    let sorted = sorted_aggregates::sorted_aggregates();
    let exact = [percentile_cont(), sum_udaf()];
    moving::all().chain(sorted).chain(exact).chain(float_extremes()).chain(nested).collect()
}

/// The field of a function's result, which is nullable if an argument is. By default, every result is.
///
/// # Errors
/// Those of the function's type.
pub(crate) fn field_of(function: &impl ScalarUDFImpl, args: &ReturnFieldArgs<'_>) -> Result<FieldRef> {
    let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
    let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
    Ok(Arc::new(Field::new(function.name(), function.return_type(&types)?, nullable)))
}

/// As [`all`], window functions.
pub(crate) fn windows() -> Vec<Arc<WindowUDF>> {
    shift::shifts().into()
}
