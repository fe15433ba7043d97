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
    /// The instants that are asked for where the grammar cannot say its own: rows outside of its own are left out.
    pub(super) wider: Option<Instants>,
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

    /// Holds a relative period at the instants that the service resolved it to, where it takes such. Instants that the
    /// grammar cannot say are kept for the day when the window is cut.
    pub(super) fn freeze(&mut self, spec: &WindowSpec, zone: Zone, told: Option<(DateTime<Utc>, DateTime<Utc>)>) {
        let Some(told) = told.filter(|_| self.instants.is_none() && self.words.is_none()) else { return };
        let told = micros(told);
        if outward(spec, zone, told) == told && spec.is_half_open() {
            self.words = words(spec, zone, told);
        }
        self.instants = spec.takes_instants().then_some(told);
    }

    /// Whether its parts can be asked for just as they are, so that their totals add up to its own.
    pub(super) fn is_sayable(&self, spec: &WindowSpec, zone: Zone) -> bool {
        self.instants.is_some_and(|instants| outward(spec, zone, instants) == instants)
    }

    /// Whether its rows are held to instants that the service cannot be asked for.
    pub(super) fn is_wider(&self) -> bool {
        self.wider.is_some()
    }

    /// Whether a row at this instant belongs to it, and not only to what was asked for.
    pub(super) fn holds(&self, at: i64, half_open: bool) -> bool {
        let Some((from, to)) = self.instants.filter(|_| self.wider.is_some()) else { return true };
        from <= at && (at < to || (at == to && !half_open))
    }

    /// A part of it, in the service's words; `None` where it cannot be said.
    pub(super) fn part(
        spec: &WindowSpec,
        zone: Zone,
        instants: Instants,
        known: HashSet<u64>,
        again: bool,
    ) -> Option<Self> {
        let asked = outward(spec, zone, instants);
        let words = Some(words(spec, zone, asked)?);
        let wider = (asked != instants).then_some(asked);
        Some(Self { words, instants: Some(instants), wider, known, scattered: again, cut: true, again })
    }
}

/// The instants that can be said, as near as can be, around these.
fn outward(spec: &WindowSpec, zone: Zone, (from, to): Instants) -> Instants {
    let grid = spec.grid(zone);
    (grid.floor(from), grid.ceil(to))
}

fn words(spec: &WindowSpec, zone: Zone, (from, to): Instants) -> Option<String> {
    let instant = DateTime::from_timestamp_micros;
    let words = spec.takes_instants().then(|| Some(spec.words_of(instant(from)?, instant(to)?, zone)))??;
    spec.check_words(&words).is_ok().then_some(words)
}

fn micros((from, to): (DateTime<Utc>, DateTime<Utc>)) -> Instants {
    (from.timestamp_micros(), to.timestamp_micros())
}
