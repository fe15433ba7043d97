//! Bodies of responses, read as each table.

use std::sync::Arc;

use datafusion_saved_search::decode::Decoder;
use datafusion_saved_search::profile::TableSpec;
use datafusion_saved_search::request::{Endpoint, PageRequest, Pages, RequestPlan};
use datafusion_saved_search::{ErrorKind, Profile};

use super::is_shown_well;

thread_local! {
    static DECODERS: Vec<Decoder> = decoders();
}

/// Decodes a body. A body that is accepted is JSON, and gives a valid batch; one that is refused has a typed error.
pub fn target(data: &[u8]) {
    DECODERS.with(|decoders| decoders.iter().for_each(|decoder| decode(decoder, data)));
}

fn decode(decoder: &Decoder, body: &[u8]) {
    match decoder.decode(&request(), body) {
        Ok(decoded) => {
            let rows = decoded.batch.num_rows();
            assert!(decoded.ids.iter().all(|ids| ids.len() == rows));
            assert!(decoded.times.iter().chain(&decoded.versions).all(|times| times.len() == rows));
            // Numbers that JSON does not have are read as NULL.
            let json = String::from_utf8_lossy(body).replace("NaN", "null").replace("Infinity", "0");
            assert!(
                serde_json::from_str::<serde::de::IgnoredAny>(&json).is_ok() || decoded.mended > 0,
                "invalid JSON was accepted"
            );
            for column in decoded.batch.columns() {
                column.to_data().validate_full().unwrap_or_else(|error| panic!("an invalid column: {error}"));
            }
        }
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Contradiction), "{error}");
            assert!(is_shown_well(&error), "{error}");
        }
    }
}

/// A decoder of all columns for each table, strict and lossy.
fn decoders() -> Vec<Decoder> {
    let profile = Arc::new(Profile::v4());
    let tables: Vec<Arc<TableSpec>> = profile.tables.all().map(|table| Arc::new(table.clone())).collect();
    let decoder = |table: Arc<TableSpec>, lossy| {
        let columns: Vec<usize> = (0..table.columns.len()).collect();
        Decoder::new(Arc::clone(&profile), table, &columns).lossy(lossy)
    };
    tables.into_iter().flat_map(|table| [decoder(Arc::clone(&table), false), decoder(table, true)]).collect()
}

/// The request that the bodies answer.
pub fn request() -> PageRequest {
    let plan = RequestPlan {
        endpoint: Endpoint::Search,
        aid: Some("7".to_owned()),
        duration: Some("7d".to_owned()),
        named: None,
        timezone: Some("UTC".to_owned()),
        filters: Vec::new(),
        sort: None,
        pages: Some(Pages { size: 100, skip: 0, fetch: None, ordered: false }),
    };
    PageRequest { plan: Arc::new(plan), row: 0, size: 100, frozen: None, cursor: None }
}
