//! `FLOAT` without a precision, or with one above 24, as double precision, as in PostgreSQL. The engine reads it as single
//! precision, so that `sum(reach)::float` would lose digits. `REAL` stays single precision.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{DataType as SqlType, ExactNumberInfo};

/// Largest precision of single precision, in bits.
const SINGLE: u64 = 24;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct FloatType;

impl TypePlanner for FloatType {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        let double = match sql_type {
            SqlType::Float(ExactNumberInfo::None) => true,
            SqlType::Float(ExactNumberInfo::Precision(bits)) => *bits > SINGLE,
            _ => false,
        };
        Ok(double.then(|| Arc::new(Field::new("", DataType::Float64, true)) as _))
    }
}
