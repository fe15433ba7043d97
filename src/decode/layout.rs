//! Layout of a decoder: which values of a response it reads, and the columns that it builds of them.

use std::sync::{Arc, OnceLock};

use super::pointer_tree::Tree;
use super::schema::decoded_schema;
use super::value::{Column, InstantForm};
use super::{
    AS_OF, COUNTED, COUNTED_RELATION, Capture, Decoder, ECHO_AID, ECHO_OFFSET, ECHO_TIMEZONE, FIRST_COLUMN, NEXT,
    RELATION, Source, TOTAL, WINDOW_FROM, WINDOW_TO,
};
use crate::profile::{ColumnSpec, ColumnType, Origin, Pointer, Profile, Scope, Shape, TableKind, TableSpec};

/// Places of values, and builders of columns, as they are found.
struct Layout {
    records: Tree<usize>,
    envelope: Tree<Capture>,
    built: Vec<Column>,
    captures: usize,
    joined: Vec<([usize; 2], InstantForm)>,
    texts: Vec<Vec<usize>>,
}

impl Layout {
    /// Captures the value at a pointer into the envelope. Returns its slot.
    fn capture(&mut self, at: &Pointer) -> usize {
        let slot = self.captures;
        self.envelope.insert(at.steps(), Capture::Value(slot));
        self.captures += 1;
        slot
    }

    /// Adds a builder. Returns its index.
    fn build(&mut self, column: Column) -> usize {
        self.built.push(column);
        self.built.len() - 1
    }

    /// Adds the builder of a column of the table. Returns its index.
    fn build_of(&mut self, table: &TableSpec, column: &ColumnSpec) -> usize {
        // Numbers in identifiers are compared with those in other notations.
        let identifies =
            Some(&column.name) == table.id.as_ref() || column.name == "aid" || column.name.ends_with("_id");
        self.build(Column::new(column.kind, InstantForm::of(column)).identifying(identifies).with_nulls(&column.nulls))
    }

    /// Finds the source of a column; `None` for one that is not read. `extra`: set if the column `extra` is wanted, which must
    /// not repeat values of other columns, so that these are converted even if not wanted themselves.
    fn source(&mut self, table: &TableSpec, column: &ColumnSpec, wanted: bool, extra: bool) -> Option<Source> {
        Some(match &column.origin {
            Origin::Field(at, Scope::Record)
                if let Some(time_at) = column.time_at.as_ref().filter(|_| wanted || extra) =>
            {
                let slots = [at, time_at].map(|at| {
                    let slot = self.build(Column::new(ColumnType::Utf8, InstantForm::default()));
                    self.records.insert(at.steps(), slot);
                    slot
                });
                self.joined.push((slots, InstantForm::of(column)));
                Source::Joined(self.joined.len() - 1)
            }
            Origin::Field(at, Scope::Record) if !column.joined_with.is_empty() && (wanted || extra) => {
                let parts = [at].into_iter().chain(&column.joined_with).map(|at| {
                    let slot = self.build_of(table, column);
                    self.records.insert_checked(at.steps(), slot);
                    slot
                });
                let parts = parts.collect();
                self.texts.push(parts);
                Source::Texts(self.texts.len() - 1)
            }
            Origin::Field(at, Scope::Record) if wanted || extra => {
                let slot = self.build_of(table, column);
                match column.nulls.is_empty() {
                    true => self.records.insert(at.steps(), slot),
                    false => self.records.insert_checked(at.steps(), slot),
                }
                Source::Row(slot)
            }
            Origin::Field(at, Scope::Answer) if wanted => {
                let slot = self.capture(at);
                Source::Answer(slot, self.build_of(table, column))
            }
            Origin::Aid => Source::Aid,
            Origin::Duration => Source::Duration,
            Origin::Timezone => Source::Timezone,
            Origin::AsOf | Origin::FirstSeen | Origin::Kinds => Source::Later,
            Origin::Section | Origin::Rank | Origin::Extra if wanted => Source::Row(self.build_of(table, column)),
            _ => return None,
        })
    }

    /// Captures the sections of the table, and those of other tables of the same responses.
    fn sections(&mut self, profile: &Profile, table: &TableSpec) {
        for (index, section) in table.sections.iter().enumerate() {
            self.envelope.insert(section.at.steps(), Capture::Section(index));
        }
        let own = |at: &Pointer| table.sections.iter().any(|section| section.at == *at);
        let others = profile.tables.all().filter(|other| other.kind.is_search() == table.kind.is_search());
        let others = others.flat_map(|other| &other.sections).filter(|section| !own(&section.at));
        for section in others {
            self.envelope.insert(section.at.steps(), Capture::Foreign);
        }
    }

    /// Captures what every response may have: totals, echoes, and the place of the next page.
    fn known(&mut self, profile: &Profile, table: &TableSpec) {
        // Inside a record that is read anyway, the total would be read twice.
        let counted = profile.counted_total();
        let counted = counted.filter(|_| !table.sections.iter().any(|section| section.shape == Shape::Record));
        let (counted, counted_relation) = counted.map_or((None, None), |(at, relation)| (Some(at), relation));
        let next = match table.kind {
            TableKind::List => profile.list.pages.as_ref().and_then(|pages| pages.next.clone()),
            TableKind::Mentions => profile.offset.next.clone(),
            _ => None,
        };
        let known = [
            (COUNTED, &counted),
            (COUNTED_RELATION, &counted_relation),
            (TOTAL, &profile.total.at),
            (RELATION, &profile.total.relation),
            (ECHO_AID, &profile.echo.aid),
            (ECHO_TIMEZONE, &profile.echo.timezone),
            (ECHO_OFFSET, &profile.echo.offset),
            (WINDOW_FROM, &profile.echo.from),
            (WINDOW_TO, &profile.echo.to),
            (NEXT, &next),
            (AS_OF, &profile.complete.as_of),
        ];
        for (slot, pointer) in known {
            if let Some(pointer) = pointer {
                self.envelope.insert(pointer.steps(), Capture::Value(slot));
            }
        }
    }

    /// The first builder of a column; `None` if it has none.
    fn slot(&self, source: &Source) -> Option<usize> {
        match source {
            Source::Row(slot) => Some(*slot),
            Source::Joined(pair) => self.joined.get(*pair).map(|([day, _], _)| *day),
            Source::Texts(parts) => self.texts.get(*parts).and_then(|parts| parts.first()).copied(),
            _ => None,
        }
    }
}

impl Decoder {
    /// Creates a decoder for the columns at these positions of the table.
    pub fn new(profile: Arc<Profile>, table: Arc<TableSpec>, columns: &[usize]) -> Self {
        let full = decoded_schema(&table);
        // `project` fails only for positions out of bounds.
        let schema = Arc::new(full.project(columns).expect("column positions are within the table"));
        let of_origin = |origin: &Origin| columns.iter().position(|column| table.columns[*column].origin == *origin);
        let extra = of_origin(&Origin::Extra);
        let (records, envelope) = (Tree::default(), Tree::default());
        let (built, joined, texts) = (Vec::new(), Vec::new(), Vec::new());
        let mut layout = Layout { records, envelope, built, captures: FIRST_COLUMN, joined, texts };
        let sources: Vec<Option<Source>> = (0..)
            .zip(&table.columns)
            .map(|(index, column)| layout.source(&table, column, columns.contains(&index), extra.is_some()))
            .collect();
        let sources: Vec<Source> =
            columns.iter().map(|column| sources[*column].expect("every wanted column has a source")).collect();
        for pointer in &table.ignore {
            layout.records.ignore(pointer.steps());
        }
        layout.sections(&profile, &table);
        let last = profile.offset.last.clone().filter(|_| table.kind == TableKind::Mentions);
        let fields = profile.complete.fields.iter();
        let complete = fields.map(|field| (layout.capture(&field.at), field.clone())).collect();
        let summed = profile.summed_counts().filter(|_| table.kind == TableKind::Mentions);
        let instant = |column: Option<&ColumnSpec>| match column.map(|column| (column, &column.origin)) {
            Some((column, Origin::Field(at, Scope::Record))) if column.time_at.is_none() => {
                Some((at.clone(), InstantForm::of(column)))
            }
            _ => None,
        };
        let start = instant(summed.as_ref().and_then(|summed| summed.start.as_ref()));
        let end = instant(summed.as_ref().and_then(|summed| summed.end.as_ref()));
        let mut capture = |(at, count): (Pointer, Option<Pointer>)| (layout.capture(&at), count);
        let (timeline, lists) = match summed {
            Some(summed) => (summed.timeline.map(&mut capture), summed.lists.into_iter().map(&mut capture).collect()),
            None => (None, Vec::new()),
        };
        layout.known(&profile, &table);
        let position = |name: &Option<String>| {
            columns.iter().position(|column| Some(&table.columns[*column].name) == name.as_ref())
        };
        let (id, time, version) = (position(&table.id), position(&table.time), position(&table.version));
        let origins = [Origin::Section, Origin::Rank, Origin::Extra];
        let origins = origins.map(|origin| of_origin(&origin).and_then(|at| layout.slot(&sources[at])));
        let is_field = |at: &usize| matches!(table.columns[columns[*at]].origin, Origin::Field(_, Scope::Record));
        let fields = (0..columns.len()).filter(is_field);
        let fields = fields.filter_map(|at| Some((at, layout.slot(&sources[at])?))).collect();
        let Layout { mut records, envelope, built, captures, joined, texts } = layout;
        Self {
            profile,
            table,
            schema,
            sources,
            columns: built,
            objects: records.numbered(0),
            records,
            envelope,
            captures,
            id,
            time,
            version,
            origins,
            fields,
            extra,
            lossy: false,
            needs_section: false,
            continues: false,
            complete,
            joined,
            texts,
            last,
            same_zone: OnceLock::new(),
            timeline,
            start,
            end,
            lists,
        }
    }
}
