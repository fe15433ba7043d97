//! Integration tests: the library over a simulator, and the binary as a child process.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![expect(clippy::print_stdout, reason = "tests print seeds and skipped parts")]

mod binary;
mod cli;
mod counting;
mod days_by_offset;
mod differential;
mod distributed;
mod embedding;
mod engine_defects;
mod evidence;
mod explain;
mod faults;
mod flight;
mod frugal;
mod full_disk;
mod fuzz;
mod guard;
mod guide;
mod later;
mod layout;
mod lies;
mod little_memory;
mod lying;
mod mcp;
mod odd;
mod one_row_an_aid;
mod own_tables;
mod pages;
mod postgres;
mod probing;
mod proofs;
#[path = "../../benches/requests/queries.rs"]
mod queries;
mod real_data;
mod recordings;
mod release;
mod services;
mod shell;
mod sql_files;
mod standard_sql;
mod store;
mod store_changes;
mod store_damage;
mod support;
mod tables;
mod telemetry;
mod ui;
mod unseen;
mod words;
mod zones;
