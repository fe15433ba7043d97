//! Files of a store as the engine reads them: each block is compared with its checksum before it is decoded.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, Error as ObjectError, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::error::{Error, ErrorKind};
use crate::store::{CHANGED, Store, Sums, unreadable};

/// Files that are read only as they were written.
#[derive(Debug)]
pub(super) struct CheckedFiles {
    files: Arc<dyn ObjectStore>,
    store: Arc<Store>,
}

impl CheckedFiles {
    pub(super) fn new(files: Arc<dyn ObjectStore>, store: Arc<Store>) -> Self {
        Self { files, store }
    }

    fn sums(&self, location: &Path) -> Result<Option<Arc<Sums>>> {
        let Some(name) = location.filename() else { return Ok(None) };
        self.store.sums(name).map_err(failed)
    }

    /// The error of a file that is not as it was written.
    fn changed(&self, location: &Path) -> ObjectError {
        let file = self.store.shown(location.as_ref());
        failed(Error::new(ErrorKind::Store, format!("cannot read {file}: {CHANGED}")).advice(unreadable()))
    }
}

/// Returns a range of a file from blocks that have it.
fn part_of(bytes: &Bytes, blocks: &Range<u64>, range: &Range<u64>) -> Bytes {
    let position = |at: u64| usize::try_from(at - blocks.start).unwrap_or(usize::MAX);
    bytes.slice(position(range.start)..position(range.end))
}

fn failed(source: impl std::error::Error + Send + Sync + 'static) -> ObjectError {
    ObjectError::Generic { store: "store", source: Box::new(source) }
}

fn read_only(operation: &str) -> ObjectError {
    ObjectError::NotImplemented { operation: operation.to_owned(), implementer: "CheckedFiles".to_owned() }
}

impl fmt::Display for CheckedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CheckedFiles({})", self.files)
    }
}

#[async_trait]
impl ObjectStore for CheckedFiles {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let sums = if options.head { None } else { self.sums(location)? };
        let Some(sums) = sums else { return self.files.get_opts(location, options).await };
        let range = match &options.range {
            Some(range) => range.as_range(sums.length).map_err(failed)?,
            None => 0..sums.length,
        };
        let GetResult { meta, attributes, .. } =
            self.files.get_opts(location, GetOptions { head: true, range: None, ..options }).await?;
        let parts = self.get_ranges(location, std::slice::from_ref(&range)).await?;
        let payload = GetResultPayload::Stream(stream::iter(parts).map(Ok).boxed());
        Ok(GetResult { payload, meta, range, attributes })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let Some(sums) = self.sums(location)? else { return self.files.get_ranges(location, ranges).await };
        if ranges.iter().any(|range| range.start > range.end || range.end > sums.length) {
            return Err(self.changed(location));
        }
        // Pages are shorter than blocks: each block is read once.
        let mut blocks: Vec<Range<u64>> = ranges.iter().map(|range| sums.whole(range)).collect();
        blocks.sort_unstable_by_key(|blocks| blocks.start);
        blocks.dedup_by(|next, last| {
            let joins = next.start <= last.end;
            last.end = if joins { last.end.max(next.end) } else { last.end };
            joins
        });
        let read = self.files.get_ranges(location, &blocks).await?;
        if !blocks.iter().zip(&read).all(|(blocks, bytes)| sums.agree(blocks, bytes)) {
            return Err(self.changed(location));
        }
        let part = |range: &Range<u64>| {
            let at = blocks.partition_point(|blocks| blocks.start <= range.start).saturating_sub(1);
            part_of(&read[at], &blocks[at], range)
        };
        Ok(ranges.iter().map(part).collect())
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(read_only("put"))
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(read_only("put"))
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        locations.map(|_| Err(read_only("delete"))).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(read_only("copy"))
    }
}
