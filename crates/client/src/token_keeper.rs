//! One refresh at a time for all seats of a client.

/// The number of a client's token. Every fresh token has the next number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TokenGeneration(u64);

/// Coalesces refreshes: at most one at a time, for all seats of a client.
#[derive(Debug, Default)]
pub(crate) struct TokenKeeper {
    current: TokenGeneration,
    refreshing: bool,
}

/// The step after a token was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// A fresh token came since the request was sent: `Event::TokenReady` at once.
    Superseded,
    /// A refresh is under way: wait for its result.
    Wait,
    /// Start the refresh, and call [`TokenKeeper::finish`] with its result.
    Refresh,
}

impl TokenKeeper {
    /// Returns the generation of the token to send.
    pub(crate) fn current(&self) -> TokenGeneration {
        self.current
    }

    /// Decides on a request that was sent with the token of `sent_with` and answered 401.
    pub(crate) fn reject(&mut self, sent_with: TokenGeneration) -> Rejected {
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
    pub(crate) fn finish(&mut self, fresh: bool) {
        self.refreshing = false;
        if fresh {
            self.current = TokenGeneration(self.current.0 + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_refresh_at_a_time_serves_all_seats() {
        let mut keeper = TokenKeeper::default();
        let first = keeper.current();
        assert_eq!(keeper.reject(first), Rejected::Refresh);
        assert_eq!(keeper.reject(first), Rejected::Wait);
        keeper.finish(true);
        assert!(keeper.current() > first);
        assert_eq!(keeper.reject(first), Rejected::Superseded);
        assert_eq!(keeper.reject(keeper.current()), Rejected::Refresh);
    }

    #[test]
    fn a_refresh_without_a_token_leaves_the_old_one() {
        let mut keeper = TokenKeeper::default();
        let first = keeper.current();
        assert_eq!(keeper.reject(first), Rejected::Refresh);
        keeper.finish(false);
        assert_eq!(keeper.current(), first);
        assert_eq!(keeper.reject(first), Rejected::Refresh);
    }
}
