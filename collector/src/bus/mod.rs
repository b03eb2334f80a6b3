//! From a session's collector to its viewers, while it happens.
//!
//! A bus forgets: who comes late or can't follow reads from the store. Publishing never waits. Everything above reaches a
//! bus through [`LiveBus`] alone.

mod local;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use local::LocalBus;

/// A batch, as every viewer gets it.
#[derive(Debug)]
pub struct Published {
    /// Its number.
    pub seq: u64,
    /// The whole wire frame.
    pub frame: Vec<u8>,
    /// Where it ends in the store: the segment's number, and the byte behind it.
    pub end: (u32, u64),
}

/// What a subscriber hears.
#[derive(Clone, Debug)]
pub enum Heard {
    /// The next batch.
    Batch(Arc<Published>),
    /// Some are missing here, for the subscriber was too slow; the next one comes from behind them.
    Gap,
}

/// A subscription; dropping it ends it.
pub trait Subscription: Send {
    /// What comes next. Dropping the future loses nothing.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Heard> + Send + '_>>;
}

/// Carries batches from who stores them to who watches.
pub trait LiveBus: Send + Sync + fmt::Debug {
    /// Whether anyone listens to a session.
    fn is_heard(&self, session: &str) -> bool;
    /// Hands a batch on. Batches of one session are published in order.
    fn publish(&self, session: &str, batch: &Arc<Published>);
    /// Every batch from now on.
    fn subscribe(&self, session: &str) -> Box<dyn Subscription>;
}
