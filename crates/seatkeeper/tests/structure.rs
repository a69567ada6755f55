//! The structure of the crates: imports between modules run one way, and the engine depends on neither the
//! server nor HTTP.
#![allow(clippy::expect_used, clippy::panic, reason = "a source file that cannot be read fails the test")]

#[path = "structure/imports.rs"]
mod imports;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use imports::{Graph, SourceFile};

/// Returns the folder of all crates.
fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the graph of imports between the top modules of each crate, by the crate's folder name.
fn graphs() -> BTreeMap<String, Graph> {
    let folders = fs::read_dir(crates()).expect("the folder of crates");
    let folders = folders.map(|folder| folder.expect("a folder").path()).filter(|path| path.is_dir());
    folders
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, Graph::new(&sources(&path.join("src"))))
        })
        .collect()
}

/// Returns every source file below `root`, with its relative path.
fn sources(root: &Path) -> Vec<SourceFile> {
    let (mut folders, mut files) = (vec![root.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file");
                let path = path.strip_prefix(root).expect("a path below the root");
                files.push(SourceFile { path: path.to_string_lossy().into_owned(), text });
            }
        }
    }
    files
}

#[test]
fn no_crate_has_an_import_cycle_between_its_modules() {
    let graphs = graphs();
    let cycles: Vec<_> = graphs
        .iter()
        .map(|(name, graph)| (name, graph.in_cycles()))
        .filter(|(_, modules)| !modules.is_empty())
        .collect();
    assert!(cycles.is_empty(), "modules that import one another in a circle: {cycles:?}");
}

#[test]
fn the_graph_has_the_imports_of_the_sources() {
    let graphs = graphs();
    for (name, from, to) in [
        ("server", "start", "app"),
        ("server", "router", "licenses"),
        ("engine", "workers", "backend"),
        ("engine", "failover", "commits"),
        ("seatkeeper", "commands", "args"),
    ] {
        assert!(graphs[name].imports(from, to), "{name}: {from} imports {to}");
    }
}

/// The control of `no_crate_has_an_import_cycle_between_its_modules`: a reader that finds no imports would
/// pass that test.
#[test]
fn a_cycle_is_found_whichever_way_it_is_written() {
    let imports = [
        "use crate::second::Thing;",
        "use crate::{error::{Error, Kind}, second};",
        "fn call() { crate::second::call() }",
        "use super::second;",
        "pub(crate) use super::{other, second::Thing};",
    ];
    for import in imports {
        let graph = graph_of(&[("first.rs", import), ("second/inner.rs", "use super::super::first::call;")]);
        assert_eq!(graph.in_cycles(), ["first", "second"], "{import}");
    }
}

#[test]
fn a_cycle_of_three_names_the_three_and_nobody_else() {
    let graph = graph_of(&[
        ("first.rs", "use crate::second;"),
        ("second.rs", "use crate::third;"),
        ("third/mod.rs", "use crate::first; use crate::leaf;"),
        ("leaf.rs", ""),
        ("top.rs", "use crate::first;"),
    ]);
    assert_eq!(graph.in_cycles(), ["first", "second", "third"]);
}

#[test]
fn comments_tests_and_modules_inside_a_module_make_no_cycle() {
    let graph = graph_of(&[
        ("first.rs", "use crate::second;\n// See crate::third.\n"),
        ("second.rs", "//! Beside crate::first.\n#[cfg(test)]\nmod tests {\n    use crate::first;\n}\n"),
        ("second/tests.rs", "use crate::first;"),
        ("second/inner.rs", "use super::first; use crate::second;"),
        ("third.rs", "use crate::first;"),
        ("lib.rs", "pub use crate::first::Thing;"),
    ]);
    assert!(graph.in_cycles().is_empty(), "{:?}", graph.in_cycles());
}

fn graph_of(files: &[(&str, &str)]) -> Graph {
    let file =
        |(path, text): &(&str, &str)| SourceFile { path: (*path).to_owned(), text: (*text).to_owned() };
    Graph::new(&files.iter().map(file).collect::<Vec<_>>())
}

#[test]
fn the_engine_depends_on_neither_the_server_nor_http() {
    let manifest = fs::read_to_string(crates().join("engine/Cargo.toml")).expect("the engine's manifest");
    let (_, dependencies) = manifest.split_once("[dependencies]").expect("dependencies");
    assert!(dependencies.contains("seatkeeper-registry"), "the section is read");
    for above in ["seatkeeper-server", "axum", "http", "hyper", "reqwest", "utoipa"] {
        let is_named = |line: &str| line.split(['.', ' ', '=']).next() == Some(above);
        assert!(!dependencies.lines().any(is_named), "the engine depends on {above}");
    }
}
