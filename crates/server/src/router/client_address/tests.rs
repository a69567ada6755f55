//! Tests of client addresses: trusted chains, forged entries, invalid headers.

use axum::http::{HeaderMap, HeaderValue};

use super::Proxies;
use crate::settings::ProxyHeader::{self, Forwarded, XForwardedFor};

const TRUSTED: &str = "10.0.0.0/8, 2001:db8:aaaa::/48, 127.0.0.1";

/// Returns the client's address for header lines `lines`. The header of the unused kind is present too, and
/// must be ignored.
fn client(peer: &str, header: ProxyHeader, lines: &[&str]) -> String {
    let proxies = Proxies::new(TRUSTED.parse().unwrap(), header);
    let (ours, other) = match header {
        XForwardedFor => ("x-forwarded-for", "forwarded"),
        Forwarded => ("forwarded", "x-forwarded-for"),
    };
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(ours, HeaderValue::from_bytes(line.as_bytes()).unwrap());
    }
    headers.append(other, HeaderValue::from_static("for=198.51.100.66"));
    proxies.client(peer.parse().unwrap(), &headers).to_string()
}

const PROXY: &str = "10.0.0.1";
const ANN: &str = "203.0.113.7";

#[test]
fn of_x_forwarded_for_the_right_most_untrusted_address_counts() {
    for (peer, lines, expected) in [
        // The peer is no trusted proxy: headers are ignored.
        (ANN, &[][..], ANN),
        (ANN, &["192.0.2.1"], ANN),
        (ANN, &["10.0.0.9"], ANN),
        ("::ffff:203.0.113.7", &["192.0.2.1"], ANN),
        // A proxy without a client counts as the client.
        (PROXY, &[], PROXY),
        (PROXY, &[""], PROXY),
        // A single proxy, and chains.
        (PROXY, &[ANN], ANN),
        ("::ffff:10.0.0.1", &[ANN], ANN),
        (PROXY, &["203.0.113.7, 10.0.0.2"], ANN),
        (PROXY, &["203.0.113.7,10.0.0.2 ,\t127.0.0.1"], ANN),
        ("2001:db8:aaaa::1", &["2001:db8:1::7, 2001:db8:aaaa::2"], "2001:db8:1::7"),
        (PROXY, &["::ffff:203.0.113.7, ::ffff:10.0.0.2"], ANN),
        // Only proxies: the farthest proxy counts.
        (PROXY, &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        // Forged entries are on the left.
        (PROXY, &["192.0.2.1, 203.0.113.7"], ANN),
        (PROXY, &["10.0.0.9, 203.0.113.7, 10.0.0.2"], ANN),
        (PROXY, &["garbage, 203.0.113.7"], ANN),
        (PROXY, &["\"192.0.2.1, 203.0.113.7"], ANN),
        // Several lines form a single list.
        (PROXY, &["192.0.2.1", "203.0.113.7"], ANN),
        (PROXY, &["203.0.113.7", "10.0.0.2"], ANN),
        (PROXY, &["203.0.113.7", "10.0.0.2", "10.0.0.3"], ANN),
        // Ports and brackets.
        (PROXY, &["203.0.113.7:4711"], ANN),
        (PROXY, &["[2001:db8:1::7]:4711"], "2001:db8:1::7"),
        (PROXY, &["[2001:db8:1::7]"], "2001:db8:1::7"),
        (PROXY, &["2001:db8:1::7"], "2001:db8:1::7"),
        // An invalid entry: the proxy that passed on the entry counts, never an entry further left.
        (PROXY, &["unknown"], PROXY),
        (PROXY, &["203.0.113.7, unknown"], PROXY),
        (PROXY, &["203.0.113.7, unknown, 10.0.0.2"], "10.0.0.2"),
        (PROXY, &["203.0.113.7,"], PROXY),
        (PROXY, &["203.0.113.7:99999"], PROXY),
        (PROXY, &["203.0.113.7:"], PROXY),
        (PROXY, &["203.0.113.07"], PROXY),
        (PROXY, &["fe80::1%eth0"], PROXY),
        (PROXY, &["[::1"], PROXY),
        (PROXY, &["203.0.113.7 192.0.2.1"], PROXY),
        (PROXY, &["203.0.113.7, \u{fc}"], PROXY),
        (PROXY, &["for=203.0.113.7"], PROXY),
    ] {
        assert_eq!(client(peer, XForwardedFor, lines), expected, "{peer} {lines:?}");
    }
}

#[test]
fn of_forwarded_the_right_most_untrusted_address_counts() {
    for (peer, lines, expected) in [
        (ANN, &["for=192.0.2.1"][..], ANN),
        (PROXY, &["for=203.0.113.7"], ANN),
        (PROXY, &["For=203.0.113.7;proto=https;by=10.0.0.1"], ANN),
        (PROXY, &["proto=https ; FOR = \"203.0.113.7:4711\""], ANN),
        (PROXY, &["for=\"[2001:db8:1::7]\""], "2001:db8:1::7"),
        (PROXY, &["for=\"[2001:db8:1::7]:4711\";by=x"], "2001:db8:1::7"),
        (PROXY, &["for=192.0.2.1, for=203.0.113.7, for=10.0.0.2"], ANN),
        (PROXY, &["for=192.0.2.1", "for=203.0.113.7", "for=\"10.0.0.2\""], ANN),
        // A separator within quotes does not separate.
        (PROXY, &["for=192.0.2.1;x=\"a, for=192.0.2.2; b\\\", for=192.0.2.3\", for=203.0.113.7"], ANN),
        // Obfuscated or missing clients.
        (PROXY, &["for=unknown"], PROXY),
        (PROXY, &["for=_hidden, for=10.0.0.2"], "10.0.0.2"),
        (PROXY, &["for=203.0.113.7, proto=https"], PROXY),
        (PROXY, &["203.0.113.7"], PROXY),
        (PROXY, &["for="], PROXY),
        // Malformed or ambiguous elements.
        (PROXY, &["for=203.0.113.7;for=192.0.2.1"], PROXY),
        (PROXY, &["for=\"203.0.113.7"], PROXY),
        (PROXY, &["for=\"192.0.2.1, for=203.0.113.7"], PROXY),
        (PROXY, &["for=203.0.113.7\""], PROXY),
        (PROXY, &["for=\"203.0.113.7\"x"], PROXY),
        // An open quote in a client's line does not swallow the proxy's line.
        (PROXY, &["for=\"192.0.2.1", "for=203.0.113.7"], ANN),
    ] {
        assert_eq!(client(peer, Forwarded, lines), expected, "{peer} {lines:?}");
    }
}
