//! Which servers a publisher trusts: TLS with certificates that the system, or a file, vouches for.
//!
//! A certificate is always verified; nothing turns that off. A certificate that signed itself is accepted if a person has
//! named exactly it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, InvalidMessage, RootCertStore, SignatureScheme,
};

/// How to name a file of certificates, in errors.
const HOW: &str = "--ca-file FILE or the variable VRAMSCOPE_CA_FILE";

/// Whose certificates are trusted.
#[derive(Clone, Debug, Default)]
pub(super) enum Trust {
    /// The system's authorities.
    #[default]
    System,
    /// The certificates of a file, and no others.
    File(PathBuf),
    /// Exactly this certificate, whatever name it is for.
    Exactly(CertificateDer<'static>),
}

impl Trust {
    /// Returns the configuration of a TLS client. The error is a sentence for a person.
    pub(super) fn config(&self) -> Result<Arc<ClientConfig>, String> {
        let provider = Arc::new(ring::default_provider());
        let verifier = match self {
            Self::System => Verifier::new(system_roots()?, Vec::new(), &provider)?,
            Self::File(path) => {
                let certificates = read(path)?;
                let mut roots = RootCertStore::empty();
                for certificate in &certificates {
                    let failed = |error| format!("{} contains an unusable certificate: {error}.", path.display());
                    roots.add(certificate.clone()).map_err(failed)?;
                }
                Verifier::new(roots, certificates, &provider)?
            }
            Self::Exactly(certificate) => Verifier::exactly(certificate.clone(), &provider),
        };
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| format!("TLS cannot be used: {error}."))?;
        let mut config = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Returns an error's text: what is wrong, and what to do about it. `plain` is the server's address without TLS.
    pub(super) fn explain(&self, error: &Error, plain: &str) -> String {
        match error {
            Error::InvalidCertificate(error) => self.explain_certificate(error),
            Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                format!("the server does not speak TLS. Did you mean {plain}?")
            }
            Error::AlertReceived(alert) => format!("the server ended the TLS handshake ({alert:?})"),
            error => format!("the TLS connection failed ({error})"),
        }
    }

    fn explain_certificate(&self, error: &CertificateError) -> String {
        match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the server's certificate has expired. Renew it there, or check this machine's clock".to_owned()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the server's certificate is not valid yet. Check this machine's clock".to_owned()
            }
            // A wrong signature means that another authority has the same name.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => self.explain_issuer(),
            error if is_authority(error) => self.explain_issuer(),
            CertificateError::NotValidForNameContext { expected, presented } => {
                // The names come as `DnsName("box")`.
                let names = presented.iter().filter_map(|name| name.split('"').nth(1).or(Some(name)));
                let names = names.map(|name| name.chars().filter(|c| !c.is_control()).collect::<String>());
                let names = names.collect::<Vec<_>>().join(", ");
                let names = if names.is_empty() { "names no host".to_owned() } else { format!("is for {names}") };
                let expected = expected.to_str();
                format!(
                    "the server's certificate {names} and not for {expected}. Use a name of the certificate as the \
                     address, or give the server a certificate for {expected}"
                )
            }
            CertificateError::NotValidForName => "the server's certificate is for another name".to_owned(),
            error => format!("the server's certificate is unusable ({error})"),
        }
    }

    fn explain_issuer(&self) -> String {
        match self {
            Self::System => format!(
                "the server's certificate was issued by an authority that this machine does not trust. Name the \
                 certificate of that authority, or the server's own if it signed itself, with {HOW}"
            ),
            Self::File(path) => {
                format!(
                    "the server's certificate was not issued by an authority in {}. Name another one with {HOW}",
                    path.display()
                )
            }
            Self::Exactly(_) => "the server presented another certificate".to_owned(),
        }
    }
}

/// Whether an error says that the certificate may issue others, as those have that `openssl req -x509` makes by default.
/// rustls has no variant for it, and passes on the name that its parser has for it.
fn is_authority(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity"))
}

/// Returns the system's authorities.
fn system_roots() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    // Some systems have certificates of an old form, which no server uses any more.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(format!(
            "This machine has no certificates of authorities, so no https address can be verified. Install them (the \
             package is mostly named ca-certificates), or name a certificate with {HOW}."
        ));
    }
    Ok(roots)
}

/// Reads the certificates of a file.
fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed =
        |error: &dyn std::fmt::Display| format!("The certificates in {} can't be read: {error}.", path.display());
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
    let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(|error| failed(&error))?;
    if certificates.is_empty() {
        return Err(format!(
            "{} contains no certificate. Name a file in PEM format, with -----BEGIN CERTIFICATE----- in it.",
            path.display()
        ));
    }
    Ok(certificates)
}

/// Returns the name that a server's certificate must have.
pub(super) fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(bare.to_owned())
        .map_err(|_| format!("{bare} is not a name that a certificate can have. Use a host name or an address."))
}

/// Wraps a TLS error, so that it passes through functions of [`io`].
pub(super) fn wrap(error: Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

/// Returns the TLS error in an error of [`io`].
pub(super) fn unwrap(error: &io::Error) -> Option<&Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

/// Verifies as rustls does, and accepts a certificate that signed itself if a person has named it.
#[derive(Debug)]
struct Verifier {
    /// The authorities; `None` if exactly the named certificate is accepted, whatever name it is for.
    roots: Option<Arc<WebPkiServerVerifier>>,
    /// The certificates that a person has named.
    named: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(
        roots: RootCertStore,
        named: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        let roots = builder.build().map_err(|error| format!("The certificates cannot be used: {error}."))?;
        Ok(Self { roots: Some(roots), named, provider: Arc::clone(provider) })
    }

    /// Accepts one certificate and no other. A server's own demo uses it, since the server is reached at an address that its
    /// certificate need not name.
    fn exactly(certificate: CertificateDer<'static>, provider: &Arc<CryptoProvider>) -> Self {
        Self { roots: None, named: vec![certificate], provider: Arc::clone(provider) }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let is_named = self.named.contains(end_entity);
        let Some(roots) = &self.roots else {
            let unknown = Error::InvalidCertificate(CertificateError::UnknownIssuer);
            return if is_named { Ok(ServerCertVerified::assertion()) } else { Err(unknown) };
        };
        match roots.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The period of validity is checked before; the name is checked here.
            Err(Error::InvalidCertificate(error)) if is_authority(&error) && is_named => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
