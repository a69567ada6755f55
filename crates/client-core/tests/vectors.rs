//! Plays `sdk/vectors` against the machine: a transport and clocks of the test's own, no sockets.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a vector that fails panics, and says where"
)]

#[path = "vectors/clocks.rs"]
mod clocks;
#[path = "vectors/fleet.rs"]
mod fleet;
#[path = "vectors/player.rs"]
mod player;
#[path = "vectors/script.rs"]
mod script;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use script::{Fleet, Vector};
use serde::de::DeserializeOwned;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/vectors");
    let entries = fs::read_dir(folder).expect("the folder of vectors").map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    files.sort();
    files
}

fn read<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    let text = fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Plays every vector, and returns the names of failed vectors.
fn play_all<T>(path: &Path, vectors: &[T], name: impl Fn(&T) -> &str, play: impl Fn(&T)) -> Vec<String> {
    let fails = |vector: &&T| catch_unwind(AssertUnwindSafe(|| play(vector))).is_err();
    let file = path.file_name().unwrap().to_string_lossy();
    vectors.iter().filter(fails).map(|vector| format!("{file}: {}", name(vector))).collect()
}

#[test]
fn the_machine_plays_every_vector() {
    let (mut failed, mut count) = (Vec::new(), 0);
    for path in files() {
        if path.ends_with("storm.json") {
            let fleets: Vec<Fleet> = read(&path);
            count += fleets.len();
            failed.extend(play_all(&path, &fleets, |fleet| &fleet.name, fleet::play));
        } else {
            let vectors: Vec<Vector> = read(&path);
            count += vectors.len();
            failed.extend(play_all(&path, &vectors, |vector| &vector.name, player::play));
        }
    }
    assert!(failed.is_empty(), "{} of {count} vectors fail:\n{}", failed.len(), failed.join("\n"));
    assert!(count >= VECTORS_MIN, "{count} vectors");
}

/// A missing or truncated folder of vectors fails the test.
const VECTORS_MIN: usize = 255;

#[test]
fn no_two_vectors_share_a_name() {
    let mut names: Vec<String> = Vec::new();
    for path in files() {
        names.extend(read::<script::Named>(&path).into_iter().map(|vector| vector.name));
    }
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}
