//! `x IN (SELECT …)` outside the top of a WHERE clause, with the three values of SQL.
//!
//! The engine plans it as a mark join. Its mark is false in cases in which the standard requires NULL, so under NOT, IS NULL
//! or CASE, the result has rows that it must not have.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, BooleanBuilder, ListArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// `in_values(x, list)`: true if the list contains `x`; NULL if it does not, and `x` or a value of a non-empty list is NULL;
/// else false. A list that is NULL is empty, because `array_agg` of no rows is NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct InValues {
    signature: Signature,
}

impl InValues {
    /// Creates the function.
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::any(2, Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for InValues {
    fn name(&self) -> &'static str {
        "in_values"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [value, list] = args.args.as_slice() else { return exec_err!("in_values takes two arguments") };
        let values = value.to_array(rows)?;
        let found = match list {
            // The usual case: one list for all rows.
            ColumnarValue::Scalar(list) => {
                let list = list.to_array()?;
                let list = as_list(&list)?;
                let list = if list.is_null(0) { None } else { Some(list.value(0)) };
                in_one_list(&values, list.as_ref())?
            }
            ColumnarValue::Array(lists) => in_own_list(&values, as_list(lists)?)?,
        };
        Ok(ColumnarValue::Array(Arc::new(found)))
    }
}

fn as_list(array: &ArrayRef) -> Result<&ListArray> {
    match array.as_list_opt::<i32>() {
        Some(list) => Ok(list),
        None => exec_err!("in_values takes a list, got {}", array.data_type()),
    }
}

/// Looks for each value in the same list; `None` is an empty one.
fn in_one_list(values: &ArrayRef, list: Option<&ArrayRef>) -> Result<BooleanArray> {
    let Some(list) = list.filter(|list| !list.is_empty()) else {
        return Ok(BooleanArray::from(vec![false; values.len()]));
    };
    let list = cast(list, values.data_type())?;
    let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())])?;
    let listed = converter.convert_columns(&[Arc::clone(&list)])?;
    let sought = converter.convert_columns(&[Arc::clone(values)])?;
    let listed: HashSet<&[u8]> =
        (0..list.len()).filter(|row| list.is_valid(*row)).map(|row| listed.row(row).data()).collect();
    let absent = if list.null_count() > 0 { None } else { Some(false) };
    // An array without a type reports no NULLs.
    let typed = !values.data_type().is_null();
    let found = (0..values.len()).map(|row| match typed && values.is_valid(row) {
        true if listed.contains(sought.row(row).data()) => Some(true),
        true => absent,
        false => None,
    });
    Ok(found.collect())
}

/// Looks for each value in the list of its row.
fn in_own_list(values: &ArrayRef, lists: &ListArray) -> Result<BooleanArray> {
    let mut found = BooleanBuilder::with_capacity(values.len());
    for row in 0..values.len() {
        let list = lists.is_valid(row).then(|| lists.value(row));
        let one = in_one_list(&values.slice(row, 1), list.as_ref())?;
        found.append_option(one.is_valid(0).then(|| one.value(0)));
    }
    Ok(found.finish())
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    #[test]
    fn nulls_make_absence_unknown() {
        let values: ArrayRef = Arc::new(StringArray::from(vec![Some("en"), Some("fr"), None]));
        let list = |items: Vec<Option<&str>>| -> ArrayRef { Arc::new(StringArray::from(items)) };
        for (items, right) in [
            (vec![Some("en"), Some("de")], [Some(true), Some(false), None]),
            (vec![Some("en"), None], [Some(true), None, None]),
            (vec![None], [None, None, None]),
            (vec![], [Some(false), Some(false), Some(false)]),
        ] {
            let found = in_one_list(&values, Some(&list(items.clone()))).expect("lists of strings");
            assert_eq!(found.iter().collect::<Vec<_>>(), right, "{items:?}");
        }
        let found = in_one_list(&values, None).expect("an empty list");
        assert_eq!(found.iter().collect::<Vec<_>>(), [Some(false); 3]);
    }

    #[test]
    fn each_row_can_have_its_list() {
        let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), Some(3), None]));
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(vec![
            Some(vec![Some(1), None]),
            Some(vec![Some(1), None]),
            None,
            Some(vec![]),
        ]);
        let found = in_own_list(&values, &lists).expect("lists of integers");
        assert_eq!(found.iter().collect::<Vec<_>>(), [Some(true), None, Some(false), Some(false)]);
    }
}
