//! A cluster that offers encrypted connections.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};

use super::{Account, Postgres};
use crate::authority::Authority;

impl Postgres {
    /// Creates and starts a cluster with `fsync` off and a certificate for 127.0.0.1, signed by `authority`. Clients may still
    /// connect without encryption.
    pub fn start_with_certificate(authority: &Authority) -> Self {
        let server = Self::prepare(Vec::new());
        authority.sign("postgres");
        let own = |name: &str| {
            let copy = server.dir.path().join(name);
            fs::copy(authority.path(name), &copy).expect("the authority wrote the file");
            // PostgreSQL refuses a key that others may read.
            fs::set_permissions(&copy, Permissions::from_mode(0o600)).expect("the copy is our own");
            if let Some(Account { uid, gid }) = server.account {
                chown(&copy, Some(uid), Some(gid)).expect("root may give a file away");
            }
            format!("'{}'", copy.display())
        };
        let certificate = format!("ssl_cert_file = {}", own("postgres.pem"));
        let key = format!("ssl_key_file = {}", own("postgres.key"));
        server.initialise(&["fsync = off", "ssl = on", &certificate, &key]);
        server.start_again();
        server
    }
}
