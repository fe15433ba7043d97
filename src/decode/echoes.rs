//! Echoes of a request in its response: the saved search, the zone, the offset and the window.

use chrono::{DateTime, Utc};

use super::envelope::Envelope;
use super::value::{InstantForm, Instants, integer_of};
use super::{AS_OF, Decoder, ECHO_AID, ECHO_OFFSET, ECHO_TIMEZONE, WINDOW_FROM, WINDOW_TO};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::Zone;
use crate::request::{Echo, PageRequest, RequestedWindow};

impl Decoder {
    /// True if a response repeats the offset rounded down to a multiple of the page size.
    fn is_rounded(&self, request: &PageRequest, echoed: &str) -> bool {
        let rounded = request.row - request.row % request.size.max(1);
        let further = request.plan.pages.is_some_and(|pages| request.row > pages.skip);
        further
            && self.profile.offset.reaches_any_row()
            && self.profile.offset.of(rounded, request.size).is_some_and(|offset| Ok(offset) == echoed.parse())
    }

    /// The window that the response reports; `None` if one of its ends is no instant ([`instant`](Self::instant)).
    fn window(&self, answer: &Envelope<'_>, request: &PageRequest) -> Result<Option<(DateTime<Utc>, DateTime<Utc>)>> {
        let end = |slot| self.instant(answer, request, slot, "`from` and `to` in [echo]");
        Ok(end(WINDOW_FROM)?.zip(end(WINDOW_TO)?))
    }

    /// An instant outside the records. Local times are those of the column with the time of mentions, or else of UTC. `None` if
    /// it is absent, if its zone is not known, or if it is a day, which a window may include or not. `entry`: the profile's entry
    /// for it.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] for a value that is no instant: what the response covers would not be noticed.
    fn instant(
        &self,
        answer: &Envelope<'_>,
        request: &PageRequest,
        slot: usize,
        entry: &str,
    ) -> Result<Option<DateTime<Utc>>> {
        /// Instants before 1973, in seconds: numbers that are something else.
        const EARLY: i64 = 100_000_000;
        let mentions = &self.profile.tables.mentions;
        let of_time = mentions.time.as_ref().and_then(|time| mentions.column(time)).map(InstantForm::of);
        let requested = request.plan.zone(&self.profile);
        let Some(text) = answer.text(slot) else { return Ok(None) };
        let mut instants = Instants::of(InstantForm { pattern: None, ..of_time.unwrap_or_default() });
        match instants.read(&text) {
            Some(_) if instants.days > 0 => Ok(None),
            // It may be a time of any of several zones.
            None if instants.ambiguous.is_some() => Ok(None),
            // It may be a time of UTC or of the requested zone.
            Some(_) if instants.assumed.is_some() && requested != Zone::UTC => Ok(None),
            Some(at) => Ok(Some(at).filter(|at| *at > EARLY * 1_000_000).and_then(DateTime::from_timestamp_micros)),
            // The words that were requested, such as `now`.
            None if !(text.len() >= 8 && text.starts_with(|first: char| first.is_ascii_digit())) => Ok(None),
            None => {
                let value: String = text.chars().take(100).collect();
                let message = format!("a time that the response reports cannot be read: `{value}` is no instant");
                Err(Error::new(ErrorKind::Contradiction, message)
                    .advice(format!("correct or remove {entry} of the profile")))
            }
        }
    }

    /// True if a response names the requested zone otherwise.
    fn is_same_zone(&self, asked: &str, echoed: &str) -> bool {
        if self.same_zone.get().is_some_and(|known| known == echoed) {
            return true;
        }
        let (Ok(asked), Some(other)) = (asked.parse::<Zone>(), Zone::named_otherwise(echoed)) else { return false };
        let same = asked.has_rules_of(other);
        if same {
            self.same_zone.get_or_init(|| echoed.to_owned());
        }
        same
    }

    /// Compares what a response repeats of its request with the request as it was sent. Returns the echo of its window, which each
    /// use of the response checks further.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`], naming what was requested and what the response is for.
    pub(super) fn check_echoes(&self, request: &PageRequest, answer: &Envelope<'_>) -> Result<Echo> {
        let plan = request.plan.as_ref();
        let offset = plan.pages.and_then(|_| self.profile.offset.of(request.row, request.size));
        let offset = offset.map(|offset| offset.to_string());
        for (slot, asked, what) in [
            (ECHO_AID, plan.aid.as_deref(), "aid"),
            (ECHO_TIMEZONE, plan.timezone.as_deref(), "timezone"),
            (ECHO_OFFSET, offset.as_deref(), "offset"),
        ] {
            // A JSON number may be written as `100.0`; the text `0100` is the key of another saved search.
            let is_number = answer.raw(slot).is_some_and(|raw| matches!(raw.first(), b'0'..=b'9' | b'-'));
            let number = |text: &str| integer_of(text).filter(|_| is_number || slot == ECHO_OFFSET);
            let plain = |text: &str| number(text).filter(|number| slot == ECHO_OFFSET || number.to_string() == text);
            if let (Some(asked), Some(echoed)) = (asked, answer.text(slot))
                && *asked != *echoed
                // Blanks around an aid are no part of it.
                && !(slot == ECHO_AID && asked.trim() == echoed.trim())
                && (slot == ECHO_TIMEZONE || plain(asked).is_none() || plain(asked) != number(&echoed))
                && !(slot == ECHO_TIMEZONE && self.is_same_zone(asked, &echoed))
                // An offset that was rounded down shows in the rows.
                && !(slot == ECHO_OFFSET && self.is_rounded(request, &echoed))
            {
                return Err(Error::new(
                    ErrorKind::Contradiction,
                    format!("requested {what} `{asked}`, but the response is for `{}`", echoed),
                )
                .advice("the service ignores the parameter or uses another name for it; check the profile")
                .passing());
            }
        }
        let asked = request.duration();
        let asked = asked.and_then(|words| RequestedWindow::of(&self.profile.window, words, plan.zone(&self.profile)));
        let as_of = self.instant(answer, request, AS_OF, "`as_of` in [complete]")?;
        Echo::try_new(asked, self.window(answer, request)?, as_of)
    }
}
