//! TLS by a certificate and a key in files, which may be replaced while this runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, RwLock};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, version};
use tokio_rustls::TlsAcceptor;

use crate::error::Error;
use crate::workers::{Left, Worker};

/// How often it is looked whether the files are other ones.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Two files are not replaced in one instant: so many looks must find what cannot be, before it is said.
const BAD_LOOKS_MIN: u32 = 2;

/// It is said again after so many.
const BAD_LOOKS_TOLD: u32 = 15;

/// The one protocol that is spoken within.
const ALPN_HTTP_1_1: &[u8] = b"http/1.1";

/// Why a certificate cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file is not PEM, or has not in it what it must have.
    #[error("{} has no certificate or key in PEM", path.display())]
    NotPem {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: pem::Error,
    },
    /// They cannot be used, or not with one another.
    #[error("certificate and key do not fit")]
    Unfit(#[from] rustls::Error),
}

/// The files.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    cert: PathBuf,
    key: PathBuf,
}

/// What was in the files: the certificates, and the key.
type Contents = (Vec<u8>, Vec<u8>);

/// The certificate that new connections are shown.
#[derive(Debug)]
struct Shown(RwLock<Arc<CertifiedKey>>);

/// Shows another certificate when the files have one.
pub(crate) struct Reload {
    files: Files,
    shown: Arc<Shown>,
    seen: Mutex<Seen>,
}

struct Seen {
    /// What is shown.
    good: Contents,
    /// Looks since then that found nothing that can be.
    bad: u32,
}

/// What makes connections secure by these files, and what sees to it that it goes on with newer ones.
pub(crate) fn by(files: Files) -> Result<(TlsAcceptor, Reload), CertificateError> {
    let contents = files.read()?;
    let shown = Arc::new(Shown(RwLock::new(Arc::new(files.certified(&contents)?))));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let versions = [&version::TLS13, &version::TLS12];
    let config = ServerConfig::builder_with_provider(provider).with_protocol_versions(&versions)?;
    let mut config = config.with_no_client_auth().with_cert_resolver(Arc::clone(&shown) as _);
    config.alpn_protocols = vec![ALPN_HTTP_1_1.to_vec()];
    let reload = Reload { files, shown, seen: Mutex::new(Seen { good: contents, bad: 0 }) };
    Ok((TlsAcceptor::from(Arc::new(config)), reload))
}

impl Files {
    /// The certificate's file, and its key's.
    pub(crate) fn of((cert, key): (&Path, &Path)) -> Self {
        Self { cert: cert.to_owned(), key: key.to_owned() }
    }

    fn read(&self) -> Result<Contents, CertificateError> {
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|source| CertificateError::Unreadable { path: path.clone(), source })
        };
        Ok((read(&self.cert)?, read(&self.key)?))
    }

    /// The certificate with its key, if they belong together.
    fn certified(&self, (cert, key): &Contents) -> Result<CertifiedKey, CertificateError> {
        let not_pem = |path: &PathBuf| {
            let path = path.clone();
            |source| CertificateError::NotPem { path, source }
        };
        let chain = CertificateDer::pem_slice_iter(cert).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(not_pem(&self.cert))?;
        if chain.is_empty() {
            return Err(not_pem(&self.cert)(pem::Error::NoItemsFound));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(not_pem(&self.key))?;
        Ok(CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider())?)
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read()))
    }
}

impl Reload {
    fn look(&self) {
        let mut seen = self.seen.lock();
        match self.newer_than(&seen.good) {
            Ok(None) => seen.bad = 0,
            Ok(Some((contents, certified))) => {
                *self.shown.0.write() = Arc::new(certified);
                *seen = Seen { good: contents, bad: 0 };
                tracing::info!(cert = %self.files.cert.display(), "new connections are shown another certificate");
            }
            Err(error) => {
                seen.bad += 1;
                if seen.bad % BAD_LOOKS_TOLD == BAD_LOOKS_MIN {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "the certificate cannot be replaced; the one that was good is shown on"
                    );
                }
            }
        }
    }

    fn newer_than(&self, good: &Contents) -> Result<Option<(Contents, CertifiedKey)>, CertificateError> {
        let contents = self.files.read()?;
        if contents == *good {
            return Ok(None);
        }
        let certified = self.files.certified(&contents)?;
        Ok(Some((contents, certified)))
    }
}

#[async_trait]
impl Worker for Reload {
    fn name(&self) -> &'static str {
        "certificate"
    }

    fn rest(&self) -> Duration {
        LOOK_INTERVAL
    }

    async fn activate(&self) -> Result<Left, Error> {
        self.look();
        Ok(Left::Nothing)
    }
}
