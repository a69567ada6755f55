//! Slots of the state directory: one instance id for each process, also after a crash.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod process;
mod scripted;

use std::collections::HashSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use seatkeeper_client::{Client, Seat, StateDir};
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::{Uuid, Version};

use process::{NOBODY, Process};
use scripted::{Arrived, Reply, Scripted};

const IN_TIME: Duration = Duration::from_secs(10);
const GRANT: &str = r#"{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":360}"#;

/// A server that grants every seat, and a base for state directories.
struct Fixture {
    server: Scripted,
    scratch: TempDir,
}

impl Fixture {
    async fn new() -> Self {
        Self::with_release_delay(Duration::ZERO).await
    }

    async fn with_release_delay(delay: Duration) -> Self {
        let reply = move |request: &Arrived, _: usize| match request.target.starts_with("POST ") {
            true => Reply::new(201, GRANT),
            false => Reply(204, "", String::new(), delay),
        };
        Self { server: Scripted::start(reply).await, scratch: TempDir::new().unwrap() }
    }

    fn base(&self) -> PathBuf {
        self.scratch.path().join("state")
    }

    fn client(&self, directory: impl Into<StateDir>) -> Client {
        let builder = Client::builder(&self.server.url).token("t").event_streams(false);
        builder.state_dir(directory).build().unwrap()
    }

    async fn acquire(&self) -> Seat {
        acquire(&self.client(self.base())).await
    }

    /// Takes a seat and releases it, and returns the directory of the license.
    async fn directory(&self) -> PathBuf {
        self.acquire().await.release().await.unwrap();
        let entries: Vec<_> = fs::read_dir(self.base()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let [directory] = &entries[..] else { panic!("{entries:?}") };
        directory.clone()
    }

    fn process(&self, seats: u32) -> std::process::Command {
        let mut command = Process::command(&self.server.url, "t", "K", seats);
        command.env("CHILD_STATE_DIR", self.base());
        command
    }

    /// Returns the instance id of each acquire that the server received.
    fn sent(&self) -> Vec<Value> {
        let arrived = self.server.arrived("POST /api/v1/licenses/acquire");
        arrived.iter().map(|request| request.body["instance_id"].clone()).collect()
    }
}

async fn acquire(client: &Client) -> Seat {
    client.license("K").machine("m").per_process().acquire().await.unwrap()
}

fn id(seat: &Seat) -> String {
    assert!(seat.state_dir_error().is_none(), "{:?}", seat.state_dir_error());
    seat.instance_id().unwrap().to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[tokio::test]
async fn child() {
    process::run_as_child().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_has_its_id_again_and_two_processes_have_two() {
    let fixture = Fixture::new().await;
    let start = || Process::start(fixture.process(1));
    let (first, second) = (start(), start());
    let (first_id, second_id) = (first.instances.clone(), second.instances.clone());
    assert_ne!(first_id, second_id);
    first.kill();
    let successor = start();
    assert_eq!(successor.instances, first_id);
    let third = start();
    assert!(third.instances != first_id && third.instances != second_id, "{:?}", third.instances);
    second.kill();
    successor.end();
    let (fourth, fifth) = (start(), start());
    assert_eq!([&fourth.instances, &fifth.instances], [&first_id, &second_id]);
    assert!(third.warnings.is_empty(), "{:?}", third.warnings);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_start_together_share_no_id() {
    let fixture = Fixture::new().await;
    let starting = (0..6).map(|_| {
        let command = fixture.process(5);
        tokio::task::spawn_blocking(|| Process::start(command))
    });
    let (mut ids, mut processes) = (Vec::new(), Vec::new());
    for starting in starting.collect::<Vec<_>>() {
        let process = starting.await.unwrap();
        ids.extend(process.instances.clone());
        processes.push(process);
    }
    assert_eq!((ids.len(), ids.iter().collect::<HashSet<_>>().len()), (30, 30), "{ids:?}");
    drop(processes);
    let again = Process::start(fixture.process(30));
    let (before, after): (HashSet<_>, HashSet<_>) = (ids.iter().collect(), again.instances.iter().collect());
    assert_eq!(before, after, "the same thirty slots");
}

#[tokio::test]
async fn the_files_are_those_of_the_format() {
    let fixture = Fixture::new().await;
    let seat = fixture.acquire().await;
    let name = {
        let text = format!("{}\nK\nm", fixture.server.url);
        let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
        hash.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let directory = fixture.base().join(name);
    let file = directory.join("slot-1.lock");
    let content: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(content, json!({"version": 1, "instance_id": id(&seat)}));
    let uuid = Uuid::try_parse(seat.instance_id().unwrap()).unwrap();
    assert_eq!(uuid.get_version(), Some(Version::Random));
    let modes = [&fixture.base(), &directory, &file].map(|path| mode(path));
    assert_eq!(modes, [0o700, 0o700, 0o600]);
    assert_eq!(fixture.sent(), [json!(id(&seat))]);
}

#[tokio::test]
async fn each_seat_of_a_process_has_a_slot_until_its_release() {
    let fixture = Fixture::new().await;
    let client = fixture.client(fixture.base());
    let (one, two) = (acquire(&client).await, acquire(&client).await);
    let (first, second) = (id(&one), id(&two));
    assert_ne!(first, second);
    one.release().await.unwrap();
    assert_eq!(id(&acquire(&client).await), first);
    // Each license and each machine has a directory, and so a slot 1.
    let other = client.license("L").machine("m").per_process().acquire().await.unwrap();
    let elsewhere = client.license("K").machine("n").per_process().acquire().await.unwrap();
    assert!(![&first, &second].contains(&&id(&other)) && ![&first, &second].contains(&&id(&elsewhere)));
    assert_eq!(fs::read_dir(fixture.base()).unwrap().count(), 3);
}

#[tokio::test]
async fn a_slot_is_locked_until_the_release_is_answered() {
    let fixture = Fixture::with_release_delay(Duration::from_millis(700)).await;
    let client = fixture.client(fixture.base());
    let first = acquire(&client).await;
    let first_id = id(&first);
    drop(first);
    // An acquire of the same client waits for the release.
    let during = fixture.acquire().await;
    assert_ne!(id(&during), first_id, "the release on its way would end the session of this seat");
    let began = Instant::now();
    loop {
        let seat = acquire(&client).await;
        if id(&seat) == first_id {
            break;
        }
        assert!(began.elapsed() < IN_TIME, "the slot is not free after the release");
        seat.release().await.unwrap();
    }
}

#[tokio::test]
async fn bad_contents_are_replaced_and_good_ones_are_kept() {
    const GOOD: &str = "0b9d3a52-6c0f-4f6e-9b0a-3f2a1d7c8e45";
    let fixture = Fixture::new().await;
    let file = fixture.directory().await.join("slot-1.lock");
    let good = format!(r#"{{"version":1,"instance_id":"{GOOD}"}}"#);
    let padded = |length: usize| good.clone() + &" ".repeat(length - good.len());
    for kept in [good.clone(), good.replace('{', r#"{ "later": [1], "#), good.clone() + "\n", padded(4096)] {
        fs::write(&file, &kept).unwrap();
        let seat = fixture.acquire().await;
        assert_eq!((id(&seat).as_str(), fs::read_to_string(&file).unwrap()), (GOOD, kept));
        seat.release().await.unwrap();
    }
    let replaced = [
        String::new(),
        good[..40].to_owned(),
        good.replace(":1", ":2"),
        good.replace(":1", r#":"1""#),
        good.replace(GOOD, &GOOD.to_uppercase()),
        good.replace(GOOD, &GOOD.replace('-', "")),
        good.replace(GOOD, "0198a0aa-0000-7000-8000-000000000001"),
        good.replace(GOOD, ""),
        format!("[{good}]"),
        r#"{"version":1}"#.to_owned(),
        "\0".repeat(64),
        padded(4097),
        "x".repeat(1 << 20),
    ];
    let mut ids = HashSet::from([GOOD.to_owned()]);
    for bad in replaced {
        fs::write(&file, &bad).unwrap();
        let seat = fixture.acquire().await;
        let shown: String = bad.chars().take(80).collect();
        assert!(!bad.contains(&id(&seat)) && ids.insert(id(&seat)), "{shown}");
        let content: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(content, json!({"version": 1, "instance_id": id(&seat)}), "{shown}");
        seat.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_name_that_is_no_file_is_passed_over() {
    let fixture = Fixture::new().await;
    let directory = fixture.directory().await;
    let elsewhere = fixture.scratch.path().join("elsewhere");
    fs::write(&elsewhere, "precious").unwrap();
    fs::remove_file(directory.join("slot-1.lock")).unwrap();
    symlink(&elsewhere, directory.join("slot-1.lock")).unwrap();
    symlink("nowhere", directory.join("slot-2.lock")).unwrap();
    fs::create_dir(directory.join("slot-3.lock")).unwrap();
    let mut pipe = std::process::Command::new("mkfifo");
    assert!(pipe.arg(directory.join("slot-4.lock")).status().unwrap().success());
    let seat = fixture.acquire().await;
    assert!(fs::read_to_string(directory.join("slot-5.lock")).unwrap().contains(&id(&seat)));
    assert_eq!(fs::read_to_string(elsewhere).unwrap(), "precious");
    assert!(!directory.join("nowhere").exists());
}

#[tokio::test]
async fn a_directory_without_a_free_slot_is_a_warning() {
    let fixture = Fixture::new().await;
    let directory = fixture.directory().await;
    fs::remove_file(directory.join("slot-1.lock")).unwrap();
    for number in 1..=4096 {
        fs::create_dir(directory.join(format!("slot-{number}.lock"))).unwrap();
    }
    let seat = fixture.acquire().await;
    assert_eq!(seat.state_dir_error().map(|error| error.code()), Some("no-free-slot"));
    fs::remove_dir(directory.join("slot-4096.lock")).unwrap();
    id(&fixture.acquire().await);
    assert!(directory.join("slot-4096.lock").is_file());
}

/// Acquires with a directory that is refused: the seat is held with a random id, and the reason is told.
async fn assert_refused(fixture: &Fixture, base: &Path, code: &str) {
    let client = fixture.client(base);
    let (one, two) = (acquire(&client).await, acquire(&client).await);
    for seat in [&one, &two] {
        let error = seat.state_dir_error().unwrap();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().starts_with(&format!("{code}: {}", base.display())), "{error}");
        let uuid = Uuid::try_parse(seat.instance_id().unwrap()).unwrap();
        assert_eq!((uuid.get_version(), seat.check()), (Some(Version::Random), Ok(())));
    }
    assert_ne!(one.instance_id(), two.instance_id());
    assert_eq!(fixture.sent().last(), Some(&json!(two.instance_id())));
}

#[tokio::test]
async fn a_directory_that_others_may_change_is_refused() {
    let fixture = Fixture::new().await;
    let directory = fixture.directory().await;
    let base = fixture.base();
    for path in [&base, &directory] {
        for bad in [0o777, 0o1777, 0o770, 0o702] {
            set_mode(path, bad);
            assert_refused(&fixture, &base, "writable-by-others").await;
        }
        set_mode(path, 0o755);
        id(&fixture.acquire().await);
        assert_eq!(mode(path), 0o755, "a mode that passes stays");
        if is_root() {
            chown(path, Some(NOBODY), None).unwrap();
            assert_refused(&fixture, &base, "foreign-owner").await;
            chown(path, Some(0), None).unwrap();
        }
    }
    id(&fixture.acquire().await);
}

#[tokio::test]
async fn a_link_or_a_file_in_the_place_of_a_directory_is_refused() {
    let fixture = Fixture::new().await;
    let directory = fixture.directory().await;
    let scratch = fixture.scratch.path();
    let (base, link, file) = (fixture.base(), scratch.join("link"), scratch.join("file"));
    symlink(&base, &link).unwrap();
    fs::write(&file, "").unwrap();
    assert_refused(&fixture, &link, "not-a-directory").await;
    assert_refused(&fixture, &file, "not-a-directory").await;
    assert_refused(&fixture, &file.join("below"), "unusable").await;
    assert_refused(&fixture, Path::new("/proc/nothing"), "unusable").await;
    let moved = scratch.join("moved");
    fs::rename(&directory, &moved).unwrap();
    symlink(&moved, &directory).unwrap();
    assert_refused(&fixture, &base, "not-a-directory").await;
    fs::remove_file(&directory).unwrap();
    fs::write(&directory, "").unwrap();
    assert_refused(&fixture, &base, "not-a-directory").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_and_directories_without_rights_are_passed_over_or_refused() {
    let fixture = Fixture::new().await;
    let directory = fixture.directory().await;
    // The rights of root have no end: root lets another user take the seats.
    let run = || {
        let mut command = fixture.process(1);
        if is_root() {
            command.uid(NOBODY).gid(NOBODY).current_dir("/");
        }
        Process::start(command)
    };
    let unreadable = directory.join("slot-1.lock");
    if is_root() {
        set_mode(fixture.scratch.path(), 0o755);
        for path in [&fixture.base(), &directory, &unreadable] {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    set_mode(&unreadable, 0o000);
    let process = run();
    let second = fs::read_to_string(directory.join("slot-2.lock")).unwrap();
    assert!(process.warnings.is_empty() && second.contains(&process.instances[0]), "{:?}", process.warnings);
    drop(process);
    fs::remove_file(directory.join("slot-2.lock")).unwrap();
    set_mode(&directory, 0o500);
    let warning = run().warnings.join(" ");
    let wanted = format!("unusable: {}: Permission denied", directory.display());
    assert!(warning.starts_with(&wanted), "{warning}");
    set_mode(&directory, 0o700);
    fs::rename(&directory, fixture.scratch.path().join("moved")).unwrap();
    set_mode(&fixture.base(), 0o500);
    let warning = run().warnings.join(" ");
    assert!(warning.starts_with("unusable: ") && warning.contains("Permission denied"), "{warning}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_default_directory_is_the_one_of_the_environment() {
    let fixture = Fixture::new().await;
    let start = |variables: &[(&str, &Path)]| {
        let mut command = fixture.process(1);
        command.env_remove("CHILD_STATE_DIR").env_remove("XDG_STATE_HOME").env_remove("HOME");
        Process::start({
            command.envs(variables.iter().copied());
            command
        })
    };
    let scratch = fixture.scratch.path();
    let nowhere = start(&[]);
    assert_eq!(nowhere.warnings, ["no-home: neither XDG_STATE_HOME nor HOME is an absolute path"]);
    start(&[("HOME", scratch)]);
    assert!(scratch.join(".local/state/seatkeeper").is_dir());
    start(&[("HOME", Path::new("/proc")), ("XDG_STATE_HOME", scratch)]);
    assert!(scratch.join("seatkeeper").is_dir());
}

#[tokio::test]
async fn slots_are_for_programs_that_want_them() {
    let fixture = Fixture::new().await;
    let client = fixture.client(fixture.base());
    let plain = client.license("K").machine("m").acquire().await.unwrap();
    assert_eq!((plain.instance_id(), fixture.sent()), (None, vec![Value::Null]));
    let named = client.license("K").machine("m").per_process().instance("p1").acquire().await.unwrap();
    assert_eq!((named.instance_id(), fixture.sent().last()), (Some("p1"), Some(&json!("p1"))));
    let off = fixture.client(StateDir::None);
    let (one, two) = (acquire(&off).await, acquire(&off).await);
    assert_ne!(id(&one), id(&two));
    assert!(!fixture.base().exists());
}

#[tokio::test]
async fn a_seat_acquired_again_keeps_its_id() {
    let reply = |request: &Arrived, earlier: usize| match request.target.split(' ').next() {
        Some("POST") => Reply::new(201, GRANT.replace('}', r#","heartbeat_interval_seconds":1}"#)),
        Some("PATCH") if earlier == 0 => {
            Reply::new(410, r#"{"type":"/problems/session-ended","title":"over","reason":"expired"}"#)
        }
        _ => Reply::new(204, ""),
    };
    let fixture = Fixture { server: Scripted::start(reply).await, scratch: TempDir::new().unwrap() };
    let seat = fixture.acquire().await;
    let began = Instant::now();
    while fixture.sent().len() < 2 {
        assert!(began.elapsed() < IN_TIME);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(fixture.sent(), [json!(id(&seat)), json!(id(&seat))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_denied_program_asks_again_by_the_same_name() {
    let full = r#"{"type":"/problems/license-full","title":"full"}"#;
    let server = Scripted::start(move |_, _| Reply::new(403, full)).await;
    let fixture = Fixture { server, scratch: TempDir::new().unwrap() };
    let client = fixture.client(fixture.base());
    for _ in 0..100 {
        client.license("K").machine("m").per_process().acquire().await.unwrap_err();
    }
    let names: HashSet<String> = fixture.sent().iter().map(ToString::to_string).collect();
    assert_eq!((names.len(), fixture.sent().len()), (1, 100), "{names:?}");
}

#[cfg(feature = "blocking")]
#[test]
fn a_blocking_client_has_slots_as_well() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let fixture = runtime.block_on(Fixture::new());
    let builder = seatkeeper_client::blocking::Client::builder(&fixture.server.url).token("t");
    let client = builder.event_streams(false).state_dir(fixture.base()).build().unwrap();
    let take = || client.license("K").machine("m").per_process().acquire().unwrap();
    let (one, two) = (take(), take());
    assert!(one.state_dir_error().is_none() && one.instance_id() != two.instance_id());
    let first = one.instance_id().map(str::to_owned);
    one.release().unwrap();
    assert_eq!(take().instance_id(), first.as_deref());
    client.close().unwrap();
    assert_eq!(id(&runtime.block_on(fixture.acquire())), first.unwrap());
}
