//! The measurement on a GPU: each allocator gets the same calls, in turns, and each call is timed.
//!
//! No kernel runs, so that no stream is busy: what is measured is the time of the calls, and not how long they wait for work.
//! Streams of the recording become streams of the device, one for each.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use allocator::{AllocatorConfig, Profile};
use trace::units::{Address, Stream, counted};
use whatif::Call;

use super::contender::{Contender, create};
use super::measured::{Allocator, Calls, Durations, Measured};
use crate::cli::progress::Progress;
use recorder::cuda::Device;

/// The streams of the recording on a device, and one for uses by others. They are destroyed with the value.
struct Streams {
    device: Arc<Device>,
    known: HashMap<Stream, Stream>,
    other: Stream,
}

impl Streams {
    fn new(device: &Arc<Device>, calls: &Calls) -> Result<Self, String> {
        let create = || device.create_stream().map_err(|error| format!("The device failed: {error}."));
        let mut streams = Self { device: Arc::clone(device), known: HashMap::new(), other: create()? };
        for call in calls.start.iter().chain(&calls.calls) {
            if let Call::Allocate { stream, .. } = call
                && stream.0 != 0
                && !streams.known.contains_key(stream)
            {
                streams.known.insert(*stream, create()?);
            }
        }
        Ok(streams)
    }

    /// Returns the device's stream for one of the recording. The default one is the same everywhere.
    fn of(&self, stream: Stream) -> Stream {
        self.known.get(&stream).copied().unwrap_or_default()
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        for stream in self.known.values().copied().chain([self.other]) {
            // Fails only if the device failed before.
            let _ = self.device.destroy_stream(stream);
        }
    }
}

/// An allocation that is held.
#[derive(Clone, Copy)]
struct Held {
    address: Address,
    size: u64,
    stream: Stream,
}

/// What all rounds of one allocator come to.
#[derive(Default)]
struct Tally {
    allocate: Vec<u64>,
    free: Vec<u64>,
    totals: Vec<u64>,
    peak: u64,
    driver_calls: Option<u64>,
    failed: u64,
    unavailable: Option<String>,
}

/// Measures all allocators on a GPU. Returns its name, and what they come to.
pub(super) fn measure(
    ordinal: u32,
    rounds: u32,
    calls: &Calls,
    terms: (&'static Profile, &AllocatorConfig),
) -> Result<(String, Vec<Measured>), String> {
    let device = Device::open(ordinal).map_err(|error| format!("--driver cuda: {error}."))?;
    let name = device.name().unwrap_or_default();
    let streams = Streams::new(&device, calls)?;
    let mut tallies: Vec<(Allocator, Tally)> =
        Allocator::ALL.into_iter().map(|allocator| (allocator, Tally::default())).collect();
    let progress = Progress::new(format!("Running {}", counted(calls.requests, "request")));
    for round in 1..=rounds {
        for (allocator, tally) in &mut tallies {
            if tally.unavailable.is_some() {
                continue;
            }
            progress.show(|| format!("Round {round} of {rounds}: {}", allocator.name()));
            // A device without pools or unified memory still has the others.
            match create(*allocator, &device, terms) {
                Ok(mut contender) => tally.add(contender.as_mut(), calls, &streams)?,
                Err(why) => tally.unavailable = Some(why),
            }
        }
    }
    let measured = tallies.into_iter().map(|(allocator, tally)| tally.finish(allocator, calls.peak_requested));
    Ok((name, measured.collect()))
}

impl Tally {
    /// Runs the calls once.
    fn add(&mut self, contender: &mut dyn Contender, calls: &Calls, streams: &Streams) -> Result<(), String> {
        let mut held: Vec<Option<Held>> = vec![None; calls.numbers];
        let (mut now, mut most, mut total, mut failed) = (0u64, 0u64, 0u64, 0u64);
        let is_start = std::iter::repeat_n(true, calls.start.len()).chain(std::iter::repeat(false));
        for (call, is_start) in calls.start.iter().chain(&calls.calls).zip(is_start) {
            match *call {
                Call::Allocate { number, size, stream, .. } => {
                    let stream = streams.of(stream);
                    let begun = Instant::now();
                    let served = contender.allocate(size, stream);
                    let taken = begun.elapsed().as_nanos() as u64;
                    if !is_start {
                        self.allocate.push(taken);
                        total += taken;
                    }
                    let Some(address) = served? else {
                        failed += 1;
                        continue;
                    };
                    if let Some(place) = held.get_mut(number as usize) {
                        *place = Some(Held { address, size, stream });
                    }
                    now += size;
                    if now > most {
                        most = now;
                        contender.look()?;
                    }
                }
                Call::Free { number, is_used_elsewhere } => {
                    // One that was not served has nothing to free.
                    let Some(Held { address, size, stream }) = held.get_mut(number as usize).and_then(Option::take)
                    else {
                        continue;
                    };
                    let user = is_used_elsewhere.then_some(streams.other);
                    let begun = Instant::now();
                    let freed = contender.free(address, size, stream, user);
                    let taken = begun.elapsed().as_nanos() as u64;
                    freed?;
                    self.free.push(taken);
                    total += taken;
                    now -= size;
                }
                Call::EmptyCache => {
                    let begun = Instant::now();
                    let emptied = contender.empty_cache();
                    total += begun.elapsed().as_nanos() as u64;
                    emptied?;
                }
            }
        }
        self.totals.push(total);
        self.failed = self.failed.max(failed);
        self.peak = self.peak.max(contender.peak_reserved()?);
        self.driver_calls = contender.driver_calls();
        // Nothing of this round may be left on the device in the next one.
        for Held { address, size, stream } in held.into_iter().flatten() {
            contender.free(address, size, stream, None)?;
        }
        contender.empty_cache()
    }

    fn finish(mut self, allocator: Allocator, peak_requested: u64) -> Measured {
        let unknown = Measured::unknown(allocator, peak_requested);
        if self.unavailable.is_some() {
            return Measured { unavailable: self.unavailable, ..unknown };
        }
        let measured = Measured {
            driver_calls: self.driver_calls,
            failed: self.failed,
            allocate: Durations::of(&mut self.allocate),
            free: Durations::of(&mut self.free),
            totals_ns: self.totals,
            ..unknown
        };
        measured.reserved(self.peak)
    }
}
