//! The house rules of the source tree and its pages: plain words, headers, short functions, narrow pages.
//!
//! Each rule has a control: a test that shows the rule broken and sees the break found. A new rule is a test in this
//! file, and a reader of sources in `tidy/`.
#![allow(clippy::expect_used, clippy::panic, reason = "a source file that cannot be read fails the test")]

#[path = "tidy/functions.rs"]
mod functions;
#[path = "tidy/pages.rs"]
mod pages;
#[path = "tidy/prose.rs"]
mod prose;
#[path = "tidy/sources.rs"]
mod sources;

use functions::long_functions;
use prose::Figures;
use sources::{Kind, SourceFile, root, sources};

/// The largest share of words that only point, in percent. Four admired Rust codebases have 4.9 to 6.8.
const POINTING_PERCENT_MAX: f64 = 7.0;

/// The largest share of doc comments that open with a pointing word, in percent.
const OPENINGS_PERCENT_MAX: f64 = 4.0;

/// The longest function, in lines from its signature to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// Functions that may be longer, each with the reason.
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[
    ("crates/server/src/problem.rs", "from", "the one table of all problems, an arm for each"),
    ("crates/ledger/tests/ledger/fields.rs", "record", "a record with every field, spelled out"),
    (
        "crates/ledger/tests/ledger/schema.rs",
        "no_statement_of_a_request_walks_a_whole_table",
        "the list of all statements of requests",
    ),
    (
        "crates/seatkeeper/tests/failover/alone.rs",
        "each_node_admits_up_to_the_limit_alone_and_all_of_it_is_on_record_and_over_when_redis_is_back",
        "one story of one outage, step by step",
    ),
];

/// The parts of the tree whose prose is measured by itself.
const PARTS: &[&str] = &[
    "crates/client",
    "crates/client-c",
    "crates/client-core",
    "crates/core",
    "crates/engine",
    "crates/ledger",
    "crates/load",
    "crates/postgres",
    "crates/protocol-model",
    "crates/redis",
    "crates/registry",
    "crates/sdk-conformance",
    "crates/seatkeeper",
    "crates/server",
    "crates/testbed",
    "docs",
    "sdk",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
];

#[test]
fn comments_and_pages_say_their_noun() {
    let files = sources();
    let mut wrong = Vec::new();
    for part in PARTS {
        let figures = Figures::of_files(files.iter().filter(|file| file.is_in(part)));
        assert!(figures.words > 0, "{part} has no words");
        if figures.pointing_percent() > POINTING_PERCENT_MAX
            || figures.openings_percent() > OPENINGS_PERCENT_MAX
        {
            wrong.push(format!("{part}: {figures}"));
        }
    }
    assert!(wrong.is_empty(), "too many pointing words (CONTRIBUTING.md, language):\n{}", wrong.join("\n"));
}

#[test]
fn a_pointing_comment_is_found() {
    let file = SourceFile::new("a.rs", "/// What it was that this one did with those.\nfn f() {}\n");
    let figures = Figures::of_files([&file]);
    assert_eq!((figures.words, figures.pointing, figures.docs, figures.openings), (9, 6, 1, 1));
    let file = SourceFile::new("a.rs", "/// Returns the `what` of a pool.\nfn f() {}\n");
    let figures = Figures::of_files([&file]);
    assert_eq!((figures.pointing, figures.docs, figures.openings), (0, 1, 0));
}

#[test]
fn every_source_file_has_a_header() {
    let files = sources();
    let bare: Vec<_> = files.iter().filter(|file| !file.has_header()).map(|file| &file.path).collect();
    assert!(bare.is_empty(), "files without a header comment: {bare:#?}");
    assert!(!SourceFile::new("a.rs", "use b;\n//! Late.\n").has_header());
    assert!(!SourceFile::new("a.sql", "SELECT 1\n").has_header());
    assert!(SourceFile::new("a.lua", "-- Ends a session.\nreturn 1\n").has_header());
}

#[test]
fn functions_are_short() {
    let files = sources();
    let mut long = Vec::new();
    for file in files.iter().filter(|file| file.kind == Kind::Rust) {
        for function in long_functions(&file.text, FUNCTION_LINES_MAX) {
            let is_listed =
                |(path, name, _): &&(&str, &str, &str)| *path == file.path && *name == function.name;
            if !LONG_FUNCTIONS.iter().any(|listed| is_listed(&listed)) {
                long.push(format!("{}: {} has {} lines", file.path, function.name, function.lines));
            }
        }
    }
    assert!(long.is_empty(), "functions of more than {FUNCTION_LINES_MAX} lines:\n{}", long.join("\n"));
}

#[test]
fn a_long_function_is_found_and_a_short_one_is_not() {
    let body = "    step();\n".repeat(70);
    let long = format!("impl A {{\n    async fn long<T>(\n        x: T,\n    ) -> T {{\n{body}    }}\n}}\n");
    let found = long_functions(&long, 70);
    assert_eq!(found.iter().map(|function| function.name.as_str()).collect::<Vec<_>>(), ["long"]);
    assert!(long_functions("fn short() {\n}\nfn next() -> [u8; 3] {\n    [1; 3]\n}\n", 70).is_empty());
}

#[test]
fn no_function_is_named_of() {
    let files = sources();
    let found: Vec<_> = files
        .iter()
        .filter(|file| file.kind == Kind::Rust)
        .filter(|file| file.code_lines().any(|line| line.contains("fn of(") || line.contains("fn of<")))
        .map(|file| &file.path)
        .collect();
    assert!(
        found.is_empty(),
        "constructors are `new`, `from_…` or `From`, and look-ups have verbs: {found:#?}"
    );
}

#[test]
fn pages_are_narrow() {
    let files = sources();
    let pages = files.iter().filter(|file| file.kind == Kind::Page);
    let wide: Vec<_> = pages.flat_map(pages::wide_lines).collect();
    assert!(
        wide.is_empty(),
        "lines over {} or cells over {}:\n{}",
        pages::LINE_MAX,
        pages::CELL_MAX,
        wide.join("\n")
    );
}

#[test]
fn a_wide_line_and_a_wide_cell_are_found_and_a_link_is_not() {
    let wide = |text: &str| pages::wide_lines(&SourceFile::new("a.md", text)).len();
    let (line, cell) = ("word ".repeat(30), "word ".repeat(40));
    assert_eq!(wide(&line), 1);
    assert_eq!(wide(&format!("| a | {cell} |")), 1);
    assert_eq!(wide(&format!("| a | {line} |")), 0, "a table's line may be long");
    assert_eq!(wide(&format!("```\n{line}\n```")), 0, "commands are pasted as they stand");
    assert_eq!(wide(&format!("[a link](https://{})", "a/".repeat(80))), 0, "a link cannot be wrapped");
}

#[test]
fn the_tree_is_read() {
    let files = sources();
    assert!(root().join("Cargo.toml").exists());
    for path in ["crates/core/src/rule.rs", "crates/registry/src/redis/scripts/claim.lua", "README.md"] {
        assert!(files.iter().any(|file| file.path == path), "{path}");
    }
}
