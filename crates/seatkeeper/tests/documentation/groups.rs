//! The tour of the page on watching together, pasted.

use seatkeeper_testbed::port;
use serde_json::{Deserializer, Value, json};

use super::{blocks, page, run_alone};

#[test]
fn the_tour_of_watching_together_goes_as_the_page_says() {
    let tour = blocks(&page("docs/groups.md"), "sh").concat().replace("8095", &port::free().to_string());
    let (shown, log) = run_alone(&tour, &[]);
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
