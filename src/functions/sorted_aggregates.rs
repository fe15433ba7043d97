//! `array_agg` and `string_agg` with ORDER BY, which replace the engine's functions of these names in a session.
//!
//! *Several orders*: the engine requires that the input of `string_agg` has its order, and refuses two calls with different ones.
//! The function's accumulators sort their values themselves, as those of `array_agg` do, so that here no order is required.
//!
//! *Opposite orders*: if the input has the opposite order of a call, the engine asks for the reversed result of the reversed
//! call. With DISTINCT, its accumulators sort in the reversed order, and do not reverse the result. Over a window whose rows the
//! engine reads in the opposite order, they do not reverse it either. Here no call can be reversed: the accumulators sort, whatever the
//! order of the input is, and the engine sorts the rows of a window again.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::string_agg::string_agg_udaf;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF};

use super::wrapper::wrapped_aggregate_methods;

/// Both functions.
pub(super) fn sorted_aggregates() -> [Arc<AggregateUDF>; 2] {
    static FUNCTIONS: LazyLock<[Arc<AggregateUDF>; 2]> = LazyLock::new(|| {
        [array_agg_udaf(), string_agg_udaf()].map(|function| Arc::new(AggregateUDF::new_from_impl(Sorted(function))))
    });
    FUNCTIONS.clone()
}

/// The engine's function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Sorted(Arc<AggregateUDF>);

impl Sorted {
    fn function(&self) -> &Arc<dyn AggregateUDFImpl> {
        self.0.inner()
    }
}

#[warn(clippy::missing_trait_methods)] // It delegates every method.
impl AggregateUDFImpl for Sorted {
    wrapped_aggregate_methods!();

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.function().groups_accumulator_supported(args)
    }

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
        Ok(Some(self))
    }
}
