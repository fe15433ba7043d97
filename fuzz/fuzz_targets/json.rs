#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| savedsearch_fuzz::json::target(data));
