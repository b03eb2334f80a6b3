//! Converts the interpreter's frames to a stack's number.
#![allow(unsafe_code)] // CPython is C.

use std::cell::RefCell;
use std::ffi::c_int;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use recorder::Stacks;
use rustc_hash::{FxHashMap, FxHashSet};
use trace::frames::{FrameId, StackId};

use super::api::{Api, Object};

/// The most frames of a stack; a deeper stack loses its outermost frames.
const MAX_FRAMES: usize = 1024;
/// The most cached code locations, of roughly 24 bytes each; beyond it the cache is emptied.
const MAX_LOCATIONS: usize = 1 << 18;

/// A frame of the walked stack: references to it and to its code, and its location in the code.
#[derive(Clone, Copy)]
struct Step {
    frame: Object,
    code: Object,
    location: c_int,
}

/// Numbered frames by code object and location. A reference to each code object is kept, so that no other object can
/// have its address.
#[derive(Default)]
struct Known {
    frames: FxHashMap<(usize, c_int), FrameId>,
    codes: FxHashSet<usize>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

thread_local! {
    /// Buffers for a walk. They are borrowed during a walk, because a garbage collection that it triggers may free
    /// tensors and must not start another walk.
    static BUFFERS: RefCell<(Vec<Step>, Vec<FrameId>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// Returns the number of the calling thread's stack; 0 if it has none.
pub(in crate::allocator) fn stack(stacks: &Stacks) -> StackId {
    let Some(api) = Api::get() else { return StackId(0) };
    let walked = BUFFERS.try_with(|buffers| {
        let Ok(mut buffers) = buffers.try_borrow_mut() else { return StackId(0) };
        let (steps, frames) = &mut *buffers;
        let Some(gil) = Gil::acquire(api) else { return StackId(0) };
        walk(api, &gil, steps);
        number(api, &gil, stacks, steps, frames);
        for step in steps.drain(..) {
            // SAFETY: the walk created these references.
            unsafe {
                (api.decref)(step.frame);
                (api.decref)(step.code);
            }
        }
        drop(gil);
        stacks.stack(frames)
    });
    walked.unwrap_or_default()
}

/// Holds the GIL on this thread.
struct Gil<'a> {
    api: &'a Api,
    thread: *mut std::ffi::c_void,
    /// What to pass to `PyGILState_Release`, if this value acquired the GIL.
    acquired: Option<c_int>,
}

impl<'a> Gil<'a> {
    /// Acquires the GIL, if the thread is one of Python's.
    fn acquire(api: &'a Api) -> Option<Self> {
        // SAFETY: these functions may be called without the GIL. `ensure` would never return during finalisation, which
        // is checked first.
        unsafe {
            let thread = (api.this_thread)();
            if thread.is_null() {
                return None;
            }
            let acquired = if (api.current)() == thread {
                None
            } else if (api.is_finalizing)() != 0 {
                return None;
            } else {
                Some((api.ensure)())
            };
            Some(Self { api, thread, acquired })
        }
    }
}

impl Drop for Gil<'_> {
    fn drop(&mut self) {
        if let Some(state) = self.acquired {
            // SAFETY: this value acquired it on this thread.
            unsafe { (self.api.release)(state) };
        }
    }
}

/// Collects the frames, innermost first.
fn walk(api: &Api, gil: &Gil<'_>, steps: &mut Vec<Step>) {
    steps.clear();
    // SAFETY: the GIL is held; every frame is a live reference that the steps own.
    unsafe {
        let mut frame = (api.frame)(gil.thread);
        while !frame.is_null() {
            if steps.len() == MAX_FRAMES {
                (api.decref)(frame);
                break;
            }
            let location = api.instruction.unwrap_or(api.line)(frame);
            steps.push(Step { frame, code: (api.code)(frame), location });
            frame = (api.back)(frame);
        }
    }
}

fn known() -> MutexGuard<'static, Option<Known>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Numbers the frames. Python is never called while the cache is locked, because it may run any code.
fn number(api: &Api, gil: &Gil<'_>, stacks: &Stacks, steps: &mut [Step], frames: &mut Vec<FrameId>) {
    frames.clear();
    let mut missing = 0;
    {
        let known = known();
        for step in &*steps {
            let found = known.as_ref().and_then(|known| known.frames.get(&(step.code as usize, step.location)));
            missing += usize::from(found.is_none());
            frames.push(found.copied().unwrap_or(FrameId(u32::MAX)));
        }
    }
    if missing == 0 {
        return;
    }
    for (step, frame) in steps.iter_mut().zip(frames.iter_mut()).filter(|(_, frame)| frame.0 == u32::MAX) {
        match name(api, gil, stacks, step) {
            Some(new) => {
                *frame = new;
                remember(api, step, new);
            }
            // Beyond the bounds of the table, which counts the refusal.
            None => *frame = FrameId::default(),
        }
    }
}

/// Returns the number of a frame that is not cached.
fn name(api: &Api, _gil: &Gil<'_>, stacks: &Stacks, step: &Step) -> Option<FrameId> {
    // SAFETY: the GIL is held, and the step's references are live. A pending Python error is saved and restored.
    unsafe {
        let (mut kind, mut value, mut trace) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        (api.fetch_error)(&raw mut kind, &raw mut value, &raw mut trace);
        let line = u32::try_from((api.line)(step.frame)).unwrap_or(0);
        let number = api.text(step.code, c"co_filename", |file| {
            api.text(step.code, c"co_name", |name| stacks.frame(name, file, line)).flatten()
        });
        (api.restore_error)(kind, value, trace);
        number.flatten()
    }
}

/// Caches a frame's number. If the cache has no reference to the code object yet, it keeps the step's.
fn remember(api: &Api, step: &mut Step, number: FrameId) {
    let full = {
        let mut known = known();
        let full = known.take_if(|known| known.frames.len() >= MAX_LOCATIONS);
        let known = known.get_or_insert_default();
        known.frames.insert((step.code as usize, step.location), number);
        if known.codes.insert(step.code as usize) {
            // The step gets a new reference, which it releases.
            // SAFETY: the caller holds the GIL, and the frame is live.
            step.code = unsafe { (api.code)(step.frame) };
        }
        full
    };
    for code in full.into_iter().flat_map(|full| full.codes) {
        // SAFETY: the cache held these references.
        unsafe { (api.decref)(code as Object) };
    }
}
