//! Who sent a request.

use std::net::{IpAddr, Ipv4Addr};

use super::{Denied, Grant};

/// The sender of a request or a connection: where it comes from, and what it may do as far as the request itself tells.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Its address.
    pub peer: IpAddr,
    /// What the request showed: a token; none yet (`Ok(None)`), so that it may come in the first message; or the reason why
    /// the sender may do nothing, whatever it shows.
    pub grant: Result<Option<Grant>, Denied>,
}

impl Caller {
    /// Creates a caller whose request showed a token.
    pub fn with(peer: IpAddr, grant: Grant) -> Self {
        Self { peer, grant: Ok(Some(grant)) }
    }

    /// Creates a caller that has shown no token yet.
    pub fn unknown(peer: IpAddr) -> Self {
        Self { peer, grant: Ok(None) }
    }

    /// Returns the name of its token; empty if it showed none.
    pub fn name(&self) -> &str {
        match &self.grant {
            Ok(Some(grant)) => grant.name(),
            _ => "",
        }
    }
}

/// Returns a caller on this machine that has shown no token.
impl Default for Caller {
    fn default() -> Self {
        Self::unknown(Ipv4Addr::LOCALHOST.into())
    }
}
