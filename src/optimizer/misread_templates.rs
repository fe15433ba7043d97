//! Notes on templates of `to_char` that write the month for minutes, or minutes for the month: `'HH24:MM'`, `'%H:%m'`, `'%Y-%M'`.

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::error::shortened;

/// Functions with the parts of templates that are hardly meant, and what these parts write. Templates of PostgreSQL are compared
/// in lower case.
const MISREAD: [(&str, &[&str], &str); 3] = [
    (
        "postgres_to_char",
        &["hh24:mm", "hh12:mm", "hh:mm", "hh24mm", "hh12mm", "hhmm", "mm:ss", "mmss"],
        "`MM` is the month; minutes are `MI`",
    ),
    ("to_char", &["%H:%m", "%I:%m", "%H%m", "%m:%S", "%m%S"], "`%m` is the month; minutes are `%M`"),
    ("to_char", &["%Y-%M", "%Y/%M", "%Y%M", "%d/%M", "%d.%M"], "`%M` is the minute; the month is `%m`"),
];

/// Returns a note on each such template of a plan.
pub(super) fn misread_templates(plan: &LogicalPlan) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::ScalarFunction(ScalarFunction { func, args }) = part
                    && let [_, Expr::Literal(template, _), ..] = args.as_slice()
                    && let Some(template) = template.try_as_str().flatten()
                {
                    notes.extend(note_on(func.name(), template));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(notes)
}

fn note_on(function: &str, template: &str) -> Option<String> {
    let written = if function == "to_char" { template.to_owned() } else { template.to_lowercase() };
    let misread = |parts: &[&str]| parts.iter().any(|part| written.contains(part));
    let (_, _, meaning) = MISREAD.iter().find(|(of, parts, _)| *of == function && misread(parts))?;
    Some(shortened(format!("in the template '{template}' of to_char, {meaning}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_after_hours_and_minutes_after_years_are_noted() {
        let noted = |function: &str, template: &str| note_on(function, template).is_some();
        for template in ["YYYY-MM-DD HH:MM", "YYYY-MM-DD HH24:MM:SS", "hh24:mm", "YYYYMMDDHH24MMSS", "MM:SS"] {
            assert!(noted("postgres_to_char", template), "{template}");
        }
        for template in ["%Y-%m-%d %H:%m", "%H:%m:%S", "%Y-%M-%d", "%d/%M/%Y"] {
            assert!(noted("to_char", template), "{template}");
        }
        for template in ["YYYY-MM-DD HH24:MI:SS", "HH24:MI MM/DD", "YYYYMMDDHH24MISS", "HH24 MM"] {
            assert!(!noted("postgres_to_char", template), "{template}");
        }
        for template in ["%Y-%m-%d %H:%M:%S", "%d.%m.%Y %H%M", "%M:%S"] {
            assert!(!noted("to_char", template), "{template}");
        }
        assert_eq!(note_on("concat", "HH:MM"), None);
    }
}
