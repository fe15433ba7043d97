//! Functions for translated statements of PostgreSQL clients: operations that PostgreSQL computes differently from the
//! engine.

mod array;
mod cast;
mod interval;
mod number_template;
mod numeric;
mod scalar;
mod start_of_day;
mod template;
mod text;
mod time_text;
mod years;

pub(crate) use self::cast::PostgresCast;
pub(crate) use self::interval::{Unit, intervals};
pub(crate) use self::numeric::{Numeric, numeric};
pub(super) use self::scalar::listed;
pub(crate) use self::scalar::listed_named;
pub(crate) use self::start_of_day::start_of_day;
pub(super) use self::template::PostgresToChar;
pub(crate) use self::time_text::time_text;
pub(super) use self::years::Years;
#[cfg(feature = "postgres")]
pub(crate) use self::{
    array::{NotAnArray, items},
    interval::read_interval,
    text::put_text,
};
