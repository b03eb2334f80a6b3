//! From the recorder to a server, without a job ever waiting for one.
//!
//! ```text
//! recorder's thread                              the publisher's threads
//! PublisherOutput ─► queue of batches ─────────► sender ═══► server
//!                    memory, then files   acks ◄ reader ◄═══
//! ```
//! Whole chunks are gathered into batches with numbers, and kept until the server says that it has them safely; after
//! a lost connection they are sent again from where it says. A server that is away, slow or hung costs memory up to a
//! bound, then disk up to a bound, and then events, which the recorder counts and draws as a gap. What the two sides
//! say to each other is [`shared::wire`].

mod backoff;
mod chance;
mod destination;
mod handle;
mod http;
mod output;
mod post;
mod queue;
mod sender;
mod socket;
mod spool;
mod state;

use std::io;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use destination::{Destination, DestinationError};
pub use handle::{PublisherHandle, PublisherStats};
pub use output::PublisherOutput;
use shared::limits::PublishLimits;

use self::backoff::Backoff;
use self::queue::Queue;
use self::sender::Sender;
use self::spool::Spool;
use self::state::Shared;

/// Why a publisher can't begin.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The operating system gives no chance to make a name of.
    #[error("No session can be named: the system gives no random bytes ({0}).")]
    Chance(String),
    /// The sender's thread can't be started.
    #[error("The publisher's thread can't be started: {0}.")]
    Thread(io::Error),
}

/// Sends what a recorder makes to a server.
#[derive(Debug)]
pub struct Publisher;

impl Publisher {
    /// Begins a session. The output goes to [`crate::recorder::Recorder::start_to`], alone or beside a file; the server
    /// is looked for as soon as the recording's header has come. That it is not there is no error.
    pub fn start(
        destination: Destination,
        limits: PublishLimits,
    ) -> Result<(PublisherOutput, PublisherHandle), PublishError> {
        let (session, key) = (chance::name()?, chance::name()?);
        let backoff = Backoff::new(&limits, chance::seed()?);
        // The files' name is none that the server knows: the folder may be for all to see.
        let spool = Spool::new(destination.spool.clone(), &chance::name()?, limits.spool_file_bytes);
        let (asked, asks) = mpsc::sync_channel(limits.asks);
        let shared = Arc::new(Shared::new(Queue::new(limits, spool), asked));
        let sender =
            Sender { shared: Arc::clone(&shared), destination, session: session.clone(), key, limits, backoff };
        let builder = std::thread::Builder::new().name("vramscope-publisher".to_owned());
        let thread = builder.spawn(move || sender.run()).map_err(PublishError::Thread)?;
        let drop_time = Duration::from_millis(limits.drop_millis);
        let handle = PublisherHandle {
            shared: Arc::clone(&shared),
            session,
            asks: Mutex::new(Some(asks)),
            thread: Some(thread),
            drop_time,
        };
        Ok((PublisherOutput { shared, is_first: true, events: 0 }, handle))
    }
}
