//! Columns by the words that people and other programs have for them.
//!
//! A word is only a suggestion, and only for a table with the column: nothing is read by another name than it was written with.

use super::nearest_name;

/// Words with the column that they mean. Spelling alone would suggest another one, such as `updated_at` for `created_at`, or none.
const SYNONYMS: [(&str, &[&str]); 9] = [
    (
        "published_at",
        &[
            "date",
            "datetime",
            "time",
            "timestamp",
            "created",
            "created_at",
            "created_time",
            "posted_at",
            "post_date",
            "pub_date",
            "publish_date",
            "publication_date",
            "published",
        ],
    ),
    ("url", &["link", "uri", "permalink"]),
    ("text", &["body", "content", "message"]),
    ("title", &["headline", "subject"]),
    ("source", &["domain", "site", "website", "publisher", "outlet"]),
    ("aid", &["search", "search_id", "saved_search", "topic"]),
    ("author_handle", &["user", "username", "user_name", "screen_name"]),
    ("sentiment", &["tone", "polarity"]),
    ("reach", &["audience", "impressions"]),
];

/// The column that an unknown name probably means.
pub(super) fn meant_column<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    let lower = name.to_lowercase();
    let meant = SYNONYMS.iter().find(|(_, words)| words.contains(&lower.as_str()));
    let column = meant.and_then(|(column, _)| known.iter().copied().find(|known| known == column));
    column.or_else(|| nearest_name(name, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_column_suggest_it_if_there_is_one() {
        let known = ["aid", "title", "published_at", "updated_at", "reach"];
        for (name, column) in [
            ("created_at", Some("published_at")),
            ("Date", Some("published_at")),
            ("search", Some("aid")),
            ("headline", Some("title")),
            ("titel", Some("title")),
            ("link", None),
        ] {
            assert_eq!(meant_column(name, &known), column, "{name}");
        }
        assert_eq!(meant_column("created_at", &["updated_at"]), Some("updated_at"));
    }
}
