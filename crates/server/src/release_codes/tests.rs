//! Tests of release codes: a code counts for one session of one holder, by either of the two keys.

use seatkeeper_core::{Bucket, Region, RegistryTime};

use super::*;

fn key(generation: u64, age_seconds: u64) -> ReleaseKey {
    ReleaseKey { generation, secret: [generation as u8; 32], age: Span::from_secs(age_seconds) }
}

fn session(number: u64) -> SessionId {
    SessionId::mint(RegistryTime::from_millis(1), Bucket::all().next().unwrap(), Region::default(), number)
}

fn holder(tenant: &str, user: &str) -> CodeHolder {
    CodeHolder { tenant: TenantId::from(tenant), user: UserId::from(user) }
}

async fn codes(keys: &[ReleaseKey]) -> (tempfile::TempDir, ReleaseCodes) {
    let place = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(seatkeeper_ledger::Settings::new(place.path())).await.unwrap();
    (place, ReleaseCodes { ledger, keys: RwLock::new(Keys::new(keys).unwrap()) })
}

#[tokio::test]
async fn a_code_names_its_holder_and_fits_no_other_session_kind_tenant_or_user() {
    let (_place, codes) = codes(&[key(1, 0)]).await;
    let ann = holder("acme", "änn:1");
    let code = codes.sign((PoolKind::License, session(1)), &ann);
    assert_eq!(codes.check((PoolKind::License, session(1)), &code), Some(ann));
    assert_eq!(codes.check((PoolKind::License, session(2)), &code), None);
    assert_eq!(codes.check((PoolKind::Subscriber, session(1)), &code), None);
    for wrong in [
        code.replace("acme", "acmf"),
        code.replace("änn", "ann"),
        code.replace(":4:", ":5:"),
        code.replacen(&code[..1], if code.starts_with('0') { "1" } else { "0" }, 1),
        code[1..].to_owned(),
        code[2..].to_owned(),
    ] {
        assert_eq!(codes.check((PoolKind::License, session(1)), &wrong), None, "{wrong}");
    }
}

#[tokio::test]
async fn nonsense_is_no_code() {
    let (_place, codes) = codes(&[key(1, 0)]).await;
    let zeros = "0".repeat(32);
    for code in [
        "",
        ":",
        "::",
        "x:1:ab",
        &zeros,
        &format!("{zeros}:"),
        &format!("{zeros}:9:ab"),
        &format!("{zeros}:1:äb"),
    ] {
        assert_eq!(codes.check((PoolKind::License, session(1)), code), None, "{code}");
    }
}

#[tokio::test]
async fn a_code_outlives_a_rotation_and_a_young_key_does_not_sign() {
    let (ann, seat) = (holder("acme", "ann"), (PoolKind::License, session(1)));
    let (_place, before) = codes(&[key(1, 9_000_000)]).await;
    let (_place, young) = codes(&[key(2, 3_599), key(1, 9_000_000)]).await;
    let (_place, after) = codes(&[key(2, 3_600), key(1, 9_000_000)]).await;
    let (_place, later) = codes(&[key(3, 3_600), key(2, 9_000_000)]).await;
    let old = before.sign(seat, &ann);
    assert_eq!(young.sign(seat, &ann), old);
    assert_eq!(after.check(seat, &old), Some(ann.clone()));
    let new = after.sign(seat, &ann);
    assert_ne!(new, old);
    assert_eq!(young.check(seat, &new), Some(ann.clone()));
    assert_eq!(before.check(seat, &new), None);
    assert_eq!(later.check(seat, &new), Some(ann));
    assert_eq!(later.check(seat, &old), None);
}
