//! Unified memory as a source of segments.

use allocator::{Driver, DriverError};
use anyhow::{Context, Result};
use recorder::cuda::{Advice, CudaDriver, CudaError, Device, PageLocation, Source};
use tests::fakecuda::Control;
use trace::units::Stream;

use crate::{CAPACITY, MIB, contents, failed_with, on_fake, pattern};

on_fake! {
    unified_memory_never_exceeds_free_memory(CAPACITY) {
        let control = Control::new()?;
        let device = Device::open(0)?;
        let mut plain = CudaDriver::new(device.clone(), Source::Plain)?;
        let mut driver = CudaDriver::new(device.clone(), Source::Managed)?;
        plain.alloc(30 * MIB)?;
        let at = driver.alloc(20 * MIB)?;
        // It is on the device as soon as it is allocated.
        assert_eq!(driver.memory_info()?.free, 14 * MIB);
        let calls = control.calls("cuMemAllocManaged")?;
        for size in [16 * MIB, 1 << 40, u64::MAX] {
            assert_eq!(driver.alloc(size), Err(DriverError::OutOfMemory));
        }
        assert_eq!(control.calls("cuMemAllocManaged")?, calls);
        device.write(at, &pattern(8, 20 * MIB))?;

        driver.prefetch(at, 20 * MIB, PageLocation::Host, Stream(0))?;
        driver.synchronize_stream(Stream(0))?;
        assert_eq!(driver.memory_info()?.free, 34 * MIB);
        // 34 MiB look free, but 20 of them belong to pages that will be moved back.
        plain.alloc(30 * MIB)?;
        assert_eq!(driver.prefetch(at, 20 * MIB, PageLocation::Device, Stream(0)), Err(DriverError::OutOfMemory));
        driver.prefetch(at, 2 * MIB, PageLocation::Device, Stream(0))?;
        assert!(contents(&device, at, 20 * MIB)? == pattern(8, 20 * MIB));
        let statistics = driver.managed_statistics().context("it has no statistics")?;
        assert_eq!((statistics.reserved, statistics.reserved_peak, statistics.refused), (20 * MIB, 20 * MIB, 3));
        assert_eq!((statistics.prefetches, statistics.prefetched), (2, 22 * MIB));
        driver.free(at, 20 * MIB)?;
        let statistics = driver.managed_statistics().context("it has no statistics")?;
        assert_eq!((statistics.reserved, statistics.reserved_peak), (0, 20 * MIB));
        assert_eq!(plain.managed_statistics(), None);
        Ok(())
    }

    unified_memory_on_the_host_still_counts(CAPACITY) {
        let mut driver = CudaDriver::new(Device::open(0)?, Source::Managed)?;
        let at = driver.alloc(40 * MIB)?;
        driver.prefetch(at, 40 * MIB, PageLocation::Host, Stream(0))?;
        assert_eq!(driver.memory_info()?.free, 64 * MIB);
        assert_eq!(driver.alloc(40 * MIB), Err(DriverError::OutOfMemory));
        driver.alloc(24 * MIB)?;
        Ok(())
    }

    unified_memory_accepts_advice(CAPACITY) {
        let device = Device::open(0)?;
        let mut driver = CudaDriver::new(device.clone(), Source::Managed)?;
        let at = driver.alloc(4 * MIB)?;
        let advices = [
            Advice::ReadMostly(true),
            Advice::ReadMostly(false),
            Advice::PreferredLocation(Some(PageLocation::Host)),
            Advice::PreferredLocation(None),
            Advice::AccessedBy(PageLocation::Device, true),
            Advice::AccessedBy(PageLocation::Host, false),
        ];
        for advice in advices {
            driver.advise(at, 4 * MIB, advice)?;
        }
        assert_eq!(Control::new()?.calls("cuMemAdvise")?, 6);
        assert!(failed_with(driver.advise(at, 5 * MIB, advices[0]), "cuMemAdvise", "not unified memory"));
        let mut plain = CudaDriver::new(device, Source::Plain)?;
        let segment = plain.alloc(2 * MIB)?;
        assert!(failed_with(plain.advise(segment, 1, advices[0]), "cuMemAdvise", "not unified memory"));
        let moved = plain.prefetch(segment, 1, PageLocation::Host, Stream(0));
        assert!(failed_with(moved, "cuMemPrefetchAsync", "not unified memory"));
        Ok(())
    }

    a_move_that_fails_leaves_no_unified_memory(CAPACITY) {
        let mut driver = CudaDriver::new(Device::open(0)?, Source::Managed)?;
        let control = Control::new()?;
        let before = control.leftovers()?;
        control.fail("cuMemPrefetchAsync", 0, 1, 1)?;
        assert!(failed_with(driver.alloc(2 * MIB), "cuMemPrefetchAsync", "invalid argument"));
        assert_eq!(control.leftovers()?, before);
        driver.alloc(2 * MIB)?;
        Ok(())
    }

    a_device_without_prefetch_has_no_unified_source(("FAKECUDA_MANAGED", "0")) {
        let error = CudaDriver::new(Device::open(0)?, Source::Managed).err().context("it opened")?;
        assert_eq!(error, CudaError::NoManagedMemory { ordinal: 0 });
        Ok(())
    }
}
