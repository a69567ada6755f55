//! Names the shared library by the major version of its interface.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        // `SK_ABI_MAJOR` of `include/seatkeeper.h`; a test compares both.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libseatkeeper.so.1");
    }
}
