//! C and C++ programs against a real server: with `SDK_TEST_SERVER` set to the path of the server's binary.
//!
//! `SDK_TEST_C_CYCLES` is the number of cycles of `seat.c`, and `SDK_TEST_C_FLAGS` compiles against an installed library.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]
#![cfg(target_os = "linux")]

mod build;
#[path = "../../client/tests/server/mod.rs"]
mod server;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use build::{compile, output};
use server::Server;

/// Starts a server with the licenses of the programs.
fn start() -> Server {
    // The programs acquire more often than a person.
    let server = Server::start_with(&[("SEATKEEPER_LIMITS_LICENSES_ACQUIRES_PER_MINUTE", "0")]);
    let license = ["license", "create", "--ttl-seconds", "600", "--key"];
    server.run(&[&license[..], &["ONE", "--seats", "1", "--clients", "key"]].concat());
    server.run(&[&license[..], &["MANY", "--seats", "50"]].concat());
    server
}

/// Prepares the run of a program with the environment of `seat.c`.
fn program(server: &Server, path: &Path) -> Command {
    let mut command = build::program(path);
    command.env("SEATS_URL", &server.url).env("SEATS_TOKEN", server.token("ann", "1h"));
    command.env("SEATS_REVOKE", server.command_line(&["sessions", "revoke"]));
    command.env("SEATS_MACHINE", "workstation-7");
    command.env("SEATS_CYCLES", std::env::var("SDK_TEST_C_CYCLES").unwrap_or_else(|_| "1000".to_owned()));
    command
}

#[test]
fn a_c_program_holds_loses_and_releases_seats() {
    let server = start();
    let seat = compile("tests/c/seat.c", &[]);
    let said = output(&mut program(&server, &seat), "nothing");
    println!("{said}");
    assert_eq!(said.matches("ok ").count(), 14, "{said}");
}

#[test]
fn the_address_sanitizer_finds_nothing() {
    let server = start();
    let seat = compile("tests/c/seat.c", &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
    let mut run = program(&server, &seat);
    // The sanitizer keeps freed memory in quarantine.
    run.env("SEATS_CYCLES", "100").env("SEATS_MEMORY_UNBOUNDED", "1");
    let said = output(run.env("ASAN_OPTIONS", "detect_leaks=1:detect_stack_use_after_return=1"), "nothing");
    assert_eq!(said.matches("ok ").count(), 13, "all but the test that forks: {said}");
}

/// Vendors search their own programs for faults with Valgrind.
#[test]
fn valgrind_finds_nothing() {
    let server = start();
    let seat = compile("tests/c/seat.c", &[]);
    let mut run = program(&server, Path::new("valgrind"));
    // The last argument selects tests: a further test has a fault on purpose.
    run.args(["--quiet", "--error-exitcode=99"]).arg(&seat).arg("seat");
    let said = output(&mut run, "valgrind");
    assert_eq!(said.matches("ok ").count(), 5, "{said}");
}

/// Prepares a run of `per_process.c` under a license that counts processes, with a folder for state directories.
fn processes(server: &Server, path: &Path, license: &str, state: &Path) -> Command {
    let mut command = program(server, path);
    command.env("SEATS_KEY", license).env("SEATS_STATE", state);
    command
}

#[test]
fn a_process_is_named_by_a_slot_of_the_state_directory() {
    let server = start();
    // The sanitized program leaves out the test that forks.
    for (extra, tests) in
        [(&[][..], 4), (&["-fsanitize=address,undefined", "-fno-sanitize-recover=all"][..], 3)]
    {
        let license = format!("PROCESSES-{tests}");
        let create = ["license", "create", "--count-per", "process", "--seats", "50", "--key"];
        server.run(&[&create[..], &[&license]].concat());
        let state = tempfile::TempDir::new().unwrap();
        let path = compile("tests/c/per_process.c", extra);
        let said = output(&mut processes(&server, &path, &license, state.path()), "nothing");
        assert_eq!(said.matches("ok ").count(), tests, "{said}");
    }
}

#[test]
fn a_killed_process_has_its_seat_again() {
    let server = start();
    let create = ["license", "create", "--count-per", "process", "--seats", "1", "--ttl-seconds", "600"];
    server.run(&[&create[..], &["--key", "PROCESS"]].concat());
    let state = tempfile::TempDir::new().unwrap();
    let path = compile("tests/c/per_process.c", &[]);
    let start = || {
        let mut run = processes(&server, &path, "PROCESS", state.path());
        let mut holding = run.arg("hold").stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(holding.stdout.take().unwrap()).read_line(&mut said).unwrap();
        (holding, said.trim_end().to_owned())
    };
    let (mut holding, instance) = start();
    assert_eq!(instance.len(), 36, "{instance}");
    let (mut second, said) = start();
    assert_eq!((said.as_str(), second.wait().unwrap().code()), ("license-full", Some(1)));
    for _ in 0..3 {
        holding.kill().unwrap();
        holding.wait().unwrap();
        let (next, said) = start();
        holding = next;
        assert_eq!(said, instance);
    }
    let admitted = server.run(&["audit", "list", "--json", "--action", "admitted"]);
    assert_eq!(admitted.matches("\"action\"").count(), 1, "one seat for all processes: {admitted}");
    assert!(admitted.contains(&instance), "{admitted}");
    holding.kill().unwrap();
    holding.wait().unwrap();
}

/// Makes a certificate of 127.0.0.1 that vouches for itself, and returns the files of the certificate and the key.
fn certificate(folder: &Path, name: &str) -> [String; 2] {
    let [pem, key] =
        ["pem", "key"].map(|end| folder.join(name).with_extension(end).to_str().unwrap().to_owned());
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]);
    openssl.args(["-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]);
    // An authority may not be the certificate of a server.
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", &key, "-out", &pem]);
    output(&mut openssl, "openssl");
    [pem, key]
}

#[test]
fn a_certificate_of_an_unknown_authority_is_named() {
    let folder = tempfile::TempDir::new().unwrap();
    let [pem, key] = certificate(folder.path(), "server");
    let [other, _] = certificate(folder.path(), "other");
    let none = folder.path().join("none.pem");
    std::fs::write(&none, "no certificate").unwrap();
    let files = [("SEATKEEPER_SERVER_TLS_CERT_FILE", &*pem), ("SEATKEEPER_SERVER_TLS_KEY_FILE", &*key)];
    let server = Server::start_with(&files);
    let untrusted = compile("tests/c/untrusted.c", &[]);
    let mut run = build::program(&untrusted);
    run.env("SEATS_URL", &server.url).env("SEATS_CA", &pem).env("SEATS_OTHER_CA", other);
    assert_eq!(output(run.env("SEATS_NO_CA", none), "nothing"), "ok\n");
}

#[test]
fn a_plain_connection_needs_no_certificate_authority() {
    let mut run = build::program(&compile("tests/c/plain.c", &[]));
    run.env("SSL_CERT_FILE", "/nonexistent").env("SSL_CERT_DIR", "/nonexistent");
    assert_eq!(output(&mut run, "nothing"), "ok\n");
}

/// Prepares a run of `no_thread.c` or `exit.c`, which name the process by a slot of the state directory.
fn with_a_slot(server: &Server, source: &str, state: &Path) -> Command {
    let create = ["license", "create", "--count-per", "process", "--seats", "50", "--key", "PROCESSES"];
    server.run(&create);
    let mut run = processes(server, &compile(source, &[]), "PROCESSES", state);
    let token = state.join("token");
    std::fs::write(&token, server.token("ann", "1h")).unwrap();
    run.env("SEATS_TOKEN_FILE", token);
    run
}

#[test]
fn without_room_for_a_thread_a_call_fails_in_time() {
    let server = start();
    let state = tempfile::TempDir::new().unwrap();
    let mut run = with_a_slot(&server, "tests/c/no_thread.c", state.path());
    assert_eq!(output(&mut run, "nothing"), "ok\n");
    // The look-up of a name runs on a thread as well.
    let by_name = server.url.replace("127.0.0.1", "localhost");
    assert_eq!(output(run.env("SEATS_URL", by_name), "nothing"), "ok\n");
}

#[test]
fn a_client_whose_thread_has_ended_answers_each_call_at_once() {
    let server = start();
    let ended = compile("tests/c/ended.c", &[]);
    assert_eq!(output(&mut program(&server, &ended), "nothing"), "ok\n");
}

#[test]
fn calls_at_the_end_of_a_thread_and_of_the_program_are_answered() {
    let server = start();
    let state = tempfile::TempDir::new().unwrap();
    let mut run = with_a_slot(&server, "tests/c/exit.c", state.path());
    assert_eq!(output(&mut run, "nothing"), "ok\n");
}

#[test]
fn a_cpp_program_owns_seats_by_scopes() {
    let server = start();
    let wrapper = compile("tests/c/wrapper.cpp", &[]);
    assert_eq!(output(&mut program(&server, &wrapper), "nothing"), "ok\n");
    let wrapper =
        compile("tests/c/wrapper.cpp", &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
    assert_eq!(output(&mut program(&server, &wrapper), "nothing"), "ok\n");
}

#[test]
fn the_example_of_the_page_holds_a_seat() {
    let server = start();
    server.run(&["license", "create", "--key", "TOUR-2030", "--seats", "1", "--clients", "key"]);
    let hold = compile("examples/c/hold.c", &[]);
    let said = output(&mut program(&server, &hold), "nothing");
    assert_eq!(said, "the seat is held\nstep 1\nstep 2\nstep 3\nthe seat is given back\n");
    let live = server.run(&["sessions", "list", "--live", "--json"]);
    assert!(!live.contains("workstation-7"), "{live}");
}

#[test]
fn a_lost_seat_asks_to_save_the_work() {
    let server = start();
    let save_work = compile("examples/c/save_work.c", &[]);
    let file = save_work.with_extension("txt");
    let mut run = program(&server, &save_work);
    run.arg(&file).env("SEATS_KEY", "ONE").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut editor = run.spawn().unwrap();
    let mut keyboard = editor.stdin.take().unwrap();
    let mut screen = BufReader::new(editor.stdout.take().unwrap());
    keyboard.write_all(b"a bridge\n").unwrap();
    let live = server.wait_for_live("workstation-7");
    let session = live.split("\"session_id\":").nth(1).and_then(|rest| rest.split('"').nth(1)).unwrap();
    // The event stream opens after the acquire.
    std::thread::sleep(std::time::Duration::from_millis(500));
    server.run(&["sessions", "revoke", session]);
    let mut said = String::new();
    while !said.contains("The seat is lost: revoked.\n") {
        assert!(screen.read_line(&mut said).unwrap() > 0, "{said}");
    }
    keyboard.write_all(b"y\n").unwrap();
    std::io::Read::read_to_string(&mut screen, &mut said).unwrap();
    assert!(editor.wait().unwrap().success() && said.contains("Save your work?"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "a bridge\n");
}

#[test]
fn a_check_is_measured() {
    let server = start();
    let speed = compile("tests/c/speed.c", &["-O2"]);
    println!("{}", output(&mut program(&server, &speed), "nothing"));
}
