use arrow::array::AsArray;
use arrow::compute::concat_batches;
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
use proptest::prelude::*;

use super::body::of_either;
use super::*;
use crate::cases::each;
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
    PageRequest { plan: Arc::new(plan), row: 0, size: 100, frozen: None, cursor: None }
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
    let cases = [
        ("\"aid\":\"7\"", "\"aid\":\"8\"", "aid `7`"),
        ("\"timezone\":\"UTC\"", "\"timezone\":\"CET\"", "timezone `UTC`"),
        ("\"from\":0", "\"from\":100", "offset `0`"),
        ("\"items\"", "\"things\"", "has no `/mentions/items`"),
        ("\"total\":2", "\"total\":null", "has no total"),
        ("\"items\":[", "\"items\":{\"a\":[", ""),
    ];
    each(cases, |(from, to, what)| {
        let body = BODY.replacen(from, to, 1);
        let error = mentions(&["id"], &body).expect_err(what);
        assert!(error.to_string().contains(what), "{error}");
        let expected = if what.is_empty() { ErrorKind::Malformed } else { ErrorKind::Contradiction };
        assert!(error.kind() == expected || what.is_empty(), "{error}");
    });
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
    each([0, 1, 50, BODY.len() / 2, BODY.len() - 1], |end| {
        let error = mentions(&["id"], &BODY[..end]).expect_err("truncated");
        assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
    });
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

/// RFC 8259, section 4: software that receives such objects behaves unpredictably.
#[test]
fn a_name_that_an_object_has_twice_is_an_error_if_it_is_wanted() {
    let reads = |columns: &[&str], from: &str, to: &str| {
        assert!(BODY.contains(from), "{from}");
        mentions(columns, &BODY.replacen(from, to, 1))
    };
    let reach = r#""reach":"many""#;
    let source = r#""source":{"name":"x.com","rating":5}"#;
    let refused: [(&str, &str, &str, &str); 10] = [
        ("reach", reach, r#""reach":5,"reach":6"#, "record 0 of the response has `/reach` twice"),
        ("reach", reach, r#""reach":5,"reach":5"#, "`/reach` twice"),
        ("reach", reach, r#""reach":null, "re\u0061ch" : 6"#, "`/reach` twice"),
        ("reach", r#""engagement":7"#, r#""reach":7,"reach":8"#, "record 1 of the response has `/reach` twice"),
        ("source", source, r#""source":{"name":"x.com","name":"y.com"}"#, "`/source/name` twice"),
        ("source", source, r#""source":{"name":"x.com"},"source":{}"#, "`/source` twice"),
        (
            "extra",
            r#""future":{"a":[1]}"#,
            r#""future":1,"other":2,"future":3"#,
            "record 0 of the response has `future` twice",
        ),
        ("extra", source, r#""source":{"rating":5,"rating":6}"#, "`rating` twice"),
        ("id", r#""total":2,"#, r#""total":2,"total":1,"#, "the response has `/mentions/total` twice"),
        ("id", r#""engagement":7}]"#, r#""engagement":7}],"items":[]"#, "the response has `/mentions/items` twice"),
    ];
    each(refused, |(column, from, to, text)| {
        let error = reads(&["published_at", column], from, to).expect_err(to);
        assert_eq!(error.kind(), ErrorKind::Contradiction, "{to}");
        assert!(error.to_string().contains(text), "{to}: {error}\ndoes not contain: {text}");
    });
    // What is not wanted is not read.
    for (from, to) in [
        (reach, r#""reach":5,"reach":6"#),
        (source, r#""source":{"name":"x.com","name":"y.com"}"#),
        (r#""future":{"a":[1]}"#, r#""future":1,"future":2"#),
        (r#""requestId":"1""#, r#""requestId":"1","requestId":"2""#),
    ] {
        assert_eq!(reads(&["id", "text"], from, to).expect(to).batch.num_rows(), 2, "{to}");
    }
}

/// Members of a record, in any order, some of them of the wrong type.
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
        // A record needs an id and a time, and may have no name twice.
        let needed = [r#""id":"2""#, r#""publishedAt":"2026-02-01T00:00:00.250Z""#];
        let mut names = std::collections::BTreeSet::new();
        let name = |member: &str| member.split(':').next().unwrap_or_default().trim().replace(r"\u006b", "k");
        let members = members.into_iter().chain(needed).filter(|member| names.insert(name(member)));
        format!("{{{}}}", members.collect::<Vec<_>>().join(comma))
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

/// Decodes with a profile that extends the built-in one.
fn with_profile(mine: &str, table: fn(&Profile) -> &TableSpec, columns: &[&str], body: &str) -> Result<Decoded> {
    let profile =
        Profile::parse(&format!("extends = \"v4\"\nname = \"mine\"\n{mine}"), "mine.toml").expect("a profile");
    let table = table(&profile).clone();
    let at = |name: &&str| table.columns.iter().position(|column| column.name == **name).expect("a column");
    let columns: Vec<_> = columns.iter().map(at).collect();
    Decoder::new(Arc::new(profile), Arc::new(table), &columns).decode(&request(), body.as_bytes())
}

const ODD: &str = "[echo]\naid = \"/aid\"\n[total]\ntrust = \"absent\"\n[tables.mentions]\nsections = [{ at = \"/items\" }]\nid = \"id\"\n\
    columns = [\n{ name = \"id\", type = \"utf8\", null = false, at = \"/source\", joined_with = [\"/no\"] },\n\
    { name = \"published_at\", type = \"timestamp\", at = \"/at\" },\n\
    { name = \"language\", type = \"utf8\", at = \"/lang\", nulls = [\"n/a\", \"\"] },\n\
    { name = \"likes\", type = \"int64\", at = \"/likes\", nulls = [\"-\"] },\n\
    { name = \"extra\", type = \"json\", from = \"extra\" },\n]\nstand_in = []\ntime = \"published_at\"\nversion = \"published_at\"\n\
    [counts]\ntrust = \"absent\"\nlists = []\n[filters]\nparameters = []\n[sort]\nvalues = []\n";

#[test]
fn an_id_may_have_several_fields_and_words_may_mean_null() {
    let body = r#"{"items": [{"source": "x.com", "no": 7, "at": 1767225600, "lang": "n/a", "likes": "1,234"},
        {"source": "blog", "no": "8", "at": 1767225600, "lang": "de", "likes": "-"}, {"source": "blog", "no": 9, "at": 1, "lang": ""}]}"#;
    let columns = ["id", "language", "likes", "extra"];
    let decoded = with_profile(ODD, |profile| &profile.tables.mentions, &columns, body).expect("decoded");
    assert_eq!(column(&decoded, "id"), ["x.com:7", "blog:8", "blog:9"].map(|id| Some(id.to_owned())));
    assert_eq!(column(&decoded, "language"), [None, Some("de".to_owned()), None]);
    let likes = decoded.batch.column(2).as_primitive::<Int64Type>();
    assert_eq!(likes.iter().collect::<Vec<_>>(), [Some(1_234), None, None]);
    assert_eq!((decoded.conflicts, column(&decoded, "extra")[0].as_deref()), (0, Some("{}")));
    let error = with_profile(ODD, |profile| &profile.tables.mentions, &["id"], r#"{"items": [{"source": "x"}]}"#);
    assert!(error.expect_err("half an id").to_string().contains("missing or invalid `id`"));
}

#[test]
fn bodies_in_arrays_and_in_strings_are_read() {
    let inner = r#"{"items": [{"source": "x.com", "no": 7, "at": 1767225600}]}"#;
    let text = serde_json::Value::from(inner).to_string();
    for (at, body) in [
        ("/0/items", format!("[{inner}]")),
        ("/payload/items", format!("{{\"payload\": {text}, \"ok\": true}}")),
        ("/0/payload/items", format!("[{{\"payload\":{text}}}]")),
        ("/items", text.clone()),
    ] {
        let mine = ODD.replace("at = \"/items\"", &format!("at = \"{at}\""));
        let decoded = with_profile(&mine, |profile| &profile.tables.mentions, &["id"], &body).expect("decoded");
        assert_eq!(column(&decoded, "id"), [Some("x.com:7".to_owned())], "{body}");
    }
    let mine = ODD.replace("at = \"/items\"", "at = \"/payload/items\"");
    let words = with_profile(&mine, |profile| &profile.tables.mentions, &["id"], r#"{"payload": "no object"}"#);
    assert!(words.is_err(), "a string without JSON");
}

#[test]
fn entries_are_objects_and_saved_searches_are_in_maps_and_folders() {
    let lists = "[echo]\naid = \"/aid\"\n[total]\ntrust = \"absent\"\n[tables.breakdowns]\nsections = [{ at = \"/top\", label = \"source\", shape = \"entries\", key = \"/name\", value = \"\" }]\n\
        columns = [\n{ name = \"name\", type = \"utf8\", at = \"/name\" },\n{ name = \"share\", type = \"utf8\", at = \"/share\" },\n]\n[counts]\ntrust = \"absent\"\nlists = []\n";
    let body = r#"{"top": {"x.com": {"count": 3, "share": "a"}, "blog": {"share": "b"}}}"#;
    let decoded = with_profile(lists, |profile| &profile.tables.breakdowns, &["name", "share"], body).expect("decoded");
    assert_eq!(column(&decoded, "name"), ["x.com", "blog"].map(|name| Some(name.to_owned())));
    assert_eq!(column(&decoded, "share"), ["a", "b"].map(|share| Some(share.to_owned())));
    let of_entries = |body: &str| with_profile(lists, |profile| &profile.tables.breakdowns, &["name", "share"], body);
    // An entry has its name once more, in its value.
    let decoded = of_entries(r#"{"top": {"x.com": {"name": "X", "share": "a"}}}"#).expect("decoded");
    assert_eq!((column(&decoded, "name"), decoded.conflicts), (vec![Some("x.com".to_owned())], 1));
    for (body, text) in [
        (
            r#"{"top": {"x.com": {"share": "a"}, "blog": {}, "x\u002ecom": {"share": "b"}}}"#,
            "the object at `/top` has `x.com` twice",
        ),
        (r#"{"top": {"x.com": {"share": "a", "share": "b"}}}"#, "record 0 of the response has `/share` twice"),
    ] {
        let error = of_entries(body).expect_err("two values");
        assert!(error.to_string().contains(text), "{body}: {error}");
    }
    let list = |section: &str| {
        format!(
            "[echo]\naid = \"/aid\"\n[total]\ntrust = \"absent\"\n[tables.saved_searches]\nsections = [{{ label = \"saved\", {section} }}]\nignore = []\ncolumns = [\n\
             {{ name = \"aid\", type = \"utf8\", null = false, at = \"/aid\" }},\n{{ name = \"kind\", type = \"utf8\", from = \"section\" }},\n\
             {{ name = \"name\", type = \"utf8\", at = \"/name\" }},\n]\n"
        )
    };
    for (section, body) in [
        (
            "at = \"/own\", shape = \"entries\", key = \"/aid\", value = \"\"",
            r#"{"own": {"1": {"name": "a"}, "2": {"name": "b"}}}"#,
        ),
        (
            "at = \"/tree\", inside = \"/held\", deeper = \"/sub\"",
            r#"{"tree": [{"title": "x", "sub": [{"held": [{"aid": 1, "name": "a"}], "sub": []}]}, {"held": [{"aid": "2", "name": "b"}]}]}"#,
        ),
    ] {
        let columns = ["aid", "kind", "name"];
        let decoded =
            with_profile(&list(section), |profile| &profile.tables.saved_searches, &columns, body).expect("decoded");
        assert_eq!(column(&decoded, "aid"), ["1", "2"].map(|aid| Some(aid.to_owned())), "{section}");
        assert_eq!(column(&decoded, "name"), ["a", "b"].map(|name| Some(name.to_owned())), "{section}");
    }
}

#[test]
fn the_last_record_of_a_page_may_have_the_cursor_of_the_next_one() {
    let mine = format!("{ODD}[offset]\nunit = \"cursor\"\nlast = \"/place/no\"\n");
    let next = |items: &str| {
        let body = format!("{{\"items\": {items}}}");
        with_profile(&mine, |profile| &profile.tables.mentions, &["id"], &body).map(|decoded| decoded.next)
    };
    let record = |no: &str| format!(r#"{{"source": "x.com", "no": 7, "at": 1767225600, "place": {{"no": {no}}}}}"#);
    let both = |last: &str| next(&format!("[{}, {}]", record("1"), record(last)));
    assert_eq!(both("90071992547409931").expect("decoded").as_deref(), Some("90071992547409931"));
    assert_eq!(both(r#""a?b""#).expect("decoded").as_deref(), Some("a?b"));
    assert_eq!(next("[]").expect("decoded"), None);
    let error = both("null").expect_err("no cursor").to_string();
    assert!(error.contains("has no `/place/no`"), "{error}");
}

#[test]
fn the_list_of_a_field_is_one_of_several() {
    let lists = |shape: &str| {
        format!(
            "[echo]\naid = \"/aid\"\n[total]\ntrust = \"absent\"\n[tables.breakdowns]\nsections = [\n\
             {{ at = \"/facets\", label = \"source\", inside = \"/values\", only = {{ at = \"/field\", is = \"site\" }}, optional = true{shape} }},\n\
             {{ at = \"/facets\", label = \"language\", inside = \"/values\", only = {{ at = \"/field\", is = \"lang\" }}, optional = true{shape} }},\n]\n\
             columns = [\n{{ name = \"dimension\", type = \"utf8\", from = \"section\" }},\n{{ name = \"name\", type = \"utf8\", at = \"/value\" }},\n]\n\
             [counts]\ntrust = \"absent\"\nlists = []\n"
        )
    };
    let read = |shape: &str, facets: &str| {
        let body = format!("{{\"facets\": {facets}}}");
        let decoded = with_profile(&lists(shape), |profile| &profile.tables.breakdowns, &["dimension", "name"], &body)?;
        let [dimensions, names] = ["dimension", "name"].map(|name| column(&decoded, name));
        let told = dimensions.into_iter().zip(names).map(|(dimension, name)| Some(format!("{}={}", dimension?, name?)));
        Ok::<_, Error>(told.collect::<Option<Vec<String>>>().expect("no NULL"))
    };
    let expected = ["source=x.com", "source=blog", "language=de"];
    let facets = r#"[{"field": "mood", "values": [{"value": "POS"}]}, {"values": [{"value": "de"}], "field": "lang"},
        {"field": "site", "values": [{"value": "x.com"}, {"value": "blog"}]}, {"values": [{"value": "none"}]}]"#;
    assert_eq!(read("", facets).expect("decoded"), expected);
    let entries = ", shape = \"entries\", key = \"/value\", value = \"/count\"";
    let facets = r#"[{"field": "lang", "values": {"de": 1}}, {"field": "site", "values": {"x.com": 3, "blog": 2}}]"#;
    assert_eq!(read(entries, facets).expect("decoded"), expected);
    let none = r#"[{"field": "lang", "values": null}, {"field": "site"}]"#;
    assert_eq!(read("", none).expect("decoded"), [""; 0]);
    for (facets, told) in [
        (r#"[{"field": "lang", "values": []}, {"field": "lang", "values": []}]"#, "several records at `/facets`"),
        (r#"[{"field": "lang", "values": {"de": 1}}]"#, "an array at `/facets/values`"),
    ] {
        let error = read("", facets).expect_err(facets).to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn entries_of_a_timeline_are_days() {
    const HOUR: i64 = 3_600_000_000;
    let check = |hours: &[i64]| check_days(&hours.iter().map(|at| at * HOUR).collect::<Vec<_>>());
    let cases = [
        &[][..],
        &[5],
        &[5, 24],
        &[5, 24, 48, 72],
        &[0, 24, 120, 144],
        &[0, 168, 336],
        &[0, 24, 47, 71],
        &[0, 24, 49, 73],
    ];
    each(cases, |days| {
        assert!(check(days).is_ok(), "{days:?}");
    });
    for (others, told) in [
        (&[0, 1, 2][..], "1 h apart"),
        (&[0, 24, 48, 54], "6 h apart"),
        (&[30, 168, 336, 504, 672], "7 days apart"),
        (&[0, 168, 336, 503, 671], "7 days apart"),
    ] {
        let error = check(others).expect_err("no days").to_string();
        assert!(error.contains(told), "{others:?}: {error}");
    }
}

/// Tables of a response are read together as each is alone, errors included, in one pass over the body.
#[test]
fn tables_of_a_body_are_read_in_one_pass() {
    const OVERVIEW: &str = r#"{"search":{"aid":"7"},"window":{"timezone":"UTC"},"mentions":{"total":1,"from":0,"items":[
        {"id":"1","text":"a","publishedAt":"2026-01-01T00:00:00Z"}]},
        "overview":{"totalMentions":1,"languages":[{"name":"de","count":1}],"countries":[],"topSources":[],"sentiment":{"neutral":1},
        "volume":[{"start":"2026-01-01T00:00:00Z","count":1}]}}"#;
    let decoders = [
        decoder(|profile| &profile.tables.mentions, &["id", "text", "extra"]),
        decoder(|profile| &profile.tables.overview, &["total_mentions"]),
        decoder(|profile| &profile.tables.volume, &["bucket_start", "mentions"]),
        decoder(|profile| &profile.tables.breakdowns, &["name", "mentions"]),
    ];
    let request = request();
    let wanted: Vec<(&Decoder, &PageRequest)> = decoders.iter().map(|decoder| (decoder, &request)).collect();
    let shown = |table: Result<Decoded>| match table {
        Ok(table) => format!("{table:?}"),
        Err(error) => error.to_string(),
    };
    let volume = r#""volume":[{"start":"2026-01-01T00:00:00Z","count":1}]"#;
    let cases = [
        (OVERVIEW.to_owned(), 1),
        (BODY.to_owned(), 1),
        (OVERVIEW.replace(volume, r#""volume":7"#), 1),
        (OVERVIEW.replace(volume, r#""volume":[{"start":"no instant","count":"x"}]"#), 1),
        (OVERVIEW.replace(r#""total":1"#, r#""total":"many""#), 1),
        (OVERVIEW.replace(r#""text":"a""#, r#""text":"\ud800""#), 1),
        (OVERVIEW.replace(r#""aid":"7""#, r#""aid":"8""#), 1),
        (OVERVIEW.replace(r#""name":"de""#, r#""name":de"#), 1),
        (OVERVIEW.replace("]}}", "]"), 1),
        (format!("{OVERVIEW} {{}}"), 1),
        // The whole response in a string is read in its place.
        (serde_json::Value::from(OVERVIEW).to_string(), 2),
    ];
    each(cases, |(body, passes_needed)| {
        let alone: Vec<String> =
            decoders.iter().map(|decoder| shown(decoder.decode(&request, body.as_bytes()))).collect();
        let before = passes();
        let (together, _) = decode_tables(&wanted, &CountPlaces::default(), body.as_bytes());
        assert_eq!(passes() - before, passes_needed, "{body}");
        assert_eq!(together.into_iter().map(shown).collect::<Vec<_>>(), alone, "{body}");
    });
    let total = Pointer::of(["overview", "totalMentions"]);
    let sections = &Profile::v4().tables.breakdowns.sections;
    let list = sections.iter().find(|section| section.at == Pointer::of(["overview", "languages"])).expect("a list");
    let body = OVERVIEW.replace(volume, r#""totalIsEstimate":true"#);
    let (_, estimates) = decode_tables(&wanted, &CountPlaces::new(Some(total), vec![list.into()]), body.as_bytes());
    assert_eq!(estimates.total.as_deref(), Some("`totalIsEstimate` is true"));
    assert_eq!(estimates.lists, [Some("`totalIsEstimate` is true".to_owned())]);
}

#[test]
fn estimates_of_several_readings_are_all_known() {
    let of = |total: Option<&str>, lists: &[Option<&str>]| {
        let lists = lists.iter().map(|list| list.map(str::to_owned)).collect();
        Estimates { total: total.map(str::to_owned), lists }
    };
    let shown = |estimates: Estimates| (estimates.total, estimates.lists);
    let both = of_either(of(None, &[Some("a"), None]), of(Some("t"), &[None, Some("b")]));
    assert_eq!(shown(both), shown(of(Some("t"), &[Some("a"), Some("b")])));
    // A response that is read anew.
    assert_eq!(shown(of_either(Estimates::default(), of(None, &[Some("a")]))), shown(of(None, &[Some("a")])));
}
