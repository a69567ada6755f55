//! Fingerprints of devices. A fingerprint is the holder of a screen, and reveals neither the device's id nor
//! its network.

use std::net::IpAddr;

use seatkeeper_core::Holder;

use crate::hash;

/// Returns the fingerprint of a device: a hash of id, user agent and network (/24, or /48 for IPv6), from
/// which nobody can read the three values. The first part hashes the id alone.
pub(super) fn fingerprint(device_id: &str, user_agent: &[u8], ip: Option<IpAddr>) -> Holder {
    // 64 bits suffice to distinguish a subscriber's few devices.
    let device = u64::from_be_bytes(hash::digest(&[device_id.as_bytes()]));
    let there = u128::from_be_bytes(hash::digest(&[device_id.as_bytes(), user_agent, &network(ip)]));
    Holder::fingerprint(&format!("{device:016x}"), &format!("{there:032x}"))
}

/// Returns the part of an address that a household's devices share.
fn network(ip: Option<IpAddr>) -> Vec<u8> {
    match ip {
        Some(IpAddr::V4(ip)) => ip.octets()[..3].to_vec(),
        Some(IpAddr::V6(ip)) => ip.octets()[..6].to_vec(),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
