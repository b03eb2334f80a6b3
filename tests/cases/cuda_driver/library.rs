//! A driver library that is missing or lacks functions.

use std::process::Command;
use std::sync::Arc;

use allocator::Driver;
use anyhow::{Context, Result, bail, ensure};
use recorder::cuda::{CudaDriver, CudaError, Device, PoolSettings, StreamOrderedPool};
use tests::fakecuda::{FakeFolder, test_name, within};
use vramscope::driver::nvml::{NvmlError, NvmlLibrary};

use crate::MIB;

#[test]
fn a_machine_without_a_driver_is_an_error_of_one_line() -> Result<()> {
    fn body() -> Result<()> {
        // Twice: a failure must not change the next result.
        for _ in 0..2 {
            match CudaDriver::open(0) {
                Err(CudaError::NoLibrary) => {}
                Err(error) => bail!("{error}"),
                Ok(_) => bail!("it opened"),
            }
        }
        let line = CudaError::NoLibrary.to_string();
        assert!(line.contains("no NVIDIA driver") && !line.contains('\n'), "{line}");
        assert_eq!(NvmlLibrary::load().err(), Some(NvmlError::NoLibrary));
        Ok(())
    }
    if has_real_driver()? {
        eprintln!("skipped: this machine has an NVIDIA driver");
        return Ok(());
    }
    let name = &test_name(module_path!(), "a_machine_without_a_driver_is_an_error_of_one_line");
    within(&FakeFolder::empty(name)?, name, &[], body)
}

/// Returns whether the loader finds a real driver.
fn has_real_driver() -> Result<bool> {
    let listed = Command::new("sh").args(["-c", "ldconfig -p || /sbin/ldconfig -p"]).output()?;
    Ok(String::from_utf8_lossy(&listed.stdout).contains("libcuda.so"))
}

#[test]
fn an_old_driver_is_an_error_that_names_the_missing_function() -> Result<()> {
    fn body() -> Result<()> {
        for _ in 0..2 {
            let error = CudaDriver::open(0).err().context("it opened")?.to_string();
            assert_eq!(error, "the NVIDIA driver (CUDA 10.1) has no cuMemAddressReserve; install a newer driver");
        }
        Ok(())
    }
    let name = &test_name(module_path!(), "an_old_driver_is_an_error_that_names_the_missing_function");
    let folder = FakeFolder::without_symbol(name, "cuMemAddressReserve")?;
    within(&folder, name, &[("FAKECUDA_VERSION", "10010")], body)
}

#[test]
fn a_driver_without_pools_supports_the_rest() -> Result<()> {
    fn body() -> Result<()> {
        let mut driver = CudaDriver::open(0)?;
        driver.alloc(2 * MIB)?;
        let device: Arc<Device> = driver.device().clone();
        let error = StreamOrderedPool::new(device, &PoolSettings::default()).err().context("there is a pool")?;
        ensure!(matches!(error, CudaError::MissingSymbol { symbol: "cuMemPoolTrimTo", .. }), "{error}");
        Ok(())
    }
    let name = &test_name(module_path!(), "a_driver_without_pools_supports_the_rest");
    within(&FakeFolder::without_symbol(name, "cuMemPoolTrimTo")?, name, &[], body)
}
