//! The methods of a function that a wrapper around another one does not change.

use datafusion::logical_expr::preimage::PreimageResult;

/// The arguments for which a function has a result, unless a bound of them cannot be represented. The engine compares with NULL then:
/// `extract(year FROM t) < 3000` is NULL for times of nanoseconds, which end in 2262.
pub(crate) fn known_preimage(preimage: PreimageResult) -> PreimageResult {
    match preimage {
        PreimageResult::Range { interval, .. } if interval.lower().is_null() || interval.upper().is_null() => {
            PreimageResult::None
        }
        known => known,
    }
}

/// Methods of [`ScalarUDFImpl`](datafusion::logical_expr::ScalarUDFImpl) that call those of `self.function()`: all but
/// `with_updated_config`, `return_field_from_args`, `invoke_with_args`, `simplify` and `output_ordering`.
macro_rules! wrapped_methods {
    () => {
        fn name(&self) -> &str {
            self.function().name()
        }

        fn aliases(&self) -> &[String] {
            self.function().aliases()
        }

        fn display_name(&self, args: &[Expr]) -> Result<String> {
            #[expect(deprecated, reason = "a wrapper delegates every method of the trait")]
            self.function().display_name(args)
        }

        fn schema_name(&self, args: &[Expr]) -> Result<String> {
            self.function().schema_name(args)
        }

        fn signature(&self) -> &Signature {
            self.function().signature()
        }

        fn return_type(&self, types: &[DataType]) -> Result<DataType> {
            self.function().return_type(types)
        }

        fn is_nullable(&self, args: &[Expr], schema: &dyn datafusion::common::ExprSchema) -> bool {
            #[expect(deprecated, reason = "a wrapper delegates every method of the trait")]
            self.function().is_nullable(args, schema)
        }

        fn is_strict(&self) -> bool {
            self.function().is_strict()
        }

        fn preimage(&self, args: &[Expr], literal: &Expr, context: &SimplifyContext) -> Result<PreimageResult> {
            Ok(crate::functions::known_preimage(self.function().preimage(args, literal, context)?))
        }

        fn short_circuits(&self) -> bool {
            self.function().short_circuits()
        }

        fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
            self.function().conditional_arguments(args)
        }

        fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
            self.function().evaluate_bounds(input)
        }

        fn propagate_constraints(&self, interval: &Interval, inputs: &[&Interval]) -> Result<Option<Vec<Interval>>> {
            self.function().propagate_constraints(interval, inputs)
        }

        fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
            self.function().preserves_lex_ordering(inputs)
        }

        fn strictly_order_preserving(&self, inputs: &[ExprProperties]) -> Result<bool> {
            self.function().strictly_order_preserving(inputs)
        }

        fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
            self.function().coerce_types(types)
        }

        fn struct_field_mapping(&self, literals: &[Option<ScalarValue>]) -> Option<StructFieldMapping> {
            self.function().struct_field_mapping(literals)
        }

        fn documentation(&self) -> Option<&Documentation> {
            self.function().documentation()
        }

        fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
            self.function().placement(args)
        }
    };
}

/// Methods of [`AggregateUDFImpl`](datafusion::logical_expr::AggregateUDFImpl) that call those of `self.function()`: all but those that
/// return accumulators, and those of [`wrapped_order_methods`].
macro_rules! wrapped_aggregate_methods {
    () => {
        fn name(&self) -> &str {
            self.function().name()
        }

        fn aliases(&self) -> &[String] {
            self.function().aliases()
        }

        fn schema_name(&self, params: &datafusion::logical_expr::expr::AggregateFunctionParams) -> Result<String> {
            self.function().schema_name(params)
        }

        fn human_display(&self, params: &datafusion::logical_expr::expr::AggregateFunctionParams) -> Result<String> {
            self.function().human_display(params)
        }

        fn window_function_schema_name(
            &self,
            params: &datafusion::logical_expr::expr::WindowFunctionParams,
        ) -> Result<String> {
            self.function().window_function_schema_name(params)
        }

        fn display_name(&self, params: &datafusion::logical_expr::expr::AggregateFunctionParams) -> Result<String> {
            self.function().display_name(params)
        }

        fn window_function_display_name(
            &self,
            params: &datafusion::logical_expr::expr::WindowFunctionParams,
        ) -> Result<String> {
            self.function().window_function_display_name(params)
        }

        fn signature(&self) -> &datafusion::logical_expr::Signature {
            self.function().signature()
        }

        fn return_type(&self, types: &[DataType]) -> Result<DataType> {
            self.function().return_type(types)
        }

        fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
            self.function().return_field(fields)
        }

        fn is_nullable(&self) -> bool {
            self.function().is_nullable()
        }

        fn state_fields(&self, args: datafusion::logical_expr::function::StateFieldsArgs) -> Result<Vec<FieldRef>> {
            self.function().state_fields(args)
        }

        fn simplify(&self) -> Option<datafusion::logical_expr::function::AggregateFunctionSimplification> {
            self.function().simplify()
        }

        fn simplify_expr_op_literal(
            &self,
            function: &datafusion::logical_expr::expr::AggregateFunction,
            arg: &datafusion::logical_expr::Expr,
            op: datafusion::logical_expr::Operator,
            literal: &datafusion::logical_expr::Expr,
            arg_is_left: bool,
        ) -> Result<Option<datafusion::logical_expr::Expr>> {
            self.function().simplify_expr_op_literal(function, arg, op, literal, arg_is_left)
        }

        fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
            self.function().coerce_types(types)
        }

        fn is_descending(&self) -> Option<bool> {
            self.function().is_descending()
        }

        fn value_from_stats(
            &self,
            args: &datafusion::logical_expr::StatisticsArgs,
        ) -> Option<datafusion::common::ScalarValue> {
            self.function().value_from_stats(args)
        }

        fn default_value(&self, data_type: &DataType) -> Result<datafusion::common::ScalarValue> {
            self.function().default_value(data_type)
        }

        fn supports_null_handling_clause(&self) -> bool {
            self.function().supports_null_handling_clause()
        }

        fn supports_within_group_clause(&self) -> bool {
            self.function().supports_within_group_clause()
        }

        fn documentation(&self) -> Option<&datafusion::logical_expr::Documentation> {
            self.function().documentation()
        }

        fn set_monotonicity(&self, data_type: &DataType) -> datafusion::logical_expr::SetMonotonicity {
            self.function().set_monotonicity(data_type)
        }
    };
}

/// Methods of an aggregate function that requires, or profits from, the order of its input as `self.function()` does. The argument
/// wraps a function.
macro_rules! wrapped_order_methods {
    ($wrap:path) => {
        fn reverse_expr(&self) -> datafusion::logical_expr::ReversedUDAF {
            use datafusion::logical_expr::ReversedUDAF;
            match self.function().reverse_expr() {
                ReversedUDAF::Reversed(function) => ReversedUDAF::Reversed(Arc::new($wrap(&function))),
                other => other,
            }
        }

        fn order_sensitivity(&self) -> datafusion::logical_expr::utils::AggregateOrderSensitivity {
            self.function().order_sensitivity()
        }

        fn with_beneficial_ordering(self: Arc<Self>, ordering: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
            let ordered = Arc::clone(self.function()).with_beneficial_ordering(ordering)?;
            Ok(ordered.map(|ordered| Arc::clone($wrap(&AggregateUDF::new_from_shared_impl(ordered)).inner())))
        }
    };
}

pub(crate) use wrapped_aggregate_methods;
pub(crate) use wrapped_methods;
pub(crate) use wrapped_order_methods;
