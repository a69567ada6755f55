//! The header and the library say the same. Needs a C compiler, a C++ compiler and `nm`.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]
#![cfg(target_os = "linux")]

mod build;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use build::{compile, libraries, output, program, root};

/// Returns the names in the header before a parenthesis: the declared functions.
fn declared() -> BTreeSet<String> {
    let header = std::fs::read_to_string(root().join("include/seatkeeper.h")).unwrap();
    let (mut code, mut rest) = (String::new(), header.as_str());
    while let Some((before, after)) = rest.split_once("/*") {
        code.push_str(before);
        rest = after.split_once("*/").expect("the end of a comment").1;
    }
    code.push_str(rest);
    let names = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '(');
    let names = names.filter_map(|word| word.split_once('(')).map(|(name, _)| name.to_owned());
    names.filter(|name| name.starts_with("sk_")).collect()
}

#[test]
fn the_shared_library_exports_the_functions_of_the_header_alone() {
    let mut nm = Command::new("nm");
    let symbols =
        output(nm.args(["-D", "--defined-only"]).arg(libraries().join("libseatkeeper.so")), "binutils");
    let exported: BTreeSet<String> =
        symbols.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect();
    assert_eq!(exported, declared());
    assert_eq!(exported.len(), 20, "{exported:?}");
}

#[test]
fn the_shared_library_is_named_by_its_major_version_and_stays_in_memory() {
    let mut readelf = Command::new("readelf");
    let dynamic = output(readelf.arg("-d").arg(libraries().join("libseatkeeper.so")), "binutils");
    let major = seatkeeper::SK_ABI_VERSION >> 16;
    assert!(dynamic.contains(&format!("soname: [libseatkeeper.so.{major}]")), "{dynamic}");
    assert!(dynamic.contains("NODELETE"), "a thread may run on after dlclose: {dynamic}");
}

#[test]
fn layouts_and_numbers_are_those_of_the_header() {
    let said = output(&mut program(&compile("tests/c/layout.c", &[])), "nothing");
    let c: Vec<(&str, i64)> = said
        .lines()
        .map(|line| line.split_once(' ').map(|(name, value)| (name, value.parse().unwrap())).unwrap())
        .collect();
    assert_eq!(c, layout());
}

#[test]
fn the_page_shows_the_example() {
    let page = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, block) = page.split_once("```c\n").expect("a program");
    let (program, _) = block.split_once("```").expect("the program's end");
    assert_eq!(program, std::fs::read_to_string(root().join("examples/c/hold.c")).unwrap());
}

#[test]
fn the_page_for_porters_shows_a_program_that_compiles() {
    let page = std::fs::read_to_string(root().join("../../docs/migrate-flexnet-rlm.md")).unwrap();
    let after = page.split_once("After:").expect("the program of this library").1;
    let block = after.split_once("```c\n").expect("a program").1;
    let lines = block.split_once("```").expect("the program's end").0.lines();
    // The lines of dots stand for the rest of the program.
    let body = lines.filter(|line| *line != "...").collect::<Vec<_>>().join("\n");
    let program = format!(
        "#include <seatkeeper.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         static void save_and_close(void) {{}}\nstatic void ported(const char *machine) {{\n{body}\n}}\n\
         int main(int argc, char **argv) {{ if (argc > 1) ported(argv[1]); return 0; }}\n"
    );
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ported-{}.c", std::process::id()));
    std::fs::write(&source, program).unwrap();
    compile(source.to_str().unwrap(), &[]);
}

#[test]
fn the_wrapper_compiles_alone() {
    compile("tests/c/alone.cpp", &[]);
}

/// Returns the numbers that `layout.c` prints, from Rust.
fn layout() -> Vec<(&'static str, i64)> {
    use std::mem::{offset_of, size_of};

    use seatkeeper::*;
    vec![
        ("sk_options", size_of::<SkOptions>() as i64),
        ("server", offset_of!(SkOptions, server) as i64),
        ("tenant", offset_of!(SkOptions, tenant) as i64),
        ("token_file", offset_of!(SkOptions, token_file) as i64),
        ("flags", offset_of!(SkOptions, flags) as i64),
        ("state_dir", offset_of!(SkOptions, state_dir) as i64),
        ("sk_request", size_of::<SkRequest>() as i64),
        ("license_key", offset_of!(SkRequest, license_key) as i64),
        ("metadata_json", offset_of!(SkRequest, metadata_json) as i64),
        ("patience_ms", offset_of!(SkRequest, patience_ms) as i64),
        ("flags", offset_of!(SkRequest, flags) as i64),
        ("sk_state", size_of::<SkState>() as i64),
        ("retry", offset_of!(SkState, retry) as i64),
        ("remaining_ms", offset_of!(SkState, remaining_ms) as i64),
        ("SK_OK", SK_OK.into()),
        ("SK_OFFLINE", SK_OFFLINE.into()),
        ("SK_GRACE", SK_GRACE.into()),
        ("SK_TIMEOUT", SK_TIMEOUT.into()),
        ("SK_LOST", SK_LOST.into()),
        ("SK_UNCONFIRMED", SK_UNCONFIRMED.into()),
        ("SK_RELEASED", SK_RELEASED.into()),
        ("SK_DENIED", SK_DENIED.into()),
        ("SK_UNREACHABLE", SK_UNREACHABLE.into()),
        ("SK_CANCELLED", SK_CANCELLED.into()),
        ("SK_CLOSED", SK_CLOSED.into()),
        ("SK_MISUSE", SK_MISUSE.into()),
        ("SK_NOT_OWNER", SK_NOT_OWNER.into()),
        ("SK_INTERNAL", SK_INTERNAL.into()),
        ("SK_NO_MACHINE_ID", SK_NO_MACHINE_ID.into()),
        ("SK_STATE_ACTIVE", SK_STATE_ACTIVE.into()),
        ("SK_STATE_OFFLINE", SK_STATE_OFFLINE.into()),
        ("SK_STATE_GRACE", SK_STATE_GRACE.into()),
        ("SK_STATE_REACQUIRING", SK_STATE_REACQUIRING.into()),
        ("SK_STATE_LOST", SK_STATE_LOST.into()),
        ("SK_STATE_RELEASED", SK_STATE_RELEASED.into()),
        ("SK_FOREVER", SK_FOREVER.into()),
        ("SK_NO_EVENT_STREAMS", SK_NO_EVENT_STREAMS.into()),
        ("SK_PER_PROCESS", SK_PER_PROCESS.into()),
        ("SK_MACHINE_ID_SIZE", SK_MACHINE_ID_SIZE as i64),
        ("SK_ABI", SK_ABI_VERSION.into()),
        ("deadline", 1),
        ("unauthorized", 2),
        ("not_found", 3),
        ("expired", 4),
        ("evicted", 5),
        ("superseded", 6),
        ("upgraded", 7),
        ("revoked", 8),
        ("idle", 9),
        ("entitlement_ended", 10),
        ("released", 11),
        ("ended", 12),
        ("other", 13),
    ]
}
