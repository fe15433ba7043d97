//! Divisions, casts and functions in conditions that other conditions guard: `WHERE n <> 0 AND 10 / n > 2`,
//! `WHERE t ~ '^[0-9]+$' AND t::int > 5`, `CASE WHEN n <= 0 OR ln(n) > 2 THEN …`, `a JOIN b ON b.n <> 0 AND 10 / b.n > a.x`.
//!
//! The engine may evaluate both conditions for a row, and then fails. In our sessions, a condition that may fail is
//! computed only for rows for which the other conditions on the same columns leave the result open, and in WHERE and ON only for
//! rows that satisfy those before it that may fail as well and share a column with it. All further conditions, such as those that
//! determine requests, stay where they are. What a condition implies without its parts that may fail is a condition of its own.
//!
//! The optimizer turns a CASE of truth values into AND and OR. If its parts may fail, its results are numbers here.
//!
//! Invariant: the result has the same rows and values. Only errors of rows that other conditions exclude disappear.

use std::collections::HashSet;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, NullEquality, Result, TableReference};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_binary, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Case, Expr, Join, LogicalPlan, Operator, binary_expr, cast, lit, when};

use crate::functions::{TypeIn, has_domain};
use crate::optimizer::expressions::has_subquery;

/// Guards times parts that may fail, at most: beyond, the parts of a condition stay as they are.
const COPIES: usize = 10_000;

/// Returns the plan with guarded conditions.
///
/// # Errors
/// None in practice: conditions stay conditions.
pub(in crate::session) fn guarded(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= has_operation(node)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !found {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        if !has_operation(&node)? {
            return Ok(Transformed::no(node));
        }
        let schema = merge_schema(&node.inputs());
        let over = Over { schema: &schema };
        match node {
            LogicalPlan::Filter(mut filter) => match over.guarded_condition(&filter.predicate)? {
                Some(predicate) => {
                    filter.predicate = predicate;
                    Ok(Transformed::yes(LogicalPlan::Filter(filter)))
                }
                None => Ok(Transformed::no(LogicalPlan::Filter(filter))),
            },
            LogicalPlan::Join(join) => over.guarded_join(join),
            node => {
                let names = NamePreserver::new(&node);
                node.map_expressions(|expr| {
                    if !over.may_fail(&expr)? {
                        return Ok(Transformed::no(expr));
                    }
                    let name = names.save(&expr);
                    Ok(Transformed::yes(name.restore(over.guarded_within(expr)?)))
                })
            }
        }
    })
    .data()
}

/// True for a node with an operation that may fail for values of some type.
fn has_operation(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found |= expr.exists(|part| Ok(is_operation(part)))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// True for an operation that may fail for values of some type.
fn is_operation(part: &Expr) -> bool {
    match part {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => is_sum(*op) || matches!(op, Operator::Divide | Operator::Modulo),
        Expr::Cast(_) | Expr::ScalarFunction(_) => true,
        _ => false,
    }
}

/// True for an operation on numbers whose result may be out of range.
fn is_sum(op: Operator) -> bool {
    matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply)
}

/// Expressions over the columns of a schema.
#[derive(Clone, Copy)]
struct Over<'s> {
    schema: &'s DFSchema,
}

impl Over<'_> {
    /// The condition with guarded parts, if a part may fail. It is only used where it is true.
    fn guarded_condition(self, condition: &Expr) -> Result<Option<Expr>> {
        if !self.may_fail(condition)? {
            return Ok(None);
        }
        let parts = split_conjunction_owned(condition.clone());
        // The saved searches and times that these name decide requests, and are not seen within a CASE.
        let mut implied = Vec::new();
        for part in &parts {
            if self.may_fail(part)?
                && let Some(weaker) = self.implied(part, false)?
            {
                implied.push((part.clone(), weaker));
            }
        }
        let parts = parts.into_iter().map(|part| self.guarded_within(part)).collect::<Result<Vec<_>>>()?;
        let (guards, failing) = self.divided(parts)?;
        let few = are_few(guards.len(), failing.len());
        let (mut conditions, mut alone) = (guards.clone(), Vec::new());
        for mut part in failing {
            match &mut part {
                Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) if is_key(left, right) => {
                    if few {
                        self.guard_key(&guards, left)?;
                        self.guard_key(&guards, right)?;
                    }
                    conditions.push(part);
                }
                _ => alone.push(part),
            }
        }
        for group in groups(alone) {
            conditions.push(guarded_group(&guards, group)?);
        }
        if are_few(implied.len(), conditions.len()) {
            implied.retain(|(part, _)| !conditions.contains(part));
        }
        conditions.extend(implied.into_iter().map(|(_, weaker)| weaker));
        Ok(conjunction(conditions))
    }

    /// Returns what follows from a condition, or from its negation, without its parts that may fail; `None` if that is nothing.
    fn implied(self, condition: &Expr, negated: bool) -> Result<Option<Expr>> {
        if let Expr::Not(inner) = condition {
            return self.implied(inner, !negated);
        }
        if let Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) = condition {
            let all = (*op == Operator::And) != negated;
            let mut known = Vec::new();
            for part in split_binary(condition, *op) {
                match self.implied(part, negated)? {
                    Some(part) => known.push(part),
                    None if !all => return Ok(None),
                    None => {}
                }
            }
            let op = if all { Operator::And } else { Operator::Or };
            return Ok(known.into_iter().reduce(|left, right| binary_expr(left, op, right)));
        }
        let once = condition.is_volatile() || condition.contains_outer() || has_subquery(condition);
        if once || self.may_fail(condition)? {
            return Ok(None);
        }
        Ok(Some(if negated { Expr::Not(Box::new(condition.clone())) } else { condition.clone() }))
    }

    /// The join with guarded conditions. A key that may fail is NULL, which equals nothing, where a condition excludes the row.
    fn guarded_join(self, mut join: Join) -> Result<Transformed<LogicalPlan>> {
        let mut changed = false;
        if let Some(filter) = join.filter.take() {
            let (guards, _) = self.divided(split_conjunction_owned(filter.clone()))?;
            if join.null_equality == NullEquality::NullEqualsNothing {
                for (left, right) in &mut join.on {
                    for key in [left, right] {
                        changed |= self.guard_key(&guards, key)?;
                    }
                }
            }
            let guarded = self.guarded_condition(&filter)?;
            changed |= guarded.is_some();
            join.filter = Some(guarded.unwrap_or(filter));
        }
        let node = LogicalPlan::Join(join);
        Ok(if changed { Transformed::yes(node) } else { Transformed::no(node) })
    }

    /// Replaces a key that may fail with NULL where the guards about its columns are not true. Returns whether it did.
    fn guard_key(self, guards: &[Expr], key: &mut Expr) -> Result<bool> {
        if key.contains_outer() || !self.may_fail(key)? {
            return Ok(false);
        }
        let Some(guard) = guard_of(guards, key, Operator::And) else { return Ok(false) };
        *key = when(guard, key.clone()).end()?;
        Ok(true)
    }

    /// The expression with guarded parts in its conjunctions, disjunctions and choices between conditions.
    fn guarded_within(self, expr: Expr) -> Result<Expr> {
        if !self.may_fail(&expr)? {
            return Ok(expr);
        }
        expr.transform_down(|part| match part {
            Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
                let parts: Vec<Expr> = split_binary(&part, op).into_iter().cloned().collect();
                let parts = parts.into_iter().map(|part| self.guarded_within(part)).collect::<Result<Vec<_>>>()?;
                let whole = self.open_ones(parts, op)?.into_iter().reduce(|left, right| binary_expr(left, op, right));
                Ok(Transformed::new(whole.unwrap_or(part), true, TreeNodeRecursion::Jump))
            }
            Expr::Case(case) if self.chooses_condition(&case) && self.may_fail(&Expr::Case(case.clone()))? => {
                Ok(Transformed::new(self.chosen_number(case)?, true, TreeNodeRecursion::Jump))
            }
            other => Ok(Transformed::no(other)),
        })
        .data()
    }

    /// True for a choice between conditions.
    fn chooses_condition(self, case: &Case) -> bool {
        let results = || case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
        let is = |result: &Expr, wanted: &DataType| self.has_type(result, |data_type| data_type == wanted);
        results().any(|result| is(result, &DataType::Boolean))
            && results().all(|result| is(result, &DataType::Boolean) || is(result, &DataType::Null))
    }

    /// A choice between conditions as one between numbers: the optimizer turns a CASE of truth values into AND and OR, and moves
    /// an equality into a CASE of literals.
    fn chosen_number(self, case: Case) -> Result<Expr> {
        let guarded = |part: Box<Expr>| -> Result<Box<Expr>> { Ok(Box::new(self.guarded_within(*part)?)) };
        let number =
            |part: Box<Expr>| -> Result<Box<Expr>> { Ok(Box::new(cast(self.guarded_within(*part)?, DataType::Int8))) };
        let mut when_then_expr = Vec::with_capacity(case.when_then_expr.len());
        for (condition, result) in case.when_then_expr {
            when_then_expr.push((guarded(condition)?, number(result)?));
        }
        let expr = case.expr.map(guarded).transpose()?;
        let else_expr = case.else_expr.map(number).transpose()?;
        Ok(Expr::Case(Case { expr, when_then_expr, else_expr }).gt(lit(0_i8)))
    }

    /// Conditions that cannot fail, and those that may.
    fn divided(self, parts: Vec<Expr>) -> Result<(Vec<Expr>, Vec<Expr>)> {
        let (mut guards, mut failing) = (Vec::new(), Vec::new());
        for part in parts {
            if self.may_fail(&part)? { failing.push(part) } else { guards.push(part) }
        }
        Ok((guards, failing))
    }

    /// The parts of a conjunction or disjunction, those that may fail computed only if the other parts about the same columns leave
    /// the result open. The others come first.
    fn open_ones(self, parts: Vec<Expr>, op: Operator) -> Result<Vec<Expr>> {
        let (guards, failing) = self.divided(parts)?;
        if !are_few(guards.len(), failing.len()) {
            return Ok(guards.into_iter().chain(failing).collect());
        }
        let below_guard = |expr: Expr| -> Result<Expr> {
            let Some(guard) = guard_of(&guards, &expr, op) else { return Ok(expr) };
            let open = if op == Operator::Or { guard.is_not_true() } else { guard.is_not_false() };
            only_where(open, expr)
        };
        let failing = failing.into_iter().map(below_guard).collect::<Result<Vec<_>>>()?;
        Ok(guards.into_iter().chain(failing).collect())
    }

    /// True for an expression that has no value for some rows: a division by what may be zero, a cast, an integer out of range, or
    /// a function without a value for some arguments. A subquery is computed in any case.
    fn may_fail(self, expr: &Expr) -> Result<bool> {
        let fails = expr.exists(|part| {
            Ok(match part {
                Expr::BinaryExpr(BinaryExpr { op: Operator::Divide | Operator::Modulo, right, .. }) => {
                    !matches!(right.as_ref(), Expr::Literal(..))
                }
                Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_sum(*op) => {
                    // That of the first operands in a chain has the type of all.
                    let is_operand =
                        |side: &Expr| !matches!(side, Expr::BinaryExpr(BinaryExpr { op, .. }) if is_sum(*op));
                    is_operand(left)
                        && is_operand(right)
                        && self.varies(part)
                        && [left, right].iter().all(|side| self.has_type(side, DataType::is_integer))
                }
                Expr::Cast(Cast { expr, field }) => {
                    self.varies(expr) && self.has_type(expr, |from| loses(from, field.data_type()))
                }
                Expr::ScalarFunction(function) => self.call_may_fail(function),
                _ => false,
            })
        })?;
        Ok(fails && !has_subquery(expr))
    }

    /// True for a function without a value for some arguments, and for one that reads a time in a text.
    fn call_may_fail(self, function: &ScalarFunction) -> bool {
        let name = function.func.name();
        let reads_text = |arg: &Expr| self.varies(arg) && self.has_type(arg, DataType::is_string);
        match (name, function.args.as_slice()) {
            ("postgres_divide" | "postgres_modulo", _) => true,
            ("postgres_cast", [value, Expr::Literal(to, _), ..]) => {
                let to_text = matches!(to.try_as_str().flatten(), Some("text" | "output" | "output[]"));
                !to_text && self.varies(value)
            }
            _ if has_domain(name) => true,
            (_, args) => {
                args.iter().any(reads_text)
                    && self.has_type(&Expr::ScalarFunction(function.clone()), DataType::is_temporal)
            }
        }
    }

    /// True for an expression of columns other than times, whose parts have values in range.
    fn varies(self, expr: &Expr) -> bool {
        let is_time = |column: &&Column| self.has_type(&Expr::Column((*column).clone()), DataType::is_temporal);
        expr.contains_outer() || !expr.column_refs().iter().all(is_time)
    }

    fn has_type(self, expr: &Expr, is: impl Fn(&DataType) -> bool) -> bool {
        expr.type_in(self.schema).is_ok_and(|data_type| is(&data_type))
    }
}

/// True if some values of a type are none of another.
fn loses(from: &DataType, to: &DataType) -> bool {
    match (from.is_integer(), to.is_integer()) {
        _ if from.is_string() => !to.is_string(),
        (true, true) => {
            from.primitive_width() > to.primitive_width() || from.is_signed_integer() != to.is_signed_integer()
        }
        (false, true) => from.is_floating() || from.is_decimal(),
        _ => to.is_decimal() && from.is_numeric(),
    }
}

/// The condition, as far as the guard is true. As a number: the optimizer turns a CASE of truth values into AND and OR.
fn only_where(guard: Expr, condition: Expr) -> Result<Expr> {
    Ok(when(guard, cast(condition, DataType::Int8)).end()?.eq(lit(1_i8)))
}

/// True if a copy of all guards for each part that may fail is not too much.
fn are_few(guards: usize, failing: usize) -> bool {
    guards.saturating_mul(failing) <= COPIES
}

/// The guards about the columns of an expression, which can be evaluated twice.
fn guard_of(guards: &[Expr], expr: &Expr, op: Operator) -> Option<Expr> {
    let columns = expr.column_refs();
    let about = |guard: &&Expr| {
        let of_guard = guard.column_refs();
        let repeatable = !guard.is_volatile() && !has_subquery(guard);
        repeatable && !of_guard.is_empty() && of_guard.is_subset(&columns)
    };
    guards.iter().filter(about).cloned().reduce(|left, right| binary_expr(left, op, right))
}

/// True for the sides of an equality of several tables, which joins them.
fn is_key(left: &Expr, right: &Expr) -> bool {
    let (of_left, of_right) = (tables(left), tables(right));
    left.contains_outer()
        || right.contains_outer()
        || (!of_left.is_empty() && !of_right.is_empty() && of_left.is_disjoint(&of_right))
}

fn tables(expr: &Expr) -> HashSet<Option<TableReference>> {
    tables_of(expr.column_refs())
}

fn tables_of<'c>(columns: impl IntoIterator<Item = &'c Column>) -> HashSet<Option<TableReference>> {
    columns.into_iter().map(|column| column.relation.clone()).collect()
}

/// Columns, and the conditions over them with their places in the statement.
type Group = (HashSet<Column>, Vec<(usize, Expr)>);

/// Conditions over columns of the same tables that share columns, directly or through others, in the order of the statement. Others
/// do not guard each other, so that a condition on the aid alone still excludes saved searches. Each that uses a column of an outer
/// query is alone.
fn groups(conditions: Vec<Expr>) -> Vec<Vec<Expr>> {
    let mut groups: Vec<Group> = Vec::new();
    let mut of_outer = Vec::new();
    for (at, condition) in conditions.into_iter().enumerate() {
        if condition.contains_outer() {
            of_outer.push(vec![condition]);
            continue;
        }
        let columns: HashSet<Column> = condition.column_refs().into_iter().cloned().collect();
        let of = tables_of(&columns);
        let (mut shared, others): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|(known, _)| !known.is_disjoint(&columns) && tables_of(known) == of);
        groups = others;
        let (mut known, mut group) = shared.pop().unwrap_or_default();
        known.extend(columns);
        group.push((at, condition));
        for (columns, conditions) in shared {
            known.extend(columns);
            group.extend(conditions);
        }
        groups.push((known, group));
    }
    let in_order = |(_, mut group): Group| {
        group.sort_by_key(|(at, _)| *at);
        group.into_iter().map(|(_, condition)| condition).collect::<Vec<Expr>>()
    };
    groups.into_iter().map(in_order).chain(of_outer).collect()
}

/// Conditions that may fail, each evaluated only where the guards and the conditions before it are true.
fn guarded_group(guards: &[Expr], mut group: Vec<Expr>) -> Result<Expr> {
    let guard = conjunction(group.iter().cloned()).and_then(|all| guard_of(guards, &all, Operator::And));
    let Some(last) = group.pop() else { return Ok(lit(true)) };
    if group.is_empty() {
        return match guard {
            Some(guard) => only_where(guard, last),
            None => Ok(last),
        };
    }
    let none = || Box::new(lit(0_i8));
    let before = guard.into_iter().chain(group);
    let when_then_expr = before.map(|condition| (Box::new(condition.is_not_true()), none())).collect();
    let else_expr = Some(Box::new(cast(last, DataType::Int8)));
    Ok(Expr::Case(Case { expr: None, when_then_expr, else_expr }).gt(lit(0_i8)))
}
