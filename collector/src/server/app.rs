//! What every route knows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use shared::limits::ServerLimits;

use super::demo::Demo;
use super::host::Hosts;
use crate::ingest::Sessions;

/// See the module. Clones are the same.
#[derive(Clone)]
pub struct App {
    /// The sessions.
    pub sessions: Arc<Sessions>,
    /// The names that this server answers to.
    pub(super) hosts: Arc<Hosts>,
    pub(super) demo: Arc<Demo>,
    /// Where the server reaches itself; `None` where it listens nowhere.
    pub(super) address: Option<SocketAddr>,
    /// For the server's own demo.
    pub(super) token: Option<Arc<str>>,
}

impl App {
    /// With these sessions, by these names.
    pub fn new(sessions: Sessions, hosts: Hosts) -> Self {
        Self {
            sessions: Arc::new(sessions),
            hosts: Arc::new(hosts),
            demo: Arc::default(),
            address: None,
            token: None,
        }
    }

    /// Listens at an address, and has this token: its demo needs both.
    #[must_use]
    pub fn at(mut self, address: SocketAddr, token: Option<&str>) -> Self {
        // All addresses of a machine are no place to connect to; its own loopback is one of them.
        let ip = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        self.address = Some(SocketAddr::new(ip, address.port()));
        self.token = token.map(Arc::from);
        self
    }

    /// The bounds.
    pub fn limits(&self) -> &ServerLimits {
        self.sessions.limits()
    }
}
