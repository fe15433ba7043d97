//! Corrections in an existing profile: its documented sections are kept, and their values are tried first.

use std::collections::BTreeMap;

use super::facts::Facts;
use crate::profile::{Evidence, Profile, RequestedBy};

/// Facts known before the first request.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The form of the key: header and value.
    pub(super) auth: Option<(String, String)>,
    /// The parameter that requests mentions, and its value.
    pub(super) flag: Option<(String, String)>,
    /// Facts that a person gave besides.
    pub(super) facts: Facts,
    /// Sections as written in the document, without their headings.
    sections: BTreeMap<String, String>,
}

impl Known {
    /// Collects the documented parts of a profile.
    pub(super) fn of(profile: &Profile, document: &str) -> Self {
        let documented = |evidence| evidence == Evidence::Documented;
        let mentions = &profile.mentions;
        let flagged = mentions.requested_by == RequestedBy::Flag && documented(mentions.evidence);
        let flag = mentions.flag.as_ref().filter(|_| flagged);
        Self {
            auth: Some((profile.auth.header.clone(), profile.auth.format.clone())),
            flag: flag.map(|flag| (flag.parameter.clone(), flag.value.clone())),
            facts: Facts::default(),
            sections: sections(document).into_iter().filter(|(_, text)| is_documented(text)).collect(),
        }
    }

    /// Replaces probed sections of a document by the known ones.
    pub(super) fn keep(&self, document: &str) -> String {
        let head = document.find("\n[").unwrap_or(document.len());
        let found = sections(document);
        let text = found.iter().map(|(name, text)| {
            let text = self.sections.get(name).unwrap_or(text);
            format!("\n[{name}]\n{}\n", text.trim_end())
        });
        let names: Vec<&String> = found.iter().map(|(name, _)| name).collect();
        let others = self.sections.iter().filter(|(name, _)| !names.contains(name));
        let others = others.map(|(name, text)| format!("\n[{name}]\n{}\n", text.trim_end()));
        let text = document[..head].trim_end().to_owned() + "\n" + &text.chain(others).collect::<String>();
        self.facts.entries().iter().fold(text, |text, entry| with_entry(&text, entry))
    }

    /// Names of the sections that are kept.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.sections.keys().map(String::as_str)
    }
}

/// Sets an entry of a document to a value, which makes its section a documented one.
fn with_entry(document: &str, [section, key, value]: &[String; 3]) -> String {
    let head = document.find("\n[").unwrap_or(document.len());
    let mut found = sections(document);
    if found.iter().all(|(name, _)| name != section) {
        found.push((section.clone(), String::new()));
    }
    let text = found.iter().map(|(name, text)| {
        let text = match name == section {
            true => without(&without(text, "evidence"), key) + &format!("evidence = \"documented\"\n{key} = {value}\n"),
            false => text.clone(),
        };
        format!("\n[{name}]\n{}\n", text.trim_end())
    });
    document[..head].trim_end().to_owned() + "\n" + &text.collect::<String>()
}

/// A section without an entry, which may have several lines.
fn without(section: &str, key: &str) -> String {
    let mut text = String::new();
    let mut open = 0_i64;
    for line in section.lines() {
        let depth = |line: &str| {
            let of = |c: char| i64::try_from(line.matches(c).count()).unwrap_or_default();
            of('[') + of('{') - of(']') - of('}')
        };
        if open > 0 {
            open += depth(line);
            continue;
        }
        if line.split_once('=').is_some_and(|(name, _)| name.trim() == key) {
            open = depth(line);
            continue;
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Replaces the sections that make a document invalid by usual ones, as far as the errors name them. Returns their names, each with
/// the error.
pub(super) fn mended(
    document: String,
    usual: &str,
    check: impl Fn(&str) -> Result<(), String>,
) -> (String, Vec<(String, String)>) {
    let (mut document, mut replaced): (_, Vec<(String, String)>) = (document, Vec::new());
    let usual = sections(usual);
    while let Err(message) = check(&document) {
        let name = usual.iter().map(|(name, _)| name).filter(|name| {
            replaced.iter().all(|(known, _)| known != *name)
                && (message.contains(&format!("`{name}.")) || message.contains(&format!("`{name}`")))
        });
        let Some(name) = name.max_by_key(|name| name.len()).cloned() else { break };
        let head = document.find("\n[").unwrap_or(document.len());
        let text = sections(&document).into_iter().map(|(other, text)| {
            let safe = usual.iter().find(|(known, _)| *known == name && other == name);
            format!("\n[{other}]\n{}\n", safe.map_or(text.as_str(), |(_, text)| text).trim_end())
        });
        document = document[..head].trim_end().to_owned() + "\n" + &text.collect::<String>();
        replaced.push((name, crate::error::one_line(&message)));
    }
    (document, replaced)
}

fn is_documented(section: &str) -> bool {
    let mut lines = section.lines().filter_map(|line| line.split_once('='));
    lines.any(|(key, value)| key.trim() == "evidence" && value.trim().starts_with("\"documented\""))
}

/// Splits a document into its sections: name, and text below the heading.
fn sections(document: &str) -> Vec<(String, String)> {
    let mut sections: Vec<(String, String)> = Vec::new();
    for line in document.lines() {
        let name = line.strip_prefix('[').and_then(|rest| rest.split_once(']')).filter(|_| !line.starts_with("[["));
        match (name, sections.last_mut()) {
            (Some((name, _)), _) => sections.push((name.to_owned(), String::new())),
            (None, Some((_, text))) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_a_person_gave_replaces_the_probed_one() {
        let document = Profile::builtin_document("v4").expect("a profile");
        let mut known = Known::default();
        known.facts.fact("page.max = 50").expect("a fact");
        known.facts.fact("sort.values = []").expect("a fact");
        let kept = Profile::parse(&known.keep(document), "kept").expect("a profile");
        assert_eq!((kept.page.max, kept.page.evidence, kept.sort.values.len()), (50, Evidence::Documented, 0));
    }

    #[test]
    fn a_section_that_no_profile_may_have_is_replaced() {
        let document = Profile::builtin_document("v4").expect("a profile");
        let broken = document.replacen("max = 100", "max = 0", 1);
        let check = |text: &str| Profile::parse(text, "a profile").map(drop).map_err(|error| error.to_string());
        let (mended, replaced) = mended(broken, document, check);
        let replaced: Vec<&str> = replaced.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((check(&mended), replaced), (Ok(()), vec!["page"]));
    }

    #[test]
    fn sections_that_rest_on_a_manual_are_kept_as_they_stand() {
        let document = Profile::builtin_document("v4").expect("a profile");
        let corrected = document.replace("max = 100", "max = 50   # the manual says so").replacen(
            "evidence = \"assumed\"              # the name is given\nparameter = \"dataSize\"",
            "evidence = \"documented\"\nparameter = \"dataSize\"",
            1,
        );
        let profile = Profile::parse(&corrected, "corrected").expect("a profile");
        let known = Known::of(&profile, &corrected);
        assert_eq!(known.names().collect::<Vec<_>>(), ["page"]);
        let kept = known.keep(document);
        assert!(kept.contains("max = 50   # the manual says so") && !kept.contains("max = 100"), "{kept}");
        let again = Profile::parse(&kept, "kept").expect("a profile");
        assert_eq!((again.page.max, again.offset), (50, profile.offset));
    }
}
