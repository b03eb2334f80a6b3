//! The CUDA driver against a driver library without a GPU: the very code that a GPU runs.

#![cfg(target_os = "linux")]

mod device;
mod library;
mod managed;
mod memory;
mod pool;
mod program;
mod streams;

use anyhow::Result;
use shared::allocator::DriverError;
use shared::units::Address;
use vramscope::driver::cuda::Device;

const MIB: u64 = 1 << 20;
/// The capacity in most cases.
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

/// Bytes that differ with every seed and position.
fn pattern(seed: u8, size: u64) -> Vec<u8> {
    (0..size).map(|i| seed ^ (i as u8).wrapping_mul(31) ^ (i >> 8) as u8).collect()
}

fn contents(device: &Device, at: Address, size: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; size as usize];
    device.read(at, &mut bytes)?;
    Ok(bytes)
}

/// Whether a call failed with the text of the driver's code.
fn says<T>(outcome: Result<T, DriverError>, function: &str, part: &str) -> bool {
    matches!(outcome, Err(DriverError::Failed { call, message }) if call == function && message.contains(part))
}
