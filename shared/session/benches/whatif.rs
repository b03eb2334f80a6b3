//! Measures what-if: reading a trace's requests, the self-check, runs, the smallest capacity, and a search for settings.
//!
//! `cargo bench -p session --bench whatif -- FILE...` prints a line for each part: its time, and what it comes to.

mod support;

use std::time::Instant;

use allocator::{AllocatorConfig, Profile};
use format::import::Imported;
use replay::Replay;
use trace::units::{Bytes, Count};
use whatif::tune::{Goal, Search, Tried};
use whatif::{Requests, Terms};

fn main() {
    for file in support::files() {
        println!("{file}");
        match support::import(&file) {
            Ok(imported) => measure(imported),
            Err(error) => println!("  {error}"),
        }
    }
}

/// Prints how long something took, and returns what it came to.
fn timed<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    println!("  {name:<34} {:>9.1} ms", start.elapsed().as_secs_f64() * 1e3);
    result
}

fn measure(Imported { mut snapshot, .. }: Imported) {
    let Some(trace) = snapshot.devices.iter().max_by_key(|trace| trace.events.len()) else { return };
    let conf = snapshot.settings.conf.clone();
    let replay = timed("replay", || Replay::build(trace, &mut snapshot.tags, &snapshot.settings));
    let tables = (&snapshot.symbols, &snapshot.tags);
    let requests = timed("requests", || Requests::of(trace, tables, &replay, &snapshot.settings));
    println!("  {} requests in {}", Count(requests.len() as u64), Bytes(requests.memory() as u64));
    let baseline = match timed("self-check", || {
        requests.baseline(&Profile::candidates(&snapshot.settings, &snapshot.marks), &conf)
    }) {
        Ok(baseline) => baseline,
        Err(error) => return println!("  {error}"),
    };
    println!("  {} as recorded", Count(baseline.check.equal));
    let capacity = requests.capacity();
    let terms = |conf: &str| {
        let terms =
            Terms::ample(baseline.profile, AllocatorConfig::from_conf(conf, baseline.profile).unwrap_or_default());
        capacity.map_or(terms.clone(), |capacity| terms.on(capacity))
    };
    for conf in ["", "expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:8"] {
        let _ = timed(&format!("run {conf}"), || requests.run(&terms(conf)));
    }
    let _ = timed("smallest capacity", || requests.smallest_capacity(&terms("")));
    let (mut search, mut tried) = (Search::new(baseline.profile, Goal::Reserved, false), Vec::new());
    let start = Instant::now();
    loop {
        let round = search.round(&tried);
        if round.is_empty() {
            break;
        }
        for candidate in round {
            if let Ok(outcome) = requests.run(&terms(&candidate.conf(&conf))) {
                tried.push(Tried { candidate, outcome });
            }
        }
    }
    let each = start.elapsed().as_secs_f64() * 1e3 / tried.len().max(1) as f64;
    println!("  {:<34} {each:>9.1} ms, on one core", format!("each of {} settings", tried.len()));
}
