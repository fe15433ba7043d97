//! `only_value(x)`: the value of the only row of a group, NULL for an empty group, and an error for several rows.
//!
//! It is the value of a correlated scalar subquery that is not an aggregate, such as `(SELECT name FROM t WHERE t.k = o.k)`. With
//! DISTINCT, it is an error only if two values differ.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

/// The function `only_value`.
pub(crate) fn only_value_udaf() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::new_from_impl(OnlyValue(Signature::any(1, Volatility::Immutable)))));
    Arc::clone(&FUNCTION)
}

/// True for the function.
pub(crate) fn is_only_value(function: &AggregateUDF) -> bool {
    function.inner().as_ref().is::<OnlyValue>()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OnlyValue(Signature);

impl AggregateUDFImpl for OnlyValue {
    fn name(&self) -> &str {
        "only_value"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let none = ScalarValue::try_from(args.return_field.data_type())?;
        Ok(Box::new(Only { value: None, none, distinct: args.is_distinct }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let value = Field::new(format!("{}[value]", args.name), args.return_field.data_type().clone(), true);
        let present = Field::new(format!("{}[present]", args.name), DataType::Boolean, false);
        Ok(vec![Arc::new(value), Arc::new(present)])
    }
}

#[derive(Debug)]
struct Only {
    /// The value of the first row.
    value: Option<ScalarValue>,
    /// The value without a row.
    none: ScalarValue,
    distinct: bool,
}

impl Only {
    fn add(&mut self, values: &ArrayRef, row: usize) -> Result<()> {
        match &self.value {
            None => self.value = Some(ScalarValue::try_from_array(values, row)?.compacted()),
            Some(value) if self.distinct && *value == ScalarValue::try_from_array(values, row)? => {}
            // The engine's words for subqueries that are not correlated.
            Some(_) => return exec_err!("Scalar subquery returned more than one row"),
        }
        Ok(())
    }
}

impl Accumulator for Only {
    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?, ScalarValue::from(self.value.is_some())])
    }

    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        (0..values[0].len()).try_for_each(|row| self.add(&values[0], row))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let present = states[1].as_boolean();
        (0..present.len()).filter(|row| present.value(*row)).try_for_each(|row| self.add(&states[0], row))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.as_ref().unwrap_or(&self.none).clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.as_ref().map_or(0, ScalarValue::size)
    }
}
