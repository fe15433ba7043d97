//! Object storage of a store's files: a bucket of Amazon S3 or a service with its interface, of Google Cloud Storage or of Azure.
//!
//! An object appears whole or not at all, and is durable once it has been accepted. Credentials are those of the environment, as
//! the vendors' own programs read them (`AWS_…`, `GOOGLE_…`, `AZURE_…`).
//!
//! Invariants: nothing replaces an object of mentions, because its name is random, and its first write has a condition, which the
//! service checks unless the object is sent in parts. Credentials cannot be printed.

use std::fmt;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::SpawnedReqwestConnector;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path as Key;
use object_store::{
    CopyOptions, Error as ObjectError, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, RetryConfig, UploadPart,
};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::network::{Network, Unfinished};
use super::storage::Found;
use crate::error::{Error, ErrorKind, Result};
use crate::location::Address;

/// Retries of a request, and the time in which they begin.
const RETRIES: usize = 5;
const RETRYING: Duration = Duration::from_secs(30);
/// Longest wait for an object.
const LONGEST: Duration = Duration::from_secs(600);
/// Longest wait for the parts of an object, so that time is left to abort an upload.
const SENDING: Duration = Duration::from_secs(540);
/// Longest wait for the removal of an object. Processes that write to the store may wait as well.
const REMOVING: Duration = Duration::from_secs(12);
/// Size from which on an object is sent in parts, and the size of a part.
const LARGE: usize = 64 << 20;
const PART: usize = 8 << 20;
/// Parts that are sent at the same time.
const PARTS: usize = 4;
/// Objects whose lengths are requested at the same time.
const HEADS: usize = 16;
/// Number of bytes that are read at once: readers go on where they have stopped.
const WINDOW: u64 = 1 << 20;

/// A prefix of a bucket. Paths of its objects begin with its address.
#[derive(Debug)]
pub(crate) struct Bucket {
    objects: Arc<dyn ObjectStore>,
    network: Network,
    /// Address as a path.
    root: PathBuf,
    prefix: String,
    /// Address of the bucket.
    bucket: String,
}

/// An object that is read.
#[derive(Debug)]
pub(crate) struct Object {
    bucket: Arc<Bucket>,
    key: Key,
    length: u64,
    /// The bytes that were read last, and their position.
    window: Mutex<(u64, Bytes)>,
}

impl Bucket {
    /// Prepares requests to a bucket. None is sent.
    pub(crate) fn open(address: &Address) -> Result<Self> {
        let network = Network::start()
            .map_err(|error| Error::new(ErrorKind::Store, format!("cannot start the thread of {address}: {error}")))?;
        let objects = objects_of(address, network.handle())?;
        let (root, prefix) = (PathBuf::from(address.to_string()), address.prefix().to_owned());
        let bucket = format!("{}://{}", address.scheme(), address.bucket());
        Ok(Self { objects, network, root, prefix, bucket })
    }

    /// Path of the folder of all files.
    pub(crate) fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    /// The objects, for readers that run tasks.
    pub(crate) fn objects(&self) -> &Arc<dyn ObjectStore> {
        &self.objects
    }

    /// Name of an object, below the bucket, by its path.
    pub(crate) fn key(&self, path: &Path) -> io::Result<Key> {
        let below = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
        let below = below.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not an object of the store"))?;
        let below = below.replace(std::path::MAIN_SEPARATOR, "/");
        let key = if self.prefix.is_empty() { below } else { format!("{}/{below}", self.prefix) };
        Key::parse(key).map_err(io::Error::other)
    }

    /// Address of an object by its name.
    pub(crate) fn shown(&self, key: &str) -> String {
        format!("{}/{key}", self.bucket)
    }

    /// Length of an object in bytes.
    pub(crate) fn length(&self, path: &Path) -> io::Result<u64> {
        let (objects, key) = (Arc::clone(&self.objects), self.key(path)?);
        self.run(async move { objects.head(&key).await }).map(|found| found.size)
    }

    /// Lengths of objects in bytes, in their order; `None` for a missing one. They are requested several at a time. `longest`: longest
    /// wait for all of them, if it is another than that for an object.
    pub(crate) fn lengths_of(&self, paths: &[&Path], longest: Option<Duration>) -> io::Result<Vec<Option<u64>>> {
        let keys = paths.iter().map(|path| self.key(path)).collect::<io::Result<Vec<_>>>()?;
        let objects = Arc::clone(&self.objects);
        self.run_within(longest.unwrap_or(LONGEST), async move {
            let head = |key: Key| {
                let objects = Arc::clone(&objects);
                async move {
                    match objects.head(&key).await {
                        Ok(found) => Ok(Some(found.size)),
                        Err(ObjectError::NotFound { .. }) => Ok(None),
                        Err(error) => Err(error),
                    }
                }
            };
            stream::iter(keys).map(head).buffered(HEADS).try_collect().await
        })
    }

    /// Opens an object for reading.
    pub(crate) fn read(self: &Arc<Self>, path: &Path) -> io::Result<Object> {
        let (key, length) = (self.key(path)?, self.length(path)?);
        Ok(Object { bucket: Arc::clone(self), key, length, window: Mutex::new((0, Bytes::new())) })
    }

    /// Writes an object. If it `replaces` none, one of this name must be the same.
    pub(crate) fn write(&self, path: &Path, bytes: Vec<u8>, replaces: bool) -> io::Result<()> {
        let (objects, key, bytes) = (Arc::clone(&self.objects), self.key(path)?, Bytes::from(bytes));
        let length = bytes.len() as u64;
        let written = self.run(async move {
            if bytes.len() < LARGE {
                let mode = if replaces { PutMode::Overwrite } else { PutMode::Create };
                return objects.put_opts(&key, bytes.into(), mode.into()).await.map(drop);
            }
            let mut upload = objects.put_multipart(&key).await?;
            let parts = (0..bytes.len()).step_by(PART).map(|start| bytes.slice(start..bytes.len().min(start + PART)));
            // None is sent before it is waited for.
            let parts: Vec<UploadPart> = parts.map(|part| upload.put_part(part.into())).collect();
            let sending = async {
                stream::iter(parts).buffered(PARTS).try_collect::<()>().await?;
                upload.complete().await.map(drop)
            };
            let sent = timeout(SENDING, sending).await.unwrap_or_else(|_| Err(late()));
            // Parts that stay would be paid for. The first error is the cause.
            if sent.is_err() {
                let _ = upload.abort().await;
            }
            sent
        });
        match written {
            // The answer to an earlier attempt was lost.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.length(path)? == length => Ok(()),
            written => written,
        }
    }

    /// Returns a short object. If it may be written and is missing, it is written first.
    ///
    /// If it is there with this text, it is offered to the bucket again, with the condition that it is missing: credentials that may not
    /// write are refused, and nothing changes even if the service ignores the condition. An object with another text is never written.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] if the object may be written, but the credentials do not permit that.
    pub(crate) fn claim(&self, path: &Path, text: &str, may_write: bool, is_new: bool) -> io::Result<String> {
        let (objects, key, text) = (Arc::clone(&self.objects), self.key(path)?, text.to_owned());
        let found = self.run(async move {
            let found = match objects.get(&key).await {
                Ok(found) => Some(found.bytes().await?),
                Err(ObjectError::NotFound { .. }) if may_write && is_new => None,
                Err(error) => return Err(error),
            };
            if let Some(found) = found.filter(|found| !may_write || found[..] != *text.as_bytes()) {
                return Ok(found);
            }
            match objects.put_opts(&key, text.into(), PutMode::Create.into()).await {
                Ok(_) | Err(ObjectError::AlreadyExists { .. }) => objects.get(&key).await?.bytes().await,
                Err(error) => Err(error),
            }
        })?;
        Ok(String::from_utf8_lossy(&found).into_owned())
    }

    /// Removes an object.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        let (objects, key) = (Arc::clone(&self.objects), self.key(path)?);
        self.run_within(REMOVING, async move {
            // The removal of a missing object succeeds.
            objects.head(&key).await?;
            objects.delete(&key).await
        })
    }

    /// Returns the objects below a path.
    pub(crate) fn list(&self, folder: &Path) -> io::Result<Vec<Found>> {
        let (objects, key) = (Arc::clone(&self.objects), self.key(folder)?);
        let found: Vec<ObjectMeta> = self.run(async move { objects.list(Some(&key)).try_collect().await })?;
        let below = |key: &Key| {
            let name = key.as_ref();
            let below = if self.prefix.is_empty() { Some(name) } else { name.strip_prefix(self.prefix.as_str()) };
            below.map(|below| self.root.join(below.trim_start_matches('/')))
        };
        let found = found.into_iter().filter_map(|object| {
            Some(Found { path: below(&object.location)?, length: object.size, written: Some(object.last_modified) })
        });
        Ok(found.collect())
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        self.run_within(LONGEST, work)
    }

    fn run_within<T: Send + 'static>(
        &self,
        longest: Duration,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        self.network.run(longest, work)?.map_err(told)
    }
}

impl Object {
    /// Length in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Reads bytes from a position on.
    pub(crate) fn read_exact_at(&self, start: u64, into: &mut [u8]) -> io::Result<()> {
        if into.is_empty() {
            return Ok(());
        }
        let end = start.saturating_add(into.len() as u64);
        if end > self.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, bytes) = &*window;
        if start < *first || end > first + bytes.len() as u64 {
            let range = start..end.max(start.saturating_add(WINDOW)).min(self.length);
            let (objects, key) = (Arc::clone(&self.bucket.objects), self.key.clone());
            *window = (start, self.bucket.run(async move { objects.get_range(&key, range).await })?);
        }
        let (first, bytes) = &*window;
        let from = usize::try_from(start - first).unwrap_or(usize::MAX);
        let read = bytes.get(from..from.saturating_add(into.len())).ok_or(io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(read);
        Ok(())
    }
}

/// The objects of a bucket, with requests on the threads of a runtime.
pub(crate) fn objects_of(address: &Address, runtime: Handle) -> Result<Arc<dyn ObjectStore>> {
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRYING, ..RetryConfig::default() };
    let connector = SpawnedReqwestConnector::new(runtime);
    let built: object_store::Result<Arc<dyn ObjectStore>> = match address.scheme() {
        "gs" => {
            let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(address.bucket());
            builder.with_retry(retry).with_http_connector(connector).build().map(|objects| Arc::new(objects) as _)
        }
        "az" => {
            let builder = MicrosoftAzureBuilder::from_env().with_container_name(address.bucket());
            builder.with_retry(retry).with_http_connector(connector).build().map(|objects| Arc::new(objects) as _)
        }
        _ => {
            let builder = AmazonS3Builder::from_env().with_bucket_name(address.bucket());
            builder.with_retry(retry).with_http_connector(connector).build().map(|objects| Arc::new(objects) as _)
        }
    };
    let objects = built.map_err(|error| {
        Error::new(ErrorKind::Config, format!("{address}: {error}"))
            .advice("set the credentials of the bucket in the environment, such as AWS_ACCESS_KEY_ID and AWS_REGION")
    })?;
    Ok(Arc::new(Unprinted(objects)))
}

/// Objects whose credentials cannot be printed.
struct Unprinted(Arc<dyn ObjectStore>);

impl fmt::Debug for Unprinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unprinted")
    }
}

impl fmt::Display for Unprinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects of a store")
    }
}

#[async_trait]
impl ObjectStore for Unprinted {
    async fn put_opts(&self, key: &Key, payload: PutPayload, options: PutOptions) -> object_store::Result<PutResult> {
        self.0.put_opts(key, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        key: &Key,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(key, options).await
    }

    async fn get_opts(&self, key: &Key, options: GetOptions) -> object_store::Result<GetResult> {
        self.0.get_opts(key, options).await
    }

    async fn get_ranges(&self, key: &Key, ranges: &[Range<u64>]) -> object_store::Result<Vec<Bytes>> {
        self.0.get_ranges(key, ranges).await
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, object_store::Result<Key>>,
    ) -> BoxStream<'static, object_store::Result<Key>> {
        self.0.delete_stream(keys)
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> object_store::Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Key, to: &Key, options: CopyOptions) -> object_store::Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

/// The error of an upload that takes too long.
fn late() -> ObjectError {
    ObjectError::Generic { store: "bucket", source: format!("not sent within {} s", SENDING.as_secs()).into() }
}

impl From<Unfinished> for io::Error {
    fn from(unfinished: Unfinished) -> Self {
        let kind = match unfinished {
            Unfinished::Late(_) => io::ErrorKind::TimedOut,
            Unfinished::Failed(_) => io::ErrorKind::Other,
        };
        Self::new(kind, unfinished.to_string())
    }
}

/// The error of an object as that of a file.
fn told(error: ObjectError) -> io::Error {
    let kind = match &error {
        ObjectError::NotFound { .. } => io::ErrorKind::NotFound,
        ObjectError::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
        ObjectError::PermissionDenied { .. } | ObjectError::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

#[cfg(test)]
mod tests;
