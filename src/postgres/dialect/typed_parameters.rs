//! Types of parameters, for the translation.
//!
//! Much of PostgreSQL's meaning depends on types: `$1 / 4` divides a numeric with a fraction, and an integer without. While a
//! statement is translated, a parameter of a known type is a cast to it; afterwards it is a parameter for which the engine needs
//! to infer no type. A type is known if the client declares it, or if the statement casts the parameter to it.
//!
//! Parameters of texts stay as they are, since some drivers declare texts for values of all types. Those of arrays of texts do not.

use std::collections::BTreeMap;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType as ArrowType};
use datafusion::common::ScalarValue;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CastKind, DataType as SqlType, ExactNumberInfo, Expr as SqlExpr, LimitClause, Query,
    TimezoneInfo, Value,
};
use postgres_types::{Kind, Type};

use super::super::parameters::{arrow_type, arrow_type_in};
use super::edit;
use super::expressions::text;
use super::type_names::type_named;
use crate::session::call;
use crate::session::syntax::Editor;

/// Marks parameters of known types. Returns the types of all parameters that are known, by their number.
pub(super) fn mark(statement: &mut Parsed, declared: &[Option<Type>]) -> BTreeMap<usize, Type> {
    let types = types(statement, declared);
    edit(statement, &mut Marks(&types));
    types
}

/// The types of all parameters that are known, by their number.
pub(super) fn types(statement: &mut Parsed, declared: &[Option<Type>]) -> BTreeMap<usize, Type> {
    let known = (1..).zip(declared).filter_map(|(number, known)| Some((number, known.clone()?)));
    let mut casts = Casts(known.collect());
    edit(statement, &mut casts);
    casts.0
}

/// Turns marks into expressions of the engine. A numeric has the digits and the scale of its value, as a literal has; until values
/// are bound, those of a placeholder that holds none. Instants get the zone of the session, as those of tables have it.
pub(super) fn unmark(statement: &mut Parsed, values: &[ScalarValue], zone: &str) {
    edit(statement, &mut Unmarked { values, zone });
}

/// True if [`unmark`] reads the values of parameters of these types.
pub(super) fn depends_on_values(types: &BTreeMap<usize, Type>) -> bool {
    types.values().any(|known| [Type::NUMERIC, Type::NUMERIC_ARRAY].contains(known))
}

/// The type of a marked parameter.
pub(super) fn marked(expr: &SqlExpr) -> Option<Type> {
    match expr {
        SqlExpr::Cast { kind: CastKind::SafeCast, data_type, .. } => type_named(data_type),
        SqlExpr::Nested(inner) => marked(inner),
        _ => None,
    }
}

/// True for a marked parameter that is an array of integers.
pub(super) fn of_integers(expr: &SqlExpr) -> bool {
    marked(expr).is_some_and(|known| [Type::INT2_ARRAY, Type::INT4_ARRAY, Type::INT8_ARRAY].contains(&known))
}

/// True for a parameter that is not marked.
pub(super) fn is_open(expr: &SqlExpr) -> bool {
    number_of(expr).is_some() && marked(expr).is_none()
}

/// The number of a parameter, marked or not. `None` if it is larger than a message can bind: lists of parameters are as long as the
/// largest number.
pub(super) fn number_of(expr: &SqlExpr) -> Option<usize> {
    match expr {
        SqlExpr::Value(value) => match &value.value {
            Value::Placeholder(name) => name.strip_prefix('$')?.parse::<u16>().ok().map(usize::from),
            _ => None,
        },
        SqlExpr::Cast { kind: CastKind::SafeCast, expr, .. } => number_of(expr),
        SqlExpr::Nested(inner) => number_of(inner),
        _ => None,
    }
}

/// Collects types that parameters are cast to: of several, the first one.
struct Casts(BTreeMap<usize, Type>);

impl Editor for Casts {
    fn pre_visit_expr(&mut self, expr: &mut SqlExpr) {
        if let SqlExpr::Cast { expr, data_type, .. } = expr
            && let (Some(number), Some(postgres)) =
                (number_of(expr), type_named(data_type).or_else(|| identifiers(data_type)))
        {
            self.0.entry(number).or_insert(postgres);
        }
    }
}

/// The types of identifiers in catalogs.
fn identifiers(data_type: &SqlType) -> Option<Type> {
    match data_type {
        SqlType::Custom(name, _) if name.to_string().eq_ignore_ascii_case("oid") => Some(Type::OID),
        SqlType::Array(ArrayElemTypeDef::SquareBracket(item, _)) if identifiers(item) == Some(Type::OID) => {
            Some(Type::OID_ARRAY)
        }
        _ => None,
    }
}

struct Marks<'a>(&'a BTreeMap<usize, Type>);

impl Editor for Marks<'_> {
    fn post_visit_expr(&mut self, expr: &mut SqlExpr) {
        if let SqlExpr::Value(_) = expr
            && let Some(postgres) = number_of(expr).and_then(|number| self.0.get(&number))
            && let Some(data_type) = sql_type(postgres)
        {
            *expr = SqlExpr::Cast {
                kind: CastKind::SafeCast,
                expr: Box::new(expr.clone()),
                data_type,
                array: false,
                format: None,
            };
        }
    }

    // The engine takes a parameter alone.
    fn post_visit_query(&mut self, query: &mut Query) {
        let bare = |expr: &mut SqlExpr| {
            if let SqlExpr::Cast { kind: CastKind::SafeCast, expr: parameter, .. } = expr {
                *expr = parameter.as_ref().clone();
            }
        };
        match &mut query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                limit.iter_mut().for_each(bare);
                offset.iter_mut().for_each(|offset| bare(&mut offset.value));
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => [offset, limit].into_iter().for_each(bare),
            None => {}
        }
        query.fetch.iter_mut().filter_map(|fetch| fetch.quantity.as_mut()).for_each(bare);
    }
}

struct Unmarked<'a> {
    values: &'a [ScalarValue],
    zone: &'a str,
}

impl Unmarked<'_> {
    /// The value of a parameter, if it is bound.
    fn value(&self, parameter: &SqlExpr) -> Option<&ScalarValue> {
        number_of(parameter).and_then(|number| self.values.get(number.checked_sub(1)?))
    }

    /// The type of an array of numerics; `None` until its value is bound.
    fn numerics(&self, parameter: &SqlExpr) -> Option<ArrowType> {
        match self.value(parameter)?.data_type() {
            ArrowType::List(item) if item.data_type().is_decimal() => Some(ArrowType::List(item)),
            _ => None,
        }
    }

    /// The type of a numeric parameter.
    fn numeric(&self, parameter: &SqlExpr) -> ArrowType {
        match self.value(parameter) {
            Some(ScalarValue::Decimal128(Some(value), _, scale)) => {
                let digits = u8::try_from(value.unsigned_abs().to_string().len()).unwrap_or(DECIMAL128_MAX_PRECISION);
                ArrowType::Decimal128(digits.max(scale.unsigned_abs()), *scale)
            }
            _ => ArrowType::Decimal128(18, 4),
        }
    }
}

impl Editor for Unmarked<'_> {
    fn post_visit_expr(&mut self, expr: &mut SqlExpr) {
        if let SqlExpr::Cast { kind: CastKind::SafeCast, expr: parameter, data_type, .. } = expr {
            let known = match type_named(data_type) {
                Some(Type::NUMERIC) => Some(self.numeric(parameter)),
                Some(Type::NUMERIC_ARRAY) if let Some(of_value) = self.numerics(parameter) => Some(of_value),
                known => known.as_ref().and_then(|known| arrow_type_in(self.zone, known)),
            };
            *expr = match known {
                Some(data_type) => call("arrow_cast", vec![parameter.as_ref().clone(), text(&data_type.to_string())]),
                None => parameter.as_ref().clone(),
            };
        }
    }
}

/// The type in a cast; `None` for a text, and for what is no type of a parameter.
fn sql_type(postgres: &Type) -> Option<SqlType> {
    if let Kind::Array(item) = postgres.kind() {
        let item = match arrow_type(item)? {
            ArrowType::Utf8 => SqlType::Text,
            _ => sql_type(item)?,
        };
        return Some(SqlType::Array(ArrayElemTypeDef::SquareBracket(Box::new(item), None)));
    }
    Some(match *postgres {
        Type::BOOL => SqlType::Boolean,
        Type::INT2 => SqlType::Int2(None),
        Type::INT4 => SqlType::Int4(None),
        Type::INT8 => SqlType::Int8(None),
        Type::FLOAT4 => SqlType::Float4,
        Type::FLOAT8 => SqlType::Float8,
        Type::NUMERIC => SqlType::Numeric(ExactNumberInfo::None),
        Type::DATE => SqlType::Date,
        Type::TIME => SqlType::Time(None, TimezoneInfo::None),
        Type::TIMESTAMP => SqlType::Timestamp(None, TimezoneInfo::None),
        Type::TIMESTAMPTZ => SqlType::Timestamp(None, TimezoneInfo::WithTimeZone),
        Type::INTERVAL => SqlType::Interval { fields: None, precision: None },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Names, parsed, translated};
    use super::*;
    use crate::cases::each;
    use crate::session::PlanningTurn;

    #[test]
    fn translations_that_depend_on_values_are_known_by_their_types() {
        let sql = "SELECT $1 AS a, upper($1) AS b FROM mentions WHERE $1 IS NOT NULL AND aid = $2";
        let cases = [
            Type::BOOL,
            Type::INT2,
            Type::INT4,
            Type::INT8,
            Type::FLOAT4,
            Type::FLOAT8,
            Type::NUMERIC,
            Type::NUMERIC_ARRAY,
            Type::INT4_ARRAY,
            Type::TEXT,
            Type::DATE,
            Type::TIMESTAMPTZ,
            Type::INTERVAL,
        ];
        each(cases, |known| {
            let with = |value: ScalarValue| {
                let parsed = parsed(&PlanningTurn::unbounded(), sql).expect("a statement");
                let types = [Some(known.clone()), Some(Type::TEXT)];
                // A parameter that is no numeric has no decimal value.
                let value = match known {
                    Type::NUMERIC => value,
                    Type::NUMERIC_ARRAY => {
                        let item = value.data_type();
                        ScalarValue::List(ScalarValue::new_list_nullable(&[value], &item))
                    }
                    _ => ScalarValue::from(value.to_string()),
                };
                translated(parsed, &Names::of_tests(), &types, &[value, ScalarValue::Null]).expect("a translation")
            };
            let (short, types) = with(ScalarValue::Decimal128(Some(15), 2, 1));
            let (long, _) = with(ScalarValue::Decimal128(Some(123_456), 6, 4));
            assert_eq!(short.to_string() != long.to_string(), depends_on_values(&types), "{known}: {short}");
        });
    }

    /// The types of parameters are listed up to the largest number.
    #[test]
    fn a_parameter_that_no_message_can_bind_has_no_type() {
        let sql = "SELECT $2::int, $65536::int, $4000000000::int, $18446744073709551615::int";
        let mut parsed = parsed(&PlanningTurn::unbounded(), sql).expect("a statement");
        assert_eq!(types(&mut parsed, &[]), BTreeMap::from([(2, Type::INT4)]));
    }
}
