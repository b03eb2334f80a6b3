//! The duration of calls, for the documentation. The figures of the fake device have no meaning.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use shared::allocator::Driver;
use shared::units::{Address, Stream};
use vramscope::driver::cuda::{Device, PoolSettings, StreamOrderedPool};

use crate::{MIB, budget, plain};

/// Returns the median duration of some calls in microseconds.
fn median(times: u32, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut durations = Vec::new();
    for _ in 0..times {
        let start = Instant::now();
        call()?;
        durations.push(start.elapsed().as_secs_f64() * 1e6);
    }
    durations.sort_by(f64::total_cmp);
    Ok(durations.get(durations.len() / 2).copied().unwrap_or_default())
}

/// Measures pairs of an allocation and a free, of each kind.
pub(crate) fn allocations(device: &Arc<Device>) -> Result<String> {
    const TIMES: u32 = 51;
    let mut driver = plain(device)?;
    let large = budget(&mut driver, 1 << 30)?;
    let mut lines = Vec::new();
    for size in [2 * MIB, 20 * MIB, large] {
        let pair = median(TIMES, || {
            let at = driver.alloc(size)?;
            Ok(driver.free(at, size)?)
        })?;
        lines.push(format!("{} MiB plain {pair:.0}", size / MIB));
    }
    let range = driver.reserve_range(40 * MIB)?;
    for page in [2 * MIB, 20 * MIB] {
        let pair = median(TIMES, || {
            driver.map(range, page, page)?;
            Ok(driver.unmap(range, page, page)?)
        })?;
        lines.push(format!("{} MiB page {pair:.0}", page / MIB));
    }
    driver.release_range(range, 40 * MIB)?;
    let stream = device.create_stream()?;
    let mut pool = StreamOrderedPool::new(device.clone(), &PoolSettings::default())?;
    for size in [2 * MIB, 20 * MIB] {
        let pair = median(TIMES, || {
            let at: Address = pool.allocate(size, stream)?;
            Ok(pool.free(at, stream)?)
        })?;
        lines.push(format!("{} MiB from the pool {pair:.1}", size / MIB));
    }
    drop(pool);
    device.destroy_stream(stream)?;
    Ok(format!("medians in µs of a pair: {}", lines.join(", ")))
}

/// Measures events and memory info, the allocator's other frequent calls.
pub(crate) fn events(device: &Arc<Device>) -> Result<String> {
    const TIMES: u32 = 1001;
    let mut driver = plain(device)?;
    let record = median(TIMES, || {
        let event = driver.record_event(Stream(0))?;
        driver.recycle_event(event);
        Ok(())
    })?;
    let event = driver.record_event(Stream(0))?;
    driver.wait_for_event(&event)?;
    let query = median(TIMES, || Ok(driver.is_event_done(&event).map(|_| ())?))?;
    driver.recycle_event(event);
    let info = median(TIMES, || Ok(driver.memory_info().map(|_| ())?))?;
    Ok(format!("medians in µs: record {record:.2}, query {query:.2}, memory info {info:.2}"))
}
