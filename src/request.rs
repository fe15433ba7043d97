//! What will be asked of the service, as plain values.
//!
//! ```text
//! pushdown ──▶ RequestPlan ──▶ PageRequest ──▶ parameters ──▶ client
//! ```
//!
//! A [`RequestPlan`] says all there is to say about reading one table of one saved search; it is serializable and
//! prints as what EXPLAIN shows. A [`PageRequest`] is one HTTP request of it. No key is ever part of either.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::profile::{Profile, RequestedBy, Several, Zone};

/// The endpoint that a plan asks (seed section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Endpoint {
    /// `GET {base_url}/list`.
    List,
    /// `GET {base_url}/search`.
    Search,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "list",
            Self::Search => "search",
        })
    }
}

/// All there is to say about reading one table of one saved search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestPlan {
    /// Endpoint.
    pub endpoint: Endpoint,
    /// Saved search; `None` for the list, and for a template that is not bound to one yet.
    pub aid: Option<String>,
    /// Period in the service's words, always sent with a search.
    pub duration: Option<String>,
    /// Zone, always sent with a search.
    pub timezone: Option<String>,
    /// Filters: any of the values of each.
    pub filters: Vec<FilterTerm>,
    /// Value of the sort parameter.
    pub sort: Option<String>,
    /// Pages of mention records; `None` asks for the overview alone.
    pub pages: Option<Pages>,
}

/// One filter parameter with the values that match.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FilterTerm {
    /// Parameter name.
    pub parameter: String,
    /// Any of these.
    pub values: Vec<String>,
}

/// Which mention records of a plan are read, and in what strides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pages {
    /// Rows asked for at once, at least 1.
    pub size: u64,
    /// Rows left out at the beginning. Only set where every row of a page counts.
    pub skip: u64,
    /// Rows after which no more are needed; `None`: all. Only set where every row of a page counts.
    pub fetch: Option<u64>,
    /// Whether rows are wanted in the order of the sort parameter, so that no second pass can add to them.
    pub ordered: bool,
}

/// One request of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// The plan that it belongs to.
    pub plan: Arc<RequestPlan>,
    /// First row, 0-based.
    pub row: u64,
    /// Rows asked for; 0 where no records are.
    pub size: u64,
    /// Words that say the plan's period in instants, once the service has told them, so that it stands still while
    /// pages are read.
    pub frozen: Option<String>,
}

impl RequestPlan {
    /// The plan of the list.
    pub fn list() -> Self {
        Self { endpoint: Endpoint::List, ..Self::search() }
    }

    /// A search for nothing yet.
    pub fn search() -> Self {
        Self {
            endpoint: Endpoint::Search,
            aid: None,
            duration: None,
            timezone: None,
            filters: Vec::new(),
            sort: None,
            pages: None,
        }
    }

    /// The same plan, with the number of rows after which no more are needed.
    #[must_use]
    pub fn with_fetch(self, fetch: Option<u64>) -> Self {
        Self { pages: self.pages.map(|pages| Pages { fetch, ..pages }), ..self }
    }
}

impl RequestPlan {
    /// The zone that periods are said in.
    pub fn zone(&self, profile: &Profile) -> Zone {
        // Names of zones are checked when a plan is made.
        self.timezone.as_deref().and_then(|name| profile.timezone.zone_of(name).ok()).unwrap_or(Zone::UTC)
    }
}

/// The identity of a question: what is sent to which path. Requests with equal keys have the same answer at one moment,
/// so answers are shared, kept, recorded and announced by it. The address and the key of the service are not part of it:
/// everything that holds answers belongs to one client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey {
    path: Arc<str>,
    parameters: Arc<[(String, String)]>,
}

impl RequestKey {
    /// The question that is sent to a path below the base URL with these query parameters.
    pub fn new(path: &str, parameters: Vec<(String, String)>) -> Self {
        Self { path: path.trim_start_matches('/').into(), parameters: parameters.into() }
    }

    /// The path below the base URL, without a slash before it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The query parameters in the order in which they are sent, decoded.
    pub fn parameters(&self) -> &[(String, String)] {
        &self.parameters
    }
}

/// The parameters as one text for people, decoded.
impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.parameters.iter().enumerate() {
            write!(f, "{}{name}={value}", if at == 0 { "" } else { "&" })?;
        }
        Ok(())
    }
}

impl PageRequest {
    /// The request of the list.
    pub fn list() -> Self {
        Self { plan: Arc::new(RequestPlan::list()), row: 0, size: 0, frozen: None }
    }

    /// The request for the answer of a search without mentions.
    pub fn overview(plan: RequestPlan) -> Self {
        Self { plan: Arc::new(RequestPlan { pages: None, sort: None, ..plan }), row: 0, size: 0, frozen: None }
    }

    /// The identity of the question.
    pub fn key(&self, profile: &Profile) -> RequestKey {
        let path = match self.plan.endpoint {
            Endpoint::List => &profile.list.path,
            Endpoint::Search => &profile.search.path,
        };
        RequestKey::new(path, self.parameters(profile))
    }

    /// The query parameters, in a fixed order. Every control that the seed (section 4.2) recommends is explicit.
    pub fn parameters(&self, profile: &Profile) -> Vec<(String, String)> {
        let RequestPlan { endpoint, aid, duration, timezone, filters, sort, pages } = self.plan.as_ref();
        let mut sent = Vec::new();
        if *endpoint == Endpoint::List {
            return sent;
        }
        sent.extend(aid.iter().map(|aid| (profile.search.aid.clone(), aid.clone())));
        if let Some(words) = self.frozen.as_ref().or(duration.as_ref()) {
            sent.extend(profile.window.parameters(words));
        }
        sent.extend(timezone.iter().map(|zone| (profile.timezone.parameter.clone(), zone.clone())));
        for FilterTerm { parameter, values } in filters {
            match profile.filters.several {
                Several::Separated => sent.push((parameter.clone(), values.join(&profile.filters.separator))),
                Several::Repeat | Several::None => {
                    sent.extend(values.iter().map(|value| (parameter.clone(), value.clone())));
                }
            }
        }
        sent.extend(sort.iter().map(|value| (profile.sort.parameter.clone(), value.clone())));
        if pages.is_some()
            && profile.mentions.requested_by == RequestedBy::Flag
            && let Some(flag) = &profile.mentions.flag
        {
            sent.push((flag.parameter.clone(), flag.value.clone()));
        }
        let size = match profile.mentions.requested_by {
            // As few mentions as can be come unasked.
            RequestedBy::Always => Some(self.size.max(1)),
            RequestedBy::Size => Some(self.size),
            RequestedBy::Flag => pages.map(|_| self.size),
        };
        if let Some(size) = size {
            sent.push((profile.offset.parameter.clone(), profile.offset.of(self.row, self.size).to_string()));
            sent.push((profile.page.parameter.clone(), size.to_string()));
        }
        sent
    }
}

impl fmt::Display for RequestPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.endpoint)?;
        if let Some(aid) = &self.aid {
            write!(f, " aid={aid}")?;
        }
        if let Some(duration) = &self.duration {
            write!(f, " duration={duration}")?;
        }
        if let Some(timezone) = &self.timezone {
            write!(f, " timezone={timezone}")?;
        }
        for FilterTerm { parameter, values } in &self.filters {
            write!(f, " {parameter}={}", values.join("|"))?;
        }
        if let Some(sort) = &self.sort {
            write!(f, " sort={sort}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::OffsetUnit;

    fn plan() -> RequestPlan {
        RequestPlan {
            endpoint: Endpoint::Search,
            aid: Some("7".into()),
            duration: Some("7d".into()),
            timezone: Some("UTC".into()),
            filters: vec![FilterTerm { parameter: "language".into(), values: vec!["en".into(), "de".into()] }],
            sort: Some("date_asc".into()),
            pages: Some(Pages { size: 50, skip: 0, fetch: None, ordered: false }),
        }
    }

    fn sent(profile: &Profile, row: u64) -> String {
        let request = PageRequest { plan: Arc::new(plan()), row, size: 50, frozen: None };
        request.parameters(profile).iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join("&")
    }

    #[test]
    fn every_control_is_explicit() {
        assert_eq!(
            sent(&Profile::v4(), 100),
            "aid=7&duration=7d&timezone=UTC&language=en,de&sortBy=date_asc&dataFrom=100&dataSize=50"
        );
    }

    #[test]
    fn pages_counted_from_one_and_repeated_filters_are_said_as_the_profile_says() {
        let mut profile = Profile::v4();
        profile.offset.unit = OffsetUnit::Page;
        profile.offset.first = 1;
        profile.filters.several = Several::Repeat;
        let sent = sent(&profile, 100);
        assert!(sent.contains("language=en&language=de") && sent.contains("dataFrom=3"), "{sent}");
    }

    #[test]
    fn a_plan_travels_as_json() {
        let json = serde_json::to_string(&plan()).expect("a plan serializes");
        assert_eq!(serde_json::from_str::<RequestPlan>(&json).expect("and back"), plan());
        assert_eq!(plan().to_string(), "search aid=7 duration=7d timezone=UTC language=en|de sort=date_asc");
    }
}
