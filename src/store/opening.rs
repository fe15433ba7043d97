//! Opens a store: its place, its catalog, and the columns of its files.

use std::fs;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex};

use savedsearch_clock::Clock;

use super::access::{self, inaccessible};
use super::catalog::{Access, FileColumn, StoredColumn};
use super::files::{self, FILTERS, Layout};
use super::{AHEAD, AID, AS_OF, Catalog, Owner, Store, is_stored};
use crate::error::{Error, ErrorKind, Result};
use crate::files::private_folder;
use crate::location::{CatalogUrl, Location};
use crate::profile::{ColumnSpec, ColumnType, Origin, TableSpec};

impl Store {
    /// Opens the store at a location, for the mentions of a service that a key may read. It is created if it is missing.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if it was made with another address or key; [`ErrorKind::Store`] if it cannot be opened, which may pass
    /// if another process is writing or a server does not answer; [`ErrorKind::Profile`] if the profile's mentions have no time that
    /// identifies their day.
    pub(crate) fn open(
        location: &Location,
        catalog: Option<&CatalogUrl>,
        owner: &Owner,
        mentions: &TableSpec,
        clock: &Clock,
    ) -> Result<Arc<Self>> {
        let time = time_of(mentions)?;
        refuse_reserved(mentions)?;
        let location = prepared(location)?;
        let columns = stored_columns(mentions);
        let open = |access| match (catalog, &location) {
            (None, Location::Folder(folder)) => {
                Catalog::open(folder, owner, &columns, &time.name, clock.clone(), access)
            }
            (None, Location::Bucket(_)) => Err(access::without_catalog(&location)),
            (Some(url), location) => {
                let storage = access::storage_of(location)?;
                Catalog::open_shared(url, storage, owner, &columns, &time.name, clock.clone(), access)
            }
        };
        let (catalog, unwritable) = match open(Access::ReadWrite) {
            // SQLite opens a catalog for writing although nothing can be written.
            Ok(catalog) => match &location {
                Location::Folder(folder) => (catalog, files::refusal(folder)),
                Location::Bucket(_) => (catalog, None),
            },
            // A process that went on would write nothing for as long as it runs, although the lock or the server is free again.
            Err(passing) if passing.may_pass() => return Err(passing),
            // A store on a read-only medium answers queries.
            Err(refused) => (open(Access::Read).map_err(|_| refused.clone())?, Some(refused)),
        };
        let version = catalog.schema();
        let columns = catalog.columns_of(version)?;
        let (time, id) = (time.name.clone(), mentions.id.clone());
        let layout = |own: Option<FileColumn>| {
            let columns: Vec<FileColumn> = columns.iter().cloned().chain(own).collect();
            Layout::try_new(version, &columns, &time, id.as_deref())
        };
        let (layout, filtered, deleted) =
            (layout(None)?, layout(Some(FileColumn::filters()))?, layout(Some(FileColumn::deleted_at()))?);
        let (cached, counters, in_flight, busy) = Default::default();
        let ahead = catalog.cursor(AHEAD)?.and_then(|ahead| ahead.parse().ok()).unwrap_or_default();
        let ahead = AtomicI64::new(ahead);
        Ok(Arc::new(Self {
            location,
            catalog: Arc::new(catalog),
            unwritable,
            layout,
            filtered,
            deleted,
            time,
            id,
            cached,
            counters,
            checked: Mutex::default(),
            merging: Mutex::default(),
            in_flight,
            ahead,
            busy,
        }))
    }
}

/// The time of mentions, which decides their day.
fn time_of(mentions: &TableSpec) -> Result<&ColumnSpec> {
    let time = mentions.time.as_ref().and_then(|time| mentions.column(time)).filter(|time| !time.nullable);
    time.ok_or_else(|| {
        let message =
            "a store needs mentions with a time: `time` of tables.mentions must name a column with null = false";
        Error::new(ErrorKind::Profile, message).advice("correct the profile, or use no store")
    })
}

/// Refuses a column with the name of one that the store fills itself.
fn refuse_reserved(mentions: &TableSpec) -> Result<()> {
    let reserved = |column: &&ColumnSpec| {
        let name = column.name.to_ascii_lowercase();
        (name == AS_OF && column.origin != Origin::AsOf)
            || name == FILTERS
            || (name == AID && column.origin != Origin::Aid)
    };
    let Some(column) = mentions.columns.iter().find(reserved) else { return Ok(()) };
    let message = format!("column name `{}` is reserved by the store", column.name);
    Err(Error::new(ErrorKind::Profile, message)
        .advice("rename that column of tables.mentions in the profile, or use no store"))
}

/// The location with an absolute path, after its folder was created.
fn prepared(location: &Location) -> Result<Location> {
    let folder = match location {
        Location::Folder(folder) => folder,
        bucket @ Location::Bucket(_) => return Ok(bucket.clone()),
    };
    if let Err(error) = private_folder(folder) {
        // It is not an error if the folder exists on a read-only medium.
        if !folder.is_dir() {
            return Err(inaccessible(folder, &error));
        }
    }
    // The engine takes no paths with `..`.
    Ok(Location::Folder(fs::canonicalize(folder).map_err(|error| inaccessible(folder, &error))?))
}

/// Columns of the files of mentions.
fn stored_columns(mentions: &TableSpec) -> Vec<StoredColumn> {
    let own = |name: &str, kind| StoredColumn { name: name.to_owned(), kind, source: String::new() };
    let of_mentions = |column: &&ColumnSpec| is_stored(&column.origin) && ![AID, AS_OF].contains(&column.name.as_str());
    let columns = mentions.columns.iter().filter(of_mentions).map(|column| StoredColumn {
        name: column.name.clone(),
        kind: column.kind,
        source: format!("{:?} {:?}", column.origin, column.pattern),
    });
    [own(AID, ColumnType::Utf8)].into_iter().chain(columns).chain([own(AS_OF, ColumnType::Timestamp)]).collect()
}
