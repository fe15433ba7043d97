//! What is read at a time: the plan's window, held at the instants that the service told, or a part of it.

use std::collections::HashSet;

use chrono::{DateTime, Utc};

use crate::profile::{WindowSpec, Zone};

/// A span of time, [from, to), in microseconds since 1970.
pub(super) type Instants = (i64, i64);

/// A window to be read.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Its words, where they are not those of the plan.
    pub(super) words: Option<String>,
    /// Its instants, where they are known.
    pub(super) instants: Option<Instants>,
    /// Ids within it that have left already.
    pub(super) known: HashSet<u64>,
    /// Whether these may lie anywhere in it, and not at the cut it begins with only.
    pub(super) scattered: bool,
    /// Whether it is a part of another one.
    pub(super) cut: bool,
    /// Whether it was read before, and not all of it came.
    pub(super) again: bool,
}

impl Window {
    /// The window of a plan in the service's words.
    pub(super) fn of(spec: &WindowSpec, words: Option<&str>, zone: Zone) -> Self {
        let instants = words.and_then(|words| spec.span_of(words, zone)).map(micros);
        Self { instants, ..Self::default() }
    }

    /// Holds a relative period at the instants that the service resolved it to, where it takes such.
    pub(super) fn freeze(&mut self, spec: &WindowSpec, zone: Zone, told: Option<(DateTime<Utc>, DateTime<Utc>)>) {
        let Some((from, to)) = told.filter(|_| self.instants.is_none() && self.words.is_none()) else { return };
        let (from, to) = micros((from, to));
        let grid = spec.grid(zone);
        if grid.floor(from) == from && grid.floor(to) == to && spec.is_half_open() {
            self.words = words(spec, zone, (from, to));
            self.instants = self.words.as_ref().map(|_| (from, to));
        }
    }

    /// A part of it, in the service's words; `None` where it cannot be said.
    pub(super) fn part(
        spec: &WindowSpec,
        zone: Zone,
        instants: Instants,
        known: HashSet<u64>,
        again: bool,
    ) -> Option<Self> {
        let words = words(spec, zone, instants)?;
        Some(Self { words: Some(words), instants: Some(instants), known, scattered: again, cut: true, again })
    }
}

fn words(spec: &WindowSpec, zone: Zone, (from, to): Instants) -> Option<String> {
    let instant = DateTime::from_timestamp_micros;
    let words = spec.takes_instants().then(|| Some(spec.words_of(instant(from)?, instant(to)?, zone)))??;
    spec.check_words(&words).is_ok().then_some(words)
}

fn micros((from, to): (DateTime<Utc>, DateTime<Utc>)) -> Instants {
    (from.timestamp_micros(), to.timestamp_micros())
}
