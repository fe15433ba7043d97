//! `match(text, query)`: true if a text has the words of a query, such as `match(text, 'recall OR "battery fire" -test')`.
//! `match_score(text, query)`: how well the text matches, zero if it does not.
//!
//! Both are NULL if an argument is. The module `words` has the rules. A query that is a literal is parsed while the statement is
//! planned, so that a mistake in it costs no request.

use std::iter::repeat_n;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Float64Array};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
#[cfg(feature = "store")]
use datafusion::physical_expr::expressions::{Column, Literal};
#[cfg(feature = "store")]
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use crate::error;
use crate::words::{MATCH, MATCH_SCORE, Query, Words};

/// A function of a text and a query for words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OfWords {
    /// The predicate.
    Match,
    /// The score.
    Score,
}

impl OfWords {
    /// The function.
    pub(crate) fn udf(self) -> Arc<ScalarUDF> {
        let signature = Signature::string(2, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Function { of: self, signature }))
    }
}

/// The column and the query of a condition `match(column, 'query')`; `None` for all other conditions.
#[cfg(feature = "store")]
pub(crate) fn match_of(condition: &Arc<dyn PhysicalExpr>) -> Option<(&Column, Query)> {
    let call = condition.downcast_ref::<ScalarFunctionExpr>()?;
    let function = call.fun().inner().downcast_ref::<Function>()?;
    let [text, query] = call.args() else { return None };
    let query = query.downcast_ref::<Literal>()?.value().try_as_str().flatten()?;
    let column = text.downcast_ref::<Column>().filter(|_| function.of == OfWords::Match)?;
    Some((column, Query::parse(query).ok()?))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    of: OfWords,
    signature: Signature,
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &'static str {
        match self.of {
            OfWords::Match => MATCH,
            OfWords::Score => MATCH_SCORE,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(match self.of {
            OfWords::Match => DataType::Boolean,
            OfWords::Score => DataType::Float64,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        if let [_, Some(query)] = args.scalar_arguments
            && let Some(query) = query.try_as_str().flatten()
        {
            Query::parse(query)?;
        }
        super::field_of(self, &args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let same = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if same { 1 } else { args.number_rows };
        let values: ArrayRef = match self.of {
            OfWords::Match => Arc::new(BooleanArray::from(evaluated(&args.args, rows, Query::matches)?)),
            OfWords::Score => Arc::new(Float64Array::from(evaluated(&args.args, rows, Query::score)?)),
        };
        Ok(match same {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?),
            false => ColumnarValue::Array(values),
        })
    }
}

/// Evaluates queries for the texts of some rows.
fn evaluated<T>(
    args: &[ColumnarValue],
    rows: usize,
    of: impl Fn(&Query, &Words) -> error::Result<T>,
) -> Result<Vec<Option<T>>> {
    let [texts, queries] = args else { return exec_err!("{MATCH} and {MATCH_SCORE} take a text and a query") };
    let mut values = Vec::with_capacity(rows);
    let mut words = Words::default();
    let mut last: Option<(&str, Query)> = None;
    for (text, query) in strings(texts, rows)?.zip(strings(queries, rows)?) {
        let (Some(text), Some(query)) = (text, query) else {
            values.push(None);
            continue;
        };
        let parsed = match last.take() {
            Some((same, parsed)) if same == query => parsed,
            _ => Query::parse(query)?,
        };
        words.read(text)?;
        values.push(Some(of(&parsed, &words)?));
        last = Some((query, parsed));
    }
    Ok(values)
}

/// The strings of an argument, one per row.
fn strings(argument: &ColumnarValue, rows: usize) -> Result<Box<dyn Iterator<Item = Option<&str>> + '_>> {
    let array = match argument {
        ColumnarValue::Scalar(value) => return Ok(Box::new(repeat_n(value.try_as_str().flatten(), rows))),
        ColumnarValue::Array(array) => array,
    };
    Ok(match array.data_type() {
        DataType::Utf8 => Box::new(array.as_string::<i32>().iter()),
        DataType::LargeUtf8 => Box::new(array.as_string::<i64>().iter()),
        DataType::Utf8View => Box::new(array.as_string_view().iter()),
        other => return exec_err!("{MATCH} and {MATCH_SCORE} take a text and a query, got {other}"),
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{LargeStringArray, StringArray, StringViewArray};
    use arrow::datatypes::Field;
    use datafusion::config::ConfigOptions;

    use super::*;
    use crate::error::{Error, ErrorKind};

    fn call(of: OfWords, args: Vec<ColumnarValue>, rows: usize) -> Result<ColumnarValue> {
        let kind = if of == OfWords::Match { DataType::Boolean } else { DataType::Float64 };
        let arg_fields = args.iter().map(|arg| Arc::new(Field::new("", arg.data_type(), true))).collect();
        of.udf().invoke_with_args(ScalarFunctionArgs {
            args,
            arg_fields,
            number_rows: rows,
            return_field: Arc::new(Field::new("", kind, true)),
            config_options: Arc::new(ConfigOptions::default()),
        })
    }

    #[test]
    fn each_row_is_compared_with_its_query() {
        let texts = vec![Some("A battery fire."), Some("No fire"), None, Some("Recall of batteries")];
        let queries = vec![Some("\"battery fire\""), None, Some("fire"), Some("fire OR batter*")];
        let right = vec![Some(true), None, None, Some(true)];
        let arrays: [(ArrayRef, ArrayRef); 3] = [
            (Arc::new(StringArray::from(texts.clone())), Arc::new(StringArray::from(queries.clone()))),
            (Arc::new(LargeStringArray::from(texts.clone())), Arc::new(LargeStringArray::from(queries.clone()))),
            (Arc::new(StringViewArray::from(texts.clone())), Arc::new(StringViewArray::from(queries))),
        ];
        for (texts, queries) in arrays {
            let args = vec![ColumnarValue::Array(Arc::clone(&texts)), ColumnarValue::Array(queries)];
            let found = call(OfWords::Match, args, 4).and_then(|found| found.into_array(4)).expect("values");
            assert_eq!(found.as_boolean().iter().collect::<Vec<_>>(), right);
            let args = vec![ColumnarValue::Array(texts), ColumnarValue::Scalar(ScalarValue::from("fire"))];
            let scores = call(OfWords::Score, args, 4).and_then(|found| found.into_array(4)).expect("values");
            let scores: Vec<Option<bool>> = scores
                .as_primitive::<arrow::datatypes::Float64Type>()
                .iter()
                .map(|score| score.map(|score| score > 0.0))
                .collect();
            assert_eq!(scores, [Some(true), Some(true), None, Some(false)]);
        }
    }

    #[test]
    fn a_wrong_query_is_an_error_of_the_query() {
        let text = |text: &str| ColumnarValue::Scalar(ScalarValue::from(text));
        let refused = call(OfWords::Match, vec![text("a"), text("a OR")], 1).expect_err("a query without an end");
        let refused = Error::find(&refused).expect("an error of this crate");
        assert_eq!(refused.kind(), ErrorKind::Query);
        assert!(refused.to_string().contains("at character 5"), "{refused}");
    }
}
