//! Targets for fuzzing: functions of bytes that panic if the library does something wrong with them. Each has seeds in
//! `fuzz/seeds`.
//!
//! The crate is run by cargo-fuzz; `tests/it/fuzz.rs` includes these files as modules.

pub mod envelope;
pub mod json;
pub mod pgwire;
pub mod profile;
pub mod recording;

/// True for an error as it may be shown: one line of bounded length.
fn is_shown_well(error: &datafusion_saved_search::Error) -> bool {
    let line = error.to_string();
    !line.contains('\n') && line.len() < 2_000
}
