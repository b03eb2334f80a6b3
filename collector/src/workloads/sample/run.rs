//! A run as it goes: the allocator, the stacks seen so far, the clock and a deterministic die.

use std::collections::HashMap;

use super::sites::{Site, frames};
use crate::workloads::caching_allocator::{CachingAllocator, OutOfMemory, PoolId, Stack};
use crate::workloads::snapshot_writer::{Annotation, Frame};

/// What the device has left for tensors: 24 GiB less the driver's and the kernels' own.
const CAPACITY: u64 = (24 << 30) - (620 << 20);
/// When the run begins: 3 March 2026, 09:12:04 UTC.
const BEGINNING_US: i64 = 1_772_529_124_000_000;
/// The stream that copies batches while the model computes, as the handle that PyTorch writes.
const SIDE_STREAM: i64 = 0x55d0_8c4e_7b30;
/// The pool of the sampler's CUDA graph.
const GRAPH_POOL: PoolId = (1, 0);

/// A tensor's storage on the device.
#[derive(Clone, Copy, Debug)]
#[must_use = "a tensor that is never freed stays in the trace for good"]
pub(super) struct Tensor(u64);

/// The state of the run.
pub(super) struct Run {
    pub(super) allocator: CachingAllocator,
    pub(super) stacks: Vec<Vec<Frame>>,
    pub(super) annotations: Vec<Annotation>,
    numbers: HashMap<Site, Stack>,
    die: u64,
}

impl Run {
    pub(super) fn new() -> Self {
        Self {
            allocator: CachingAllocator::new(CAPACITY, BEGINNING_US),
            stacks: Vec::new(),
            annotations: Vec::new(),
            numbers: HashMap::new(),
            die: 7,
        }
    }

    /// A tensor of the default stream and pool.
    pub(super) fn tensor(&mut self, bytes: u64, site: Site) -> Result<Tensor, OutOfMemory> {
        self.allocate(bytes, 0, (0, 0), site)
    }

    /// A tensor of the copying stream.
    pub(super) fn prefetched(&mut self, bytes: u64, site: Site) -> Result<Tensor, OutOfMemory> {
        self.allocate(bytes, SIDE_STREAM, (0, 0), site)
    }

    /// A tensor of the CUDA graph's own pool.
    pub(super) fn in_graph(&mut self, bytes: u64, site: Site) -> Result<Tensor, OutOfMemory> {
        self.allocate(bytes, 0, GRAPH_POOL, site)
    }

    fn allocate(&mut self, bytes: u64, stream: i64, pool: PoolId, site: Site) -> Result<Tensor, OutOfMemory> {
        // Roughly what the kernel before it takes, at the rate of the device's memory: the host runs no further ahead.
        let kernel = 8 + self.roll(30) + bytes / 160_000;
        self.wait(kernel as i64);
        let stack = self.stack(site);
        self.allocator.allocate(bytes, stream, pool, stack).map(Tensor)
    }

    /// Lets go of a tensor.
    pub(super) fn free(&mut self, tensor: Tensor, site: Site) {
        self.wait(2);
        let stack = self.stack(site);
        self.allocator.free(tensor.0, None, stack);
    }

    /// Lets go of a tensor that the main stream still reads: it waits for that stream.
    pub(super) fn free_when_read(&mut self, tensor: Tensor, site: Site) {
        self.wait(2);
        let stack = self.stack(site);
        let behind = 9_000 + self.roll(9_000) as i64;
        self.allocator.free(tensor.0, Some(behind), stack);
    }

    /// Moves the clock on.
    pub(super) fn wait(&mut self, us: i64) {
        self.allocator.now_us += us;
    }

    /// Runs `part` under a name that the trace keeps; a part that fails ends there as well, as a `with` block does.
    pub(super) fn named<T>(
        &mut self,
        name: &str,
        part: impl FnOnce(&mut Self) -> Result<T, OutOfMemory>,
    ) -> Result<T, OutOfMemory> {
        self.annotations.push((name.to_owned(), "START", self.allocator.now_us));
        let result = part(self);
        self.annotations.push((name.to_owned(), "END", self.allocator.now_us));
        result
    }

    /// A number below `sides`: the same sequence in every run (splitmix64).
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.die = self.die.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.die;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn stack(&mut self, site: Site) -> Stack {
        let stacks = &mut self.stacks;
        *self.numbers.entry(site).or_insert_with(|| {
            stacks.push(frames(site));
            stacks.len() - 1
        })
    }
}
