//! Aggregate and window functions, by the memory that they keep while rows arrive.
//!
//! Operators register the state of their aggregates in the memory pool after each batch, so a state that grows with its
//! input is counted, if the function reports its size. A function that is in neither table is refused, because it is not
//! known what it keeps.
//!
//! Invariant: a function in [`FIXED`] keeps as much after a million rows as after the first batch. A function in [`GROWING`]
//! reports what it keeps. A test measures both.

use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::WindowFunctionDefinition;

use crate::error::{Error, ErrorKind};

/// Aggregates with a state of fixed size, or of one of their values. Their result is no larger.
const FIXED: &[&str] = &[
    "any_value",
    "approx_distinct",
    "approx_median",
    "approx_percentile_cont",
    "approx_percentile_cont_with_weight",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "first_value",
    // Becomes a column before it runs.
    "grouping",
    "last_value",
    "max",
    "min",
    "nested_max",
    "nested_min",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "sum",
    "var",
    "var_pop",
];
/// Aggregates that keep many of their values, and report how much they take.
pub(super) const GROWING: &[&str] = &["array_agg", "median", "nth_value", "percentile_cont", "string_agg"];
/// Window functions that return a number, or one of their values.
const WINDOW: &[&str] = &[
    "cume_dist",
    "dense_rank",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "nth_value",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
];

/// Refuses an aggregate or window function that is in no table.
///
/// # Errors
/// [`ErrorKind::Unsupported`] naming the function.
pub(super) fn check_known(expr: &Expr) -> Result<()> {
    let (name, known) = match expr {
        Expr::AggregateFunction(call) => (call.func.name(), is_known_aggregate(call.func.name())),
        Expr::WindowFunction(call) => match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) => (function.name(), is_known_aggregate(function.name())),
            WindowFunctionDefinition::WindowUDF(function) => (function.name(), WINDOW.contains(&function.name())),
        },
        _ => return Ok(()),
    };
    if known {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Unsupported, format!("the function {name} is not supported on a server")).into())
}

fn is_known_aggregate(name: &str) -> bool {
    FIXED.contains(&name) || GROWING.contains(&name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
    use arrow::datatypes::FieldRef;
    use datafusion::common::{ScalarValue, plan_err};
    use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
    use datafusion::logical_expr::{Accumulator, AggregateUDF};
    use datafusion::physical_expr::PhysicalExpr;
    use datafusion::physical_expr::aggregate::AggregateExprBuilder;
    use datafusion::physical_expr::expressions::{col, lit};
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::functions;

    /// Rows of a batch.
    const ROWS: usize = 500;

    fn names<'a>(of: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
        of.into_iter().collect()
    }

    /// The engine's full list, and ours: a new or renamed function fails here, so that a developer determines what it keeps.
    #[test]
    fn every_aggregate_and_window_function_is_in_a_table() {
        let context = SessionContext::new();
        functions::aggregates().into_iter().for_each(|function| context.register_udaf(function.as_ref().clone()));
        let state = context.state();
        let aggregates = names(state.aggregate_functions().values().map(|function| function.name()));
        assert_eq!(aggregates, names(FIXED.iter().chain(GROWING).copied()));
        let window = names(state.window_functions().values().map(|function| function.name()));
        assert_eq!(window, names(WINDOW.iter().copied()));
    }

    /// A batch whose values differ from those of other batches: strings of 1 KB, an integer, two fractions and a truth value.
    fn batch(number: usize) -> RecordBatch {
        let at = |row: usize| number * ROWS + row;
        let text: StringArray = (0..ROWS).map(|row| Some(format!("{:0>1000}", at(row)))).collect();
        let integer: Int64Array = (0..ROWS).map(|row| i64::try_from(at(row)).ok()).collect();
        let fraction: Float64Array =
            (0..ROWS).map(|row| Some(f64::from(u32::try_from(at(row)).expect("few")))).collect();
        let truth: BooleanArray = (0..ROWS).map(|row| Some(row % 2 == 0)).collect();
        let columns: [(&str, ArrayRef); 4] =
            [("t", Arc::new(text)), ("i", Arc::new(integer)), ("f", Arc::new(fraction)), ("b", Arc::new(truth))];
        RecordBatch::try_from_iter(columns).expect("a batch")
    }

    /// Arguments that functions take, the widest first.
    fn arguments() -> Vec<Vec<Arc<dyn PhysicalExpr>>> {
        let schema = batch(0).schema();
        let column = |name| col(name, &schema).expect("a column");
        vec![
            vec![column("t"), lit(",")],
            vec![column("t"), lit(100_000_i64)],
            vec![column("t")],
            vec![column("f"), lit(1.0), lit(0.5)],
            vec![column("f"), column("f"), lit(0.5)],
            vec![column("f"), lit(0.5)],
            vec![column("f"), column("f")],
            vec![column("f")],
            vec![column("i")],
            vec![column("b")],
        ]
    }

    /// Bytes that a function reports after the first batch and after many.
    fn sizes(function: &Arc<AggregateUDF>, args: &[Arc<dyn PhysicalExpr>], distinct: bool) -> Result<[usize; 2]> {
        let schema = batch(0).schema();
        let fields = args.iter().map(|arg| arg.return_field(&schema)).collect::<Result<Vec<_>>>()?;
        let types = |fields: &[FieldRef]| fields.iter().map(|field| field.data_type().clone()).collect::<Vec<_>>();
        if types(&fields_with_udf(&fields, function.as_ref())?) != types(&fields) {
            return plan_err!("other types");
        }
        let built = AggregateExprBuilder::new(Arc::clone(function), args.to_vec());
        let built = built.schema(Arc::clone(&schema)).alias("x").with_distinct(distinct).build()?;
        let mut accumulator: Box<dyn Accumulator> = built.create_accumulator()?;
        let mut first = 0;
        for number in 0..20 {
            let batch = batch(number);
            let values = built
                .expressions()
                .iter()
                .map(|arg| arg.evaluate(&batch)?.into_array(ROWS))
                .collect::<Result<Vec<_>>>()?;
            accumulator.update_batch(&values)?;
            if number == 0 {
                first = accumulator.size();
            }
        }
        let _: ScalarValue = accumulator.evaluate()?;
        Ok([first, accumulator.size()])
    }

    #[test]
    fn functions_keep_what_their_table_says() {
        let context = SessionContext::new();
        functions::aggregates().into_iter().for_each(|function| context.register_udaf(function.as_ref().clone()));
        let functions: Vec<_> = context.state().aggregate_functions().values().cloned().collect();
        for function in functions {
            let name = function.name().to_owned();
            if name == "grouping" {
                continue;
            }
            let taken: Vec<_> =
                arguments().into_iter().filter_map(|args| Some((sizes(&function, &args, false).ok()?, args))).collect();
            assert!(!taken.is_empty(), "{name} takes none of the arguments");
            let grows = |[first, many]: [usize; 2]| many > 2 * first + (32 << 10);
            let growing: Vec<_> = taken.iter().filter(|(sizes, _)| grows(*sizes)).collect();
            assert_eq!(!growing.is_empty(), GROWING.contains(&name.as_str()), "{name}: {growing:?}");
            // All different values are kept, and reported.
            if ["array_agg", "count", "string_agg"].contains(&name.as_str()) {
                let (sizes, args) = arguments()
                    .into_iter()
                    .find_map(|args| Some((sizes(&function, &args, true).ok()?, args)))
                    .expect("text");
                assert!(grows(sizes), "{name}(DISTINCT {args:?}): {sizes:?} bytes");
            }
        }
    }
}
