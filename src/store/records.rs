//! Identity of the records that a store holds: what a profile says of the place of mentions, of their keys and of their days.
//!
//! A day that was read by another profile may lack mentions, or have others, whichever columns a query selects; a day without
//! mentions has no columns at all. So a store belongs to one such definition, as it belongs to one service and key.

use std::iter;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::opening::source_of;
use crate::profile::{Flag, MentionsRequest, Only, Pointer, Profile, SearchEndpoint, SectionSpec, TableSpec};

/// Digest of everything in a profile that decides which records are mentions, which of them are the same, and of which day they
/// are.
/// Sources of single columns are compared with those of each file.
pub(crate) fn records_of(profile: &Profile) -> String {
    // Without `..`, a new key does not compile until it is decided here. Keys that may be absent are stated only if they are set.
    // With `headers`, the pointers of sections begin with /body.
    let SearchEndpoint { evidence: _, path, aid, with, headers: _ } = &profile.search;
    let MentionsRequest { evidence: _, requested_by: _, flag, with_overview: _ } = &profile.mentions;
    let TableSpec {
        name: _,
        kind: _,
        evidence: _,
        description: _,
        unsupported: _,
        columns: _,
        ignore: _,
        zone: _,
        sections,
        id,
        time,
        version,
        stand_in,
    } = &profile.tables.mentions;
    let mut text = format!("search {path:?} {aid:?} {with:?}");
    if let Some(Flag { parameter, value }) = flag {
        text += &format!(" flag {parameter:?} {value:?}");
    }
    text.extend(sections.iter().map(|section| format!("\nsection {}", text_of(section))));
    text += &format!("\nkeys {id:?} {time:?} {version:?} {stand_in:?}");
    // The time decides the day of a record.
    let column = time.as_ref().and_then(|time| profile.tables.mentions.column(time));
    text.extend(column.map(|column| format!("\ntime {}", source_of(&profile.tables.mentions, column))));
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

fn text_of(section: &SectionSpec) -> String {
    // The last two decide which responses are errors, and which saved searches are read.
    let SectionSpec { at, label, shape, key, value, inside, only, deeper, optional: _, fan_out: _ } = section;
    let text = |pointer: Option<&Pointer>| pointer.map(ToString::to_string);
    let only = only.as_ref().map(|Only { at, is }| format!("{at} {is:?}"));
    let keys = [
        ("label", Some(label.clone()).filter(|label| !label.is_empty())),
        ("key", text(key.as_ref())),
        ("value", text(value.as_ref())),
        ("inside", text(inside.as_ref())),
        ("only", only),
        ("deeper", text(deeper.as_ref())),
    ];
    let stated = keys.into_iter().filter_map(|(key, value)| Some(format!(" {key} {:?}", value?)));
    iter::once(format!("{at} {shape:?}")).chain(stated).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    /// The identity after a replacement in the built-in profile.
    fn records(from: &str, to: &str) -> String {
        let document = Profile::builtin_document("v4").expect("a built-in profile");
        assert!(document.contains(from), "{from}");
        records_of(&Profile::parse(&document.replacen(from, to, 1), "changed").expect("a valid profile"))
    }

    #[test]
    fn what_decides_the_records_and_their_keys_is_their_identity() {
        let same = records("", "");
        let changed = [
            (r#"sections = [{ at = "/mentions/items" }]"#, r#"sections = [{ at = "/mentions/all" }]"#),
            (
                r#"{ at = "/mentions/items" }"#,
                r#"{ at = "/mentions/items", shape = "entries", key = "/k", value = "" }"#,
            ),
            (r#"version = "updated_at""#, r#"version = "indexed_at""#),
            (r#"time = "published_at""#, r#"time = "indexed_at""#),
            (r#"stand_in = ["url", "#, "stand_in = ["),
            (r#"path = "search""#, r#"path = "all""#),
            (r#"aid = "aid""#, "aid = \"aid\"\nwith = { retweets = \"no\" }"),
            (r#"at = "/publishedAt""#, r#"at = "/publishedAt", zone = "Asia/Tokyo""#),
        ];
        each(changed, |(from, to)| assert_ne!(records(from, to), same, "{to}"));
        let mut other_id = Profile::v4();
        other_id.tables.mentions.id = Some("url".to_owned());
        assert_ne!(records_of(&other_id), same);
        let others = [
            (r#"name = "title""#, r#"name = "headline""#),
            (r#"at = "/snippet""#, r#"at = "/other""#),
            ("max = 100", "max = 50"),
            (r#"ignore = ["/type"]"#, r#"ignore = ["/kind"]"#),
        ];
        each(others, |(from, to)| assert_eq!(records(from, to), same, "{to}"));
    }
}
