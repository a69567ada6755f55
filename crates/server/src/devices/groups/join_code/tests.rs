//! Tests of join codes: a code counts for one group within its scope until its expiry.

use seatkeeper_core::{Bucket, Region, RegistryTime, TenantId, UserId};
use seatkeeper_ledger::{Ledger, Settings};

use super::*;
use crate::auth::Scopes;

fn caller(tenant: &str, user: &str) -> Caller {
    let (tenant, user) = (TenantId::from(tenant), UserId::from(user));
    Caller { tenant, user, scopes: Scopes::default(), expires_at_seconds: 0 }
}

#[tokio::test]
async fn a_join_code_counts_for_its_user_until_its_expiry_and_no_guess_counts() {
    let place = tempfile::tempdir().unwrap();
    let codes = ReleaseCodes::new(Ledger::open(Settings::new(place.path())).await.unwrap()).await.unwrap();
    let bucket = Bucket::all().next().unwrap();
    let group = SessionId::mint(RegistryTime::from_millis(1), bucket, Region::default(), 7);
    let ann = caller("acme", "ann");
    let now = RegistryTime::from_millis(1_700_000_000_000);
    let code = sign(&codes, group, &ann, GroupScope::SameUser, now);
    assert_eq!(code.len(), JOIN_CODE_CHARS);
    let checked = check(&codes, &code, &ann).unwrap();
    assert_eq!(checked.group, group);
    assert_eq!(checked.made(), now);
    let expires = now + JOIN_CODE_LIFETIME;
    assert!(!checked.has_expired(expires - Span::from_millis(1)) && checked.has_expired(expires));
    assert_eq!(check(&codes, &code, &caller("acme", "bob")), None);
    assert_eq!(check(&codes, &code, &caller("other", "ann")), None);
    for at in 0..code.len() {
        let mut guess = code.clone().into_bytes();
        guess[at] = if guess[at] == b'0' { b'1' } else { b'0' };
        assert_eq!(check(&codes, &String::from_utf8(guess).unwrap(), &ann), None, "digit {at}");
    }
    for nonsense in ["", "0", &"é".repeat(40), &"0".repeat(80), &code[1..]] {
        assert_eq!(check(&codes, nonsense, &ann), None, "{nonsense}");
    }
    let guests = sign(&codes, group, &ann, GroupScope::AnyUser, now);
    for guest in [&ann, &caller("acme", "bob"), &caller("acme", "")] {
        assert_eq!(check(&codes, &guests, guest).map(|code| code.group), Some(group));
    }
    assert_eq!(check(&codes, &guests, &caller("other", "ann")), None);
}
