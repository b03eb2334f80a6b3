//! What can only be shown on a real GPU: `just gpu-test`. Without one it says that it skipped, and why. The same
//! checks run on the fake device everywhere, so that they work when a GPU is at hand.
//!
//! `VRAMSCOPE_GPU` chooses the device by its number; without it, device 0.

mod allocator;
mod memory;
mod others;
mod places;
mod timing;

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use shared::allocator::Driver;
use shared::units::{Address, Bytes};
use vramscope::driver::cuda::{CudaDriver, Device, Source};

const MIB: u64 = 1 << 20;

/// One check: it fails, or gives a line with what it found.
type Check = fn(&Arc<Device>) -> Result<String>;

/// All checks, in this order, each with nothing held from the one before.
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
    let ordinal = ordinal.parse().context("VRAMSCOPE_GPU is not a device's number")?;
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
    // Addresses in another order than the simulation's: the decisions must not hang on them.
    let variables = [("FAKECUDA_CAPACITY", "178257920"), ("FAKECUDA_DESCENDING", "1")];
    tests::fakecuda::on_fake("the_fake_device_passes_the_checks", &variables, || run(&Device::open(0)?))
}

/// Runs all checks on a device and prints what they found; the first that fails ends it.
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
    // What the checks took is back; the driver itself may have grown a little.
    let left = device.memory_info()?.free;
    ensure!(left + 256 * MIB >= free, "{} were free before, {} after", Bytes(free), Bytes(left));
    Ok(())
}

/// A driver of plain memory.
fn plain(device: &Arc<Device>) -> Result<CudaDriver> {
    Ok(CudaDriver::new(device.clone(), Source::Plain)?)
}

/// At most `wanted` bytes and a quarter of what is free, in whole pages of 20 MiB.
fn budget(driver: &mut CudaDriver, wanted: u64) -> Result<u64> {
    let budget = wanted.min(driver.memory_info()?.free / 4) / (20 * MIB) * (20 * MIB);
    ensure!(budget > 0, "the device has too little free memory for this check");
    Ok(budget)
}

/// Bytes that differ with every seed and position.
fn pattern(seed: u64, size: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = vec![0; size as usize];
    for word in bytes.chunks_mut(8) {
        // xorshift: no two positions of a segment look alike.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        for (byte, new) in word.iter_mut().zip(state.to_le_bytes()) {
            *byte = new;
        }
    }
    bytes
}

/// Reads a range and compares it.
fn ensure_holds(device: &Device, at: Address, want: &[u8]) -> Result<()> {
    let mut have = vec![0; want.len()];
    device.read(at, &mut have)?;
    if have == want {
        return Ok(());
    }
    let differs = have.iter().zip(want).position(|(have, want)| have != want);
    bail!("byte {} at {at} is not what was written", differs.unwrap_or(want.len()))
}
