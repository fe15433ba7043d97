//! Resources: the tables, the budget, the profile and pages of the documentation. They need no query.

use std::fmt::Write;
use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, collect};
use rmcp::model::{ReadResourceResponse, ReadResourceResult, Resource, ResourceContents};

use super::McpLimits;
use super::text::table;
use super::tools::{REQUESTS, ROWS};
use crate::error::{describe as describe_error, one_line, shortened};
use crate::host::own_tables;
use crate::host::sessions::Session;
use crate::numbers::{counted, grouped};
use crate::wording::{period_in_words, schema};

/// Pages of the documentation: name, title, text.
const PAGES: [(&str, &str, &str); 4] = [
    ("tables", "Tables and columns", include_str!("../../docs/tables.md")),
    ("costs", "What a query costs", include_str!("../../docs/costs.md")),
    ("guarantees", "What is guaranteed", include_str!("../../docs/guarantees.md")),
    ("mcp", "Use by agents", include_str!("../../docs/mcp.md")),
];
const PAGE: &str = "savedsearch://docs/";
const PROFILE: &str = "savedsearch://profile";
/// Tables of an embedder that are listed by name.
const OWN: usize = 100;

/// The tables, what their rows are, and the requests that reading them costs.
pub(super) async fn list_tables(session: &Session) -> Result<String, String> {
    let tables = schema::all(&session.context).await.map_err(|error| describe_error(&error))?;
    let mut text = table(&tables).map_err(|error| one_line(&error.to_string()))?;
    if let Some(connection) = session.connections().first() {
        let _ = write!(
            text,
            "\nWithout a time filter, a query reads {}. `describe` has the columns of a table.\n",
            period_in_words(&connection.profile().window.default)
        );
    }
    let own = own_tables::in_other_catalogs(&session.context).await.map_err(|error| describe_error(&error))?;
    let mut others = session.context.catalog_names();
    let default = session.context.state().config_options().catalog.default_catalog.clone();
    others.retain(|name| *name != default && own.iter().all(|[catalog, ..]| catalog != name));
    if !others.is_empty() {
        others.sort();
        let first = &others[0];
        let _ = writeln!(
            text,
            "Other connections, with tables of the same names: {}. Write {first}.v4.mentions, for example.",
            others.join(", ")
        );
    }
    if !own.is_empty() {
        let names: Vec<String> = own.iter().take(OWN).map(|names| names.join(".")).collect();
        let more = if own.len() > OWN { ", …" } else { "" };
        let _ = writeln!(text, "Tables of this server: {}{more}.", names.join(", "));
    }
    Ok(text)
}

/// The columns of a table, and notes about it.
pub(super) async fn describe(session: &Session, name: &str) -> Result<String, String> {
    let found = session.context.table_provider(name).await;
    let Ok(provider) = found else {
        return Err(shortened(format!("unknown table `{}`; list_tables shows the tables", one_line(name))));
    };
    let (columns, lines) = schema::one(&provider).map_err(|error| describe_error(&error))?;
    let mut text = table(&columns).map_err(|error| one_line(&error.to_string()))?;
    if !lines.is_empty() {
        let _ = write!(text, "\n{}\n", lines.join("\n"));
    }
    Ok(text)
}

/// The limits of the key and of this server.
pub(super) async fn budget(session: &Session, limits: &McpLimits) -> Result<String, String> {
    let rows = async {
        let rows = session.context.sql("SELECT * FROM system.budget").await?;
        let schema = Arc::new(rows.schema().as_arrow().clone());
        let task = Arc::new(rows.task_ctx());
        let plan = rows.create_physical_plan().await?;
        gathered(plan, task).await.map(|batches| (schema, batches))
    };
    let (schema, batches) = rows.await.map_err(|error| describe_error(&error))?;
    let batch = arrow::compute::concat_batches(&schema, &batches).map_err(|error| one_line(&error.to_string()))?;
    let mut text = match batch.num_rows() {
        0 => "No limit of the key is known: the profile declares none, and the service has reported none.\n".to_owned(),
        _ => table(&batch).map_err(|error| one_line(&error.to_string()))?,
    };
    let sent: u64 = session
        .connections()
        .iter()
        .map(|connection| connection.client().log().requests.load(std::sync::atomic::Ordering::Relaxed))
        .sum();
    let McpLimits { max_requests, max_rows, .. } = limits;
    let (most_requests, most_rows) = (grouped(*max_requests), grouped(*max_rows as u64));
    let _ = write!(
        text,
        "\nThis server has sent {}. A query may send {} (max_requests; at most {most_requests}) and return {} (max_rows; at most \
         {most_rows}).\n",
        counted(sent, "request"),
        counted(REQUESTS.min(*max_requests), "request"),
        counted(ROWS.min(*max_rows) as u64, "row"),
    );
    Ok(text)
}

async fn gathered(
    plan: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
) -> datafusion::error::Result<Vec<arrow::array::RecordBatch>> {
    collect(plan, task).await
}

/// The resources, as a client lists them.
pub(super) fn all() -> Vec<Resource> {
    let profile = Resource::new(PROFILE, "profile")
        .with_title("Profile of the service")
        .with_description("What the service supports, with the evidence for each: parameters, windows, filters, sizes")
        .with_mime_type("text/plain");
    let pages = PAGES.iter().map(|(name, title, text)| {
        let page = Resource::new(format!("{PAGE}{name}"), *name).with_title(*title).with_mime_type("text/markdown");
        page.with_size(text.len() as u64)
    });
    [profile].into_iter().chain(pages).collect()
}

/// The text of a resource; `None` for an unknown one.
pub(super) fn read(session: &Session, uri: &str) -> Option<ReadResourceResponse> {
    let (text, kind) = match uri.strip_prefix(PAGE) {
        Some(page) => {
            let (_, _, text) = PAGES.iter().find(|(name, _, _)| *name == page)?;
            ((*text).to_owned(), "text/markdown")
        }
        None if uri == PROFILE => (profile(session), "text/plain"),
        None => return None,
    };
    let contents = ResourceContents::text(session.redact(&text), uri).with_mime_type(kind);
    Some(ReadResourceResult::new(vec![contents]).into())
}

/// The entries of the profile of each connection.
fn profile(session: &Session) -> String {
    let mut text = "dimension|value|evidence\n".to_owned();
    for connection in session.connections() {
        for (name, value, evidence) in connection.profile().dimensions() {
            let line = format!("{name}|{value}|{}", evidence.as_deref().unwrap_or("NULL"));
            text.push_str(&one_line(&line));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Schema;
    use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
    use datafusion::datasource::empty::EmptyTable;

    use super::*;
    use crate::client::Secret;
    use crate::connection::Connection;
    use crate::host::auth::{Auth, Credentials};
    use crate::host::sessions::Upstream;
    use crate::host::spec::HostSpec;
    use crate::host::state::Host;

    #[tokio::test]
    async fn tables_of_an_embedder_are_listed_by_their_full_names() {
        let key = Secret::new("key").expect("a key");
        let connection = Connection::builder("http://127.0.0.1:9/v4", key).build().expect("a connection");
        let upstream = Upstream::Own { connection, named: Vec::new() };
        let spec = HostSpec::new(Auth::None, upstream).with_tables(|context, _| {
            let (catalog, schema) = (MemoryCatalogProvider::new(), MemorySchemaProvider::new());
            schema.register_table("brands".to_owned(), Arc::new(EmptyTable::new(Arc::new(Schema::empty()))))?;
            catalog.register_schema("public", Arc::new(schema))?;
            context.register_catalog("own", Arc::new(catalog));
            Ok(())
        });
        let host = Host::start(spec).expect("a host");
        let session = host.sessions.find(Credentials::None, None).await.expect("a session");
        let listed = list_tables(&session).await.expect("tables");
        assert!(listed.contains("\nTables of this server: own.public.brands.\n"), "{listed}");
        assert!(!listed.contains("Other connections"), "{listed}");
    }
}
