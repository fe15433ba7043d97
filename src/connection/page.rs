//! Decoded responses as pages for the client, which does not know the decoder.

use crate::client::{Page, PageDecoder, PageFacts};
use crate::decode::{Decoded, Decoder};
use crate::error::Result;
use crate::request::{PageRequest, Traits};

impl Page for Decoded {
    fn ids(&self) -> Option<&[u64]> {
        self.ids.as_deref()
    }

    fn times(&self) -> Option<&[i64]> {
        self.times.as_deref()
    }

    fn keys(&self) -> Option<&[i64]> {
        self.keys.as_deref().or(self.times.as_deref())
    }

    fn versions(&self) -> Option<&[i64]> {
        self.versions.as_deref()
    }

    fn traits(&self) -> Option<&[Traits]> {
        self.traits.as_deref()
    }

    fn more(&self) -> Option<&str> {
        self.more.as_deref()
    }

    fn next(&self) -> Option<&str> {
        self.next.as_deref()
    }

    fn bytes(&self) -> usize {
        self.batch.get_array_memory_size()
    }

    fn retain(self, keep: &[bool]) -> Self {
        // Usually only the first or the last row is dropped, which costs nothing.
        let first = keep.iter().position(|keep| *keep).unwrap_or(keep.len());
        let end = keep.iter().rposition(|keep| *keep).map_or(first, |last| last + 1);
        let part = self.batch.slice(first, end - first);
        let kept = &keep[first..end];
        let batch = if kept.contains(&false) {
            // The mask has one flag per row, the only requirement of the filter kernel.
            arrow::compute::filter_record_batch(&part, &kept.to_vec().into()).expect("one flag per row")
        } else {
            part
        };
        Self { batch, ids: None, times: None, keys: None, versions: None, traits: None, ..self }
    }

    fn last_row(&self) -> Self {
        let rows = self.batch.num_rows();
        let batch = self.batch.slice(rows.saturating_sub(1), rows.min(1));
        let Self { total, hint, beside, counted_days, echo, .. } = *self;
        Self {
            batch,
            total,
            hint,
            beside,
            counted_days,
            echo,
            ids: None,
            times: None,
            keys: None,
            versions: None,
            buckets: None,
            conflicts: 0,
            mended: 0,
            unnamed: 0,
            records: 0,
            present: Vec::new(),
            unknown: Vec::new(),
            more: None,
            doubt: None,
            inexact: None,
            next: None,
            assumed: None,
            traits: None,
        }
    }
}

impl PageDecoder for Decoder {
    type Page = Decoded;

    fn decode(&self, request: &PageRequest, body: &[u8]) -> Result<(Decoded, PageFacts)> {
        let decoded = Self::decode(self, request, body)?;
        let facts = facts_of(&decoded);
        Ok((decoded, facts))
    }
}

/// The facts that a decoded page reports about its scan.
pub(crate) fn facts_of(page: &Decoded) -> PageFacts {
    let Decoded { total, hint, beside, counted_days, echo, .. } = *page;
    PageFacts { rows: page.batch.num_rows() as u64, total, hint, beside, counted_days, echo }
}
