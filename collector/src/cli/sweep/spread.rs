//! Work that is spread over all cores.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Returns how many pieces of work run at once.
pub(in crate::cli) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Runs `work` for each number below `count`, and returns the results in that order.
pub(in crate::cli) fn spread<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(count));
    let take = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let result = work(number);
            // A worker that panicked ends the program when the scope ends.
            if let Ok(mut results) = results.lock() {
                results.push((number, result));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..cores().min(count) {
            scope.spawn(take);
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order() {
        assert_eq!(spread(100, |i| i * i), (0..100).map(|i| i * i).collect::<Vec<_>>());
        assert_eq!(spread(0, |i| i), Vec::<usize>::new());
    }
}
