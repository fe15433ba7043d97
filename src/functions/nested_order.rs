//! The order of arrays and rows, in which NULL is the greatest member, as in PostgreSQL and DuckDB. For the engine's operators, it is
//! the smallest one.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, BooleanArray, make_comparator};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// A comparison of two arrays, or of two rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum NestedOrder {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

impl NestedOrder {
    /// All comparisons.
    pub(crate) const ALL: [Self; 4] = [Self::Less, Self::AtMost, Self::Greater, Self::AtLeast];

    /// The function.
    pub(crate) fn udf(self) -> Arc<ScalarUDF> {
        static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 4]> = LazyLock::new(|| {
            NestedOrder::ALL.map(|by| {
                let signature = Signature::any(2, Volatility::Immutable);
                Arc::new(ScalarUDF::new_from_impl(Comparison { by, signature }))
            })
        });
        Arc::clone(&FUNCTIONS[self as usize])
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Comparison {
    by: NestedOrder,
    signature: Signature,
}

impl ScalarUDFImpl for Comparison {
    fn name(&self) -> &'static str {
        match self.by {
            NestedOrder::Less => "nested_less",
            NestedOrder::AtMost => "nested_at_most",
            NestedOrder::Greater => "nested_greater",
            NestedOrder::AtLeast => "nested_at_least",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        super::field_of(self, &args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else { return exec_err!("{} compares two values", self.name()) };
        let constant = matches!((left, right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let (left, right) = (left.to_array(rows)?, right.to_array(rows)?);
        let compare = make_comparator(&left, &right, SortOptions { descending: false, nulls_first: false })?;
        let values = BooleanBuffer::collect_bool(rows, |row| {
            let order = compare(row, row);
            match self.by {
                NestedOrder::Less => order.is_lt(),
                NestedOrder::AtMost => order.is_le(),
                NestedOrder::Greater => order.is_gt(),
                NestedOrder::AtLeast => order.is_ge(),
            }
        });
        let compared = BooleanArray::new(values, NullBuffer::union(left.nulls(), right.nulls()));
        Ok(match constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&compared, 0)?),
            false => ColumnarValue::Array(Arc::new(compared)),
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, ListArray};
    use arrow::datatypes::{Field, Int64Type};
    use datafusion::config::ConfigOptions;

    use super::*;

    /// Results of PostgreSQL 15 and DuckDB.
    #[test]
    fn null_is_the_greatest_member() {
        let lists = |rows: Vec<Option<Vec<Option<i64>>>>| -> ArrayRef {
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows))
        };
        let left = lists(vec![
            Some(vec![Some(1), None]),
            Some(vec![Some(1)]),
            Some(vec![None]),
            Some(vec![Some(1), None]),
            None,
            Some(vec![]),
        ]);
        let right = lists(vec![
            Some(vec![Some(1), Some(2)]),
            Some(vec![Some(1), None]),
            Some(vec![Some(9), Some(9)]),
            Some(vec![Some(1), None]),
            Some(vec![None]),
            Some(vec![None]),
        ]);
        let compare = |by: NestedOrder| {
            let field = |list: &ArrayRef| Arc::new(Field::new("", list.data_type().clone(), true));
            let args = ScalarFunctionArgs {
                args: vec![ColumnarValue::Array(Arc::clone(&left)), ColumnarValue::Array(Arc::clone(&right))],
                arg_fields: vec![field(&left), field(&right)],
                number_rows: left.len(),
                return_field: Arc::new(Field::new("", DataType::Boolean, true)),
                config_options: Arc::new(ConfigOptions::default()),
            };
            let compared = by.udf().invoke_with_args(args).expect("a comparison");
            compared.into_array(left.len()).expect("an array")
        };
        let is = |rows: [Option<bool>; 6]| -> ArrayRef { Arc::new(BooleanArray::from(rows.to_vec())) };
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(&compare(NestedOrder::Less), &is([no, yes, no, no, None, yes]));
        assert_eq!(&compare(NestedOrder::AtMost), &is([no, yes, no, yes, None, yes]));
        assert_eq!(&compare(NestedOrder::Greater), &is([yes, no, yes, no, None, no]));
        assert_eq!(&compare(NestedOrder::AtLeast), &is([yes, no, yes, yes, None, no]));
    }
}
