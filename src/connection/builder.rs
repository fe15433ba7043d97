//! Builds a connection: its service, key and profile, and its store.

use std::path::PathBuf;
use std::sync::Arc;
#[cfg(feature = "store")]
use std::sync::Mutex;

use savedsearch_clock::Clock;

use super::Connection;
use crate::client::{
    Client, ClientSpec, Exchanges, HttpLimits, HttpService, Network, RetryPolicy, Secret, parse_base_url,
};
use crate::config::state_folder;
use crate::error::Result;
#[cfg(feature = "store")]
use crate::location::{CatalogUrl, Location};
use crate::profile::Profile;
#[cfg(feature = "store")]
use crate::profile::{ColumnSpec, ColumnType, Origin};
#[cfg(feature = "store")]
use crate::store::{AS_OF, FIRST_SEEN, Owner, Store, has_first_seen, is_full, records_of};

/// Builder of a [`Connection`].
#[derive(Debug)]
pub struct ConnectionBuilder {
    base_url: String,
    key: Secret,
    profile: Profile,
    service: Option<Arc<dyn HttpService>>,
    clock: Clock,
    retry: RetryPolicy,
    state: Option<PathBuf>,
    keeps_estimates: bool,
    shown_as: Option<String>,
    limits: HttpLimits,
    exchanges: Exchanges,
    #[cfg(feature = "store")]
    store: StoreSpec,
}

/// The store of a connection that is built.
#[cfg(feature = "store")]
#[derive(Debug, Default)]
struct StoreSpec {
    /// Its folder or address; without one, there is no store.
    location: Option<Result<Location>>,
    /// Its catalog if that is not in a file of the folder.
    catalog: Option<CatalogUrl>,
    /// Its owner if that is not the service and key.
    owner: Option<String>,
}

impl ConnectionBuilder {
    /// A builder with defaults.
    pub(super) fn new(base_url: String, key: Secret) -> Self {
        Self {
            base_url,
            key,
            profile: Profile::v4(),
            service: None,
            clock: Clock::system(),
            retry: RetryPolicy::default(),
            state: None,
            keeps_estimates: false,
            shown_as: None,
            limits: HttpLimits::default(),
            exchanges: Exchanges::Live,
            #[cfg(feature = "store")]
            store: StoreSpec::default(),
        }
    }

    /// Sets the profile. Default: the built-in `v4`.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sends requests through this service instead of the network: a proxy, or a test double. A response that it caches
    /// still counts against rate limits and budgets.
    #[must_use]
    pub fn service(mut self, service: Arc<dyn HttpService>) -> Self {
        self.service = Some(service);
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the limits of retries.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Sets what people are shown instead of the base URL, such as `built-in demo data`, whose address says nothing to them.
    #[must_use]
    pub fn shown_as(mut self, name: impl Into<String>) -> Self {
        self.shown_as = Some(name.into());
        self
    }

    /// Sets the folder for state that outlives the process, instead of `savedsearch` in the user's state folder. It
    /// records the usage of a key if the profile declares a limit over more than an hour.
    #[must_use]
    pub fn state_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.state = Some(folder.into());
        self
    }

    /// Keeps the last list of saved searches and the numbers of mentions of windows in the folder for state, so that other
    /// processes estimate by them. They are written when the connection is closed.
    #[must_use]
    pub fn keep_estimates(mut self) -> Self {
        self.keeps_estimates = true;
        self
    }

    /// Sets the source of responses: the service, with or without recording, or a replay.
    #[doc(hidden)]
    #[must_use]
    pub fn exchanges(mut self, exchanges: Exchanges) -> Self {
        self.exchanges = exchanges;
        self
    }

    /// Keeps what queries read in this folder, so that it is requested once. It is created if it is missing. Several
    /// processes may share it.
    #[cfg(feature = "store")]
    #[must_use]
    pub fn store(mut self, folder: impl Into<PathBuf>) -> Self {
        self.store.location = Some(Location::parse(folder.into()));
        self
    }

    /// As [`store`](Self::store), at a location that was parsed before.
    #[cfg(feature = "store")]
    #[must_use]
    pub fn store_at(mut self, location: Location) -> Self {
        self.store.location = Some(Ok(location));
        self
    }

    /// Names the catalog of the store, in PostgreSQL, so that processes on several machines share it. No effect without a store.
    #[cfg(feature = "store")]
    #[must_use]
    pub fn catalog(mut self, url: CatalogUrl) -> Self {
        self.store.catalog = Some(url);
        self
    }

    /// Names the owner of the store, for a service whose address differs from run to run.
    #[cfg(feature = "store")]
    #[doc(hidden)]
    #[must_use]
    pub fn store_owner(mut self, owner: impl Into<String>) -> Self {
        self.store.owner = Some(owner.into());
        self
    }

    /// Sets the limits of HTTP exchanges: connecting, silence, and body size. No effect with
    /// [`service`](Self::service).
    #[must_use]
    pub fn http_limits(mut self, limits: HttpLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Allows sending the key in clear text to an address that is not https. Without this, only a service on this
    /// machine may be reached without https.
    #[must_use]
    pub fn insecure(mut self) -> Self {
        self.limits.insecure = true;
        self
    }

    /// Builds the connection. No request is made.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for an invalid address or key, or a store that was made with another
    /// address or key; [`ErrorKind::Store`](crate::ErrorKind::Store) for a store that cannot be opened.
    pub fn build(self) -> Result<Arc<Connection>> {
        #[cfg(feature = "store")]
        let StoreSpec { location, catalog, owner } = self.store;
        let Self { base_url, key, profile, service, clock, retry, state, keeps_estimates, limits, .. } = self;
        let (exchanges, shown_as) = (self.exchanges, self.shown_as);
        let base_url = parse_base_url(&base_url)?;
        let service = match service {
            Some(service) => service,
            None => Arc::new(Network::try_new(limits, &base_url)?),
        };
        #[cfg(feature = "store")]
        let profile = if location.is_some() { with_times_of_reads(profile) } else { profile };
        let client = Client::try_new(ClientSpec {
            base_url,
            key,
            profile: Arc::new(profile),
            service,
            clock: clock.clone(),
            retry,
            state_folder: state.or_else(state_folder),
            keeps_estimates,
            shown_as,
            exchanges,
        })?;
        #[cfg(feature = "store")]
        let (store, unopened) = match location {
            Some(location) => {
                let mentions = &client.profile().tables.mentions;
                let digest = owner.unwrap_or_else(|| client.identity());
                let owner = Owner { digest, records: records_of(client.profile()) };
                match Store::open(&location?, catalog.as_ref(), &owner, mentions, &clock) {
                    Ok(store) => (Some(store), None),
                    Err(full) if is_full(&full) => (None, Some(full)),
                    Err(error) => return Err(error),
                }
            }
            None => (None, None),
        };
        let connection = Connection::without_store(client, clock);
        #[cfg(feature = "store")]
        let connection = Connection { store, unopened, ..connection };
        Ok(Arc::new(connection))
    }
}

impl Connection {
    /// A connection to the same service by another profile, without a store.
    pub(crate) fn with_profile(&self, profile: Profile) -> Arc<Self> {
        Arc::new(Self::without_store(self.client.with_profile(profile), self.clock.clone()))
    }

    fn without_store(client: Client, clock: Clock) -> Self {
        let (running, foreign_runs, fields, searches, fan_out, proven_values, combined, seen_values) =
            Default::default();
        Self {
            client: Arc::new(client),
            clock,
            running,
            foreign_runs,
            fields,
            searches,
            fan_out,
            proven_values,
            combined,
            seen_values,
            #[cfg(feature = "store")]
            store: None,
            #[cfg(feature = "store")]
            unopened: None,
            #[cfg(feature = "store")]
            conditions: Mutex::default(),
        }
    }
}

/// Returns the profile with columns of mentions for the instants at which they were read, and at which the store first saw them.
#[cfg(feature = "store")]
fn with_times_of_reads(mut profile: Profile) -> Profile {
    let mentions = &mut profile.tables.mentions;
    if mentions.column(AS_OF).is_none() {
        mentions.columns.push(ColumnSpec::new(AS_OF, ColumnType::Timestamp, Origin::AsOf).nullable());
    }
    if has_first_seen(mentions) && mentions.column(FIRST_SEEN).is_none() {
        mentions.columns.push(ColumnSpec::new(FIRST_SEEN, ColumnType::Timestamp, Origin::FirstSeen).nullable());
    }
    profile
}

#[cfg(all(test, feature = "store"))]
mod tests {
    use super::*;

    #[test]
    fn a_store_has_its_catalog_and_owner_in_either_order() {
        let url = CatalogUrl::parse("postgres://user@db.test/mentions", None).expect("an address");
        let builder =
            || ConnectionBuilder::new("http://service.test/v4".to_owned(), Secret::new("key").expect("a key"));
        let before = builder().catalog(url.clone()).store_owner("owner").store("folder");
        let after = builder().store("folder").store_owner("owner").catalog(url.clone());
        for ConnectionBuilder { store: StoreSpec { location, catalog, owner }, .. } in [before, after] {
            assert_eq!(location, Some(Ok(Location::Folder("folder".into()))));
            assert_eq!((catalog.as_ref(), owner.as_deref()), (Some(&url), Some("owner")));
        }
    }
}
