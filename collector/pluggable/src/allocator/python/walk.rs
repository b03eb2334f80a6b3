//! From the interpreter's frames to a stack's number.
#![allow(unsafe_code)] // CPython is C.

use std::cell::RefCell;
use std::ffi::c_int;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use shared::frames::{FrameId, StackId};
use vramscope::recorder::Stacks;

use super::api::{Api, Object};

/// Frames of one stack: deeper ones lose their outermost.
const MOST_FRAMES: usize = 1024;
/// Places in code that are remembered, about 24 bytes each; then the cache begins again.
const MOST_PLACES: usize = 1 << 18;

/// A frame that is walked over: references to it and to its code, and where in the code it is.
#[derive(Clone, Copy)]
struct Step {
    frame: Object,
    code: Object,
    place: c_int,
}

/// What was numbered before, by code object and place in it. A reference to each code object is kept, so that no other
/// one can come to lie at its address.
#[derive(Default)]
struct Known {
    frames: FxHashMap<(usize, c_int), FrameId>,
    codes: FxHashSet<usize>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

thread_local! {
    /// Room for a walk. Borrowed while one is under way: what a walk sets off (a garbage collection that frees tensors)
    /// must not begin another.
    static ROOM: RefCell<(Vec<Step>, Vec<FrameId>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// The number of the calling thread's stack; 0 where it has none.
pub(in crate::allocator) fn stack(stacks: &Stacks) -> StackId {
    let Some(api) = Api::get() else { return StackId(0) };
    let walked = ROOM.try_with(|room| {
        let Ok(mut room) = room.try_borrow_mut() else { return StackId(0) };
        let (steps, frames) = &mut *room;
        let Some(lock) = Lock::take(api) else { return StackId(0) };
        walk(api, &lock, steps);
        number(api, &lock, stacks, steps, frames);
        for step in steps.drain(..) {
            // SAFETY: references that the walk took.
            unsafe {
                (api.decref)(step.frame);
                (api.decref)(step.code);
            }
        }
        drop(lock);
        stacks.stack(frames)
    });
    walked.unwrap_or_default()
}

/// The interpreter's lock for this thread.
struct Lock<'a> {
    api: &'a Api,
    thread: *mut std::ffi::c_void,
    /// What to give back, where the thread had given it up.
    taken: Option<c_int>,
}

impl<'a> Lock<'a> {
    /// Takes it, if the thread is one of Python's.
    fn take(api: &'a Api) -> Option<Self> {
        // SAFETY: these may be called without the lock at any time. `ensure` would never return while the interpreter
        // ends, which is asked before.
        unsafe {
            let thread = (api.this_thread)();
            if thread.is_null() {
                return None;
            }
            let taken = if (api.current)() == thread {
                None
            } else if (api.is_finalizing)() != 0 {
                return None;
            } else {
                Some((api.ensure)())
            };
            Some(Self { api, thread, taken })
        }
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        if let Some(state) = self.taken {
            // SAFETY: taken by this value on this thread.
            unsafe { (self.api.release)(state) };
        }
    }
}

/// Steps over the frames, innermost first.
fn walk(api: &Api, lock: &Lock<'_>, steps: &mut Vec<Step>) {
    steps.clear();
    // SAFETY: the lock is held; every frame is a live reference that the steps own from here on.
    unsafe {
        let mut frame = (api.frame)(lock.thread);
        while !frame.is_null() {
            if steps.len() == MOST_FRAMES {
                (api.decref)(frame);
                break;
            }
            let place = api.instruction.unwrap_or(api.line)(frame);
            steps.push(Step { frame, code: (api.code)(frame), place });
            frame = (api.back)(frame);
        }
    }
}

fn known() -> MutexGuard<'static, Option<Known>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Numbers the steps' frames. Python is never called with the cache's lock held: that may run any code.
fn number(api: &Api, lock: &Lock<'_>, stacks: &Stacks, steps: &mut [Step], frames: &mut Vec<FrameId>) {
    frames.clear();
    let mut missing = 0;
    {
        let known = known();
        for step in &*steps {
            let found = known.as_ref().and_then(|known| known.frames.get(&(step.code as usize, step.place)));
            missing += usize::from(found.is_none());
            frames.push(found.copied().unwrap_or(FrameId(u32::MAX)));
        }
    }
    if missing == 0 {
        return;
    }
    for (step, frame) in steps.iter_mut().zip(frames.iter_mut()).filter(|(_, frame)| frame.0 == u32::MAX) {
        match name(api, lock, stacks, step) {
            Some(new) => {
                *frame = new;
                remember(api, step, new);
            }
            // The numbers' bounds are reached; what they refuse is counted with the stack.
            None => *frame = FrameId::default(),
        }
    }
}

/// The number of a frame that was not seen before.
fn name(api: &Api, _lock: &Lock<'_>, stacks: &Stacks, step: &Step) -> Option<FrameId> {
    // SAFETY: the lock is held, and the step's references live. An error that the program is about to handle is put
    // aside meanwhile.
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

/// Keeps a frame's number. The step's reference to the code goes to the cache where that has none yet.
fn remember(api: &Api, step: &mut Step, number: FrameId) {
    let full = {
        let mut known = known();
        let full = known.take_if(|known| known.frames.len() >= MOST_PLACES);
        let known = known.get_or_insert_default();
        known.frames.insert((step.code as usize, step.place), number);
        if known.codes.insert(step.code as usize) {
            // A second reference: the step still gives its own back.
            // SAFETY: the interpreter's lock is held by the caller's walk, and the frame lives.
            step.code = unsafe { (api.code)(step.frame) };
        }
        full
    };
    for code in full.into_iter().flat_map(|full| full.codes) {
        // SAFETY: references that the cache held.
        unsafe { (api.decref)(code as Object) };
    }
}
