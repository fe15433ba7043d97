//! PostgreSQL's types by the names in a statement.

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType as SqlType, ExactNumberInfo, TimezoneInfo,
};
use postgres_types::Type;

/// The length of a type of texts.
pub(super) fn length_of(data_type: &SqlType) -> Option<u64> {
    match data_type {
        SqlType::Varchar(length) | SqlType::CharVarying(length) | SqlType::CharacterVarying(length) => match length {
            Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
            _ => None,
        },
        SqlType::Char(length) | SqlType::Character(length) => match length {
            Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
            _ => Some(1),
        },
        _ => None,
    }
}

/// The scale of a numeric type that has one.
pub(super) fn scale_of(data_type: &SqlType) -> Option<i64> {
    match data_type {
        SqlType::Numeric(info) | SqlType::Decimal(info) | SqlType::Dec(info) => match info {
            ExactNumberInfo::None => None,
            ExactNumberInfo::Precision(_) => Some(0),
            ExactNumberInfo::PrecisionAndScale(_, scale) => Some(*scale),
        },
        _ => None,
    }
}

/// PostgreSQL's type of this name; `None` for one that is left to the engine.
pub(in crate::postgres) fn type_named(data_type: &SqlType) -> Option<Type> {
    Some(match data_type {
        SqlType::Bool | SqlType::Boolean => Type::BOOL,
        SqlType::Int2(None) | SqlType::SmallInt(None) => Type::INT2,
        SqlType::Int(None) | SqlType::Int4(None) | SqlType::Integer(None) => Type::INT4,
        SqlType::Int8(None) | SqlType::BigInt(None) => Type::INT8,
        SqlType::Real | SqlType::Float4 => Type::FLOAT4,
        SqlType::Float8 | SqlType::DoublePrecision | SqlType::Double(_) => Type::FLOAT8,
        SqlType::Float(ExactNumberInfo::Precision(..25)) => Type::FLOAT4,
        SqlType::Float(_) => Type::FLOAT8,
        SqlType::Numeric(_) | SqlType::Decimal(_) | SqlType::Dec(_) => Type::NUMERIC,
        SqlType::Text | SqlType::String(None) => Type::TEXT,
        SqlType::Varchar(_) | SqlType::CharVarying(_) | SqlType::CharacterVarying(_) => Type::VARCHAR,
        SqlType::Char(_) | SqlType::Character(_) => Type::BPCHAR,
        SqlType::Bytea => Type::BYTEA,
        SqlType::Date => Type::DATE,
        SqlType::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => Type::TIME,
        SqlType::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => Type::TIMESTAMP,
        SqlType::Timestamp(_, _) => Type::TIMESTAMPTZ,
        SqlType::Interval { .. } => Type::INTERVAL,
        SqlType::Uuid => Type::UUID,
        SqlType::JSON => Type::JSON,
        SqlType::Custom(name, arguments) if arguments.is_empty() => {
            match name.0.last()?.as_ident()?.value.to_lowercase().as_str() {
                "name" => Type::NAME,
                "bpchar" => return None,
                "timestamptz" => Type::TIMESTAMPTZ,
                "int2" => Type::INT2,
                "int4" => Type::INT4,
                "int8" => Type::INT8,
                "float4" => Type::FLOAT4,
                "float8" => Type::FLOAT8,
                "bool" => Type::BOOL,
                "text" => Type::TEXT,
                "varchar" => Type::VARCHAR,
                _ => return None,
            }
        }
        SqlType::Array(ArrayElemTypeDef::SquareBracket(item, _)) => match type_named(item)? {
            Type::BOOL => Type::BOOL_ARRAY,
            Type::INT2 => Type::INT2_ARRAY,
            Type::INT4 => Type::INT4_ARRAY,
            Type::INT8 => Type::INT8_ARRAY,
            Type::FLOAT4 => Type::FLOAT4_ARRAY,
            Type::FLOAT8 => Type::FLOAT8_ARRAY,
            Type::NUMERIC => Type::NUMERIC_ARRAY,
            Type::TEXT => Type::TEXT_ARRAY,
            Type::VARCHAR => Type::VARCHAR_ARRAY,
            Type::NAME => Type::NAME_ARRAY,
            Type::DATE => Type::DATE_ARRAY,
            Type::TIME => Type::TIME_ARRAY,
            Type::TIMESTAMP => Type::TIMESTAMP_ARRAY,
            Type::TIMESTAMPTZ => Type::TIMESTAMPTZ_ARRAY,
            Type::INTERVAL => Type::INTERVAL_ARRAY,
            Type::UUID => Type::UUID_ARRAY,
            Type::JSON => Type::JSON_ARRAY,
            _ => return None,
        },
        _ => return None,
    })
}
