//! The files of `tests/slt`: SQL with expected results, over a simulator with a fixed seed and clock.
//!
//! `SLT_UPDATE=1` overwrites the expected results with the actual ones; review the diff.

use async_trait::async_trait;
use datafusion::common::DataFusionError;
use datafusion_saved_search::error::describe;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};

use crate::support::{World, repository, rows};

struct Engine(World);

/// An error as shown to users.
#[derive(Debug)]
struct Shown(String);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Shown {}

#[async_trait]
impl AsyncDB for Engine {
    type Error = Shown;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Shown> {
        let shown = |error: DataFusionError| Shown(describe(&error));
        let frame = self.0.context.sql(sql).await.map_err(shown)?;
        let types = vec![DefaultColumnType::Any; frame.schema().fields().len()];
        if types.is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        let mut rows = rows(&frame.collect().await.map_err(shown)?);
        for cell in rows.iter_mut().flatten() {
            if cell.is_empty() {
                *cell = "(empty)".to_owned();
            }
        }
        Ok(DBOutput::Rows { types, rows })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &'static str {
        "savedsearch"
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_files_give_what_they_say() {
    #[expect(clippy::disallowed_methods, reason = "a setting of this test")]
    let update = std::env::var("SLT_UPDATE").is_ok_and(|value| value == "1");
    let folder = repository().join("tests/slt");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "slt"));
    files.sort();
    assert!(files.len() >= 3, "files are missing");
    for file in files {
        let mut runner = Runner::new(|| async { Ok(Engine(World::new().await)) });
        if update {
            let (validator, normalizer) = (sqllogictest::default_validator, sqllogictest::default_normalizer);
            let columns = sqllogictest::default_column_validator;
            runner.update_test_file(&file, "\t", validator, normalizer, columns).await.unwrap();
        } else {
            runner.run_file_async(&file).await.unwrap_or_else(|error| panic!("{}", error.display(false)));
        }
    }
}
