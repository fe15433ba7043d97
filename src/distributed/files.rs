//! The data folder of a store under a URL that is the same on all machines.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use datafusion::common::exec_err;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::object_store::{ObjectStoreRegistry, ObjectStoreUrl};
use datafusion::object_store::ObjectStore;
use datafusion::object_store::local::LocalFileSystem;
#[cfg(feature = "shared")]
use datafusion::object_store::path::Path as ObjectPath;
#[cfg(feature = "shared")]
use datafusion::object_store::prefix::PrefixStore;
use sha2::{Digest, Sha256};
#[cfg(feature = "shared")]
use tokio::runtime::Handle;
use url::Url;

use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Result};
use crate::files;
#[cfg(feature = "shared")]
use crate::location::Address;
use crate::location::Location;
use crate::store::Store;
#[cfg(feature = "shared")]
use crate::store::objects_of;

/// Scheme of these URLs.
const SCHEME: &str = "savedsearch-store";
/// File with the id of a store, in its folder.
const ID: &str = "store-id";

/// True for URLs of stores.
pub(super) fn is_of_store(url: &ObjectStoreUrl) -> bool {
    url.as_str().starts_with(SCHEME)
}

/// Returns the URL for the data folder of a store.
///
/// # Errors
/// None in practice: ids are hexadecimal.
pub(super) fn url_of(id: &str) -> DataFusionResult<ObjectStoreUrl> {
    ObjectStoreUrl::parse(format!("{SCHEME}://{id}"))
}

/// Returns the id of the store in a folder, by which servers and workers recognize it. The first call gives it one.
///
/// # Errors
/// [`ErrorKind::Store`] if the folder cannot be read, or has no id and cannot be written.
fn id_of(folder: &Path) -> Result<String> {
    let path = folder.join(ID);
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Store, format!("cannot read {}: {error}", path.display()))
            .advice("check that it is the folder of a store, and that this program may write to it")
    };
    if files::read(&path).map_err(failed)?.is_none() {
        let create = || {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            writeln!(file, "{:032x}", rand::random::<u128>())?;
            file.as_file().sync_all()?;
            match file.persist_noclobber(&path) {
                // Another process was first.
                Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
                created => created.map(drop).map_err(|error| error.error),
            }
        };
        create().map_err(failed)?;
    }
    let id = files::read(&path).map_err(failed)?.unwrap_or_default();
    let id = id.trim();
    match id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(id.to_ascii_lowercase()),
        false => Err(Error::new(ErrorKind::Store, format!("{} is not the id of a store", path.display()))
            .advice("remove the file; a new id is written")),
    }
}

/// Gives the store of a connection an id, so that workers recognize it.
///
/// # Errors
/// As [`id_of`].
pub(crate) fn name_store(connection: &Connection) -> Result<()> {
    connection.store().map_or(Ok(()), |store| id_at(store.location()).map(drop))
}

/// Returns the id of the store at a location: that of a bucket is its address, in other digits.
///
/// # Errors
/// As [`id_of`].
pub(super) fn id_at(location: &Location) -> Result<String> {
    match location {
        Location::Folder(folder) => id_of(folder),
        Location::Bucket(address) => Ok(HEXLOWER.encode(&Sha256::digest(address.to_string()))[..32].to_owned()),
    }
}

/// Returns the files of a store of this process.
///
/// # Errors
/// As [`below`].
pub(super) fn files_of(store: &Store) -> Result<Arc<dyn ObjectStore>> {
    match store.location() {
        Location::Folder(_) => below(&store.data()),
        #[cfg(feature = "shared")]
        Location::Bucket(address) => match store.objects() {
            Some(objects) => Ok(of_prefix(address, Arc::clone(objects))),
            None => files_at(store.location()),
        },
        #[cfg(not(feature = "shared"))]
        location @ Location::Bucket(_) => Err(not_built(location)),
    }
}

/// Returns the files of the store at a location, with the credentials of this process.
///
/// # Errors
/// As [`below`]; [`ErrorKind::Config`] for credentials that cannot be used.
pub(super) fn files_at(location: &Location) -> Result<Arc<dyn ObjectStore>> {
    match location {
        Location::Folder(folder) => {
            let data = folder.join("data");
            // The worker may be the first to see the folder. If this fails, so does the next line.
            let _ = files::private_folder(&data);
            below(&data)
        }
        #[cfg(feature = "shared")]
        Location::Bucket(address) => Ok(of_prefix(address, objects_of(address, Handle::current())?)),
        #[cfg(not(feature = "shared"))]
        Location::Bucket(_) => Err(not_built(location)),
    }
}

/// Returns the objects below the data folder of a store.
#[cfg(feature = "shared")]
fn of_prefix(address: &Address, objects: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
    Arc::new(PrefixStore::new(objects, ObjectPath::from(address.prefix()).join("data")))
}

#[cfg(not(feature = "shared"))]
fn not_built(location: &Location) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{location}: this build has no stores in object storage"))
        .advice("build with the feature `shared`")
}

/// Returns the files below a data folder.
///
/// # Errors
/// [`ErrorKind::Store`] if there is no such folder.
fn below(data: &Path) -> Result<Arc<dyn ObjectStore>> {
    let files = LocalFileSystem::new_with_prefix(data).map_err(|error| {
        Error::new(ErrorKind::Store, format!("cannot read {}: {error}", data.display()))
            .advice("check that it is the folder of a store")
    })?;
    Ok(Arc::new(files))
}

/// Files of stores, and no others.
#[derive(Debug)]
pub(super) struct StoresOnly(pub(super) BTreeMap<String, Arc<dyn ObjectStore>>);

impl ObjectStoreRegistry for StoresOnly {
    /// Registers nothing: plans cannot add places to read from.
    fn register_store(&self, _url: &Url, _store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, url: &Url) -> DataFusionResult<Arc<dyn ObjectStore>> {
        let id = (url.scheme() == SCHEME).then(|| url.host_str()).flatten();
        match id.and_then(|id| self.0.get(id)) {
            Some(store) => Ok(Arc::clone(store)),
            None => exec_err!("no store of this worker has the URL {url}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_keeps_its_id() {
        let folder = tempfile::tempdir().expect("a folder");
        let id = id_of(folder.path()).expect("an id");
        assert_eq!(id_of(folder.path()).expect("the same"), id);
        std::fs::write(folder.path().join(ID), "mine").expect("written");
        let error = id_of(folder.path()).expect_err("no id").to_string();
        assert!(error.contains("is not the id of a store"), "{error}");
        id_of(&folder.path().join("missing")).expect_err("no folder");
    }

    #[tokio::test]
    async fn nothing_outside_a_store_can_be_read() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("data")).expect("created");
        std::fs::write(folder.path().join("secret"), "x").expect("written");
        let stores = StoresOnly([("a".to_owned(), below(&folder.path().join("data")).expect("files"))].into());
        let get = |url: &str| stores.get_store(&url.parse().expect("a URL"));
        for other in ["file:///", "savedsearch-store://b/", "s3://a/", "http://a/"] {
            get(other).expect_err(other);
            let asked: Url = other.parse().expect("a URL");
            stores.register_store(&asked, Arc::new(LocalFileSystem::new()));
            get(other).expect_err(other);
        }
        let files = get("savedsearch-store://a/").expect("the store");
        for path in ["../secret", "/../secret", "%2e%2e/secret"] {
            let found = match datafusion::object_store::path::Path::parse(path) {
                Ok(path) => datafusion::object_store::ObjectStoreExt::get(files.as_ref(), &path).await.is_ok(),
                Err(_) => false,
            };
            assert!(!found, "{path}");
        }
    }
}
