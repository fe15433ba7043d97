//! Corrections in an existing profile: its documented sections are kept, and their values are tried first.

use std::collections::BTreeMap;

use crate::profile::{Evidence, Profile, RequestedBy};

/// Facts known before the first request.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The form of the key: header and value.
    pub(super) auth: Option<(String, String)>,
    /// The parameter that requests mentions, and its value.
    pub(super) flag: Option<(String, String)>,
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
        format!("{}{}", document[..head].trim_end().to_owned() + "\n", text.chain(others).collect::<String>())
    }

    /// Names of the sections that are kept.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.sections.keys().map(String::as_str)
    }
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
