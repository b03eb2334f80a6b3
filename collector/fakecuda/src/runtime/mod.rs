//! The CUDA runtime (`libcudart`) over the driver of this library: what PyTorch's allocator, its streams and its graph
//! captures call. `tests/differential` runs the official PyTorch binaries over it.
//!
//! Kernels are registered and never run. Nothing here touches the devices before a program asks for them, so a process
//! can load PyTorch, fork, and set the devices' environment variables in the child.

mod capture;
mod compiler;
mod cudnn;
mod devices;
mod kernels;
mod libraries;
mod lookup;
mod memory;
mod modules;
mod nvml;
mod properties;
mod recurrent;
mod sizes;
mod streams;

use std::cell::Cell;

use crate::code::{Code, Outcome};
use crate::machine::{Machine, machine, pop_context, push_context};

thread_local! {
    /// The device that this thread has chosen (`cudaSetDevice`).
    static DEVICE: Cell<i32> = const { Cell::new(0) };
    /// The last error of this thread, until it is asked for.
    static LAST_ERROR: Cell<u32> = const { Cell::new(0) };
}

/// Exports functions of the runtime. Each gets the machine, with the context of the thread's device current, and the
/// device's number.
macro_rules! export {
    ($(fn $name:ident($machine:ident, $device:ident $(, $argument:ident: $type:ty)*) $body:block)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of the runtime.")]
        ///
        /// # Safety
        /// As NVIDIA's documentation of the function demands.
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
            $crate::runtime::call(stringify!($name), |$machine, $device| $body)
        }
    )*};
}
use export;

/// Answers a call on the thread's device and remembers its error.
fn call(symbol: &'static str, body: impl FnOnce(&mut Machine, usize) -> Outcome) -> u32 {
    let code = crate::machine::answer(symbol, |machine| {
        let device = DEVICE.get();
        machine.is_initialized = true;
        if machine.current().is_err() {
            enter(machine, device)?;
        }
        body(machine, usize::try_from(device).map_err(|_| Code::INVALID_DEVICE)?)
    });
    if code != 0 {
        LAST_ERROR.set(code);
    }
    code
}

/// Makes the primary context of a device current on this thread.
fn enter(machine: &mut Machine, device: i32) -> Outcome {
    let context = machine.retain(device)?;
    let _ = pop_context();
    push_context(context);
    Ok(())
}

/// Initializes the driver for a call that needs a device's number and no context.
fn initialized<T>(body: impl FnOnce(&mut Machine) -> T) -> T {
    let mut machine = machine();
    machine.is_initialized = true;
    body(&mut machine)
}
