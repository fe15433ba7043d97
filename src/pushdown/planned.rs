//! A scan that is planned once: the optimizer rule, the provider and the operator share the plan.

use chrono::{DateTime, Utc};
use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr_rewriter::unnormalize_cols;
use datafusion::logical_expr::utils::split_conjunction;

use super::plan::{ScanPlan, plan_scan};
use crate::error::{Error, Place};
use crate::profile::{Profile, TableSpec};

/// The plan of one scan of a query, with its inputs. It is immutable; a scan whose filters change is planned again.
#[derive(Debug)]
pub(crate) struct PlannedScan {
    /// The filters, with unqualified columns.
    filters: Vec<Expr>,
    /// The session's zone.
    timezone: String,
    /// The start of the query, which identifies it.
    query: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
    plan: Result<ScanPlan, Error>,
}

impl PlannedScan {
    /// Plans the scan of a table under these filters for a query, as of `now`, which all scans of a query share.
    /// `timezone` is the session's zone; empty: the profile's default.
    pub(crate) fn new(
        profile: &Profile,
        table: &TableSpec,
        filters: &[Expr],
        timezone: &str,
        query: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Self {
        let conjuncts: Vec<Expr> = filters.iter().flat_map(split_conjunction).cloned().collect();
        let plan = plan_scan(profile, table, &conjuncts, timezone, now);
        tracing::trace!(table = table.name.as_ref(), "scan planned");
        let place = Place { table: Some(table.name.to_string()), ..Place::default() };
        Self {
            filters: unnormalize_cols(filters.iter().cloned()),
            timezone: timezone.to_owned(),
            query,
            now,
            plan: plan.map_err(|error| error.at(place)),
        }
    }

    /// True if it belongs to this query. A plan that is kept and run again, such as a prepared statement, does not.
    pub(crate) fn is_of_query(&self, query: Option<DateTime<Utc>>) -> bool {
        self.query.is_some() && self.query == query
    }

    /// True if it is the plan of this query's scan under these filters.
    pub(crate) fn is_of(&self, query: Option<DateTime<Utc>>, filters: &[Expr], timezone: &str) -> bool {
        self.is_of_query(query)
            && self.timezone == timezone
            && self.filters == unnormalize_cols(filters.iter().cloned())
    }

    /// The instant that the plan is based on.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.now
    }

    /// The requests of the scan.
    ///
    /// # Errors
    /// [`ErrorKind::Query`](crate::error::ErrorKind::Query) for requests that the service does not support.
    pub(crate) fn plan(&self) -> Result<&ScanPlan, Error> {
        self.plan.as_ref().map_err(Error::clone)
    }
}
