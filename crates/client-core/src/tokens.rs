//! One refresh at a time for all seats of a client.

use std::time::Duration;

/// The timeout of a refresh: the driver, and the machine as well, give the token source up.
pub const TOKEN_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of a client's token. Every fresh token has the next number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenGeneration(u64);

/// Coalesces refreshes: at most one at a time, for all seats of a client.
#[derive(Debug, Default)]
pub struct TokenKeeper {
    current: TokenGeneration,
    refreshing: bool,
}

/// The step after a token was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// A fresh token came since the request was sent: [`Event::TokenReady`](crate::Event::TokenReady) at once.
    Superseded,
    /// A refresh is under way: wait for its result.
    Wait,
    /// Start the refresh, and call [`TokenKeeper::finish`] with its result.
    Refresh,
}

impl TokenKeeper {
    /// Returns the generation of the token to send.
    #[must_use]
    pub fn current(&self) -> TokenGeneration {
        self.current
    }

    /// Decides on a request that was sent with the token of `sent_with` and answered 401.
    pub fn reject(&mut self, sent_with: TokenGeneration) -> Rejected {
        if sent_with < self.current {
            return Rejected::Superseded;
        }
        if self.refreshing {
            return Rejected::Wait;
        }
        self.refreshing = true;
        Rejected::Refresh
    }

    /// Ends the refresh; `fresh` says that a token came.
    pub fn finish(&mut self, fresh: bool) {
        self.refreshing = false;
        if fresh {
            self.current = TokenGeneration(self.current.0 + 1);
        }
    }
}
