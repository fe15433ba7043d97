//! Rewrites of the tokens of a text, before it is parsed: forms that the parser does not read, as forms that it reads.
//!
//! Called by `session/parse`. The places of tokens stay those of the text, for messages.

pub(super) mod past_tables;
pub(super) mod table_queries;
pub(super) mod unread_forms;
