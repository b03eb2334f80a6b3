//! Passes batches from the ingest to the viewers of a session as they are stored.
//!
//! A bus keeps no history: viewers that join late or fall behind read from the store. Publishing never waits.
//! Everything else reaches a bus through [`LiveBus`] alone.

mod local;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use local::LocalBus;

/// A batch, as it is sent to every viewer.
#[derive(Debug)]
pub struct Published {
    /// Its number.
    pub seq: u64,
    /// The whole wire message.
    pub message: Vec<u8>,
    /// Where it ends in the store: the number of the log segment, and the offset after it.
    pub end: (u32, u64),
}

/// What a subscriber receives.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// The next batch.
    Batch(Arc<Published>),
    /// Batches were dropped here because the subscriber was too slow; the next one follows them.
    Lagged,
}

/// A subscription to a session; ends when it is dropped.
pub trait Subscription: Send {
    /// Waits for the next delivery. Cancel-safe: dropping the future loses nothing.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Delivery> + Send + '_>>;
}

/// Carries stored batches to viewers.
pub trait LiveBus: Send + Sync + fmt::Debug {
    /// Whether a session has subscribers.
    fn has_subscribers(&self, session: &str) -> bool;
    /// Publishes a batch. Batches of one session must be published in order.
    fn publish(&self, session: &str, batch: &Arc<Published>);
    /// Subscribes to a session's batches from now on.
    fn subscribe(&self, session: &str) -> Box<dyn Subscription>;
}
