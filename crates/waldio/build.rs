//! Keeps the loaded library in memory.

fn main() {
    // SQLite unloads an extension with the connection that loaded it, unless the entry point's result forbids it;
    // but that result is an error to sqlite3_auto_extension. Marked so, the library never leaves memory, and the
    // entry point returns plain OK to both.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
