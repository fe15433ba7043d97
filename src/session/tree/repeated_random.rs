//! Tables of WITH that have random values and are used several times. The engine computes such a table anew for each use, so that its
//! uses have different rows.

use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::Volatility;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Cte, Expr, ObjectName, Query};

use crate::error::{Error, ErrorKind};
use crate::session::syntax::{self, Reader};

/// Refuses a statement with such a table.
///
/// # Errors
/// [`ErrorKind::Unsupported`], naming the table.
pub(in crate::session) fn repeated_random(state: &SessionState, statement: &Statement) -> Result<()> {
    let mut found = Found { state, tables: Vec::new() };
    syntax::read_statement(statement, &mut found);
    if found.tables.is_empty() {
        return Ok(());
    }
    let mut uses = Uses { tables: found.tables };
    syntax::read_statement(statement, &mut uses);
    match uses.tables.into_iter().find(|(_, uses)| *uses > 1) {
        Some((name, _)) => {
            Err(Error::new(ErrorKind::Unsupported, format!("`{name}` has random values and is used twice"))
                .advice(format!("store its rows first: CREATE TABLE {name} AS SELECT …"))
                .into())
        }
        None => Ok(()),
    }
}

/// Names of tables of WITH with random values, each with the number of its uses.
type Tables = Vec<(String, usize)>;

struct Found<'a> {
    state: &'a SessionState,
    tables: Tables,
}

impl Found<'_> {
    fn is_random(&self, cte: &Cte) -> bool {
        let mut random = false;
        syntax::expressions(&cte.query, &mut |part| {
            if let Expr::Function(function) = part {
                let name = function.name.to_string().to_lowercase();
                let function = self.state.scalar_functions().get(&name);
                random |= function.is_some_and(|function| function.signature().volatility == Volatility::Volatile);
            }
        });
        random
    }

    /// True for a table that is computed from one with random values.
    fn reads_random(&self, cte: &Cte) -> bool {
        let mut uses = Uses { tables: self.tables.clone() };
        syntax::read(cte.query.as_ref(), &mut uses);
        uses.tables.iter().any(|(_, uses)| *uses > 0)
    }
}

impl Reader for Found<'_> {
    fn pre_visit_query(&mut self, query: &Query) {
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            if self.is_random(cte) || self.reads_random(cte) {
                self.tables.push((cte.alias.name.value.clone(), 0));
            }
        }
    }
}

struct Uses {
    tables: Tables,
}

impl Reader for Uses {
    fn visit_relation(&mut self, name: &ObjectName) {
        let name = name.to_string().replace('"', "");
        self.tables.iter_mut().filter(|(table, _)| table.eq_ignore_ascii_case(&name)).for_each(|(_, uses)| *uses += 1);
    }
}
