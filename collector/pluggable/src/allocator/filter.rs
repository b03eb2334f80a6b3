//! The filter of a route to a private pool: PyTorch passes a `std::function<bool(cudaStream_t)>`.
//!
//! It arrives as the address of an object that belongs to the caller. Official PyTorch for Linux is built with
//! libstdc++, whose `std::function` has had the same stable layout of four words since GCC 4: two words of state, a
//! function that copies and destroys the state, and one that calls it. So it can be copied and called from here. If
//! libstdc++ is not loaded in the process, routes are refused.
#![allow(unsafe_code)] // C++ objects.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use allocator::Filter;
use trace::units::Stream;

use super::devices::{Slot, thread_number};
use super::library::Library;

/// The state of a function object (`_Any_data`).
type FunctorState = [usize; 2];

/// libstdc++'s `std::function<bool(cudaStream_t)>`. `_M_manager` receives an operation, `_M_invoker` its arguments by
/// reference.
#[repr(C)]
pub struct StdFunction {
    state: FunctorState,
    manager: Option<unsafe extern "C-unwind" fn(*mut FunctorState, *const FunctorState, c_int) -> bool>,
    invoker: Option<unsafe extern "C-unwind" fn(*const FunctorState, *const *mut c_void) -> bool>,
}

/// `__clone_functor` and `__destroy_functor` of `_Manager_operation`.
const CLONE: c_int = 2;
const DESTROY: c_int = 3;

/// A stream that always exists and is never part of a capture (`cudaStreamPerThread`).
const PER_THREAD: Stream = Stream(2);

/// An owned copy of PyTorch's object.
struct FunctionCopy(StdFunction);

// SAFETY: PyTorch's own allocator calls its copy from any thread, one at a time; this allocator does so under its lock.
unsafe impl Send for FunctionCopy {}

impl FunctionCopy {
    /// # Safety
    /// `object` is null or points to a live object of libstdc++.
    unsafe fn new(object: *const StdFunction) -> Option<Self> {
        // SAFETY: as the caller promises; the new state is this function's own.
        unsafe {
            let object = object.as_ref()?;
            let (manager, mut state) = (object.manager?, [0; 2]);
            manager(&raw mut state, &raw const object.state, CLONE);
            Some(Self(StdFunction { state, manager: Some(manager), invoker: Some(object.invoker?) }))
        }
    }

    /// Returns whether the filter accepts the stream.
    fn accepts(&self, stream: Stream) -> bool {
        // PyTorch's capture filter throws if the runtime returns an error, and an exception must not unwind through the
        // allocator. If this call succeeds, the same call in the filter does too.
        if Runtime::get().is_none_or(|runtime| !runtime.answers(stream)) {
            return false;
        }
        let argument = stream.0 as usize as *mut c_void;
        // SAFETY: the object is complete, and the argument outlives the call.
        self.0.invoker.is_some_and(|invoke| unsafe { invoke(&raw const self.0.state, &raw const argument) })
    }
}

impl Drop for FunctionCopy {
    fn drop(&mut self) {
        if let Some(manager) = self.0.manager {
            let state = &raw mut self.0.state;
            // SAFETY: the state was cloned once and is destroyed once.
            unsafe { manager(state, state, DESTROY) };
        }
    }
}

/// Converts the filter of a route.
///
/// # Safety
/// `object` is the `std::function` that PyTorch passes to `begin_allocate_to_pool`.
pub(super) unsafe fn filter(object: *const StdFunction) -> Result<Filter, String> {
    if Library::loaded(c"libstdc++.so.6").is_none() || Runtime::get().is_none() {
        return Err("CUDA graphs and memory pools need an official build of PyTorch with Vramscope's allocator: this \
                    build does not use libstdc++ and a shared CUDA runtime."
            .to_owned());
    }
    // SAFETY: as the caller promises; libstdc++ is loaded.
    let copy = unsafe { FunctionCopy::new(object) }.ok_or("PyTorch passed no filter for the route to a pool.")?;
    // A `MemPool`'s filter accepts every stream of the present thread; a capture has not begun yet.
    if copy.accepts(PER_THREAD) {
        return Ok(Filter::Thread(thread_number()));
    }
    Ok(Filter::Capture(Box::new(move |stream| copy.accepts(stream))))
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
            // SAFETY: NVIDIA's headers declare these types, here with handles and enumerations as integers.
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
        // SAFETY: the stream comes from a request, and the variable outlives the call.
        unsafe { (self.is_capturing)(stream.0 as usize, &raw mut status) == 0 }
    }
}

/// `cudaStreamCaptureModeRelaxed`.
const RELAXED: c_int = 2;

/// While it lives, this thread may allocate from the driver during a capture, without becoming part of it, as PyTorch's
/// own allocator does.
pub(super) struct RelaxedCapture(Option<c_int>);

impl RelaxedCapture {
    /// Changes the mode if the device has an open route. Otherwise no capture concerns it.
    #[inline]
    pub(super) fn enter(slot: &Slot) -> Self {
        if slot.routes.load(Ordering::Relaxed) == 0 {
            return Self(None);
        }
        Self(Self::exchange(RELAXED))
    }

    fn exchange(mode: c_int) -> Option<c_int> {
        let (runtime, mut mode) = (Runtime::get()?, mode);
        // SAFETY: the variable outlives the call.
        (unsafe { (runtime.exchange_mode)(&raw mut mode) } == 0).then_some(mode)
    }
}

impl Drop for RelaxedCapture {
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

    unsafe extern "C-unwind" fn manage(to: *mut FunctorState, from: *const FunctorState, operation: c_int) -> bool {
        match operation {
            CLONE => {
                // SAFETY: both states belong to the test.
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

    unsafe extern "C-unwind" fn invoke(state: *const FunctorState, argument: *const *mut c_void) -> bool {
        // SAFETY: both belong to the test.
        unsafe { (*state)[0] == *argument as usize }
    }

    #[test]
    fn a_copy_is_cloned_once_and_destroyed_once() {
        let object = StdFunction { state: [7, 0], manager: Some(manage), invoker: Some(invoke) };
        // SAFETY: the object lives.
        let copy = unsafe { FunctionCopy::new(&raw const object) }.unwrap();
        assert_eq!(LIVE.load(Ordering::Relaxed), 1);
        let argument = 7 as *mut c_void;
        // SAFETY: as in `accepts`, without a CUDA runtime.
        assert!(unsafe { invoke(&raw const copy.0.state, &raw const argument) });
        drop(copy);
        assert_eq!(LIVE.load(Ordering::Relaxed), 0);
        let empty = StdFunction { state: [0; 2], manager: None, invoker: None };
        // SAFETY: the object lives.
        assert!(unsafe { FunctionCopy::new(&raw const empty) }.is_none());
    }
}
