//! The duration of calls, for the documentation. The figures of the fake device have no meaning.

use std::sync::Arc;
use std::time::Instant;

use allocator::Driver;
use anyhow::Result;
use recorder::cuda::{CudaDriver, CudaError, Device, PoolSettings, Source, StreamOrderedPool};
use trace::units::{Bytes, Stream};

use crate::{MIB, budget, plain};

/// The number of calls that a median is of.
const TIMES: u32 = 51;

/// Returns how long a call took, in microseconds, and what it returned.
fn timed<T>(call: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let start = Instant::now();
    let value = call()?;
    Ok((start.elapsed().as_secs_f64() * 1e6, value))
}

fn median(mut durations: Vec<f64>) -> f64 {
    durations.sort_by(f64::total_cmp);
    durations.get(durations.len() / 2).copied().unwrap_or_default()
}

/// Takes memory and gives it back several times. Returns both medians as text.
fn pairs<D, T>(
    with: &mut D,
    mut take: impl FnMut(&mut D) -> Result<T>,
    mut give: impl FnMut(&mut D, T) -> Result<()>,
) -> Result<String> {
    let (mut taken, mut given) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let (microseconds, value) = timed(|| take(with))?;
        taken.push(microseconds);
        given.push(timed(|| give(with, value))?.0);
    }
    Ok(format!("{:.1} and {:.1}", median(taken), median(given)))
}

/// Measures an allocation and its free, of each kind and several sizes. Nothing is written to the memory.
pub(crate) fn allocations(device: &Arc<Device>) -> Result<String> {
    let mut driver = plain(device)?;
    let largest = budget(&mut driver, 16 << 30)?;
    let sizes = [2 * MIB, 20 * MIB, 200 * MIB, 2 << 30, largest];
    let mut lines = Vec::new();
    for size in sizes.into_iter().filter(|size| *size <= largest) {
        let found = pairs(&mut driver, |driver| Ok(driver.alloc(size)?), |driver, at| Ok(driver.free(at, size)?))?;
        lines.push(format!("plain, {}: {found}", Bytes(size)));
    }
    let range = driver.reserve_range(200 * MIB)?;
    for size in [2 * MIB, 20 * MIB, 200 * MIB].into_iter().filter(|size| *size <= largest) {
        let map = |driver: &mut CudaDriver| Ok(driver.map(range, size, size.min(20 * MIB))?);
        let found = pairs(&mut driver, map, |driver, ()| Ok(driver.unmap(range, size, size.min(20 * MIB))?))?;
        lines.push(format!("mapped in pages of {}, {}: {found}", Bytes(size.min(20 * MIB)), Bytes(size)));
    }
    driver.release_range(range, 200 * MIB)?;
    lines.extend(from_pool(device, largest)?);
    match CudaDriver::new(device.clone(), Source::Managed) {
        Ok(mut managed) => {
            for size in [2 * MIB, 20 * MIB, 200 * MIB].into_iter().filter(|size| *size <= largest) {
                let give = |driver: &mut CudaDriver, at| Ok(driver.free(at, size)?);
                let found = pairs(&mut managed, |driver| Ok(driver.alloc(size)?), give)?;
                lines.push(format!("unified, {}: {found}", Bytes(size)));
            }
        }
        Err(error @ CudaError::NoManagedMemory { .. }) => lines.push(format!("unified: skipped: {error}")),
        Err(error) => return Err(error.into()),
    }
    Ok(format!("medians in µs, allocation and free:\n    {}", lines.join("\n    ")))
}

/// Measures a stream-ordered pool that keeps what is freed, as `cudaMallocAsync` does in PyTorch.
fn from_pool(device: &Arc<Device>, largest: u64) -> Result<Vec<String>> {
    let stream = device.create_stream()?;
    let mut pool = StreamOrderedPool::new(device.clone(), &PoolSettings::default())?;
    let mut lines = Vec::new();
    for size in [2 * MIB, 20 * MIB, 200 * MIB].into_iter().filter(|size| *size <= largest) {
        let take = |pool: &mut StreamOrderedPool| Ok(pool.allocate(size, stream)?);
        let found = pairs(&mut pool, take, |pool, at| Ok(pool.free(at, stream)?))?;
        lines.push(format!("from the pool, {}: {found}", Bytes(size)));
    }
    drop(pool);
    device.destroy_stream(stream)?;
    Ok(lines)
}

/// Measures events and memory info, the allocator's other frequent calls.
pub(crate) fn events(device: &Arc<Device>) -> Result<String> {
    let mut driver = plain(device)?;
    let record = pairs(
        &mut driver,
        |driver| Ok(driver.record_event(Stream(0))?),
        |driver, event| {
            driver.recycle_event(event);
            Ok(())
        },
    )?;
    let event = driver.record_event(Stream(0))?;
    driver.wait_for_event(&event)?;
    let query = pairs(&mut driver, |driver| Ok(driver.is_event_done(&event)?), |_, _| Ok(()))?;
    driver.recycle_event(event);
    let info = pairs(&mut driver, |driver| Ok(driver.memory_info()?), |_, _| Ok(()))?;
    Ok(format!("medians in µs: record and recycle {record}; query {query}; memory info {info}"))
}
