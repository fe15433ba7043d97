//! Facts about driver and service (`AdbcConnectionGetInfo`).

use std::collections::HashSet;
use std::sync::Arc;

use adbc_core::constants::ADBC_VERSION_1_1_0;
use adbc_core::error::{Error, Result, Status};
use adbc_core::options::InfoCode;
use adbc_core::schemas::GET_INFO_SCHEMA;
use arrow::array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UInt32Array, UnionArray, new_empty_array,
};
use arrow::datatypes::DataType;

/// A value of the result, whose type is a union.
enum Value {
    Text(&'static str),
    Flag(bool),
    Number(i64),
}

/// Returns the requested facts; all if none are named. Unknown codes are ignored.
///
/// # Errors
/// None in practice: errors of building a batch.
pub(crate) fn batch(codes: Option<HashSet<InfoCode>>) -> Result<RecordBatch> {
    let all = [
        (InfoCode::VendorName, Value::Text("savedsearch")),
        (InfoCode::VendorVersion, Value::Text(env!("CARGO_PKG_VERSION"))),
        (InfoCode::VendorArrowVersion, Value::Text(arrow::ARROW_VERSION)),
        (InfoCode::VendorSql, Value::Flag(true)),
        (InfoCode::VendorSubstrait, Value::Flag(false)),
        (InfoCode::DriverName, Value::Text("ADBC driver for savedsearch")),
        (InfoCode::DriverVersion, Value::Text(env!("CARGO_PKG_VERSION"))),
        (InfoCode::DriverArrowVersion, Value::Text(arrow::ARROW_VERSION)),
        (InfoCode::DriverAdbcVersion, Value::Number(i64::from(ADBC_VERSION_1_1_0))),
    ];
    let (mut names, mut types, mut offsets) = (Vec::<u32>::new(), Vec::<i8>::new(), Vec::<i32>::new());
    let (mut texts, mut flags, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for (code, value) in all.iter().filter(|(code, _)| codes.as_ref().is_none_or(|codes| codes.contains(code))) {
        names.push(code.into());
        let (kind, count) = match value {
            Value::Text(text) => {
                texts.push(*text);
                (0, texts.len())
            }
            Value::Flag(flag) => {
                flags.push(*flag);
                (1, flags.len())
            }
            Value::Number(number) => {
                numbers.push(*number);
                (2, numbers.len())
            }
        };
        types.push(kind);
        offsets.push(i32::try_from(count - 1).unwrap_or(i32::MAX));
    }
    let DataType::Union(fields, _) = GET_INFO_SCHEMA.field(1).data_type() else {
        return Err(Error::with_message_and_status("the info schema has no union", Status::Internal));
    };
    let mut children: Vec<ArrayRef> = fields.iter().map(|(_, field)| new_empty_array(field.data_type())).collect();
    children[0] = Arc::new(StringArray::from(texts));
    children[1] = Arc::new(BooleanArray::from(flags));
    children[2] = Arc::new(Int64Array::from(numbers));
    let values = UnionArray::try_new(fields.clone(), types.into(), Some(offsets.into()), children)?;
    Ok(RecordBatch::try_new(GET_INFO_SCHEMA.clone(), vec![Arc::new(UInt32Array::from(names)), Arc::new(values)])?)
}
