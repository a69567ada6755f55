//! One process owns a data directory.

use crate::house::{House, run};

#[test]
fn a_second_server_on_the_same_directory_is_refused_and_told_why() {
    let house = House::open();
    let data_dir = house.data_dir().to_str().expect("a path in Unicode");
    let second = run(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir]);
    assert!(!second.status.success(), "{}", second.stdout);
    let reason = format!("another process uses the data directory {data_dir}");
    assert!(second.stderr.contains(&reason), "{}", second.stderr);
    assert!(!second.stdout.contains("listening"), "{}", second.stdout);
}
