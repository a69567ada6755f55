//! IP networks as a setting: a list in a file, or a text with commas in an environment variable.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::comma_list::CommaList;

/// A set of networks: a list of texts in a file, a text with commas in an environment variable.
pub type Networks = CommaList<Network>;

/// A network: `10.0.0.0/8`, `2001:db8::/32` or a single address. An IPv4-mapped IPv6 address counts as the
/// IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u32,
}

/// A text that is not a network.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no network: want an address, or one with the length of a prefix, as in 10.0.0.0/8")]
pub struct NoNetwork(String);

/// Bits before the IPv4 address in an IPv4-mapped IPv6 address.
const MAPPED_PREFIX: u32 = 96;

impl CommaList<Network> {
    /// Returns whether a network of the set contains `address`.
    pub fn contain(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        let (all, ours) = (bits(address.to_canonical()), bits(self.address));
        let differing = all.0 ^ ours.0;
        // Both numbers are right-aligned in 128 bits.
        all.1 == ours.1 && differing.checked_shr(ours.1 - self.prefix).unwrap_or(0) == 0
    }
}

/// Returns an address as a number, with the number of its bits.
fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), u32::BITS),
        IpAddr::V6(address) => (address.to_bits(), u128::BITS),
    }
}

impl FromStr for Network {
    type Err = NoNetwork;
    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let parse = || {
            let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
            let written: IpAddr = address.trim().parse().ok()?;
            let prefix = prefix.map_or(Some(bits(written).1), |prefix| prefix.trim().parse().ok())?;
            let address = written.to_canonical();
            let prefix = if written == address { prefix } else { prefix.checked_sub(MAPPED_PREFIX)? };
            (prefix <= bits(address).1).then_some(Self { address, prefix })
        };
        parse().ok_or_else(|| NoNetwork(text.to_owned()))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests;
