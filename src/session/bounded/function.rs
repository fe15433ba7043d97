//! Engine functions that reject calls with too large a result, or that take too long, and the operator `||` as such a
//! function.

use std::sync::Arc;

use arrow::compute::kernels::concat_elements::concat_elements_dyn;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, StructFieldMapping, Volatility,
};

use super::demand::{Calls, Growth, check_joined};
use super::rule::{check_type, check_type_name};
use crate::functions::{field_of, wrapped_methods};
use crate::memory;

/// Returns the growth of a function, wrapped or not; `None` if it needs no limits.
pub(super) fn growth_of(function: &ScalarUDF) -> Option<Growth> {
    match function.inner().downcast_ref::<Bounded>() {
        Some(known) => Some(known.growth),
        None => Growth::of_function(function),
    }
}

/// Wraps a function with limits, as one of `calls` in the statement; `None` if it needs none or is already wrapped.
pub(super) fn bounded(function: &ScalarUDF, calls: Calls) -> Option<ScalarUDF> {
    let growth = growth_of(function)?;
    let calls = if growth.is_shared() { calls } else { Calls::ONE };
    let inner = match function.inner().downcast_ref::<Bounded>() {
        Some(known) if known.calls == calls => return None,
        Some(known) => known.inner.clone(),
        None => function.clone(),
    };
    Some(ScalarUDF::new_from_impl(Bounded { inner, growth, calls }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: ScalarUDF,
    growth: Growth,
    /// Calls in the statement.
    calls: Calls,
}

impl Bounded {
    fn function(&self) -> &Arc<dyn ScalarUDFImpl> {
        self.inner.inner()
    }
}

#[warn(clippy::missing_trait_methods)] // It delegates every method.
impl ScalarUDFImpl for Bounded {
    wrapped_methods!();

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        bounded(&self.function().with_updated_config(config)?, self.calls)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        // The engine derives types again and again while it plans: a statement that nobody waits for ends here.
        memory::check()?;
        // Type names are parsed recursively, and their sizes are taken at face value.
        if let (Growth::Type, [_, Some(name), ..]) = (self.growth, args.scalar_arguments)
            && let Some(name) = name.try_as_str().flatten()
        {
            check_type_name(name)?;
        }
        let field = self.function().return_field_from_args(args)?;
        // Types can grow exponentially, as values do, and are traversed when they are compared.
        check_type(field.data_type())?;
        Ok(field)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.growth.evaluate(self.name(), args, self.calls, |args| self.function().invoke_with_args(args))
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match self.growth {
            Growth::Linear | Growth::Slow | Growth::Type => self.function().simplify(args, context),
            // The function itself, with other arguments, keeps its limit. Any other simplified expression would have none.
            _ => match self.function().simplify(args.clone(), context)? {
                ExprSimplifyResult::Simplified(Expr::ScalarFunction(ScalarFunction { func, args }))
                    if func.name() == self.name() =>
                {
                    let inner = Arc::unwrap_or_clone(func);
                    let limited = ScalarUDF::new_from_impl(Self { inner, growth: self.growth, calls: self.calls });
                    Ok(ExprSimplifyResult::Simplified(limited.call(args)))
                }
                _ => Ok(ExprSimplifyResult::Original(args)),
            },
        }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.function().output_ordering(inputs)
    }
}

/// The operator `||` on two strings of the same type; NULL if either is NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Joined {
    signature: Signature,
    /// Number of growing calls in the statement.
    calls: usize,
}

impl Joined {
    pub(super) fn new(calls: usize) -> Self {
        Self { signature: Signature::any(2, Volatility::Immutable), calls }
    }
}

impl ScalarUDFImpl for Joined {
    fn name(&self) -> &'static str {
        "||"
    }

    // Displayed like the operator, since other code may look it up by name.
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        self.schema_name(args)
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|arg| arg.schema_name().to_string()).collect::<Vec<_>>().join(" || "))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        field_of(self, &args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [left, right] if left == right => Ok(left.clone()),
            _ => exec_err!("|| expects two strings of the same type"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let _room = check_joined(&args, self.calls)?;
        let same = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if same { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let [left, right] = arrays.as_slice() else { return exec_err!("|| expects two strings") };
        let joined = concat_elements_dyn(left, right)?;
        match same {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&joined, 0)?)),
            false => Ok(ColumnarValue::Array(joined)),
        }
    }
}
