//! `string_agg`, which replaces the engine's function of this name in a session.
//!
//! The engine requires that its input has the order of ORDER BY, and refuses two calls with different orders. The function's
//! accumulators sort their values themselves, as those of `array_agg` do, so that here no order is required.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF};

use super::wrapper::wrapped_aggregate_methods;

/// The function `string_agg`.
pub(super) fn string_agg_udaf() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        let function = datafusion::functions_aggregate::string_agg::string_agg_udaf();
        Arc::new(AggregateUDF::new_from_impl(Unordered(function.as_ref().clone())))
    });
    Arc::clone(&FUNCTION)
}

/// The engine's function, without its requirement.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Unordered(AggregateUDF);

impl Unordered {
    fn function(&self) -> &Arc<dyn AggregateUDFImpl> {
        self.0.inner()
    }
}

#[warn(clippy::missing_trait_methods)] // It delegates every method.
impl AggregateUDFImpl for Unordered {
    wrapped_aggregate_methods!();

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.function().accumulator(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.function().create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.function().create_sliding_accumulator(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::SoftRequirement
    }

    fn with_beneficial_ordering(self: Arc<Self>, _ordering: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        // The accumulators sort in any case.
        Ok(Some(self))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Reversed(string_agg_udaf())
    }
}
