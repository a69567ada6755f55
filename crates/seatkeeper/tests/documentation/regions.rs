//! The three regions of the page on regions, pasted.

use seatkeeper_testbed::port;
use serde_json::{Value, json};

use super::{blocks, page, run_alone};

#[test]
fn the_three_regions_of_the_page_go_as_it_says() {
    let pasted = blocks(&page("docs/regions.md"), "sh");
    let mut script = pasted[1..].concat();
    for port in ["9081", "9082", "9083"] {
        script = script.replace(port, &port::free().to_string());
    }
    let (told, log) = run_alone(&script, &[]);
    let answers: Vec<Value> = told.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let outcomes: Vec<_> = answers.iter().filter_map(|answer| answer["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["admitted", "admitted_with_eviction", "admitted"], "{told}{log}");
    let problems: Vec<_> = answers.iter().filter_map(|answer| answer["type"].as_str()).collect();
    assert_eq!(problems, ["/problems/region-unavailable", "/problems/region-adopting"], "{told}{log}");
    let listed: Vec<_> = answers.iter().filter_map(|answer| answer["items"].as_array()).collect();
    let phone = answers.iter().find(|answer| answer["outcome"] == json!("admitted_with_eviction"));
    assert_eq!(listed.len(), 3, "{told}{log}");
    assert_eq!(listed[2].len(), 1, "{told}{log}");
    for held in &listed[..2] {
        assert_eq!(held.len(), 1, "{told}{log}");
        assert_eq!(held[0]["session_id"], phone.expect("the phone")["session_id"]);
    }
    assert!(told.contains("The home of ann is in region 3, version 2."), "{told}{log}");
    assert_eq!(told.matches("none left its pool above its limit").count(), 6, "{told}{log}");
    assert!(told.contains("Region eu is adopted by us: 1 subscribers and 0 licenses"), "{told}{log}");
    assert!(told.contains("lost, adopted by 2"), "{told}{log}");
}
