//! Names that must not be swapped for one another.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as it is; its length was bounded where it came in.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text itself.
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
    /// The organisation that owns licenses, users and records. Nothing crosses tenants.
    TenantId
}
name! {
    /// A person or program of a tenant: the `sub` of a token.
    UserId
}
name! {
    /// Who holds a seat: a machine, a process, a user or a device fingerprint.
    Holder
}
name! {
    /// The request that caused a change, as the answer and the log also name it.
    RequestId
}

#[cfg(test)]
mod tests;

impl UserId {
    /// Keeps a tenant and its user apart: names that come in hold no control characters.
    const TENANT_SEPARATOR: char = '\n';

    /// A program of `tenant` that acts in another one. No user of that other tenant can have this name,
    /// for names that come in hold no control characters.
    pub fn from_abroad(tenant: &TenantId, user: &Self) -> Self {
        Self::new(format!("{tenant}{}{user}", Self::TENANT_SEPARATOR))
    }

    /// The user, and the tenant that it came from if that is another.
    pub fn parts(&self) -> (&str, Option<&str>) {
        match self.as_str().split_once(Self::TENANT_SEPARATOR) {
            Some((tenant, user)) => (user, Some(tenant)),
            None => (self.as_str(), None),
        }
    }
}

impl Holder {
    /// Keeps a machine and a process apart: names that come in hold no control characters.
    const PROCESS_SEPARATOR: char = '\n';
    /// Keeps a device and its network apart.
    const NETWORK_SEPARATOR: char = '-';

    /// A process on a machine.
    pub fn process(machine: &str, instance: &str) -> Self {
        Self::new(format!("{machine}{}{instance}", Self::PROCESS_SEPARATOR))
    }

    /// The machine (or whoever else holds), and the process on it if that is what holds.
    pub fn parts(&self) -> (&str, Option<&str>) {
        match self.as_str().split_once(Self::PROCESS_SEPARATOR) {
            Some((machine, instance)) => (machine, Some(instance)),
            None => (self.as_str(), None),
        }
    }

    /// A device on a network, as a fingerprint: what tells the device from others wherever it is, and
    /// what tells it there. Neither holds a `-`.
    pub fn fingerprint(device: &str, there: &str) -> Self {
        Self::new(format!("{device}{}{there}", Self::NETWORK_SEPARATOR))
    }

    /// The part of a fingerprint that stays the same when the device changes its network.
    pub fn device(&self) -> &str {
        self.as_str().split(Self::NETWORK_SEPARATOR).next().unwrap_or_default()
    }

    /// The bounds between which the processes of this machine sort: from the first on, before the second.
    pub fn processes(&self) -> (String, String) {
        const AFTER_SEPARATOR: char = '\u{b}';
        (format!("{self}{}", Self::PROCESS_SEPARATOR), format!("{self}{AFTER_SEPARATOR}"))
    }
}
