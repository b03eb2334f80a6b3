//! The state that every route shares.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use trace::limits::ServerLimits;

use super::baselines::Baselines;
use super::demo::Demo;
use super::download_slots::DownloadSlots;
use super::embedding::Embedding;
use super::host::Hosts;
use super::local_files::LocalFiles;
use super::proxies::Proxies;
use super::readiness::Readiness;
use super::tls::Tls;
use crate::ingest::Sessions;
use crate::shares::Shares;

/// The server's state. Clones share it.
#[derive(Clone)]
pub struct App {
    /// The sessions.
    pub sessions: Arc<Sessions>,
    /// The host names that this server answers to.
    pub(super) hosts: Arc<Hosts>,
    pub(super) demo: Arc<Demo>,
    /// The address at which the server reaches itself; `None` if it does not listen.
    pub(super) address: Option<SocketAddr>,
    pub(super) readiness: Arc<Readiness>,
    /// Downloads, by their number.
    pub(super) downloads: Arc<DownloadSlots>,
    /// Downloads as pickles, by the KiB that are stored.
    pub(super) pickles: Arc<DownloadSlots>,
    /// The traces that are shared by links; `None` if this server shares none.
    pub(super) shares: Option<Arc<Shares>>,
    /// The baselines that it keeps; `None` if it keeps none.
    pub(super) baselines: Option<Arc<Baselines>>,
    /// How connections are encrypted, if they are.
    pub(super) tls: Option<Arc<Tls>>,
    /// The proxies that are trusted.
    pub(super) proxies: Arc<Proxies>,
    /// The sites that may frame the page.
    pub(super) embedding: Arc<Embedding>,
    /// The files of this machine that the page may open.
    pub files: Arc<LocalFiles>,
}

impl App {
    /// Creates the state of a server that does not listen.
    pub fn new(sessions: Sessions, hosts: Hosts) -> Self {
        let limits = sessions.limits();
        Self {
            readiness: Arc::default(),
            downloads: Arc::new(DownloadSlots::new(limits.downloads, limits)),
            pickles: Arc::new(DownloadSlots::new(in_kib(limits.pickle_bytes), limits)),
            sessions: Arc::new(sessions),
            hosts: Arc::new(hosts),
            demo: Arc::default(),
            address: None,
            shares: None,
            baselines: None,
            tls: None,
            proxies: Arc::default(),
            embedding: Arc::default(),
            files: Arc::default(),
        }
    }

    /// Sets the address of the server, which its demo needs.
    #[must_use]
    pub fn at(mut self, address: SocketAddr) -> Self {
        // An unspecified address can't be connected to; it includes loopback.
        let ip = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        self.address = Some(SocketAddr::new(ip, address.port()));
        self
    }

    /// Shares traces by links.
    #[must_use]
    pub fn sharing(mut self, shares: Shares) -> Self {
        self.shares = Some(Arc::new(shares));
        self
    }

    /// Keeps baselines.
    #[must_use]
    pub fn keeping(mut self, baselines: Baselines) -> Self {
        self.baselines = Some(Arc::new(baselines));
        self
    }

    /// Encrypts every connection.
    #[must_use]
    pub fn encrypted(mut self, tls: Option<Tls>) -> Self {
        self.tls = tls.map(Arc::new);
        self
    }

    /// Trusts what these proxies say about the clients of their requests.
    #[must_use]
    pub fn behind(mut self, proxies: Proxies) -> Self {
        self.proxies = Arc::new(proxies);
        self
    }

    /// Lets sites show the page in a frame.
    #[must_use]
    pub fn framed_by(mut self, embedding: Embedding) -> Self {
        self.embedding = Arc::new(embedding);
        self
    }

    /// Returns the server's limits.
    pub fn limits(&self) -> &ServerLimits {
        self.sessions.limits()
    }
}

/// Returns bytes in KiB, at least one.
pub(super) fn in_kib(bytes: u64) -> usize {
    usize::try_from(bytes >> 10).unwrap_or(usize::MAX).max(1)
}
