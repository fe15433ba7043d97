//! DISTINCT ON whose keys are in ORDER BY in another order, or are not all in it: `DISTINCT ON (a, b) … ORDER BY b, a, c`.
//!
//! The engine requires that ORDER BY begins with all keys, in the order of DISTINCT ON. By PostgreSQL's rule any order of the same keys
//! is right, and ORDER BY may have only some of them.

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, OrderByExpr, OrderByKind, OrderByOptions, Query, Select, SelectItem, SetExpr, Value, ValueWithSpan,
};

use crate::session::nodes::result_of;

/// Puts the keys of DISTINCT ON into the order of ORDER BY, and those that it lacks behind it. Leaves a query whose ORDER BY has
/// another expression before the keys, which the engine refuses.
pub(in crate::session) fn in_order_of_sort(query: &mut Query) {
    let Some(OrderByKind::Expressions(sorts)) = query.order_by.as_mut().map(|order| &mut order.kind) else { return };
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let Select { distinct: Some(Distinct::On(keys)), projection, .. } = select.as_mut() else { return };
    let (mut rest, mut ordered) = (keys.clone(), Vec::new());
    for sort in sorts.iter() {
        if rest.is_empty() {
            break;
        }
        let meant_by_sort = meant(&sort.expr, projection);
        let Some(at) = rest.iter().position(|key| meant(key, projection) == meant_by_sort) else { return };
        ordered.push(rest.remove(at));
    }
    sorts.extend(rest.iter().map(|key| OrderByExpr {
        expr: key.clone(),
        options: OrderByOptions { asc: None, nulls_first: None },
        with_fill: None,
    }));
    ordered.extend(rest);
    *keys = ordered;
}

/// The result at the position that a key is, the result of this name, or the key itself.
fn meant<'a>(key: &'a Expr, results: &'a [SelectItem]) -> &'a Expr {
    let result = match key {
        Expr::Nested(inner) => return meant(inner, results),
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => {
            // Positions behind `*` are not known.
            let at = digits.parse::<usize>().ok().and_then(|at| at.checked_sub(1));
            at.and_then(|at| results.iter().map_while(result_of).nth(at))
        }
        Expr::Identifier(name) => results.iter().find_map(|result| match result {
            SelectItem::ExprWithAlias { expr, alias } if alias == name => Some(expr),
            _ => None,
        }),
        _ => None,
    };
    result.unwrap_or(key)
}
