//! Precedence of the sources, and errors that name the source.

use std::error::Error as _;
use std::fs;
use std::path::PathBuf;

use super::*;

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seatkeeper.toml");
    fs::write(&path, text).unwrap();
    (dir, path)
}

fn variable(name: &str, value: &str) -> Sources {
    Sources { variables: vec![(name.into(), value.into())], ..Sources::default() }
}

fn listen(value: &str) -> Flag {
    Flag { name: "--listen", key: "server.listen", value: value.into() }
}

/// Returns the error and all its causes, as the command prints them.
fn story(sources: &Sources) -> String {
    let error = load(sources).unwrap_err();
    let mut story = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        story = format!("{story}: {next}");
        cause = next.source();
    }
    story
}

#[test]
fn without_any_source_all_is_as_by_default() {
    let settings = load(&Sources::default()).unwrap();
    assert_eq!(settings.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(settings.licenses.ttl_seconds, 360);
}

#[test]
fn a_variable_beats_the_file_and_a_flag_beats_both() {
    let (_dir, path) =
        file("[server]\nlisten = '127.0.0.1:1'\nrequest_timeout_seconds = 7\n[licenses]\nttl_seconds = 11\n");
    let mut sources = variable("SEATKEEPER_SERVER_LISTEN", "127.0.0.1:2");
    sources.file = Some(path);
    assert_eq!(load(&sources).unwrap().server.listen.port(), 2);

    sources.flags.push(listen("127.0.0.1:3"));
    let settings = load(&sources).unwrap();
    assert_eq!(settings.server.listen.port(), 3);
    assert_eq!(settings.server.request_timeout_seconds, 7);
    assert_eq!(settings.licenses.ttl_seconds, 11);
}

#[test]
fn a_variable_may_be_a_number_a_switch_or_a_text_with_underscores_in_its_name() {
    let sources = Sources {
        variables: vec![
            ("SEATKEEPER_LEDGER_RETENTION_DAYS".into(), "30".into()),
            ("SEATKEEPER_LICENSES_SHOW_HOLDERS".into(), "false".into()),
            ("SEATKEEPER_LEDGER_DATA_DIR".into(), "/var/lib/seatkeeper".into()),
            ("SEATKEEPER_AUTH_ALGORITHM".into(), "HS256".into()),
            ("SEATKEEPER_AUTH_SECRET".into(), "12345678901234567890123456789012".into()),
        ],
        ..Sources::default()
    };
    let settings = load(&sources).unwrap();
    assert_eq!(settings.ledger.retention_days, 30);
    assert!(!settings.licenses.show_holders);
    assert_eq!(settings.ledger.data_dir, PathBuf::from("/var/lib/seatkeeper"));
    assert_eq!(settings.auth.secret.unwrap().reveal(), "12345678901234567890123456789012");
}

#[test]
fn other_variables_are_left_alone() {
    for name in [
        "PATH",
        "SEATKEEPERS_SERVER",
        "seatkeeper_server_listen",
        VARIABLE_URL,
        VARIABLE_CA_FILE,
        VARIABLE_TOKEN,
    ] {
        assert!(load(&variable(name, "x")).is_ok(), "{name}");
    }
}

#[test]
fn an_unknown_key_of_the_file_is_named() {
    let (_dir, path) = file("[server]\nlisen = '127.0.0.1:1'\n");
    let story = story(&Sources { file: Some(path.clone()), ..Sources::default() });
    assert!(story.contains("lisen") && story.contains(path.to_str().unwrap()), "{story}");
    assert!(story.contains("`listen`"), "it says what there is: {story}");
}

#[test]
fn an_unknown_section_of_the_file_is_named() {
    let (_dir, path) = file("[sever]\nlisten = '127.0.0.1:1'\n");
    let story = story(&Sources { file: Some(path), ..Sources::default() });
    assert!(story.contains("`sever`") && story.contains("`server`"), "{story}");
}

#[test]
fn an_unknown_variable_is_named() {
    for name in ["SEATKEEPER_SERVER_LISEN", "SEATKEEPER_LISTEN", "SEATKEEPER_", "SEATKEEPER_SERVER"] {
        let story = story(&variable(name, "127.0.0.1:1"));
        assert!(story.contains(&format!("the variable {name} ")), "{story}");
    }
}

#[test]
fn variables_of_a_kubernetes_service_are_passed_over_and_told() {
    let variables = [
        ("SEATKEEPER_SERVICE_HOST", "10.0.171.239"),
        ("SEATKEEPER_PORT", "tcp://10.0.171.239:8080"),
        ("SEATKEEPER_SERVER_LISTEN", "127.0.0.1:2"),
        ("PATH_SERVICE_HOST", "10.0.171.240"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let sources = Sources { variables, ..Sources::default() };
    assert_eq!(load(&sources).unwrap().server.listen.port(), 2);
    let told: Vec<_> = sources.service_variables().collect();
    assert_eq!(told, ["SEATKEEPER_SERVICE_HOST", "SEATKEEPER_PORT"]);
}

#[test]
fn a_key_of_a_file_is_no_variable_of_kubernetes() {
    let (_dir, path) = file("port = 'tcp://10.0.171.239:8080'\n");
    let story = story(&Sources { file: Some(path), ..Sources::default() });
    assert!(story.contains("`port`"), "{story}");
}

#[test]
fn a_wrong_value_says_where_it_is_what_it_got_and_what_it_wants() {
    let of_variable = story(&variable("SEATKEEPER_LEDGER_RETENTION_DAYS", "soon"));
    for part in ["SEATKEEPER_LEDGER_RETENTION_DAYS", "soon", "integer", "ledger.retention_days"] {
        assert!(of_variable.contains(part), "{part}: {of_variable}");
    }
    let of_flag = story(&Sources { flags: vec![listen("localhost")], ..Sources::default() });
    for part in ["--listen", "server.listen", "socket address"] {
        assert!(of_flag.contains(part), "{part}: {of_flag}");
    }
    let (_dir, path) = file("[licenses]\nttl_seconds = 1\n");
    let of_file = story(&Sources { file: Some(path), ..Sources::default() });
    for part in ["licenses.ttl_seconds = 1", "want 2 to"] {
        assert!(of_file.contains(part), "{part}: {of_file}");
    }
}

#[test]
fn a_file_that_is_missing_or_no_toml_is_named() {
    let (_dir, path) = file("[server\n");
    let sources = Sources { file: Some(path.clone()), ..Sources::default() };
    assert!(story(&sources).contains(path.to_str().unwrap()), "{}", story(&sources));
    fs::remove_file(&path).unwrap();
    assert!(story(&sources).contains("cannot read"), "{}", story(&sources));
}

#[test]
fn an_origin_with_a_path_is_refused_at_the_start() {
    let fine =
        load(&variable("SEATKEEPER_SERVER_CORS_ORIGINS", "https://app.example.com,http://localhost:5173"));
    assert!(fine.unwrap().server.cors_origins.allow("http://localhost:5173"));
    let (_dir, path) = file("[server]\ncors_origins = ['https://app.example.com/']\n");
    for sources in [
        variable("SEATKEEPER_SERVER_CORS_ORIGINS", "https://app.example.com/"),
        Sources { file: Some(path), ..Sources::default() },
    ] {
        let story = story(&sources);
        assert!(story.contains("`https://app.example.com/` is no origin"), "{story}");
        assert!(story.contains("want `*`, or scheme://host[:port] without a path"), "{story}");
    }
}
