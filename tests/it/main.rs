//! Tests of the product as a whole: the library over a simulator, and the binary as a process.

mod binary;
mod differential;
mod explain;
mod layout;
mod lies;
mod real_data;
mod sql_files;
mod support;
mod tables;
