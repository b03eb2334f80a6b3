//! Functions for stream-ordered pools.

use std::ffi::c_void;

use super::ranges::Location;
use super::{export, put};
use crate::code::{Code, Outcome};
use crate::pools::Pool;
use crate::streams::Work;

/// The used part of a pool's properties (`CUmemPoolProps`).
#[repr(C)]
pub(crate) struct PoolProperties {
    kind: u32,
    handle_types: u32,
    location: Location,
    security: *mut c_void,
    rest: [u8; 64],
}

/// `CUmemPool_attribute`: the first three are `int`, the others `cuuint64_t`.
const REUSE: std::ops::RangeInclusive<u32> = 1..=3;
const RELEASE_THRESHOLD: u32 = 4;
const RESERVED: u32 = 5;
const RESERVED_HIGH: u32 = 6;
const USED: u32 = 7;
const USED_HIGH: u32 = 8;

/// Returns an attribute of a pool that is a number of bytes.
fn bytes(pool: &Pool, attribute: u32) -> Outcome<u64> {
    match attribute {
        RELEASE_THRESHOLD => Ok(pool.threshold),
        RESERVED => Ok(pool.reserved),
        RESERVED_HIGH => Ok(pool.reserved_high),
        USED => Ok(pool.used),
        USED_HIGH => Ok(pool.used_high),
        _ => Err(Code::INVALID_VALUE),
    }
}

// SAFETY of all functions below: the caller promises valid pointers and handles.
export! {
    fn cuMemPoolCreate(machine, pool: *mut usize, properties: *const PoolProperties) {
        let location = unsafe { properties.as_ref() }.ok_or(Code::INVALID_VALUE)?.location;
        machine.numbered(location.id)?;
        let handle = machine.streams.new_handle();
        machine.pools.insert(handle, Pool::new(location.id as usize));
        unsafe { put(pool, handle) }
    }

    fn cuMemPoolDestroy(machine, pool: usize) {
        machine.close_pool(pool)
    }

    fn cuMemPoolSetAttribute(machine, pool: usize, attribute: u32, value: *mut c_void) {
        let pool = machine.pool(pool)?;
        if REUSE.contains(&attribute) {
            pool.reuse[attribute as usize - 1] = unsafe { value.cast::<i32>().read() };
            return Ok(());
        }
        let value = unsafe { value.cast::<u64>().read() };
        match (attribute, value) {
            (RELEASE_THRESHOLD, threshold) => pool.threshold = threshold,
            // Only zero may be written, which resets the peak.
            (RESERVED_HIGH, 0) => pool.reserved_high = pool.reserved,
            (USED_HIGH, 0) => pool.used_high = pool.used,
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }

    fn cuMemPoolGetAttribute(machine, pool: usize, attribute: u32, value: *mut c_void) {
        let pool = machine.pool(pool)?;
        if REUSE.contains(&attribute) {
            return unsafe { put(value.cast::<i32>(), pool.reuse[attribute as usize - 1]) };
        }
        let bytes = bytes(pool, attribute)?;
        unsafe { put(value.cast::<u64>(), bytes) }
    }

    fn cuMemPoolTrimTo(machine, pool: usize, keep: usize) {
        machine.pool(pool)?;
        machine.trim_pool(pool, keep as u64);
        Ok(())
    }

    fn cuMemAllocFromPoolAsync(machine, address: *mut u64, size: usize, pool: usize, stream: usize) {
        machine.stream(stream)?;
        let allocated = machine.allocate_from_pool(pool, size as u64)?;
        unsafe { put(address, allocated) }
    }

    fn cuMemFreeAsync(machine, address: u64, stream: usize) {
        let key = machine.stream(stream)?;
        if !machine.is_live_in_pool(address) {
            return Err(Code::INVALID_VALUE);
        }
        machine.submit(key, Work::FreeToPool { address }).map(|_| ())
    }
}
