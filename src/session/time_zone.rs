//! `SET timezone`, in the forms that people know from other databases, as the setting `savedsearch.timezone`.
//!
//! The engine's option `execution.time_zone` follows: it is the zone of `now()`, of literals and of casts to instants.

use datafusion::common::Result;
use datafusion::logical_expr::{LogicalPlan, SetVariable, Statement as Utility};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{ResetStatement, Statement};
use datafusion::sql::sqlparser::ast::{
    ContextModifier, Expr, Ident, ObjectName, ObjectNamePart, Set, Statement as Ast, Value,
};

use crate::config::SessionSettings;

/// The setting behind all forms.
const SETTING: [&str; 2] = ["savedsearch", "timezone"];
/// The engine's option that follows it.
const ENGINE: [&str; 3] = ["datafusion", "execution", "time_zone"];

/// Replaces `SET|SHOW|RESET TIMEZONE` and `SET TIME ZONE` by the same for `savedsearch.timezone`; other statements stay.
pub(crate) fn resolve_time_zone(statement: Statement) -> Statement {
    match statement {
        Statement::Statement(ast) => match *ast {
            Ast::Set(Set::SetTimeZone { value, .. }) => assignment(vec![value]),
            Ast::Set(Set::SingleAssignment { variable, values, .. }) if is_alias(&variable) => assignment(values),
            Ast::ShowVariable { variable } if is_short_alias(&variable) => {
                let variable = SETTING.map(Ident::new).to_vec();
                Statement::Statement(Box::new(Ast::ShowVariable { variable }))
            }
            other => Statement::Statement(Box::new(other)),
        },
        Statement::Reset(ResetStatement::Variable(variable)) if is_alias(&variable) => {
            Statement::Reset(ResetStatement::Variable(setting()))
        }
        other => other,
    }
}

/// Makes the engine's zone that of the setting, after a statement that may have changed it.
///
/// # Errors
/// Those of the engine's `SET`.
pub(crate) async fn follow_time_zone(context: &SessionContext) -> Result<()> {
    let zone = SessionSettings::of(context.state().config_options()).timezone;
    let value = if zone.is_empty() { "UTC".to_owned() } else { zone };
    let set = Utility::SetVariable(SetVariable { variable: ENGINE.join("."), value });
    // As a statement, so that functions that depend on the zone are made again.
    context.execute_logical_plan(LogicalPlan::Statement(set)).await.map(drop)
}

/// Name of a session's time zone.
#[cfg(feature = "postgres")]
pub(crate) fn time_zone(context: &SessionContext) -> String {
    let zone = SessionSettings::zone(context.state().config_options());
    if zone.is_empty() { "UTC".to_owned() } else { zone }
}

fn assignment(values: Vec<Expr>) -> Statement {
    let word = |value: &Expr, word: &str| matches!(value, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case(word));
    let values = match values.as_slice() {
        [value] if word(value, "local") || word(value, "default") => {
            return Statement::Reset(ResetStatement::Variable(setting()));
        }
        // `INTERVAL '+02:00' HOUR TO MINUTE`, as the standard writes it.
        [Expr::Interval(interval)] => vec![interval.value.as_ref().clone()],
        // A name in double quotes.
        [Expr::Identifier(name)] => vec![Expr::Value(Value::SingleQuotedString(name.value.clone()).into())],
        _ => values,
    };
    let scope: Option<ContextModifier> = None;
    let set = Set::SingleAssignment { scope, hivevar: false, variable: setting(), values };
    Statement::Statement(Box::new(Ast::Set(set)))
}

fn setting() -> ObjectName {
    ObjectName(SETTING.map(|part| ObjectNamePart::Identifier(Ident::new(part))).to_vec())
}

fn is_alias(name: &ObjectName) -> bool {
    let parts: Option<Vec<Ident>> = name.0.iter().map(|part| part.as_ident().cloned()).collect();
    let is = |parts: &[Ident], names: &[&str]| {
        parts.len() == names.len() && parts.iter().zip(names).all(|(part, name)| part.value.eq_ignore_ascii_case(name))
    };
    parts.is_some_and(|parts| is_short_alias(&parts) || is(&parts, &SETTING) || is(&parts, &ENGINE))
}

fn is_short_alias(parts: &[Ident]) -> bool {
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
    use crate::cases::each;

    #[test]
    fn all_forms_name_one_setting() {
        let cases = [
            ("SET timezone = 'Europe/Berlin'", "SET savedsearch.timezone = 'Europe/Berlin'"),
            ("SET TIMEZONE TO 'UTC'", "SET savedsearch.timezone = 'UTC'"),
            ("SET TIMEZONE = UTC", "SET savedsearch.timezone = 'UTC'"),
            ("SET \"TimeZone\" = \"Asia/Tokyo\"", "SET savedsearch.timezone = 'Asia/Tokyo'"),
            ("SET TIME ZONE 'Asia/Tokyo'", "SET savedsearch.timezone = 'Asia/Tokyo'"),
            ("SET SESSION TIME ZONE 'Asia/Tokyo'", "SET savedsearch.timezone = 'Asia/Tokyo'"),
            ("SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE", "SET savedsearch.timezone = '+00:00'"),
            ("SET TIME ZONE -7", "SET savedsearch.timezone = -7"),
            ("SET TIME ZONE LOCAL", "RESET savedsearch.timezone"),
            ("SET TIME ZONE DEFAULT", "RESET savedsearch.timezone"),
            ("SET timezone TO default", "RESET savedsearch.timezone"),
            ("SHOW timezone", "SHOW savedsearch.timezone"),
            ("SHOW TIME ZONE", "SHOW savedsearch.timezone"),
            ("RESET timezone", "RESET savedsearch.timezone"),
            ("SET datafusion.execution.time_zone = 'UTC'", "SET savedsearch.timezone = 'UTC'"),
            ("SHOW datafusion.execution.time_zone", "SHOW datafusion.execution.time_zone"),
        ];
        each(cases, |(sql, expected)| {
            let parse = |sql: &str| DFParser::parse_sql(sql).expect("SQL").pop_front().expect("a statement");
            let shown = |statement: Statement| statement.to_string().replace(", ", ".").to_lowercase();
            assert_eq!(shown(resolve_time_zone(parse(sql))), shown(parse(expected)), "{sql}");
        });
    }
}
