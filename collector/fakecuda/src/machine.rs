//! The library's state behind one lock, and the frame of every call.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::code::{Code, Outcome};
use crate::device::{ADDRESSES, Device};
use crate::faults::Faults;
use crate::model::Model;
use crate::pools::Pool;
use crate::settings::Settings;
use crate::streams::Streams;

/// The handle of device 0's primary context; the next is the next device's.
const CONTEXT: usize = 0x6000_0001;

thread_local! {
    /// This thread's stack of contexts.
    static CURRENT: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// The state of the library.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) settings: Settings,
    /// What every device is.
    pub(crate) model: Model,
    pub(crate) is_initialized: bool,
    pub(crate) devices: Vec<Device>,
    pub(crate) streams: Streams,
    pub(crate) pools: BTreeMap<usize, Pool>,
    pub(crate) faults: Faults,
}

impl Machine {
    fn new(mut settings: Settings) -> Self {
        let mut faults = Faults::default();
        for fault in settings.faults.drain(..) {
            faults.plan(fault);
        }
        // A device whose addresses cannot be reserved does not exist.
        let devices = (0..settings.devices).map_while(|number| Device::new(number, &settings).ok()).collect();
        let model = Model::of(&settings);
        Self {
            settings,
            model,
            is_initialized: false,
            devices,
            streams: Streams::default(),
            pools: BTreeMap::new(),
            faults,
        }
    }

    /// Returns the device with this number.
    pub(crate) fn device(&mut self, number: usize) -> Outcome<&mut Device> {
        self.devices.get_mut(number).ok_or(Code::INVALID_DEVICE)
    }

    /// Returns the device with the number that a C caller passed.
    pub(crate) fn numbered(&mut self, number: i32) -> Outcome<&mut Device> {
        usize::try_from(number).map_err(|_| Code::INVALID_DEVICE).and_then(|number| self.device(number))
    }

    /// Returns the device to whose memory or reserved addresses an address belongs.
    pub(crate) fn device_at(&mut self, address: u64) -> Outcome<&mut Device> {
        let holds = |device: &&mut Device| address.checked_sub(device.base).is_some_and(|at| at < ADDRESSES);
        self.devices.iter_mut().find(holds).ok_or(Code::INVALID_VALUE)
    }

    /// Returns the number of the device whose context is current on this thread.
    pub(crate) fn current(&self) -> Outcome<usize> {
        let context = current_context();
        let number = context.checked_sub(CONTEXT).ok_or(Code::INVALID_CONTEXT)?;
        let is_alive = self.devices.get(number).is_some_and(|device| device.contexts > 0);
        if is_alive { Ok(number) } else { Err(Code::INVALID_CONTEXT) }
    }

    /// Retains a device's primary context and returns its handle.
    pub(crate) fn retain(&mut self, number: i32) -> Outcome<usize> {
        let bytes = self.settings.context_bytes;
        let device = self.numbered(number)?;
        if device.contexts == 0 {
            device.charge(bytes)?;
        }
        device.contexts += 1;
        Ok(CONTEXT + number as usize)
    }

    /// Releases a device's primary context.
    pub(crate) fn release(&mut self, number: i32) -> Outcome {
        let bytes = self.settings.context_bytes;
        let device = self.numbered(number)?;
        device.contexts = device.contexts.checked_sub(1).ok_or(Code::INVALID_CONTEXT)?;
        if device.contexts == 0 {
            device.used -= bytes;
            // Streams are destroyed with their context.
            self.streams.streams.retain(|key, _| key.0 != number as usize);
        }
        Ok(())
    }

    /// Returns the number of existing allocations, ranges, pages, contexts, streams, events and pools.
    pub(crate) fn leftovers(&self) -> usize {
        let devices: usize = self.devices.iter().map(Device::leftovers).sum();
        devices + self.streams.leftovers() + self.pools.len()
    }
}

/// Returns the context that is current on this thread; 0 if there is none.
pub(crate) fn current_context() -> usize {
    CURRENT.with_borrow(|stack| stack.last().copied().unwrap_or(0))
}

/// Makes a context current on this thread.
pub(crate) fn push_context(context: usize) {
    CURRENT.with_borrow_mut(|stack| stack.push(context));
}

/// Makes the previous context current again.
pub(crate) fn pop_context() -> Outcome<usize> {
    CURRENT.with_borrow_mut(Vec::pop).ok_or(Code::INVALID_CONTEXT)
}

/// Locks and returns the machine.
pub(crate) fn machine() -> MutexGuard<'static, Machine> {
    static MACHINE: OnceLock<Mutex<Machine>> = OnceLock::new();
    let machine = MACHINE.get_or_init(|| Mutex::new(Machine::new(Settings::from_environment())));
    machine.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the body of a C function: counts the call, returns a planned error, and never unwinds into the caller.
pub(crate) fn answer(symbol: &'static str, body: impl FnOnce(&mut Machine) -> Outcome) -> u32 {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut machine = machine();
        machine.faults.call(symbol)?;
        body(&mut machine)
    }));
    match outcome {
        Ok(Ok(())) => 0,
        Ok(Err(code)) => code.0,
        Err(_) => Code::UNKNOWN.0,
    }
}
