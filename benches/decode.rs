//! Speed of the decoder on one core: pages of records of several sizes, in Latin and in other scripts, to record batches of few
//! and of all columns.
//!
//! Run with `cargo bench --bench decode`. For comparison, it also runs parsers that produce no columns (simd-json's tape, with the
//! copy that it needs because it writes into its input; simd-json's and serde_json's document) and arrow-json with a schema of the
//! same ten columns. Fails if decoding ten columns of records of 1.5 KB is slower than simd-json's tape, which has no columns yet.
//! `-- --rounds 50` measures longer.
#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]

use std::error::Error;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use datafusion_saved_search::Profile;
use datafusion_saved_search::decode::Decoder;
use datafusion_saved_search::request::{PageRequest, Pages, RequestPlan};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Records of a page.
const RECORDS: usize = 100;
/// Time slice of one candidate in each round.
const TURN: Duration = Duration::from_millis(20);
/// Sizes of a record in bytes.
const SIZES: [usize; 3] = [500, 1_500, 8_000];
/// Smallest ratio to simd-json's tape.
const GOAL: f64 = 1.0;

const THREE: [&str; 3] = ["id", "published_at", "sentiment"];
const TEN: [&str; 10] =
    ["id", "url", "title", "text", "published_at", "source", "author_handle", "language", "sentiment", "reach"];

fn main() -> Result<()> {
    let rounds = rounds()?;
    println!("MB/s on one core, in brackets the ratio to simd-json's tape of the same page of {RECORDS} records");
    println!(
        "{:>16} {:>10} {:>10} {:>10} {:>10} {:>15} {:>15} {:>15} {:>15}",
        "a record", "tape", "simd-json", "serde_json", "arrow-json", "3 columns", "10 columns", "all but extra", "all"
    );
    let mut missed = Vec::new();
    for (script, sentence) in [("Latin", LATIN), ("CJK", CJK)] {
        for size in SIZES {
            let body = page(size, sentence);
            let speeds = speeds(&body, rounds)?;
            let bytes = body.len() / RECORDS;
            let [tape, simd, serde, arrow, decoders @ ..] = speeds;
            print!("{:>16} {tape:>10.0} {simd:>10.0} {serde:>10.0} {arrow:>10.0}", format!("{bytes} B {script}"));
            decoders.iter().for_each(|speed| print!(" {:>15}", format!("{speed:.0} ({:.2})", speed / tape)));
            println!();
            let ratio = decoders[1] / tape;
            if size == SIZES[1] && ratio < GOAL {
                missed.push(format!("{script}, {bytes} B a record: {ratio:.2} times simd-json's tape"));
            }
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("the goal is {GOAL}: {}", missed.join("; ")).into()) }
}

/// Number of turns of each candidate.
fn rounds() -> Result<usize> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--rounds").skip(1);
    Ok(arguments.next().map_or(Ok(10), |number| number.parse::<NonZeroUsize>().map(NonZeroUsize::get))?)
}

/// Speeds in MB/s: simd-json's tape and document, serde_json, arrow-json, then the decoder for 3, 10, all columns but `extra`, and all.
fn speeds(body: &[u8], rounds: usize) -> Result<[f64; 8]> {
    let (mut copy, mut buffers) = (body.to_vec(), simd_json::Buffers::new(body.len()));
    let schema = Arc::new(ten_columns());
    let request = request();
    let all = Profile::v4().tables.mentions.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let without_extra: Vec<&str> = all.iter().copied().filter(|column| *column != "extra").collect();
    let decoders = [&THREE[..], &TEN, &without_extra, &all].map(decoder);
    let decode = |at: usize| -> Result<()> {
        let decoded = decoders[at].decode(&request, body)?;
        assert_eq!((decoded.batch.num_rows(), decoded.conflicts), (RECORDS, 0), "all records are decoded");
        black_box(decoded);
        Ok(())
    };
    let mut second = body.to_vec();
    let mut candidates: [Box<dyn FnMut() -> Result<()> + '_>; 8] = [
        Box::new(move || {
            // The parser writes into its input.
            copy.copy_from_slice(body);
            black_box(simd_json::to_tape_with_buffers(&mut copy, &mut buffers)?);
            Ok(())
        }),
        Box::new(move || {
            second.copy_from_slice(body);
            black_box(simd_json::to_borrowed_value(&mut second)?);
            Ok(())
        }),
        Box::new(|| {
            black_box(serde_json::from_slice::<serde_json::Value>(body)?);
            Ok(())
        }),
        Box::new(|| {
            let mut reader = arrow_json::ReaderBuilder::new(Arc::clone(&schema)).with_batch_size(1).build_decoder()?;
            reader.decode(body)?;
            black_box(reader.flush()?.ok_or("no page")?);
            Ok(())
        }),
        Box::new(|| decode(0)),
        Box::new(|| decode(1)),
        Box::new(|| decode(2)),
        Box::new(|| decode(3)),
    ];
    let mut best = [f64::MAX; 8];
    for _ in 0..rounds {
        for (candidate, best) in candidates.iter_mut().zip(&mut best) {
            let (begun, mut turns) = (Instant::now(), 0_u32);
            while begun.elapsed() < TURN {
                candidate()?;
                turns += 1;
            }
            *best = best.min(begun.elapsed().as_secs_f64() / f64::from(turns));
        }
    }
    Ok(best.map(|seconds| body.len() as f64 / seconds / 1e6))
}

fn decoder(columns: &[&str]) -> Decoder {
    let profile = Arc::new(Profile::v4());
    let table = Arc::new(profile.tables.mentions.clone());
    let at = |name: &&str| table.columns.iter().position(|column| column.name == *name).expect("a column of mentions");
    let columns: Vec<usize> = columns.iter().map(at).collect();
    Decoder::new(profile, table, &columns)
}

fn request() -> PageRequest {
    let pages = Pages { size: RECORDS as u64, skip: 0, fetch: None, ordered: false };
    let plan = RequestPlan {
        endpoint: datafusion_saved_search::request::Endpoint::Search,
        aid: Some("700100".to_owned()),
        duration: Some("7d".to_owned()),
        timezone: Some("UTC".to_owned()),
        pages: Some(pages),
        ..RequestPlan::list()
    };
    PageRequest { plan: Arc::new(plan), row: 0, size: RECORDS as u64, frozen: None, cursor: None }
}

/// The envelope with ten fields of a record, for arrow-json.
fn ten_columns() -> Schema {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let object = |name: &str, fields: Vec<Field>| Field::new(name, DataType::Struct(Fields::from(fields)), true);
    let record = vec![
        text("id"),
        text("url"),
        text("title"),
        text("text"),
        Field::new("publishedAt", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        object("source", vec![text("name")]),
        object("author", vec![text("handle")]),
        text("language"),
        object("sentiment", vec![text("label")]),
        Field::new("reach", DataType::Int64, true),
    ];
    let items = Field::new_list("items", object("item", record), true);
    Schema::new(vec![object("mentions", vec![Field::new("total", DataType::Int64, true), items])])
}

const LATIN: &str = "The launch went well, says the team: \\\"we ship on Friday\\\". More in the report.\\n";
const CJK: &str = "発売は順調だとチームは言う「金曜日に出荷する」🚀 报告中有更多内容。자세한 내용은 보고서에.\\n";

/// A page of records of about `size` bytes.
fn page(size: usize, sentence: &str) -> Vec<u8> {
    let records: Vec<String> = (0..RECORDS).map(|number| record(number, size, sentence)).collect();
    let page = format!(
        r#"{{"requestId":"1","search":{{"aid":"700100"}},"window":{{"timezone":"UTC"}},"overview":{{"totalMentions":100}},"mentions":{{"total":100,"totalRelation":"eq","from":0,"size":100,"items":[{}]}}}}"#,
        records.join(",")
    );
    page.into_bytes()
}

/// A record with the fields of the service; its text fills it up to `size` bytes.
fn record(number: usize, size: usize, sentence: &str) -> String {
    let title: String = sentence.split(' ').take(3).collect::<Vec<_>>().join(" ").replace("\\n", "");
    let (likes, score) = (number * 7 % 400, (number % 200) as f64 / 100.0 - 1.0);
    let (day, minute, label) = (number % 28 + 1, number % 60, ["negative", "neutral", "positive"][number % 3]);
    // A small record leaves out what services leave out.
    let rest = match size < 1_000 {
        true => format!(r#""reach":{likes},"type":"post""#),
        false => format!(
            r#""reach":{},"engagement":{{"likes":{likes},"comments":{},"shares":null,"views":{},"total":{}}},"type":"post","parentId":null,"tags":["launch"],"hashtags":["release","launch"],"images":[]"#,
            number * 1_000,
            number % 9,
            number * 100,
            likes + number % 9
        ),
    };
    let ends = match size < 1_000 {
        true => String::new(),
        false => format!(
            r#""indexedAt":"2026-06-{day:02}T10:{minute:02}:30Z","updatedAt":"2026-06-{day:02}T10:{minute:02}:30Z","#
        ),
    };
    let before = format!(
        r#"{{"id":"{}","url":"https://example.org/posts/{number:08x}","title":"{title}","text":""#,
        12_401_208_731_530_709_u64 + number as u64
    );
    let after = format!(
        r#"","publishedAt":"2026-06-{day:02}T10:{minute:02}:00Z",{ends}"source":{{"name":"example.org","type":"blog","platform":"web"}},"author":{{"id":"717fa301","name":"Ann Example","handle":"ann-{number}","followers":{}}},"language":"en","country":"CH","sentiment":{{"label":"{label}","score":{score:.2}}},{rest}}}"#,
        number * 31
    );
    let mut text = String::new();
    while before.len() + text.len() + after.len() < size {
        text.push_str(sentence);
    }
    before + &text + &after
}
