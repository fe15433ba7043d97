use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use object_store::memory::InMemory;

use super::*;
use crate::store::maintenance::remove_own;
use crate::store::storage::Storage;

/// Objects in memory that are not written or removed while that is denied. They ignore the condition of writing only what is missing.
#[derive(Debug, Default)]
struct Objects {
    objects: InMemory,
    denies: AtomicBool,
}

impl Objects {
    fn refusal(&self, key: &Key) -> object_store::Result<()> {
        match self.denies.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(ObjectError::PermissionDenied { path: key.to_string(), source: "denied".into() }),
        }
    }
}

impl fmt::Display for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Objects")
    }
}

#[async_trait]
impl ObjectStore for Objects {
    async fn put_opts(&self, key: &Key, payload: PutPayload, _: PutOptions) -> object_store::Result<PutResult> {
        self.refusal(key)?;
        self.objects.put_opts(key, payload, PutMode::Overwrite.into()).await
    }

    async fn put_multipart_opts(
        &self,
        key: &Key,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.refusal(key)?;
        self.objects.put_multipart_opts(key, options).await
    }

    async fn get_opts(&self, key: &Key, options: GetOptions) -> object_store::Result<GetResult> {
        self.objects.get_opts(key, options).await
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, object_store::Result<Key>>,
    ) -> BoxStream<'static, object_store::Result<Key>> {
        match self.refusal(&Key::from("x")) {
            Ok(()) => self.objects.delete_stream(keys),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> object_store::Result<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Key, to: &Key, options: CopyOptions) -> object_store::Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}

fn bucket(objects: &Arc<Objects>) -> Bucket {
    let objects: Arc<dyn ObjectStore> = Arc::<Objects>::clone(objects);
    let network = Network::start().expect("a thread");
    let (root, prefix, bucket) = (PathBuf::from("s3://b/p"), "p".to_owned(), "s3://b".to_owned());
    Bucket { objects, network, root, prefix, bucket }
}

#[test]
fn an_object_that_belongs_to_another_catalog_is_never_written() {
    let objects = Arc::new(Objects::default());
    let bucket = bucket(&objects);
    let path = Path::new("s3://b/p/catalog-id");
    let claim = |text: &str, may_write| bucket.claim(path, text, may_write, true);
    assert_eq!(claim("one", false).expect_err("missing").kind(), io::ErrorKind::NotFound);
    // The files of a catalog that is not new are elsewhere.
    assert_eq!(bucket.claim(path, "one", true, false).expect_err("missing").kind(), io::ErrorKind::NotFound);
    assert_eq!(claim("one", true).expect("written"), "one");
    assert_eq!(bucket.claim(path, "one", true, false).expect("read"), "one");
    // Even if the service ignores the condition.
    assert_eq!(claim("two", true).expect("read"), "one");
    assert_eq!(claim("one", true).expect("read"), "one");
    objects.denies.store(true, Ordering::Relaxed);
    assert_eq!(claim("one", true).expect_err("not writable").kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(claim("one", false).expect("read"), "one");
    assert_eq!(claim("two", true).expect("read"), "one");
}

#[test]
fn an_object_that_may_not_be_removed_is_an_error() {
    let objects = Arc::new(Objects::default());
    let storage = Storage::of_bucket(bucket(&objects));
    let path = storage.data().join("mentions/a.parquet");
    let bytes = async { objects.objects.put(&Key::from("p/data/mentions/a.parquet"), "x".into()).await };
    bytes.now_or_never().expect("in memory").expect("written");
    objects.denies.store(true, Ordering::Relaxed);
    assert_eq!(remove_own(&storage, &path).expect_err("denied").kind(), io::ErrorKind::PermissionDenied);
    objects.denies.store(false, Ordering::Relaxed);
    assert!(remove_own(&storage, &path).expect("removed"));
    assert!(!remove_own(&storage, &path).expect("missing"));
}
