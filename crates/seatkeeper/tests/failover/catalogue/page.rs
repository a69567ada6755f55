//! Generates the table of faults in `docs/operations.md`, and checks that the page, the catalogue and the
//! tests agree.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use super::entries::faults;
use super::{Effect, Fault, Lapse};

/// If set, the test writes the table instead of comparing it.
const ACCEPT_VARIABLE: &str = "SEATKEEPER_ACCEPT_FAULTS";

/// Modules in which every test brings about a fault.
const MODULES: [&str; 13] = [
    "clock_steps",
    "disk_full",
    "faults",
    "flapping",
    "frozen_stores",
    "half_alive",
    "interference",
    "ledger_crashes",
    "network",
    "partitions",
    "postgres_alone",
    "promotions",
    "standby",
];

const HEADING: &str = "## What happens at each failure\n";

const CELL_MAX: usize = 160;

fn table() -> String {
    let mut lines = vec![
        "| fault | test | licenses | devices | capacities | after it, up to | epochs | heals by itself | you do |"
            .to_owned(),
        "|---|---|---|---|---|---|---|---|---|".to_owned(),
    ];
    lines.extend(faults().map(line));
    lines.join("\n") + "\n"
}

fn line(fault: &Fault) -> String {
    let afterwards = fault.effects.map(|effect| effect.afterwards.to_string());
    let cells = [
        fault.title.to_owned(),
        format!("`{}`", fault.test),
        effect(fault.effects[0]),
        effect(fault.effects[1]),
        effect(fault.effects[2]),
        format!("{} s", afterwards.join(", ")),
        fault.epochs_max.to_string(),
        fault.heals.to_owned(),
        fault.remedy.to_owned(),
    ];
    format!("| {} |", cells.join(" | "))
}

fn effect(effect: Effect) -> String {
    match (lapse(effect.admissions), lapse(effect.heartbeats)) {
        (None, None) => "nothing".to_owned(),
        (admissions, heartbeats) if admissions == heartbeats => admissions.unwrap_or_default(),
        (Some(admissions), None) => format!("admissions: {admissions}"),
        (None, Some(heartbeats)) => format!("heartbeats: {heartbeats}"),
        (Some(admissions), Some(heartbeats)) => format!("admissions: {admissions}; heartbeats: {heartbeats}"),
    }
}

fn lapse(lapse: Lapse) -> Option<String> {
    match lapse {
        Lapse::Nothing => None,
        Lapse::UpTo(seconds) => Some(format!("503 up to {seconds} s")),
        Lapse::WhileItLasts => Some("503 while it lasts".to_owned()),
        Lapse::OneMasterWhileItLasts => Some("503 for that master's while it lasts".to_owned()),
    }
}

#[test]
fn the_page_on_operations_has_the_table_of_faults() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let page = fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(HEADING).expect("its heading");
    let start = rest.find("| fault |").expect("its table");
    let (text, rest) = rest.split_at(start);
    let (old, after) = rest.split_at(rest.find("|\n\n").expect("its end") + 2);
    let now = table();
    let wide = now.split('|').find(|cell| cell.trim().len() > CELL_MAX);
    assert_eq!(wide, None, "a cell is wider than {CELL_MAX}");
    if env::var_os(ACCEPT_VARIABLE).is_some() {
        return fs::write(path, format!("{before}{HEADING}{text}{now}{after}")).expect("the page is written");
    }
    assert!(
        old == now,
        "docs/operations.md has another table of faults than the catalogue. \
         To accept it: {ACCEPT_VARIABLE}=1 cargo test --workspace --test failover the_page_on_operations"
    );
}

#[test]
fn every_fault_is_tried_and_every_test_of_a_fault_is_in_the_catalogue() {
    let tests =
        Command::new(env::current_exe().expect("this program")).args(["--list", "--format=terse"]).output();
    let tests = String::from_utf8(tests.expect("it lists its tests").stdout).expect("names");
    let names = tests.lines().filter_map(|line| line.strip_prefix("failover::")?.strip_suffix(": test"));
    let tried = names.filter_map(|path| path.split_once("::").filter(|(module, _)| MODULES.contains(module)));
    let tried: BTreeSet<_> = tried.map(|(_, test)| test).collect();
    let listed: BTreeSet<_> = faults().map(|fault| fault.test).collect();
    assert_eq!(listed.len(), faults().count(), "a test is listed twice");
    assert_eq!(listed, tried);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/faults");
    let script = fs::read_to_string(script).expect("the script");
    let all = script.lines().find(|line| line.contains("set --")).expect("its modules");
    assert!(
        all.ends_with(&format!("set -- {}", MODULES.join(" "))),
        "scripts/faults does not run {MODULES:?}"
    );
}
