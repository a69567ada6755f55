//! Names the shared library by the major version of its interface, and keeps a library with running threads in memory.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        // `SK_ABI_MAJOR` of `include/seatkeeper.h`; a test compares both.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libseatkeeper.so.1");
        // A thread that looks up a host may outlive every client by seconds, and its code must stay.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
