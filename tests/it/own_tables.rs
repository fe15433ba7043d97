//! Tables and functions of an embedder, served beside the tables of a connection.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::DataType;
use arrow_flight::sql::CommandGetTables;
use datafusion_saved_search::datafusion::catalog::{
    CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider, TableProvider,
};
use datafusion_saved_search::datafusion::datasource::MemTable;
use datafusion_saved_search::datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion_saved_search::datafusion::prelude::SessionContext;
use datafusion_saved_search::host::OwnTables;
use datafusion_saved_search::postgres::{PostgresServer, PostgresSpec};
use datafusion_saved_search::simulator::Settings;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use crate::flight::{Served, all_rows, told};
use crate::support::{BIG, corpus, each_async, rows};

fn brands() -> Arc<dyn TableProvider> {
    let aids: ArrayRef = Arc::new(StringArray::from(vec![BIG, "none"]));
    let names: ArrayRef = Arc::new(StringArray::from(vec!["ours", "theirs"]));
    let batch = RecordBatch::try_from_iter([("aid", aids), ("brand", names)]).unwrap();
    Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap())
}

/// A catalog that all sessions share.
fn own() -> Arc<dyn CatalogProvider> {
    let (catalog, schema) = (MemoryCatalogProvider::new(), MemorySchemaProvider::new());
    schema.register_table("brands".to_owned(), brands()).unwrap();
    catalog.register_schema("public", Arc::new(schema)).unwrap();
    Arc::new(catalog)
}

/// A server with a table, a catalog and a function of its embedder.
async fn served() -> Served {
    let (table, catalog) = (brands(), own());
    let same = Arc::new(|arguments: &[ColumnarValue]| Ok(arguments[0].clone()));
    let same = create_udf("same", vec![DataType::Utf8], DataType::Utf8, Volatility::Immutable, same);
    let tables = OwnTables::new(move |context: &SessionContext, _user: &str| {
        context.register_table("brands", Arc::clone(&table))?;
        context.register_catalog("own", Arc::clone(&catalog));
        context.register_udf(same.clone());
        Ok(())
    });
    Served::with(corpus(), Settings::default(), |spec| spec.host.tables = tables).await
}

#[tokio::test(flavor = "multi_thread")]
async fn flight_sql_lists_the_tables_of_an_embedder_and_joins_them() {
    let served = served().await;
    let mut client = served.client().await;
    let named =
        CommandGetTables { table_name_filter_pattern: Some("brands".to_owned()), ..CommandGetTables::default() };
    let listed = rows(&[told(&mut client, named).await]);
    assert_eq!(listed, [["own", "public", "brands", "TABLE"], ["savedsearch", "v4", "brands", "TABLE"]]);
    let joined = "SELECT b.brand, count(*) > 0 FROM brands b JOIN mentions m ON m.aid = b.aid \
                  WHERE same(b.brand) = 'ours' GROUP BY 1";
    assert_eq!(all_rows(&mut client, joined).await, [["ours", "true"]]);
}

/// The first value of a result.
async fn value(client: &Client, sql: &str) -> Option<String> {
    let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {:?}", error.as_db_error()));
    messages.into_iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_postgresql_find_the_tables_of_an_embedder_and_cannot_change_them() {
    let served = served().await;
    let spec = PostgresSpec { listen: "127.0.0.1:0".parse().unwrap(), tls: None, insecure: false };
    let server = PostgresServer::start(spec, served.server.host()).await.unwrap();
    let mut config = Config::new();
    config.host("127.0.0.1").port(server.address().port()).user("me").dbname("savedsearch");
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    let cases = [
        ("SELECT table_type FROM information_schema.tables WHERE table_name = 'brands'", "BASE TABLE"),
        ("SELECT relkind FROM pg_catalog.pg_class WHERE relname = 'brands'", "r"),
        ("SELECT brand FROM brands WHERE aid = 'none'", "theirs"),
        ("SELECT brand FROM own.public.brands WHERE aid = 'none'", "theirs"),
    ];
    each_async(cases, async |(sql, expected)| {
        assert_eq!(value(&client, sql).await.as_deref(), Some(expected), "{sql}");
    })
    .await;
    let refused = [
        "DROP TABLE brands",
        "INSERT INTO brands VALUES ('1', '2')",
        "CREATE OR REPLACE TABLE brands AS SELECT 1 AS a",
        "CREATE TABLE own.public.mine AS SELECT 1 AS a",
    ];
    each_async(refused, async |sql| {
        let Err(error) = client.simple_query(sql).await else { panic!("{sql}") };
        let message = error.as_db_error().map(|error| error.message().to_owned()).unwrap_or_default();
        assert!(message.contains("read-only"), "{sql}: {message}");
    })
    .await;
    assert_eq!(value(&client, "SELECT count(*) FROM brands").await.as_deref(), Some("2"));
}
