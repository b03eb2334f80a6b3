//! Segments and address ranges: contents, bounds, a full device, and partial failures.

use allocator::{Driver, DriverError};
use anyhow::{Context, Result};
use recorder::cuda::CudaDriver;
use tests::fakecuda::Control;
use trace::units::{Address, Stream};

use crate::{CAPACITY, MIB, contents, failed_with, on_fake, pattern};

on_fake! {
    what_is_written_is_read_and_segments_do_not_overlap(CAPACITY) {
        let mut driver = CudaDriver::open(0)?;
        let device = driver.device().clone();
        let sizes = [2, 20, 4, 2, 10].map(|size| size * MIB);
        let mut segments = Vec::new();
        for (i, size) in sizes.into_iter().enumerate() {
            let at = driver.alloc(size)?;
            device.write(at, &pattern(i as u8, size))?;
            segments.push((at, size));
        }
        for (i, (at, size)) in segments.iter().enumerate() {
            assert!(contents(&device, *at, *size)? == pattern(i as u8, *size), "segment {i}");
        }
        let mut order = segments.clone();
        order.sort();
        assert!(order.windows(2).all(|pair| pair[0].0.0 + pair[0].1 <= pair[1].0.0), "{order:?}");
        device.fill(Address(segments[0].0.0 + 5), 0x7f, 3)?;
        assert_eq!(contents(&device, Address(segments[0].0.0 + 5), 3)?, [0x7f; 3]);
        assert_eq!(driver.memory_info()?.free, 26 * MIB);
        for (at, size) in segments {
            driver.free(at, size)?;
        }
        assert_eq!(driver.memory_info()?.free, 64 * MIB);
        // On this device, a new segment has none of the old contents.
        let at = driver.alloc(2 * MIB)?;
        assert!(contents(&device, at, 2 * MIB)?.iter().all(|byte| *byte == 0));
        Ok(())
    }

    only_allocated_memory_can_be_accessed(CAPACITY) {
        let mut driver = CudaDriver::open(0)?;
        let device = driver.device().clone();
        let at = driver.alloc(4 * MIB)?;
        let mut own = [1_u8; 8];
        let cases = [
            (Address(own.as_ptr() as u64), 8),
            (Address(0), 1),
            (Address(at.0 - 1), 2),
            (Address(at.0 + 4 * MIB - 1), 2),
            (Address(u64::MAX), 8),
        ];
        for (address, size) in cases {
            let mut bytes = vec![0; size];
            assert!(failed_with(device.read(address, &mut bytes), "cuMemcpyDtoH", "were not allocated here"), "{address}");
            assert!(failed_with(device.write(address, &bytes), "cuMemcpyHtoD", "were not allocated here"), "{address}");
            assert!(failed_with(device.fill(address, 0, size as u64), "cuMemsetD8", "were not allocated here"), "{address}");
            let on_stream = device.copy_on(Stream(0), at, address, size as u64);
            assert!(failed_with(on_stream, "cuMemcpyDtoDAsync", "were not allocated here"), "{address}");
        }
        assert_eq!(own, [1; 8]);
        device.read(at, &mut own)?;
        assert_eq!(own, [0; 8]);
        device.read(Address(u64::MAX), &mut [])?;
        // Partial frees, and addresses that were never allocated.
        for (address, size) in [(at, 2 * MIB), (Address(at.0 + 2 * MIB), 2 * MIB), (Address(7), 4 * MIB)] {
            assert!(failed_with(driver.free(address, size), "cuMemFree", "do not match an allocation"));
        }
        driver.free(at, 4 * MIB)?;
        assert!(failed_with(driver.free(at, 4 * MIB), "cuMemFree", "do not match an allocation"));
        assert!(failed_with(device.read(at, &mut own), "cuMemcpyDtoH", "were not allocated here"));
        Ok(())
    }

    a_full_device_is_out_of_memory_and_recovers(CAPACITY) {
        let mut driver = CudaDriver::open(0)?;
        let mut held = Vec::new();
        let refused = loop {
            match driver.alloc(20 * MIB) {
                Ok(at) => held.push(at),
                Err(error) => break error,
            }
        };
        assert_eq!((refused, held.len()), (DriverError::OutOfMemory, 3));
        for size in [1 << 60, u64::MAX - 5, u64::MAX] {
            assert_eq!(driver.alloc(size), Err(DriverError::OutOfMemory));
        }
        let last = held.pop().context("nothing was held")?;
        driver.free(last, 20 * MIB)?;
        let again = driver.alloc(20 * MIB)?;
        assert_eq!(again, last);
        // A changed capacity counts at once.
        let control = Control::new()?;
        control.set_capacity(0, 70 * MIB)?;
        assert_eq!(driver.alloc(20 * MIB), Err(DriverError::OutOfMemory));
        control.set_capacity(0, 100 * MIB)?;
        driver.alloc(20 * MIB)?;
        Ok(())
    }
}

on_fake! {
    ranges_grow_shrink_and_are_mapped_again(CAPACITY) {
        let mut driver = CudaDriver::open(0)?;
        let (device, control) = (driver.device().clone(), Control::new()?);
        let range = driver.reserve_range(1 << 30)?;
        let page = |i: u64| Address(range.0 + i * 2 * MIB);
        assert_eq!(driver.memory_info()?.free, 64 * MIB);
        assert!(failed_with(device.fill(range, 1, 1), "cuMemsetD8", "were not allocated here"));

        driver.map(range, 4 * MIB, 2 * MIB)?;
        driver.map(page(2), 20 * MIB, 20 * MIB)?;
        assert_eq!(driver.memory_info()?.free, 40 * MIB);
        assert!(control.is_open(range.0, 24 * MIB)?);
        // One write to pages of three mappings.
        let bytes = pattern(3, 24 * MIB);
        device.write(range, &bytes)?;
        assert!(contents(&device, range, 24 * MIB)? == bytes);

        driver.unmap(page(1), 2 * MIB, 2 * MIB)?;
        assert_eq!(driver.memory_info()?.free, 42 * MIB);
        assert!(!control.is_open(page(1).0, 1)?);
        assert!(device.read(page(1), &mut [0]).is_err());
        assert!(device.fill(page(0), 0, 2 * MIB + 1).is_err());
        assert!(contents(&device, page(2), 20 * MIB)? == bytes[(4 * MIB) as usize..]);
        assert!(contents(&device, range, 2 * MIB)? == bytes[..(2 * MIB) as usize]);
        driver.map(page(1), 2 * MIB, 2 * MIB)?;
        device.fill(page(1), 9, 2 * MIB)?;
        assert_eq!(contents(&device, Address(page(1).0 - 1), 2)?, [bytes[(2 * MIB) as usize - 1], 9]);

        // Ranges that are not mapped like this, or not reserved.
        let cases = [
            driver.unmap(page(20), 2 * MIB, 2 * MIB),
            driver.unmap(range, 4 * MIB, 4 * MIB),
            driver.unmap(range, 3 * MIB, 2 * MIB),
            driver.unmap(range, 2 * MIB, 0),
            driver.map(Address(range.0 + (1 << 30)), 2 * MIB, 2 * MIB),
            driver.map(range, 2 * MIB, 2 * MIB),
            driver.map(page(30), 2 * MIB, 0),
            driver.release_range(range, 2 * MIB),
            driver.release_range(range, 1 << 30),
        ];
        for (i, outcome) in cases.into_iter().enumerate() {
            assert!(matches!(outcome, Err(DriverError::Failed { .. })), "case {i}");
        }
        driver.unmap(range, 4 * MIB, 2 * MIB)?;
        driver.unmap(page(2), 20 * MIB, 20 * MIB)?;
        driver.release_range(range, 1 << 30)?;
        assert_eq!(driver.memory_info()?.free, 64 * MIB);
        // The released range is reserved again.
        assert_eq!(driver.reserve_range(4 * MIB)?, range);
        Ok(())
    }

    a_mapping_that_fails_leaves_nothing(CAPACITY) {
        let mut driver = CudaDriver::open(0)?;
        let control = Control::new()?;
        let range = driver.reserve_range(256 * MIB)?;
        let before = control.leftovers()?;
        // Not enough memory for the last page.
        assert_eq!(driver.map(range, 80 * MIB, 20 * MIB), Err(DriverError::OutOfMemory));
        for (symbol, after) in [("cuMemCreate", 3), ("cuMemMap", 2), ("cuMemSetAccess", 0)] {
            control.fail(symbol, after, 1, 1)?;
            assert!(failed_with(driver.map(range, 10 * MIB, 2 * MIB), symbol, "invalid argument"), "{symbol}");
            assert_eq!((control.leftovers()?, control.used(0)?), (before, 0), "{symbol}");
            assert!(driver.device().fill(range, 0, 1).is_err());
        }
        driver.map(range, 60 * MIB, 20 * MIB)?;
        driver.device().fill(range, 1, 60 * MIB)?;
        Ok(())
    }
}
