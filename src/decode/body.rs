//! A body, from which several tables are read in one pass.

use std::collections::BTreeMap;

use super::envelope::{self, Reading};
use super::{CountPlaces, Decoded, Decoder, Ends, Estimates, lossy_utf8};
use crate::error::{Error, ErrorKind, Result, Setting};
use crate::request::PageRequest;

/// A table to decode, and the request whose response has it.
pub(super) type Wanted<'a> = (&'a Decoder, &'a PageRequest);

/// A table as it was read, or the reason why the response does not have it.
pub(super) type Table = Result<(Decoded, Ends)>;

/// Decodes tables of one body, in their order, in one pass over it, and finds what it says of the counts at some places. Each
/// table has its own error, as if it were decoded alone.
pub(crate) fn decode_tables(
    wanted: &[Wanted<'_>],
    places: &CountPlaces,
    body: &[u8],
) -> (Vec<Result<Decoded>>, Estimates) {
    let (tables, estimates) = read_body(wanted, places, body);
    (tables.into_iter().map(|table| table.map(|(decoded, _)| decoded)).collect(), estimates)
}

/// Reads tables of a body. Invalid characters are replaced for those that allow it, which takes another pass.
pub(super) fn read_body(wanted: &[Wanted<'_>], places: &CountPlaces, body: &[u8]) -> (Vec<Table>, Estimates) {
    let (mut tables, mut estimates) = match simdutf8::basic::from_utf8(body) {
        // Some services prepend a byte order mark.
        Ok(text) => read_text(wanted, places, text.trim_start_matches('\u{feff}')),
        Err(_) => {
            let error = Error::new(ErrorKind::Malformed, "the response is not UTF-8");
            (wanted.iter().map(|_| Err(error.clone())).collect(), Estimates::default())
        }
    };
    let is_malformed = |table: &Table| table.as_ref().is_err_and(|error| error.kind() == ErrorKind::Malformed);
    if !tables.iter().any(is_malformed) {
        return (tables, estimates);
    }
    let Some(at) = lossy_utf8::first_flaw(body) else { return (tables, estimates) };
    let mut lossy = Vec::new();
    for (position, table) in tables.iter_mut().enumerate() {
        let Err(error) = table else { continue };
        if error.kind() == ErrorKind::Malformed {
            let message = format!("invalid UTF-8 or escape at byte {at} of the response: {}", error.message());
            let advice = Setting::LossyText.to("on").after("use ").then(" to replace and count invalid characters");
            *table = Err(Error::new(ErrorKind::Malformed, message).advice(advice));
            lossy.extend(wanted[position].0.lossy.then_some(position));
        }
    }
    if !lossy.is_empty() {
        let (text, mended) = lossy_utf8::mend(body);
        let again: Vec<Wanted<'_>> = lossy.iter().map(|position| wanted[*position]).collect();
        let (read, found) = read_text(&again, places, text.trim_start_matches('\u{feff}'));
        for (position, table) in lossy.into_iter().zip(read) {
            tables[position] = table.map(|(decoded, ends)| (Decoded { mended, ..decoded }, ends));
        }
        estimates = of_either(estimates, found);
    }
    (tables, estimates)
}

/// Reads tables of a text. If a string holds the JSON of an object that a table needs, that JSON is read in its place.
pub(super) fn read_text(wanted: &[Wanted<'_>], places: &CountPlaces, text: &str) -> (Vec<Table>, Estimates) {
    let mut readings: Vec<Reading<'_, '_>> = wanted.iter().map(|(decoder, request)| decoder.reading(request)).collect();
    let mut estimates = envelope::read(&mut readings, places, text).unwrap_or_default();
    let mut opened: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut tables = Vec::with_capacity(wanted.len());
    for (position, Reading { mut answer, rows, failed, .. }) in readings.into_iter().enumerate() {
        let (decoder, request) = wanted[position];
        tables.push(match (failed, answer.opened.take()) {
            (Some(error), _) => Err(error),
            (None, None) => decoder.build(request, text, answer, rows),
            (None, Some(inner)) => {
                opened.entry(inner).or_default().push(position);
                Err(Error::new(ErrorKind::Malformed, "the response has JSON in a string"))
            }
        });
    }
    for (inner, positions) in opened {
        let again: Vec<Wanted<'_>> = positions.iter().map(|position| wanted[*position]).collect();
        let (read, found) = read_text(&again, places, &inner);
        for (position, table) in positions.into_iter().zip(read) {
            tables[position] = table;
        }
        // Tables may be in several strings, each of which is opened alone.
        estimates = of_either(estimates, found);
    }
    (tables, estimates)
}

/// The counts that either of two readings of a response found to be estimates.
pub(super) fn of_either(one: Estimates, other: Estimates) -> Estimates {
    let places = one.lists.len().max(other.lists.len());
    let (mut ones, mut others) = (one.lists.into_iter(), other.lists.into_iter());
    let lists = std::iter::repeat_with(|| {
        let (one, other) = (ones.next().flatten(), others.next().flatten());
        one.or(other)
    });
    Estimates { total: one.total.or(other.total), lists: lists.take(places).collect() }
}

#[cfg(test)]
thread_local! {
    /// Passes over bodies that this thread has made.
    static PASSES: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
pub(super) fn count_pass() {
    PASSES.set(PASSES.get() + 1);
}

/// Number of passes over bodies that this thread has made.
#[cfg(test)]
pub(crate) fn passes() -> u64 {
    PASSES.get()
}
