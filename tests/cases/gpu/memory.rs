//! Segments, ranges and streams, which the caching allocator uses.

use std::sync::Arc;
use std::time::Instant;

use allocator::{Driver, DriverError};
use anyhow::{Result, ensure};
use recorder::cuda::Device;
use trace::units::{Address, Bytes};

use crate::{MIB, budget, ensure_holds, pattern, plain};

/// Checks that segments of many sizes do not overlap and keep their contents.
pub(crate) fn contents(device: &Arc<Device>) -> Result<String> {
    let mut driver = plain(device)?;
    let mut rest = budget(&mut driver, 1 << 30)?;
    let mut segments: Vec<(Address, u64)> = Vec::new();
    for size in [2, 20, 2, 50, 20, 120, 2, 34].map(|size| size * MIB).into_iter().cycle().take(64) {
        if size > rest {
            break;
        }
        rest -= size;
        segments.push((driver.alloc(size)?, size));
    }
    let mut order = segments.clone();
    order.sort();
    for pair in order.windows(2) {
        ensure!(pair[0].0.0 + pair[0].1 <= pair[1].0.0, "{} and {} overlap", pair[0].0, pair[1].0);
    }
    // All are written before one is read: a write that strays is seen.
    let start = Instant::now();
    for (at, size) in &segments {
        device.write(*at, &pattern(at.0, *size))?;
    }
    for (at, size) in &segments {
        ensure_holds(device, *at, &pattern(at.0, *size))?;
    }
    let bytes: u64 = segments.iter().map(|(_, size)| size).sum();
    let seconds = start.elapsed().as_secs_f64();
    Ok(format!("{} segments, {} written, read and compared in {seconds:.2} s", segments.len(), Bytes(bytes)))
}

/// Fills the device with plain segments, until it refuses one, and checks that it has room again after a free.
pub(crate) fn out_of_memory(device: &Arc<Device>) -> Result<String> {
    let mut driver = plain(device)?;
    let free = driver.memory_info()?.free;
    let piece = (free / 24 / (2 * MIB) * (2 * MIB)).max(2 * MIB);
    let most = (free / piece) as usize;
    let mut held = Vec::new();
    let refused = loop {
        // One more may fit if another process frees memory meanwhile.
        ensure!(held.len() <= most + 1, "more fits than is free");
        match driver.alloc(piece) {
            Ok(at) => held.push(at),
            Err(error) => break error,
        }
    };
    ensure!(refused == DriverError::OutOfMemory, "{refused}");
    ensure!(held.len() >= most * 5 / 6, "only {} of {most} pieces of {} fit", held.len(), Bytes(piece));
    for (i, at) in held.iter().enumerate() {
        device.fill(*at, i as u8, piece)?;
    }
    for (i, at) in held.iter().enumerate() {
        ensure_holds(device, *at, &[i as u8; 4096])?;
        ensure_holds(device, Address(at.0 + piece - 4096), &[i as u8; 4096])?;
    }
    let count = held.len();
    let middle = held.swap_remove(count / 2);
    driver.free(middle, piece)?;
    let again = driver.alloc(piece)?;
    device.fill(again, 0xee, piece)?;
    ensure_holds(device, Address(again.0 + piece / 2), &[0xee; 4096])?;
    for at in held.into_iter().chain([again]) {
        driver.free(at, piece)?;
    }
    let after = driver.memory_info()?.free;
    ensure!(after + 64 * MIB >= free, "{} were free before, {} after", Bytes(free), Bytes(after));
    Ok(format!("{count} pieces of {} filled the device; one freed, one more fit", Bytes(piece)))
}

/// Checks that a range as large as PyTorch's grows page by page, keeps its contents, and shrinks from the middle.
pub(crate) fn ranges(device: &Arc<Device>) -> Result<String> {
    let mut driver = plain(device)?;
    let page = 20 * MIB;
    let total = driver.total_memory();
    let reserved = (total + total / 8).next_multiple_of(page);
    let range = driver.reserve_range(reserved)?;
    let size = budget(&mut driver, 1 << 30)?;
    let before = driver.memory_info()?.free;
    let bytes = pattern(7, size);
    for at in (0..size).step_by(page as usize) {
        driver.map(Address(range.0 + at), page, page)?;
        let part = bytes.get(at as usize..(at + page) as usize).unwrap_or_default();
        device.write(Address(range.0 + at), part)?;
    }
    // One read of all mappings.
    ensure_holds(device, range, &bytes)?;
    let mapped = before.saturating_sub(driver.memory_info()?.free);
    ensure!(mapped + 64 * MIB >= size, "{} mapped, {} less free", Bytes(size), Bytes(mapped));

    let middle = Address(range.0 + size / page / 2 * page);
    let offset = (middle.0 - range.0) as usize;
    driver.unmap(middle, page, page)?;
    ensure!(device.read(middle, &mut [0]).is_err(), "unmapped memory can be read");
    ensure_holds(device, range, bytes.get(..offset).unwrap_or_default())?;
    driver.map(middle, page, page)?;
    device.fill(middle, 0x55, page)?;
    ensure_holds(device, middle, &vec![0x55; page as usize])?;
    let after = offset + page as usize;
    ensure_holds(device, Address(range.0 + after as u64), bytes.get(after..).unwrap_or_default())?;
    driver.unmap(range, size, page)?;
    driver.release_range(range, reserved)?;
    let count = size / page;
    Ok(format!("{} reserved, {count} pages of {} mapped, one unmapped and mapped again", Bytes(reserved), Bytes(page)))
}

/// Checks that streams keep their order, that an event orders two streams, and that running work keeps its memory.
pub(crate) fn streams(device: &Arc<Device>) -> Result<String> {
    const ROUNDS: u8 = 50;
    let mut driver = plain(device)?;
    let size = budget(&mut driver, 256 * MIB)?;
    let (first, second) = (device.create_stream()?, device.create_stream()?);
    let (from, to) = (driver.alloc(size)?, driver.alloc(size)?);
    let mut pending = 0;
    for round in 1..=ROUNDS {
        device.fill_on(first, from, round, size)?;
        let event = driver.record_event(first)?;
        pending += u32::from(!driver.is_event_done(&event)?);
        device.wait_for_stream(second, first)?;
        device.copy_on(second, from, to, size)?;
        device.wait_for_stream(first, second)?;
        driver.wait_for_event(&event)?;
        ensure!(driver.is_event_done(&event)?, "an event that was waited for is not done");
        driver.recycle_event(event);
        let mut last = [0; 16];
        device.read_on(second, Address(to.0 + size - 16), &mut last)?;
        ensure!(last == [round; 16], "round {round}: the copy came before the fill");
    }
    driver.synchronize_stream(first)?;
    device.fill_on(first, from, 1, size)?;
    driver.free(from, size)?;
    driver.free(to, size)?;
    device.synchronize()?;
    device.destroy_stream(first)?;
    device.destroy_stream(second)?;
    Ok(format!("{ROUNDS} rounds of {} over two streams in order; {pending} events seen pending", Bytes(size)))
}
