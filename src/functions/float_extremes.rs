//! `max` and `min`, which replace the engine's functions of these names in a session.
//!
//! With GROUP BY, the engine's largest number begins at the smallest finite one, and its smallest number at the largest finite one:
//! the largest of `-Infinity` is `-1.8e308`, and the smallest of `Infinity` is `1.8e308`. NaN replaces any number, and any number
//! replaces NaN. Here, the groups of floating-point numbers have the accumulators of a query without GROUP BY, for which NaN is the
//! greatest number. Other types stay as they are.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator};

use super::wrapper::{wrapped_aggregate_methods, wrapped_order_methods};

/// Both functions: `max`, then `min`.
pub(crate) fn float_extremes() -> [Arc<AggregateUDF>; 2] {
    static FUNCTIONS: LazyLock<[Arc<AggregateUDF>; 2]> =
        LazyLock::new(|| [max_udaf(), min_udaf()].map(|function| Arc::new(extreme(&function))));
    FUNCTIONS.clone()
}

fn extreme(function: &AggregateUDF) -> AggregateUDF {
    AggregateUDF::new_from_impl(Extreme(function.clone()))
}

/// The engine's function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme(AggregateUDF);

impl Extreme {
    fn function(&self) -> &Arc<dyn AggregateUDFImpl> {
        self.0.inner()
    }
}

#[warn(clippy::missing_trait_methods)] // It delegates every method.
impl AggregateUDFImpl for Extreme {
    wrapped_aggregate_methods!();
    wrapped_order_methods!(extreme);

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        let number = args.return_field.data_type();
        let floating = matches!(number, DataType::Float16 | DataType::Float32 | DataType::Float64);
        !floating && self.function().groups_accumulator_supported(args)
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
}
