//! `postgres_json(value)`: a value as JSON, which clients receive with that type.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use crate::functions::PROTOCOL_TYPE;
use crate::postgres::types::json;

/// See the module's documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Json {
    signature: Signature,
}

impl Json {
    pub(super) fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Json {
    fn name(&self) -> &str {
        "postgres_json"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the field has the type")
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [_] = arguments.arg_fields else { return plan_err!("to_json takes one value") };
        let marked = HashMap::from([(PROTOCOL_TYPE.to_owned(), "json".to_owned())]);
        Ok(Arc::new(Field::new(self.name(), DataType::Utf8, true).with_metadata(marked)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = arguments.args.as_slice() else { return plan_err!("to_json takes one value") };
        let constant = matches!(value, ColumnarValue::Scalar(_));
        let texts = json(&value.to_array(if constant { 1 } else { arguments.number_rows })?)?;
        match constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&texts, 0)?)),
            false => Ok(ColumnarValue::Array(texts)),
        }
    }
}
