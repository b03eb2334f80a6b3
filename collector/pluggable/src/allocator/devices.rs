//! The process's allocators: one a device, each made at the first request for its device, since opening a device takes
//! memory on it.
#![allow(unsafe_code)] // Streams of PyTorch's are taken for what they are.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use shared::allocator::{AllocatorConfig, DeviceAllocator, Profile};
use shared::units::Stream;
use vramscope::allocator::{EventSink, Fault, History, LockedAllocator};
use vramscope::driver::cuda::CudaDriver;
use vramscope::recorder::{Capture, Clock, MonotonicClock, Stacks};

use super::recording::Recording;

/// As many devices as PyTorch ever counts (`C10_COMPILE_TIME_MAX_GPUS` is 120).
const MOST_DEVICES: usize = 128;

/// One device.
pub(super) struct Slot {
    pub(super) locked: LockedAllocator<CudaDriver>,
    /// Open routes to private pools.
    pub(super) routes: AtomicU32,
}

/// All of it. There is one in the process, from `vramscope_allocator_start` on.
pub(super) struct Allocators {
    pub(super) profile: &'static Profile,
    pub(super) level: Capture,
    /// The settings that devices begin with, as changed last.
    pub(super) config: Mutex<AllocatorConfig>,
    pub(super) recording: Recording,
    /// Entries of history that each device keeps; 0 is none.
    history: AtomicUsize,
    clock: Arc<dyn Clock>,
    slots: Vec<OnceLock<Result<Slot, String>>>,
}

static ALLOCATORS: OnceLock<Allocators> = OnceLock::new();

impl Allocators {
    /// Those of the process.
    #[inline]
    pub(super) fn get() -> Option<&'static Self> {
        ALLOCATORS.get()
    }

    /// Makes them; once in a process, since PyTorch keeps its allocator for good.
    pub(super) fn set(
        profile: &'static Profile,
        config: AllocatorConfig,
        level: Capture,
        history: usize,
        recording: Recording,
    ) -> Result<(), String> {
        let slots = (0..MOST_DEVICES).map(|_| OnceLock::new()).collect();
        let clock = Arc::new(MonotonicClock::new());
        let new = Self {
            profile,
            level,
            config: Mutex::new(config),
            recording,
            history: AtomicUsize::new(history),
            clock,
            slots,
        };
        ALLOCATORS.set(new).map_err(|_| "this process has Vramscope's allocator already".to_owned())
    }

    /// The numbers of stacks.
    #[inline]
    pub(super) fn stacks(&self) -> &Stacks {
        self.recording.stacks()
    }

    /// The settings that devices begin with.
    pub(super) fn config(&self) -> MutexGuard<'_, AllocatorConfig> {
        // Settings are changed whole or up to a mistake, as PyTorch does.
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A device's allocator, made if it is the first time.
    #[inline]
    pub(super) fn device(&self, device: i32) -> Result<&Slot, String> {
        let slot = usize::try_from(device).ok().and_then(|device| self.slots.get(device));
        let slot = slot.ok_or_else(|| format!("there is no device {device}"))?;
        match slot.get() {
            Some(made) => made.as_ref().map_err(String::clone),
            None => slot.get_or_init(|| self.open(device)).as_ref().map_err(String::clone),
        }
    }

    #[cold]
    fn open(&self, device: i32) -> Result<Slot, String> {
        let number = u32::try_from(device).map_err(|_| format!("there is no device {device}"))?;
        let driver = CudaDriver::open(number).map_err(|error| error.to_string())?;
        let recorder = self.recording.sink(device.into());
        let config = self.config().clone();
        let sink = EventSink { recorder, history: self.new_history() };
        let allocator = DeviceAllocator::new(driver, sink, self.profile, config);
        Ok(Slot { locked: LockedAllocator::new(device.into(), allocator), routes: AtomicU32::new(0) })
    }

    fn new_history(&self) -> Option<History> {
        let max_entries = self.history.load(Ordering::Relaxed);
        let keeps_stacks = self.level.keeps_in_events();
        (max_entries > 0).then(|| History::new(max_entries, keeps_stacks, Arc::clone(&self.clock)))
    }

    /// Begins a new history of so many entries on every device, or ends it with 0.
    pub(super) fn set_history(&self, max_entries: usize) -> Result<(), Fault> {
        self.history.store(max_entries, Ordering::Relaxed);
        self.opened()
            .try_for_each(|slot| slot.locked.with(|allocator| allocator.sink_mut().history = self.new_history()))
    }

    /// The allocators that were made.
    pub(super) fn opened(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter_map(|slot| slot.get()?.as_ref().ok())
    }

    /// The allocator of a device, if it was made.
    pub(super) fn opened_device(&self, device: i32) -> Option<&Slot> {
        self.slots.get(usize::try_from(device).ok()?)?.get()?.as_ref().ok()
    }
}

/// The number of the calling thread, from 1.
#[inline]
pub(super) fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static NUMBER: Cell<u64> = const { Cell::new(0) });
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// Lets a device's driver use a stream of PyTorch's.
#[inline]
pub(super) fn adopt(driver: &CudaDriver, stream: Stream) {
    thread_local!(static LAST: Cell<(u32, i64)> = const { Cell::new((0, 0)) });
    let this = (driver.device().ordinal(), stream.0);
    if stream.0 == 0 || LAST.replace(this) == this {
        return;
    }
    // SAFETY: a stream that PyTorch allocates on, or uses memory on, is one of this device's primary context, and
    // PyTorch never destroys the streams that it makes. One that the program made itself must outlive its use with
    // PyTorch: the same condition as without this allocator.
    unsafe { driver.device().adopt_stream(stream) };
}
