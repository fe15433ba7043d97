//! The aggregates of the matching mentions, part of every `/search` response.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Days, FixedOffset, SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use super::dataset::{Facts, SavedSearch};
use super::fault_injection::{EstimateSign, List};
use super::query::Query;

/// Maximum of entries in a top list.
const TOP: usize = 10;

/// Computes the overview as JSON text.
pub(super) fn overview(query: &Query, search: &SavedSearch, matching: &[u32]) -> String {
    let facts = || matching.iter().map(|at| &search.mentions[*at as usize].facts);
    let sum = |value: fn(&Facts) -> Option<i64>| facts().filter_map(value).sum::<i64>();
    let tops: [Vec<(Arc<str>, usize)>; 6] = [
        ranking(facts(), |f| f.source.as_ref()),
        ranking(facts(), |f| f.author.as_ref()),
        ranking(facts(), |f| f.keyword.as_ref()),
        ranking(facts(), |f| f.hashtag.as_ref()),
        ranking(facts(), |f| f.language.as_ref()),
        ranking(facts(), |f| f.country.as_ref()),
    ];
    let [sources, authors, keywords, hashtags, languages, countries] = &tops;
    let mut sentiment = Map::new();
    for label in ["positive", "neutral", "negative"] {
        sentiment.insert(label.to_owned(), 0.into());
    }
    // Records of a file may have other labels.
    for (label, count) in ranking(facts(), |f| f.sentiment.as_ref()) {
        sentiment.insert(label.to_string(), count.into());
    }
    sentiment.insert("unknown".to_owned(), facts().filter(|f| f.sentiment.is_none()).count().into());
    let estimated = query.variant.estimated;
    let off = |of: List| query.variant.list_off.filter(|(list, _)| *list == of).map_or(0, |(_, by)| by);
    if let Some(count) = sentiment.get_mut("positive") {
        *count = (count.as_i64().unwrap_or_default() + off(List::Sentiment)).max(0).into();
    }
    json!({
        "totalMentions": i64::try_from(matching.len()).unwrap_or(i64::MAX) + query.variant.overview_off,
        "uniqueAuthors": authors.len(),
        "totalReach": sum(|f| f.reach),
        "totalEngagement": sum(|f| f.engagement),
        "sentiment": sentiment,
        "volume": volume(query, facts()),
        "topSources": list(sources, TOP, off(List::Sources), estimated),
        "topAuthors": list(authors, TOP, 0, estimated),
        "topKeywords": list(keywords, TOP, 0, estimated),
        "topHashtags": list(hashtags, TOP, 0, estimated),
        "languages": list(languages, usize::MAX, off(List::Languages), estimated),
        "countries": list(countries, usize::MAX, off(List::Countries), estimated),
        "otherCount": sources.iter().skip(TOP).map(|(_, count)| count).sum::<usize>(),
    })
    .to_string()
}

fn ranking<'f>(
    facts: impl Iterator<Item = &'f Facts>,
    name: impl Fn(&Facts) -> Option<&Arc<str>>,
) -> Vec<(Arc<str>, usize)> {
    let mut counts: HashMap<Arc<str>, usize> = HashMap::new();
    for fact in facts {
        if let Some(name) = name(fact) {
            *counts.entry(Arc::clone(name)).or_default() += 1;
        }
    }
    let mut ranked: Vec<_> = counts.into_iter().collect();
    ranked.sort_by(|(a, many), (b, most)| most.cmp(many).then_with(|| a.cmp(b)));
    ranked
}

/// The entries of a list, of which the first is off by this amount. Those of an estimate count some mentions of the second one as
/// those of the first.
fn list(ranked: &[(Arc<str>, usize)], top: usize, off: i64, estimated: Option<(i64, EstimateSign)>) -> Vec<Value> {
    let second = ranked.get(1).and_then(|(_, count)| i64::try_from(*count).ok()).unwrap_or_default();
    let moved = estimated.map_or(0, |(moved, _)| moved.clamp(0, second));
    let counts = ranked.iter().map(|(name, count)| (name, i64::try_from(*count).unwrap_or(i64::MAX)));
    let counts = counts.enumerate().map(|(at, (name, count))| match at {
        0 => (name, (count + off + moved).max(0)),
        1 => (name, count - moved),
        _ => (name, count),
    });
    let entry = |(name, count): (&Arc<str>, i64)| match estimated {
        Some((_, EstimateSign::Flag)) => json!({"name": name, "count": count, "estimated": true}),
        Some((_, EstimateSign::Bound)) => json!({"name": name, "count": count, "docCountErrorUpperBound": moved}),
        None => json!({"name": name, "count": count}),
    };
    counts.take(top).map(entry).collect()
}

/// One bucket for each local day that the window touches, including empty ones; days have 23, 24 or 25 hours.
fn volume<'f>(query: &Query, facts: impl Iterator<Item = &'f Facts>) -> Vec<Value> {
    let zone = query.timezone;
    let mut day = zone.local(query.from).date_naive();
    let mut buckets: Vec<(DateTime<FixedOffset>, usize, i64, i64)> = Vec::new();
    while let Some(start) = zone.start_of(day).filter(|start| start.with_timezone(&Utc) < query.to) {
        buckets.push((start, 0, 0, 0));
        let Some(next) = day.checked_add_days(Days::new(1)) else { break };
        day = next;
    }
    let end = zone.start_of(day);
    for fact in facts {
        let bucket = buckets.partition_point(|(start, ..)| *start <= fact.published);
        if let Some((_, count, reach, engagement)) = bucket.checked_sub(1).and_then(|at| buckets.get_mut(at)) {
            *count += 1;
            *reach += fact.reach.unwrap_or(0);
            *engagement += fact.engagement.unwrap_or(0);
        }
    }
    let off = query.variant.timeline_off;
    let fits = |count: usize| i64::try_from(count).ok().and_then(|count| usize::try_from(count + off).ok());
    if let Some((bucket, count)) = buckets.iter_mut().find_map(|bucket| fits(bucket.1).map(|count| (bucket, count))) {
        bucket.1 = count;
    }
    let local = |at: &DateTime<FixedOffset>| at.to_rfc3339_opts(SecondsFormat::Secs, false);
    let ends = buckets.iter().skip(1).map(|(start, ..)| local(start)).chain(end.as_ref().map(local));
    let ends: Vec<String> = ends.collect();
    buckets
        .iter()
        .zip(ends)
        .map(|((start, count, reach, engagement), end)| {
            let mut day =
                json!({"start": local(start), "end": end, "count": count, "reach": reach, "engagement": engagement});
            if query.variant.no_starts
                && let Some(day) = day.as_object_mut()
            {
                day.remove("start");
            }
            day
        })
        .collect()
}
