//! `array_has`, `array_has_any` and `array_has_all` over arrays with NULL, which replace the engine's functions of these names in
//! a session.
//!
//! | call | engine | here |
//! | --- | --- | --- |
//! | `array_has([x, 'b'], 'a')`, where `x` is NULL | NULL, because it becomes `'a' IN (x, 'b')` | false, as over a column |
//! | `array_has_any([NULL], [NULL])` | true | false: NULL equals nothing |
//! | `array_has_all([1, NULL], [NULL])` | true | false |
//! | `array_has_all([1], NULL)` | true, or NULL if another row's array has a member | NULL |
//!
//! `x = ANY (array)` has other rules, and does not come here. Sources: PostgreSQL documentation, "Array Functions and Operators";
//! DuckDB's `list_has_any`.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray};
use arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow::compute::{cast, filter, is_not_null};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::config::ConfigOptions;
use datafusion::functions_nested::array_has::{array_has_all_udf, array_has_any_udf, array_has_udf};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, StructFieldMapping,
};

use super::wrapper::wrapped_methods;

/// Which members of the second argument the first one must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Membership {
    /// The second argument itself.
    One,
    /// Any.
    Any,
    /// All.
    All,
}

impl Membership {
    /// The function.
    pub(crate) fn udf(self) -> Arc<ScalarUDF> {
        static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 3]> = LazyLock::new(|| {
            let functions = [
                (Membership::One, array_has_udf()),
                (Membership::Any, array_has_any_udf()),
                (Membership::All, array_has_all_udf()),
            ];
            functions.map(|(of, inner)| Arc::new(ScalarUDF::new_from_impl(ArrayMembership { of, inner })))
        });
        Arc::clone(&FUNCTIONS[self as usize])
    }
}

/// The engine's function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ArrayMembership {
    of: Membership,
    inner: Arc<ScalarUDF>,
}

impl ArrayMembership {
    fn function(&self) -> &Arc<dyn ScalarUDFImpl> {
        self.inner.inner()
    }

    /// Looks in arrays for the members of arrays.
    fn members(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ScalarFunctionArgs { args: arrays, number_rows, return_field, config_options, .. } = args;
        let [within, sought] = arrays.as_slice() else {
            return exec_err!("{} takes two arrays", self.name());
        };
        if within.data_type().is_null() || sought.data_type().is_null() {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(None)));
        }
        let [within, sought] = [as_list(within, number_rows)?, as_list(sought, number_rows)?];
        let known = NullBuffer::union(within.nulls(), sought.nulls());
        let (sought, unknown) = without_nulls(&sought)?;
        let lists: [ArrayRef; 2] = [Arc::new(within), Arc::new(sought)];
        let arg_fields = lists.iter().map(|list| Arc::new(Field::new("", list.data_type().clone(), true))).collect();
        let args = lists.map(ColumnarValue::Array).into();
        let args = ScalarFunctionArgs { args, arg_fields, number_rows, return_field, config_options };
        let found = self.function().invoke_with_args(args)?.into_array(number_rows)?;
        let found = found.as_boolean().values();
        let found = match self.of {
            Membership::All => found & &!&unknown,
            Membership::One | Membership::Any => found.clone(),
        };
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::new(found, known))))
    }
}

fn as_list(value: &ColumnarValue, rows: usize) -> Result<ListArray> {
    let array = value.to_array(rows)?;
    let (DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _)) = array.data_type()
    else {
        return exec_err!("expected an array, got {}", array.data_type());
    };
    Ok(cast(&array, &DataType::List(Arc::clone(item)))?.as_list().clone())
}

/// The lists without their members that are NULL, and which of them had any.
fn without_nulls(lists: &ListArray) -> Result<(ListArray, BooleanBuffer)> {
    let valid = is_not_null(lists.values())?;
    let DataType::List(item) = lists.data_type() else { return exec_err!("expected an array") };
    let kept = lists.offsets().windows(2).map(|row| {
        let [start, end] = [row[0], row[1]].map(|at| usize::try_from(at).unwrap_or_default());
        valid.values().slice(start, end - start).count_set_bits()
    });
    let (offsets, missing): (Vec<usize>, Vec<bool>) =
        kept.zip(lists.offsets().lengths()).map(|(kept, length)| (kept, kept < length)).unzip();
    // Values outside of all lists are left out.
    let first = usize::try_from(lists.offsets()[0]).unwrap_or_default();
    let length = lists.offsets().lengths().sum();
    let values = filter(&lists.values().slice(first, length), &valid.slice(first, length))?;
    let lists =
        ListArray::try_new(Arc::clone(item), OffsetBuffer::from_lengths(offsets), values, lists.nulls().cloned())?;
    Ok((lists, missing.into()))
}

#[warn(clippy::missing_trait_methods)] // It delegates every method.
impl ScalarUDFImpl for ArrayMembership {
    wrapped_methods!();

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = Arc::new(self.function().with_updated_config(config)?);
        Some(ScalarUDF::new_from_impl(Self { of: self.of, inner }))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.function().return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match self.of {
            Membership::One => self.function().invoke_with_args(args),
            Membership::Any | Membership::All => self.members(args),
        }
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        // The engine makes IN of an array, which is another question if a member may be NULL, or if there is none.
        let as_in = match args.first() {
            Some(Expr::Literal(ScalarValue::List(list), _)) => {
                list.is_valid(0) && !list.value(0).is_empty() && list.value(0).logical_null_count() == 0
            }
            _ => self.of != Membership::One,
        };
        if as_in { self.function().simplify(args, context) } else { Ok(ExprSimplifyResult::Original(args)) }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.function().output_ordering(inputs)
    }
}
