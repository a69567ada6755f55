//! Tests of names.

use super::{Holder, RequestId, TenantId, UserId};

#[test]
fn a_name_is_its_text() {
    assert_eq!(TenantId::new("acme").as_str(), "acme");
    assert_eq!(UserId::from("ann").to_string(), "ann");
    assert_eq!(format!("{:?}", Holder::from("a \"b\"")), r#""a \"b\"""#);
    assert!(RequestId::from("1") < RequestId::from("2"));
}

#[test]
fn a_fingerprint_tells_the_device_wherever_it_is() {
    let (home, road) = (Holder::fingerprint("tv", "home"), Holder::fingerprint("tv", "road"));
    assert_eq!((home.device(), road.device()), ("tv", "tv"));
    assert_ne!(home, road);
    assert_eq!(Holder::from("whole").device(), "whole");
}

#[test]
fn a_user_from_abroad_has_no_namesake() {
    let abroad = UserId::from_abroad(&"acme".into(), &"ann".into());
    assert_ne!(abroad, "ann".into());
    assert!(abroad.as_str().chars().any(char::is_control));
    assert_eq!(abroad.parts(), ("ann", Some("acme")));
    assert_eq!(UserId::from("ann").parts(), ("ann", None));
}
