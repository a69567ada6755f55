//! The pages beside the code say what the code does.
#![allow(clippy::panic, reason = "a page that is missing fails the test")]

mod house;

use std::fs;
use std::path::Path;

use house::run;

fn page(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The fenced blocks of this language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let blocks = page.split(&fence).skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn the_page_on_configuration_shows_every_default() {
    assert_eq!(blocks(&page("docs/configuration.md"), "toml"), [run(&["config"]).stdout]);
}

#[test]
fn the_page_on_configuration_explains_every_key() {
    let page = page("docs/configuration.md");
    let printed = run(&["config"]).stdout;
    let keys = printed.lines().filter_map(|line| Some(line.split_once(" = ")?.0));
    let unset = ["key_file", "secret", "issuer", "audience", "contact_support"];
    for key in keys.chain(unset) {
        let explained = page.lines().any(|line| line.starts_with('|') && line.contains(&format!("`{key}`")));
        assert!(explained, "no table explains {key}");
    }
}
