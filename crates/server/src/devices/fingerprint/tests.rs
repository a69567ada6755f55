//! Tests of fingerprints across networks, user agents and ids.

use std::net::IpAddr;

use super::fingerprint;

fn at(device_id: &str, user_agent: &str, ip: &str) -> seatkeeper_core::Holder {
    let ip: IpAddr = ip.parse().unwrap();
    fingerprint(device_id, user_agent.as_bytes(), Some(ip))
}

#[test]
fn a_device_is_the_same_within_its_network() {
    assert_eq!(at("tv", "player/1", "192.0.2.7"), at("tv", "player/1", "192.0.2.200"));
    assert_eq!(at("tv", "player/1", "2001:db8:1:2::7"), at("tv", "player/1", "2001:db8:1:ffff::9"));
}

#[test]
fn id_user_agent_and_network_each_tell_devices_apart() {
    let tv = at("tv", "player/1", "192.0.2.7");
    let others = [
        at("phone", "player/1", "192.0.2.7"),
        at("tv", "player/2", "192.0.2.7"),
        at("tv", "player/1", "192.0.3.7"),
        at("tv", "player/1", "2001:db8:1::7"),
        fingerprint("tv", b"player/1", None),
        at("tvplayer/1", "", "192.0.2.7"),
        at("", "tvplayer/1", "192.0.2.7"),
    ];
    assert!(others.iter().all(|other| *other != tv));
    assert_ne!(at("tv", "player/1", "2001:db8:1::7"), at("tv", "player/1", "2001:db8:2::7"));
}

#[test]
fn the_device_is_told_on_any_network_and_its_id_is_not() {
    let (home, road) = (at("tv-0815", "player/1", "192.0.2.7"), at("tv-0815", "player/2", "203.0.113.1"));
    assert_eq!(home.device(), road.device());
    assert_ne!(home.device(), at("tv-0816", "player/1", "192.0.2.7").device());
    assert!(!home.as_str().contains("0815"));
    assert_eq!(home.as_str().len(), 16 + 1 + 32);
}
