//! Static metadata that drivers request first: SqlInfo capabilities and XDBC types.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use arrow::array::RecordBatch;
use arrow_flight::error::FlightError;
use arrow_flight::sql::metadata::{
    SqlInfoData, SqlInfoDataBuilder, XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder,
};
use arrow_flight::sql::{
    CommandGetSqlInfo, CommandGetXdbcTypeInfo, Nullable, Searchable, SqlInfo, SqlNullOrdering,
    SqlSupportedCaseSensitivity, SqlSupportedTransaction, XdbcDataType, XdbcDatetimeSubcode,
};

/// Returns the requested SqlInfo values; all if none is named.
///
/// # Errors
/// INVALID_ARGUMENT for a long list of values: the builder makes an array for each.
pub(super) fn sql_info(command: CommandGetSqlInfo) -> Result<RecordBatch, FlightError> {
    /// Values that may be named.
    const MOST: usize = 1_000;
    if command.info.len() > MOST {
        return Err(FlightError::protocol(format!("too many SqlInfo values: name at most {MOST}, or none for all")));
    }
    let infos = INFOS.as_ref().map_err(|error| FlightError::protocol(error.clone()))?;
    command.into_builder(infos).build()
}

/// Returns the requested types; all if none is named.
///
/// # Errors
/// None in practice: errors of building a batch.
pub(super) fn type_info(command: CommandGetXdbcTypeInfo) -> Result<RecordBatch, FlightError> {
    let types = TYPES.as_ref().map_err(|error| FlightError::protocol(error.clone()))?;
    types.record_batch(command.data_type)
}

/// Bit mask of supported grammar levels: minimum and core (FlightSql.proto, SupportedSqlGrammar).
const GRAMMAR: i32 = 0b11;
/// Bit mask of GROUP BY support: also by unselected columns (FlightSql.proto, SqlSupportedGroupBy).
const GROUP_BY: i32 = 0b11;
/// Bit mask of supported subqueries: in comparisons, EXISTS, IN (FlightSql.proto, SqlSupportedSubqueries).
const SUBQUERIES: i32 = 0b111;
/// Bit mask of supported unions: UNION and UNION ALL (FlightSql.proto, SqlSupportedUnions).
const UNIONS: i32 = 0b11;
/// Bit mask of outer join support: limited and full; bit 0 would mean none (FlightSql.proto,
/// SqlOuterJoinsSupportLevel).
const OUTER_JOINS: i32 = 0b110;

/// Bit mask of supported ANSI 92 levels: entry (FlightSql.proto, SupportedAnsi92SqlGrammarLevel).
const ANSI92: i32 = 0b1;
/// Bit mask of result set types: forward-only (FlightSql.proto, SqlSupportedResultSetType).
const FORWARD_ONLY: i32 = 0b10;
/// Bit mask of isolation levels: none (FlightSql.proto, SqlTransactionIsolationLevel).
const NO_ISOLATION: i32 = 0b1;

static INFOS: LazyLock<Result<SqlInfoData, String>> = LazyLock::new(|| {
    let mut builder = SqlInfoDataBuilder::new();
    builder.append(SqlInfo::FlightSqlServerName, "savedsearch");
    builder.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    builder.append(SqlInfo::FlightSqlServerArrowVersion, arrow::ARROW_VERSION);
    builder.append(SqlInfo::FlightSqlServerReadOnly, true);
    builder.append(SqlInfo::FlightSqlServerSql, true);
    builder.append(SqlInfo::FlightSqlServerSubstrait, false);
    builder.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    builder.append(SqlInfo::FlightSqlServerCancel, true);
    builder.append(SqlInfo::FlightSqlServerBulkIngestion, true);
    builder.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, false);
    builder.append(SqlInfo::FlightSqlServerStatementTimeout, 0_i32);
    builder.append(SqlInfo::FlightSqlServerTransactionTimeout, 0_i32);
    builder.append(SqlInfo::SqlDdlCatalog, false);
    builder.append(SqlInfo::SqlDdlSchema, false);
    builder.append(SqlInfo::SqlDdlTable, true);
    builder.append(SqlInfo::SqlIdentifierCase, SqlSupportedCaseSensitivity::SqlCaseSensitivityLowercase as i32);
    builder.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    builder.append(
        SqlInfo::SqlQuotedIdentifierCase,
        SqlSupportedCaseSensitivity::SqlCaseSensitivityCaseInsensitive as i32,
    );
    builder.append(SqlInfo::SqlAllTablesAreSelectable, true);
    builder.append(SqlInfo::SqlNullOrdering, SqlNullOrdering::SqlNullsSortedAtEnd as i32);
    builder.append(SqlInfo::SqlKeywords, &["DURATION", "ILIKE", "LIMIT", "OFFSET", "QUALIFY"][..]);
    builder.append(
        SqlInfo::SqlNumericFunctions,
        &["ABS", "CEIL", "FLOOR", "POWER", "ROUND", "SIGNUM", "SQRT", "TRUNC"][..],
    );
    let texts =
        ["CONCAT", "LEFT", "LENGTH", "LOWER", "LTRIM", "POSITION", "REPLACE", "RIGHT", "RTRIM", "SUBSTR", "UPPER"];
    builder.append(SqlInfo::SqlStringFunctions, &texts[..]);
    builder.append(SqlInfo::SqlSystemFunctions, &["ARROW_TYPEOF", "COALESCE", "NULLIF", "VERSION"][..]);
    builder
        .append(SqlInfo::SqlDatetimeFunctions, &["CURRENT_DATE", "DATE_PART", "DATE_TRUNC", "NOW", "TO_TIMESTAMP"][..]);
    builder.append(SqlInfo::SqlSearchStringEscape, "\\");
    builder.append(SqlInfo::SqlExtraNameCharacters, "");
    builder.append(SqlInfo::SqlSupportsColumnAliasing, true);
    builder.append(SqlInfo::SqlNullPlusNullIsNull, true);
    builder.append(SqlInfo::SqlSupportsTableCorrelationNames, true);
    builder.append(SqlInfo::SqlSupportsDifferentTableCorrelationNames, false);
    builder.append(SqlInfo::SqlSupportsExpressionsInOrderBy, true);
    builder.append(SqlInfo::SqlSupportsOrderByUnrelated, true);
    builder.append(SqlInfo::SqlSupportedGroupBy, GROUP_BY);
    builder.append(SqlInfo::SqlSupportsLikeEscapeClause, true);
    builder.append(SqlInfo::SqlSupportsNonNullableColumns, true);
    builder.append(SqlInfo::SqlSupportedGrammar, GRAMMAR);
    builder.append(SqlInfo::SqlAnsi92SupportedLevel, ANSI92);
    builder.append(SqlInfo::SqlSupportsConvert, BTreeMap::<i32, Vec<i32>>::new());
    builder.append(SqlInfo::SqlSupportsIntegrityEnhancementFacility, false);
    builder.append(SqlInfo::SqlOuterJoinsSupportLevel, OUTER_JOINS);
    builder.append(SqlInfo::SqlSchemaTerm, "schema");
    builder.append(SqlInfo::SqlProcedureTerm, "procedure");
    builder.append(SqlInfo::SqlCatalogTerm, "catalog");
    builder.append(SqlInfo::SqlCatalogAtStart, true);
    builder.append(SqlInfo::SqlSchemasSupportedActions, 0_i32);
    builder.append(SqlInfo::SqlCatalogsSupportedActions, 0_i32);
    builder.append(SqlInfo::SqlSupportedPositionedCommands, 0_i32);
    builder.append(SqlInfo::SqlSelectForUpdateSupported, false);
    builder.append(SqlInfo::SqlStoredProceduresSupported, false);
    builder.append(SqlInfo::SqlSupportedSubqueries, SUBQUERIES);
    builder.append(SqlInfo::SqlCorrelatedSubqueriesSupported, true);
    builder.append(SqlInfo::SqlSupportedUnions, UNIONS);
    // 0 means no known limit.
    for unlimited in [
        SqlInfo::SqlMaxBinaryLiteralLength,
        SqlInfo::SqlMaxCharLiteralLength,
        SqlInfo::SqlMaxColumnNameLength,
        SqlInfo::SqlMaxColumnsInGroupBy,
        SqlInfo::SqlMaxColumnsInIndex,
        SqlInfo::SqlMaxColumnsInOrderBy,
        SqlInfo::SqlMaxColumnsInSelect,
        SqlInfo::SqlMaxColumnsInTable,
        SqlInfo::SqlMaxConnections,
        SqlInfo::SqlMaxCursorNameLength,
        SqlInfo::SqlMaxIndexLength,
        SqlInfo::SqlDbSchemaNameLength,
        SqlInfo::SqlMaxProcedureNameLength,
        SqlInfo::SqlMaxCatalogNameLength,
        SqlInfo::SqlMaxRowSize,
        SqlInfo::SqlMaxStatementLength,
        SqlInfo::SqlMaxStatements,
        SqlInfo::SqlMaxTableNameLength,
        SqlInfo::SqlMaxTablesInSelect,
        SqlInfo::SqlMaxUsernameLength,
    ] {
        builder.append(unlimited, 0_i64);
    }
    builder.append(SqlInfo::SqlMaxRowSizeIncludesBlobs, false);
    // Drivers read this as a 64-bit integer, contrary to the protocol.
    builder.append(SqlInfo::SqlDefaultTransactionIsolation, 0_i64);
    builder.append(SqlInfo::SqlTransactionsSupported, false);
    builder.append(SqlInfo::SqlSupportedTransactionsIsolationLevels, NO_ISOLATION);
    builder.append(SqlInfo::SqlDataDefinitionCausesTransactionCommit, false);
    builder.append(SqlInfo::SqlDataDefinitionsInTransactionsIgnored, false);
    builder.append(SqlInfo::SqlSupportedResultSetTypes, FORWARD_ONLY);
    builder.append(SqlInfo::SqlBatchUpdatesSupported, false);
    builder.append(SqlInfo::SqlSavepointsSupported, false);
    builder.append(SqlInfo::SqlNamedParametersSupported, false);
    builder.append(SqlInfo::SqlLocatorsUpdateCopy, false);
    builder.append(SqlInfo::SqlStoredFunctionsUsingCallSyntaxSupported, false);
    builder.build().map_err(|error| error.to_string())
});

static TYPES: LazyLock<Result<XdbcTypeInfoData, String>> = LazyLock::new(|| {
    let mut builder = XdbcTypeInfoDataBuilder::new();
    // Name, type, column size, radix, literals quoted.
    let plain = [
        ("boolean", XdbcDataType::XdbcBit, 1, None, false),
        ("tinyint", XdbcDataType::XdbcTinyint, 3, Some(10), false),
        ("smallint", XdbcDataType::XdbcSmallint, 5, Some(10), false),
        ("integer", XdbcDataType::XdbcInteger, 10, Some(10), false),
        ("bigint", XdbcDataType::XdbcBigint, 19, Some(10), false),
        ("real", XdbcDataType::XdbcReal, 24, Some(2), false),
        ("double", XdbcDataType::XdbcDouble, 53, Some(2), false),
        ("decimal", XdbcDataType::XdbcDecimal, 38, Some(10), false),
        ("varchar", XdbcDataType::XdbcVarchar, i32::MAX, None, true),
        ("varbinary", XdbcDataType::XdbcVarbinary, i32::MAX, None, true),
        ("date", XdbcDataType::XdbcDate, 10, None, true),
        ("time", XdbcDataType::XdbcTime, 15, None, true),
        ("timestamp", XdbcDataType::XdbcTimestamp, 26, None, true),
    ];
    for (name, data_type, size, radix, quoted) in plain {
        let datetime_subcode = match data_type {
            // The protocol has two names for the value 1; the library defines only this one.
            XdbcDataType::XdbcDate => Some(XdbcDatetimeSubcode::XdbcSubcodeYear),
            XdbcDataType::XdbcTime => Some(XdbcDatetimeSubcode::XdbcSubcodeTime),
            XdbcDataType::XdbcTimestamp => Some(XdbcDatetimeSubcode::XdbcSubcodeTimestamp),
            _ => None,
        };
        let sql_data_type = if datetime_subcode.is_some() { XdbcDataType::XdbcDatetime } else { data_type };
        let quote = quoted.then(|| "'".to_owned());
        builder.append(XdbcTypeInfo {
            type_name: name.to_owned(),
            data_type,
            column_size: Some(size),
            literal_prefix: quote.clone(),
            literal_suffix: quote,
            create_params: (name == "decimal").then(|| vec!["precision".to_owned(), "scale".to_owned()]),
            nullable: Nullable::NullabilityNullable,
            case_sensitive: name == "varchar",
            searchable: if name == "varchar" { Searchable::Full } else { Searchable::Basic },
            unsigned_attribute: radix.map(|_| false),
            fixed_prec_scale: false,
            auto_increment: radix.map(|_| false),
            local_type_name: Some(name.to_owned()),
            minimum_scale: (name == "decimal").then_some(0),
            maximum_scale: (name == "decimal").then_some(38),
            sql_data_type,
            datetime_subcode,
            num_prec_radix: radix,
            interval_precision: None,
        });
    }
    builder.build().map_err(|error| error.to_string())
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_question_about_abilities_means_all() {
        let all = sql_info(CommandGetSqlInfo { info: Vec::new() }).expect("all");
        assert!(all.num_rows() > 80, "{}", all.num_rows());
        let some = sql_info(CommandGetSqlInfo { info: vec![0, 2, 8, 504] }).expect("some");
        assert_eq!(some.num_rows(), 4);
        sql_info(CommandGetSqlInfo { info: vec![0; 1_001] }).expect_err("too many");
    }

    #[test]
    fn types_are_told_apart_by_their_number() {
        assert_eq!(type_info(CommandGetXdbcTypeInfo { data_type: None }).expect("all").num_rows(), 13);
        let timestamps = CommandGetXdbcTypeInfo { data_type: Some(XdbcDataType::XdbcTimestamp as i32) };
        assert_eq!(type_info(timestamps).expect("one").num_rows(), 1);
    }
}
