//! Sends a recording to a server while it is made, without ever making the job wait.
//!
//! ```text
//! recorder's thread                              the publisher's threads
//! PublisherOutput ─► queue of batches ─────────► sender ═══► server
//!                    memory, then files   acks ◄ reader ◄═══
//! ```
//! Whole chunks are gathered into numbered batches, which are kept until the server acknowledges that it has stored
//! them. After a lost connection they are sent again, from the batch that the server names. While a server is away or
//! slow, batches wait in memory up to a bound, then on disk up to a bound; beyond that the recorder drops events and
//! counts them as lost. The protocol is [`wire`].
//!
//! Imports go one way: [`Publisher`] → `sender` → `socket` and `post` (`post` → `http`) → `client` → `state` →
//! `queue` → `spool`. `client` and `http` use `stream`, and `client`, `stream` and `destination` use `trust`. `handle` and
//! `output` are the two other ends of `state`. `stats`, `trust`, `backoff` and `rng` import no sibling.

mod backoff;
mod client;
mod destination;
mod handle;
mod http;
mod output;
mod post;
mod queue;
mod rng;
mod sender;
mod socket;
mod spool;
mod state;
mod stats;
mod stream;
mod trust;

use std::io;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use destination::{Destination, DestinationError};
pub use handle::{PublisherHandle, Receipt};
pub use output::PublisherOutput;
pub use stats::{Cause, PublisherStats};
use trace::limits::PublishLimits;

use self::backoff::Backoff;
use self::client::{Client, ClientTls};
use self::queue::Queue;
use self::sender::Sender;
use self::spool::Spool;
use self::state::SharedState;

/// Why a publisher cannot start.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The operating system provides no random bytes, so the session cannot be named.
    #[error("Cannot name the session: the system provides no random bytes ({0}).")]
    Random(String),
    /// No server can be verified, or not the one of the address.
    #[error("{0}")]
    Trust(String),
    /// The sender's thread cannot be started.
    #[error("Cannot start the publisher's thread: {0}.")]
    Thread(io::Error),
}

impl From<getrandom::Error> for PublishError {
    fn from(error: getrandom::Error) -> Self {
        Self::Random(error.to_string())
    }
}

/// Sends what a recorder writes to a server.
#[derive(Debug)]
pub struct Publisher;

impl Publisher {
    /// Starts a session. Pass the output to [`crate::Recorder::start_to`], alone or together with a file. The publisher
    /// connects as soon as it has the recording's header; a server that cannot be reached is not an error.
    pub fn start(
        destination: Destination,
        limits: PublishLimits,
    ) -> Result<(PublisherOutput, PublisherHandle), PublishError> {
        let tls = ClientTls::of(&destination).map_err(PublishError::Trust)?;
        let (session, key) = (rng::random_name()?, rng::random_name()?);
        let backoff = Backoff::new(&limits, rng::random_seed()?);
        // Not the session's name: other users may be able to list the folder.
        let spool = Spool::new(destination.spool.clone(), &rng::random_name()?, limits.spool_file_bytes);
        let (ask_sender, ask_receiver) = mpsc::sync_channel(limits.asks);
        let shared = Arc::new(SharedState::new(Queue::new(limits, spool), ask_sender));
        let client = Client { shared: Arc::clone(&shared), destination, session: session.clone(), key, limits, tls };
        let sender = Sender { client, backoff };
        let builder = std::thread::Builder::new().name("vramscope-publisher".to_owned());
        let thread = builder.spawn(move || sender.run()).map_err(PublishError::Thread)?;
        let drop_time = Duration::from_millis(limits.drop_millis);
        let handle = PublisherHandle {
            shared: Arc::clone(&shared),
            session,
            asks: Mutex::new(Some(ask_receiver)),
            thread: Some(thread),
            drop_time,
        };
        Ok((PublisherOutput { shared, is_first: true, events: 0 }, handle))
    }
}
