//! Registry of the engine's defects: statements that a plain DataFusion session answers with wrong rows, and what ours do.
//!
//! `tests/it/engine_defects.rs` runs each statement in both sessions. It fails if ours returns other rows than the standard
//! requires, and also once the plain session is right: the engine has then been fixed, and the workaround can go.
//! `docs/guarantees.md` lists the entries.
//!
//! Invariant: an entry is either worked around, with the rows that the standard requires, or refused with the form to write.

/// A statement that the engine answers with wrong rows.
#[derive(Debug, Clone, Copy)]
pub struct EngineDefect {
    /// Name of the defect: lowercase words, as shown in the documentation.
    pub name: &'static str,
    /// Issue of the engine's repository, if there is one.
    pub upstream: Option<u32>,
    /// Smallest statement that shows the defect, over the tables of `tests/it/engine_defects.rs`.
    pub statement: &'static str,
    /// Rows of a plain session: cells separated by `|`, rows by `; `, NULL as an empty cell.
    pub plain: &'static str,
    /// Behaviour of our sessions.
    pub here: Here,
}

/// Behaviour of our sessions at a defect of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Here {
    /// The statement has these rows, which the standard requires, in the form of [`EngineDefect::plain`].
    Right(&'static str),
    /// The statement is refused with an error that contains this text, which names the form to write.
    Refused(&'static str),
}

/// All known defects of the engine's version that this crate is built with.
pub const ENGINE_DEFECTS: &[EngineDefect] = &[];
