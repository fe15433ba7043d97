//! `+`, `-`, `*` and the unary minus of integers, with an error for results that do not fit their type. The engine's wrap around.

use std::sync::{Arc, LazyLock};

use arrow::array::ArrayRef;
use arrow::compute::kernels::numeric::{add, mul, neg, sub};
use arrow::datatypes::{DataType, FieldRef};
use arrow::error::ArrowError;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;

use crate::error::{Error, ErrorKind};

/// An operation on integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Negate,
}

/// The function of an operation. Its arguments have the type of the result.
pub(crate) fn checked_arithmetic(operation: Arithmetic) -> Arc<ScalarUDF> {
    static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 4]> = LazyLock::new(|| {
        [Arithmetic::Add, Arithmetic::Subtract, Arithmetic::Multiply, Arithmetic::Negate]
            .map(|operation| Arc::new(ScalarUDF::new_from_impl(Checked::new(operation))))
    });
    Arc::clone(&FUNCTIONS[operation as usize])
}

/// True for the function of an operation.
pub(super) fn is_checked(function: &ScalarUDF) -> bool {
    let operations = [Arithmetic::Add, Arithmetic::Subtract, Arithmetic::Multiply, Arithmetic::Negate];
    operations.into_iter().any(|operation| operation.name() == function.name())
}

impl Arithmetic {
    fn name(self) -> &'static str {
        match self {
            Self::Add => "checked_add",
            Self::Subtract => "checked_subtract",
            Self::Multiply => "checked_multiply",
            Self::Negate => "checked_negate",
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operation: Arithmetic,
    signature: Signature,
}

impl Checked {
    fn new(operation: Arithmetic) -> Self {
        let arguments = if operation == Arithmetic::Negate { 1 } else { 2 };
        Self { operation, signature: Signature::any(arguments, Volatility::Immutable) }
    }

    fn symbol(&self) -> &'static str {
        match self.operation {
            Arithmetic::Add => "+",
            Arithmetic::Subtract | Arithmetic::Negate => "-",
            Arithmetic::Multiply => "*",
        }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &'static str {
        self.operation.name()
    }

    // Displayed like the operator, since names of results are derived from it.
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        self.schema_name(args)
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(match args {
            [left, right] => format!("{} {} {}", left.schema_name(), self.symbol(), right.schema_name()),
            [operand] => format!("(- {})", operand.schema_name()),
            _ => self.name().to_owned(),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [only] if only.is_integer() => Ok(only.clone()),
            [left, right] if left == right && left.is_integer() => Ok(left.clone()),
            _ => exec_err!("{} expects integers of one type", self.name()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        super::field_of(self, &args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let result = match (self.operation, args.args.as_slice()) {
            (Arithmetic::Add, [left, right]) => apply(left, right, add),
            (Arithmetic::Subtract, [left, right]) => apply(left, right, sub),
            (Arithmetic::Multiply, [left, right]) => apply(left, right, mul),
            (Arithmetic::Negate, [operand]) => negated(operand),
            _ => return exec_err!("wrong number of arguments of {}", self.name()),
        };
        result.map_err(|error| match error.find_root() {
            datafusion::error::DataFusionError::ArrowError(arrow, _)
                if matches!(**arrow, ArrowError::ArithmeticOverflow(_)) =>
            {
                overflow(&arrow.to_string()).into()
            }
            _ => error,
        })
    }
}

fn negated(operand: &ColumnarValue) -> Result<ColumnarValue> {
    let negated: ArrayRef = neg(&operand.to_array(1)?)?;
    Ok(match operand {
        ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&negated, 0)?),
        ColumnarValue::Array(_) => ColumnarValue::Array(negated),
    })
}

/// First words of the error of an integer that does not fit its type.
pub(crate) const OUT_OF_RANGE: &str = "integer out of range";

/// The error of an integer that does not fit its type.
pub(super) fn overflow(happened: &str) -> Error {
    let operation = happened.rsplit_once("happened on: ").map_or(happened, |(_, operation)| operation);
    let message = format!("{OUT_OF_RANGE}: {operation}");
    Error::new(ErrorKind::Query, message)
        .advice("cast to a larger type before computing: BIGINT, DECIMAL(38, 0) or DOUBLE")
}
