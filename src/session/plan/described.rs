//! DESCRIBE with the names that types have in SQL. The engine prints its own, such as `Utf8`.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{EmptyRelation, LogicalPlan, LogicalPlanBuilder, col, lit};

/// Returns the plan of DESCRIBE with the SQL names of types; other plans as they are.
///
/// # Errors
/// None in practice: errors of the plan's builder.
pub(in crate::session) fn described(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::DescribeTable(describe) = &plan else { return Ok(plan) };
    let rows = describe.schema.fields().iter().map(|field| {
        let nullable = if field.is_nullable() { "YES" } else { "NO" };
        vec![lit(field.name().as_str()), lit(type_name(field.data_type())), lit(nullable)]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        let schema = Arc::clone(&describe.output_schema);
        return Ok(LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema }));
    }
    let names = describe.output_schema.fields().iter().zip(["column1", "column2", "column3"]);
    let names: Vec<_> = names.map(|(field, value)| col(value).alias(field.name().as_str())).collect();
    LogicalPlanBuilder::values(rows)?.project(names)?.build()
}

/// SQL name of a type.
pub(crate) fn type_name(kind: &DataType) -> String {
    let name = match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        DataType::Boolean => "boolean",
        DataType::Int16 => "smallint",
        DataType::Int32 => "integer",
        DataType::Int64 => "bigint",
        DataType::Float32 => "real",
        DataType::Float64 => "double",
        DataType::Date32 => "date",
        DataType::Time64(_) => "time",
        DataType::Timestamp(_, None) => "timestamp",
        DataType::Timestamp(_, Some(_)) => "timestamptz",
        DataType::Interval(_) => "interval",
        DataType::Decimal128(digits, scale) => return format!("decimal({digits}, {scale})"),
        DataType::List(field) => return format!("{}[]", type_name(field.data_type())),
        other => return other.to_string(),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::AsArray;
    use arrow::datatypes::Schema;
    use datafusion::datasource::empty::EmptyTable;
    use datafusion::prelude::SessionContext;

    #[tokio::test]
    async fn types_have_their_names_in_sql() {
        let statement = "DESCRIBE (SELECT 'a' AS t, 1 AS n, 0.5::double AS x, true AS b, date '2026-01-01' AS d, \
                         ['a'] AS l, 1::decimal(9, 2) AS m, \
                         arrow_cast(0, 'Timestamp(Microsecond, Some(\"UTC\"))') AS u)";
        let frame = crate::session::sql(&SessionContext::new(), statement).await.expect("a plan");
        let batches = frame.collect().await.expect("rows");
        let schema = batches[0].schema();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["column_name", "data_type", "is_nullable"]);
        let texts = |at: usize| -> Vec<String> {
            let columns = batches.iter().flat_map(|batch| batch.column(at).as_string::<i32>().iter().flatten());
            columns.map(str::to_owned).collect()
        };
        assert_eq!(texts(0), ["t", "n", "x", "b", "d", "l", "m", "u"]);
        let expected = ["text", "bigint", "double", "boolean", "date", "text[]", "decimal(9, 2)", "timestamptz"];
        assert_eq!(texts(1), expected);
        assert!(texts(2).iter().all(|nullable| ["YES", "NO"].contains(&nullable.as_str())));
    }

    #[tokio::test]
    async fn a_table_without_columns_has_no_rows() {
        let context = SessionContext::new();
        let none = Arc::new(EmptyTable::new(Arc::new(Schema::empty())));
        context.register_table("nothing", none).expect("a table");
        let frame = crate::session::sql(&context, "DESCRIBE nothing").await.expect("a plan");
        assert_eq!(frame.logical_plan().max_rows(), Some(0));
        let names: Vec<_> = frame.schema().fields().iter().map(|field| field.name().to_owned()).collect();
        assert_eq!(names, ["column_name", "data_type", "is_nullable"]);
        assert_eq!(frame.count().await.expect("rows"), 0);
    }
}
