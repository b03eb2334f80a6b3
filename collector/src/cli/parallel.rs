//! Work that is spread over all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Calls `work` for each of `items` on all cores, and returns the results in the order of the items. Calls `done` after each
/// item with the number of finished items.
pub(super) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync, done: impl Fn(usize) + Sync) -> Vec<R> {
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let workers = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((place, item)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|place| Some((place, items.get(place)?)))
                {
                    let result = work(item);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((place, result));
                    done(finished.fetch_add(1, Ordering::Relaxed) + 1);
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        let seen = AtomicUsize::new(0);
        let doubled = map(
            &items,
            |item| item * 2,
            |_| {
                seen.fetch_add(1, Ordering::Relaxed);
            },
        );
        assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert_eq!(seen.into_inner(), 100);
        assert!(map(&[0_u8; 0], |_| (), |_| ()).is_empty());
    }
}
