//! SQL over a saved-search analytics API.
pub mod client;
pub mod clock;
pub mod decode;
pub mod error;
pub mod profile;
pub mod request;
