//! Tests of the product as a whole: the library over a simulator, and the binary as a process.

mod support;
mod tables;
