//! Functions that are called by another of their names, within each other.
//!
//! The engine plans `length(x)` as `character_length(x) AS "length(x)"`. The name has the text of the argument, which is such
//! an expression itself: each level doubles the text, and the engine derives the type of a named expression twice. So inner
//! calls get the function's own name. The outer ones keep what was written, for the names of results.

use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, ObjectName, ObjectNamePart};

use crate::session::nodes::{normalized, quoted};
use crate::session::syntax::{self, Editor};

/// Calls within each other that keep what was written.
const LEVELS: usize = 2;

/// Writes the functions' own names in calls within more than [`LEVELS`] calls by other names.
pub(in crate::session) fn with_own_names(state: &SessionState, mut statement: Statement) -> Statement {
    syntax::edit_statement(&mut statement, &mut OwnNames { state, renamed_calls: Vec::new(), level: 0 });
    statement
}

struct OwnNames<'a> {
    state: &'a SessionState,
    /// For each expression around the current place, whether it calls a function by another of its names.
    renamed_calls: Vec<bool>,
    /// Number of such calls around the current place.
    level: usize,
}

impl OwnNames<'_> {
    /// The function's own name, if it is called by another one.
    fn own_name(&self, name: &ObjectName) -> Option<String> {
        let [ObjectNamePart::Identifier(written)] = name.0.as_slice() else { return None };
        let written = normalized(written);
        let scalar = self.state.scalar_functions().get(&written).map(|function| function.name());
        let own =
            scalar.or_else(|| self.state.higher_order_functions().get(&written).map(|function| function.name()))?;
        (!own.eq_ignore_ascii_case(&written)).then(|| own.to_owned())
    }
}

impl Editor for OwnNames<'_> {
    fn pre_visit_expr(&mut self, expr: &mut Expr) {
        let mut renamed = false;
        if let Expr::Function(function) = expr
            && let Some(own) = self.own_name(&function.name)
        {
            renamed = true;
            self.level += 1;
            if self.level > LEVELS {
                function.name = ObjectName(vec![ObjectNamePart::Identifier(quoted(&own))]);
            }
        }
        self.renamed_calls.push(renamed);
    }

    fn post_visit_expr(&mut self, _expr: &mut Expr) {
        if self.renamed_calls.pop() == Some(true) {
            self.level -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::session::parse::parse_statements;

    #[test]
    fn only_calls_within_two_others_get_the_own_name() {
        let state = SessionContext::new().state();
        for (written, read) in [
            ("SELECT length(concat(length(a)))", "SELECT length(concat(length(a)))"),
            (
                "SELECT length(concat(Length(concat(length(a), LENGTH(b))))), length(c)",
                "SELECT length(concat(Length(concat(\"character_length\"(a), \"character_length\"(b))))), length(c)",
            ),
            ("SELECT upper(upper(upper(upper(a))))", "SELECT upper(upper(upper(upper(a))))"),
        ] {
            let statement = parse_statements(written).unwrap().pop_front().unwrap();
            assert_eq!(with_own_names(&state, statement).to_string(), read);
        }
    }
}
