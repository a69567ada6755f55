//! Tests of certificates in key files.

use std::fs;

use seatkeeper_testbed::authority::Authority;

use super::*;

#[test]
fn a_certificate_in_a_key_file_stands_alone() {
    let papers = Authority::new();
    papers.sign("own");
    let read = |name: &str| fs::read(papers.path(name)).unwrap();
    let (own, authority) = (read("own.pem"), read("ca.pem"));
    let file = papers.path("keys.pem");
    let checked = |text: &[&[u8]]| {
        fs::write(&file, text.concat()).unwrap();
        check_key_file(&file, Algorithm::Es256)
    };
    assert_eq!(checked(&[&own]), Ok(()));
    // The key of a certificate authority must not verify tokens.
    assert!(checked(&[&own, &authority]).is_err());
    assert!(checked(&[&authority, &own]).is_err());
}
