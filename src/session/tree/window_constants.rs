//! Arguments of window functions and distances of frames that the engine takes as literals only.
//!
//! | syntax | translation |
//! | --- | --- |
//! | `lag(x, 1, y) OVER w` | `CASE WHEN lag(true, 1) OVER w THEN lag(x, 1) OVER w ELSE y END` |
//! | `ROWS BETWEEN 1 + 1 PRECEDING …` | `ROWS BETWEEN 2 PRECEDING …` |

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
    NamedWindowExpr, NullTreatment, Select, Value, ValueWithSpan, WindowFrameBound, WindowSpec, WindowType,
};

use crate::session::nodes::case_of;
use crate::session::syntax;

/// `lag` or `lead` with a default that differs between rows, in a form with a default that the engine does not see. `None` for other
/// calls.
pub(in crate::session) fn with_default(function: &Function) -> Option<Expr> {
    let shifts = ["lag", "lead"].iter().any(|name| function.name.to_string().eq_ignore_ascii_case(name));
    let FunctionArguments::List(list) = &function.args else { return None };
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(offset)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(default)),
    ] = list.args.as_slice()
    else {
        return None;
    };
    let mut differs = false;
    syntax::expressions(default, &mut |part| {
        differs |= matches!(part, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    });
    // The result for an offset of NULL is NULL, not the default.
    if !shifts || !differs || function.over.is_none() || whole_number(offset).is_none() {
        return None;
    }
    let in_arguments = |clause: &FunctionArgumentClause| {
        matches!(clause, FunctionArgumentClause::IgnoreOrRespectNulls(NullTreatment::IgnoreNulls))
    };
    let ignores_nulls =
        function.null_treatment == Some(NullTreatment::IgnoreNulls) || list.clauses.iter().any(in_arguments);
    let yes = Expr::Value(Value::Boolean(true).into());
    let present = match ignores_nulls {
        true => case_of(vec![(Expr::IsNotNull(Box::new(Expr::Nested(Box::new(value.clone())))), yes)], None),
        false => yes,
    };
    let shifted = |value: Expr| {
        let mut function = function.clone();
        if let FunctionArguments::List(list) = &mut function.args {
            list.args = [value, offset.clone()].map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).into();
        }
        Expr::Function(function)
    };
    Some(case_of(vec![(shifted(present), shifted(value.clone()))], Some(default.clone())))
}

/// Computes the distances of a function's frame.
pub(in crate::session) fn of_function(function: &mut Function) {
    if let Some(WindowType::WindowSpec(window)) = &mut function.over {
        with_numbers(window);
    }
}

/// Computes the distances of the frames of named windows.
pub(in crate::session) fn of_select(select: &mut Select) {
    for window in &mut select.named_window {
        if let NamedWindowExpr::WindowSpec(window) = &mut window.1 {
            with_numbers(window);
        }
    }
}

fn with_numbers(window: &mut WindowSpec) {
    let Some(frame) = &mut window.window_frame else { return };
    for bound in [Some(&mut frame.start_bound), frame.end_bound.as_mut()].into_iter().flatten() {
        let (WindowFrameBound::Preceding(Some(distance)) | WindowFrameBound::Following(Some(distance))) = bound else {
            continue;
        };
        if !matches!(**distance, Expr::Value(_))
            && let Some(number) = whole_number(distance).filter(|number| *number >= 0)
        {
            **distance = Expr::Value(Value::Number(number.to_string(), false).into());
        }
    }
}

/// The whole number that an expression of whole numbers is; `None` for another one.
fn whole_number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Nested(inner) => whole_number(inner),
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => digits.parse().ok(),
        Expr::BinaryOp { left, op, right } => {
            let (left, right) = (whole_number(left)?, whole_number(right)?);
            match op {
                BinaryOperator::Plus => left.checked_add(right),
                BinaryOperator::Minus => left.checked_sub(right),
                BinaryOperator::Multiply => left.checked_mul(right),
                _ => None,
            }
        }
        Expr::Cast {
            expr,
            data_type:
                DataType::Int(_) | DataType::Integer(_) | DataType::BigInt(_) | DataType::Int4(_) | DataType::Int8(_),
            ..
        } => whole_number(expr),
        _ => None,
    }
}
