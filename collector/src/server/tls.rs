//! TLS: the handshake, and a certificate that is read again when its files change.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::expiry::expiry;

/// The time between two looks at the files. Programs that renew certificates do so days before the old one expires.
const LOOK: Duration = Duration::from_secs(2);
/// The most bytes of a file. A chain has some KiB.
const FILE_BYTES: u64 = 1 << 20;
/// The answer to a request without TLS, which a person may have typed into a browser.
const PLAIN: &str = "This port expects TLS. Write https:// instead of http:// in the address.\n";
/// The most bytes that are read from such a request after the answer. Unread bytes could make the system discard it.
const PLAIN_BYTES: usize = 64 << 10;

/// The files of a certificate and its key, in PEM format.
#[derive(Clone, Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// Identifies a version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    changed: Option<SystemTime>,
    bytes: u64,
    inode: u64,
}

/// The certificate that the next handshake uses.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl Current {
    fn get(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, certificate: CertifiedKey) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(certificate);
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.get())
    }
}

/// The TLS of a server.
pub struct Tls {
    files: Files,
    /// The files' stamps before they were first read.
    stamps: [Option<Stamp>; 2],
    current: Arc<Current>,
    acceptor: TlsAcceptor,
}

impl Tls {
    /// Reads a certificate, with the chain to its authority, and its key. The error is a sentence for a person.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, String> {
        let files = Files { certificate: certificate.to_owned(), key: key.to_owned() };
        let stamps = files.stamps();
        let current = Arc::new(Current(RwLock::new(Arc::new(files.load()?))));
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(|error| format!("TLS failed: {error}."))?;
        let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::clone(&current) as _);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { files, stamps, current, acceptor: TlsAcceptor::from(Arc::new(config)) })
    }

    /// Returns the server's own certificate, without its chain.
    pub(super) fn certificate(&self) -> Option<CertificateDer<'static>> {
        self.current.get().cert.first().cloned()
    }

    /// Makes the handshake with a client. Returns `None` if it fails, or if the client doesn't speak TLS. The caller bounds
    /// the time.
    pub(super) async fn accept(&self, socket: TcpStream) -> Option<TlsStream<TcpStream>> {
        let mut first = [0];
        // A TLS connection begins with a byte that is no letter; every HTTP method begins with one.
        if matches!(socket.peek(&mut first).await, Ok(1)) && first[0].is_ascii_uppercase() {
            answer_plain(socket).await;
            return None;
        }
        match self.acceptor.accept(socket).await {
            Ok(stream) => Some(stream),
            Err(error) => {
                // Mostly scanners, and clients that don't trust the certificate.
                tracing::debug!(%error, "TLS handshake failed");
                None
            }
        }
    }

    /// Reads the files again when they change, for ever. Open connections keep the certificate that they began with.
    pub(super) async fn watch(self: Arc<Self>) {
        tracing::info!(expires = self.expires(), "certificate loaded");
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut watch = Watch { seen: self.stamps, failed: None, is_reported: false };
        loop {
            looks.tick().await;
            let tls = Arc::clone(&self);
            // The disk may be slow.
            let Ok(next) = tokio::task::spawn_blocking(move || tls.look(watch)).await else { return };
            watch = next;
        }
    }

    /// Loads the files if they have changed. A pair that does not fit is tried again at the next look before it is
    /// reported: the two files are mostly replaced one after the other.
    fn look(&self, watch: Watch) -> Watch {
        let stamps = self.files.stamps();
        if stamps == watch.seen {
            return watch;
        }
        match self.files.load() {
            Ok(certificate) => {
                self.current.set(certificate);
                tracing::info!(expires = self.expires(), "certificate loaded again");
                Watch { seen: stamps, failed: None, is_reported: false }
            }
            Err(error) => {
                let is_again = watch.failed.as_ref() == Some(&stamps);
                if is_again && !watch.is_reported {
                    tracing::error!(error, "the new certificate can't be used; the old one stays");
                }
                Watch { seen: watch.seen, failed: Some(stamps), is_reported: is_again }
            }
        }
    }

    fn expires(&self) -> Option<String> {
        self.certificate().and_then(|certificate| expiry(&certificate))
    }
}

/// The versions of the files that were seen.
struct Watch {
    /// Their stamps when they were loaded.
    seen: [Option<Stamp>; 2],
    /// Their stamps when loading failed, if it failed since.
    failed: Option<[Option<Stamp>; 2]>,
    /// That failure is in the log.
    is_reported: bool,
}

impl Files {
    fn load(&self) -> Result<CertifiedKey, String> {
        let Self { certificate, key } = self;
        let (certificate_name, key_name) = (certificate.display(), key.display());
        let failed =
            |error: &dyn std::fmt::Display| format!("The certificate in {certificate_name} can't be read: {error}.");
        let text = read(certificate, false).map_err(|error| failed(&error))?;
        let chain =
            CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>().map_err(|error| failed(&error))?;
        if chain.is_empty() {
            return Err(format!(
                "{certificate_name} contains no certificate. Name a file in PEM format, with -----BEGIN CERTIFICATE----- \
                 in it, as --tls-cert."
            ));
        }
        let failed = |error: &dyn std::fmt::Display| format!("The key in {key_name} can't be read: {error}.");
        let text = read(key, true).map_err(|error| failed(&error))?;
        let private = PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
            pem::Error::NoItemsFound if text.windows(9).any(|word| word == b"ENCRYPTED") => format!(
                "The key in {key_name} needs a password. Write it without one: openssl pkey -in {key_name} -out FILE."
            ),
            pem::Error::NoItemsFound => format!(
                "{key_name} contains no private key. Name a file in PEM format, with -----BEGIN PRIVATE KEY----- in it, as \
                 --tls-key."
            ),
            error => failed(&error),
        })?;
        CertifiedKey::from_der(chain, private, &ring::default_provider()).map_err(|error| match error {
            Error::InconsistentKeys(_) => format!(
                "The key in {key_name} does not belong to the certificate in {certificate_name}. The server's own \
                 certificate must be the first of that file."
            ),
            error @ Error::InvalidCertificate(_) => {
                format!("The certificate in {certificate_name} can't be used: {error}.")
            }
            error => format!("The key in {key_name} can't be used: {error}. Use an ECDSA, Ed25519 or RSA key."),
        })
    }

    fn stamps(&self) -> [Option<Stamp>; 2] {
        [&self.certificate, &self.key].map(|path| {
            let metadata = path.metadata().ok()?;
            #[cfg(unix)]
            let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
            #[cfg(not(unix))]
            let inode = 0;
            Some(Stamp { changed: metadata.modified().ok(), bytes: metadata.len(), inode })
        })
    }
}

/// Reads a file. One that is secret must not be readable by every user of the machine.
fn read(path: &Path, is_secret: bool) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    #[cfg(unix)]
    if is_secret {
        let metadata = file.metadata().map_err(|error| error.to_string())?;
        // Groups are left alone: some systems share keys by a group of their own.
        if std::os::unix::fs::MetadataExt::mode(&metadata) & 0o007 != 0 {
            return Err(format!(
                "every user of this machine has access to it. Restrict it: chmod 600 {}",
                path.display()
            ));
        }
    }
    #[cfg(not(unix))]
    let _ = is_secret;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Answers a request without TLS.
async fn answer_plain(mut socket: TcpStream) {
    let answer = format!(
        "HTTP/1.1 426 Upgrade Required\r\nUpgrade: TLS/1.2, HTTP/1.1\r\nConnection: Upgrade, close\r\n\
         Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\nContent-Length: {}\r\n\r\n{PLAIN}",
        PLAIN.len()
    );
    // A client that has gone needs no answer.
    if socket.write_all(answer.as_bytes()).await.is_ok() && socket.shutdown().await.is_ok() {
        let (mut buffer, mut total) = ([0; 4096], 0);
        while total < PLAIN_BYTES
            && let Ok(count @ 1..) = socket.read(&mut buffer).await
        {
            total += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Instant;

    use axum::Router;
    use rcgen::{CertificateParams, KeyPair};
    use rustls::ClientConfig;
    use rustls::pki_types::ServerName;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsConnector;
    use trace::limits::ServerLimits;

    use super::super::connections::serve;
    use super::*;

    /// Starts a server with TLS that gives clients a second for their heads. Returns its address, its certificate, and the
    /// folder of its files.
    async fn start(connections: usize) -> (SocketAddr, CertificateDer<'static>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["box".to_owned()]).unwrap().self_signed(&key).unwrap();
        let files = [folder.path().join("server.pem"), folder.path().join("server.key")];
        for (path, text) in files.iter().zip([certificate.pem(), key.serialize_pem()]) {
            std::fs::write(path, text).unwrap();
            #[cfg(unix)]
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        }
        let tls = Arc::new(Tls::load(&files[0], &files[1]).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = ServerLimits { head_seconds: 1, connections, ..ServerLimits::default() };
        let router = Router::new().route("/", axum::routing::get(|| async { "well" }));
        tokio::spawn(serve(listener, router, limits, (Some(tls), Arc::default()), std::future::pending()));
        (address, certificate.der().clone(), folder)
    }

    async fn connect(
        address: SocketAddr,
        certificate: &CertificateDer<'static>,
    ) -> impl AsyncReadExt + AsyncWriteExt + Unpin {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let config = Arc::new(builder.with_root_certificates(roots).with_no_client_auth());
        let socket = TcpStream::connect(address).await.unwrap();
        TlsConnector::from(config).connect(ServerName::try_from("box").unwrap(), socket).await.unwrap()
    }

    /// Sends bytes, a few at a time, until the server ends the connection. Returns how long that took.
    async fn until_cut(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin, bytes: &[u8]) -> Duration {
        let begun = Instant::now();
        let mut left = bytes.chunks(4);
        let mut buffer = [0; 1024];
        loop {
            let read = tokio::time::timeout(Duration::from_millis(20), stream.read(&mut buffer));
            if let Ok(Ok(0) | Err(_)) = read.await {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "the connection stayed open");
            if let Some(piece) = left.next() {
                // The server may have gone.
                let _ = stream.write_all(piece).await;
                let _ = stream.flush().await;
            }
        }
    }

    #[tokio::test]
    async fn a_handshake_takes_no_longer_than_a_head_may() {
        let (address, certificate, _folder) = start(100).await;
        // The beginning of a ClientHello of 16 KiB, whose rest comes slowly.
        let hello = [&[0x16, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc, 3, 3][..], &[7; 4000]].concat();
        for bytes in [&[][..], &hello[..1], &hello[..5], &hello] {
            let socket = TcpStream::connect(address).await.unwrap();
            let took = until_cut(socket, bytes).await;
            assert!((900..3_000).contains(&took.as_millis()), "{took:?} for {} bytes", bytes.len());
        }
        // A head that is not finished after a quick handshake.
        let took = until_cut(connect(address, &certificate).await, b"GET / HTTP/1.1\r\nHost: b").await;
        assert!(took.as_millis() < 3_000, "{took:?}");
        // A request without TLS that is not finished either.
        let took = until_cut(TcpStream::connect(address).await.unwrap(), &[b'x'; 400]).await;
        assert!(took.as_millis() < 3_000, "{took:?}");
    }

    #[tokio::test]
    async fn silent_handshakes_keep_new_clients_out_no_longer_than_a_head_may_take() {
        let (address, certificate, _folder) = start(4).await;
        let mut silent = Vec::new();
        for _ in 0..4 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        // Refused at once, without a handshake.
        let took = until_cut(TcpStream::connect(address).await.unwrap(), &[]).await;
        assert!(took.as_millis() < 900, "{took:?}");
        for socket in silent {
            assert!(until_cut(socket, &[]).await.as_millis() < 3_000);
        }
        let mut honest = connect(address, &certificate).await;
        honest.write_all(b"GET / HTTP/1.1\r\nHost: box\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        honest.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("well"), "{answer}");
    }
}
