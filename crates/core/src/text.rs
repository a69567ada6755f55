//! Newtypes for names, so that the compiler rejects a swap of two names.

use std::fmt;

use arcstr::ArcStr;
use serde::{Deserialize, Serialize};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(ArcStr);

        impl $name {
            /// Takes the text unchanged. The caller has bounded the length.
            pub fn new(text: impl Into<ArcStr>) -> Self {
                Self(text.into())
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
    };
}

name! {
    /// An organisation with its own licenses, users and records. Tenants are isolated from each other.
    TenantId
}
name! {
    /// A person or program of a tenant: the `sub` of a token.
    UserId
}
name! {
    /// The holder of a seat: a machine, a process, a user or a device fingerprint.
    Holder
}
name! {
    /// The request behind a change, as named in the answer and in the log.
    RequestId
}

/// The longest name that a client may choose, in characters: of a tenant, a user, a machine or a device.
pub const NAME_CHARS_MAX: usize = 255;

/// The longest name that a client may choose, in bytes. A row of a B-tree index in PostgreSQL has at most 2,704 bytes, and
/// the widest index has a tenant, a pool and a holder, of up to two names each.
pub const NAME_BYTES_MAX: usize = 512;

/// Returns whether a client may choose `text` as a name: 1 to 255 characters in at most 512 bytes, and no control
/// characters.
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= NAME_BYTES_MAX
        && text.chars().count() <= NAME_CHARS_MAX
        && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests;

impl UserId {
    /// Separates a tenant from its user. Names of clients contain no control characters.
    const TENANT_SEPARATOR: char = '\n';

    /// Returns the name of `tenant`'s program `user` in a foreign tenant. No user of the foreign tenant can
    /// have the name, because names of clients contain no control characters.
    pub fn from_abroad(tenant: &TenantId, user: &Self) -> Self {
        Self::new(format!("{tenant}{}{user}", Self::TENANT_SEPARATOR))
    }

    /// Returns the user, and the home tenant of a program from abroad.
    pub fn parts(&self) -> (&str, Option<&str>) {
        match self.as_str().split_once(Self::TENANT_SEPARATOR) {
            Some((tenant, user)) => (user, Some(tenant)),
            None => (self.as_str(), None),
        }
    }
}

impl Holder {
    /// Separates a machine from its process. Names of clients contain no control characters.
    const PROCESS_SEPARATOR: char = '\n';
    /// Separates a device from its network.
    const NETWORK_SEPARATOR: char = '-';

    /// Names a process on a machine.
    pub fn process(machine: &str, instance: &str) -> Self {
        Self::new(format!("{machine}{}{instance}", Self::PROCESS_SEPARATOR))
    }

    /// Returns the machine (or user, or device), and the process if the holder is a process.
    pub fn parts(&self) -> (&str, Option<&str>) {
        match self.as_str().split_once(Self::PROCESS_SEPARATOR) {
            Some((machine, instance)) => (machine, Some(instance)),
            None => (self.as_str(), None),
        }
    }

    /// Builds a fingerprint from a device part, valid on every network, and a part valid on the present
    /// network only. Neither part contains a `-`.
    pub fn fingerprint(device: &str, there: &str) -> Self {
        Self::new(format!("{device}{}{there}", Self::NETWORK_SEPARATOR))
    }

    /// Returns the part of a fingerprint that is independent of the network.
    pub fn device(&self) -> &str {
        self.as_str().split(Self::NETWORK_SEPARATOR).next().unwrap_or_default()
    }

    /// Returns a half-open range of the sort order that contains every process of the machine.
    pub fn processes(&self) -> (String, String) {
        const AFTER_SEPARATOR: char = '\u{b}';
        (format!("{self}{}", Self::PROCESS_SEPARATOR), format!("{self}{AFTER_SEPARATOR}"))
    }
}
