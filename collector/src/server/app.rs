//! What every route knows.

use std::sync::Arc;

use shared::limits::ServerLimits;

use super::host::Hosts;
use crate::ingest::Sessions;

/// See the module. Clones are the same.
#[derive(Clone, Debug)]
pub struct App {
    /// The sessions.
    pub sessions: Arc<Sessions>,
    /// The names that this server answers to.
    pub hosts: Arc<Hosts>,
}

impl App {
    /// With these sessions, by these names.
    pub fn new(sessions: Sessions, hosts: Hosts) -> Self {
        Self { sessions: Arc::new(sessions), hosts: Arc::new(hosts) }
    }

    /// The bounds.
    pub fn limits(&self) -> &ServerLimits {
        self.sessions.limits()
    }
}
