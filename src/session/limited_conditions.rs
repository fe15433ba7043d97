//! Conditions of a plan in forms that end with their statement, in sessions that run statements of others.
//!
//! ```text
//! optimized plan ─▶ LIKE and ~ as functions with limits ─▶ conditions of joins that can be stopped ─▶ physical plan
//! ```
//!
//! A join evaluates its condition for each pair of rows with equal keys, and does not pause in between. If no pair satisfies it,
//! there is not even an output, and a statement that nobody waits for any longer would compute for hours. So the condition is the
//! argument of a function that returns it as it is, and fails if the statement was ended.
//!
//! Invariant: no rule of the optimizer sees these forms. Rules run several times, and look into conditions.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::{
    ColumnarValue, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use futures::future::BoxFuture;

use super::bounded::with_functions;
use crate::boxed_future::boxed_futures;
use crate::memory;

const NAME: &str = "savedsearch_stoppable";

/// Planner of physical plans, which gives conditions these forms first.
#[derive(Debug)]
pub(super) struct LimitedConditions;

impl QueryPlanner for LimitedConditions {
    boxed_futures! {
        fn create_physical_plan<'this, 'plan, 'state>(
            &'this self,
            plan: &'plan LogicalPlan,
            state: &'state dyn Session,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            physical(plan, state)
        }
    }
}

fn physical<'a>(plan: &'a LogicalPlan, state: &'a dyn Session) -> BoxFuture<'a, Result<Arc<dyn ExecutionPlan>>> {
    Box::pin(async move {
        // Sessions that are not for others do not have the function.
        let Some(stoppable) = state.scalar_functions().get(NAME) else {
            return DefaultPhysicalPlanner::default().create_physical_plan(plan, state).await;
        };
        let limited = plan.clone().transform_up_with_subqueries(|node| {
            with_functions(node)?.transform_data(|node| Ok(with_stoppable(node, stoppable)))
        });
        DefaultPhysicalPlanner::default().create_physical_plan(&limited.data()?, state).await
    })
}

/// The operator with a condition that can be stopped.
fn with_stoppable(node: LogicalPlan, stoppable: &ScalarUDF) -> Transformed<LogicalPlan> {
    match node {
        LogicalPlan::Join(mut join) if join.filter.is_some() => {
            join.filter = join.filter.map(|filter| stoppable.call(vec![filter]));
            Transformed::yes(LogicalPlan::Join(join))
        }
        other => Transformed::no(other),
    }
}

/// The function that sessions for others have. Workers find it by its name.
pub(super) fn stoppable() -> ScalarUDF {
    ScalarUDF::new_from_impl(Stoppable { signature: Signature::any(1, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Stoppable {
    signature: Signature,
}

impl ScalarUDFImpl for Stoppable {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Boolean))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        memory::check()?;
        Ok(args.args.swap_remove(0))
    }
}
