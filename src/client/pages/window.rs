//! Windows to read: the plan's window, fixed to the instants that the service reported, or a part of it.

use chrono::{DateTime, Utc};

use super::continuity::Chain;
use super::ids::Ids;
use crate::profile::{WindowSpec, Zone};

/// A span of time, [from, to), in microseconds since 1970.
pub(super) type Instants = (i64, i64);

/// A window to read.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Value of the period parameter, if it differs from the plan's.
    pub(super) words: Option<String>,
    /// Instants, if known.
    pub(super) instants: Option<Instants>,
    /// Instants to request if the period syntax cannot express its own.
    pub(super) wider: Option<Instants>,
    /// Beginning of a relative period, as the service reported it.
    pub(super) begins: Option<i64>,
    /// Set if the request names its instants; rows outside them are dropped.
    pub(super) stated: bool,
    /// Set if the service reported that its response covers more than the requested instants.
    pub(super) exceeded: bool,
    /// Ids within it that were already emitted.
    pub(super) known: Ids,
    /// Set if these may lie anywhere in the window, not only at the cut that it begins with.
    pub(super) scattered: bool,
    /// Set if it is a part of another window.
    pub(super) cut: bool,
    /// Set if it was read before, but not completely.
    pub(super) again: bool,
    /// Instant at one of its ends that belongs to another part, if windows include both ends.
    pub(super) shared: Option<i64>,
}

impl Window {
    /// Creates the window of a plan from the value of its period parameter.
    pub(super) fn of(spec: &WindowSpec, words: Option<&str>, zone: Zone) -> Self {
        let instants = words.and_then(|words| spec.span_of(words, zone)).map(micros);
        Self { instants, stated: instants.is_some(), ..Self::default() }
    }

    /// True for the far side of a cut that lacks mentions at its edge, which the near side had.
    pub(super) fn lacks(&self, read: &Chain) -> bool {
        self.cut && !self.scattered && !read.has_all_known()
    }

    /// Fixes a relative period to the instants that the service resolved it to, if the service accepts instants.
    /// Instants that the period syntax cannot express are kept in case the window is cut.
    pub(super) fn freeze(&mut self, spec: &WindowSpec, zone: Zone, told: Option<(DateTime<Utc>, DateTime<Utc>)>) {
        let Some(told) = told.filter(|_| self.instants.is_none() && self.words.is_none()) else { return };
        let told = micros(told);
        if outward(spec, zone, told) == told && spec.is_half_open() {
            self.words = words(spec, zone, told);
        }
        self.instants = spec.takes_instants().then_some(told);
        self.begins = Some(told.0);
    }

    /// True if its parts can be requested exactly, so that their totals add up to its own.
    pub(super) fn is_sayable(&self, spec: &WindowSpec, zone: Zone) -> bool {
        self.instants.is_some_and(|instants| outward(spec, zone, instants) == instants)
    }

    /// True if the requested window is wider than its own.
    pub(super) fn is_wider(&self) -> bool {
        self.wider.is_some()
    }

    /// True if a row at this instant belongs to the window itself, not only to what was requested or received.
    pub(super) fn holds(&self, at: i64, half_open: bool) -> bool {
        let Some((from, to)) = self.instants.filter(|_| self.stated) else { return true };
        from <= at && (at < to || (at == to && !half_open)) && self.shared != Some(at)
    }

    /// True if a row at this instant may be in a response to the request. Services differ in whether the end belongs to it.
    pub(super) fn may_have(&self, at: i64) -> bool {
        // Reading on from a cut needs a service that ends its responses there.
        let asked = self.wider.or(self.instants).filter(|_| self.cut || (self.stated && !self.exceeded));
        // A response may report whole seconds.
        let reported = self.begins.is_none_or(|from| from - 1_000_000 <= at);
        reported && asked.is_none_or(|(from, to)| (from..=to).contains(&at))
    }

    /// Creates a part of a window; `None` if the period syntax cannot express it.
    pub(super) fn part(spec: &WindowSpec, zone: Zone, instants: Instants, known: Ids, again: bool) -> Option<Self> {
        let asked = outward(spec, zone, instants);
        let words = Some(words(spec, zone, asked)?);
        let wider = (asked != instants).then_some(asked);
        let (instants, stated) = (Some(instants), true);
        Some(Self { words, instants, wider, stated, known, scattered: again, cut: true, again, ..Self::default() })
    }
}

/// Returns the narrowest expressible window that contains these instants.
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
