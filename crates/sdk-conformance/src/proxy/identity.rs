//! The certificate with which the proxy speaks TLS.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate with its private key.
#[derive(Debug)]
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Reads a certificate and its key from files in PEM.
    #[must_use]
    pub fn from_files(certificate: &Path, key: &Path) -> Self {
        let certificate = CertificateDer::from_pem_file(certificate).expect("a certificate in PEM");
        let key = PrivateKeyDer::from_pem_file(key).expect("a key in PEM");
        Self { certificate, key }
    }

    /// Returns a configuration that resumes no session of TLS, so that each handshake shows the certificate.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(default_provider().into());
        let builder = builder.with_safe_default_protocol_versions().expect("versions of the provider");
        let certificates = vec![self.certificate.clone()];
        let config = builder.with_no_client_auth().with_single_cert(certificates, self.key.clone_key());
        let mut config = config.expect("a key of the certificate");
        config.send_tls13_tickets = 0;
        Arc::new(config)
    }
}
