//! The bus of one process.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use super::{Heard, LiveBus, Published, Subscription};

/// Hands batches to subscribers in this process. Each has a queue of its own, with a bound in bytes; one that fills is
/// emptied, and its owner told.
#[derive(Debug)]
pub struct LocalBus {
    bytes: usize,
    sessions: Mutex<HashMap<String, Vec<Weak<Queue>>>>,
}

#[derive(Debug, Default)]
struct Queue {
    held: Mutex<Held>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Held {
    batches: VecDeque<Arc<Published>>,
    bytes: usize,
    has_gap: bool,
}

impl LocalBus {
    /// With so many bytes on their way to each subscriber.
    pub fn new(bytes: usize) -> Self {
        Self { bytes, sessions: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Weak<Queue>>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, batch: &Arc<Published>, limit: usize) {
        let mut held = self.lock();
        held.bytes += batch.frame.len();
        held.batches.push_back(Arc::clone(batch));
        // A batch that is larger than the bound by itself goes alone.
        if held.bytes > limit && held.batches.len() > 1 {
            *held = Held { has_gap: true, ..Held::default() };
        }
        drop(held);
        self.news.notify_one();
    }

    fn take(&self) -> Option<Heard> {
        let mut held = self.lock();
        if std::mem::take(&mut held.has_gap) {
            return Some(Heard::Gap);
        }
        let batch = held.batches.pop_front()?;
        held.bytes -= batch.frame.len();
        Some(Heard::Batch(batch))
    }
}

impl LiveBus for LocalBus {
    fn is_heard(&self, session: &str) -> bool {
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
        // Of a session that is silent nobody would ever clear away who has left.
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(&queue));
        Box::new(LocalSubscription(queue))
    }
}

struct LocalSubscription(Arc<Queue>);

impl Subscription for LocalSubscription {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Heard> + Send + '_>> {
        Box::pin(async {
            loop {
                // One who is told between the look and the wait is not forgotten: `notify_one` leaves a permit.
                if let Some(heard) = self.0.take() {
                    return heard;
                }
                self.0.news.notified().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "abc";

    fn batch(seq: u64, bytes: usize) -> Arc<Published> {
        Arc::new(Published { seq, frame: vec![0; bytes], end: (1, seq) })
    }

    async fn heard(subscription: &mut Box<dyn Subscription>) -> Option<u64> {
        match subscription.next().await {
            Heard::Batch(batch) => Some(batch.seq),
            Heard::Gap => None,
        }
    }

    #[tokio::test]
    async fn each_subscriber_hears_its_session_in_order() {
        let bus = LocalBus::new(100);
        bus.publish(SESSION, &batch(1, 10));
        assert!(!bus.is_heard(SESSION));
        let (mut one, mut other) = (bus.subscribe(SESSION), bus.subscribe("else"));
        assert!(bus.is_heard(SESSION));
        for seq in 2..5 {
            bus.publish(SESSION, &batch(seq, 10));
        }
        bus.publish("else", &batch(7, 10));
        assert_eq!((heard(&mut one).await, heard(&mut other).await), (Some(2), Some(7)));
        assert_eq!((heard(&mut one).await, heard(&mut one).await), (Some(3), Some(4)));
        drop(one);
        bus.publish(SESSION, &batch(5, 10));
        assert!(!bus.is_heard(SESSION));
    }

    #[tokio::test]
    async fn who_is_too_slow_hears_of_a_gap_and_no_one_else_does() {
        let bus = LocalBus::new(100);
        let (mut slow, mut quick) = (bus.subscribe(SESSION), bus.subscribe(SESSION));
        for seq in 1..=11 {
            bus.publish(SESSION, &batch(seq, 10));
            assert_eq!(heard(&mut quick).await, Some(seq));
        }
        bus.publish(SESSION, &batch(12, 10));
        assert_eq!((heard(&mut slow).await, heard(&mut slow).await), (None, Some(12)));
        // One that is larger than the bound comes all the same.
        bus.publish(SESSION, &batch(13, 1_000));
        assert_eq!(heard(&mut slow).await, Some(13));
    }

    #[tokio::test]
    async fn who_waits_is_woken() {
        let bus = Arc::new(LocalBus::new(100));
        let mut waits = bus.subscribe(SESSION);
        let publisher = Arc::clone(&bus);
        let task = tokio::spawn(async move {
            tokio::task::yield_now().await;
            publisher.publish(SESSION, &batch(1, 1));
        });
        assert_eq!(heard(&mut waits).await, Some(1));
        task.await.unwrap();
    }
}
