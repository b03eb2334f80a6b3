//! Other ways to allocate, and NVML.

use std::sync::Arc;

use allocator::{Driver, DriverError};
use anyhow::{Context, Result, ensure};
use recorder::cuda::{
    Advice, CudaDriver, CudaError, Device, PageLocation, PoolError, PoolSettings, Source, StreamOrderedPool,
};
use trace::units::{Bytes, Stream};
use vramscope::driver::nvml::{NvmlError, NvmlLibrary};

use crate::{MIB, budget, ensure_holds, pattern, plain};

/// Checks that a pool's memory keeps its contents, is counted, and is released by a trim.
pub(crate) fn pool(device: &Arc<Device>) -> Result<String> {
    let size = budget(&mut plain(device)?, 256 * MIB)?;
    let mut pool = StreamOrderedPool::new(device.clone(), &PoolSettings::default())?;
    let (own, user) = (device.create_stream()?, device.create_stream()?);
    let mut held = Vec::new();
    for part in [size / 2, size / 4, size / 8, 12_345] {
        let at = pool.allocate(part, own)?;
        device.write_on(own, at, &pattern(at.0, part))?;
        held.push((at, part));
    }
    let used = pool.statistics()?;
    ensure!(used.allocated.current >= size / 8 * 7 + 12_345, "only {} count as used", used.allocated.current);
    ensure!(used.reserved.current >= used.allocated.current, "less is reserved than used");
    for (at, part) in &held {
        ensure_holds(device, *at, &pattern(at.0, *part))?;
    }
    let (shared, _) = held.first().context("nothing is held")?;
    pool.record_stream(*shared, user)?;
    device.fill_on(user, *shared, 1, size / 2)?;
    for (at, _) in held {
        pool.free(at, own)?;
        ensure!(matches!(pool.free(at, own), Err(PoolError::UnknownAddress(_))), "freed twice");
    }
    device.synchronize()?;
    let kept = pool.statistics()?;
    ensure!(kept.allocated.current == 0, "{} still count as used", kept.allocated.current);
    ensure!(kept.reserved.current > 0, "the pool kept nothing");
    pool.empty_cache()?;
    let trimmed = pool.statistics()?.reserved;
    ensure!(trimmed.current == 0, "{} are held after a trim", trimmed.current);
    drop(pool);
    device.destroy_stream(own)?;
    device.destroy_stream(user)?;
    Ok(format!("{} used at most, {} reserved at most", Bytes(kept.allocated.peak), Bytes(trimmed.peak)))
}

/// Checks that unified memory moves to the host and back with its contents, and never exceeds free memory.
pub(crate) fn managed(device: &Arc<Device>) -> Result<String> {
    let mut driver = match CudaDriver::new(device.clone(), Source::Managed) {
        Ok(driver) => driver,
        Err(error @ CudaError::NoManagedMemory { .. }) => return Ok(format!("skipped: {error}")),
        Err(error) => return Err(error.into()),
    };
    let size = budget(&mut driver, 100 * MIB)?;
    // Before any allocation, so that the driver refuses it, not the device.
    let more = driver.memory_info()?.total + 2 * MIB;
    ensure!(driver.alloc(more) == Err(DriverError::OutOfMemory), "more than the device has was not refused");
    let at = driver.alloc(size)?;
    let bytes = pattern(3, size);
    device.write(at, &bytes)?;
    driver.advise(at, size, Advice::PreferredLocation(Some(PageLocation::Device)))?;
    for place in [PageLocation::Host, PageLocation::Device] {
        driver.prefetch(at, size, place, Stream(0))?;
        driver.synchronize_stream(Stream(0))?;
        ensure_holds(device, at, &bytes)?;
    }
    driver.free(at, size)?;
    Ok(format!("{} to the host and back", Bytes(size)))
}

/// Checks that NVML knows the same device and counts this process's memory.
pub(crate) fn nvml(device: &Arc<Device>) -> Result<String> {
    let library = match NvmlLibrary::load() {
        Ok(library) => library,
        Err(error @ NvmlError::NoLibrary) => return Ok(format!("skipped: {error}")),
        Err(error) => return Err(error.into()),
    };
    let mut driver = plain(device)?;
    let size = budget(&mut driver, 500 * MIB)?;
    let uuid = device.uuid()?;
    let before = library.memory(&uuid)?;
    let at = driver.alloc(size)?;
    let after = library.memory(&uuid)?;
    driver.free(at, size)?;
    let more = after.used.saturating_sub(before.used);
    ensure!(more + 64 * MIB >= size, "{} taken, {} more used", Bytes(size), Bytes(more));
    let known: u64 = after.processes.iter().filter_map(|process| process.used).sum();
    Ok(format!(
        "{} used of {}, {} kept by the driver; {} processes hold {}",
        Bytes(after.used),
        Bytes(after.total),
        Bytes(after.reserved),
        after.processes.len(),
        Bytes(known)
    ))
}
