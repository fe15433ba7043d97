//! Functions that clients of PostgreSQL call about catalogs and sessions.
//!
//! Each is computed row by row: catalogs are small.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, StructArray};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use datafusion::prelude::SessionContext;

use super::tables::World;

/// Functions that are true of everything.
const TRUE: [&str; 3] = ["has_database_privilege", "has_type_privilege", "pg_has_role"];

/// Functions that are false of everything.
const FALSE: [&str; 4] =
    ["pg_is_in_recovery", "pg_is_other_temp_schema", "pg_relation_is_publishable", "has_function_privilege"];

/// Functions whose result is always zero.
const ZERO: [&str; 10] = [
    "pg_relation_size",
    "pg_total_relation_size",
    "pg_table_size",
    "pg_indexes_size",
    "pg_database_size",
    "pg_stat_get_numscans",
    "pg_backend_pid",
    "txid_current",
    "pg_my_temp_schema",
    "inet_server_port",
];

/// Functions of texts that are always NULL.
const NULL: [&str; 19] = [
    "obj_description",
    "col_description",
    "shobj_description",
    "pg_get_expr",
    "pg_get_viewdef",
    "pg_get_partkeydef",
    "pg_get_serial_sequence",
    "pg_get_statisticsobjdef_columns",
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_function_result",
    "pg_get_functiondef",
    "pg_get_function_sqlbody",
    "pg_get_ruledef",
    "pg_get_triggerdef",
    "pg_tablespace_location",
    "inet_server_addr",
    "inet_client_addr",
    // Pools call it before they reuse a connection. There are no locks.
    "pg_advisory_unlock_all",
];

type Answer = Arc<dyn Fn(&[ScalarValue]) -> ScalarValue + Send + Sync>;

/// A function by its answer for one row.
struct Function {
    name: &'static str,
    signature: Signature,
    returns: DataType,
    answer: Answer,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Function").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.answer, &other.answer)
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let mut values = Vec::with_capacity(rows);
        for row in 0..rows {
            let row = args.args.iter().map(|arg| match arg {
                ColumnarValue::Scalar(value) => Ok(value.clone()),
                ColumnarValue::Array(array) => ScalarValue::try_from_array(array, row),
            });
            values.push((self.answer)(&row.collect::<Result<Vec<_>>>()?));
        }
        match <[ScalarValue; 1]>::try_from(values) {
            Ok([value]) if constant => Ok(ColumnarValue::Scalar(value)),
            Ok(values) => Ok(ColumnarValue::Array(ScalarValue::iter_to_array(values)?)),
            Err(values) if values.is_empty() => {
                Ok(ColumnarValue::Array(ScalarValue::try_from(&self.returns)?.to_array_of_size(0)?))
            }
            Err(values) => Ok(ColumnarValue::Array(ScalarValue::iter_to_array(values)?)),
        }
    }
}

/// Text of an argument; `None` if it is missing or no text.
fn text(value: Option<&ScalarValue>) -> Option<String> {
    value?.cast_to(&DataType::Utf8).ok().and_then(|value| match value {
        ScalarValue::Utf8(text) => text,
        _ => None,
    })
}

/// Number of an argument.
fn number(value: Option<&ScalarValue>) -> Option<i64> {
    value?.cast_to(&DataType::Int64).ok().and_then(|value| match value {
        ScalarValue::Int64(number) => number,
        _ => None,
    })
}

/// A list of texts.
fn texts(values: impl Iterator<Item = ScalarValue>) -> ScalarValue {
    ScalarValue::List(ScalarValue::new_list_nullable(&values.collect::<Vec<_>>(), &DataType::Utf8))
}

/// Registers the functions.
pub(super) fn register(context: &SessionContext, world: &Arc<World>) {
    let registry = Registry { context, world };
    registry.session();
    registry.objects();
    registry.privileges();
    registry.texts();
    registry.arrays();
    for (names, value) in [
        (&TRUE[..], ScalarValue::Boolean(Some(true))),
        (&FALSE[..], ScalarValue::Boolean(Some(false))),
        (&ZERO[..], ScalarValue::Int64(Some(0))),
        (&NULL[..], ScalarValue::Utf8(None)),
    ] {
        names.iter().for_each(|name| registry.fixed(name, value.clone()));
    }
}

/// Session whose functions are registered.
struct Registry<'a> {
    context: &'a SessionContext,
    world: &'a Arc<World>,
}

impl Registry<'_> {
    fn add(&self, name: &'static str, returns: DataType, answer: Answer) {
        let signature = Signature::one_of(vec![TypeSignature::VariadicAny, TypeSignature::Nullary], Volatility::Stable);
        self.context.register_udf(ScalarUDF::from(Function { name, signature, returns, answer }));
    }

    /// Adds a function that always has the same result.
    fn fixed(&self, name: &'static str, value: ScalarValue) {
        self.add(name, value.data_type(), Arc::new(move |_| value.clone()));
    }

    /// Adds a function of the contents of the session.
    fn of(&self, name: &'static str, returns: DataType, answer: fn(&World, &[ScalarValue]) -> ScalarValue) {
        let world = Arc::clone(self.world);
        self.add(name, returns, Arc::new(move |args| answer(&world, args)));
    }

    /// Functions of the user, the names and the settings of the session.
    fn session(&self) {
        let world = self.world;
        let version = format!(
            "PostgreSQL {} (savedsearch {})",
            world.setting("server_version").unwrap_or_default(),
            env!("CARGO_PKG_VERSION")
        );
        self.fixed("version", ScalarValue::from(version.as_str()));
        self.fixed("current_database", ScalarValue::from(world.database.as_str()));
        self.fixed("current_catalog", ScalarValue::from(world.database.as_str()));
        self.fixed("current_schema", ScalarValue::from(world.schema.as_str()));
        let started = ScalarValue::TimestampMicrosecond(Some(world.started.timestamp_micros()), Some("UTC".into()));
        for name in ["pg_postmaster_start_time", "pg_conf_load_time"] {
            self.fixed(name, started.clone());
        }
        for name in ["current_user", "session_user", "current_role", "user"] {
            self.fixed(name, ScalarValue::from(world.user.as_str()));
        }
        self.of("current_schemas", DataType::new_list(DataType::Utf8, true), |world, args| {
            let implicit = matches!(args.first(), Some(ScalarValue::Boolean(Some(true))));
            let both = [super::PG_CATALOG, world.schema.as_str()];
            texts(both.into_iter().skip(usize::from(!implicit)).map(ScalarValue::from))
        });
        self.of("current_setting", DataType::Utf8, |world, args| {
            ScalarValue::Utf8(text(args.first()).and_then(|name| world.setting(&name)))
        });
        self.of("set_config", DataType::Utf8, |_, args| ScalarValue::Utf8(text(args.get(1))));
        self.of("pg_get_userbyid", DataType::Utf8, |world, _| ScalarValue::from(world.user.as_str()));
        self.of("pg_encoding_to_char", DataType::Utf8, |_, _| ScalarValue::from("UTF8"));
    }

    /// Functions of identifiers, names and definitions of objects.
    fn objects(&self) {
        self.of("format_type", DataType::Utf8, |world, args| {
            ScalarValue::Utf8(number(args.first()).map(|oid| world.type_name(oid).unwrap_or("???").to_owned()))
        });
        self.of("to_regclass", DataType::Int64, |world, args| {
            let found = text(args.first()).and_then(|name| name.parse().ok().or_else(|| world.relation(&name)));
            ScalarValue::Int64(found)
        });
        self.of("to_regtype", DataType::Int64, |world, args| {
            let found = text(args.first()).and_then(|name| name.parse().ok().or_else(|| world.type_oid(&name)));
            ScalarValue::Int64(found)
        });
        self.of("to_regnamespace", DataType::Int64, |world, args| {
            let found = text(args.first()).and_then(|name| name.parse().ok().or_else(|| world.namespace(&name)));
            ScalarValue::Int64(found)
        });
        self.of("to_regproc", DataType::Int64, |world, args| {
            ScalarValue::Int64(text(args.first()).and_then(|name| world.function(&name)))
        });
        self.of("pg_relation_name", DataType::Utf8, |world, args| {
            let name = number(args.first()).map(|oid| world.relation_name(oid).unwrap_or_else(|| oid.to_string()));
            ScalarValue::Utf8(name)
        });
        self.of("pg_proc_name", DataType::Utf8, |_, args| {
            let oid = number(args.first()).and_then(|oid| u64::try_from(oid).ok());
            ScalarValue::Utf8(oid.map(|oid| super::function_name(oid).into_owned()))
        });
        self.of("pg_namespace_name", DataType::Utf8, |world, args| {
            let name = number(args.first()).map(|oid| world.namespace_name(oid).unwrap_or_else(|| oid.to_string()));
            ScalarValue::Utf8(name)
        });
        self.of("pg_get_constraintdef", DataType::Utf8, |world, args| {
            ScalarValue::Utf8(number(args.first()).and_then(|oid| world.key_definition(oid)))
        });
        self.of("pg_get_indexdef", DataType::Utf8, |world, args| {
            let at = number(args.get(1)).filter(|at| *at > 0);
            ScalarValue::Utf8(number(args.first()).and_then(|oid| world.index_definition(oid, at)))
        });
        for name in ["pg_table_is_visible", "pg_type_is_visible", "pg_function_is_visible", "pg_collation_is_visible"] {
            self.of(name, DataType::Boolean, |world, args| {
                ScalarValue::Boolean(number(args.first()).map(|oid| world.is_visible(oid)))
            });
        }
    }

    /// Functions of privileges that users may have.
    fn privileges(&self) {
        for name in ["has_table_privilege", "has_any_column_privilege", "has_column_privilege", "has_schema_privilege"]
        {
            // The privilege is the last argument.
            self.of(name, DataType::Boolean, |_, args| {
                let privilege = text(args.last()).unwrap_or_default().to_lowercase();
                ScalarValue::Boolean(Some(privilege.contains("select") || privilege.contains("usage")))
            });
        }
    }

    /// Functions that write and read texts.
    fn texts(&self) {
        self.of("pg_size_pretty", DataType::Utf8, |_, args| {
            ScalarValue::Utf8(number(args.first()).map(|bytes| format!("{bytes} bytes")))
        });
        self.of("parse_ident", DataType::new_list(DataType::Utf8, true), |_, args| {
            let name = text(args.first());
            let parts = name.iter().flat_map(|name| name.split('.'));
            texts(parts.map(|part| ScalarValue::from(part.replace('"', ""))))
        });
        self.of("quote_ident", DataType::Utf8, |_, args| {
            let plain = |name: &str| {
                let mut characters = name.chars();
                characters.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_')
                    && characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            };
            let quoted = |name: String| if plain(&name) { name } else { format!("\"{}\"", name.replace('"', "\"\"")) };
            ScalarValue::Utf8(text(args.first()).map(quoted))
        });
    }

    /// Functions of arrays.
    fn arrays(&self) {
        let item = DataType::Struct(
            vec![Field::new("x", DataType::Int64, true), Field::new("n", DataType::Int64, true)].into(),
        );
        let nothing = ScalarValue::List(ScalarValue::new_list_nullable(&[], &item));
        self.add(
            "pg_expandarray",
            nothing.data_type(),
            Arc::new(move |args| {
                let Some(ScalarValue::List(list)) = args.first() else { return nothing.clone() };
                let items = ScalarValue::convert_array_to_scalar_vec(list.as_ref()).unwrap_or_default();
                let items = items.into_iter().flatten().flatten().zip(1..).map(|(x, n)| {
                    let [x, n] = [x, ScalarValue::Int64(Some(n))].map(|value| value.to_array_of_size(1).ok());
                    let DataType::Struct(fields) = &item else { return ScalarValue::Null };
                    let columns = x.into_iter().chain(n).collect::<Vec<_>>();
                    StructArray::try_new(fields.clone(), columns, None)
                        .map_or(ScalarValue::Null, |value| ScalarValue::Struct(Arc::new(value)))
                });
                ScalarValue::List(ScalarValue::new_list_nullable(&items.collect::<Vec<_>>(), &item))
            }),
        );
        for (name, first) in [("array_lower", true), ("array_upper", false)] {
            self.add(
                name,
                DataType::Int64,
                Arc::new(move |args| {
                    let length = match args.first() {
                        Some(ScalarValue::List(list)) if !list.is_null(0) => i64::try_from(list.value(0).len()).ok(),
                        _ => None,
                    };
                    ScalarValue::Int64(length.filter(|length| *length > 0).map(|length| if first { 1 } else { length }))
                }),
            );
        }
    }
}
