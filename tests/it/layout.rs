//! Conventions: a module uses only modules listed before it (ARCHITECTURE.md), and a doc comment names its thing first (CONTRIBUTING.md).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use datafusion_saved_search::error::Setting;

use crate::support::repository;

/// The module that the unit tests of all modules use.
const OF_TESTS: &str = "cases";

/// The modules that each module of `src/` may use. Foundations come first; only modules listed earlier are allowed. The crates of the
/// workspace that the library uses, such as `savedsearch-clock`, are among them without their prefix.
const MAY_USE: [(&str, &[&str]); 43] = [
    (OF_TESTS, &[]),
    ("error", &[]),
    ("boxed_future", &[]),
    ("circuit_breaker", &[]),
    ("engine_defects", &[]),
    ("clock", &[]),
    ("simulator", &["clock"]),
    ("files", &[]),
    ("numbers", &[]),
    ("location", &["error"]),
    ("memory", &["error"]),
    ("words", &["error", "memory"]),
    ("functions", &["error", "memory", "words"]),
    ("profile", &["error"]),
    ("request", &["error", "profile"]),
    ("client", &["error", "circuit_breaker", "clock", "files", "location", "memory", "numbers", "profile", "request"]),
    ("http", &["error", "client", "simulator"]),
    ("decode", &["error", "profile", "request"]),
    (
        "store",
        &["error", "circuit_breaker", "clock", "files", "location", "memory", "words", "profile", "request", "decode"],
    ),
    ("pushdown", &["error", "profile", "request"]),
    ("config", &["error", "location", "profile", "client"]),
    ("connection", &["error", "clock", "location", "config", "profile", "request", "client", "decode", "store"]),
    (
        "exec",
        &[
            "error",
            "numbers",
            "functions",
            "config",
            "profile",
            "request",
            "client",
            "decode",
            "store",
            "pushdown",
            "connection",
        ],
    ),
    (
        "table",
        &[
            "error",
            "boxed_future",
            "functions",
            "config",
            "profile",
            "client",
            "decode",
            "store",
            "pushdown",
            "connection",
            "exec",
        ],
    ),
    ("catalog", &["error", "connection", "table"]),
    ("connections", &["error", "location", "config", "profile", "client", "connection", "catalog"]),
    (
        "optimizer",
        &[
            "error",
            "boxed_future",
            "engine_defects",
            "functions",
            "config",
            "profile",
            "pushdown",
            "connection",
            "exec",
            "table",
        ],
    ),
    (
        "session",
        &[
            "error",
            "boxed_future",
            "clock",
            "memory",
            "functions",
            "config",
            "connection",
            "table",
            "catalog",
            "optimizer",
        ],
    ),
    ("profile_check", &["error", "numbers", "profile", "connection", "session"]),
    (
        "sync",
        &["error", "location", "numbers", "client", "config", "profile", "store", "connection", "exec", "session"],
    ),
    ("verify", &["error", "config", "profile", "store", "connection", "exec", "session", "sync"]),
    ("serving", &["error"]),
    (
        "distributed",
        &[
            "error",
            "boxed_future",
            "functions",
            "clock",
            "files",
            "location",
            "memory",
            "config",
            "store",
            "connection",
            "exec",
            "optimizer",
            "session",
            "serving",
        ],
    ),
    (
        "host",
        &[
            "error",
            "boxed_future",
            "memory",
            "functions",
            "config",
            "profile",
            "client",
            "store",
            "connection",
            "exec",
            "table",
            "catalog",
            "session",
            "serving",
            "distributed",
        ],
    ),
    (
        "flight",
        &[
            "error",
            "boxed_future",
            "memory",
            "config",
            "client",
            "exec",
            "table",
            "catalog",
            "session",
            "serving",
            "distributed",
            "host",
        ],
    ),
    ("wording", &["error", "numbers", "profile", "exec", "session", "table"]),
    (
        "shell",
        &[
            "error",
            "memory",
            "files",
            "numbers",
            "config",
            "profile",
            "client",
            "pushdown",
            "connection",
            "exec",
            "table",
            "catalog",
            "session",
            "wording",
        ],
    ),
    ("probe", &["error", "profile", "request", "client"]),
    (
        "mcp",
        &[
            "error",
            "files",
            "memory",
            "numbers",
            "config",
            "profile",
            "client",
            "connection",
            "exec",
            "session",
            "profile_check",
            "probe",
            "serving",
            "host",
            "wording",
        ],
    ),
    ("ui", &["error", "memory", "config", "exec", "session", "serving", "host", "wording", "shell"]),
    (
        "postgres",
        &[
            "error",
            "memory",
            "clock",
            "functions",
            "numbers",
            "config",
            "exec",
            "catalog",
            "session",
            "serving",
            "distributed",
            "host",
            "wording",
        ],
    ),
    (
        "embedded",
        &["error", "config", "client", "connection", "exec", "table", "session", "host", "flight", "wording", "shell"],
    ),
    ("lib", &["*"]),
];

#[test]
fn the_direction_has_no_cycle() {
    for (position, (module, allowed)) in MAY_USE.iter().enumerate() {
        for used in allowed.iter().filter(|used| **used != "*") {
            let at = MAY_USE.iter().position(|(name, _)| name == used);
            assert!(at.is_some_and(|at| at < position), "{module} may use {used}, which is not listed before it");
        }
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// The crates of the workspace that a crate uses, without their prefix.
fn own_crates(folder: &Path) -> Vec<String> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&manifest).unwrap();
    let names = manifest["dependencies"].as_table().unwrap().keys();
    names.filter_map(|name| name.strip_prefix("savedsearch-")).map(str::to_owned).collect()
}

/// The compiler holds what the manifests of these crates state.
#[test]
fn crates_depend_on_the_crates_that_are_listed() {
    let root = repository();
    for name in own_crates(root) {
        let listed = MAY_USE.iter().find(|(listed, _)| *listed == name);
        let (_, allowed) = listed.unwrap_or_else(|| panic!("crates/{name} is missing from the import direction"));
        assert_eq!(own_crates(&root.join("crates").join(&name)), *allowed, "crates/{name}");
    }
}

/// No server is built because of another one.
#[test]
fn features_of_servers_do_not_need_each_other() {
    let manifest = fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&manifest).unwrap();
    let features = manifest["features"].as_table().unwrap();
    let servers = ["flight", "mcp", "postgres", "ui"];
    for server in servers {
        let (mut found, mut open) = (BTreeSet::new(), vec![server]);
        while let Some(feature) = open.pop() {
            if found.insert(feature) {
                let needed = features.get(feature).and_then(toml::Value::as_array);
                open.extend(needed.into_iter().flatten().filter_map(toml::Value::as_str));
            }
        }
        assert!(found.contains("host"), "{server}: {found:?}");
        for other in servers.iter().filter(|other| **other != server) {
            assert!(!found.contains(other), "{server}: {found:?}");
        }
        let grpc = ["dep:arrow-flight", "dep:tonic"].iter().any(|name| found.contains(name));
        assert_eq!(grpc, server == "flight", "{server}: {found:?}");
    }
}

/// Levels of a file below the root of its crate.
fn depth(file: &Path) -> usize {
    let is_own = !["lib", "mod"].contains(&file.file_stem().unwrap().to_str().unwrap());
    file.components().count() - 1 + usize::from(is_own)
}

/// The most levels that a path in a line goes up.
fn above(code: &str) -> usize {
    let mut most = 0;
    let mut run = 0;
    for part in code.split("super::").skip(1) {
        run += 1;
        most = most.max(run);
        if !part.is_empty() {
            run = 0;
        }
    }
    most
}

#[test]
fn levels_of_a_path_are_counted() {
    let cases = [("use super::*;", 1), ("use super::super::plan::x; let a = super::b", 2), ("crate::a::b()", 0)];
    for (code, levels) in cases {
        assert_eq!(above(code), levels, "{code}");
    }
    let files = [("lib.rs", 0), ("files.rs", 1), ("client/mod.rs", 1), ("client/fetch.rs", 2), ("mcp/a/b.rs", 3)];
    for (file, levels) in files {
        assert_eq!(depth(Path::new(file)), levels, "{file}");
    }
}

/// The layers of ARCHITECTURE.md are those of the code.
#[test]
fn the_architecture_names_every_module() {
    let text = fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    let layers = text.split("\n## Layers").nth(1).and_then(|text| text.split("\n## ").next()).unwrap();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let words: BTreeSet<&str> = layers.split(|c| !is_part(c)).collect();
    // The root, and a crate that is one of the features.
    let modules = MAY_USE.iter().map(|(module, _)| *module).filter(|module| !["lib", "simulator"].contains(module));
    let missing: Vec<_> = modules.filter(|module| !words.contains(module)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn imports_go_one_way() {
    let package = repository();
    let (root, crates) = (package.join("src"), own_crates(package));
    let mut met: BTreeSet<String> = crates.iter().cloned().collect();
    let mut wrong = Vec::new();
    for path in sources(&root) {
        let relative = path.strip_prefix(&root).unwrap();
        let first = relative.components().next().unwrap().as_os_str().to_str().unwrap();
        let module = first.trim_end_matches(".rs");
        met.insert(module.to_owned());
        let (_, allowed) = MAY_USE.iter().find(|(name, _)| *name == module).unwrap_or_else(|| {
            panic!("module `{module}` is missing from the import direction: add it here and to ARCHITECTURE.md")
        });
        let text = fs::read_to_string(&path).unwrap();
        let (own, depth) = (without_tests(&text).lines().count(), depth(relative));
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap();
            // Such a path has another module than the one behind `crate::`.
            let up = above(code);
            let root = !allowed.contains(&"*") && up > 0;
            if code.contains("crate::{") || (root && up >= depth + usize::from(number >= own)) {
                wrong.push(format!("{}:{}: write `crate::` and the module", relative.display(), number + 1));
            }
            let name = |path: &str| path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
            let modules = code.split("crate::").skip(1).map(name);
            let named = crates.iter().filter(|name| code.contains(&format!("savedsearch_{name}"))).cloned();
            for used in modules.chain(named) {
                let fine =
                    used == module || used == OF_TESTS || allowed.contains(&used.as_str()) || allowed.contains(&"*");
                if !fine && !used.is_empty() {
                    wrong.push(format!("{}:{}: {module} uses {used}", relative.display(), number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(met.len(), MAY_USE.len(), "a listed module no longer exists: {met:?}");
}

/// A doc comment names the thing first.
#[test]
fn doc_comments_open_with_a_noun_or_a_verb() {
    let root = repository();
    let mut wrong = Vec::new();
    for path in ["crates", "src", "tests", "benches", "examples"].iter().flat_map(|folder| sources(&root.join(folder)))
    {
        let text = fs::read_to_string(&path).unwrap();
        let mut within = false;
        for (number, line) in text.lines().map(str::trim_start).enumerate() {
            let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            let first = comment.filter(|_| !within).and_then(|comment| comment.split_whitespace().next());
            if matches!(first, Some("What" | "How" | "Where" | "Whether" | "Who" | "When")) {
                wrong.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
            within = comment.is_some();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A path begins at the root, or in `src`; the ending of a file may be left out.
#[test]
fn architecture_is_short_and_names_files_that_exist() {
    let root = repository();
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    assert!(text.len() <= 10 << 10, "{} bytes", text.len());
    let is_path = |name: &&str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
        name.trim_end_matches('/').contains('/') && !name.starts_with('/') && name.chars().all(is_part)
    };
    let names = text.split('`').skip(1).step_by(2).filter(is_path);
    let links = text.split("](").skip(1).filter_map(|link| link.split([')', '#']).next());
    let paths: BTreeSet<&str> = names.chain(links).collect();
    assert!(paths.len() > 60, "{paths:?}");
    let exists = |path: &&str| {
        let places = [root.join(path), root.join("src").join(path)];
        places.iter().any(|place| place.exists() || place.with_extension("rs").exists())
    };
    let missing: Vec<_> = paths.iter().filter(|path| !exists(path)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn pushdown_and_decode_know_no_runtime_and_no_network() {
    let root = repository().join("src");
    for module in ["pushdown", "decode", "profile"] {
        for path in sources(&root.join(module)) {
            let text = fs::read_to_string(&path).unwrap();
            assert!(!text.contains("tokio") && !text.contains("reqwest"), "{}", path.display());
        }
    }
}

/// The text of a file before its module of tests.
fn without_tests(text: &str) -> &str {
    let begin = ["\nmod tests {", "\npub(crate) mod tests {"].iter().find_map(|module| text.find(module));
    &text[..begin.unwrap_or(text.len())]
}

/// Fronts name settings, options and commands differently, so texts have them as values (`error/phrase`, `error/tool`). A text with one
/// would be right in one front and wrong in the others.
#[test]
fn texts_have_settings_and_options_as_values() {
    // The words of SQL, texts of the shell, and statements.
    let of_sql = ["crates/cli/", "src/error/phrase.rs", "src/profile_check.rs", "src/shell/"];
    // Texts that only the program shows: at its start, and in its commands.
    let of_program = [
        "crates/cli/",
        "src/error/phrase.rs",
        "src/error/tool.rs",
        "src/memory/statements.rs",
        "src/probe/document.rs",
        "src/probe/facts.rs",
        "src/shell/",
        "src/ui/query.rs",
    ];
    let settings = Setting::ALL.iter().map(|setting| format!("SET {setting}")).chain(["SET savedsearch.…".to_owned()]);
    let settings: Vec<String> = settings.collect();
    let names_setting = |line: &str| settings.iter().any(|setting| line.contains(setting.as_str()));
    let names_option = |line: &str| {
        if line.contains("`savedsearch ") {
            return true;
        }
        let mut places = line.match_indices("--").map(|(at, _)| (line[..at].chars().next_back(), &line[at + 2..]));
        places.any(|(before, name)| {
            matches!(before, Some(' ' | '"' | '`' | '(')) && name.starts_with(|first: char| first.is_ascii_lowercase())
        })
    };
    let root = repository();
    let mut wrong = Vec::new();
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    for path in crates.chain([root.join("src")]).flat_map(|folder| sources(&folder)) {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        let is_among = |own: &[&str]| name.ends_with("tests.rs") || own.iter().any(|own| name.starts_with(own));
        let text = fs::read_to_string(&path).unwrap();
        let code = without_tests(&text);
        for (number, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            if names_setting(line) && !is_among(&of_sql) || names_option(line) && !is_among(&of_program) {
                wrong.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The parser takes exponential time for some texts; `session::parse` counts its steps.
#[test]
fn statements_are_parsed_in_one_module() {
    let source = repository().join("src");
    for path in sources(&source) {
        let text = fs::read_to_string(&path).unwrap();
        // Tests parse what they wrote.
        let own = without_tests(&text);
        let parses = ["DFParser", "sqlparser::parser", "sql_to_statement", "create_logical_plan"];
        let found = parses.iter().find(|call| own.contains(**call));
        assert!(found.is_none() || path.ends_with("session/parse.rs"), "{}: {found:?}", path.display());
    }
}

/// A statement that is run elsewhere is not admitted, so its query has no owner in its task. The others are operators, which run a part
/// of a statement.
#[test]
fn statements_start_in_one_function() {
    let source = repository().join("src");
    let mut callers = BTreeSet::new();
    for path in sources(&source) {
        let text = fs::read_to_string(&path).unwrap();
        if without_tests(&text).contains("execute_stream(") {
            callers.insert(path.strip_prefix(&source).unwrap().display().to_string());
        }
    }
    let expected = ["distributed/spread_exec.rs", "exec/stored/files.rs", "exec/traced.rs"];
    assert_eq!(callers.into_iter().collect::<Vec<_>>(), expected);
}

/// The functions that plan take a turn. Those of the engine take none: the files below have a turn, or plan texts of their own. Turns
/// without a limit are for programs with one user.
#[test]
fn servers_plan_with_turns() {
    let source = repository().join("src");
    let (mut unbounded, mut of_engine) = (BTreeSet::new(), BTreeSet::new());
    for path in sources(&source) {
        let text = fs::read_to_string(&path).unwrap();
        let own = without_tests(&text);
        let name = path.strip_prefix(&source).unwrap().display().to_string();
        if own.contains("PlanningTurn::unbounded") {
            unbounded.insert(name.clone());
        }
        let serves = ["flight", "host", "mcp", "postgres", "ui"].iter().any(|server| name.starts_with(server));
        if serves && [".sql(", "statement_to_plan(", "create_physical_plan("].iter().any(|call| own.contains(call)) {
            of_engine.insert(name);
        }
    }
    let expected =
        ["embedded.rs", "session/condition.rs", "session/planning_turn.rs", "session/statement.rs", "shell/run.rs"];
    assert_eq!(unbounded.into_iter().collect::<Vec<_>>(), expected);
    let expected = [
        "host/planner.rs",
        "mcp/resources.rs",
        "postgres/catalog/mod.rs",
        "postgres/connection.rs",
        "postgres/connection/settings.rs",
        "ui/query.rs",
    ];
    assert_eq!(of_engine.into_iter().collect::<Vec<_>>(), expected);
}
