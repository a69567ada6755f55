//! The documentation agrees with the code: every page's settings, names, links and scripts are checked. A new
//! page needs an entry in `PAGES`.
#![allow(clippy::expect_used, clippy::panic, reason = "a page that is missing fails the test")]

mod harness;

#[path = "documentation/backup.rs"]
mod backup;
#[path = "documentation/groups.rs"]
mod groups;
#[path = "documentation/regions.rs"]
mod regions;
#[path = "documentation/roles.rs"]
mod roles;

const TOPOLOGY: harness::Topology = harness::Topology::Embedded;

use std::fs;
use std::path::Path;
use std::process::Command;

use harness::{BIN, Harness, run};
use seatkeeper_core::EndReason;
use seatkeeper_ledger::audit::Action;
use seatkeeper_testbed::port;
use seatkeeper_testbed::postgres::{self, Database};
use seatkeeper_testbed::redis::Redis;
use serde_json::{Value, json};

/// The pages, with the folder that their links start from.
const PAGES: [(&str, &str); 24] = [
    ("README.md", ""),
    ("ARCHITECTURE.md", ""),
    ("CONTRIBUTING.md", ""),
    ("docs/audit.md", "docs"),
    ("docs/licenses.md", "docs"),
    ("docs/subscriptions.md", "docs"),
    ("docs/devices.md", "docs"),
    ("docs/groups.md", "docs"),
    ("docs/capacities.md", "docs"),
    ("docs/durability.md", "docs"),
    ("docs/configuration.md", "docs"),
    ("docs/failover.md", "docs"),
    ("docs/limits.md", "docs"),
    ("docs/operations.md", "docs"),
    ("docs/metrics.md", "docs"),
    ("docs/alerts.md", "docs"),
    ("docs/security.md", "docs"),
    ("docs/run.md", "docs"),
    ("docs/jobs.md", "docs"),
    ("docs/testing.md", "docs"),
    ("docs/usage.md", "docs"),
    ("docs/regions.md", "docs"),
    ("docs/clients.md", "docs"),
    ("docs/migrate-flexnet-rlm.md", "docs"),
];

fn page(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the fenced blocks of a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let blocks = page.split(&fence).skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn the_page_on_configuration_shows_every_default() {
    assert_eq!(blocks(&page("docs/configuration.md"), "toml"), [run(&["config"]).stdout]);
}

/// The environment variable that makes the test rewrite the reference in `docs/configuration.md`.
const ACCEPT_VARIABLE: &str = "SEATKEEPER_ACCEPT_CONFIGURATION";

/// Compares heading and list of each section. The text between the lists is handwritten.
#[test]
fn the_page_on_configuration_explains_every_key_as_the_code_does() {
    let reference = run(&["config", "reference"]).stdout;
    let mut page = page("docs/configuration.md");
    let mut differs = Vec::new();
    for section in reference.split("## `[").skip(1).map(|section| format!("## `[{}\n", section.trim_end())) {
        let heading = section.lines().next().expect("a heading");
        let Some((before, rest)) = page.split_once(&format!("{heading}\n")) else { panic!("no {heading}") };
        let list = rest.find("\n- `").expect("a list");
        let (old, after) = rest.split_at(list + rest[list..].find("\n\n").expect("the end of the list") + 1);
        if format!("{heading}\n{old}") != section {
            differs.push(heading.to_owned());
            page = format!("{before}{section}{after}");
        }
    }
    if std::env::var_os(ACCEPT_VARIABLE).is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
        return fs::write(path, page).expect("the page is written");
    }
    assert!(
        differs.is_empty(),
        "docs/configuration.md does not say of {differs:?} what the code says. \
         To accept it: {ACCEPT_VARIABLE}=1 cargo test -p seatkeeper --test documentation configuration"
    );
}

#[test]
fn the_reference_explains_every_key_that_there_is() {
    let reference = run(&["config", "reference"]).stdout;
    let unset = [
        "key_file",
        "jwks_url",
        "secret",
        "contact_support",
        "sink_url",
        "sink_token",
        "token_file",
        "otlp_endpoint",
        "password_file",
        "sentinel_username",
        "sentinel_password_file",
    ];
    let defaults: toml::Table = run(&["config"]).stdout.parse().expect("TOML");
    let keys = defaults.iter().flat_map(|(name, section)| {
        assert!(reference.contains(&format!("## `[{name}]`")), "no section {name}");
        section.as_table().expect("a section").keys()
    });
    for key in keys.map(String::as_str).chain(unset) {
        let line = reference.lines().find_map(|line| line.strip_prefix(&format!("- `{key}`: ")));
        assert!(line.is_some_and(|line| line.len() > 20), "{key}: {line:?}");
    }
}

/// Nodes without a common key refuse each other's tokens.
#[test]
fn the_nodes_of_the_readme_have_a_common_token_key() {
    let page = page("README.md");
    let nodes = page.split("```").find(|block| block.contains("SEATKEEPER_REGISTRY_URL=")).expect("a block");
    assert!(nodes.contains("SEATKEEPER_AUTH_KEY_FILE="), "{nodes}");
}

#[test]
fn the_settings_that_are_shipped_are_right() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let mut files = vec![deploy.join("seatkeeper.toml")];
    let examples = fs::read_dir(deploy.join("examples")).expect("examples");
    files.extend(examples.map(|entry| entry.expect("an example").path()));
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        let output = run(&["config", "check", "--config", file.to_str().expect("a path in Unicode")]);
        assert!(output.status.success(), "{}: {}{}", file.display(), output.stdout, output.stderr);
    }
}

#[test]
fn the_files_that_the_architecture_names_exist() {
    let page = page("ARCHITECTURE.md");
    let quoted = page.split('`').skip(1).step_by(2);
    let files: Vec<_> = quoted.filter(|text| text.contains('/') && text.ends_with(".rs")).collect();
    assert!(!files.is_empty());
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for file in files {
        let (name, path) = file.split_once('/').unwrap_or_default();
        assert!(crates.join(name).join("src").join(path).is_file(), "{file}");
    }
}

/// Any user of a machine can read the arguments of its processes.
#[test]
fn no_page_puts_a_password_into_arguments() {
    for (name, _) in PAGES {
        for line in page(name).lines() {
            for url in line.split_whitespace().skip_while(|word| !word.starts_with("--")) {
                let login = url.split_once("://").and_then(|(_, rest)| rest.split_once('@'));
                assert!(!login.is_some_and(|(login, _)| login.contains(':')), "{name}: {line}");
            }
        }
    }
}

#[test]
fn the_pages_that_pages_link_to_exist() {
    for (from, folder) in PAGES {
        let page = page(from);
        let links = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.starts_with("http")) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let path = Path::new(folder).join(file);
            let path = if file.is_empty() { Path::new(from) } else { &path };
            assert!(
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).is_file(),
                "{from}: {link}"
            );
            let there = || page_has(&self::page(path.to_str().expect("a path in Unicode")), place);
            assert!(place.is_empty() || there(), "{from} links to {link}");
        }
    }
}

#[test]
fn the_page_on_the_audit_log_explains_every_action_and_every_reason() {
    let page = page("docs/audit.md");
    let actions = Action::ALL.map(Action::as_str);
    let reasons = EndReason::ALL.map(EndReason::as_str);
    for name in actions.into_iter().chain(reasons) {
        let line = page.lines().find(|line| line.starts_with("| ") && line.contains(&format!("`{name}`")));
        assert!(line.is_some(), "{name}");
    }
}

/// Returns true if the page has a heading with the anchor `place`.
fn page_has(page: &str, place: &str) -> bool {
    let headings = page.lines().filter_map(|line| line.strip_prefix('#'));
    let place_of = |heading: &str| {
        let text = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        text.chars().filter(|char| char.is_alphanumeric() || *char == '-').collect::<String>()
    };
    headings.map(place_of).any(|heading| heading == place)
}

/// Builds a shell with the README's tour, pasted as into a terminal, against the test's own server.
fn tour(harness: &Harness) -> Command {
    let blocks = blocks(&page("README.md"), "sh");
    // The tour starts a server in the background, which must not outlive the test.
    let pasted = format!("trap 'kill $!; wait' EXIT\n{}", blocks[2..].concat());
    pasted_into_bash(harness, &pasted)
}

/// Builds a shell that is killed after a timeout, together with its processes.
fn bash() -> Command {
    let mut shell = Command::new("timeout");
    shell.args(["120", "bash"]);
    shell
}

/// Runs a script that starts its own servers in an empty directory, and ends what the script has left running. Returns
/// the output and the log of a script that succeeds.
fn run_alone(script: &str, environment: &[(&str, &str)]) -> (String, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let programs = Path::new(BIN).parent().expect("a directory").display();
    let script = format!("trap 'kill $(jobs -p) 2> /dev/null; wait' EXIT\nPATH={programs}:$PATH\n{script}");
    let mut shell = bash();
    shell.args(["-euc", &script]).envs(environment.iter().copied()).current_dir(directory.path());
    let output = shell.output().expect("bash, curl and openssl");
    let [shown, log] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{shown}{log}");
    (shown, log)
}

/// Builds a shell that runs a page's blocks against the test's own server.
fn pasted_into_bash(harness: &Harness, pasted: &str) -> Command {
    let address = harness.url().trim_start_matches("http://");
    let directory = Path::new(BIN).parent().expect("a directory").to_str().expect("a path in Unicode");
    let script = pasted
        .replace("localhost:8080", address)
        .replace("127.0.0.1:8080", address)
        .replace("$(pidof \"$PWD/target/release/seatkeeper\")", &harness.pid().to_string())
        .replace("$PWD/target/release", directory);
    let mut shell = bash();
    shell
        .args(["-euc", &script])
        .current_dir(harness.data_dir())
        .env("SEATKEEPER_URL", harness.url())
        .env("SEATKEEPER_SERVER_LISTEN", address)
        .env("SEATKEEPER_LEDGER_DATA_DIR", harness.data_dir());
    shell
}

#[test]
fn the_tour_of_the_readme_goes_as_it_says() {
    let mut harness = Harness::open();
    let output = tour(&harness).output().expect("bash and curl");
    let (told, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}{log}");

    let answers: Vec<Value> = told.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of_all = |name: &str| -> Vec<Value> {
        answers.iter().map(|answer| answer[name].clone()).filter(|told| !told.is_null()).collect()
    };
    let (seat, full) = (json!("acquired"), json!(403));
    let licenses =
        [&seat, &seat, &seat, &full, &seat, &seat, &json!("ok"), &json!("resumed"), &full].map(Value::clone);
    let capacities = ["created", "existing", "upgraded"].map(Value::from);
    assert_eq!(of_all("status"), [&licenses[..], &capacities].concat(), "{told}{log}");
    assert_eq!(of_all("outcome"), ["admitted", "admitted", "admitted_with_eviction"], "{told}{log}");
    assert_eq!(answers[5]["session_id"], answers[7]["session_id"], "the seat of before the crash");
    assert!(told.contains("none left its pool above its limit"), "{told}");
    // The tour has killed the server.
    harness.kill();
}

#[test]
fn the_page_on_run_goes_as_it_says() {
    let harness = Harness::open();
    let directory = Path::new(BIN).parent().expect("a directory").display();
    let pasted = format!("PATH={directory}:$PATH\n{}", blocks(&page("docs/run.md"), "sh").concat());
    let output = pasted_into_bash(&harness, &pasted).output().expect("bash");
    let (told, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}{log}");
    let lines: Vec<_> = told.lines().filter(|line| !line.contains("  ")).collect();
    let wanted = [
        "rendering",
        "exit code 7",
        "exit code 137, killed",
        "exit code 127, not found",
        "exit code 75",
        "mine at last",
        "one seat for both",
        "no token needed",
        "exit code 143, terminated",
        "1 ended",
        "exit code 76, revoked",
    ];
    assert_eq!(lines, wanted, "{told}{log}");
}

/// Runs the first block of the page on operations, without its installation steps, and then `rest`, against
/// the test's own stores. Returns the statuses of all answers, and the whole output.
fn three_nodes(redis: &Redis, database: &Database, rest: &str) -> (Vec<Value>, String) {
    let blocks = blocks(&page("docs/operations.md"), "sh");
    let setup = blocks[0].lines().filter(|line| !line.starts_with("sudo ")).collect::<Vec<_>>().join("\n");
    let mut script = format!("{setup}\n{rest}")
        .replace("redis://127.0.0.1", &redis.url())
        .replace("redis-cli", &format!("redis-cli -p {}", redis.port()))
        .replace("postgres://seatkeeper:change-me@127.0.0.1/seatkeeper", &database.url());
    for port in ["8081", "8082", "8083"] {
        script = script.replace(port, &port::free().to_string());
    }
    // Scripts that retry until they succeed send more requests than the rate limit allows.
    let (told, _) = run_alone(&script, &[("SEATKEEPER_LIMITS_LICENSES_ACQUIRES_PER_MINUTE", "0")]);
    assert!(told.contains("none left its pool above its limit"), "{told}");
    let answers = told.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    (answers.map(|answer| answer["status"].clone()).collect(), told)
}

#[test]
fn the_three_nodes_of_the_page_on_operations_go_as_it_says() {
    let (redis, database) = (Redis::start(), postgres::database());
    let blocks = blocks(&page("docs/operations.md"), "sh");
    let (statuses, told) = three_nodes(&redis, &database, &blocks[1..3].concat());
    let (ready, seat, full) = (json!("ok"), json!("acquired"), json!(403));
    let expected = [&ready, &ready, &ready, &seat, &seat, &full, &json!(503), &json!("resumed"), &full];
    assert_eq!(statuses.iter().collect::<Vec<_>>(), expected, "{told}");
}

#[test]
fn the_guide_to_capacities_goes_as_it_says() {
    let harness = Harness::open();
    let guide = page("docs/capacities.md");
    let pasted = format!("PATH=$PWD/target/release:$PATH\n{}", blocks(&guide, "sh").concat());
    let output = pasted_into_bash(&harness, &pasted).output().expect("bash and curl");
    let (told, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}{log}");

    let answers: Vec<Value> = told.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let promised = guide.split("# \"status\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let statuses = answers.iter().filter_map(|answer| answer["status"].as_str());
    let promised: Vec<_> = promised.collect();
    assert_eq!(statuses.collect::<Vec<_>>(), promised, "{told}{log}");
    assert_eq!(promised.len(), 6);
    let found = |answer: &&Value| answer["items"].as_array().is_some_and(|items| items.len() == 1);
    assert_eq!(answers.iter().filter(found).count(), 1, "what the service took is found: {told}{log}");
    assert!(
        told.contains("tier 1") && told.contains(" meter of 4444") && told.contains("user:meter of 4444"),
        "{told}{log}"
    );
    assert!(told.contains("\n1 ended\n"), "{told}{log}");
}

#[test]
fn the_guide_to_devices_goes_as_it_says() {
    let harness = Harness::open();
    let guide = page("docs/devices.md");
    let pasted = format!("PATH=$PWD/target/release:$PATH\n{}", blocks(&guide, "sh").concat());
    let output = pasted_into_bash(&harness, &pasted).output().expect("bash and curl");
    let (told, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}{log}");

    // Answers that the script keeps in a variable also appear in the log.
    let outcomes = |text: &str| -> Vec<String> {
        let answers = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        answers.filter_map(|answer| Some(answer["outcome"].as_str()?.to_owned())).collect()
    };
    assert_eq!(outcomes(&log), ["admitted", "admitted_with_eviction"], "{told}{log}");
    assert_eq!(outcomes(&told), ["refreshed"], "{told}{log}");
    assert_eq!(told.lines().filter(|line| *line == "204").count(), 4, "{told}{log}");
    let heard =
        told.lines().skip_while(|line| *line != "event: evicted").nth(1).expect("the eviction is heard");
    let heard: Value = serde_json::from_str(heard.trim_start_matches("data: ")).expect("JSON");
    assert_eq!(heard["by"]["device_name"], "Ann’s phone");
    assert!(told.contains("\"current\":true"), "{told}{log}");
}
