//! The tour of the page on watching together, pasted.

use std::path::Path;

use seatkeeper_testbed::port;
use serde_json::{Deserializer, Value, json};

use super::{BIN, bash, blocks, page};

#[test]
fn the_tour_of_watching_together_goes_as_the_page_says() {
    let tour = blocks(&page("docs/groups.md"), "sh").concat().replace("8095", &port::free().to_string());
    let script = format!("trap 'kill $(jobs -p) 2> /dev/null; wait' EXIT\n{tour}");
    let directory = tempfile::tempdir().expect("a directory");
    let programs = Path::new(BIN).parent().expect("a directory").display();
    let output = bash()
        .args(["-euc", &format!("PATH={programs}:$PATH\n{script}")])
        .current_dir(directory.path())
        .output()
        .expect("bash, curl and jq");
    let (shown, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{shown}{log}");
    let shown: Vec<Value> =
        Deserializer::from_str(&shown).into_iter().collect::<Result<_, _>>().expect("answers in JSON");
    let [plan, subscription, group, screens, alive, succeeded] = &shown[..] else {
        panic!("six answers: {shown:#?}{log}")
    };
    assert_eq!((&plan["group_members_max"], &subscription["user"]), (&json!(4), &json!("ann")));
    assert_eq!(group["members"].as_array().map(Vec::len), Some(2));
    assert_eq!(screens, &json!(1));
    assert_eq!((&alive["members"], &alive["host_session_id"]), (&json!(2), &group["host_session_id"]));
    assert_eq!(succeeded["members"], 1);
    assert_ne!(succeeded["host_session_id"], group["host_session_id"]);
}
