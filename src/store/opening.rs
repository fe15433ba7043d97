//! Opens a store: its place, its catalog, and the columns of its files.

use std::collections::HashSet;
use std::fs;
use std::iter;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex};

use savedsearch_clock::Clock;

use super::access::{self, inaccessible};
use super::catalog::{Access, FileColumn, StoredColumn};
use super::files::{self, FILTERS, Layout};
use super::{AHEAD, AID, AS_OF, Catalog, FIRST_SEEN, Owner, Store, has_first_seen, is_stored};
use crate::error::{Error, ErrorKind, Result};
use crate::files::private_folder;
use crate::location::{CatalogUrl, Location};
use crate::profile::{ColumnSpec, ColumnType, Origin, Pointer, TableSpec};

impl Store {
    /// Opens the store at a location, for the mentions of a service that a key may read. It is created if it is missing.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if it was made with another address or key, or if its mentions are other records than those of the
    /// profile; [`ErrorKind::Store`] if it cannot be opened, which may pass if another process is writing or a server does not
    /// answer; [`ErrorKind::Profile`] if the profile's mentions have no time that identifies their day.
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
        let declared = stored_columns(mentions);
        let open = |access| match (catalog, &location) {
            (None, Location::Folder(folder)) => {
                Catalog::open(folder, owner, &declared, &time.name, clock.clone(), access)
            }
            (None, Location::Bucket(_)) => Err(access::without_catalog(&location)),
            (Some(url), location) => {
                let storage = access::storage_of(location)?;
                Catalog::open_shared(url, storage, owner, &declared, &time.name, clock.clone(), access)
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
        let differing = differing(&columns, &declared);
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
            differing,
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
    let is_own =
        |column: &ColumnSpec| [AID, AS_OF].contains(&column.name.as_str()) || column.origin == Origin::FirstSeen;
    let of_mentions = |column: &&ColumnSpec| is_stored(&column.origin) && !is_own(column);
    let columns = mentions.columns.iter().filter(of_mentions).map(|column| StoredColumn {
        name: column.name.clone(),
        kind: column.kind,
        source: source_of(mentions, column),
    });
    let times = [Some(AS_OF), has_first_seen(mentions).then_some(FIRST_SEEN)].into_iter().flatten();
    let times = times.map(|name| own(name, ColumnType::Timestamp));
    [own(AID, ColumnType::Utf8)].into_iter().chain(columns).chain(times).collect()
}

/// Names of the profile's columns that are in the catalog or declared, but not the same in both. The store's own have no source.
fn differing(stored: &[FileColumn], declared: &[StoredColumn]) -> HashSet<String> {
    let same = |stored: &FileColumn, own: &StoredColumn| {
        (&stored.name, stored.kind, &stored.source) == (&own.name, own.kind, &own.source)
    };
    let former = stored.iter().filter(|stored| !declared.iter().any(|own| same(stored, own)));
    let new = declared.iter().filter(|own| !stored.iter().any(|stored| same(stored, own)));
    let former = former.filter(|stored| !stored.source.is_empty()).map(|stored| &stored.name);
    let new = new.filter(|own| !own.source.is_empty()).map(|own| &own.name);
    former.chain(new).cloned().collect()
}

/// Everything in the profile that decides the values of a column of mentions, except its type. Keys other than `at`, `from` and
/// `pattern` are stated only if they are set, as stores of earlier versions do not state them.
pub(super) fn source_of(mentions: &TableSpec, column: &ColumnSpec) -> String {
    // Without `..`, a new key does not compile until it is decided here.
    let ColumnSpec {
        name: _,
        kind: _,
        // They decide which values are errors, and which conditions set the requested period.
        nullable: _,
        is_unzoned: _,
        origin,
        pattern,
        zone,
        other_zones,
        time_at,
        joined_with,
        nulls,
    } = column;
    let texts = |pointers: &[Pointer]| pointers.iter().map(ToString::to_string).collect::<Vec<String>>();
    let ignored = if *origin == Origin::Extra { texts(&mentions.ignore) } else { Vec::new() };
    let lists: [(&str, Vec<String>); 5] = [
        ("zone", zone.iter().chain(other_zones.iter()).map(ToString::to_string).collect()),
        ("time_at", time_at.iter().map(ToString::to_string).collect()),
        ("joined_with", texts(joined_with)),
        ("nulls", nulls.to_vec()),
        ("ignore", ignored),
    ];
    let stated = lists.into_iter().filter(|(_, values)| !values.is_empty());
    let stated = stated.map(|(key, values)| format!(" {key} {values:?}"));
    iter::once(format!("{origin:?} {pattern:?}")).chain(stated).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::profile::Profile;

    const INDEXED: &str = r#"at = "/indexedAt""#;

    /// The source of a column after a replacement in the built-in profile.
    fn source(column: &str, from: &str, to: &str) -> String {
        let document = Profile::builtin_document("v4").expect("a built-in profile");
        assert!(document.contains(from), "{from}");
        let profile = Profile::parse(&document.replacen(from, to, 1), "changed").expect("a valid profile");
        let mentions = &profile.tables.mentions;
        source_of(mentions, mentions.column(column).expect("a column"))
    }

    #[test]
    fn every_key_of_a_column_that_decides_its_values_changes_its_source() {
        let keys = [
            "",
            r#", pattern = "%Y""#,
            r#", zone = "Asia/Tokyo""#,
            r#", zone = "+09:00""#,
            r#", zone = ["Asia/Tokyo", "+09:00"]"#,
            r#", time_at = "/time""#,
            r#", nulls = [""]"#,
            r#", nulls = ["", "n/a"]"#,
        ];
        let sources = keys.map(|key| source("indexed_at", INDEXED, &format!("{INDEXED}{key}")));
        assert_eq!(sources.iter().collect::<BTreeSet<_>>().len(), keys.len(), "{sources:?}");
        let joined = source("snippet", r#"at = "/snippet""#, r#"at = "/snippet", joined_with = ["/seq"]"#);
        assert_ne!(joined, source("snippet", INDEXED, INDEXED));
        let ignored = source("extra", "[tables.mentions]", "[tables.mentions]\nignore = [\"/new\"]");
        assert_ne!(ignored, source("extra", INDEXED, INDEXED));
    }

    /// A store that is only read keeps the columns of the profile that it was last written with.
    #[test]
    fn columns_that_differ_from_those_of_the_catalog_are_named() {
        let own = stored_columns(&Profile::v4().tables.mentions);
        let stored = |(id, column): (i64, &StoredColumn)| {
            let StoredColumn { name, kind, source } = column.clone();
            FileColumn { name, kind, source, id }
        };
        let stored: Vec<FileColumn> = (1_i64..).zip(&own).map(stored).collect();
        assert_eq!(differing(&stored, &own), HashSet::new());
        let mut changed = own.clone();
        changed[2].source += "changed";
        changed.push(StoredColumn { name: "new".into(), kind: ColumnType::Utf8, source: "a field".into() });
        changed.remove(3);
        let names = [own[2].name.clone(), own[3].name.clone(), "new".to_owned()];
        assert_eq!(differing(&stored, &changed), names.into());
    }

    #[test]
    fn stores_of_earlier_versions_keep_their_columns() {
        assert_eq!(source("extra", INDEXED, INDEXED), "Extra None");
        let pattern = format!(r#"{INDEXED}, null = true, pattern = "%Y""#);
        assert_eq!(source("indexed_at", INDEXED, &pattern), r#"Field(Pointer(["indexedAt"]), Record) Some("%Y")"#);
    }
}
