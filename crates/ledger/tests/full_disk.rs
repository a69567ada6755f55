//! A ledger on a full disk refuses writes, and recovers once space is free. The test has a process of its
//! own, because the file size limit applies to the whole process.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use seatkeeper_core::{Actor, Origin, RegistryTime, Seats, TenantId, UserId};
use seatkeeper_ledger::licenses::{Clients, CountPer, LicenseKey, NewLicense, Reacquire, Status};
use seatkeeper_ledger::{Error, Ledger, Settings, Write};
use tokio::signal::unix::{SignalKind, signal};

/// The signal for a write beyond the process's file size limit. Without a handler the signal kills the
/// process.
const SIGXFSZ: i32 = 25;

#[tokio::test]
async fn a_ledger_on_a_full_disk_refuses_writes_and_goes_on_when_there_is_room_again() {
    let _heard = signal(SignalKind::from_raw(SIGXFSZ)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    create(&ledger, 0).await.unwrap();

    limit_files_to(Some(largest_file(dir.path())));
    let mut refused = 0;
    for number in 1..=20 {
        match create(&ledger, number).await {
            Ok(()) => {}
            Err(Error::Unavailable(_)) => refused += 1,
            Err(error) => panic!("a full disk is no fault of the program: {error:?}"),
        }
    }
    assert!(refused > 0, "the disk was never full");

    limit_files_to(None);
    create(&ledger, 21).await.expect("there is room again");
    let kept = ledger.list_licenses(&TenantId::from("acme"), None, None, 100).await.unwrap();
    assert_eq!(kept.items.len(), 22 - refused, "what was refused is not there, what was not refused is");
}

async fn create(ledger: &Ledger, number: usize) -> Result<(), Error> {
    let license = NewLicense {
        tenant: TenantId::from("acme"),
        key: LicenseKey::new(format!("KEY-{number}-{}", "x".repeat(200))),
        max_seats: Seats(1),
        status: Status::Active,
        expires_at: None,
        count_per: CountPer::Machine,
        clients: Clients::default(),
        ttl_seconds: None,
        grace_seconds: 0,
        reacquire: Reacquire::default(),
        contact: None,
    };
    let origin = Origin { actor: Actor::Admin(UserId::from("joe")), request: None };
    let at = RegistryTime::from_millis(1_800_000_000_000);
    ledger
        .create_license(
            license,
            Write { origin: &origin, at, idempotency: None, home: None, expected_version: None },
        )
        .await
        .map(|_| ())
}

fn largest_file(dir: &Path) -> u64 {
    std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).max().unwrap()
}

fn limit_files_to(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}
