use arrow::compute::concat_batches;
use arrow::datatypes::TimestampMicrosecondType;
use proptest::prelude::*;

use super::*;
use crate::request::{Pages, RequestPlan};

const BODY: &str = r#"{"requestId":"1","search":{"aid":"7"},"window":{"timezone":"UTC"},"overview":{"totalMentions":2},
 "mentions":{"total":2,"totalRelation":"eq","from":0,"size":100,"items":[
  {"id":"9007199254740993","seq":9007199254740993,"text":"a \"b\"\n","publishedAt":"2026-01-01T00:00:00Z",
   "source":{"name":"x.com","rating":5},"reach":"many","future":{"a":[1]},"hashtags":["x"]},
  {"text":null,"source":null,"publishedAt":1767225600,"id":12,"engagement":7}]}}"#;

fn request() -> PageRequest {
    let plan = RequestPlan {
        endpoint: crate::request::Endpoint::Search,
        aid: Some("7".into()),
        duration: Some("7d".into()),
        timezone: Some("UTC".into()),
        pages: Some(Pages { size: 100, skip: 0, fetch: None, ordered: false }),
        ..RequestPlan::list()
    };
    PageRequest { plan: Arc::new(plan), row: 0, size: 100, frozen: None }
}

fn decoder(table: fn(&Profile) -> &TableSpec, columns: &[&str]) -> Decoder {
    let profile = Arc::new(Profile::v4());
    let table = Arc::new(table(&profile).clone());
    let at = |name: &&str| table.columns.iter().position(|column| column.name == **name).expect("a column");
    let columns: Vec<_> = columns.iter().map(at).collect();
    Decoder::new(profile, table, &columns)
}

fn mentions(columns: &[&str], body: &str) -> Result<Decoded> {
    decoder(|profile| &profile.tables.mentions, columns).decode(&request(), body.as_bytes())
}

fn column(decoded: &Decoded, name: &str) -> Vec<Option<String>> {
    let array = decoded.batch.column_by_name(name).expect("a column");
    array.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
}

#[test]
fn wanted_fields_become_columns_in_the_order_asked_for() {
    let decoded = mentions(&["seq", "id", "text", "source", "published_at", "aid"], BODY).expect("decoded");
    assert_eq!(decoded.total, Some(2));
    assert_eq!(decoded.conflicts, 0);
    assert_eq!(decoded.batch.schema().field(0).name(), "seq");
    assert_eq!(column(&decoded, "id"), [Some("9007199254740993".into()), Some("12".into())]);
    assert_eq!(column(&decoded, "text"), [Some("a \"b\"\n".into()), None]);
    assert_eq!(column(&decoded, "source"), [Some("x.com".into()), None]);
    assert_eq!(column(&decoded, "aid"), [Some("7".into()), Some("7".into())]);
    let times = decoded.batch.column(4).as_primitive::<TimestampMicrosecondType>().clone();
    assert_eq!(times.value(0), times.value(1));
    assert_eq!(decoded.ids.expect("ids").len(), 2);
}

#[test]
fn what_no_column_took_and_what_did_not_fit_stays_in_extra() {
    let decoded = mentions(&["reach", "extra"], BODY).expect("decoded");
    let extra = column(&decoded, "extra");
    assert_eq!(extra[0].as_deref(), Some(r#"{"source":{"rating":5},"reach":"many","future":{"a":[1]}}"#));
    assert_eq!(extra[1].as_deref(), Some(r#"{"engagement":7}"#));
    assert_eq!(decoded.conflicts, 2);
    assert_eq!(decoded.batch.column(0).null_count(), 2);
}

#[test]
fn no_column_still_counts_the_records() {
    assert_eq!(mentions(&[], BODY).expect("decoded").batch.num_rows(), 2);
}

#[test]
fn an_answer_to_another_question_is_a_contradiction() {
    for (from, to, what) in [
        ("\"aid\":\"7\"", "\"aid\":\"8\"", "aid `7`"),
        ("\"timezone\":\"UTC\"", "\"timezone\":\"CET\"", "timezone `UTC`"),
        ("\"from\":0", "\"from\":100", "offset `0`"),
        ("\"items\"", "\"things\"", "has no `/mentions/items`"),
        ("\"total\":2", "\"total\":null", "has no total"),
        ("\"items\":[", "\"items\":{\"a\":[", ""),
    ] {
        let body = BODY.replacen(from, to, 1);
        let error = mentions(&["id"], &body).expect_err(what);
        assert!(error.to_string().contains(what), "{error}");
        let expected = if what.is_empty() { ErrorKind::Malformed } else { ErrorKind::Contradiction };
        assert!(error.kind() == expected || what.is_empty(), "{error}");
    }
}

#[test]
fn a_record_without_an_id_is_named_by_what_else_it_says() {
    let named = |body: &str| column(&mentions(&["id"], body).expect("decoded"), "id");
    let body = BODY.replacen("\"id\":12", "\"id\":null,\"url\":\"https://example.org/1\"", 1);
    let ids = named(&body);
    assert!(ids[1].as_ref().is_some_and(|id| id.starts_with('~') && id.len() == 25), "{ids:?}");
    assert_eq!(named(&body), ids, "the same record gets the same id");
    assert_ne!(named(&body.replace("org/1", "org/2")), ids);
    let decoded = mentions(&["id"], &body).expect("decoded");
    assert_eq!(decoded.unnamed, 1);
    let nothing = body.replace("\"url\"", "\"uri\"").replace("\"publishedAt\"", "\"published\"");
    assert!(mentions(&["id"], &nothing.replace("\"author\"", "\"writer\"")).is_err(), "nothing identifies it");
}

#[test]
fn more_records_than_anybody_asked_for_are_refused_while_they_are_read() {
    let body = format!("{{\"mentions\":{{\"total\":1,\"items\":[{}{{}}]}}}}", "{},".repeat(200_000));
    assert_eq!(mentions(&[], &body).expect_err("too many").kind(), ErrorKind::TooLarge);
}

#[test]
fn a_truncated_or_garbled_body_gives_nothing() {
    for end in [0, 1, 50, BODY.len() / 2, BODY.len() - 1] {
        let error = mentions(&["id"], &BODY[..end]).expect_err("truncated");
        assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
    }
    let half = BODY.replace("a \\\"b", "a \\ud83d");
    assert_eq!(mentions(&["text"], &half).expect_err("half a pair").kind(), ErrorKind::Malformed);
    let decoder = decoder(|profile| &profile.tables.mentions, &["id"]);
    assert_eq!(decoder.decode(&request(), b"{\"a\":\"\xff\"}").expect_err("no UTF-8").kind(), ErrorKind::Malformed);
}

#[test]
fn overview_volume_and_breakdowns_come_from_one_kind_of_answer() {
    let body = r#"{"search":{"aid":"7"},"window":{"from":"2026-01-01T00:00:00Z","timezone":"UTC"},
      "overview":{"totalMentions":3,"sentiment":{"positive":2,"neutral":1},"otherCount":12,
       "volume":[{"start":"2026-01-01T00:00:00Z","count":3}],"topSources":[{"name":"x","count":2},{"name":"y","count":1}]}}"#;
    let mut request = request();
    Arc::make_mut(&mut request.plan).pages = None;

    let overview = decoder(|p| &p.tables.overview, &["total_mentions", "positive", "window_from", "extra"]);
    let decoded = overview.decode(&request, body.as_bytes()).expect("overview");
    assert_eq!(decoded.batch.num_rows(), 1);
    assert_eq!(column(&decoded, "extra"), [Some(r#"{"otherCount":12}"#.into())]);
    assert_eq!(decoded.batch.column(2).null_count(), 0);

    let volume = decoder(|p| &p.tables.volume, &["bucket_start", "mentions", "duration"]);
    assert_eq!(volume.decode(&request, body.as_bytes()).expect("volume").batch.num_rows(), 1);

    let breakdowns = decoder(|p| &p.tables.breakdowns, &["dimension", "rank", "name", "mentions"]);
    let decoded = breakdowns.decode(&request, body.as_bytes()).expect("breakdowns");
    let rows: Vec<_> = column(&decoded, "dimension")
        .into_iter()
        .flatten()
        .zip(column(&decoded, "name").into_iter().flatten())
        .collect();
    let expected = [("sentiment", "positive"), ("sentiment", "neutral"), ("source", "x"), ("source", "y")];
    assert_eq!(rows, expected.map(|(d, n)| (d.to_owned(), n.to_owned())));
}

#[test]
fn a_value_of_the_whole_answer_that_does_not_fit_is_a_conflict() {
    let body = r#"{"window":{"from":"soon"},"overview":{"totalMentions":3}}"#;
    let mut request = request();
    Arc::make_mut(&mut request.plan).pages = None;
    let overview = decoder(|p| &p.tables.overview, &["total_mentions", "window_from"]);
    let decoded = overview.decode(&request, body.as_bytes()).expect("overview");
    assert_eq!((decoded.conflicts, decoded.batch.column(1).null_count()), (1, 1));
}

#[test]
fn what_may_not_be_null_and_is_is_told_by_its_record_and_column() {
    let body = BODY.replacen("\"publishedAt\":1767225600", "\"publishedAt\":\"soon\"", 1);
    let error = mentions(&["published_at"], &body).expect_err("no instant");
    assert_eq!(error.kind(), ErrorKind::Contradiction);
    assert!(error.to_string().contains("record 1 of the response has a missing or invalid `published_at`"), "{error}");
}

/// Members of a record, in any order, some of them twice or of the wrong type.
fn records() -> impl Strategy<Value = String> {
    let members = vec![
        r#""id": "1""#,
        r#""publishedAt":"2026-01-01T00:00:00Z""#,
        r#""title":"a \"b\" \u00e9""#,
        r#""text":null"#,
        r#""text":"a second text, which is longer than a block of the search for the ends of strings""#,
        r#""reach":-12"#,
        r#""reach" : "many""#,
        r#""tags":[]"#,
        r#""tags":["a",null]"#,
        r#""author":{"name":"Ann","handle":"ann","followers":1.5e1}"#,
        r#""author":{"handle":"bea","since":2020}"#,
        r#""author":{ }"#,
        r#""author":null"#,
        r#""sentiment":{"score":-0.5,"label":"negative"}"#,
        r#""sentiment":7"#,
        r#""unknown":{"a":[1]}"#,
        r#""un\u006bnown":1"#,
        r#""aRatherLongNameOfAMember":true"#,
    ];
    let some = prop::sample::subsequence(members, 1..12).prop_shuffle();
    (some, prop::sample::select(vec![",", ", ", ",\n  "])).prop_map(|(members, comma)| {
        // A record needs an id and a time; those that it has already come first, and count.
        format!(r#"{{{}{comma}"id":"2"{comma}"publishedAt":"2026-02-01T00:00:00.250Z"}}"#, members.join(comma))
    })
}

proptest! {
    /// The reader expects the members of the records before.
    #[test]
    fn a_record_is_read_as_if_it_were_alone(records in prop::collection::vec(records(), 1..6)) {
        let columns = Profile::v4().tables.mentions.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        let decoder = decoder(|profile| &profile.tables.mentions, &columns);
        let page = |records: &[String]| {
            let records = records.join(",");
            let body = format!(r#"{{"search":{{"aid":"7"}},"mentions":{{"total":9,"from":0,"items":[{records}]}}}}"#);
            decoder.decode(&request(), body.as_bytes()).expect("decoded")
        };
        let together = page(&records);
        let alone: Vec<Decoded> = records.iter().map(|record| page(std::slice::from_ref(record))).collect();
        let batch = concat_batches(decoder.schema(), alone.iter().map(|decoded| &decoded.batch)).expect("one schema");
        prop_assert_eq!(&together.batch, &batch);
        prop_assert_eq!(together.conflicts, alone.iter().map(|decoded| decoded.conflicts).sum::<u64>());
        for (at, (column, present)) in together.present.iter().enumerate() {
            let sum = alone.iter().map(|decoded| decoded.present[at].1).sum::<u64>();
            prop_assert_eq!((column, *present), (&alone[0].present[at].0, sum));
        }
    }
}
