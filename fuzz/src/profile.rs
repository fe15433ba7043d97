//! Profiles, which people write.

use std::sync::Arc;

use datafusion_saved_search::decode::Decoder;
use datafusion_saved_search::{ErrorKind, Profile};

use super::envelope::request;

const BODY: &[u8] = include_bytes!("../seeds/envelope/page.json");

/// Reads a profile. One that is accepted can be used; one that is refused has an error that names the file.
pub fn target(data: &[u8]) {
    match Profile::parse(&String::from_utf8_lossy(data), "fuzzed.toml") {
        Ok(profile) => {
            let decoder = Decoder::new(Arc::new(profile.clone()), Arc::new(profile.tables.mentions.clone()), &[0]);
            let _ = decoder.decode(&request(), BODY);
            request().parameters(&profile);
            profile.dimensions();
        }
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Profile | ErrorKind::Unsupported), "{error}");
            assert!(error.to_string().contains("fuzzed.toml") && !error.to_string().contains('\n'), "{error}");
        }
    }
}
