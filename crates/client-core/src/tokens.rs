//! Fresh tokens.

use std::time::Duration;

/// The timeout of a refresh: the driver, and the machine as well, give the token source up.
pub const TOKEN_TIMEOUT: Duration = Duration::from_secs(30);
