//! Finds the overview of a response with its timeline and lists, and checks which of its counts agree.
//!
//! A count is used only if it equals what was counted in another way: the sum of the timeline, or the mentions of a complete response.

use std::collections::HashSet;

use serde_json::Value;

use super::asker::Reply;
use super::dialogue::Dialogue;
use super::numbers;
use super::observations::Breakdown;
use super::shape::{self, Columns, Counts, Layout, Path, Series, at, place, said, walk};
use super::vocabulary::{self, plain};

impl Dialogue {
    pub(super) fn look_at_overview(&mut self, reply: &Reply) {
        let Some(body) = &reply.body else { return };
        // Mentions may be the top-level array of a response; a response with the overview has no such array.
        let mentions = self.found.mentions.clone().filter(|path| at(body, path).is_some_and(Value::is_array));
        self.found.overview = shape::overview(body, mentions.as_ref());
        // Without an overview, a total may be anywhere.
        let Some(path) = self.found.overview.clone() else {
            self.found.counted = None;
            return;
        };
        let Some(overview) = at(body, &path) else { return };
        let (mut timeline, mut breakdowns) = (None, Vec::new());
        let inside = |at: &Path| mentions.as_ref().is_some_and(|mentions| at.starts_with(mentions));
        for (below, value) in walk(overview).into_iter().filter(|(below, _)| (1..=2).contains(&below.len())) {
            let at: Path = path.iter().chain(&below).cloned().collect();
            if inside(&at) {
                continue;
            }
            for counts in shape::counts_at(value) {
                let entries = counts.series().entries(value);
                let field = counts.series().within.iter().map(|facet| facet.is.clone());
                let steps: Path = below.iter().cloned().chain(field).collect();
                match counts {
                    Counts::OverTime(series) => {
                        let mut entries = entries;
                        entries.sort_by_key(|(time, _)| shape::instant(time));
                        match numbers::is_running(&entries, body) {
                            true => self.found.running = Some(at.clone()),
                            false => timeline = timeline.or(Some((at.clone(), series))),
                        }
                    }
                    Counts::ByName(series) => self.add_list(&mut breakdowns, &at, &steps, series, &entries),
                }
            }
        }
        self.found.counted = numbers::counted(&self.found, &self.seen, timeline.as_ref());
        let mut scalars = overview.clone();
        let lists = timeline.iter().map(|(at, _)| at).chain(breakdowns.iter().map(|b| &b.at));
        let lists: Vec<Path> = lists.cloned().chain(mentions.clone()).collect();
        for at in lists.iter().filter(|at| at.starts_with(&path)) {
            remove(&mut scalars, &at[path.len()..]);
        }
        let total = self.found.counted.as_ref().and_then(|total| Some(total.strip_prefix(path.as_slice())?.to_vec()));
        let roles: Vec<(&str, &Path)> = total.iter().map(|path| ("total_mentions", path)).collect();
        self.found.overview_columns = Columns::of(vocabulary::OVERVIEW, &[&scalars], &roles);
        (self.found.timeline, self.found.breakdowns) = (timeline, breakdowns);
        let mut days = self.found.timeline(reply).into_iter().map(|(day, _)| day);
        self.found.has_plain_days = days.any(|day| shape::is_local(&day));
    }

    /// Adds a list of counts by name, at a place with these steps below the overview, if it may be one.
    fn add_list(
        &self,
        breakdowns: &mut Vec<Breakdown>,
        at: &Path,
        steps: &[String],
        series: Series,
        entries: &[(Value, u64)],
    ) {
        let name = plain(&steps.concat());
        let known = vocabulary::BREAKDOWNS.iter().find(|(_, words)| words.iter().any(|word| name.contains(word)));
        let is_map = series.layout == Layout::Map && series.within.is_none();
        // An object of numbers deep in the overview may mean anything.
        if is_map && known.is_none() && steps.len() > 1 {
            return;
        }
        let names: Vec<String> = entries.iter().filter_map(|(name, _)| said(name)).collect();
        let missing = missing_of(&names);
        // The label is the mention column that the list is named after, or whose values these names are.
        let own = vocabulary::listed_column(steps).filter(|label| self.found.columns.path(label).is_some());
        let own = own.map(str::to_owned).or_else(|| self.field_of(&names));
        let field = own.or(known.map(|(label, _)| (*label).to_owned()));
        let Some(label) = field.or((!is_map).then(|| shape::snake(steps))) else { return };
        // Two lists of one field: one of them is of another.
        let mut others = breakdowns.iter_mut().filter(|other| other.label == label);
        let is_doubtful = others.next().map(|other| other.is_doubtful = true).is_some();
        let label = if is_doubtful { shape::snake(steps) } else { label };
        breakdowns.push(Breakdown { at: at.clone(), label, series, missing, names, is_usable: false, is_doubtful });
    }

    /// Returns the mention column whose values these names are.
    fn field_of(&self, names: &[String]) -> Option<String> {
        let columns = self.found.columns.columns.iter().filter(|(.., kind)| *kind == shape::Type::Utf8);
        let shares = columns.filter_map(|(column, path, _)| {
            let values: HashSet<String> = self.samples.iter().filter_map(|row| said(at(row, path)?)).collect();
            let known = names.iter().filter(|name| values.contains(*name)).count();
            (known >= 2 || (known == 1 && names.len() <= 2)).then_some((known, column))
        });
        shares
            .max_by_key(|(known, _)| *known)
            .filter(|(known, _)| known * 2 >= names.len())
            .map(|(_, column)| column.clone())
    }

    /// Adds the notes about the overview.
    fn tell_overview(&mut self) {
        let Some(path) = self.found.overview.clone() else {
            self.found.could_not_tell("tables.overview", "no response has numbers that could be an overview");
            return;
        };
        let total = self.found.counted.clone();
        match &total {
            Some(total) => {
                let text = format!("overview at {}, its total at {}", place(&path), place(total));
                self.found.saw("tables.overview", text);
            }
            None => self.found.could_not_tell(
                "tables.overview",
                format!("overview at {}, but none of its numbers is the count of mentions", place(&path)),
            ),
        }
        match &self.found.timeline {
            Some((at, _)) => {
                let text = format!("timeline at {}", place(at));
                self.found.saw("tables.volume", text);
            }
            None => {
                let running = self.found.running.as_ref().map(|at| {
                    format!(
                        "the numbers at {} are running sums, not counts of days; the table cannot be read",
                        place(at)
                    )
                });
                let text =
                    running.unwrap_or_else(|| "no timeline in the overview; the table cannot be read".to_owned());
                self.found.could_not_tell("tables.volume", text);
            }
        }
        let labels: Vec<&str> = self.found.breakdowns.iter().map(|breakdown| breakdown.label.as_str()).collect();
        let text = if labels.is_empty() { "none".to_owned() } else { labels.join(", ") };
        self.found.saw("tables.breakdowns", format!("top lists: {text}"));
    }

    /// Checks which counts agree with each other.
    pub(super) fn totals(&mut self) {
        if let Some(first) = self.first.clone() {
            self.look_at_overview(&first);
        }
        self.found.total = numbers::total(&self.found, &self.seen);
        let accuracy = |path: &Path| {
            let bodies = self.seen.iter().filter_map(|seen| seen.reply.body.as_ref());
            bodies.filter_map(|body| Some((body, numbers::accuracy(body, path)?.0))).next_back()
        };
        // Words that the profile understands.
        let words = |(body, path): (&Value, Path)| {
            Some(path.clone()).filter(|_| at(body, &path).is_some_and(|word| word == "eq" || word == "gte"))
        };
        let [total, counted] = [&self.found.total, &self.found.counted].map(|path| path.as_ref().and_then(accuracy));
        let unsaid = |found: &Option<(&Value, Path)>| found.clone().is_some_and(|found| words(found).is_none());
        let [total_is_unsaid, counted_is_unsaid] = [unsaid(&total), unsaid(&counted)];
        (self.found.relation, self.found.counted_relation) = (total.and_then(words), counted.and_then(words));
        self.tell_overview();
        let agreed = numbers::agreements(&self.found, &self.seen);
        let (same, all) = (agreed.totals.iter().filter(|(a, b)| a == b).count(), agreed.totals.len());
        // An approximate total may be slightly too high.
        let agreed_all =
            same == all || agreed.totals.iter().all(|(count, total)| count <= total && total - count < 1_000);
        let summed = agreed.sums.iter().all(|(count, sum)| count == sum);
        let proofs = agreed.sums.len() + agreed.short.len();
        let short = agreed.short.iter().all(|(rows, total)| rows == total);
        if self.found.total.is_some() {
            self.found.total_is_exact =
                same == all && summed && short && proofs > 0 && !self.found.is_capped && !total_is_unsaid;
            let text = format!(
                "the total equals the overview's in {same} of {all} responses, and {}",
                match agreed.short.as_slice() {
                    [] => "no response had all mentions".to_owned(),
                    short => format!(
                        "the number of mentions in {} of {} complete ones",
                        short.iter().filter(|(rows, total)| rows == total).count(),
                        short.len()
                    ),
                }
            );
            self.found.saw("total", text);
            let inside = self.found.overview.as_ref().filter(|overview| !overview.is_empty());
            let inside = inside.filter(|_| self.found.total_header.is_none());
            if self.found.total.as_ref().zip(inside).is_some_and(|(total, overview)| total.starts_with(overview)) {
                self.found.could_not_tell("total", "it is that of the overview: mentions have no total of their own");
            }
        } else {
            let text = match self.found.mentions.is_some() {
                true => "no number beside the mentions was seen to count them; pages are read until one is empty",
                false => "no mentions were seen, so neither was their total",
            };
            self.found.could_not_tell("total", text);
        }
        let sums = &agreed.sums;
        let (same, all) = (sums.iter().filter(|(a, b)| a == b).count(), sums.len());
        // The effect of a filter shows in the total or in the lists.
        let checked = match &self.found.total {
            Some(_) => agreed_all,
            None => self.found.breakdowns.iter().any(|breakdown| breakdown.series.layout != Layout::Map),
        };
        self.found.counts = all > 0 && same == all && checked && !counted_is_unsaid;
        self.usable_lists();
        match self.found.counts {
            true => {
                let of = if all == 1 { "1 response".to_owned() } else { format!("all {all} responses") };
                self.found.saw("counts", format!("the overview's total equals the sum of its timeline in {of}"));
            }
            false => self.found.could_not_tell(
                "counts",
                "the overview's total could not be checked against its timeline; mentions are counted one by one",
            ),
        }
    }

    /// Marks the lists whose names are all values of a mention field: only these count mentions by that field.
    fn usable_lists(&mut self) {
        for breakdown in &mut self.found.breakdowns {
            let Some(path) = self.found.columns.path(&breakdown.label) else { continue };
            let values: Vec<Option<String>> = self.samples.iter().map(|row| said(at(row, path)?)).collect();
            let seen = |name: &String| values.iter().flatten().any(|value| value == name);
            let nulls = values.iter().any(Option::is_none);
            breakdown.missing = breakdown.missing.take().filter(|name| !seen(name) && nulls);
            let missing = breakdown.missing.clone();
            let all = breakdown.names.iter().all(|name| seen(name) || Some(name) == missing.as_ref());
            breakdown.is_usable = all && !breakdown.is_doubtful;
        }
    }
}

/// Removes a member from an object.
fn remove(value: &mut Value, path: &[String]) {
    match path {
        [] => {}
        [last] => drop(value.as_object_mut().and_then(|members| members.remove(last))),
        [first, rest @ ..] => {
            if let Some(inner) = value.get_mut(first) {
                remove(inner, rest);
            }
        }
    }
}

/// Returns the name that means "no value".
fn missing_of(names: &[String]) -> Option<String> {
    names.iter().find(|name| vocabulary::MISSING.contains(&plain(name).as_str())).cloned()
}
