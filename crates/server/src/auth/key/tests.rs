//! Tests of key files: certificates, and keys that cannot verify tokens.

use std::fs;
use std::process::{Command, Stdio};

use seatkeeper_engine::Worker;
use seatkeeper_testbed::authority::Authority;

use super::*;
use crate::auth::own_keys::OwnKeys;
use crate::reload::Reload;

#[test]
fn a_certificate_in_a_key_file_stands_alone() {
    let papers = Authority::new();
    papers.sign("own");
    let read = |name: &str| fs::read(papers.path(name)).unwrap();
    let (own, authority) = (read("own.pem"), read("ca.pem"));
    let file = papers.path("keys.pem");
    let checked = |text: &[&[u8]]| {
        fs::write(&file, text.concat()).unwrap();
        check_key_file(&file, Algorithm::Es256)
    };
    assert_eq!(checked(&[&own]), Ok(()));
    // The key of a certificate authority must not verify tokens.
    assert!(checked(&[&own, &authority]).is_err());
    assert!(checked(&[&authority, &own]).is_err());
}

/// A directory for the key files of a test.
struct KeyFiles(tempfile::TempDir);

impl KeyFiles {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes a key of `kind`, and its public key `KIND.pub`.
    fn make(&self, kind: &str) -> (Vec<u8>, Vec<u8>) {
        let private = self.path(kind);
        let out = private.to_str().unwrap();
        let (algorithm, option) = match kind {
            "rsa" => ("RSA", "rsa_keygen_bits:2048"),
            "rsa-1024" => ("RSA", "rsa_keygen_bits:1024"),
            curve => ("EC", &*format!("ec_paramgen_curve:{curve}")),
        };
        openssl(&["genpkey", "-algorithm", algorithm, "-pkeyopt", option, "-out", out]);
        let public = openssl(&["pkey", "-in", out, "-pubout"]);
        (fs::read(&private).unwrap(), public)
    }
}

fn openssl(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("openssl").args(arguments).stdin(Stdio::null()).output();
    let output = output.expect("openssl is missing: install it (Debian: apt-get install openssl)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Returns settings that name a key file.
fn settings_for(path: &Path, algorithm: Algorithm) -> Settings {
    let mut settings = Settings::default();
    settings.auth.key_file = Some(path.to_owned());
    settings.auth.algorithm = algorithm;
    settings.ledger.data_dir = path.with_extension("data");
    settings
}

#[tokio::test]
async fn an_unusable_key_is_refused_by_the_check_at_the_start_and_by_a_reload() {
    let files = KeyFiles::new();
    let [(rsa_private, rsa), (p256_private, p256)] = ["rsa", "P-256"].map(|kind| files.make(kind));
    let [(_, rsa_1024), (_, p384), (_, k256)] =
        ["rsa-1024", "P-384", "secp256k1"].map(|kind| files.make(kind));
    let rsa_path = files.path("rsa");
    let rsa_pkcs1 = openssl(&["pkey", "-in", rsa_path.to_str().unwrap(), "-traditional"]);
    let both = [&*p256, &*p384].concat();
    let cases = [
        (Algorithm::Es256, &p256, &[p384, k256, p256_private, both, rsa.clone()][..]),
        (Algorithm::Rs256, &rsa, &[rsa_1024, rsa_private, rsa_pkcs1, p256.clone()]),
    ];
    let path = files.path("keys.pem");
    for (algorithm, good, unusable) in cases {
        let settings = settings_for(&path, algorithm);
        fs::write(&path, good).unwrap();
        assert_eq!(settings.file_faults(), []);
        let keys = OwnKeys::from_settings(&settings).unwrap();
        let reload = Reload::new(keys.clone(), good.clone());
        for text in unusable {
            fs::write(&path, text).unwrap();
            let text = String::from_utf8_lossy(text);
            let faults = settings.file_faults();
            assert_eq!(faults.len(), 1, "{algorithm:?}: {text}");
            let refusal = OwnKeys::from_settings(&settings).err().map(|error| error.to_string());
            let refusal = refusal.unwrap_or_else(|| panic!("{algorithm:?} takes {text}"));
            assert!(refusal.ends_with(faults[0].why.trim_start_matches("it ")), "{refusal}");
            assert_eq!(refusal.contains("-pubout"), text.contains("PRIVATE KEY"), "{refusal}");
            let Ok(_) = reload.activate().await;
            assert_eq!(keys.edition(), 0, "{algorithm:?}: the old keys stay in use");
        }
        fs::write(&path, [&**good, &**good].concat()).unwrap();
        let Ok(_) = reload.activate().await;
        assert_eq!((keys.edition(), keys.known().keys.len()), (1, 2));
    }
}

#[test]
fn a_public_rsa_key_without_the_name_of_its_algorithm_is_taken() {
    let files = KeyFiles::new();
    files.make("rsa");
    let (rsa, keys) = (files.path("rsa"), files.path("keys.pem"));
    let pkcs1 = openssl(&["rsa", "-in", rsa.to_str().unwrap(), "-RSAPublicKey_out"]);
    fs::write(&keys, pkcs1).unwrap();
    assert_eq!(check_key_file(&keys, Algorithm::Rs256), Ok(()));
}
