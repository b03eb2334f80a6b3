//! The process's allocators: one for each device, created at the first request for it, because opening a device uses
//! memory on it.
#![allow(unsafe_code)] // PyTorch's streams arrive as raw handles.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use allocator::{AllocatorConfig, DeviceAllocator, Profile};
use recorder::allocator::{AllocatorFault, EventSink, History, LockedAllocator};
use recorder::cuda::CudaDriver;
use recorder::{Capture, Clock, Stacks};
use trace::units::Stream;

use super::recording::AllocatorRecording;
use crate::clock::CountingClock;

/// At least as many devices as PyTorch supports (`C10_COMPILE_TIME_MAX_GPUS` is 120).
const MAX_DEVICES: usize = 128;

/// The allocator of one device.
pub(super) struct Slot {
    pub(super) locked: LockedAllocator<CudaDriver>,
    /// The number of open routes to private pools.
    pub(super) routes: AtomicU32,
}

/// The allocators of all devices. The process has one such value, from `vramscope_allocator_start` on.
pub(super) struct Allocators {
    pub(super) profile: &'static Profile,
    pub(super) level: Capture,
    /// The present settings, with which new allocators start.
    pub(super) config: Mutex<AllocatorConfig>,
    pub(super) recording: AllocatorRecording,
    /// The number of history entries that each device keeps; 0 for no history.
    history: AtomicUsize,
    clock: Arc<dyn Clock>,
    slots: Vec<OnceLock<Result<Slot, String>>>,
}

static ALLOCATORS: OnceLock<Allocators> = OnceLock::new();

impl Allocators {
    /// Returns the process's allocators.
    #[inline]
    pub(super) fn get() -> Option<&'static Self> {
        ALLOCATORS.get()
    }

    /// Sets the process's allocators. It succeeds only once, because PyTorch never gives up its allocator.
    pub(super) fn set(
        profile: &'static Profile,
        config: AllocatorConfig,
        level: Capture,
        history: usize,
        recording: AllocatorRecording,
    ) -> Result<(), String> {
        let slots = (0..MAX_DEVICES).map(|_| OnceLock::new()).collect();
        let clock = Arc::new(CountingClock::new());
        let new = Self {
            profile,
            level,
            config: Mutex::new(config),
            recording,
            history: AtomicUsize::new(history),
            clock,
            slots,
        };
        ALLOCATORS.set(new).map_err(|_| "This process already uses Vramscope's allocator.".to_owned())
    }

    /// Returns the table that numbers stacks.
    #[inline]
    pub(super) fn stacks(&self) -> &Stacks {
        self.recording.stacks()
    }

    /// Returns the present settings.
    pub(super) fn config(&self) -> MutexGuard<'_, AllocatorConfig> {
        // A panic leaves usable settings: like PyTorch's, they may be applied in part.
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a device's allocator, creating it at the first call.
    #[inline]
    pub(super) fn device(&self, device: i32) -> Result<&Slot, String> {
        let slot = usize::try_from(device).ok().and_then(|device| self.slots.get(device));
        let slot = slot.ok_or_else(|| format!("there is no device {device}"))?;
        match slot.get() {
            Some(opened) => opened.as_ref().map_err(String::clone),
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

    /// Starts a new history of at most `max_entries` on every device; 0 ends it.
    pub(super) fn set_history(&self, max_entries: usize) -> Result<(), AllocatorFault> {
        self.history.store(max_entries, Ordering::Relaxed);
        self.opened()
            .try_for_each(|slot| slot.locked.with(|allocator| allocator.sink_mut().history = self.new_history()))
    }

    /// Returns the allocators created so far.
    pub(super) fn opened(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter_map(|slot| slot.get()?.as_ref().ok())
    }

    /// Returns a device's allocator, if it was created.
    pub(super) fn opened_device(&self, device: i32) -> Option<&Slot> {
        self.slots.get(usize::try_from(device).ok()?)?.get()?.as_ref().ok()
    }
}

/// Returns the number of the calling thread, counted from 1.
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

/// Registers one of PyTorch's streams with a device's driver.
#[inline]
pub(super) fn adopt(driver: &CudaDriver, stream: Stream) {
    thread_local!(static LAST: Cell<(u32, i64)> = const { Cell::new((0, 0)) });
    let this = (driver.device().ordinal(), stream.0);
    if stream.0 == 0 || LAST.replace(this) == this {
        return;
    }
    // SAFETY: a stream on which PyTorch allocates or uses memory belongs to this device's primary context, and PyTorch
    // never destroys its streams. A stream that the program created must outlive its use with PyTorch, as it must
    // without this allocator.
    unsafe { driver.device().adopt_stream(stream) };
}
