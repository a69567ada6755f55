//! Who holds a screen: a device, told by what it says of itself and by where it is.

use std::net::IpAddr;

use aws_lc_rs::digest::{Context, SHA256};
use seatkeeper_core::Holder;

/// Bytes of the hash of a device's id: enough to tell a subscriber's few devices apart.
const DEVICE_BYTES: usize = 8;
/// Bytes of the hash of all that makes a fingerprint.
const FINGERPRINT_BYTES: usize = 16;

/// The fingerprint of a device: a hash of its id, its user agent and its network (/24, or /48 for IPv6),
/// which nobody can read the three from. Its first part hashes the id alone.
pub(super) fn fingerprint(device_id: &str, user_agent: &[u8], ip: Option<IpAddr>) -> Holder {
    let device = hash(&[device_id.as_bytes()], DEVICE_BYTES);
    let there = hash(&[device_id.as_bytes(), user_agent, &network(ip)], FINGERPRINT_BYTES);
    Holder::fingerprint(&device, &there)
}

/// The part of an address that a household's devices share.
fn network(ip: Option<IpAddr>) -> Vec<u8> {
    match ip {
        Some(IpAddr::V4(ip)) => ip.octets()[..3].to_vec(),
        Some(IpAddr::V6(ip)) => ip.octets()[..6].to_vec(),
        None => Vec::new(),
    }
}

/// The first bytes of a hash over the parts, each told by its length, in hexadecimal.
fn hash(parts: &[&[u8]], bytes: usize) -> String {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let digest = context.finish();
    digest.as_ref().iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
