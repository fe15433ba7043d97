//! Keeps the library in memory once it is loaded: a driver manager may unload it, but its threads run on.
#![expect(clippy::disallowed_methods, reason = "cargo tells the target by a variable")]

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
