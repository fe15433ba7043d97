//! Joins with USING and NATURAL as joins with ON, with the merged columns written out.
//!
//! ```text
//! SELECT k, count(*) FROM a FULL JOIN b USING (k) GROUP BY k
//!   ─▶ SELECT coalesce(a.k, b.k) AS k, count(*) FROM a FULL JOIN b ON a.k = b.k GROUP BY coalesce(a.k, b.k)
//! ```
//!
//! The engine takes a merged column from the left side of every join, reports it as ambiguous after a second join, and does
//! not find it from within a subquery. Its `*` has the column of the relation whose name is the first in the alphabet, also after
//! LEFT JOIN, and leaves out columns of other joins than the one that merges them.
//!
//! A merged column is the right column after RIGHT JOIN, `coalesce` of both after FULL JOIN, otherwise the left column.
//! `SELECT *` has merged columns first, then the other columns of the left side, then those of the right side. An
//! unqualified name in a subquery belongs to the innermost query that has such a column.
//!
//! Columns of a relation are found by planning `SELECT * FROM relation`, which sends no request. The rewrite itself never
//! waits. If the columns of a relation are unknown, it stops, and starts again once they are known.
//!
//! Invariant: a statement without such joins is returned unchanged.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::TableReference;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Cte, Distinct, ExcludeSelectItem, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, OrderBy,
    OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement as Ast, TableAlias,
    TableFactor, TableWithJoins, Value, VisitMut, WildcardAdditionalOptions, With,
};

use crate::error::{Error, ErrorKind};
use crate::memory;
use crate::session::nodes::{call, normalized, query_of, quoted};
use crate::session::syntax::{self, Editor, Reader};

/// Rewrites the joins of a statement that the engine would merge incorrectly.
///
/// # Errors
/// [`ErrorKind::Query`] for a merged column that a side does not have, or has twice; errors of planning a relation.
pub(in crate::session) async fn merge_columns(state: &SessionState, statement: Statement) -> Result<Statement> {
    rewrite(state, statement, false).await
}

/// As [`merge_columns`], and writes out `*` if it is not alone in its SELECT.
///
/// # Errors
/// Those of [`merge_columns`].
pub(in crate::session) async fn expand_wildcards(state: &SessionState, statement: Statement) -> Result<Statement> {
    rewrite(state, statement, true).await
}

async fn rewrite(state: &SessionState, statement: Statement, expands: bool) -> Result<Statement> {
    let mut finds = JoinFinder { expands, found: false };
    syntax::read_statement(&statement, &mut finds);
    if !finds.found {
        return Ok(statement);
    }
    let (mut known, env) = (HashMap::new(), Env::default());
    loop {
        let mut rewritten = statement.clone();
        let mut rewrite = Rewrite { known: &known, expands };
        let mut level = Level::new(&mut rewrite, &env);
        syntax::edit_statement(&mut rewritten, &mut level);
        let query = match level.stop {
            None => return Ok(rewritten),
            Some(Stop::Error(error)) => return Err(error),
            Some(Stop::Unknown(query)) => query,
        };
        let text = query.to_string();
        let plan = state.statement_to_plan(Statement::Statement(Box::new(Ast::Query(query)))).await?;
        let columns = plan.schema().iter().map(|(relation, field)| (relation.cloned(), field.name().clone()));
        known.insert(text, columns.collect());
    }
}

/// Finds a SELECT whose joins are rewritten.
struct JoinFinder {
    expands: bool,
    found: bool,
}

impl Reader for JoinFinder {
    fn pre_visit_select(&mut self, select: &Select) {
        self.found |= has_merging_join(&select.from) || (self.expands && has_more_than_wildcard(select));
    }
}

/// True for a SELECT list with `*` or `t.*` and something else.
fn has_more_than_wildcard(select: &Select) -> bool {
    let is_wildcard = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    select.projection.len() > 1 && select.projection.iter().any(is_wildcard)
}

/// True if a join of a FROM clause merges columns.
fn has_merging_join(from: &[TableWithJoins]) -> bool {
    let mut items: Vec<&TableWithJoins> = from.iter().collect();
    while let Some(item) = items.pop() {
        let factors = std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation));
        items.extend(factors.filter_map(|factor| match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => Some(table_with_joins.as_ref()),
            _ => None,
        }));
        let merges =
            |constraint: &JoinConstraint| matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural);
        if item
            .joins
            .iter()
            .filter_map(|join| constraint_of(&join.join_operator))
            .any(|(_, constraint)| merges(constraint))
        {
            return true;
        }
    }
    false
}

/// Sides of a join whose rows are kept, and whose columns are visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session) enum Side {
    Inner,
    Left,
    Right,
    Full,
    /// Semi- and anti-joins.
    OnlyLeft,
    OnlyRight,
}

/// The condition of a join, and the side whose rows it keeps; `None` for joins without one.
pub(in crate::session) fn constraint_of(operator: &JoinOperator) -> Option<(Side, &JoinConstraint)> {
    use JoinOperator as Join;
    Some(match operator {
        Join::Join(constraint) | Join::Inner(constraint) | Join::CrossJoin(constraint) => (Side::Inner, constraint),
        Join::Left(constraint) | Join::LeftOuter(constraint) => (Side::Left, constraint),
        Join::Right(constraint) | Join::RightOuter(constraint) => (Side::Right, constraint),
        Join::FullOuter(constraint) => (Side::Full, constraint),
        Join::Semi(constraint) | Join::LeftSemi(constraint) => (Side::OnlyLeft, constraint),
        Join::Anti(constraint) | Join::LeftAnti(constraint) => (Side::OnlyLeft, constraint),
        Join::RightSemi(constraint) | Join::RightAnti(constraint) => (Side::OnlyRight, constraint),
        _ => return None,
    })
}

fn constraint_mut(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    use JoinOperator as Join;
    match operator {
        Join::Join(constraint)
        | Join::Inner(constraint)
        | Join::CrossJoin(constraint)
        | Join::Left(constraint)
        | Join::LeftOuter(constraint)
        | Join::Right(constraint)
        | Join::RightOuter(constraint)
        | Join::FullOuter(constraint)
        | Join::Semi(constraint)
        | Join::LeftSemi(constraint)
        | Join::Anti(constraint)
        | Join::LeftAnti(constraint)
        | Join::RightSemi(constraint)
        | Join::RightAnti(constraint) => Some(constraint),
        _ => None,
    }
}

/// Columns of a relation, with the name of the relation that they belong to.
type Columns = Vec<(Option<TableReference>, String)>;

/// Reason why a rewrite did not end.
enum Stop {
    /// The columns of this query are not known yet.
    Unknown(Box<Query>),
    Error(DataFusionError),
}

/// A column that is visible in a SELECT.
#[derive(Debug, Clone)]
struct Visible {
    name: String,
    expr: Expr,
    merged: bool,
}

/// Relations of a FROM clause.
#[derive(Debug, Clone, Default)]
struct Scope {
    from: Vec<TableWithJoins>,
    /// Set if the joins are rewritten. Otherwise columns are looked up where a name may be one of an outer query.
    columns: Option<Vec<Visible>>,
}

/// Surroundings of a query.
#[derive(Debug, Clone, Default)]
struct Env {
    ctes: Vec<Arc<Cte>>,
    recursive: bool,
    /// Queries around this one, the innermost last.
    scopes: Vec<Scope>,
}

impl Env {
    fn inside(&self, scope: Scope) -> Self {
        let mut env = self.clone();
        env.scopes.push(scope);
        env
    }
}

struct Rewrite<'a> {
    /// Columns by the text of the query that has them.
    known: &'a HashMap<String, Columns>,
    /// Set if `*` is written out.
    expands: bool,
}

/// Rewrites the names and subqueries of one SELECT, but not those inside its subqueries.
struct Level<'a, 'k> {
    rewrite: &'a mut Rewrite<'k>,
    env: &'a Env,
    /// Number of subqueries around the current place.
    depth: usize,
    changed: bool,
    stop: Option<Stop>,
}

impl<'a, 'k> Level<'a, 'k> {
    fn new(rewrite: &'a mut Rewrite<'k>, env: &'a Env) -> Self {
        Self { rewrite, env, depth: 0, changed: false, stop: None }
    }
}

impl Editor for Level<'_, '_> {
    fn pre_visit_query(&mut self, query: &mut Query) {
        if self.depth == 0 && self.stop.is_none() {
            self.stop = self.rewrite.query(query, self.env).err();
        }
        self.depth += 1;
    }

    fn post_visit_query(&mut self, _query: &mut Query) {
        self.depth -= 1;
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) {
        if self.depth > 0 || self.stop.is_some() {
            return;
        }
        let Expr::Identifier(name) = expr else { return };
        match self.rewrite.resolved(&normalized(name), self.env) {
            Ok(Some(merged)) => (*expr, self.changed) = (merged, true),
            Ok(None) => {}
            Err(stop) => self.stop = Some(stop),
        }
    }
}

impl Rewrite<'_> {
    fn query(&mut self, query: &mut Query, env: &Env) -> Result<(), Stop> {
        let mut env = env.clone();
        if let Some(with) = &mut query.with {
            env.recursive |= with.recursive;
            for cte in &mut with.cte_tables {
                self.cte(cte, with.recursive, &env)?;
                env.ctes.push(Arc::new(cte.clone()));
            }
        }
        if let SetExpr::Select(select) = query.body.as_mut() {
            return self.select(select, query.order_by.as_mut(), &env);
        }
        self.body(query.body.as_mut(), &env)
    }

    fn cte(&mut self, cte: &mut Cte, recursive: bool, env: &Env) -> Result<(), Stop> {
        let mut env = env.clone();
        // The recursive term reads a relation with the columns of the other one.
        if recursive && let SetExpr::SetOperation { left, .. } = cte.query.body.as_mut() {
            self.body(left, &env)?;
            let columns = left.clone();
            let mut first = cte.clone();
            first.query.body = columns;
            env.ctes.push(Arc::new(first));
        }
        self.query(&mut cte.query, &env)
    }

    /// Rewrites the branches of set operations, however many there are.
    fn body(&mut self, body: &mut SetExpr, env: &Env) -> Result<(), Stop> {
        let mut bodies = vec![body];
        while let Some(body) = bodies.pop() {
            match body {
                SetExpr::Select(select) => self.select(select, None, env)?,
                SetExpr::Query(query) => self.query(query, env)?,
                SetExpr::SetOperation { left, right, .. } => bodies.extend([left.as_mut(), right.as_mut()]),
                SetExpr::Values(values) => {
                    self.names(&mut values.rows, env)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Rewrites names and subqueries in a part of a SELECT. Returns true if a name was replaced.
    fn names(&mut self, part: &mut impl VisitMut, env: &Env) -> Result<bool, Stop> {
        let mut level = Level::new(self, env);
        syntax::edit(part, &mut level);
        match level.stop {
            Some(stop) => Err(stop),
            None => Ok(level.changed),
        }
    }

    fn select(&mut self, select: &mut Select, order_by: Option<&mut OrderBy>, env: &Env) -> Result<(), Stop> {
        let expands = self.expands && has_more_than_wildcard(select);
        let known = expands || has_merging_join(&select.from);
        let mut scope = Scope { from: Vec::new(), columns: known.then(Vec::new) };
        for item in &mut select.from {
            let columns = self.joined(item, &scope, env)?;
            scope.from.push(item.clone());
            if let Some(known) = &mut scope.columns {
                known.extend(columns);
            }
        }
        let visible = scope.columns.clone();
        let env = env.inside(scope);
        let mut items = Vec::new();
        for item in std::mem::take(&mut select.projection) {
            match (item, &visible) {
                (SelectItem::Wildcard(options), Some(visible)) => items.extend(self.expanded(options, visible, &env)?),
                (SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options), _)
                    if expands =>
                {
                    let columns = self.columns_of_relation(&name, &env)?;
                    items.extend(self.expanded(options, &columns, &env)?);
                }
                (SelectItem::UnnamedExpr(mut expr), _) => {
                    let alias = match &expr {
                        Expr::Identifier(name) => name.clone(),
                        other => quoted(&other.to_string()),
                    };
                    items.push(match self.names(&mut expr, &env)? {
                        true => SelectItem::ExprWithAlias { expr, alias },
                        false => SelectItem::UnnamedExpr(expr),
                    });
                }
                (mut item, _) => {
                    self.names(&mut item, &env)?;
                    items.push(item);
                }
            }
        }
        select.projection = items;
        // A name alone means a column of the result before one of a relation.
        let results: Vec<(String, Expr)> = select.projection.iter().filter_map(result_of).collect();
        let is_result = |expr: &Expr| matches!(expr, Expr::Identifier(name) if results.iter().any(|(result, _)| *result == normalized(name)));
        if let Some(Distinct::On(exprs)) = &mut select.distinct {
            // The engine compares the keys with those of ORDER BY, so that both are written out.
            let is_merged = |key: &Expr| {
                let Expr::Identifier(name) = key else { return false };
                let name = normalized(name);
                let merged = visible.iter().flatten().find(|column| column.merged && column.name == name);
                merged.is_some_and(|column| results.contains(&(name, column.expr.clone())))
            };
            for key in exprs.iter_mut().filter(|key| !is_result(key) || is_merged(key)) {
                self.names(key, &env)?;
            }
            if let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = order_by {
                for key in keys.iter_mut().filter(|key| !is_result(&key.expr) || is_merged(&key.expr)) {
                    self.names(key, &env)?;
                }
            }
        } else if let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = order_by {
            for key in keys.iter_mut().filter(|key| !is_result(&key.expr)) {
                self.names(key, &env)?;
            }
        }
        self.names(&mut select.selection, &env)?;
        self.names(&mut select.group_by, &env)?;
        self.names(&mut select.having, &env)?;
        self.names(&mut select.named_window, &env)?;
        self.names(&mut select.qualify, &env)?;
        Ok(())
    }

    /// Rewrites an item of FROM. Returns its columns if the joins of the SELECT are rewritten.
    fn joined(&mut self, item: &mut TableWithJoins, before: &Scope, env: &Env) -> Result<Vec<Visible>, Stop> {
        let mut left = self.factor(&mut item.relation, before, env)?;
        for at in 0..item.joins.len() {
            let mut preceding = before.clone();
            preceding.from.push(TableWithJoins { relation: item.relation.clone(), joins: item.joins[..at].to_vec() });
            if let Some(columns) = &mut preceding.columns {
                columns.extend(left.clone());
            }
            let join = &mut item.joins[at];
            let right = self.factor(&mut join.relation, &preceding, env)?;
            let Some((side, constraint)) = constraint_of(&join.join_operator) else {
                left.extend(right);
                continue;
            };
            let names = match constraint {
                JoinConstraint::Using(names) if preceding.columns.is_some() => {
                    names.iter().map(last_name).collect::<Vec<_>>()
                }
                JoinConstraint::Natural if preceding.columns.is_some() => {
                    let common = left.iter().map(|column| &column.name);
                    common.filter(|name| right.iter().any(|other| other.name == **name)).cloned().collect()
                }
                _ => {
                    // The condition sees both sides.
                    let mut inside = preceding;
                    if let Some(columns) = &mut inside.columns {
                        columns.extend(right.clone());
                    }
                    let relation = join.relation.clone();
                    inside.from.push(TableWithJoins { relation, joins: Vec::new() });
                    self.names(&mut join.join_operator, &env.inside(inside))?;
                    match side {
                        Side::OnlyLeft => {}
                        Side::OnlyRight => left = right,
                        _ => left.extend(right),
                    }
                    continue;
                }
            };
            let mut condition: Option<Expr> = None;
            let mut merged = Vec::new();
            for name in &names {
                let (ours, theirs) = (unique(&left, name, "left")?, unique(&right, name, "right")?);
                let equal = binary(ours.clone(), BinaryOperator::Eq, theirs.clone());
                condition = Some(match condition {
                    Some(others) => binary(others, BinaryOperator::And, equal),
                    None => equal,
                });
                let expr = match side {
                    Side::Inner | Side::Left | Side::OnlyLeft => ours,
                    Side::Right | Side::OnlyRight => theirs,
                    Side::Full => call("coalesce", vec![ours, theirs]),
                };
                merged.push(Visible { name: name.clone(), expr, merged: true });
            }
            match (condition, side) {
                (None, Side::Inner) => join.join_operator = JoinOperator::CrossJoin(JoinConstraint::None),
                (condition, _) => {
                    let condition = condition.unwrap_or_else(|| Expr::Value(Value::Boolean(true).with_empty_span()));
                    if let Some(constraint) = constraint_mut(&mut join.join_operator) {
                        *constraint = JoinConstraint::On(condition);
                    }
                }
            }
            let others = |side: Vec<Visible>| side.into_iter().filter(|column| !names.contains(&column.name));
            left = match side {
                Side::OnlyLeft => merged.into_iter().chain(others(left)).collect(),
                Side::OnlyRight => merged.into_iter().chain(others(right)).collect(),
                _ => merged.into_iter().chain(others(left)).chain(others(right)).collect(),
            };
        }
        Ok(left)
    }

    /// Rewrites the parts of a relation. Returns its columns if the joins of the SELECT are rewritten.
    fn factor(&mut self, factor: &mut TableFactor, before: &Scope, env: &Env) -> Result<Vec<Visible>, Stop> {
        let lateral = match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                return self.joined(table_with_joins, before, env);
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let merges = has_merging_join(std::slice::from_ref(table_with_joins));
                let alone = Scope { from: Vec::new(), columns: merges.then(Vec::new) };
                let columns = self.joined(table_with_joins, &alone, env)?;
                if merges {
                    // The alias hides the relations in the parentheses.
                    let items = columns.into_iter().map(Visible::selected).collect();
                    let subquery = query_of(items, vec![table_with_joins.as_ref().clone()]);
                    *factor = TableFactor::Derived { lateral: false, subquery, alias: alias.take(), sample: None };
                }
                false
            }
            TableFactor::Derived { lateral, subquery, .. } => {
                let lateral = *lateral;
                let inside = lateral.then(|| env.inside(before.clone()));
                self.query(subquery, inside.as_ref().unwrap_or(env))?;
                lateral
            }
            TableFactor::Table { .. } => false,
            TableFactor::UNNEST { array_exprs, .. } => {
                self.names(array_exprs, &env.inside(before.clone()))?;
                true
            }
            TableFactor::Function { lateral, .. } => *lateral,
            _ => false,
        };
        if before.columns.is_none() {
            return Ok(Vec::new());
        }
        let nameless = matches!(factor, TableFactor::Derived { .. } | TableFactor::UNNEST { .. });
        let text = factor.to_string();
        let alias = alias_mut(factor).ok_or_else(|| unsupported(&text))?;
        if alias.is_none() && nameless {
            // Nobody can refer to it.
            let name = quoted(&format!("?{}", before.from.len()));
            *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
        }
        let named = alias.as_ref().map(|alias| alias.name.clone());
        let own = TableWithJoins { relation: factor.clone(), joins: Vec::new() };
        let query = match &named {
            Some(name) if lateral => {
                let kind = SelectItemQualifiedWildcardKind::ObjectName(ObjectName::from(vec![name.clone()]));
                let items = vec![SelectItem::QualifiedWildcard(kind, WildcardAdditionalOptions::default())];
                query_of(items, before.from.iter().cloned().chain([own]).collect())
            }
            _ => query_of(vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())], vec![own]),
        };
        let columns = self.columns(query, env)?;
        Ok(columns
            .iter()
            .map(|(relation, name)| {
                let mut path = match (&named, relation) {
                    (Some(named), _) => vec![named.clone()],
                    (None, Some(relation)) => relation.to_vec().iter().map(|part| quoted(part)).collect(),
                    (None, None) => Vec::new(),
                };
                path.push(quoted(name));
                Visible { name: name.clone(), expr: Expr::CompoundIdentifier(path), merged: false }
            })
            .collect())
    }

    /// Columns of `name.*` in the innermost query.
    fn columns_of_relation(&self, name: &ObjectName, env: &Env) -> Result<Vec<Visible>, Stop> {
        let kind = SelectItemQualifiedWildcardKind::ObjectName(name.clone());
        let items = vec![SelectItem::QualifiedWildcard(kind, WildcardAdditionalOptions::default())];
        let from = env.scopes.last().map(|scope| scope.from.clone()).unwrap_or_default();
        let relation: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
        let columns = self.columns(query_of(items, from), env)?.iter().map(|(_, column)| {
            let path = relation.iter().cloned().chain([quoted(column)]).collect();
            Visible { name: column.clone(), expr: Expr::CompoundIdentifier(path), merged: false }
        });
        Ok(columns.collect())
    }

    /// Columns of a query, with the common table expressions around it.
    fn columns(&self, mut query: Box<Query>, env: &Env) -> Result<&Columns, Stop> {
        memory::check().map_err(|error| Stop::Error(error.into()))?;
        if !env.ctes.is_empty() {
            query.with = Some(With {
                with_token: AttachedToken::empty(),
                recursive: env.recursive,
                cte_tables: env.ctes.iter().map(|cte| cte.as_ref().clone()).collect(),
            });
        }
        self.known.get(&query.to_string()).ok_or(Stop::Unknown(query))
    }

    /// The expression of a merged column with this name; `None` for other names.
    fn resolved(&self, name: &str, env: &Env) -> Result<Option<Expr>, Stop> {
        let merged = |scope: &Scope| scope.columns.iter().flatten().any(|column| column.merged && column.name == name);
        let Some(outermost) = env.scopes.iter().position(merged) else { return Ok(None) };
        let mut passed: Vec<&Scope> = Vec::new();
        for scope in env.scopes[outermost..].iter().rev() {
            if let Some(columns) = &scope.columns {
                let mut found = columns.iter().filter(|column| column.name == name);
                if let Some(column) = found.next() {
                    // The engine refuses names that are ambiguous.
                    let known = found.next().is_none() && column.merged;
                    let expr = known.then(|| column.expr.clone());
                    if let Some(expr) = &expr {
                        check_visible(expr, &passed)?;
                    }
                    return Ok(expr);
                }
            } else if !scope.from.is_empty() {
                let items = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
                let columns = self.columns(query_of(items, scope.from.clone()), env)?;
                if columns.iter().any(|(_, column)| column == name) {
                    return Ok(None);
                }
            }
            passed.push(scope);
        }
        Ok(None)
    }

    /// The columns of `*`.
    fn expanded(
        &mut self,
        options: WildcardAdditionalOptions,
        visible: &[Visible],
        env: &Env,
    ) -> Result<Vec<SelectItem>, Stop> {
        let WildcardAdditionalOptions {
            opt_ilike, opt_exclude, opt_except, opt_replace, opt_rename, opt_alias, ..
        } = options;
        if opt_ilike.is_some() || opt_rename.is_some() || opt_alias.is_some() {
            return Err(unsupported("* with ILIKE, RENAME or an alias"));
        }
        let mut left_out: Vec<String> = match opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => vec![last_name(&name)],
            Some(ExcludeSelectItem::Multiple(names)) => names.iter().map(last_name).collect(),
            None => Vec::new(),
        };
        if let Some(except) = opt_except {
            left_out.extend([&except.first_element].into_iter().chain(&except.additional_elements).map(normalized));
        }
        let mut replaced = HashMap::new();
        for element in opt_replace.into_iter().flat_map(|replace| replace.items) {
            let mut expr = element.expr;
            self.names(&mut expr, env)?;
            replaced.insert(normalized(&element.column_name), expr);
        }
        let kept = visible.iter().filter(|column| !left_out.contains(&column.name));
        Ok(kept
            .map(|column| match replaced.get(&column.name) {
                Some(expr) => SelectItem::ExprWithAlias { expr: expr.clone(), alias: quoted(&column.name) },
                None => column.clone().selected(),
            })
            .collect())
    }
}

impl Visible {
    fn selected(self) -> SelectItem {
        match self.expr {
            Expr::CompoundIdentifier(_) => SelectItem::UnnamedExpr(self.expr),
            expr => SelectItem::ExprWithAlias { expr, alias: quoted(&self.name) },
        }
    }
}

/// The name and the expression of a column in the result, where the name is written.
fn result_of(item: &SelectItem) -> Option<(String, Expr)> {
    let (name, expr) = match item {
        SelectItem::ExprWithAlias { expr, alias } => (alias, expr),
        SelectItem::UnnamedExpr(expr @ Expr::Identifier(name)) => (name, expr),
        SelectItem::UnnamedExpr(expr @ Expr::CompoundIdentifier(path)) => (path.last()?, expr),
        _ => return None,
    };
    Some((normalized(name), expr.clone()))
}

fn last_name(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map(normalized).unwrap_or_default()
}

/// The alias of a relation; `None` for relations that the engine does not know.
fn alias_mut(factor: &mut TableFactor) -> Option<&mut Option<TableAlias>> {
    match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. } => Some(alias),
        _ => None,
    }
}

/// Refuses a merged column of an outer query if the relations that it comes from are hidden by others of the same name.
fn check_visible(expr: &Expr, passed: &[&Scope]) -> Result<(), Stop> {
    let mut relations = Vec::new();
    syntax::expressions(expr, &mut |part| {
        if let Expr::CompoundIdentifier(path) = part
            && let [.., relation, _] = path.as_slice()
        {
            relations.push(normalized(relation));
        }
    });
    let mut hidden = None;
    let mut items: Vec<&TableWithJoins> = passed.iter().flat_map(|scope| &scope.from).collect();
    while let Some(item) = items.pop() {
        for factor in std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation)) {
            let name = match factor {
                TableFactor::NestedJoin { table_with_joins, alias: None } => {
                    items.push(table_with_joins);
                    continue;
                }
                TableFactor::Table { alias: None, name, .. } => last_name(name),
                other => match alias_mut(&mut other.clone()) {
                    Some(Some(alias)) => normalized(&alias.name),
                    _ => continue,
                },
            };
            if relations.contains(&name) {
                hidden = Some(name);
            }
        }
    }
    let Some(name) = hidden else { return Ok(()) };
    let message = format!("a merged column of the outer query comes from `{name}`, which the subquery has as well");
    Err(failed(ErrorKind::Unsupported, message, "give the table in the subquery another alias"))
}

/// The expression of the only column with this name.
fn unique(columns: &[Visible], name: &str, side: &str) -> Result<Expr, Stop> {
    let mut found = columns.iter().filter(|column| column.name == name);
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column.expr.clone()),
        (None, _) => {
            let message = format!("column `{name}` of USING does not exist in the {side} table");
            let known: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            Err(failed(ErrorKind::Query, message, format!("columns: {}", known.join(", "))))
        }
        (Some(_), Some(_)) => {
            let message = format!("column `{name}` appears more than once in the {side} table");
            Err(failed(ErrorKind::Query, message, "use ON with qualified columns"))
        }
    }
}

fn unsupported(what: &str) -> Stop {
    let message = format!("{what} is not supported beside joins with USING or NATURAL");
    failed(ErrorKind::Unsupported, message, "use ON with qualified columns")
}

fn failed(kind: ErrorKind, message: String, advice: impl Into<String>) -> Stop {
    Stop::Error(Error::new(kind, message).advice(advice).into())
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}
