//! Visits the syntax tree of a statement.
//!
//! The parser's traversal is compiled again for each type of visitor, at half a megabyte each. So there are only two types,
//! one that reads the tree and one that changes it. They call a [`Reader`] or an [`Editor`] that is chosen at run time.

use std::ops::ControlFlow;

use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, TableFactor, Visit, VisitMut, Visitor, VisitorMut,
};

/// Visitor that reads the nodes of a tree.
pub(crate) trait Reader {
    /// Before the parts of a query.
    fn pre_visit_query(&mut self, _query: &Query) {}
    /// After the parts of a query.
    fn post_visit_query(&mut self, _query: &Query) {}
    /// Before the parts of a SELECT.
    fn pre_visit_select(&mut self, _select: &Select) {}
    /// Before the parts of an item of FROM.
    fn pre_visit_table_factor(&mut self, _factor: &TableFactor) {}
    /// At the name of a table.
    fn visit_relation(&mut self, _name: &ObjectName) {}
    /// Before the parts of an expression.
    fn pre_visit_expr(&mut self, _expr: &Expr) {}
    /// After the parts of an expression.
    fn post_visit_expr(&mut self, _expr: &Expr) {}
    /// True once nothing more is to be read.
    fn is_done(&self) -> bool {
        false
    }
}

/// As [`Reader`], to change the nodes.
pub(crate) trait Editor {
    /// Before the parts of a query.
    fn pre_visit_query(&mut self, _query: &mut Query) {}
    /// After the parts of a query.
    fn post_visit_query(&mut self, _query: &mut Query) {}
    /// Before the parts of a SELECT.
    fn pre_visit_select(&mut self, _select: &mut Select) {}
    /// Before the parts of an item of FROM.
    fn pre_visit_table_factor(&mut self, _factor: &mut TableFactor) {}
    /// Before the parts of an expression.
    fn pre_visit_expr(&mut self, _expr: &mut Expr) {}
    /// After the parts of an expression.
    fn post_visit_expr(&mut self, _expr: &mut Expr) {}
}

/// Visits a statement, or a part of one.
pub(crate) fn read(part: &impl Visit, reader: &mut dyn Reader) {
    let _ = part.visit(&mut Reading(reader));
}

/// Visits a statement, or a part of one, and changes it.
pub(crate) fn edit(part: &mut impl VisitMut, editor: &mut dyn Editor) {
    let _ = part.visit(&mut Editing(editor));
}

/// As [`read`], for the queries and expressions in a statement.
pub(crate) fn read_statement(statement: &Statement, reader: &mut dyn Reader) {
    match statement {
        Statement::Statement(ast) => read(ast.as_ref(), reader),
        Statement::Explain(explain) => read_statement(&explain.statement, reader),
        Statement::CopyTo(copy) => {
            if let CopyToSource::Query(query) = &copy.source {
                read(query.as_ref(), reader);
            }
        }
        _ => {}
    }
}

/// As [`edit`], for the queries and expressions in a statement.
pub(crate) fn edit_statement(statement: &mut Statement, editor: &mut dyn Editor) {
    match statement {
        Statement::Statement(ast) => edit(ast.as_mut(), editor),
        Statement::Explain(explain) => edit_statement(&mut explain.statement, editor),
        Statement::CopyTo(copy) => {
            if let CopyToSource::Query(query) = &mut copy.source {
                edit(query.as_mut(), editor);
            }
        }
        _ => {}
    }
}

/// Calls `each` with every expression, outer ones first.
pub(crate) fn expressions(part: &impl Visit, each: &mut dyn FnMut(&Expr)) {
    read(part, &mut Expressions(each));
}

/// Counts the expressions in a part of a statement, as far as `most`.
pub(crate) fn count_expressions(part: &impl Visit, most: usize) -> usize {
    let mut count = Count { expressions: 0, most };
    read(part, &mut count);
    count.expressions
}

/// Calls `each` with every expression, inner ones first, to change it.
pub(crate) fn edit_expressions(part: &mut impl VisitMut, each: &mut dyn FnMut(&mut Expr)) {
    edit(part, &mut EditExpressions(each));
}

/// Calls `each` with the name of every table.
#[cfg_attr(not(any(feature = "host", feature = "shell")), allow(dead_code, reason = "fronts look at the tables"))]
pub(crate) fn relations(part: &impl Visit, each: &mut dyn FnMut(&ObjectName)) {
    read(part, &mut Relations(each));
}

struct Reading<'a>(&'a mut dyn Reader);

impl Visitor for Reading<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.0.pre_visit_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.0.post_visit_query(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.0.pre_visit_select(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        self.0.pre_visit_table_factor(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        self.0.visit_relation(name);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.0.pre_visit_expr(expr);
        if self.0.is_done() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.0.post_visit_expr(expr);
        ControlFlow::Continue(())
    }
}

struct Count {
    expressions: usize,
    most: usize,
}

impl Reader for Count {
    fn pre_visit_expr(&mut self, _expr: &Expr) {
        self.expressions += 1;
    }

    fn is_done(&self) -> bool {
        self.expressions >= self.most
    }
}

struct Editing<'a>(&'a mut dyn Editor);

impl VisitorMut for Editing<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.0.pre_visit_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.0.post_visit_query(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.0.pre_visit_select(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        self.0.pre_visit_table_factor(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.0.pre_visit_expr(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.0.post_visit_expr(expr);
        ControlFlow::Continue(())
    }
}

struct Expressions<'a>(&'a mut dyn FnMut(&Expr));

impl Reader for Expressions<'_> {
    fn pre_visit_expr(&mut self, expr: &Expr) {
        (self.0)(expr);
    }
}

struct EditExpressions<'a>(&'a mut dyn FnMut(&mut Expr));

impl Editor for EditExpressions<'_> {
    fn post_visit_expr(&mut self, expr: &mut Expr) {
        (self.0)(expr);
    }
}

#[cfg_attr(not(any(feature = "host", feature = "shell")), allow(dead_code, reason = "as for `relations`"))]
struct Relations<'a>(&'a mut dyn FnMut(&ObjectName));

impl Reader for Relations<'_> {
    fn visit_relation(&mut self, name: &ObjectName) {
        (self.0)(name);
    }
}
