//! Recordings, which people send to each other. The first line is the file with the metadata, the rest that of a request.

use std::fs;

use datafusion_saved_search::ErrorKind;
use datafusion_saved_search::client::Replay;
use datafusion_saved_search::probe::Recording;

/// Reads a recording. One that is refused has an error that names the file.
pub fn target(data: &[u8]) {
    let (head, request) = match data.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &[][..]),
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("recording.json"), head).expect("a file is written");
    fs::write(folder.path().join("00001.json"), request).expect("a file is written");
    let replayed = Replay::read(folder.path()).map(|replay| assert!(replay.base_url().len() <= data.len()));
    let recorded = Recording::read(folder.path()).map(|recording| assert_eq!(recording.len(), 1));
    assert_eq!(replayed.is_ok(), recorded.is_ok(), "both read the same");
    for error in [replayed.err(), recorded.err()].into_iter().flatten() {
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.to_string().contains(".json") && !error.to_string().contains('\n'), "{error}");
    }
}
