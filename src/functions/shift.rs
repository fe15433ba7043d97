//! `lag` and `lead`, which replace the engine's functions of these names in a session.
//!
//! *IGNORE NULLS*: if the engine computes row by row, `lead(x, n) IGNORE NULLS` loses values for n > 1. The functions here
//! compute whole partitions then.
//!
//! *A negative offset of `lag`*: the engine reads as few rows as for a positive one if there is a LIMIT.
//!
//! *An offset that is NULL*: the engine takes it for 0. The result is NULL.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, new_null_array};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::functions_window::lead_lag::WindowShift;
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;

/// The functions `lag` and `lead`.
pub(super) fn shifts() -> [Arc<WindowUDF>; 2] {
    [&LAG, &LEAD].map(|function| Arc::clone(function))
}

static LAG: LazyLock<Arc<WindowUDF>> =
    LazyLock::new(|| Arc::new(WindowUDF::from(Shift { inner: WindowShift::lag(), back: true })));
static LEAD: LazyLock<Arc<WindowUDF>> =
    LazyLock::new(|| Arc::new(WindowUDF::from(Shift { inner: WindowShift::lead(), back: false })));

/// The engine's function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Shift {
    inner: WindowShift,
    /// True for `lag`.
    back: bool,
}

impl WindowUDFImpl for Shift {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn expressions(&self, args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>> {
        self.inner.expressions(args)
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let ignores_nulls = args.ignore_nulls();
        let offset = args.input_exprs().get(1).and_then(|offset| offset.downcast_ref::<Literal>());
        if offset.is_some_and(|offset| offset.value().is_null()) {
            return Ok(Box::new(NullOffset));
        }
        let evaluator = self.inner.partition_evaluator(args)?;
        Ok(if ignores_nulls { Box::new(WholePartition(evaluator)) } else { evaluator })
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        self.inner.field(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        ReversedUDWF::Reversed(Arc::clone(if self.back { &LAG } else { &LEAD }))
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        let (true, Some(offset)) = (self.back, args.get(1)) else { return self.inner.limit_effect(args) };
        match offset.downcast_ref::<Literal>().map(Literal::value) {
            Some(ScalarValue::Int64(Some(offset))) => match usize::try_from(offset.saturating_neg()) {
                Ok(ahead) => LimitEffect::Relative(ahead),
                Err(_) => LimitEffect::None,
            },
            _ => LimitEffect::Unknown,
        }
    }
}

/// The evaluator for an offset that is NULL.
#[derive(Debug)]
struct NullOffset;

impl PartitionEvaluator for NullOffset {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let [values, ..] = values else { return internal_err!("lag and lead have an argument") };
        Ok(new_null_array(values.data_type(), rows))
    }

    fn supports_bounded_execution(&self) -> bool {
        false
    }
}

/// An evaluator that computes a partition at once.
#[derive(Debug)]
struct WholePartition(Box<dyn PartitionEvaluator>);

impl PartitionEvaluator for WholePartition {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        self.0.evaluate_all(values, rows)
    }

    fn supports_bounded_execution(&self) -> bool {
        false
    }
}
