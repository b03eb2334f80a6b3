//! The caching allocator on a simulated device as C functions, so that one benchmark loop can call it and PyTorch's.
//!
//! There is one allocator at a time, behind a lock, like a device's allocator in PyTorch. See
//! `tests/measure/allocator/beside.py` for the measurement.
#![allow(unsafe_code)] // C functions: unmangled names, and strings by pointer.

use std::ffi::{CStr, c_char};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use allocator::sim::{Placement, SimDriver};
use allocator::{AllocatorConfig, DeviceAllocator, Request, TORCH_2_11, parse};
use format::{Device, Header};
use recorder::{Recorder, RecorderHandle, RecorderSink};
use trace::frames::StackId;
use trace::units::{Address, Stream};
use vramscope_pluggable::clock::CountingClock;

/// The result of a failed [`callable_open`].
const FAILED: i32 = 1;

/// The depth of the recorded stacks, as in a training script.
const FRAMES: usize = 20;

#[allow(clippy::large_enum_variant)] // There is only one such value.
enum Allocator {
    Silent(DeviceAllocator<SimDriver, ()>),
    Recorded { allocator: DeviceAllocator<SimDriver, RecorderSink>, handle: RecorderHandle, stack: StackId },
}

static OPEN: Mutex<Option<Allocator>> = Mutex::new(None);

fn open() -> MutexGuard<'static, Option<Allocator>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a device of `capacity` bytes and its allocator, with settings as in `PYTORCH_CUDA_ALLOC_CONF`. With a
/// `recording`, every event is written to that file. Returns 0, or 1 if the settings or the file are invalid.
///
/// # Safety
/// `settings` ends in a zero byte; `recording` does too, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn callable_open(settings: *const c_char, capacity: u64, recording: *const c_char) -> i32 {
    // SAFETY: as the caller promises.
    let (settings, recording) =
        unsafe { (CStr::from_ptr(settings), (!recording.is_null()).then(|| CStr::from_ptr(recording))) };
    match create(settings, capacity, recording) {
        Some(allocator) => {
            *open() = Some(allocator);
            0
        }
        None => FAILED,
    }
}

fn create(settings: &CStr, capacity: u64, recording: Option<&CStr>) -> Option<Allocator> {
    let mut config = AllocatorConfig::default();
    let settings = settings.to_str().ok()?;
    if !settings.is_empty() {
        parse(settings, &TORCH_2_11, &mut config).ok()?;
    }
    let driver = SimDriver::new(capacity, Placement::FirstFit);
    let Some(recording) = recording else {
        return Some(Allocator::Silent(DeviceAllocator::new(driver, (), &TORCH_2_11, config)));
    };
    let header = Header { devices: vec![Device { number: 0, capacity, ..Device::default() }], ..Header::default() };
    let (sink, handle) =
        Recorder::new(header).clock(Arc::new(CountingClock::new())).start(Path::new(recording.to_str().ok()?)).ok()?;
    let frames: Vec<(&str, &str, u32)> = (0..FRAMES).map(|line| ("step", "train.py", line as u32)).collect();
    let stack = handle.stacks().intern(&frames);
    Some(Allocator::Recorded { allocator: DeviceAllocator::new(driver, sink, &TORCH_2_11, config), handle, stack })
}

/// Allocates memory. Returns null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn callable_malloc(size: u64, stream: i64) -> u64 {
    let request = Request { size, stream: Stream(stream), thread: 0, stack: StackId(0) };
    let allocated = match &mut *open() {
        Some(Allocator::Silent(allocator)) => allocator.malloc(request),
        Some(Allocator::Recorded { allocator, stack, .. }) => allocator.malloc(Request { stack: *stack, ..request }),
        None => return 0,
    };
    allocated.map_or(0, |address| address.0)
}

/// Frees an allocation.
#[unsafe(no_mangle)]
pub extern "C" fn callable_free(address: u64) {
    let freed = match &mut *open() {
        Some(Allocator::Silent(allocator)) => allocator.free(Address(address), StackId(0)),
        Some(Allocator::Recorded { allocator, stack, .. }) => allocator.free(Address(address), *stack),
        None => return,
    };
    debug_assert!(freed.is_ok(), "{address:#x} was not allocated");
}

/// Drops the allocator and ends the recording. Returns the number of events that the recording lost.
#[unsafe(no_mangle)]
pub extern "C" fn callable_close() -> u64 {
    match open().take() {
        Some(Allocator::Recorded { handle, .. }) => handle.finish(Vec::new()).lost,
        _ => 0,
    }
}
