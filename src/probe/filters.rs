//! Filters: their candidates, the proof that they work, and how several values are sent.
//!
//! The values are those of mentions that came, so that the effect of a filter shows in its mentions: all of them match.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::asker::Pair;
use super::candidates::{pair, parameters_of};
use super::dialogue::{Dialogue, LOOK, TRIAL};
use super::judge::without_effect;
use super::observations::Several;
use super::scheduler::{Dimension, Try};
use super::shape::{Path, Type, at, each_once, inside, said};
use super::vocabulary;
use crate::error::Result;

impl Dialogue {
    /// Candidates for filters: values that some of the received mentions have, but not all.
    pub(super) fn filters(&self) -> Vec<Try> {
        /// Distinct values that a filtered field has at most.
        const VALUES: usize = 12;
        /// Characters of a value that is filtered by.
        const WORD: usize = 40;
        /// Candidates that are worth a request each.
        const MOST: usize = 6;
        /// Parameters that are sent at once.
        const TOGETHER: usize = 6;
        // A parameter of the example whose value some mentions have.
        let mut tries = Vec::new();
        for (parameter, value) in self.known.facts.others() {
            let has =
                |path: &Path| self.samples.iter().any(|row| at(row, path).and_then(said).as_ref() == Some(&value));
            let column = self.found.columns.columns.iter().find(|(_, path, kind)| *kind == Type::Utf8 && has(path));
            tries.extend(column.map(|(column, ..)| Try::new(column.clone(), &parameter, value.clone())));
        }
        let known = vocabulary::FILTERED.iter().map(|column| (*column).to_owned());
        // Texts that are free are not filtered by.
        let free = ["id", "url", "title", "text", "snippet", "author_name", "author_handle"];
        let few = |column: &&(String, Path, Type)| {
            let values: BTreeSet<String> = self.samples.iter().filter_map(|row| said(at(row, &column.1)?)).collect();
            column.2 == Type::Utf8
                && (2..=VALUES).contains(&values.len())
                && self.samples.len() >= 2 * values.len()
                && !free.contains(&column.0.as_str())
                && values.iter().all(|value| value.len() <= WORD)
        };
        let others = self.found.columns.columns.iter().filter(few).map(|(column, ..)| column.clone());
        for column in each_once(known.chain(others)) {
            let Some(path) = self.found.columns.path(&column) else { continue };
            let Some((value, share)) = self.usual(&column) else { continue };
            if share == self.samples.len() {
                continue;
            }
            let names = parameters_of(&column, inside(path)).into_iter();
            let has_brackets = self.found.has_brackets;
            let names = names.flat_map(|name| [has_brackets.then(|| format!("filter[{name}]")), Some(name)]).flatten();
            let names = each_once(names.filter_map(|name| self.parameter_of(&name)));
            let names = names.into_iter();
            let told = self.parameters.as_ref().is_some_and(|known| !known.is_empty());
            match self.parameters {
                // All at once: the service ignores those that it does not have.
                None => tries.push(Try {
                    pairs: names.take(TOGETHER).map(|name| pair(&name, &value)).collect(),
                    ..Try::new(column.clone(), "", "")
                }),
                Some(_) => {
                    let names = names.take(if told { 2 } else { 1 });
                    tries.extend(names.map(|parameter| Try::new(column.clone(), &parameter, value.clone())));
                }
            }
        }
        tries.truncate(MOST);
        tries
    }

    /// The most frequent value among the received mentions, and its count.
    pub(super) fn usual(&self, column: &str) -> Option<(String, usize)> {
        let path = self.found.columns.path(column)?;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for value in self.samples.iter().filter_map(|row| said(at(row, path)?)) {
            *counts.entry(value).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count)
    }

    pub(super) fn judge_filters(&mut self, filters: &Dimension) {
        let mut notes = Vec::new();
        for (tried, reply) in filters.taken() {
            let [(parameter, wanted)] = tried.pairs.as_slice() else { continue };
            let rows = self.rows(reply);
            if self.found.is_filtered(tried, reply) && self.found.filters.iter().all(|(_, known)| *known != tried.label)
            {
                notes.push(format!("{parameter}={wanted} returned {} mentions, all matching", rows.len()));
                self.found.filters.push((parameter.clone(), tried.label.clone()));
            }
        }
        match notes.is_empty() {
            false => self.found.saw("filters", notes.join("; ")),
            true => self.found.could_not_tell(
                "filters",
                without_effect(
                    ["none of the filters tried had an effect", "no filter was tried"],
                    ", so filters are applied locally; if the service documents filters, set [filters]",
                    filters,
                ),
            ),
        }
    }

    /// Determines how several values of a filter are sent.
    pub(super) async fn several_values(&mut self) -> Result<()> {
        let mut choice = None;
        for (parameter, column) in &self.found.filters {
            let Some(path) = self.found.columns.path(column) else { continue };
            let values: BTreeSet<String> = self.samples.iter().filter_map(|row| said(at(row, path)?)).collect();
            let mut counts: Vec<(usize, &String)> = values
                .iter()
                .map(|value| {
                    let has = |row: &&Value| at(row, path).and_then(said).as_ref() == Some(value);
                    (self.samples.iter().filter(has).count(), value)
                })
                .collect();
            counts.sort_by(|a, b| b.cmp(a));
            if let [(_, first), (_, second), _, ..] = counts.as_slice() {
                choice = Some((parameter.clone(), path.clone(), (*first).clone(), (*second).clone()));
                break;
            }
        }
        let Some((parameter, path, first, second)) = choice else { return Ok(()) };
        let mut ways: Vec<(&str, Vec<Pair>)> = vec![
            (",", vec![pair(&parameter, format!("{first},{second}"))]),
            ("again", vec![pair(&parameter, &first), pair(&parameter, &second)]),
            ("|", vec![pair(&parameter, format!("{first}|{second}"))]),
        ];
        // The described way comes first.
        let described = match &self.known.facts.several {
            Some(Several::Repeated) => "again",
            Some(Several::Separated(separator)) => separator.as_str(),
            _ => ",",
        };
        ways.sort_by_key(|(way, _)| *way != described);
        for (way, pairs) in ways {
            let mut asked = self.asking(self.accepted(LOOK));
            asked.extend(self.widest().into_iter().chain(pairs));
            let left = self.asker.left() > TRIAL;
            let Some(reply) = (if left { self.asker.ask("search", &asked).await? } else { None }) else {
                let text =
                    "no request was left to test filters with several values; filters are sent with a single value";
                self.found.could_not_tell("filters", text);
                return Ok(());
            };
            let rows = self.rows(&reply);
            let values: BTreeSet<String> = rows.iter().filter_map(|row| said(at(row, &path)?)).collect();
            let both = values.contains(&first) && values.contains(&second);
            if both && values.len() == 2 && rows.iter().all(|row| at(row, &path).and_then(said).is_some()) {
                let (several, text) = match way {
                    "again" => (Several::Repeated, "by repeating the parameter".to_owned()),
                    separator => (Several::Separated(separator.to_owned()), format!("separated by `{separator}`")),
                };
                self.found.saw("filters", format!("several values are sent {text}"));
                self.found.several = Some(several);
                return Ok(());
            }
        }
        self.found.saw("filters", "several values in a filter have no effect; filters are sent with a single value");
        self.found.several = Some(Several::One);
        Ok(())
    }
}
