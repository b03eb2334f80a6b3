//! Checks on a real GPU: `just gpu-test`. Without one they are skipped, with the reason. The same checks also run on the
//! fake device, so that they are known to work when there is a GPU.
//!
//! `VRAMSCOPE_GPU` is the number of the device; the default is 0.

mod allocator;
mod memory;
mod others;
mod places;
mod timing;

use std::sync::Arc;

use ::allocator::Driver;
use anyhow::{Context, Result, bail, ensure};
use recorder::cuda::{CudaDriver, Device, Source};
use trace::units::{Address, Bytes};

const MIB: u64 = 1 << 20;

/// A check: it fails, or returns a line with its result.
type Check = fn(&Arc<Device>) -> Result<String>;

/// All checks, in this order. Each frees its memory.
const CHECKS: [(&str, Check); 10] = [
    ("contents", memory::contents),
    ("out of memory and recovery", memory::out_of_memory),
    ("expandable ranges", memory::ranges),
    ("streams and events", memory::streams),
    ("stream-ordered pool", others::pool),
    ("unified memory", others::managed),
    ("NVML", others::nvml),
    ("the caching allocator", allocator::decisions),
    ("time of allocations", timing::allocations),
    ("time of events", timing::events),
];

#[test]
fn a_real_gpu_passes_the_checks() -> Result<()> {
    let ordinal = std::env::var("VRAMSCOPE_GPU").unwrap_or_else(|_| "0".to_owned());
    let ordinal = ordinal.parse().context("VRAMSCOPE_GPU must be the number of a device")?;
    match Device::open(ordinal) {
        Ok(device) => run(&device),
        Err(reason) => {
            println!("skipped: {reason}");
            Ok(())
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_fake_device_passes_the_checks() -> Result<()> {
    // Addresses in another order than the simulation's: the decisions must not depend on them.
    let variables = [("FAKECUDA_CAPACITY", "178257920"), ("FAKECUDA_DESCENDING", "1")];
    tests::fakecuda::on_fake("the_fake_device_passes_the_checks", &variables, || run(&Device::open(0)?))
}

/// Runs all checks on a device and prints their results. Returns at the first failure.
fn run(device: &Arc<Device>) -> Result<()> {
    let free = device.memory_info()?.free;
    println!(
        "{}, {}, {} free of {}",
        device.name()?,
        device.driver_version(),
        Bytes(free),
        Bytes(device.total_memory())
    );
    for (name, check) in CHECKS {
        let found = check(device).with_context(|| format!("the check of {name} failed"))?;
        println!("  {name}: {found}");
    }
    // The checks have freed their memory; the driver itself may use a little more.
    let left = device.memory_info()?.free;
    ensure!(left + 256 * MIB >= free, "{} were free before, {} after", Bytes(free), Bytes(left));
    Ok(())
}

/// Creates a driver with plain memory.
fn plain(device: &Arc<Device>) -> Result<CudaDriver> {
    Ok(CudaDriver::new(device.clone(), Source::Plain)?)
}

/// Returns at most `wanted` bytes and a quarter of the free memory, in whole pages of 20 MiB.
fn budget(driver: &mut CudaDriver, wanted: u64) -> Result<u64> {
    let budget = wanted.min(driver.memory_info()?.free / 4) / (20 * MIB) * (20 * MIB);
    ensure!(budget > 0, "the device has too little free memory for this check");
    Ok(budget)
}

/// Returns bytes that depend on the seed and the position.
fn pattern(seed: u64, size: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = vec![0; size as usize];
    for word in bytes.chunks_mut(8) {
        // Xorshift: no two places of a segment are equal.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        for (byte, new) in word.iter_mut().zip(state.to_le_bytes()) {
            *byte = new;
        }
    }
    bytes
}

/// Checks the contents of a range.
fn ensure_holds(device: &Device, at: Address, want: &[u8]) -> Result<()> {
    let mut have = vec![0; want.len()];
    device.read(at, &mut have)?;
    if have == want {
        return Ok(());
    }
    let differs = have.iter().zip(want).position(|(have, want)| have != want);
    bail!("byte {} at {at} is not what was written", differs.unwrap_or(want.len()))
}
