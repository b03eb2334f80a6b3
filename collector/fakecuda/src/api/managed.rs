//! Functions for unified memory.

use std::collections::BTreeSet;
use std::ffi::c_int;

use super::{export, put};
use crate::code::Code;
use crate::device::Kind;
use crate::streams::Work;

/// `CU_DEVICE_CPU`.
const HOST: c_int = -1;

/// `CU_MEM_ATTACH_GLOBAL`.
const GLOBAL: u32 = 1;

/// The last of `CUmem_advise`.
const LAST_ADVICE: u32 = 6;

// SAFETY of all functions below: the caller promises valid pointers and handles.
export! {
    fn cuMemAllocManaged(machine, address: *mut u64, size: usize, flags: u32) {
        let device = machine.current()?;
        if flags != GLOBAL {
            return Err(Code::INVALID_VALUE);
        }
        let allocated = machine.device(device)?.allocate(size as u64, Kind::Managed(BTreeSet::new()))?;
        unsafe { put(address, allocated) }
    }

    fn cuMemPrefetchAsync(machine, at: u64, size: usize, device: c_int, stream: usize) {
        let key = machine.stream(stream)?;
        if device != HOST {
            machine.numbered(device)?;
        }
        if !machine.device_at(at)?.is_managed(at, size as u64) {
            return Err(Code::INVALID_VALUE);
        }
        let work = Work::Prefetch { at, size: size as u64, to_device: device != HOST };
        machine.submit(key, work).map(|_| ())
    }

    fn cuMemAdvise(machine, at: u64, size: usize, advice: u32, device: c_int) {
        if device != HOST {
            machine.numbered(device)?;
        }
        let is_known = (1..=LAST_ADVICE).contains(&advice);
        if is_known && machine.device_at(at)?.is_managed(at, size as u64) { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }
}
