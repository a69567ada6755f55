//! A certificate authority for tests: PEM files made by `openssl`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A certificate authority with its certificate in `ca.pem`. A drop deletes every file.
#[derive(Debug)]
pub struct Authority(TempDir);

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// Creates an authority with a new key.
    pub fn new() -> Self {
        let authority = Self(tempfile::tempdir().expect("a directory"));
        authority.certify("ca", &["-addext", "basicConstraints=critical,CA:TRUE", "-subj", "/CN=authority"]);
        authority
    }

    /// Returns the path of the file `name` in the authority's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Signs a certificate for 127.0.0.1, `NAME.pem`, with the key `NAME.key`. The certificates of the
    /// authority last for two days.
    pub fn sign(&self, name: &str) {
        let (ca, key) = (self.path("ca.pem"), self.path("ca.key"));
        let signer = [Path::new("-CA"), &ca, Path::new("-CAkey"), &key];
        let signer = signer.map(|part| part.to_str().expect("a plain path"));
        let subject = format!("/CN={name}");
        let own = ["-addext", "subjectAltName=IP:127.0.0.1", "-subj", &subject];
        let leaf = ["-addext", "basicConstraints=critical,CA:FALSE"];
        self.certify(name, &[&signer[..], &own, &leaf].concat());
    }

    fn certify(&self, name: &str, more: &[&str]) {
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]);
        openssl.args(["-days", "2"]).args(more);
        openssl.arg("-keyout").arg(self.path(&format!("{name}.key")));
        openssl.arg("-out").arg(self.path(&format!("{name}.pem")));
        let made = openssl.stdin(Stdio::null()).output();
        let made = made.expect("openssl is missing: install it (Debian: apt-get install openssl)");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
}
