//! Rounds of random tests: some, always the same, in `tests/run`; others, for some time, in `just soak`.
//!
//! `VRAMSCOPE_SOAK_SECONDS` is the time that each of these tests goes on. `VRAMSCOPE_SOAK_SEED` is the seed of its first
//! round: a failed test prints that of its last round, and repeats it alone if it is given that seed and no time.

use std::time::{Duration, Instant, SystemTime};

const SECONDS: &str = "VRAMSCOPE_SOAK_SECONDS";
const SEED: &str = "VRAMSCOPE_SOAK_SEED";

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Returns the time that a test shall go on; `None` in `tests/run`.
pub fn time() -> Option<Duration> {
    number(SECONDS).map(Duration::from_secs)
}

/// Returns the seeds of a test's rounds: `few` of them, or as many as there is time for.
pub fn rounds(few: u64) -> impl Iterator<Item = u64> {
    let end = time().map(|time| Instant::now() + time);
    let random = SystemTime::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_secs());
    let first = number(SEED).unwrap_or(if end.is_some() { random } else { 1 });
    let most = match (end, number(SEED)) {
        (Some(_), _) => u64::MAX,
        (None, Some(_)) => 1,
        (None, None) => few,
    };
    (0..most).take_while(move |round| *round == 0 || end.is_none_or(|end| Instant::now() < end)).map(move |round| {
        let seed = first.wrapping_add(round);
        println!("round {}: {SEED}={seed}", round + 1);
        seed
    })
}
