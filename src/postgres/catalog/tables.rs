//! The rows of the catalogs: the contents of a session in the form of PostgreSQL.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock};

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListBuilder, StringArray, StringBuilder,
    TimestampMicrosecondArray,
};
use arrow::array::{Int64Builder, RecordBatch};
use arrow::datatypes::{Field, Schema};
use chrono::{DateTime, Utc};
use datafusion::catalog::TableProvider;
use datafusion::common::Constraint;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::logical_expr::TableType;
use datafusion::prelude::SessionContext;

use super::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::host::temporary::for_each;
use crate::postgres::dialect::Names;
use crate::postgres::types::{CatalogType, parameter_type};

/// A table of the catalogs.
struct Catalog {
    oid: i64,
    view: bool,
    /// Names and kinds.
    columns: Vec<(&'static str, char)>,
}

/// The tables of the catalogs, by schema and name.
static CATALOGS: LazyLock<BTreeMap<&'static str, Catalog>> = LazyLock::new(|| {
    let lines = include_str!("columns.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let (table, rest) = line.split_once(' ')?;
            let (kind, columns) = rest.split_once(' ')?;
            let column = |column: &'static str| {
                column.split_once(':').map(|(name, kind)| (name, kind.chars().next().unwrap_or('t')))
            };
            let columns = columns.split(' ').filter_map(column).collect();
            Some((table, Catalog { oid: kind[1..].parse().ok()?, view: kind.starts_with('v'), columns }))
        })
        .collect()
});

/// The types, as `types.txt` has them.
static TYPES: LazyLock<Vec<PgType>> = LazyLock::new(|| {
    let lines = include_str!("types.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let mut words = line.split(' ');
            let oid = words.next()?.parse().ok()?;
            let (name, length, category, kind) =
                (words.next()?, words.next()?.parse().ok()?, words.next()?, words.next()?);
            let mut number = || words.next()?.parse().ok();
            let [element, array, input, receive, collation] = [number()?, number()?, number()?, number()?, number()?];
            let (input_name, receive_name) = (words.next()?, words.next()?);
            Some(PgType {
                oid,
                name,
                length,
                category,
                kind,
                element,
                array,
                input,
                receive,
                collation,
                input_name,
                receive_name,
            })
        })
        .collect()
});

/// Tables that have rows here.
const FILLED: [&str; 26] = [
    "information_schema.columns",
    "information_schema.key_column_usage",
    "information_schema.schemata",
    "information_schema.table_constraints",
    "information_schema.tables",
    "information_schema.views",
    "pg_catalog.pg_am",
    "pg_catalog.pg_attribute",
    "pg_catalog.pg_class",
    "pg_catalog.pg_constraint",
    "pg_catalog.pg_database",
    "pg_catalog.pg_index",
    "pg_catalog.pg_indexes",
    "pg_catalog.pg_language",
    "pg_catalog.pg_namespace",
    "pg_catalog.pg_proc",
    "pg_catalog.pg_roles",
    "pg_catalog.pg_settings",
    "pg_catalog.pg_stat_activity",
    "pg_catalog.pg_stat_user_tables",
    "pg_catalog.pg_stat_all_tables",
    "pg_catalog.pg_tables",
    "pg_catalog.pg_tablespace",
    "pg_catalog.pg_type",
    "pg_catalog.pg_user",
    "pg_catalog.pg_views",
];

/// Object identifiers that PostgreSQL fixes.
const OF_CATALOG: i64 = 11;
const OF_INFORMATION: i64 = 13_000;
const OWNER: i64 = 10;
const HEAP: i64 = 2;
const BTREE: i64 = 403;
/// Identifiers below are those of PostgreSQL itself.
const FIRST_OID: i64 = 16_384;

/// True if a table of the catalogs never has rows here. The name is in lower case; without a schema it is one of `pg_catalog`.
pub(super) fn is_empty(schema: Option<&str>, name: &str) -> bool {
    let full = format!("{}.{name}", schema.unwrap_or(PG_CATALOG));
    CATALOGS.contains_key(full.as_str()) && !FILLED.contains(&full.as_str())
}

/// True for a table of the catalogs.
pub(super) fn is_table(schema: &str, name: &str) -> bool {
    CATALOGS.contains_key(format!("{schema}.{name}").as_str())
}

/// True if a column of this name has functions in the catalogs.
pub(super) fn has_functions(column: &str) -> bool {
    CATALOGS.values().flat_map(|catalog| &catalog.columns).any(|(name, kind)| *kind == 'p' && *name == column)
}

/// True if there are types of this kind: `b` for base types, `d` for domains.
pub(super) fn has_kind(kind: &str) -> bool {
    TYPES.iter().any(|known| known.kind == kind)
}

/// The name of a function that types refer to; the number of another.
pub(in crate::postgres) fn function_name(oid: u64) -> Cow<'static, str> {
    let known = TYPES.iter().flat_map(|known| [(known.input, known.input_name), (known.receive, known.receive_name)]);
    match known.into_iter().find(|(known, _)| u64::try_from(*known) == Ok(oid)) {
        _ if oid == 0 => Cow::Borrowed("-"),
        Some((_, name)) => Cow::Borrowed(name),
        None => Cow::Owned(oid.to_string()),
    }
}

/// True if a column of this name is true or false in the catalogs.
pub(super) fn is_boolean(column: &str) -> bool {
    CATALOGS.values().flat_map(|catalog| &catalog.columns).any(|(name, kind)| *kind == 'b' && *name == column)
}

struct PgType {
    oid: i64,
    name: &'static str,
    length: i64,
    category: &'static str,
    kind: &'static str,
    element: i64,
    array: i64,
    input: i64,
    receive: i64,
    collation: i64,
    input_name: &'static str,
    receive_name: &'static str,
}

/// A table of the session.
#[derive(Debug)]
struct Found {
    oid: i64,
    key_oid: i64,
    constraint_oid: i64,
    schema: String,
    name: String,
    view: bool,
    columns: Vec<Attribute>,
    /// Places of the columns of the primary key.
    key: Vec<usize>,
}

#[derive(Debug)]
struct Attribute {
    name: String,
    type_oid: i64,
    required: bool,
}

/// Objects and users that the catalogs show.
#[derive(Debug)]
pub(super) struct World {
    pub(super) user: String,
    pub(super) database: String,
    /// The schema of names without one.
    pub(super) schema: String,
    /// Time at which the server started.
    pub(super) started: DateTime<Utc>,
    settings: Vec<(String, String)>,
    tables: Vec<Found>,
    /// Identifiers of the schemas by name.
    namespaces: BTreeMap<String, i64>,
}

/// A value of a column.
#[derive(Debug, Clone)]
enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Ints(Vec<i64>),
    Null,
}

/// A row by the names of its columns; the others have defaults.
type Row = Vec<(&'static str, Value)>;

fn t(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

impl World {
    /// Looks up what the default catalog of a session has.
    ///
    /// # Errors
    /// Errors of looking up tables.
    pub(super) async fn of(context: &SessionContext, names: &Names, settings: &[(String, String)]) -> Result<Self> {
        let Names { user, database, schema, started, .. } = names.clone();
        let mut taken = HashSet::new();
        let mut oid = |what: &str| {
            let mut oid = FIRST_OID + digest(what) % (1 << 30);
            while !taken.insert(oid) {
                oid += 1;
            }
            oid
        };
        let mut namespaces =
            BTreeMap::from([(PG_CATALOG.to_owned(), OF_CATALOG), (INFORMATION_SCHEMA.to_owned(), OF_INFORMATION)]);
        let mut tables = Vec::new();
        for_each(context, |place, name, table| {
            let [catalog, schema] = place;
            if *catalog != database || schema == INFORMATION_SCHEMA {
                return Ok(());
            }
            namespaces.entry(schema.clone()).or_insert_with(|| oid(schema));
            let columns = table.schema();
            let columns = columns.fields().iter().map(|field| Attribute {
                name: field.name().clone(),
                type_oid: parameter_type(field.data_type()).oid().into(),
                required: !field.is_nullable(),
            });
            let constraints = table.constraints().into_iter().flat_map(|constraints| constraints.iter());
            let key = constraints.filter_map(|constraint| match constraint {
                Constraint::PrimaryKey(columns) => Some(columns.clone()),
                Constraint::Unique(_) => None,
            });
            let full = format!("{schema}.{name}");
            tables.push(Found {
                oid: oid(&full),
                key_oid: oid(&format!("{full}_pkey")),
                constraint_oid: oid(&format!("{full} key")),
                schema: schema.clone(),
                name: name.to_owned(),
                view: table.table_type() == TableType::View,
                columns: columns.collect(),
                key: key.into_iter().next().unwrap_or_default(),
            });
            Ok(())
        })
        .await?;
        tables.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        Ok(Self { user, database, schema, started, settings: settings.to_vec(), tables, namespaces })
    }

    /// Returns a setting; `None` for an unknown name.
    pub(super) fn setting(&self, name: &str) -> Option<String> {
        self.settings.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone())
    }

    /// Returns the identifier of a relation by its name, with or without a schema, in quotes or not.
    pub(super) fn relation(&self, name: &str) -> Option<i64> {
        let plain = name.replace('"', "");
        let (schema, name) =
            plain.rsplit_once('.').map_or((None, plain.as_str()), |(schema, name)| (Some(schema), name));
        let schema = schema.map(|schema| schema.rsplit('.').next().unwrap_or(schema));
        let matches = |table: &&Found| table.name == name && schema.is_none_or(|schema| table.schema == schema);
        let found = || self.tables.iter().filter(matches);
        // Without a schema, the catalogs and then that of the search path come first.
        let of_catalogs = || {
            let schema = schema.unwrap_or(PG_CATALOG);
            CATALOGS.get(format!("{schema}.{name}").as_str()).map(|catalog| catalog.oid)
        };
        let table = || found().find(|table| table.schema == self.schema).or_else(|| found().next());
        of_catalogs().or_else(|| table().map(|table| table.oid))
    }

    /// Returns the name of a relation or index, with its schema unless that is in the search path.
    pub(super) fn relation_name(&self, oid: i64) -> Option<String> {
        let found = self.tables.iter().find_map(|table| {
            let name = match oid {
                oid if oid == table.oid => table.name.clone(),
                oid if oid == table.key_oid => table.key_name(),
                _ => return None,
            };
            Some(if table.schema == self.schema { name } else { format!("{}.{name}", table.schema) })
        });
        found.or_else(|| {
            let (full, _) = CATALOGS.iter().find(|(_, catalog)| catalog.oid == oid && oid > 0)?;
            Some(full.strip_prefix("pg_catalog.").unwrap_or(full).to_owned())
        })
    }

    pub(super) fn namespace(&self, name: &str) -> Option<i64> {
        self.namespaces.get(name).copied()
    }

    pub(super) fn namespace_name(&self, oid: i64) -> Option<String> {
        self.namespaces.iter().find(|(_, known)| **known == oid).map(|(name, _)| name.clone())
    }

    /// True if a relation is found without its schema.
    pub(super) fn is_visible(&self, oid: i64) -> bool {
        match self.tables.iter().find(|table| [table.oid, table.key_oid].contains(&oid)) {
            Some(table) => table.schema == self.schema,
            // Tables, types and functions of PostgreSQL itself.
            None => !CATALOGS.iter().any(|(name, catalog)| catalog.oid == oid && name.starts_with(INFORMATION_SCHEMA)),
        }
    }

    /// Name of a type in SQL, such as `timestamp with time zone`.
    pub(super) fn type_name(&self, oid: i64) -> Option<&'static str> {
        sql_name(oid)
    }

    /// Identifier of a type by one of its names.
    pub(super) fn type_oid(&self, name: &str) -> Option<i64> {
        let name = name.trim().trim_start_matches("pg_catalog.").replace('"', "").to_lowercase();
        let found = TYPES.iter().find(|known| known.name == name || sql_name(known.oid) == Some(name.as_str()));
        found.map(|known| known.oid)
    }

    /// Identifier of a function that types refer to.
    pub(super) fn function(&self, name: &str) -> Option<i64> {
        let name = name.rsplit('.').next().unwrap_or(name);
        self.functions().into_iter().find_map(|row| match row.as_slice() {
            [(_, Value::Int(oid)), (_, Value::Text(known)), ..] if known == name => Some(*oid),
            _ => None,
        })
    }

    /// The definition of a primary key, by the identifier of its constraint.
    pub(super) fn key_definition(&self, oid: i64) -> Option<String> {
        let table = self.keys().find(|table| table.constraint_oid == oid)?;
        Some(format!("PRIMARY KEY ({})", table.key_columns().join(", ")))
    }

    /// The definition of an index, or the name of one of its columns.
    pub(super) fn index_definition(&self, oid: i64, column: Option<i64>) -> Option<String> {
        let table = self.keys().find(|table| table.key_oid == oid)?;
        match column {
            Some(at) => table.key_columns().get(usize::try_from(at - 1).ok()?).map(|name| (*name).to_owned()),
            None => Some(table.index_definition()),
        }
    }

    fn keys(&self) -> impl Iterator<Item = &Found> {
        self.tables.iter().filter(|table| !table.key.is_empty())
    }

    /// The tables of a schema of the catalogs that are wanted.
    ///
    /// # Errors
    /// None in practice: batches have the columns that their schema has.
    pub(super) fn tables_of(
        &self,
        schema: &str,
        wanted: &HashSet<String>,
    ) -> Result<Vec<(String, Arc<dyn TableProvider>)>> {
        let mut tables = Vec::new();
        for (full, Catalog { columns, .. }) in CATALOGS.iter() {
            let Some(name) = full.strip_prefix(schema).and_then(|rest| rest.strip_prefix('.')) else { continue };
            if !wanted.contains(name) {
                continue;
            }
            let rows = self.rows(full);
            tables.push((name.to_owned(), Arc::new(table(columns, &rows)?) as Arc<dyn TableProvider>));
        }
        Ok(tables)
    }

    fn rows(&self, table: &str) -> Vec<Row> {
        match table {
            "pg_catalog.pg_namespace" => {
                let rows = self.namespaces.iter();
                rows.map(|(name, oid)| {
                    vec![("oid", Value::Int(*oid)), ("nspname", t(name)), owned("nspowner"), ("nspacl", Value::Null)]
                })
                .collect()
            }
            "pg_catalog.pg_class" => self.classes(),
            "pg_catalog.pg_attribute" => self.attributes(),
            "pg_catalog.pg_type" => TYPES.iter().map(type_row).collect(),
            "pg_catalog.pg_proc" => self.functions(),
            "pg_catalog.pg_index" => self.keys().map(index_row).collect(),
            "pg_catalog.pg_constraint" => self.keys().map(|table| self.constraint_row(table)).collect(),
            _ if table.starts_with(PG_CATALOG) => self.listing(table).unwrap_or_else(|| self.server(table)),
            table => self.information(table),
        }
    }

    /// The rows of a view of relations or indexes by name; `None` for another table.
    fn listing(&self, table: &str) -> Option<Vec<Row>> {
        Some(match table {
            "pg_catalog.pg_stat_user_tables" | "pg_catalog.pg_stat_all_tables" => {
                let row = |table: &Found| {
                    vec![
                        ("relid", Value::Int(table.oid)),
                        ("schemaname", t(&table.schema)),
                        ("relname", t(&table.name)),
                    ]
                };
                self.tables.iter().filter(|table| !table.view).map(row).collect()
            }
            "pg_catalog.pg_tables" => {
                let row = |table: &Found| {
                    vec![
                        ("schemaname", t(&table.schema)),
                        ("tablename", t(&table.name)),
                        ("tableowner", t(&self.user)),
                        ("tablespace", Value::Null),
                        ("hasindexes", Value::Bool(!table.key.is_empty())),
                    ]
                };
                self.tables.iter().filter(|table| !table.view).map(row).collect()
            }
            "pg_catalog.pg_views" => {
                let row = |table: &Found| {
                    vec![
                        ("schemaname", t(&table.schema)),
                        ("viewname", t(&table.name)),
                        ("viewowner", t(&self.user)),
                        ("definition", Value::Null),
                    ]
                };
                self.tables.iter().filter(|table| table.view).map(row).collect()
            }
            "pg_catalog.pg_indexes" => {
                let row = |table: &Found| {
                    vec![
                        ("schemaname", t(&table.schema)),
                        ("tablename", t(&table.name)),
                        ("indexname", t(table.key_name())),
                        ("tablespace", Value::Null),
                        ("indexdef", t(table.index_definition())),
                    ]
                };
                self.keys().map(row).collect()
            }
            _ => return None,
        })
    }

    /// The rows of a table about the server and its users.
    fn server(&self, table: &str) -> Vec<Row> {
        match table {
            "pg_catalog.pg_am" => [(HEAP, "heap", "t"), (BTREE, "btree", "i")]
                .map(|(oid, name, kind)| vec![("oid", Value::Int(oid)), ("amname", t(name)), ("amtype", t(kind))])
                .into(),
            "pg_catalog.pg_language" => {
                vec![vec![
                    ("oid", Value::Int(14)),
                    ("lanname", t("sql")),
                    owned("lanowner"),
                    ("lanpltrusted", Value::Bool(true)),
                ]]
            }
            "pg_catalog.pg_tablespace" => {
                vec![vec![("oid", Value::Int(1_663)), ("spcname", t("pg_default")), owned("spcowner")]]
            }
            "pg_catalog.pg_database" => vec![vec![
                ("oid", Value::Int(5)),
                ("datname", t(&self.database)),
                owned("datdba"),
                ("encoding", Value::Int(6)),
                ("datlocprovider", t("c")),
                ("datallowconn", Value::Bool(true)),
                ("datconnlimit", Value::Int(-1)),
                ("datcollate", t("C")),
                ("datctype", t("C")),
                ("daticulocale", Value::Null),
                ("datcollversion", Value::Null),
                ("dattablespace", Value::Int(1_663)),
                ("datacl", Value::Null),
            ]],
            "pg_catalog.pg_roles" | "pg_catalog.pg_user" => vec![vec![
                ("oid", Value::Int(OWNER)),
                ("usesysid", Value::Int(OWNER)),
                ("rolname", t(&self.user)),
                ("usename", t(&self.user)),
                ("rolcanlogin", Value::Bool(true)),
                ("rolinherit", Value::Bool(true)),
                ("rolconnlimit", Value::Int(-1)),
                ("rolpassword", t("********")),
                ("passwd", t("********")),
                ("rolvaliduntil", Value::Null),
                ("valuntil", Value::Null),
            ]],
            "pg_catalog.pg_settings" => {
                let row = |(name, value): &(String, String)| {
                    vec![
                        ("name", t(name)),
                        ("setting", t(value)),
                        ("vartype", t("string")),
                        ("context", t("user")),
                        ("unit", Value::Null),
                    ]
                };
                self.settings.iter().map(row).collect()
            }
            "pg_catalog.pg_stat_activity" => {
                vec![vec![("datname", t(&self.database)), ("usename", t(&self.user)), ("state", t("active"))]]
            }
            _ => Vec::new(),
        }
    }

    fn classes(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let catalogs = catalogs();
        for table in self.tables.iter().chain(&catalogs) {
            let common = |oid: i64, name: String, kind: &str, columns: usize, method: i64| {
                vec![
                    ("oid", Value::Int(oid)),
                    ("relname", t(name)),
                    ("relnamespace", Value::Int(self.namespace(&table.schema).unwrap_or(0))),
                    owned("relowner"),
                    ("relam", Value::Int(method)),
                    // A client that knew a number of pages would read them in parallel.
                    ("relpages", Value::Int(0)),
                    ("reltuples", Value::Float(-1.0)),
                    ("relpersistence", t("p")),
                    ("relkind", t(kind)),
                    ("relnatts", Value::Int(i64::try_from(columns).unwrap_or(0))),
                    ("relhasindex", Value::Bool(kind == "r" && !table.key.is_empty())),
                    ("relispopulated", Value::Bool(true)),
                    ("relreplident", t("d")),
                    ("relacl", Value::Null),
                    ("reloptions", Value::Null),
                    ("relpartbound", Value::Null),
                ]
            };
            let (kind, method) = if table.view { ("v", 0) } else { ("r", HEAP) };
            rows.push(common(table.oid, table.name.clone(), kind, table.columns.len(), method));
            if !table.key.is_empty() {
                rows.push(common(table.key_oid, table.key_name(), "i", table.key.len(), BTREE));
            }
        }
        rows
    }

    fn attributes(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let catalogs = catalogs();
        for table in self.tables.iter().chain(&catalogs) {
            let all = table.columns.iter().enumerate().map(|(at, column)| (table.oid, at + 1, column));
            let key = table.key.iter().filter_map(|at| table.columns.get(*at));
            let key = key.enumerate().map(|(at, column)| (table.key_oid, at + 1, column));
            for (relation, number, Attribute { name, type_oid, required }) in all.chain(key) {
                let known = TYPES.iter().find(|known| known.oid == *type_oid);
                rows.push(vec![
                    ("attrelid", Value::Int(relation)),
                    ("attname", t(name)),
                    ("atttypid", Value::Int(*type_oid)),
                    ("attstattarget", Value::Int(-1)),
                    ("attlen", Value::Int(known.map_or(-1, |known| known.length))),
                    ("attnum", Value::Int(i64::try_from(number).unwrap_or(0))),
                    ("attndims", Value::Int(known.is_some_and(|known| known.category == "A").into())),
                    ("attcacheoff", Value::Int(-1)),
                    ("atttypmod", Value::Int(-1)),
                    ("attstorage", t("p")),
                    ("attnotnull", Value::Bool(*required)),
                    ("attislocal", Value::Bool(true)),
                    ("attcollation", Value::Int(known.map_or(0, |known| known.collation))),
                    ("attacl", Value::Null),
                    ("attoptions", Value::Null),
                    ("attfdwoptions", Value::Null),
                    ("attmissingval", Value::Null),
                ]);
            }
        }
        rows
    }

    /// The input and receive functions that types refer to: drivers recognize arrays by their names.
    fn functions(&self) -> Vec<Row> {
        let mut seen = HashSet::new();
        let mut rows = Vec::new();
        for known in TYPES.iter() {
            for (oid, name) in [(known.input, known.input_name), (known.receive, known.receive_name)] {
                if oid != 0 && seen.insert(oid) {
                    rows.push(vec![
                        ("oid", Value::Int(oid)),
                        ("proname", t(name)),
                        ("pronamespace", Value::Int(OF_CATALOG)),
                        owned("proowner"),
                        ("prokind", t("f")),
                    ]);
                }
            }
        }
        rows
    }

    fn constraint_row(&self, table: &Found) -> Row {
        vec![
            ("oid", Value::Int(table.constraint_oid)),
            ("conname", t(table.key_name())),
            ("connamespace", Value::Int(self.namespace(&table.schema).unwrap_or(0))),
            ("contype", t("p")),
            ("convalidated", Value::Bool(true)),
            ("conrelid", Value::Int(table.oid)),
            ("conindid", Value::Int(table.key_oid)),
            ("conislocal", Value::Bool(true)),
            ("connoinherit", Value::Bool(true)),
            ("conkey", Value::Ints(table.key_numbers())),
            ("confkey", Value::Null),
            ("conbin", Value::Null),
        ]
    }

    fn information(&self, table: &str) -> Vec<Row> {
        match table {
            "information_schema.schemata" => {
                let row = |name: &String| {
                    vec![("catalog_name", t(&self.database)), ("schema_name", t(name)), ("schema_owner", t(&self.user))]
                };
                self.namespaces.keys().map(row).collect()
            }
            "information_schema.tables" => {
                let row = |table: &Found| {
                    let mut row = self.place(table);
                    row.push(("table_type", t(if table.view { "VIEW" } else { "BASE TABLE" })));
                    row.push(("is_insertable_into", t("NO")));
                    row.push(("is_typed", t("NO")));
                    row
                };
                self.tables.iter().map(row).collect()
            }
            "information_schema.views" => {
                let row = |table: &Found| {
                    let mut row = self.place(table);
                    row.push(("is_updatable", t("NO")));
                    row
                };
                self.tables.iter().filter(|table| table.view).map(row).collect()
            }
            "information_schema.columns" => self.column_rows(),
            "information_schema.table_constraints" => {
                let row = |table: &Found| {
                    let mut row = self.place(table);
                    row.extend([
                        ("constraint_catalog", t(&self.database)),
                        ("constraint_schema", t(&table.schema)),
                        ("constraint_name", t(table.key_name())),
                        ("constraint_type", t("PRIMARY KEY")),
                        ("is_deferrable", t("NO")),
                        ("initially_deferred", t("NO")),
                        ("enforced", t("YES")),
                    ]);
                    row
                };
                self.keys().map(row).collect()
            }
            "information_schema.key_column_usage" => self.key_column_rows(),
            _ => Vec::new(),
        }
    }

    /// The names of a relation in the information schema.
    fn place(&self, table: &Found) -> Row {
        vec![("table_catalog", t(&self.database)), ("table_schema", t(&table.schema)), ("table_name", t(&table.name))]
    }

    fn column_rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for table in &self.tables {
            for (at, Attribute { name, type_oid, required }) in table.columns.iter().enumerate() {
                let mut row = self.place(table);
                let known = TYPES.iter().find(|known| known.oid == *type_oid);
                let array = known.is_some_and(|known| known.category == "A");
                row.extend([
                    ("column_name", t(name)),
                    ("ordinal_position", Value::Int(i64::try_from(at + 1).unwrap_or(0))),
                    ("column_default", Value::Null),
                    ("is_nullable", t(if *required { "NO" } else { "YES" })),
                    ("data_type", t(if array { "ARRAY" } else { sql_name(*type_oid).unwrap_or("text") })),
                    ("udt_catalog", t(&self.database)),
                    ("udt_schema", t(PG_CATALOG)),
                    ("udt_name", t(known.map_or("text", |known| known.name))),
                    ("dtd_identifier", t((at + 1).to_string())),
                    ("is_self_referencing", t("NO")),
                    ("is_identity", t("NO")),
                    ("is_generated", t("NEVER")),
                    ("is_updatable", t("NO")),
                    ("character_maximum_length", Value::Null),
                    ("numeric_precision", Value::Null),
                    ("numeric_scale", Value::Null),
                    ("datetime_precision", Value::Null),
                ]);
                rows.push(row);
            }
        }
        rows
    }

    fn key_column_rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for table in self.keys() {
            for (at, column) in table.key_columns().into_iter().enumerate() {
                let mut row = self.place(table);
                row.extend([
                    ("constraint_catalog", t(&self.database)),
                    ("constraint_schema", t(&table.schema)),
                    ("constraint_name", t(table.key_name())),
                    ("column_name", t(column)),
                    ("ordinal_position", Value::Int(i64::try_from(at + 1).unwrap_or(0))),
                ]);
                rows.push(row);
            }
        }
        rows
    }
}

impl Found {
    fn key_name(&self) -> String {
        format!("{}_pkey", self.name)
    }

    fn key_columns(&self) -> Vec<&str> {
        self.key.iter().filter_map(|at| self.columns.get(*at)).map(|column| column.name.as_str()).collect()
    }

    /// Places of the key's columns, from 1.
    fn key_numbers(&self) -> Vec<i64> {
        self.key.iter().map(|at| i64::try_from(at + 1).unwrap_or(0)).collect()
    }

    fn index_definition(&self) -> String {
        let (name, columns) = (self.key_name(), self.key_columns().join(", "));
        format!("CREATE UNIQUE INDEX {name} ON {}.{} USING btree ({columns})", self.schema, self.name)
    }
}

/// The tables of the catalogs, as the catalogs show them.
fn catalogs() -> Vec<Found> {
    let of_kind = |kind: char| match kind {
        'b' => 16,
        'i' => 23,
        'o' => 26,
        'p' => 24,
        'f' => 701,
        'z' => 1_184,
        'I' => 1_007,
        'T' => 1_009,
        'v' => 22,
        'V' => 30,
        _ => 25,
    };
    let table = |(full, Catalog { oid, view, columns }): (&&'static str, &Catalog)| {
        let (schema, name) = full.split_once('.')?;
        let column = |(name, kind): &(&'static str, char)| Attribute {
            name: (*name).to_owned(),
            type_oid: of_kind(*kind),
            required: false,
        };
        Some(Found {
            oid: *oid,
            key_oid: 0,
            constraint_oid: 0,
            schema: schema.to_owned(),
            name: name.to_owned(),
            view: *view,
            columns: columns.iter().map(column).collect(),
            key: Vec::new(),
        })
    };
    CATALOGS.iter().filter_map(table).filter(|table| table.oid > 0).collect()
}

fn owned(column: &'static str) -> (&'static str, Value) {
    (column, Value::Int(OWNER))
}

fn index_row(table: &Found) -> Row {
    let count = i64::try_from(table.key.len()).unwrap_or(0);
    vec![
        ("indexrelid", Value::Int(table.key_oid)),
        ("indrelid", Value::Int(table.oid)),
        ("indnatts", Value::Int(count)),
        ("indnkeyatts", Value::Int(count)),
        ("indisunique", Value::Bool(true)),
        ("indisprimary", Value::Bool(true)),
        ("indimmediate", Value::Bool(true)),
        ("indisvalid", Value::Bool(true)),
        ("indisready", Value::Bool(true)),
        ("indislive", Value::Bool(true)),
        ("indkey", Value::Ints(table.key_numbers())),
        ("indoption", Value::Ints(vec![0; table.key.len()])),
        ("indexprs", Value::Null),
        ("indpred", Value::Null),
    ]
}

fn type_row(known: &PgType) -> Row {
    vec![
        ("oid", Value::Int(known.oid)),
        ("typname", t(known.name)),
        ("typnamespace", Value::Int(OF_CATALOG)),
        owned("typowner"),
        ("typlen", Value::Int(known.length)),
        ("typtype", t(known.kind)),
        ("typcategory", t(known.category)),
        ("typisdefined", Value::Bool(true)),
        ("typdelim", t(",")),
        ("typelem", Value::Int(known.element)),
        ("typarray", Value::Int(known.array)),
        ("typinput", Value::Int(known.input)),
        ("typreceive", Value::Int(known.receive)),
        ("typtypmod", Value::Int(-1)),
        ("typcollation", Value::Int(known.collation)),
        ("typdefault", Value::Null),
        ("typdefaultbin", Value::Null),
        ("typacl", Value::Null),
    ]
}

/// Names that the standard has for types, as `format_type` returns them.
fn sql_name(oid: i64) -> Option<&'static str> {
    Some(match oid {
        16 => "boolean",
        18 => "\"char\"",
        20 => "bigint",
        21 => "smallint",
        23 => "integer",
        700 => "real",
        701 => "double precision",
        1000 => "boolean[]",
        1005 => "smallint[]",
        1007 => "integer[]",
        1016 => "bigint[]",
        1021 => "real[]",
        1022 => "double precision[]",
        1009 => "text[]",
        1001 => "bytea[]",
        1182 => "date[]",
        1183 => "time without time zone[]",
        1115 => "timestamp without time zone[]",
        1185 => "timestamp with time zone[]",
        1187 => "interval[]",
        1231 => "numeric[]",
        1042 => "character",
        1043 => "character varying",
        1083 => "time without time zone",
        1114 => "timestamp without time zone",
        1184 => "timestamp with time zone",
        1266 => "time with time zone",
        oid => TYPES.iter().find(|known| known.oid == oid)?.name,
    })
}

/// A table with these columns and rows.
fn table(columns: &[(&'static str, char)], rows: &[Row]) -> Result<MemTable> {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (name, kind) in columns {
        let values = || rows.iter().map(|row| row.iter().find(|(column, _)| column == name).map(|(_, value)| value));
        let array: ArrayRef = match kind {
            'b' => Arc::new(BooleanArray::from_iter(values().map(|value| match value {
                Some(Value::Bool(value)) => Some(*value),
                Some(_) => None,
                None => Some(false),
            }))),
            'i' | 'o' | 'p' => Arc::new(Int64Array::from_iter(values().map(|value| match value {
                Some(Value::Int(value)) => Some(*value),
                Some(_) => None,
                None => Some(0),
            }))),
            'f' => Arc::new(Float64Array::from_iter(values().map(|value| match value {
                Some(Value::Float(value)) => Some(*value),
                Some(_) => None,
                None => Some(0.0),
            }))),
            'z' => {
                let missing = vec![None::<i64>; rows.len()];
                Arc::new(TimestampMicrosecondArray::from(missing).with_timezone("UTC"))
            }
            'I' | 'v' | 'V' => {
                let mut lists = ListBuilder::new(Int64Builder::new());
                for value in values() {
                    lists.append_option(match value {
                        Some(Value::Ints(numbers)) => {
                            Some(numbers.iter().map(|number| Some(*number)).collect::<Vec<_>>())
                        }
                        _ => None,
                    });
                }
                Arc::new(lists.finish())
            }
            'T' => {
                let mut lists = ListBuilder::new(StringBuilder::new());
                rows.iter().for_each(|_| lists.append_null());
                Arc::new(lists.finish())
            }
            _ => Arc::new(StringArray::from_iter(values().map(|value| match value {
                Some(Value::Text(text)) => Some(text.as_str()),
                Some(_) => None,
                None => Some(""),
            }))),
        };
        let field = Field::new(*name, array.data_type().clone(), true);
        fields.push(match kind {
            'o' => CatalogType::Oid.mark(field),
            'p' => CatalogType::Function.mark(field),
            'v' => CatalogType::Int2Vector.mark(field),
            'V' => CatalogType::OidVector.mark(field),
            _ => field,
        });
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    MemTable::try_new(schema, vec![vec![batch]])
}

/// A number for a name, the same in every session (FNV-1a).
fn digest(text: &str) -> i64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    i64::try_from(hash >> 1).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_filled_tables_exist_and_all_types_are_read() {
        assert!(FILLED.iter().all(|name| CATALOGS.contains_key(name)));
        assert!(CATALOGS.len() > 100 && CATALOGS["pg_catalog.pg_class"].oid == 1_259);
        assert!(TYPES.len() > 50);
        assert!(is_empty(None, "pg_trigger") && !is_empty(None, "pg_class") && !is_empty(None, "mentions"));
        assert!(is_empty(Some("information_schema"), "routines"));
    }
}
