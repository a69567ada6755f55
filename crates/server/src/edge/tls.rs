//! TLS with a certificate and a key from files. Replaced files take effect without a restart; while the new
//! files are invalid, the previous certificate stays in use.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, version};
use tokio_rustls::TlsAcceptor;

use crate::reload::{InFiles, Reload};

/// The only protocol offered by ALPN.
const ALPN_HTTP_1_1: &[u8] = b"http/1.1";

/// A failure to load the certificate or its key.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
    /// A file is not PEM, or lacks the certificate or the key.
    #[error("{} has no certificate or key in PEM", path.display())]
    NotPem {
        /// Path of the file.
        path: PathBuf,
        /// Error of the PEM parser.
        #[source]
        source: pem::Error,
    },
    /// The certificate or the key is unusable, or the key belongs to a different certificate.
    #[error("certificate and key do not fit")]
    Unfit(#[from] rustls::Error),
}

/// Paths of the certificate and its key.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    cert: PathBuf,
    key: PathBuf,
}

/// Contents of the files: the certificate chain, and the key.
type Contents = (Vec<u8>, Vec<u8>);

/// The certificate presented to new connections.
#[derive(Debug)]
struct Shown(RwLock<Arc<CertifiedKey>>);

/// The certificate files, with the certificate presented to clients.
pub(crate) struct Certificate {
    files: Files,
    shown: Arc<Shown>,
}

/// Builds a TLS acceptor for `files`, with the worker that reloads replaced files.
pub(crate) fn by(files: Files) -> Result<(TlsAcceptor, Reload<Certificate>), CertificateError> {
    let contents = files.read()?;
    let shown = Arc::new(Shown(RwLock::new(Arc::new(files.certified(&contents)?))));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let versions = [&version::TLS13, &version::TLS12];
    let config = ServerConfig::builder_with_provider(provider).with_protocol_versions(&versions)?;
    let mut config = config.with_no_client_auth().with_cert_resolver(Arc::clone(&shown) as _);
    config.alpn_protocols = vec![ALPN_HTTP_1_1.to_vec()];
    let reload = Reload::new(Certificate { files, shown }, contents);
    Ok((TlsAcceptor::from(Arc::new(config)), reload))
}

impl Files {
    /// Creates `Files` from the paths of the certificate and the key.
    pub(crate) fn new((cert, key): (&Path, &Path)) -> Self {
        Self { cert: cert.to_owned(), key: key.to_owned() }
    }

    fn read(&self) -> Result<Contents, CertificateError> {
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|source| CertificateError::Unreadable { path: path.clone(), source })
        };
        Ok((read(&self.cert)?, read(&self.key)?))
    }

    /// Parses the certificate chain and the key, and checks that the key belongs to the certificate.
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

impl InFiles for Certificate {
    type Contents = Contents;
    type Fault = CertificateError;

    fn name(&self) -> &'static str {
        "certificate"
    }

    fn read(&self) -> Result<Contents, CertificateError> {
        self.files.read()
    }

    fn adopt(&self, contents: &Contents) -> Result<(), CertificateError> {
        *self.shown.0.write() = Arc::new(self.files.certified(contents)?);
        Ok(())
    }
}
