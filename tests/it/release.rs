//! The files around the program: packaging, workflows, rules for dependencies, the changelog, and links of the documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use datafusion_saved_search::host::Limits;

use crate::binary::{err, out, savedsearch};
use crate::support::{each, repository};

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn table(path: &str) -> toml::Table {
    toml::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn serve_help() -> String {
    out(&savedsearch(&["serve", "--help"]).stdin(Stdio::null()).output().unwrap())
}

/// The logical lines of a Dockerfile, a unit or a script: without comments, with continued lines joined.
fn lines(text: &str) -> Vec<String> {
    let kept: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let joined = kept.join("\n").replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect()
}

/// The values of a directive (`ExecStart=`) or an instruction (`USER `), in their order.
fn values(lines: &[String], name: &str) -> Vec<String> {
    lines.iter().filter_map(|line| line.strip_prefix(name)).map(str::to_owned).collect()
}

/// The variables `SAVEDSEARCH_…` that a text names.
fn variables(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !(c.is_ascii_uppercase() || c == '_'))
        .filter(|word| word.starts_with("SAVEDSEARCH_"))
        .collect()
}

#[test]
fn the_image_runs_the_program_without_root_and_without_a_key() {
    let lines = lines(&read("Dockerfile"));
    let last_stage = lines.iter().rposition(|line| line.starts_with("FROM ")).unwrap();
    let stage = &lines[last_stage..];
    let user = values(stage, "USER ").pop().expect("a user");
    assert!(!["root", "0"].contains(&user.split(':').next().unwrap()), "{user}");
    assert_eq!(values(stage, "ENTRYPOINT "), ["[\"savedsearch\"]"]);
    assert_eq!(values(stage, "EXPOSE "), ["50051 9090"]);
    assert!(lines.iter().any(|line| line.contains("cargo build --profile dist --locked")));
    assert_eq!(values(stage, "HEALTHCHECK ").len(), 1);
    for line in lines.iter().filter(|line| line.starts_with("ENV ") || line.starts_with("ARG ")) {
        let secret = ["KEY", "TOKEN", "PASSWORD", "SECRET"].iter().any(|word| line.to_uppercase().contains(word));
        assert!(!secret, "{line}");
    }
    let help = serve_help();
    for line in values(stage, "ENV ") {
        assert!(variables(&line).into_iter().all(|name| help.contains(name)), "{line}");
    }
}

#[test]
fn the_image_is_built_from_every_file_that_the_manifests_name() {
    let kept = lines(&read(".dockerignore"));
    assert_eq!(kept[0], "*");
    let kept: BTreeSet<&str> = kept.iter().filter_map(|line| line.strip_prefix('!')).collect();
    let mut named =
        BTreeSet::from(["Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "crates", "examples"].map(str::to_owned));
    for folder in [".", "crates/cli"] {
        let manifest = table(&format!("{folder}/Cargo.toml"));
        let targets = ["bench", "bin", "test"].iter().filter_map(|kind| manifest.get(*kind)?.as_array()).flatten();
        let paths = targets.filter_map(|target| target.get("path")?.as_str());
        let paths = paths.map(|path| normal(&Path::new(folder).join(path)));
        named.extend(paths.map(|path| path.iter().next().unwrap().to_string_lossy().into_owned()));
    }
    assert!(named.contains("benches") && named.contains("tests"), "{named:?}");
    for name in &named {
        assert!(kept.contains(name.as_str()), "the image lacks {name}");
        assert!(repository().join(name).exists(), "{name}");
    }
}

#[test]
fn the_unit_fits_the_program() {
    let unit = lines(&read("packaging/savedsearch.service"));
    let one = |name: &str| {
        let values = values(&unit, name);
        assert_eq!(values.len(), 1, "{name}{values:?}");
        values[0].clone()
    };
    let (command, help) = (one("ExecStart="), serve_help());
    let words: BTreeSet<&str> = help.split_whitespace().collect();
    for option in command.split(' ').filter(|word| word.starts_with("--")) {
        assert!(words.contains(option), "{option} is not an option of serve");
    }
    let named = unit.join("\n");
    assert!(variables(&named).into_iter().all(|name| help.contains(name)), "{:?}", variables(&named));
    assert!(command.contains(" serve ") && command.contains(" --api-key-file %d/api-key "), "{command}");
    for id in ["api-key", "users.toml"] {
        assert!(values(&unit, "LoadCredential=").iter().any(|value| value.starts_with(&format!("{id}:"))), "{id}");
    }
    let cases = [
        ("DynamicUser=", "yes"),
        ("NoNewPrivileges=", "yes"),
        ("ProtectSystem=", "strict"),
        ("ProtectHome=", "yes"),
        ("CapabilityBoundingSet=", ""),
        ("KillSignal=", "SIGTERM"),
        ("StateDirectory=", "savedsearch"),
        ("CacheDirectory=", "savedsearch"),
        ("Environment=TMPDIR=", "%C/savedsearch"),
        ("ExecReload=", "/bin/kill -HUP $MAINPID"),
        ("RestartPreventExitStatus=", "2"),
    ];
    each(cases, |(name, value)| {
        assert_eq!(one(name), value, "{name}");
    });
    let limits = Limits::default();
    let stop: u64 = one("TimeoutStopSec=").parse().unwrap();
    assert!(stop > limits.drain_seconds, "{stop}");
    let files: usize = one("LimitNOFILE=").parse().unwrap();
    assert!(files > 2 * limits.connections, "{files}");
}

#[test]
fn both_services_of_the_compose_file_are_confined_and_start_again() {
    let text = read("packaging/compose.yaml");
    for line in ["restart: on-failure", "<<: *confined", "stop_grace_period: 45s"] {
        assert_eq!(text.matches(line).count(), 2, "{line}");
    }
    assert_eq!(text.matches(", \"/tmp\"]").count(), 2, "files of queries are not in memory");
    assert!(text.contains("\n  read_only: true\n  cap_drop: [ALL]\n"), "{text}");
}

/// Runs the command of the unit with files in place of the credentials.
#[test]
fn the_command_of_the_unit_starts_a_server() {
    let unit = lines(&read("packaging/savedsearch.service"));
    let command = values(&unit, "ExecStart=").pop().unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("api-key"), "demo-key-comms\n").unwrap();
    let digest = "c8258ff6b71789efe9c0371433bac953652370c1282f9823825b913e2c9a89c4";
    fs::write(folder.path().join("users.toml"), format!("[users.dashboard]\ntoken_sha256 = [\"{digest}\"]\n")).unwrap();
    let start = |base_url: &str| {
        let credentials = folder.path().to_str().unwrap();
        let filled = |word: &str| word.replace("%d", credentials).replace("${SAVEDSEARCH_BASE_URL}", base_url);
        let arguments: Vec<String> = command.split(' ').skip(1).map(filled).collect();
        let mut command = savedsearch(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let set = values(&unit, "Environment=SAVEDSEARCH_OPERATIONS=");
        assert!(set.len() == 1 && set[0].starts_with("127.0.0.1:"), "{set:?}");
        // The default is a loopback address, and a configuration file may name another.
        assert!(values(&unit, "Environment=SAVEDSEARCH_LISTEN=").is_empty());
        for name in ["LISTEN", "OPERATIONS"] {
            command.env(format!("SAVEDSEARCH_{name}"), "127.0.0.1:0");
        }
        command.env("XDG_STATE_HOME", folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };

    let mut child = start("https://api.example.com/v4");
    let mut told = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    while !told.contains("listening on 127.0.0.1:") {
        let read = stderr.read_line(&mut told).unwrap();
        assert!(read > 0, "{told}");
    }
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    assert!(child.wait().unwrap().success(), "{told}");

    // Without an environment file the address is empty: the server must not fall back to demo data.
    let output = start("").wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
}

#[test]
fn workflows_run_the_checks_and_cannot_write() {
    let (checks, release) = (read(".github/workflows/ci.yml"), read(".github/workflows/release.yml"));
    assert!(checks.contains("run: .ci/run\n") && checks.contains("  workflow_call:"));
    assert!(release.contains("uses: ./.github/workflows/ci.yml") && release.contains("needs: checks"));
    for target in ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin"] {
        assert!(release.contains(target), "{target}");
    }
    assert!(release.contains("packaging/wheel --release ") && release.contains("cargo cyclonedx"));
    assert!(release.contains("cargo build --profile dist --locked") && release.contains("sha256sum"));
    let installed = read("tests/run");
    let installed = installed.lines().find_map(|line| line.trim_start().strip_prefix("tool cargo-deny ")).unwrap();
    assert!(checks.contains(&format!("cargo-deny@{installed}\n")), "two versions of cargo-deny");
    for text in [&checks, &release] {
        assert!(text.contains("\npermissions:\n  contents: read\n"));
        assert!(!text.contains("secrets.") && !text.contains(": write"));
        let actions =
            text.lines().filter_map(|line| line.split("uses: ").nth(1)).filter(|name| !name.starts_with("./"));
        for action in actions {
            let version = action.split_once("@v").map(|(_, version)| version.split('.').count());
            assert_eq!(version, Some(3), "{action} is not pinned to a release");
        }
    }
}

/// All crates are built by the commands at the root, with one set of features.
#[test]
fn the_crates_and_the_package_have_one_version_and_one_licence() {
    let main = table("Cargo.toml");
    let version = main["package"]["version"].as_str().unwrap();
    let list = |name: &str| main["workspace"][name].as_array().unwrap().iter().map(|path| path.as_str().unwrap());
    let all: Vec<&str> = std::iter::once(".").chain(list("members")).collect();
    assert_eq!(list("default-members").collect::<Vec<_>>(), all);
    let folders = fs::read_dir(repository().join("crates")).unwrap();
    assert_eq!(folders.count() + 1, all.len(), "a folder of crates/ is no member");
    each(all, |folder| {
        let manifest = table(&format!("{folder}/Cargo.toml"));
        assert_eq!(manifest["package"]["version"].as_str(), Some(version));
        assert!(read(&format!("{folder}/LICENSE")) == read("LICENSE"), "its package has another licence");
        for (name, dependency) in manifest["dependencies"].as_table().unwrap() {
            let own = dependency.get("path").is_some();
            assert!(!own || dependency["version"].as_str() == Some(version), "{name}");
        }
    });
    assert_eq!(table("packaging/savedsearch.toml")["version"].as_str(), Some(version));
    assert!(read("python/savedsearch/__init__.py").contains(&format!("\n__version__ = \"{version}\"\n")));
}

#[test]
fn the_rules_for_dependencies_name_licences_and_one_registry() {
    let deny = table("deny.toml");
    let allowed = deny["licenses"]["allow"].as_array().unwrap();
    assert!(allowed.iter().any(|licence| licence.as_str() == Some("Apache-2.0")) && allowed.len() > 1);
    assert_eq!(deny["bans"]["wildcards"].as_str(), Some("deny"));
    let sources = &deny["sources"];
    assert_eq!((sources["unknown-registry"].as_str(), sources["unknown-git"].as_str()), (Some("deny"), Some("deny")));
    // The default is crates.io alone.
    assert!(["allow-registry", "allow-git", "allow-org"].iter().all(|key| sources.get(key).is_none()));
    let lock = table("Cargo.lock");
    let packages = lock["package"].as_array().unwrap();
    let used: BTreeSet<&str> = packages.iter().filter_map(|package| package.get("source")?.as_str()).collect();
    assert!(used.len() == 1 && used.iter().all(|source| source.starts_with("registry+")), "{used:?}");
}

#[test]
fn releases_are_stripped_and_benchmarks_are_not() {
    let manifest = table("Cargo.toml");
    let profiles = &manifest["profile"];
    assert_eq!(profiles["release"]["strip"].as_str(), Some("symbols"));
    assert_eq!(profiles["release"]["debug"].as_bool(), Some(false));
    let (dist, bench) = (profiles["dist"].as_table().unwrap(), profiles["bench"].as_table().unwrap());
    assert_eq!(bench["strip"].as_str(), Some("none"));
    // Anything else would measure code that is in no archive.
    let code = |profile: &toml::Table| {
        let options = profile.iter().filter(|(key, _)| !["debug", "inherits", "strip"].contains(&key.as_str()));
        options.map(|(key, value)| (key.clone(), value.to_string())).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(code(bench), code(dist));
    assert_eq!(dist["inherits"].as_str(), Some("release"));
    // Whoever installs from source gets a build of minutes.
    let release = profiles["release"].as_table().unwrap();
    assert!(!["lto", "codegen-units"].iter().any(|slow| release.contains_key(*slow)), "{release:?}");
}

#[test]
fn the_changelog_has_the_form_of_keep_a_changelog() {
    let text = read("CHANGELOG.md");
    let mut kinds = BTreeSet::new();
    let mut versions = Vec::new();
    for line in text.lines() {
        if let Some(version) = line.strip_prefix("## ") {
            kinds.clear();
            versions.push(version.to_owned());
        } else if let Some(kind) = line.strip_prefix("### ") {
            assert!(["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"].contains(&kind), "{kind}");
            assert!(kinds.insert(kind) && !versions.is_empty(), "{kind} is there twice, or outside a version");
        }
    }
    assert_eq!(versions[0], "[Unreleased]");
    for version in &versions[1..] {
        let (number, date) = version.split_once(" - ").unwrap_or_else(|| panic!("{version}: no date"));
        let number = number.strip_prefix('[').and_then(|number| number.strip_suffix(']')).unwrap_or_default();
        assert!(
            number.split('.').count() == 3 && number.split('.').all(|part| part.parse::<u32>().is_ok()),
            "{version}"
        );
        assert!(date.parse::<chrono::NaiveDate>().is_ok(), "{version}");
    }
}

/// The lines of a Markdown document outside code blocks.
fn prose(text: &str) -> Vec<&str> {
    let mut fence = None;
    let outside = |line: &&str| {
        let line = line.trim_start();
        let marks = line.len() - line.trim_start_matches('`').len();
        match fence {
            Some(open) if marks >= open => fence = None,
            None if marks >= 3 => fence = Some(marks),
            Some(_) => {}
            None => return true,
        }
        false
    };
    text.lines().filter(outside).collect()
}

/// A line without its code spans.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// The text of a heading: links are replaced by their labels.
fn label(heading: &str) -> String {
    let mut text = heading.to_owned();
    while let Some(middle) = text.find("](") {
        let Some(length) = text[middle..].find(')') else { break };
        text.replace_range(middle..=middle + length, "");
        if let Some(open) = text[..middle].rfind('[') {
            text.remove(open);
        }
    }
    text
}

/// The anchors of a document, by the rules of GitHub and mdBook.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).into_iter().filter_map(|line| {
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if (1..=6).contains(&level) { heading.strip_prefix(' ') } else { None }
    });
    let slugs = headings.map(|heading| {
        let kept = label(heading).trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let count = seen.entry(slug.clone()).or_default();
        *count += 1;
        if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
    });
    slugs.collect()
}

/// The targets of the links of a document.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text).into_iter().map(without_code).collect::<Vec<_>>().join("\n");
    let inline = prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()));
    let defined = prose.lines().filter(|line| line.starts_with('['));
    let defined = defined.filter_map(|line| Some(line.split_once("]: ")?.1.trim().to_owned()));
    inline.chain(defined).collect()
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
        path
    })
}

/// The documents in a folder of the repository, by their paths.
fn documents(folder: &str) -> BTreeMap<PathBuf, String> {
    let paths = fs::read_dir(repository().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let documents = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    documents.map(|path| (normal(&path), fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn links_of_the_documentation_lead_somewhere() {
    let (mut all, book) = (documents("."), documents("docs"));
    all.extend(book.clone());
    let mut broken = Vec::new();
    let mut count = 0;
    for (path, text) in &all {
        for link in links(text).into_iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            count += 1;
            let (target, anchor) = link.split_once('#').unwrap_or((link.as_str(), ""));
            let target = match target {
                "" => path.clone(),
                target => normal(&path.parent().unwrap().join(target)),
            };
            let found = target.exists()
                && (anchor.is_empty() || all.get(&target).is_some_and(|text| anchors(text).contains(anchor)))
                // A page of the book cannot link to files outside it.
                && (!book.contains_key(path) || target.starts_with(repository().join("docs")));
            if !found {
                broken.push(format!("{}: {link}", path.strip_prefix(repository()).unwrap().display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(count > 50, "only {count} links were found");
}

#[test]
fn the_book_has_every_page() {
    let listed: BTreeSet<String> = links(&read("docs/SUMMARY.md")).into_iter().collect();
    let mut pages: BTreeSet<String> =
        documents("docs").keys().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert!(pages.remove("SUMMARY.md"));
    assert_eq!(listed, pages);
}

#[test]
fn headings_become_the_anchors_of_a_forge() {
    let text = "# A `b_c`: d, e's (f)\n```sh\n# no heading\n```\n## [Twice](x.md)\n## Twice\n#hashtag\n";
    let expected = ["a-b_c-d-es-f", "twice", "twice-1"].map(str::to_owned);
    assert_eq!(anchors(text), BTreeSet::from(expected));
    let text = "[a](b.md#c) `[no](link)` and\n[d][e]\n```\n[no](link)\n```\n\n[e]: f.md\n";
    assert_eq!(links(text), ["b.md#c", "f.md"]);
}
