//! The caching allocator on the device and on a simulated one: the same requests must lead to the same steps, and every
//! block must keep its contents.

use std::sync::Arc;

use allocator::sim::{Placement, SimDriver};
use allocator::{AllocError, AllocatorConfig, DeviceAllocator, Driver, Profile, Request, TORCH_2_15, TraceEntry};
use anyhow::{Context, Result, bail, ensure};
use recorder::cuda::{CudaDriver, Device};
use trace::event::Action;
use trace::frames::StackId;
use trace::units::{Address, Bytes, Stream};

use crate::places::Places;
use crate::{MIB, budget, ensure_holds, plain};

/// Settings that each lead to other paths of the allocator.
const CONFS: [&str; 4] = [
    "",
    "expandable_segments:True",
    "max_split_size_mb:24,garbage_collection_threshold:0.7",
    "roundup_power2_divisions:4,expandable_segments:True",
];

/// The number of requests and frees with each setting.
const STEPS: u32 = 1500;

/// The release whose rules are used: it orders blocks of one size by the age of their segments, so its decisions do not
/// depend on the addresses that a driver chooses.
const PROFILE: &Profile = &TORCH_2_15;

/// Bytes to check at each place of a block.
const SAMPLE: u64 = 512;

/// An entry without its address, and the address's place: its segment and the offset in it. An out-of-memory event has
/// none, because its address is the device's free bytes, which other processes change.
type Step = (TraceEntry, Option<(u64, u64)>);

/// A live block in both allocators.
struct Live {
    real: Address,
    simulated: Address,
    size: u64,
    tag: u8,
}

/// Both allocators, and the streams of the requests.
struct Twins {
    device: Arc<Device>,
    real: DeviceAllocator<CudaDriver, Vec<TraceEntry>>,
    simulated: DeviceAllocator<SimDriver, Vec<TraceEntry>>,
    real_places: Places,
    simulated_places: Places,
    streams: [(Stream, Stream); 3],
    live: Vec<Live>,
    steps: usize,
    refused: u32,
}

/// Runs the same requests on both, with each of the settings.
pub(crate) fn decisions(device: &Arc<Device>) -> Result<String> {
    // Less than the requests need, so that retries happen.
    let allowed = budget(&mut plain(device)?, 400 * MIB)?;
    let created = [device.create_stream()?, device.create_stream()?, device.create_stream()?];
    let streams = twins_of(device, &created);
    let (mut steps, mut refused) = (0, 0);
    for (seed, conf) in (1..).zip(CONFS) {
        let mut twins = Twins::new(device, allowed, conf, streams)?;
        let outcome = twins.run(seed);
        outcome.with_context(|| format!("with the settings {conf:?}, seed {seed}"))?;
        steps += twins.steps;
        refused += twins.refused;
    }
    for stream in created {
        device.destroy_stream(stream)?;
    }
    ensure!(refused > 0, "no request was refused");
    Ok(format!(
        "{steps} steps equal the simulation's with {} settings; {refused} requests were refused; limit {}",
        CONFS.len(),
        Bytes(allowed)
    ))
}

/// Returns streams of the device, each with its twin in the simulation. Both allocators order streams by handle and by
/// number, so the orders must agree: the default stream, and two streams that were created one after the other with
/// rising handles, or only one stream if there are no such two.
fn twins_of(device: &Device, created: &[Stream; 3]) -> [(Stream, Stream); 3] {
    let rising = created.windows(2).find(|pair| pair[0] < pair[1]).map_or([created[0]; 2], |pair| [pair[0], pair[1]]);
    // The simulation calls the streams 1, 2, 3 in the order of their creation, and numbers them as PyTorch does.
    let twin = |stream: Stream| (stream, Stream((device.stream_id(stream) >> 5) as i64 + 1));
    [(Stream(0), Stream(0)), twin(rising[0]), twin(rising[1])]
}

impl Twins {
    fn new(device: &Arc<Device>, allowed: u64, conf: &str, streams: [(Stream, Stream); 3]) -> Result<Self> {
        let config = || AllocatorConfig::from_conf(conf, PROFILE);
        let total = device.total_memory();
        let simulation = SimDriver::new(total, Placement::FirstFit);
        let mut twins = Self {
            device: device.clone(),
            real: DeviceAllocator::new(plain(device)?, Vec::new(), PROFILE, config()?),
            simulated: DeviceAllocator::new(simulation, Vec::new(), PROFILE, config()?),
            real_places: Places::new(total),
            simulated_places: Places::new(total),
            streams,
            live: Vec::new(),
            steps: 0,
            refused: 0,
        };
        let fraction = allowed as f64 / total as f64;
        twins.real.set_memory_fraction(fraction)?;
        twins.simulated.set_memory_fraction(fraction)?;
        Ok(twins)
    }

    fn run(&mut self, seed: u64) -> Result<()> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for step in 0..STEPS {
            match random(100) {
                0..55 => {
                    // The logarithm of sizes is distributed evenly.
                    let size = (512 << random(17)) + random(512);
                    let stream = self.streams[random(3) as usize];
                    self.malloc(size, stream, step as u8)?;
                }
                55..98 if !self.live.is_empty() => {
                    let block = self.live.swap_remove(random(self.live.len() as u64) as usize);
                    let used_on = (random(4) == 0).then(|| self.streams[random(3) as usize]);
                    self.free(&block, used_on)?;
                }
                98.. => {
                    self.real.empty_cache(StackId(0))?;
                    self.simulated.empty_cache(StackId(0))?;
                }
                _ => {}
            }
            self.compare().with_context(|| format!("at step {step}"))?;
        }
        while let Some(block) = self.live.pop() {
            self.free(&block, None)?;
        }
        self.real.empty_cache(StackId(0))?;
        self.simulated.empty_cache(StackId(0))?;
        self.compare()?;
        ensure!(self.real.reserved() == 0, "{} bytes stay reserved", self.real.reserved());
        Ok(())
    }

    fn malloc(&mut self, size: u64, (stream, twin): (Stream, Stream), tag: u8) -> Result<()> {
        // In the simulation, streams finish at once; on the device they must be waited for.
        self.device.synchronize()?;
        let request = |stream| Request { size, stream, ..Request::default() };
        match (self.real.malloc(request(stream)), self.simulated.malloc(request(twin))) {
            (Ok(real), Ok(simulated)) => {
                self.device.fill_on(stream, real, tag, size)?;
                self.live.push(Live { real, simulated, size, tag });
            }
            (Err(AllocError::OutOfMemory(mut real)), Err(AllocError::OutOfMemory(simulated))) => {
                // Other processes use the device too.
                real.device_free = simulated.device_free;
                ensure!(real == simulated, "refused as {real:?}, in the simulation as {simulated:?}");
                self.refused += 1;
            }
            (real, simulated) => bail!("{size} bytes: {real:?}, in the simulation {simulated:?}"),
        }
        Ok(())
    }

    /// Checks and frees a block; with a stream, after that stream used it.
    fn free(&mut self, block: &Live, used_on: Option<(Stream, Stream)>) -> Result<()> {
        self.device.synchronize()?;
        let sample = block.size.min(SAMPLE);
        for offset in [0, block.size / 2 - sample / 2, block.size - sample] {
            ensure_holds(&self.device, Address(block.real.0 + offset), &vec![block.tag; sample as usize])?;
        }
        if let Some((stream, twin)) = used_on {
            self.real.record_stream(block.real, stream)?;
            self.simulated.record_stream(block.simulated, twin)?;
            self.device.fill_on(stream, block.real, !block.tag, block.size)?;
        }
        self.real.free(block.real, StackId(0))?;
        self.simulated.free(block.simulated, StackId(0))?;
        Ok(())
    }

    /// Compares the steps since the last call, the invariants and the statistics.
    fn compare(&mut self) -> Result<()> {
        let mut real = drain(&mut self.real, &mut self.real_places)?;
        for (entry, _) in &mut real {
            let twin = self.streams.iter().find(|(stream, _)| *stream == entry.stream);
            entry.stream = twin.with_context(|| format!("{entry:?} is on no known stream"))?.1;
        }
        let simulated = drain(&mut self.simulated, &mut self.simulated_places)?;
        for (real, simulated) in real.iter().zip(&simulated) {
            ensure!(real == simulated, "{real:?}, in the simulation {simulated:?}");
        }
        ensure!(real.len() == simulated.len(), "{} steps, {} in the simulation", real.len(), simulated.len());
        self.steps += real.len();
        self.real.check().map_err(anyhow::Error::msg)?;
        let (real, simulated) = (self.real.memory_stats(), self.simulated.memory_stats());
        let differs = real.iter().zip(&simulated).find(|(real, simulated)| real != simulated);
        ensure!(differs.is_none(), "the statistics differ in {differs:?}");
        Ok(())
    }
}

/// Returns the entries since the last call, with places instead of addresses.
fn drain<D: Driver>(allocator: &mut DeviceAllocator<D, Vec<TraceEntry>>, places: &mut Places) -> Result<Vec<Step>> {
    let entries = std::mem::take(allocator.sink_mut());
    let placed = entries.into_iter().map(|entry| {
        let place = if entry.action == Action::Oom { None } else { Some(places.of(&entry)?) };
        Ok((TraceEntry { address: 0, ..entry }, place))
    });
    placed.collect()
}
