//! TLS for tests: certificates made on the spot, a client that trusts them, and a proxy that decrypts.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned, SupportedProtocolVersion};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream as AsyncStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::http;

/// The name of a server on this machine, which its certificates are for.
pub const NAME: &str = "localhost";

/// An authority of its own.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM format.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// The files of a [`Pair`].
#[derive(Clone, Debug)]
pub struct PairFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

impl Authority {
    /// Creates an authority.
    pub fn new() -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "Authority of tests");
        Ok(Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate()?)? })
    }

    /// Writes its certificate into a folder. Returns the path.
    pub fn write(&self, folder: &Path) -> Result<PathBuf> {
        let path = folder.join("authority.pem");
        fs::write(&path, self.issuer.pem())?;
        Ok(path)
    }

    /// Issues a certificate for [`NAME`] and 127.0.0.1.
    pub fn issue(&self) -> Result<Pair> {
        self.issue_for(&[NAME, "127.0.0.1"], 2100)
    }

    /// Issues a certificate for names and addresses, until the beginning of a year.
    pub fn issue_for(&self, names: &[&str], until: i32) -> Result<Pair> {
        let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate()?;
        Ok(Pair { certificate: params.signed_by(&key, &self.issuer)?.pem(), key: key.serialize_pem() })
    }

    /// Returns a client that trusts this authority and no other.
    pub fn client(&self) -> Result<Arc<ClientConfig>> {
        self.client_of(rustls::ALL_VERSIONS)
    }

    /// Returns a client that speaks these versions of TLS.
    pub fn client_of(&self, versions: &[&'static SupportedProtocolVersion]) -> Result<Arc<ClientConfig>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone())?;
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_protocol_versions(versions)?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl Pair {
    /// Creates a certificate that signed itself, with an authority's mark, as `openssl req -x509` makes them.
    pub fn self_signed(names: &[&str]) -> Result<Self> {
        let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        Ok(Self { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem() })
    }

    /// Writes both files into a folder, each replaced in one step, the key readable by its owner only.
    pub fn write(&self, folder: &Path) -> Result<PairFiles> {
        let files = PairFiles { certificate: folder.join("server.pem"), key: folder.join("server.key") };
        for (path, text) in [(&files.certificate, &self.certificate), (&files.key, &self.key)] {
            let new = path.with_extension("new");
            fs::write(&new, text)?;
            #[cfg(unix)]
            fs::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
            fs::rename(new, path)?;
        }
        Ok(files)
    }

    /// Returns the certificate in DER.
    pub fn der(&self) -> Result<CertificateDer<'static>> {
        Ok(CertificateDer::from_pem_slice(self.certificate.as_bytes())?)
    }
}

impl PairFiles {
    /// Returns the arguments for a server.
    pub fn arguments(&self) -> Result<[&str; 4]> {
        let certificate = self.certificate.to_str().context("a path that is no text")?;
        let key = self.key.to_str().context("a path that is no text")?;
        Ok(["--tls-cert", certificate, "--tls-key", key])
    }
}

/// An encrypted connection.
pub type Encrypted = StreamOwned<ClientConnection, TcpStream>;

/// Connects to a server on this machine, and makes the handshake.
pub fn connect(server: SocketAddr, config: &Arc<ClientConfig>) -> Result<Encrypted> {
    let socket = TcpStream::connect(server)?;
    socket.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut stream = StreamOwned::new(ClientConnection::new(Arc::clone(config), ServerName::try_from(NAME)?)?, socket);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(stream)
}

/// Sends the bytes of a request, and reads to the end of the connection.
pub fn send(server: SocketAddr, config: &Arc<ClientConfig>, request: &[u8]) -> Result<http::Response> {
    let mut stream = connect(server, config)?;
    // The server may answer and close before it has read everything.
    let _ = stream.write_all(request);
    http::read(&mut stream)
}

/// Sends a GET request for `path` with further headers.
pub fn get(
    server: SocketAddr,
    config: &Arc<ClientConfig>,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<http::Response> {
    send(server, config, http::head("GET", server, path, headers).as_bytes())
}

/// Returns the certificate that a server presents.
pub fn presented(server: SocketAddr, config: &Arc<ClientConfig>) -> Result<CertificateDer<'static>> {
    let stream = connect(server, config)?;
    let certificates = stream.conn.peer_certificates().context("no certificate")?;
    Ok(certificates.first().context("an empty chain")?.clone().into_owned())
}

/// What a [`Middlebox`] does with requests for WebSockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sockets {
    /// It passes them on.
    Pass,
    /// It answers them with 403.
    Block,
}

/// A proxy that decrypts, as companies have them. It runs until it is dropped.
#[derive(Debug)]
pub struct Middlebox {
    address: SocketAddr,
    _runtime: tokio::runtime::Runtime,
}

impl Middlebox {
    /// Starts a proxy with a certificate. It connects to `server`, with TLS if a client's configuration is given.
    pub fn start(pair: &Pair, server: SocketAddr, client: Option<Arc<ClientConfig>>, sockets: Sockets) -> Result<Self> {
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![pair.der()?], key)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, client) = (acceptor.clone(), client.clone());
                tokio::spawn(async move {
                    // Connections break on purpose.
                    let _ = carry(acceptor, socket, server, client, sockets).await;
                });
            }
        });
        Ok(Self { address, _runtime: runtime })
    }

    /// Returns the address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Carries one connection.
async fn carry(
    acceptor: TlsAcceptor,
    socket: AsyncStream,
    server: SocketAddr,
    client: Option<Arc<ClientConfig>>,
    sockets: Sockets,
) -> Result<()> {
    let mut near = acceptor.accept(socket).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        ensure!(head.len() < 64 << 10, "an endless head");
        head.push(near.read_u8().await?);
    }
    let is_upgrade = String::from_utf8_lossy(&head).to_lowercase().contains("upgrade: websocket");
    if is_upgrade && sockets == Sockets::Block {
        near.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await?;
        return Ok(near.shutdown().await?);
    }
    let far = AsyncStream::connect(server).await?;
    match client {
        None => join(near, far, &head).await,
        Some(config) => {
            let far = TlsConnector::from(config).connect(ServerName::try_from(NAME)?, far).await?;
            join(near, far, &head).await
        }
    }
}

async fn join(
    mut near: impl AsyncRead + AsyncWrite + Unpin,
    mut far: impl AsyncRead + AsyncWrite + Unpin,
    head: &[u8],
) -> Result<()> {
    far.write_all(head).await?;
    far.flush().await?;
    tokio::io::copy_bidirectional(&mut near, &mut far).await?;
    Ok(())
}
