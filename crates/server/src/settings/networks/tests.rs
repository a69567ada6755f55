//! Tests of networks: membership, invalid texts, lists.

use super::{Network, Networks};

#[test]
fn a_network_has_the_addresses_that_begin_as_it_does() {
    for (network, inside, outside) in [
        ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
        ("10.1.2.3/8", "10.255.0.1", "9.255.255.255"),
        ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
        ("192.0.2.7/32", "::ffff:192.0.2.7", "::ffff:192.0.2.6"),
        ("::ffff:10.0.0.0/104", "10.9.9.9", "11.0.0.1"),
        ("0.0.0.0/0", "203.0.113.9", "2001:db8::1"),
        ("::/0", "2001:db8::1", "203.0.113.9"),
        ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
        ("::1", "::1", "::2"),
        (" 10.0.0.0 / 31 ", "10.0.0.1", "10.0.0.2"),
    ] {
        let networks: Networks = network.parse().unwrap();
        assert!(networks.contain(inside.parse().unwrap()), "{network} {inside}");
        assert!(!networks.contain(outside.parse().unwrap()), "{network} {outside}");
    }
}

#[test]
fn what_is_no_network_is_named() {
    for wrong in [
        "10.0.0.0/33",
        "::/129",
        "10.0.0",
        "localhost",
        "10.0.0.0/",
        "/8",
        "::ffff:10.0.0.0/8",
        "10.0.0.1/-1",
    ] {
        assert!(wrong.parse::<Network>().unwrap_err().to_string().contains(wrong));
    }
}

#[test]
fn a_list_is_written_with_commas() {
    let networks: Networks = "10.0.0.0/8, ::1,".parse().unwrap();
    assert!(networks.contain("10.1.1.1".parse().unwrap()) && networks.contain("::1".parse().unwrap()));
    assert!("".parse::<Networks>().unwrap().is_empty());
}
