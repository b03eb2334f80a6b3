//! The CUDA driver with a driver library that needs no GPU: the same code as on a GPU.

#![cfg(target_os = "linux")]

mod bench;
mod device;
mod library;
mod managed;
mod memory;
mod pool;
mod program;
mod streams;

use allocator::DriverError;
use anyhow::Result;
use recorder::cuda::Device;
use trace::units::Address;

const MIB: u64 = 1 << 20;
/// The device's capacity in most tests.
const CAPACITY: (&str, &str) = ("FAKECUDA_CAPACITY", "67108864");

/// Defines tests that run on the fake library with some variables in their environment.
macro_rules! on_fake {
    ($($name:ident($($variable:expr),*) $body:block)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            fn body() -> Result<()> $body
            let name = tests::fakecuda::test_name(module_path!(), stringify!($name));
            tests::fakecuda::on_fake(&name, &[$($variable),*], body)
        }
    )*};
}
use on_fake;

/// Returns bytes that depend on the seed and the position.
fn pattern(seed: u8, size: u64) -> Vec<u8> {
    (0..size).map(|i| seed ^ (i as u8).wrapping_mul(31) ^ (i >> 8) as u8).collect()
}

fn contents(device: &Device, at: Address, size: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; size as usize];
    device.read(at, &mut bytes)?;
    Ok(bytes)
}

/// Returns whether a call failed in this function with this part of a message.
fn failed_with<T>(outcome: Result<T, DriverError>, function: &str, part: &str) -> bool {
    matches!(outcome, Err(DriverError::Failed { call, message }) if call == function && message.contains(part))
}
