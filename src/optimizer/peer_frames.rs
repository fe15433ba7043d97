//! Frames of windows whose sort key the engine cannot add a distance to: durations, intervals, clock times and rows.
//!
//! The engine refuses `row_number() OVER (ORDER BY x)` of such keys, because a frame by RANGE may end at a distance. The default frame
//! does not: it ends with the peers of a row, as one by GROUPS does.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::rewrite_expressions;
use crate::functions::TypeIn;

/// See the module's documentation. Runs before the engine looks at the types of frames.
#[derive(Debug)]
pub(super) struct PeerFrames;

impl AnalyzerRule for PeerFrames {
    fn name(&self) -> &str {
        "savedsearch_peer_frames"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_expressions(plan, |expr, schema| Ok(with_groups(expr, schema)), |plan| Ok(Transformed::no(plan)))
    }
}

fn with_groups(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::WindowFunction(mut function) = expr else { return Transformed::no(expr) };
    let params = &mut function.params;
    let frame = &params.window_frame;
    let apart = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => !distance.is_null(),
        WindowFrameBound::CurrentRow => false,
    };
    let without_distance = params.order_by.first().is_some_and(|key| {
        key.expr.type_in(schema).is_ok_and(|of_key| {
            matches!(
                of_key,
                DataType::Duration(_)
                    | DataType::Interval(_)
                    | DataType::Time32(_)
                    | DataType::Time64(_)
                    | DataType::Struct(_)
                    | DataType::Map(..)
                    | DataType::Binary
                    | DataType::LargeBinary
                    | DataType::BinaryView
                    | DataType::FixedSizeBinary(_)
            )
        })
    });
    let range = frame.units == WindowFrameUnits::Range && !apart(&frame.start_bound) && !apart(&frame.end_bound);
    if !range || !without_distance {
        return Transformed::no(Expr::WindowFunction(function));
    }
    let (start, end) = (frame.start_bound.clone(), frame.end_bound.clone());
    params.window_frame = WindowFrame::new_bounds(WindowFrameUnits::Groups, start, end);
    Transformed::yes(Expr::WindowFunction(function))
}
