//! `now()`, truncated to whole seconds, and functions of the current time for a connection whose clock has stopped.
//!
//! The engine's function has nanoseconds, which no period can express. The service could then not filter exactly by
//! `published_at >= now() - INTERVAL '7 days'`, and mentions would have to be read to be counted.
//!
//! Data with a stopped clock ends at that instant. By the real time, the same condition would have no rows.

use std::hash::Hash;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use chrono::{DateTime, Utc};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::datetime::current_date::CurrentDateFunc;
use datafusion::functions::datetime::current_time::CurrentTimeFunc;
use datafusion::functions::datetime::now::NowFunc;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// The functions of the current time for sessions over a clock that has stopped.
pub(super) fn stopped_at(at: DateTime<Utc>) -> [Arc<ScalarUDF>; 3] {
    let now = Now::new(&ConfigOptions::default());
    [
        Arc::new(Stopped { function: now, at }.into()),
        Arc::new(Stopped { function: CurrentDateFunc::new(), at }.into()),
        Arc::new(Stopped { function: CurrentTimeFunc::new(), at }.into()),
    ]
}

/// A function of the current time that returns that of a stopped clock.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Stopped<F> {
    function: F,
    at: DateTime<Utc>,
}

/// A function of the current time whose type may depend on the zone of the session.
trait OfZone: Sized {
    /// The function for sessions with other options; `None` if it is the same.
    fn of_zone(&self, config: &ConfigOptions) -> Option<Self>;
}

impl OfZone for Now {
    fn of_zone(&self, config: &ConfigOptions) -> Option<Self> {
        Some(Self::new(config))
    }
}

impl OfZone for CurrentDateFunc {
    fn of_zone(&self, _: &ConfigOptions) -> Option<Self> {
        None
    }
}

impl OfZone for CurrentTimeFunc {
    fn of_zone(&self, _: &ConfigOptions) -> Option<Self> {
        None
    }
}

impl<F: ScalarUDFImpl + OfZone + Eq + Hash> ScalarUDFImpl for Stopped<F> {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.function.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.function.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.function.invoke_with_args(args)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        Some(Self { function: self.function.of_zone(config)?, at: self.at }.into())
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let stopped = SimplifyContext::builder()
            .with_schema(Arc::clone(info.schema()))
            .with_config_options(Arc::clone(info.config_options()))
            .with_query_execution_start_time(Some(self.at))
            .build();
        self.function.simplify(args, &stopped)
    }
}

/// The engine's `now()`, rounded down. See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Now(NowFunc);

impl Now {
    /// Creates the function for sessions with these options.
    pub(super) fn new(options: &ConfigOptions) -> Self {
        Self(NowFunc::new_with_config(options))
    }
}

impl ScalarUDFImpl for Now {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.0.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.0.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.0.invoke_with_args(args)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        Some(Self::new(config).into())
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        const SECOND: i64 = 1_000_000_000;
        Ok(match self.0.simplify(args, info)? {
            ExprSimplifyResult::Simplified(Expr::Literal(
                ScalarValue::TimestampNanosecond(Some(at), zone),
                metadata,
            )) => {
                let whole = at.div_euclid(SECOND) * SECOND;
                let value = ScalarValue::TimestampNanosecond(Some(whole), zone);
                ExprSimplifyResult::Simplified(Expr::Literal(value, metadata))
            }
            other => other,
        })
    }
}
