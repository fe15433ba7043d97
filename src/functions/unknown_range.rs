//! Engine functions whose result is ordered for some arguments, such as `abs` and `sqrt`, over arguments of an unknown range.
//!
//! `row_number() OVER (ORDER BY abs(round(x)))` and `array_agg(x ORDER BY abs(abs(x)))` fail in DataFusion 55.2 with "does not
//! satisfy order requirements". The range of most functions' results is unknown, and has no type; the functions look for zero in
//! it, which is an error, and a plan with an error has no order. Here their order is unknown.
//!
//! Invariant: values and types are those of the engine's function.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, StructFieldMapping,
};

use super::wrapper::wrapped_methods;

/// The function with an order for arguments of an unknown range, if it has none.
pub(crate) fn with_unknown_range(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    // As many as any of the engine's functions looks at.
    let unknown = [(); 4].map(|()| ExprProperties::new_unknown());
    match function.output_ordering(&unknown) {
        Ok(_) => function,
        Err(_) => Arc::new(ScalarUDF::new_from_impl(UnknownRange { inner: function })),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct UnknownRange {
    inner: Arc<ScalarUDF>,
}

impl UnknownRange {
    fn function(&self) -> &Arc<dyn ScalarUDFImpl> {
        self.inner.inner()
    }
}

#[warn(clippy::missing_trait_methods)] // It delegates every method.
impl ScalarUDFImpl for UnknownRange {
    wrapped_methods!();

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = Arc::new(self.function().with_updated_config(config)?);
        Some(ScalarUDF::new_from_impl(Self { inner }))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.function().return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.function().invoke_with_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.function().simplify(args, context)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(self.function().output_ordering(inputs).unwrap_or(SortProperties::Unordered))
    }
}
