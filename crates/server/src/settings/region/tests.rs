//! Each fault of the section `[region]` is named.

use super::{PeerSettings, RegionSettings, WhenHomeDown};

fn peer(number: u8) -> PeerSettings {
    PeerSettings {
        number,
        name: format!("region-{number}"),
        url: format!("https://{number}.example"),
        public_key_file: "us.pem".into(),
    }
}

fn region() -> RegionSettings {
    RegionSettings {
        number: 1,
        name: "eu".into(),
        anchor: Some(1),
        key_file: Some("eu.pem".into()),
        peers: vec![peer(2), peer(3)],
        ..RegionSettings::default()
    }
}

fn refused(settings: &RegionSettings) -> Vec<&'static str> {
    let mut keys: Vec<_> =
        settings.checks().into_iter().filter_map(Result::err).map(|invalid| invalid.key).collect();
    keys.dedup();
    keys
}

#[test]
fn three_regions_fit() {
    assert_eq!(refused(&region()), Vec::<&str>::new());
    assert_eq!(refused(&RegionSettings::default()), Vec::<&str>::new());
}

#[test]
fn a_region_alone_needs_no_key() {
    let alone = RegionSettings { number: 7, name: "eu".into(), ..RegionSettings::default() };
    assert_eq!(refused(&alone), Vec::<&str>::new());
}

#[test]
fn each_fault_is_named() {
    let own_among_peers = RegionSettings { peers: vec![peer(1)], ..region() };
    let twice = RegionSettings { peers: vec![peer(2), peer(2)], ..region() };
    let zero = RegionSettings { peers: vec![peer(0)], ..region() };
    let with_path = PeerSettings { url: "https://us.example/api".into(), ..peer(2) };
    let no_url = PeerSettings { url: "us.example".into(), ..peer(2) };
    let same_name = PeerSettings { name: "region-2".into(), ..peer(3) };
    let own_name = PeerSettings { name: "eu".into(), ..peer(2) };
    let same_url = PeerSettings { url: "https://2.example/".into(), ..peer(3) };
    for (settings, key) in [
        (RegionSettings { peers: vec![peer(2), same_name], ..region() }, "region.peers"),
        (RegionSettings { peers: vec![own_name], ..region() }, "region.peers"),
        (RegionSettings { peers: vec![peer(2), same_url], ..region() }, "region.peers"),
        (own_among_peers, "region.peers"),
        (twice, "region.peers"),
        (zero, "region.peers"),
        (RegionSettings { peers: vec![with_path], ..region() }, "region.peers"),
        (RegionSettings { peers: vec![no_url], ..region() }, "region.peers"),
        (RegionSettings { key_file: None, ..region() }, "region.key_file"),
        (RegionSettings { anchor: None, ..region() }, "region.anchor"),
        (RegionSettings { anchor: Some(9), ..region() }, "region.anchor"),
        (RegionSettings { anchors: [("acme".into(), 9)].into(), ..region() }, "region.anchors"),
        (RegionSettings { name: String::new(), ..region() }, "region.name"),
        (RegionSettings { number: 0, ..region() }, "region.number"),
        (
            RegionSettings { when_home_down: WhenHomeDown::Allow, ..RegionSettings::default() },
            "region.number",
        ),
        (
            RegionSettings { forward_timeout_milliseconds: 1, ..region() },
            "region.forward_timeout_milliseconds",
        ),
    ] {
        assert_eq!(refused(&settings), [key], "{settings:?}");
    }
}
