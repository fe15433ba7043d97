//! `max` and `min` of arrays and rows, in whose order NULL is the greatest member, as in PostgreSQL and DuckDB. For the engine's `max`
//! and `min` of rows, it is the smallest one.

use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, make_comparator};
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use super::moving::sliding;

/// The largest or smallest value of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum NestedExtreme {
    /// `max`
    Largest,
    /// `min`
    Smallest,
}

impl NestedExtreme {
    /// Both functions.
    pub(crate) const ALL: [Self; 2] = [Self::Largest, Self::Smallest];

    /// The one that replaces the engine's function of this name.
    pub(crate) fn instead_of(name: &str) -> Option<Self> {
        match name {
            "max" => Some(Self::Largest),
            "min" => Some(Self::Smallest),
            _ => None,
        }
    }

    /// The function.
    pub(crate) fn udaf(self) -> Arc<AggregateUDF> {
        static FUNCTIONS: LazyLock<[Arc<AggregateUDF>; 2]> = LazyLock::new(|| {
            NestedExtreme::ALL.map(|which| {
                let signature = Signature::any(1, Volatility::Immutable);
                Arc::new(AggregateUDF::new_from_impl(Function { which, signature }))
            })
        });
        Arc::clone(&FUNCTIONS[self as usize])
    }

    /// True for a value that replaces the one found before, of which this is the order.
    fn prefers(self, order: Ordering) -> bool {
        match self {
            Self::Largest => order.is_gt(),
            Self::Smallest => order.is_lt(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Function {
    which: NestedExtreme,
    signature: Signature,
}

impl AggregateUDFImpl for Function {
    fn name(&self) -> &'static str {
        match self.which {
            NestedExtreme::Largest => "nested_max",
            NestedExtreme::Smallest => "nested_min",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Extreme { which: self.which, data_type: args.return_field.data_type().clone(), found: None }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        sliding(Arc::new(self.clone()), args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

#[derive(Debug)]
struct Extreme {
    which: NestedExtreme,
    data_type: DataType,
    /// One row: the value, unless all values are NULL.
    found: Option<ArrayRef>,
}

impl Accumulator for Extreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        let options = SortOptions { descending: false, nulls_first: false };
        let compare = make_comparator(values, values, options)?;
        let mut best: Option<usize> = None;
        for row in (0..values.len()).filter(|row| values.is_valid(*row)) {
            if best.is_none_or(|best| self.which.prefers(compare(row, best))) {
                best = Some(row);
            }
        }
        let Some(best) = best else { return Ok(()) };
        if let Some(found) = &self.found
            && !self.which.prefers(make_comparator(values, found, options)?(best, 0))
        {
            return Ok(());
        }
        // A slice would keep the whole batch.
        self.found = Some(ScalarValue::try_from_array(values, best)?.to_array()?);
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match &self.found {
            Some(found) => ScalarValue::try_from_array(found, 0),
            None => ScalarValue::try_from(&self.data_type),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.found.as_ref().map_or(0, |found| found.get_array_memory_size())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}
