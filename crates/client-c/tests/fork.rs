//! The blocking Rust client after a fork. The test is here because a fork needs `unsafe`.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]
#![cfg(target_os = "linux")]

#[path = "../../client/tests/scripted/mod.rs"]
mod scripted;

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use scripted::{Reply, Scripted};
use seatkeeper_client::blocking::{Client, NoChange};
use seatkeeper_client::{DeviceType, Error};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const GRANT: &str = r#"{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":360}"#;
const IN_TIME: Duration = Duration::from_secs(20);

/// Runs `child` in a forked child, which must end in time and without a panic.
fn fork(child: impl FnOnce()) {
    // SAFETY: the child runs Rust code of this test alone, takes no lock that another thread of the parent may hold at the
    // fork (the allocator of glibc is usable after a fork), and leaves by `_exit` without unwinding into the parent's test.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "no fork");
    if pid == 0 {
        let is_good = catch_unwind(AssertUnwindSafe(child)).is_ok();
        // SAFETY: ends the child, which runs no destructors of the parent.
        unsafe { libc::_exit(i32::from(!is_good)) };
    }
    let (began, mut status) = (Instant::now(), 0);
    loop {
        // SAFETY: `status` is a local, and `pid` a child of this process.
        let ended = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if ended == pid {
            break;
        }
        if began.elapsed() > IN_TIME {
            // SAFETY: ends a child of this process.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(status, 0, "the child failed");
}

#[test]
fn a_forked_child_touches_nothing_of_its_parent() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(Scripted::start(|request, _| match request.target.starts_with("POST ") {
        true => Reply::new(201, GRANT),
        false => Reply::new(204, ""),
    }));
    let state = TempDir::new().unwrap();
    let build = || {
        let builder = Client::builder(&server.url).token("t").event_streams(false);
        builder.state_dir(state.path().join("s")).build().unwrap()
    };
    let client = build();
    let acquire = |client: &Client| client.license("K").machine("m").per_process().acquire().unwrap();
    let (seat, other) = (acquire(&client), acquire(&client));
    let mut changes = seat.changes();
    let parents = [&seat, &other].map(|seat| seat.instance_id().unwrap().to_owned());
    let not_owner = |error: Error| assert!(matches!(&error, Error::NotOwner), "{error:?}");
    fork(|| {
        not_owner(client.license("K").machine("m").acquire().unwrap_err());
        not_owner(client.device("d", DeviceType::Tv).admit().unwrap_err());
        not_owner(seat.release_within(Duration::from_secs(5)).unwrap_err());
        not_owner(client.close().unwrap_err());
        not_owner(client.close_within(Duration::from_secs(5)).unwrap_err());
        assert_eq!(changes.next_within(Duration::from_secs(60)), Err(NoChange::Over));
        assert_eq!(changes.next(), None);
        not_owner(seat.on_change(|_| panic!("a listener in the child")).unwrap_err());
        let own = build();
        let mine = acquire(&own);
        assert!(!parents.contains(&mine.instance_id().unwrap().to_owned()), "a slot of the parent");
        mine.release().unwrap();
    });
    let children_requests = server.arrived("").len();
    assert_eq!(children_requests, 4, "two acquires of the parent, an acquire and a release of the child");
    assert_eq!((seat.check(), other.check()), (Ok(()), Ok(())));
    let began = Instant::now();
    // The closure owns the handles: both processes drop copies.
    let (moved, kept) = (client.clone(), client);
    fork(move || {
        not_owner(other.release().unwrap_err());
        drop(moved);
    });
    assert!(began.elapsed() < Duration::from_secs(2), "a drop in the child waits for no thread");
    seat.release().unwrap();
    assert_eq!(acquire(&kept).instance_id(), Some(parents[0].as_str()));
}

#[test]
fn a_child_that_drops_the_runtime_of_its_parent_unlocks_no_slot() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(Scripted::start(|_, _| Reply::new(201, GRANT)));
    let state = TempDir::new().unwrap();
    let local = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let take = async || {
        let builder = seatkeeper_client::Client::builder(&server.url).token("t").event_streams(false);
        let client = builder.state_dir(state.path().join("s")).build().unwrap();
        client.license("K").machine("m").per_process().acquire().await.unwrap()
    };
    let seat = local.block_on(take());
    let (local, seat) = (ManuallyDrop::new(local), ManuallyDrop::new(seat));
    fork(|| {
        // SAFETY: the child has a copy of the memory, and leaves by `_exit`, so the value is dropped once.
        drop(unsafe { std::ptr::read(&raw const *seat) });
        // SAFETY: as for the seat.
        unsafe { std::ptr::read(&raw const *local) }.shutdown_background();
    });
    let other = local.block_on(take());
    assert_ne!(other.instance_id(), seat.instance_id(), "the child has unlocked the slot of its parent");
    drop((ManuallyDrop::into_inner(seat), ManuallyDrop::into_inner(local)));
}
