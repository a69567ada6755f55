//! Each rule of each model is switched off by a test that demands a broken promise.
#![expect(clippy::expect_used, reason = "a source file that cannot be read fails the test")]

use std::fs;
use std::path::Path;

/// The files of the rules, and of the tests that switch the rules off.
const RULES: &[(&str, &str)] = &[
    ("src/safeguards.rs", "tests/model.rs"),
    ("src/epoch_lease.rs", "tests/epoch_lease.rs"),
    ("src/bucket_lease/rules.rs", "tests/bucket_lease.rs"),
    ("src/forgetful_ledger.rs", "tests/forgetful_ledger.rs"),
    ("src/homes.rs", "tests/homes.rs"),
    ("src/home_moves.rs", "tests/home_moves.rs"),
    ("src/region_adoption.rs", "tests/region_adoption.rs"),
];

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a source file")
}

/// Returns the names of the rules in a source file: each is a public `bool`.
fn rules(source: &str) -> impl Iterator<Item = &str> {
    source.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.strip_suffix(": bool,"))
}

#[test]
fn every_rule_is_switched_off_by_a_test() {
    for (source, tests) in RULES {
        let (source_text, tests_text) = (read(source), read(tests));
        assert!(rules(&source_text).count() >= 2, "{source} has no rules");
        for rule in rules(&source_text) {
            assert!(tests_text.contains(&format!("{rule}: false")), "no test of {tests} switches {rule} off");
        }
    }
}
