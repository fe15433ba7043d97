//! `now()`, truncated to whole seconds.
//!
//! The engine's function has nanoseconds, which no period can express. The service could then not filter exactly by
//! `published_at >= now() - INTERVAL '7 days'`, and mentions would have to be read to be counted.

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::datetime::now::NowFunc;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

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
