//! `nested_key(x)`: an array, a row or a map as bytes with its order, by which it is sorted. NULL is the greatest member.
//!
//! The engine sorts arrays and rows in one order, and compares two of them in another, in which NULL is unknown or the smallest
//! member. Below a limit it compares rows with the last one that it keeps, and drops some that belong before it. It also merges
//! the sorted values of an aggregate from several partitions by such comparisons, so that the result is not sorted. Bytes have one
//! order.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, BinaryArray};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, FieldRef};
use arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The function. The key of NULL is NULL.
pub(crate) fn nested_key() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(NestedKey { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NestedKey {
    signature: Signature,
}

impl ScalarUDFImpl for NestedKey {
    fn name(&self) -> &'static str {
        "nested_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        super::field_of(self, &args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Array(values)] => Ok(ColumnarValue::Array(keys(values)?)),
            [ColumnarValue::Scalar(value)] => {
                let keys = keys(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&keys, 0)?))
            }
            _ => exec_err!("nested_key expects a value"),
        }
    }
}

fn keys(values: &ArrayRef) -> Result<ArrayRef> {
    let options = SortOptions { descending: false, nulls_first: false };
    let field = SortField::new_with_options(values.data_type().clone(), options);
    let rows = RowConverter::new(vec![field])?.convert_columns(&[Arc::clone(values)])?;
    let (offsets, bytes, _) = rows.try_into_binary()?.into_parts();
    Ok(Arc::new(BinaryArray::new(offsets, bytes, values.logical_nulls())))
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array, ListArray, StructArray};
    use arrow::datatypes::{Field, Fields, Int64Type};

    use super::*;

    /// Orders of PostgreSQL 15 and DuckDB.
    #[test]
    fn keys_have_the_order_of_values_with_null_as_the_greatest_member() {
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([
            Some(vec![]),
            Some(vec![Some(-1)]),
            Some(vec![Some(1)]),
            Some(vec![Some(1), Some(2)]),
            Some(vec![Some(1), None]),
            Some(vec![Some(2)]),
            Some(vec![None]),
            Some(vec![None, Some(1)]),
        ]));
        let member = |name: &str| Field::new(name, DataType::Int64, true);
        let first: Int64Array = [Some(-1), Some(1), Some(1), None, None].into_iter().collect();
        let second: Int64Array = [None, Some(2), None, Some(-5), None].into_iter().collect();
        let fields = Fields::from(vec![member("a"), member("b")]);
        let rows: ArrayRef = Arc::new(StructArray::new(fields, vec![Arc::new(first), Arc::new(second)], None));
        for values in [lists, rows] {
            let keys = keys(&values).expect("keys");
            let keys: Vec<&[u8]> = keys.as_binary::<i32>().iter().flatten().collect();
            assert_eq!(keys.len(), values.len());
            assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
        }
        let missing: ArrayRef =
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([None, Some(vec![Some(1)])]));
        let keys = keys(&missing).expect("keys");
        assert!(keys.is_null(0) && keys.is_valid(1));
    }
}
