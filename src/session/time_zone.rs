//! `SET timezone`, in the forms that people know from other databases, as the setting `savedsearch.timezone`.

use datafusion::sql::parser::{ResetStatement, Statement};
use datafusion::sql::sqlparser::ast::{ContextModifier, Ident, ObjectName, ObjectNamePart, Set, Statement as Ast};

/// The setting behind all forms.
const SETTING: [&str; 2] = ["savedsearch", "timezone"];

/// Replaces `SET|SHOW|RESET TIMEZONE` and `SET TIME ZONE` by the same for `savedsearch.timezone`; other statements stay.
///
/// The engine's option `execution.time_zone` is left alone: it changes the type of `now()`, and with it what is pushed down.
pub(crate) fn resolve_time_zone(statement: Statement) -> Statement {
    match statement {
        Statement::Statement(ast) => Statement::Statement(Box::new(match *ast {
            Ast::Set(Set::SetTimeZone { value, .. }) => assignment(vec![value]),
            Ast::Set(Set::SingleAssignment { variable, values, .. }) if is_alias(&variable) => assignment(values),
            Ast::ShowVariable { variable } if is_alias_of(&variable) => {
                Ast::ShowVariable { variable: SETTING.map(Ident::new).to_vec() }
            }
            other => other,
        })),
        Statement::Reset(ResetStatement::Variable(variable)) if is_alias(&variable) => {
            Statement::Reset(ResetStatement::Variable(setting()))
        }
        other => other,
    }
}

fn assignment(values: Vec<datafusion::sql::sqlparser::ast::Expr>) -> Ast {
    let scope: Option<ContextModifier> = None;
    Ast::Set(Set::SingleAssignment { scope, hivevar: false, variable: setting(), values })
}

fn setting() -> ObjectName {
    ObjectName(SETTING.map(|part| ObjectNamePart::Identifier(Ident::new(part))).to_vec())
}

fn is_alias(name: &ObjectName) -> bool {
    let parts: Option<Vec<Ident>> = name.0.iter().map(|part| part.as_ident().cloned()).collect();
    parts.is_some_and(|parts| is_alias_of(&parts))
}

fn is_alias_of(parts: &[Ident]) -> bool {
    match parts {
        [one] => one.value.eq_ignore_ascii_case("timezone"),
        [one, other] => one.value.eq_ignore_ascii_case("time") && other.value.eq_ignore_ascii_case("zone"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    #[test]
    fn all_forms_name_one_setting() {
        for (sql, expected) in [
            ("SET timezone = 'Europe/Berlin'", "SET savedsearch.timezone = 'Europe/Berlin'"),
            ("SET TIMEZONE TO 'UTC'", "SET savedsearch.timezone = 'UTC'"),
            ("SET TIME ZONE 'Asia/Tokyo'", "SET savedsearch.timezone = 'Asia/Tokyo'"),
            ("SHOW timezone", "SHOW savedsearch.timezone"),
            ("SHOW TIME ZONE", "SHOW savedsearch.timezone"),
            ("RESET timezone", "RESET savedsearch.timezone"),
            ("SET datafusion.execution.time_zone = 'UTC'", "SET datafusion.execution.time_zone = 'UTC'"),
        ] {
            let parse = |sql: &str| DFParser::parse_sql(sql).expect("SQL").pop_front().expect("a statement");
            let shown = |statement: Statement| statement.to_string().replace(", ", ".").to_lowercase();
            assert_eq!(shown(resolve_time_zone(parse(sql))), shown(parse(expected)), "{sql}");
        }
    }
}
