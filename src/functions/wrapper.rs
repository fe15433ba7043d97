//! The methods of a function that a wrapper around another one does not change.

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
            self.function().preimage(args, literal, context)
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

pub(crate) use wrapped_methods;
