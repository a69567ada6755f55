//! The first program of the README. With `SDK_TEST_SERVER` set to the path of the server's binary the program also runs.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod server;

use std::path::{Path, PathBuf};
use std::process::Command;

use server::{Server, output};

#[test]
fn the_page_shows_the_example() {
    let page = include_str!("../README.md");
    let (_, block) = page.split_once("```rust\n").expect("a program");
    let (program, _) = block.split_once("```").expect("the program's end");
    assert_eq!(program, include_str!("../examples/hold.rs"));
}

/// Returns the example, which cargo builds beside the tests.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).expect("the folder of the profile");
    profile.join("examples/hold")
}

#[test]
fn the_example_holds_a_seat_with_a_key_alone() {
    let server = Server::start();
    server.run(&["license", "create", "--key", "TOUR-2030", "--seats", "1", "--clients", "key"]);
    let mut hold = Command::new(example());
    let said = output(hold.env("SEATS_URL", &server.url).env("SEATS_MACHINE", "workstation-7"));
    assert!(said.ends_with("is held\nstep 1\nstep 2\nstep 3\nthe seat is given back\n"), "{said}");
    let live = server.run(&["sessions", "list", "--live", "--json"]);
    assert!(!live.contains("workstation-7"), "{live}");
}
