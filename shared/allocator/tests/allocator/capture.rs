//! Memory that several streams used, freed within a capture. With `graph_capture_record_stream_reuse` it is reused once
//! the capture has passed those streams, if the driver knows the capture's nodes.

use std::collections::BTreeMap;

use allocator::sim::{Placement, SimDriver};
use allocator::{AllocatorConfig, DeviceAllocator, Driver, DriverError, Filter, MemoryInfo, Request, TORCH_2_11};
use trace::frames::StackId;
use trace::units::{Address, PoolId, Stream};

/// The simulated device with a capture: the node at which each stream is, and the nodes that each node waits for.
struct Capturing {
    device: SimDriver,
    terminals: BTreeMap<Stream, Vec<u64>>,
    dependencies: BTreeMap<u64, Vec<u64>>,
}

impl Driver for Capturing {
    type Event = <SimDriver as Driver>::Event;

    fn total_memory(&self) -> u64 {
        self.device.total_memory()
    }

    fn memory_info(&mut self) -> Result<MemoryInfo, DriverError> {
        self.device.memory_info()
    }

    fn alloc(&mut self, size: u64) -> Result<Address, DriverError> {
        self.device.alloc(size)
    }

    fn free(&mut self, address: Address, size: u64) -> Result<(), DriverError> {
        self.device.free(address, size)
    }

    fn reserve_range(&mut self, size: u64) -> Result<Address, DriverError> {
        self.device.reserve_range(size)
    }

    fn release_range(&mut self, address: Address, size: u64) -> Result<(), DriverError> {
        self.device.release_range(address, size)
    }

    fn map(&mut self, address: Address, size: u64, page: u64) -> Result<(), DriverError> {
        self.device.map(address, size, page)
    }

    fn unmap(&mut self, address: Address, size: u64, page: u64) -> Result<(), DriverError> {
        self.device.unmap(address, size, page)
    }

    fn record_event(&mut self, stream: Stream) -> Result<Self::Event, DriverError> {
        self.device.record_event(stream)
    }

    fn is_event_done(&mut self, event: &Self::Event) -> Result<bool, DriverError> {
        self.device.is_event_done(event)
    }

    fn wait_for_event(&mut self, event: &Self::Event) -> Result<(), DriverError> {
        self.device.wait_for_event(event)
    }

    fn recycle_event(&mut self, event: Self::Event) {
        self.device.recycle_event(event);
    }

    fn synchronize_stream(&mut self, stream: Stream) -> Result<(), DriverError> {
        self.device.synchronize_stream(stream)
    }

    fn capture_terminals(&mut self, stream: Stream) -> Option<Vec<u64>> {
        self.terminals.get(&stream).cloned()
    }

    fn capture_dependencies(&mut self, node: u64) -> Vec<u64> {
        self.dependencies.get(&node).cloned().unwrap_or_default()
    }
}

const MAIN: Stream = Stream(1);
const SIDE: Stream = Stream(2);

/// Frees a block of `MAIN` that `SIDE` used, in a capture at these nodes. Returns whether the next request on `MAIN`
/// gets its memory after the capture has moved on to `later` nodes that wait for those given.
fn is_reused(conf: &str, side_at: Option<u64>, later: u64, waits_for: &[(u64, &[u64])]) -> bool {
    let driver = Capturing {
        device: SimDriver::new(1 << 30, Placement::FirstFit),
        terminals: BTreeMap::from([(MAIN, vec![10])]),
        dependencies: waits_for.iter().map(|(node, others)| (*node, others.to_vec())).collect(),
    };
    let config = AllocatorConfig::from_conf(conf, &TORCH_2_11).unwrap();
    let mut allocator = DeviceAllocator::new(driver, (), &TORCH_2_11, config);
    let filter = Filter::Capture(Box::new(|stream| stream == MAIN));
    allocator.begin_allocate_to_pool(PoolId(1, 0), filter).unwrap();
    let request = Request { size: 512, stream: MAIN, ..Request::default() };
    let block = allocator.malloc(request).unwrap();
    allocator.record_stream(block, SIDE).unwrap();
    if let Some(node) = side_at {
        allocator.driver_mut().terminals.insert(SIDE, vec![node]);
    }
    allocator.free(block, StackId(0)).unwrap();
    allocator.check().unwrap();
    allocator.driver_mut().terminals.insert(MAIN, vec![later]);
    let next = allocator.malloc(request).unwrap();
    allocator.check().unwrap();
    next == block
}

#[test]
fn a_block_is_reused_in_its_capture_once_all_its_streams_are_behind() {
    const REUSE: &str = "graph_capture_record_stream_reuse:True";
    let joined: &[(u64, &[u64])] = &[(12, &[11, 20]), (11, &[10])];
    let apart: &[(u64, &[u64])] = &[(12, &[11]), (11, &[10])];
    let cases = [
        ("the side stream was joined", REUSE, Some(20), 12, joined, true),
        ("the side stream goes on apart", REUSE, Some(20), 12, apart, false),
        ("nothing happened since", REUSE, Some(20), 10, apart, false),
        ("the side stream is not captured", REUSE, None, 12, joined, false),
        ("without the option", "", Some(20), 12, joined, false),
        ("a capture that waits in a circle", REUSE, Some(20), 12, &[(12, &[11, 20]), (11, &[12])], false),
    ];
    for (case, conf, side_at, later, waits_for, want) in cases {
        assert_eq!(is_reused(conf, side_at, later, waits_for), want, "{case}");
    }
}
