//! The bus of one process.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use tokio::sync::Notify;

use super::{Delivery, LiveBus, Published, Subscription};
use crate::brief_lock::{BriefGuard, BriefLock};

/// Passes batches to subscribers in this process. Each has its own queue, limited in bytes; a queue that overflows is
/// emptied, and its subscriber gets a notice.
#[derive(Debug)]
pub struct LocalBus {
    bytes: usize,
    sessions: BriefLock<HashMap<String, Vec<Weak<Queue>>>>,
}

#[derive(Debug, Default)]
struct Queue {
    pending: BriefLock<Pending>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    batches: VecDeque<Arc<Published>>,
    bytes: usize,
    has_lagged: bool,
}

impl LocalBus {
    /// Creates a bus whose queues hold up to `bytes` each.
    pub fn new(bytes: usize) -> Self {
        Self { bytes, sessions: BriefLock::default() }
    }

    fn lock(&self) -> BriefGuard<'_, HashMap<String, Vec<Weak<Queue>>>> {
        self.sessions.lock()
    }
}

impl Queue {
    fn lock(&self) -> BriefGuard<'_, Pending> {
        self.pending.lock()
    }

    fn push(&self, batch: &Arc<Published>, limit: usize) {
        let mut pending = self.lock();
        pending.bytes += batch.message.len();
        pending.batches.push_back(Arc::clone(batch));
        // A batch that exceeds the limit by itself is queued alone.
        if pending.bytes > limit && pending.batches.len() > 1 {
            *pending = Pending { has_lagged: true, ..Pending::default() };
        }
        drop(pending);
        self.changed.notify_one();
    }

    fn pop(&self) -> Option<Delivery> {
        let mut pending = self.lock();
        if std::mem::take(&mut pending.has_lagged) {
            return Some(Delivery::Lagged);
        }
        let batch = pending.batches.pop_front()?;
        pending.bytes -= batch.message.len();
        Some(Delivery::Batch(batch))
    }
}

impl LiveBus for LocalBus {
    fn has_subscribers(&self, session: &str) -> bool {
        self.lock().contains_key(session)
    }

    fn publish(&self, session: &str, batch: &Arc<Published>) {
        let mut sessions = self.lock();
        let Some(queues) = sessions.get_mut(session) else { return };
        queues.retain(|queue| {
            queue.upgrade().is_some_and(|queue| {
                queue.push(batch, self.bytes);
                true
            })
        });
        if queues.is_empty() {
            sessions.remove(session);
        }
    }

    fn subscribe(&self, session: &str) -> Box<dyn Subscription> {
        let queue = Arc::new(Queue::default());
        let mut sessions = self.lock();
        let queues = sessions.entry(session.to_owned()).or_default();
        // Publishing removes dropped subscriptions, but a silent session never publishes.
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(&queue));
        Box::new(LocalSubscription(queue))
    }
}

struct LocalSubscription(Arc<Queue>);

impl Subscription for LocalSubscription {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Delivery> + Send + '_>> {
        Box::pin(async {
            loop {
                // A notification between the check and the wait is not lost: `notify_one` leaves a permit.
                if let Some(delivery) = self.0.pop() {
                    return delivery;
                }
                self.0.changed.notified().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "abc";

    fn batch(seq: u64, bytes: usize) -> Arc<Published> {
        Arc::new(Published { seq, message: vec![0; bytes], end: (1, seq) })
    }

    async fn next_seq(subscription: &mut Box<dyn Subscription>) -> Option<u64> {
        match subscription.next().await {
            Delivery::Batch(batch) => Some(batch.seq),
            Delivery::Lagged => None,
        }
    }

    #[tokio::test]
    async fn each_subscriber_receives_its_session_in_order() {
        let bus = LocalBus::new(100);
        bus.publish(SESSION, &batch(1, 10));
        assert!(!bus.has_subscribers(SESSION));
        let (mut one, mut other) = (bus.subscribe(SESSION), bus.subscribe("else"));
        assert!(bus.has_subscribers(SESSION));
        for seq in 2..5 {
            bus.publish(SESSION, &batch(seq, 10));
        }
        bus.publish("else", &batch(7, 10));
        assert_eq!((next_seq(&mut one).await, next_seq(&mut other).await), (Some(2), Some(7)));
        assert_eq!((next_seq(&mut one).await, next_seq(&mut one).await), (Some(3), Some(4)));
        drop(one);
        bus.publish(SESSION, &batch(5, 10));
        assert!(!bus.has_subscribers(SESSION));
    }

    #[tokio::test]
    async fn only_a_slow_subscriber_gets_a_notice() {
        let bus = LocalBus::new(100);
        let (mut slow, mut quick) = (bus.subscribe(SESSION), bus.subscribe(SESSION));
        for seq in 1..=11 {
            bus.publish(SESSION, &batch(seq, 10));
            assert_eq!(next_seq(&mut quick).await, Some(seq));
        }
        bus.publish(SESSION, &batch(12, 10));
        assert_eq!((next_seq(&mut slow).await, next_seq(&mut slow).await), (None, Some(12)));
        // A batch that exceeds the limit is delivered nevertheless.
        bus.publish(SESSION, &batch(13, 1_000));
        assert_eq!(next_seq(&mut slow).await, Some(13));
    }

    #[tokio::test]
    async fn a_waiting_subscriber_is_woken() {
        let bus = Arc::new(LocalBus::new(100));
        let mut waits = bus.subscribe(SESSION);
        let publisher = Arc::clone(&bus);
        let task = tokio::spawn(async move {
            tokio::task::yield_now().await;
            publisher.publish(SESSION, &batch(1, 1));
        });
        assert_eq!(next_seq(&mut waits).await, Some(1));
        task.await.unwrap();
    }
}
