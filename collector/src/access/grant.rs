//! The rights of a request or a connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::entry::ANYONE;
use super::seat::Seat;
use super::token::Token;
use super::{Denied, Quotas, Role, Roles};

/// The time between two looks at whether a token has expired.
const EXPIRY_CHECK: Duration = Duration::from_secs(1);

/// A token that was checked, and what it permits now. Clones stand for the same token.
#[derive(Clone, Debug)]
pub struct Grant(Arc<Token>);

impl Grant {
    pub(super) fn new(token: Arc<Token>) -> Self {
        Self(token)
    }

    /// Returns the name of the token: the producer of the sessions that are sent with it. It is `open` on a server that was
    /// given no tokens, and `default` on a server with one.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the roles of the token.
    pub fn roles(&self) -> Roles {
        self.0.terms.borrow().roles
    }

    /// Returns the quotas of the token.
    pub fn quotas(&self) -> Quotas {
        self.0.terms.borrow().quotas
    }

    /// Checks that the token is still valid and has a role.
    pub fn check(&self, role: Role) -> Result<(), Denied> {
        self.check_validity()?;
        match self.roles().permit(role) {
            true => Ok(()),
            false if self.is_open() => Err(Denied::Secret),
            false => Err(Denied::Role(role)),
        }
    }

    /// Checks that the token is still valid and may pin and delete sessions: it has the role `admin`, or the server was given
    /// no tokens.
    pub fn check_managing(&self) -> Result<(), Denied> {
        if self.is_open() { self.check_validity() } else { self.check(Role::Admin) }
    }

    /// Whether the server was given no tokens.
    fn is_open(&self) -> bool {
        self.name() == ANYONE
    }

    /// Checks that the token is neither revoked nor expired.
    pub(super) fn check_validity(&self) -> Result<(), Denied> {
        let terms = *self.0.terms.borrow();
        if terms.is_revoked {
            return Err(Denied::Revoked);
        }
        match terms.expires_us {
            Some(expires_us) if (self.0.clock)() >= expires_us => Err(Denied::Expired),
            _ => Ok(()),
        }
    }

    /// Waits until the token no longer permits a role. Dropping the future loses nothing.
    pub async fn ended(&self, role: Role) -> Denied {
        let mut terms = self.0.terms.subscribe();
        loop {
            if let Err(denied) = self.check(role) {
                return denied;
            }
            tokio::select! {
                // The sender lives as long as this grant.
                _ = terms.changed() => {}
                () = sleep(EXPIRY_CHECK) => {}
            }
        }
    }

    /// Counts a connection of a session as live until the seat is dropped, and for the time `linger` after that unless the
    /// session has ended.
    pub fn seat(&self, session: &str, linger: Duration) -> Result<Seat, Denied> {
        self.0.usage.enter(session, self.quotas(), Instant::now())?;
        Ok(Seat::new(Arc::clone(&self.0), session, linger))
    }

    /// Counts a session that begins, if the rate of new sessions permits it.
    pub fn begin_session(&self) -> Result<(), Denied> {
        self.0.usage.begin(&self.0.limits, Instant::now())
    }

    /// Counts events that arrived. Returns the time to wait before more are read, at most
    /// [`pause_seconds`](trace::limits::AccessLimits::pause_seconds).
    pub fn charge_events(&self, events: u64) -> Option<Duration> {
        let wait = self.0.usage.charge(events, self.quotas(), Instant::now())?;
        Some(wait.min(Duration::from_secs(self.0.limits.pause_seconds)))
    }
}
