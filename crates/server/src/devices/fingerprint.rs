//! Who holds a screen: a device, told by what it says of itself and by where it is.

use std::net::IpAddr;

use seatkeeper_core::Holder;

use crate::hash;

/// The fingerprint of a device: a hash of its id, its user agent and its network (/24, or /48 for IPv6),
/// which nobody can read the three from. Its first part hashes the id alone.
pub(super) fn fingerprint(device_id: &str, user_agent: &[u8], ip: Option<IpAddr>) -> Holder {
    // Enough to tell a subscriber's few devices apart.
    let device = u64::from_be_bytes(hash::of(&[device_id.as_bytes()]));
    let there = u128::from_be_bytes(hash::of(&[device_id.as_bytes(), user_agent, &network(ip)]));
    Holder::fingerprint(&format!("{device:016x}"), &format!("{there:032x}"))
}

/// The part of an address that a household's devices share.
fn network(ip: Option<IpAddr>) -> Vec<u8> {
    match ip {
        Some(IpAddr::V4(ip)) => ip.octets()[..3].to_vec(),
        Some(IpAddr::V6(ip)) => ip.octets()[..6].to_vec(),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
