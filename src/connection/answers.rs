//! Responses without mentions, which all scans of a query share: each is requested once.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, WeakShared};

use super::query::Query;
use super::{Connection, SavedSearches};
use crate::client::{Held, Scan};
use crate::error::{Error, ErrorKind, Result};
use crate::request::{Endpoint, PageRequest, RequestKey};
#[cfg(feature = "store")]
use crate::store::{blocking, unstored};

/// A response without mentions.
#[derive(Debug)]
pub(super) enum SharedAnswer {
    /// Requested, and available as long as a caller waits for it.
    Asked(WeakShared<BoxFuture<'static, Result<Bytes>>>),
    /// Received, with its memory.
    Given { body: Bytes, _memory: Held },
}

impl Query {
    /// Keeps a response for the other scans of the query.
    fn share(&self, scan: &Scan, key: &RequestKey, body: &Bytes) -> Result<()> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(answers.get(key), Some(SharedAnswer::Given { .. })) {
            let _memory = scan.hold(body.len())?;
            answers.insert(key.clone(), SharedAnswer::Given { body: body.clone(), _memory });
        }
        Ok(())
    }
}

impl Connection {
    /// Returns the list of saved searches. All scans of a query share one request.
    pub(crate) async fn list(self: &Arc<Self>, query: &Query, scan: &Arc<Scan>) -> Result<Arc<SavedSearches>> {
        if let Some(list) = query.list.get() {
            return Ok(Arc::clone(list));
        }
        let page = |request: PageRequest, first: bool| {
            let profile = Arc::clone(self.profile());
            let decode = move |body: &Bytes| {
                let page = SavedSearches::decode(&profile, body.clone(), first)?;
                let rows = page.rows;
                Ok((page, rows))
            };
            self.answer(query, scan, request, decode)
        };
        let mut last = PageRequest::list();
        let mut list = page(last.clone(), true).await?;
        let judged = |request: &PageRequest, verdict: String| {
            let parameters = request.key(self.profile()).to_string();
            self.client.log().judge_last(&scan.query, &parameters, &verdict);
            scan.judged(verdict);
        };
        while let Some(next) = list.next(self.profile()).inspect_err(|error| judged(&last, error.to_string()))? {
            last = next;
            list = list.then(page(last.clone(), false).await?);
        }
        judged(&last, list.verdict(self.profile()));
        if let Some(aid) = list.unlisted() {
            let note = format!(
                "an entry of the list contains aid {aid}, which is not an entry itself: without a condition on aid, it is not read"
            );
            self.client.log().note(&scan.query, None, note);
        }
        let list = Arc::new(list);
        self.note_searches(&list);
        Ok(Arc::clone(query.list.get_or_init(|| list)))
    }

    /// Remembers a list for completion and estimates. No query depends on it.
    fn note_searches(&self, list: &SavedSearches) {
        let aids = list.fan_out();
        self.client.note_list(aids.clone());
        *self.fan_out.lock().unwrap_or_else(PoisonError::into_inner) = Some(aids);
        if let Some(names) = &list.names {
            *self.searches.lock().unwrap_or_else(PoisonError::into_inner) = Some(names.clone());
        }
    }

    /// Returns the response to a request without mentions. All scans of a query share one request, and each decodes
    /// what it needs. `decode` returns the value and the number of records of a valid response.
    pub(crate) async fn answer<T: Send + 'static>(
        self: &Arc<Self>,
        query: &Query,
        scan: &Arc<Scan>,
        request: PageRequest,
        decode: impl Fn(&Bytes) -> Result<(T, u64)> + Send + Sync + 'static,
    ) -> Result<T> {
        let key = request.key(self.profile());
        #[cfg(feature = "store")]
        if let Some(body) = self.stored(query, &key).await {
            return decode(&body).map(|(value, _)| value);
        }
        #[cfg(feature = "store")]
        self.note_erasures(query).await;
        let decode = Arc::new(decode);
        // Decoded value, if this call is the one that sends the request.
        let decoded: Arc<Mutex<Option<T>>> = Arc::default();
        let asked = {
            let mut answers = query.answers.lock().unwrap_or_else(PoisonError::into_inner);
            let known = match answers.get(&key) {
                // Decoded below, without holding the lock.
                Some(SharedAnswer::Given { body, .. }) => {
                    Some(futures::future::ready(Ok(body.clone())).boxed().shared())
                }
                Some(SharedAnswer::Asked(asked)) => asked.upgrade(),
                None => None,
            };
            known.unwrap_or_else(|| {
                if request.plan.endpoint == Endpoint::List {
                    query.budget.count_list();
                }
                let (connection, scan) = (Arc::clone(self), Arc::clone(scan));
                let (decode, decoded) = (Arc::clone(&decode), Arc::clone(&decoded));
                // On its own task: other scans that wait must not depend on the first one being polled.
                let asking = self.client.spawn(async move {
                    let keep = |body: &Bytes| {
                        let (value, rows) = decode(body)?;
                        *decoded.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
                        Ok((body.clone(), rows))
                    };
                    connection.client.fetch(&scan, &request, keep).await
                });
                let failed = |error| Error::new(ErrorKind::Connect, format!("the request was aborted: {error}"));
                let asked = asking.map(move |answer| answer.map_err(failed).flatten()).boxed().shared();
                answers.extend(asked.downgrade().map(|asked| (key.clone(), SharedAnswer::Asked(asked))));
                asked
            })
        };
        let body = asked.await?;
        // First, so that no scan requests it again meanwhile.
        let shared = query.share(scan, &key, &body);
        #[cfg(feature = "store")]
        self.keep(query, &key, &body).await;
        shared?;
        let own = decoded.lock().unwrap_or_else(PoisonError::into_inner).take();
        own.map_or_else(|| decode(&body).map(|(value, _)| value), Ok)
    }

    /// Returns the stored response to a request, if it is as fresh as the query wants it.
    #[cfg(feature = "store")]
    async fn stored(&self, query: &Query, key: &RequestKey) -> Option<Bytes> {
        let from = query.from_store.as_ref()?;
        match from.answer(key, self.now()).await {
            Ok(found) => found.map(|(body, _)| {
                from.store.counters().answered();
                body
            }),
            Err(error) => {
                self.client.log().note(&query.budget, None, error.to_string());
                None
            }
        }
    }

    /// Remembers the number of erasures before a query requests a response that it stores.
    #[cfg(feature = "store")]
    async fn note_erasures(&self, query: &Query) {
        let Some(from) = query.from_store.as_ref().filter(|from| from.invests()) else { return };
        if query.erasures.get().is_none() {
            let from = from.clone();
            let erasures = blocking(move || from.erasures(None)).await;
            // Another scan may have noted it first: no request was sent before that.
            let _ = query.erasures.set(erasures);
        }
    }

    /// Stores a response that was requested during a query, unless mentions were erased since.
    #[cfg(feature = "store")]
    async fn keep(&self, query: &Query, key: &RequestKey, body: &Bytes) {
        // Without a freshness, no query would use it.
        let Some(from) = query.from_store.as_ref().filter(|from| from.invests()) else { return };
        let kept = match query.erasures.get() {
            Some(Ok(erasures)) => from.store.keep_answer(key, body, query.begun + self.client.ahead(), *erasures).await,
            Some(Err(error)) => Err(error.clone()),
            None => return,
        };
        if let Err(error) = kept {
            self.client.log().note(&query.budget, None, unstored(&error, "read"));
        }
    }

    /// Returns the aids that a query without an aid reads: each once, in the order of the list.
    pub(crate) async fn listed_aids(self: &Arc<Self>, query: &Query, scan: &Arc<Scan>) -> Result<Vec<String>> {
        if !self.profile().tables.saved_searches.sections.iter().any(|section| section.fan_out) {
            return Err(Error::new(ErrorKind::Query, "the profile declares no saved searches to read by default")
                .advice("add a predicate on aid, or set fan_out = true on a section of tables.saved_searches"));
        }
        Ok(self.list(query, scan).await?.fan_out())
    }
}
