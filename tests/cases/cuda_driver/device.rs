//! A device's properties, its driver's errors, and what is freed when everything is dropped.

use allocator::Driver;
use anyhow::{Context, Result};
use recorder::cuda::{CudaDriver, CudaError, Device, PoolSettings, Source, StreamOrderedPool};
use tests::fakecuda::Control;
use trace::units::Stream;
use vramscope::driver::nvml::{NvmlError, NvmlLibrary};

use crate::{CAPACITY, MIB, on_fake};

on_fake! {
    a_device_has_its_properties(CAPACITY, ("FAKECUDA_DEVICES", "2")) {
        let device = Device::open(1)?;
        assert_eq!((device.ordinal(), device.total_memory()), (1, 64 * MIB));
        assert_eq!(device.name()?, "Vramscope fake device");
        assert_eq!(device.uuid()?, "fa4ec0da-0000-4000-8000-000000000001");
        assert_eq!(device.driver_version(), "CUDA 12.4");
        assert_eq!(device.granularity()?, 2 * MIB);
        let mut driver = CudaDriver::new(device, Source::Plain)?;
        assert_eq!((driver.total_memory(), driver.memory_info()?.free), (64 * MIB, 64 * MIB));
        Ok(())
    }

    a_missing_device_is_named(("FAKECUDA_DEVICES", "2")) {
        for ordinal in [2, 7, u32::MAX] {
            let error = CudaDriver::open(ordinal).err().context("it opened")?;
            assert_eq!(error, CudaError::NoDevice { ordinal, count: 2 });
        }
        assert_eq!(Control::new()?.leftovers()?, 0);
        Ok(())
    }

    a_machine_without_devices_is_an_error(("FAKECUDA_DEVICES", "0")) {
        let error = CudaDriver::open(0).err().context("it opened")?.to_string();
        assert_eq!(error, "cuInit failed: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE)");
        Ok(())
    }
}

on_fake! {
    errors_of_the_driver_keep_their_texts(CAPACITY) {
        let mut driver = CudaDriver::open(0)?;
        let control = Control::new()?;
        control.fail("cuMemAlloc_v2", 1, 1, 700)?;
        // A code that is unknown here and to the driver.
        control.fail("cuMemGetInfo_v2", 0, 1, 54321)?;
        driver.alloc(2 * MIB)?;
        let error = driver.alloc(2 * MIB).err().context("it succeeded")?.to_string();
        let text = "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)";
        assert_eq!(error, format!("cuMemAlloc failed: {text}"));
        driver.alloc(2 * MIB)?;
        let error = driver.memory_info().err().context("it succeeded")?.to_string();
        assert_eq!(error, "cuMemGetInfo failed: error 54321, unknown to the driver");
        driver.memory_info()?;
        Ok(())
    }
}

on_fake! {
    dropping_frees_everything(CAPACITY, ("FAKECUDA_CONTEXT_BYTES", "4194304")) {
        let control = Control::new()?;
        {
            let mut driver = CudaDriver::open(0)?;
            let device = driver.device().clone();
            assert_eq!(control.used(0)?, 4 * MIB);
            driver.alloc(2 * MIB)?;
            let range = driver.reserve_range(64 * MIB)?;
            driver.map(range, 20 * MIB, 2 * MIB)?;
            let event = driver.record_event(device.create_stream()?)?;
            driver.recycle_event(event);
            let mut pool = StreamOrderedPool::new(device, &PoolSettings::default())?;
            let at = pool.allocate(5000, Stream(0))?;
            pool.allocate(5000, Stream(0))?;
            pool.free(at, Stream(0))?;
            assert!(control.leftovers()? > 10);
        }
        assert_eq!((control.leftovers()?, control.used(0)?), (0, 0));
        Ok(())
    }
}

on_fake! {
    nvml_reports_the_memory_of_other_processes(CAPACITY, ("FAKECUDA_DEVICES", "2"), ("FAKECUDA_OTHER_BYTES", "10485760")) {
        let mut driver = CudaDriver::open(1)?;
        driver.alloc(20 * MIB)?;
        let nvml = NvmlLibrary::load()?;
        let memory = nvml.memory(&driver.device().uuid()?)?;
        assert_eq!((memory.total, memory.free, memory.used, memory.reserved), (64 * MIB, 34 * MIB, 30 * MIB, 0));
        let mut held: Vec<_> = memory.processes.iter().map(|process| (process.pid, process.used)).collect();
        held.sort_by_key(|(_, used)| *used);
        assert_eq!(held, [(4242, Some(10 * MIB)), (std::process::id(), Some(20 * MIB))]);
        let other = nvml.memory(&Device::open(0)?.uuid()?)?;
        assert_eq!(other.processes.len(), 1);
        let unknown = nvml.memory("00000000-0000-0000-0000-000000000000");
        assert!(matches!(unknown, Err(NvmlError::NoDevice { .. })), "{unknown:?}");
        Ok(())
    }
}
