//! What PyTorch hands over with a route to a private pool: a `std::function<bool(cudaStream_t)>`.
//!
//! It comes as the address of an object that belongs to the caller. Official PyTorch for Linux is built with libstdc++,
//! whose object is four words, the same since GCC 4 and part of its stable binary interface: two words of state, a
//! function that copies and destroys the state, and one that calls it. So it can be copied and called from here; where
//! libstdc++ is not in the process, routes are refused.
#![allow(unsafe_code)] // C++ objects.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use shared::allocator::Filter;
use shared::units::Stream;

use super::devices::{Slot, thread_number};
use super::library::Library;

/// The state of a function object (`_Any_data`).
type State = [usize; 2];

/// `std::function<bool(cudaStream_t)>` of libstdc++. `_M_manager` gets an operation; `_M_invoker` gets arguments by
/// reference.
#[repr(C)]
pub struct StdFunction {
    state: State,
    manager: Option<unsafe extern "C-unwind" fn(*mut State, *const State, c_int) -> bool>,
    invoker: Option<unsafe extern "C-unwind" fn(*const State, *const *mut c_void) -> bool>,
}

/// `__clone_functor` and `__destroy_functor` of `_Manager_operation`.
const CLONE: c_int = 2;
const DESTROY: c_int = 3;

/// A stream that always exists and is never part of a capture (`cudaStreamPerThread`).
const PER_THREAD: Stream = Stream(2);

/// A copy of PyTorch's object.
struct Copied(StdFunction);

// SAFETY: PyTorch's own allocator calls its copy from any thread, one at a time, as this one does under its lock.
unsafe impl Send for Copied {}

impl Copied {
    /// # Safety
    /// The object lives, and is one of libstdc++.
    unsafe fn new(object: *const StdFunction) -> Option<Self> {
        // SAFETY: the caller vouches for the object; the state to be filled is this function's own.
        unsafe {
            let object = object.as_ref()?;
            let (manager, mut state) = (object.manager?, [0; 2]);
            manager(&raw mut state, &raw const object.state, CLONE);
            Some(Self(StdFunction { state, manager: Some(manager), invoker: Some(object.invoker?) }))
        }
    }

    fn takes(&self, stream: Stream) -> bool {
        // PyTorch's capture filter throws where the runtime does not answer, and an exception must not pass through the
        // allocator. Where this call succeeds, the filter's same call does.
        if Runtime::get().is_none_or(|runtime| !runtime.answers(stream)) {
            return false;
        }
        let argument = stream.0 as usize as *mut c_void;
        // SAFETY: a whole object with its state, and the address of an argument that outlives the call.
        self.0.invoker.is_some_and(|invoke| unsafe { invoke(&raw const self.0.state, &raw const argument) })
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        if let Some(manager) = self.0.manager {
            let state = &raw mut self.0.state;
            // SAFETY: the state was cloned once and goes once.
            unsafe { manager(state, state, DESTROY) };
        }
    }
}

/// The filter of a route.
///
/// # Safety
/// `object` is the `std::function` that PyTorch hands to `begin_allocate_to_pool`.
pub(super) unsafe fn filter(object: *const StdFunction) -> Result<Filter, String> {
    if Library::loaded(c"libstdc++.so.6").is_none() || Runtime::get().is_none() {
        return Err("this PyTorch was not built as the official ones are: CUDA graphs and memory pools can't be used \
                    with vramscope's allocator here"
            .to_owned());
    }
    // SAFETY: passed on to the caller; libstdc++ is there.
    let copied = unsafe { Copied::new(object) }.ok_or("PyTorch gave no filter for the route to a pool")?;
    // A `MemPool` asks for the thread that runs now, whatever the stream; a capture has not begun yet.
    if copied.takes(PER_THREAD) {
        return Ok(Filter::Thread(thread_number()));
    }
    Ok(Filter::Capture(Box::new(move |stream| copied.takes(stream))))
}

/// The CUDA runtime that PyTorch uses.
struct Runtime {
    is_capturing: unsafe extern "C" fn(usize, *mut c_int) -> c_int,
    exchange_mode: unsafe extern "C" fn(*mut c_int) -> c_int,
}

impl Runtime {
    fn get() -> Option<&'static Self> {
        static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
        RUNTIME.get_or_init(Self::find).as_ref()
    }

    fn find() -> Option<Self> {
        let named = [c"libcudart.so.12", c"libcudart.so.13", c"libcudart.so.11.0"];
        let libraries = named.into_iter().filter_map(Library::loaded).chain([Library::ANY]);
        libraries.into_iter().find_map(|library| {
            // SAFETY: the types of these functions in NVIDIA's headers, with handles and enumerations as numbers.
            unsafe {
                Some(Self {
                    is_capturing: library.function(c"cudaStreamIsCapturing")?,
                    exchange_mode: library.function(c"cudaThreadExchangeStreamCaptureMode")?,
                })
            }
        })
    }

    fn answers(&self, stream: Stream) -> bool {
        let mut status = 0;
        // SAFETY: a stream that a request came with, and a variable that outlives the call.
        unsafe { (self.is_capturing)(stream.0 as usize, &raw mut status) == 0 }
    }
}

/// `cudaStreamCaptureModeRelaxed`.
const RELAXED: c_int = 2;

/// While it lives, this thread may take memory from the driver within a capture, as PyTorch's own allocator does: the
/// capture is not told of it.
pub(super) struct Relaxed(Option<c_int>);

impl Relaxed {
    /// Where the device has a route open; else there is no capture that concerns it.
    #[inline]
    pub(super) fn enter(slot: &Slot) -> Self {
        if slot.routes.load(Ordering::Relaxed) == 0 {
            return Self(None);
        }
        Self(Self::exchange(RELAXED))
    }

    fn exchange(mode: c_int) -> Option<c_int> {
        let (runtime, mut mode) = (Runtime::get()?, mode);
        // SAFETY: a variable that outlives the call.
        (unsafe { (runtime.exchange_mode)(&raw mut mode) } == 0).then_some(mode)
    }
}

impl Drop for Relaxed {
    #[inline]
    fn drop(&mut self) {
        if let Some(mode) = self.0 {
            let _ = Self::exchange(mode);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI32;

    use super::*;

    static LIVE: AtomicI32 = AtomicI32::new(0);

    unsafe extern "C-unwind" fn manage(to: *mut State, from: *const State, operation: c_int) -> bool {
        match operation {
            CLONE => {
                // SAFETY: both are states of the test's.
                unsafe { *to = *from };
                LIVE.fetch_add(1, Ordering::Relaxed);
            }
            DESTROY => {
                LIVE.fetch_sub(1, Ordering::Relaxed);
            }
            _ => {}
        }
        false
    }

    unsafe extern "C-unwind" fn invoke(state: *const State, argument: *const *mut c_void) -> bool {
        // SAFETY: both are the test's.
        unsafe { (*state)[0] == *argument as usize }
    }

    #[test]
    fn a_copy_is_made_once_and_goes_once() {
        let object = StdFunction { state: [7, 0], manager: Some(manage), invoker: Some(invoke) };
        // SAFETY: the object lives.
        let copied = unsafe { Copied::new(&raw const object) }.unwrap();
        assert_eq!(LIVE.load(Ordering::Relaxed), 1);
        let argument = 7 as *mut c_void;
        // SAFETY: as in `takes`, without a CUDA runtime.
        assert!(unsafe { invoke(&raw const copied.0.state, &raw const argument) });
        drop(copied);
        assert_eq!(LIVE.load(Ordering::Relaxed), 0);
        let empty = StdFunction { state: [0; 2], manager: None, invoker: None };
        // SAFETY: the object lives.
        assert!(unsafe { Copied::new(&raw const empty) }.is_none());
    }
}
