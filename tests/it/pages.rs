//! README.md and the pages of `docs/`. Tests run the commands that they show, and compare screens, costs and configuration
//! files with the program's own. They go through all pages, so a new page is covered as soon as it exists.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::repository;

/// A page of the documentation.
pub(crate) struct Page {
    /// Path from the root of the repository.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// README.md and all pages of `docs/`, by name.
pub(crate) fn pages() -> Vec<Page> {
    let files =
        fs::read_dir(repository().join("docs")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        files.filter(|file| file.ends_with(".md")).map(|file| format!("docs/{file}")).collect();
    names.push("README.md".to_owned());
    names.sort();
    names.iter().map(|name| page(name)).collect()
}

/// Reads a page by its path from the root of the repository.
pub(crate) fn page(name: &str) -> Page {
    let text = fs::read_to_string(repository().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    Page { name: name.to_owned(), text }
}

impl Page {
    pub(crate) fn path(&self) -> PathBuf {
        repository().join(&self.name)
    }

    /// Contents of the code blocks in a language.
    pub(crate) fn blocks(&self, language: &str) -> Vec<&str> {
        let start = format!("```{language}\n");
        self.text.split(start.as_str()).skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect()
    }
}

#[test]
fn the_readme_names_every_page() {
    let readme = page("README.md");
    for page in pages() {
        let is_linked = readme.text.contains(&format!("({})", page.name));
        assert!(is_linked || ["README.md", "docs/SUMMARY.md"].contains(&page.name.as_str()), "{}", page.name);
    }
}

#[test]
fn pages_have_no_marks_of_a_merge() {
    for page in pages().into_iter().chain([page("CHANGELOG.md"), page("ARCHITECTURE.md")]) {
        let is_mark = |line: &&str| ["<<<<<<< ", ">>>>>>> "].iter().any(|mark| line.starts_with(mark));
        assert_eq!(page.text.lines().find(is_mark), None, "{}", page.name);
    }
}

#[test]
fn pages_name_all_tables_and_all_examples() {
    let readme = page("README.md");
    let tables = ["saved_searches", "recent_searches", "mentions", "overview", "volume", "breakdowns"];
    let (_, listed) = readme.text.split_once("The tables are ").unwrap();
    let (listed, _) = listed.split_once("`DESCRIBE").unwrap();
    assert!(tables.iter().all(|table| listed.contains(&format!("`{table}`"))), "{listed}");
    let embedding = page("docs/embedding.md");
    for example in fs::read_dir(repository().join("examples")).unwrap() {
        let example = example.unwrap().path();
        let name = example.file_stem().unwrap().to_str().unwrap();
        assert!(embedding.text.contains(&format!("| `{name}` |")), "{name}");
    }
}

/// Programs are compiled: those of docs/embedding.md as doctests, which src/lib.rs names, and that of README.md as an example.
#[test]
fn programs_are_on_pages_whose_programs_are_compiled() {
    let pages = pages();
    let programs = pages.iter().filter(|page| page.text.contains("```rust")).map(|page| page.name.as_str());
    assert_eq!(programs.collect::<Vec<_>>(), ["README.md", "docs/embedding.md"]);
    let example = page("examples/query_your_service.rs").text;
    let program = example.lines().skip_while(|line| line.starts_with("//!") || line.is_empty());
    assert_eq!(page("README.md").blocks("rust"), [program.collect::<Vec<_>>().join("\n")]);
}

#[test]
fn programs_need_the_crates_that_their_pages_name() {
    let name = |line: &str| line.split(" = ").next().unwrap().replace('-', "_");
    for page in ["README.md", "docs/embedding.md"].map(page) {
        let named: Vec<String> = page.blocks("toml")[0].lines().skip(1).map(name).collect();
        assert_eq!(named, ["datafusion_saved_search", "tokio"], "{}", page.name);
        let mut programs =
            page.text.split("```rust").skip(1).map(|rest| rest.split("\n```").next().unwrap()).peekable();
        assert!(programs.peek().is_some(), "{}", page.name);
        for line in programs.flat_map(str::lines) {
            let path =
                line.strip_prefix("use ").or_else(|| line.strip_prefix("#[")).and_then(|path| path.split_once("::"));
            let Some((root, _)) = path else { continue };
            assert!(root == "std" || named.iter().any(|name| name == root), "{}: {line}", page.name);
        }
    }
}

/// The crate is in no registry yet, so a version alone resolves nowhere.
#[test]
fn the_crate_is_named_by_a_place() {
    let mut named = 0;
    for page in pages() {
        for line in page.text.lines().filter(|line| line.starts_with("datafusion-saved-search = ")) {
            assert!(line.contains("{ path = ") || line.contains("{ git = "), "{}: {line}", page.name);
            named += 1;
        }
    }
    assert!(named >= 3, "only {named} found");
}

/// Otherwise hundreds of lines about crates come before the first row.
#[test]
fn the_first_build_of_a_newcomer_prints_nothing() {
    for page in ["README.md", "docs/introduction.md"].map(page) {
        let commands: Vec<&str> = page.blocks("sh").into_iter().flat_map(str::lines).take(2).collect();
        assert_eq!(commands[0], "cargo build --quiet", "{}", page.name);
        assert!(commands[1].starts_with("cargo run --quiet -- sql "), "{}: {}", page.name, commands[1]);
    }
}

#[test]
fn the_messages_that_the_documentation_explains_are_those_of_the_program() {
    fn sources(folder: &Path, text: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, text);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut text = String::new();
    for folder in ["src", "crates/cli/src"] {
        sources(&repository().join(folder), &mut text);
    }
    // A literal may continue on the next line.
    let text: Vec<&str> = text.split("\\\n").collect();
    let text = text.iter().map(|part| part.trim_start()).collect::<String>();
    let page = page("docs/refused.md");
    let rows = page.text.lines().filter(|line| line.starts_with("| `"));
    let mut count = 0;
    for message in rows.flat_map(|row| row.split(" | ").next().unwrap().split('`').skip(1).step_by(2)) {
        assert!(text.contains(message), "no message has `{message}`");
        count += 1;
    }
    assert!(count > 20, "only {count} messages found");
}
