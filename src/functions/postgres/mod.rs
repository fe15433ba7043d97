//! Functions that statements of PostgreSQL's clients are translated to: what PostgreSQL computes differently from the engine.

mod array;
mod cast;
mod template;
mod text;

pub(super) use self::cast::PostgresCast;
pub(super) use self::template::PostgresToChar;
#[cfg(feature = "postgres")]
pub(crate) use self::{
    array::{NotAnArray, items},
    text::put_text,
};
