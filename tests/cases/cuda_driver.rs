//! The CUDA driver against a driver library without a GPU: the very code that a GPU runs.

#![cfg(target_os = "linux")]

use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use shared::allocator::{Driver, DriverError};
use shared::units::{Address, Stream};
use tests::fakecuda::{Control, FakeFolder, on_fake, within};
use vramscope::driver::cuda::{
    Advice, CudaDriver, CudaError, Device, Place, PoolError, PoolSettings, Source, StreamOrderedPool, Watermark,
};
use vramscope::driver::nvml::{NvmlError, NvmlLibrary};

const MIB: u64 = 1 << 20;
/// The capacity in most cases.
const CAPACITY: (&str, &str) = ("FAKECUDA_CAPACITY", "67108864");

/// Defines tests that run on the fake library with some variables in their environment.
macro_rules! on_fake {
    ($($name:ident($($variable:expr),*) $body:block)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            fn body() -> Result<()> $body
            on_fake(stringify!($name), &[$($variable),*], body)
        }
    )*};
}

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

on_fake! {
    a_device_tells_what_it_is(CAPACITY, ("FAKECUDA_DEVICES", "2")) {
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

    a_device_that_is_not_there_is_named(("FAKECUDA_DEVICES", "2")) {
        for ordinal in [2, 7, u32::MAX] {
            let error = CudaDriver::open(ordinal).err().context("it opened")?;
            assert_eq!(error, CudaError::NoDevice { ordinal, count: 2 });
        }
        assert_eq!(Control::new()?.leftovers()?, 0);
        Ok(())
    }

    a_machine_without_devices_says_so(("FAKECUDA_DEVICES", "0")) {
        let error = CudaDriver::open(0).err().context("it opened")?.to_string();
        assert_eq!(error, "cuInit failed: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE)");
        Ok(())
    }

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
        // A new segment has nothing of the old ones' contents here.
        let at = driver.alloc(2 * MIB)?;
        assert!(contents(&device, at, 2 * MIB)?.iter().all(|byte| *byte == 0));
        Ok(())
    }

    only_memory_that_is_held_can_be_reached(CAPACITY) {
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
            assert!(says(device.read(address, &mut bytes), "cuMemcpyDtoH", "not memory"), "{address}");
            assert!(says(device.write(address, &bytes), "cuMemcpyHtoD", "not memory"), "{address}");
            assert!(says(device.fill(address, 0, size as u64), "cuMemsetD8", "not memory"), "{address}");
            let on_stream = device.copy_on(Stream(0), at, address, size as u64);
            assert!(says(on_stream, "cuMemcpyDtoDAsync", "not memory"), "{address}");
        }
        assert_eq!(own, [1; 8]);
        device.read(at, &mut own)?;
        assert_eq!(own, [0; 8]);
        device.read(Address(u64::MAX), &mut [])?;
        // Freed twice, in part, or what never was.
        for (address, size) in [(at, 2 * MIB), (Address(at.0 + 2 * MIB), 2 * MIB), (Address(7), 4 * MIB)] {
            assert!(says(driver.free(address, size), "cuMemFree", "not what was handed out"));
        }
        driver.free(at, 4 * MIB)?;
        assert!(says(driver.free(at, 4 * MIB), "cuMemFree", "not what was handed out"));
        assert!(says(device.read(at, &mut own), "cuMemcpyDtoH", "not memory"));
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
        // The memory of others counts as well.
        let control = Control::new()?;
        control.set_capacity(0, 70 * MIB)?;
        assert_eq!(driver.alloc(20 * MIB), Err(DriverError::OutOfMemory));
        control.set_capacity(0, 100 * MIB)?;
        driver.alloc(20 * MIB)?;
        Ok(())
    }

    errors_of_the_driver_keep_their_texts(CAPACITY) {
        let mut driver = CudaDriver::open(0)?;
        let control = Control::new()?;
        control.fail("cuMemAlloc_v2", 1, 1, 700)?;
        // A code that is newer than anything here.
        control.fail("cuMemGetInfo_v2", 0, 1, 54321)?;
        driver.alloc(2 * MIB)?;
        let error = driver.alloc(2 * MIB).err().context("it went well")?.to_string();
        let text = "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)";
        assert_eq!(error, format!("cuMemAlloc failed: {text}"));
        driver.alloc(2 * MIB)?;
        let error = driver.memory_info().err().context("it went well")?.to_string();
        assert_eq!(error, "cuMemGetInfo failed: error 54321, which the driver does not explain");
        driver.memory_info()?;
        Ok(())
    }

    ranges_grow_shrink_and_are_mapped_again(CAPACITY) {
        let mut driver = CudaDriver::open(0)?;
        let (device, control) = (driver.device().clone(), Control::new()?);
        let range = driver.reserve_range(1 << 30)?;
        let page = |i: u64| Address(range.0 + i * 2 * MIB);
        assert_eq!(driver.memory_info()?.free, 64 * MIB);
        assert!(says(device.fill(range, 1, 1), "cuMemsetD8", "not memory"));

        driver.map(range, 4 * MIB, 2 * MIB)?;
        driver.map(page(2), 20 * MIB, 20 * MIB)?;
        assert_eq!(driver.memory_info()?.free, 40 * MIB);
        assert!(control.is_open(range.0, 24 * MIB)?);
        // One write over pages of three mappings.
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

        // What is not mapped in that way, or not reserved.
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
        // The range, given back, is reserved again.
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
            assert!(says(driver.map(range, 10 * MIB, 2 * MIB), symbol, "invalid argument"), "{symbol}");
            assert_eq!((control.leftovers()?, control.used(0)?), (before, 0), "{symbol}");
            assert!(driver.device().fill(range, 0, 1).is_err());
        }
        driver.map(range, 60 * MIB, 20 * MIB)?;
        driver.device().fill(range, 1, 60 * MIB)?;
        Ok(())
    }

    events_are_done_when_their_stream_gets_there(CAPACITY) {
        let mut driver = CudaDriver::open(0)?;
        let (device, control) = (driver.device().clone(), Control::new()?);
        let (busy, idle) = (device.create_stream()?, device.create_stream()?);
        assert_ne!(busy, idle);
        control.hold(busy.0, true)?;
        let at = driver.alloc(2 * MIB)?;
        device.fill_on(busy, at, 5, MIB)?;
        let first = driver.record_event(busy)?;
        device.fill_on(busy, at, 6, MIB)?;
        let second = driver.record_event(busy)?;
        let other = driver.record_event(idle)?;
        assert!(!driver.is_event_done(&first)? && !driver.is_event_done(&second)? && driver.is_event_done(&other)?);
        assert_eq!(contents(&device, at, 1)?, [0]);
        driver.wait_for_event(&first)?;
        assert!(driver.is_event_done(&first)? && !driver.is_event_done(&second)?);
        assert_eq!(contents(&device, at, 1)?, [5]);
        control.hold(busy.0, false)?;
        assert!(driver.is_event_done(&second)?);
        assert_eq!(contents(&device, at, 1)?, [6]);

        // An event is used again, even one that was not done.
        control.hold(busy.0, true)?;
        device.fill_on(busy, at, 7, MIB)?;
        let pending = driver.record_event(busy)?;
        for event in [first, second, other, pending] {
            driver.recycle_event(event);
        }
        let created = control.calls("cuEventCreate")?;
        let again = driver.record_event(idle)?;
        assert_eq!((driver.is_event_done(&again)?, control.calls("cuEventCreate")?), (true, created));
        driver.synchronize_stream(busy)?;
        assert_eq!(contents(&device, at, 1)?, [7]);
        driver.recycle_event(again);
        Ok(())
    }

    work_keeps_the_order_of_streams(CAPACITY) {
        let mut driver = CudaDriver::open(0)?;
        let (device, control) = (driver.device().clone(), Control::new()?);
        let (first, second) = (device.create_stream()?, device.create_stream()?);
        let (a, b) = (driver.alloc(2 * MIB)?, driver.alloc(2 * MIB)?);
        device.write_on(first, a, &pattern(1, 1000))?;
        control.hold(first.0, true)?;
        device.fill_on(first, a, 4, 500)?;
        device.wait_for_stream(second, first)?;
        device.copy_on(second, a, b, 1000)?;
        assert_eq!(contents(&device, b, 1000)?, vec![0; 1000]);
        // Waiting for the second gets the first's work done before.
        let mut bytes = vec![0; 1000];
        device.read_on(second, b, &mut bytes)?;
        assert_eq!(bytes, [&[4; 500], &pattern(1, 1000)[500..]].concat());
        device.synchronize()?;

        // Streams that are not this device's.
        for stream in [Stream(12345), Stream(-1)] {
            assert!(says(driver.record_event(stream).map(|_| ()), "cuEventRecord", "not one of this device"));
            assert!(says(device.fill_on(stream, a, 0, 1), "cuMemsetD8Async", "not one of this device"));
            assert!(device.destroy_stream(stream).is_err());
        }
        assert!(device.destroy_stream(Stream(0)).is_err());
        device.destroy_stream(first)?;
        assert!(driver.synchronize_stream(first).is_err());
        driver.synchronize_stream(Stream(0))?;
        Ok(())
    }

    memory_is_not_freed_under_running_work(CAPACITY) {
        let mut driver = CudaDriver::open(0)?;
        let (device, control) = (driver.device().clone(), Control::new()?);
        let stream = device.create_stream()?;
        control.hold(stream.0, true)?;
        let at = driver.alloc(2 * MIB)?;
        device.fill_on(stream, at, 1, 2 * MIB)?;
        let event = driver.record_event(stream)?;
        driver.free(at, 2 * MIB)?;
        assert!(driver.is_event_done(&event)?);
        device.synchronize()?;
        driver.recycle_event(event);
        Ok(())
    }

    every_thread_may_call_and_none_is_left_changed(CAPACITY, ("FAKECUDA_DEVICES", "2")) {
        let mut drivers = [CudaDriver::open(0)?, CudaDriver::open(1)?];
        let addresses = std::thread::scope(|scope| {
            let threads = drivers.each_mut().map(|driver| {
                scope.spawn(move || -> Result<_> {
                    let at = driver.alloc(2 * MIB)?;
                    driver.device().fill(at, driver.device().ordinal() as u8, 2 * MIB)?;
                    Ok(at)
                })
            });
            threads.map(|thread| thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?).into_iter().collect::<Result<Vec<_>>>()
        })?;
        let control = Control::new()?;
        for (i, (driver, at)) in drivers.iter_mut().zip(&addresses).enumerate() {
            assert_eq!(contents(driver.device(), *at, 2)?, [i as u8; 2]);
            assert_eq!(control.used(i as u32)?, 2 * MIB);
        }
        // One device's addresses mean nothing to the other.
        assert!(drivers[0].device().read(addresses[1], &mut [0]).is_err());
        // Every context that was made current was taken off again.
        assert_eq!(control.calls("cuCtxPushCurrent_v2")?, control.calls("cuCtxPopCurrent_v2")?);
        Ok(())
    }

    what_is_dropped_goes_back(CAPACITY, ("FAKECUDA_CONTEXT_BYTES", "4194304")) {
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

    unified_memory_is_never_more_than_is_free(CAPACITY) {
        let control = Control::new()?;
        let device = Device::open(0)?;
        let mut plain = CudaDriver::new(device.clone(), Source::Plain)?;
        let mut driver = CudaDriver::new(device.clone(), Source::Managed)?;
        plain.alloc(30 * MIB)?;
        let at = driver.alloc(20 * MIB)?;
        // It is on the device as soon as it is taken.
        assert_eq!(driver.memory_info()?.free, 14 * MIB);
        let calls = control.calls("cuMemAllocManaged")?;
        for size in [16 * MIB, 1 << 40, u64::MAX] {
            assert_eq!(driver.alloc(size), Err(DriverError::OutOfMemory));
        }
        assert_eq!(control.calls("cuMemAllocManaged")?, calls);
        device.write(at, &pattern(8, 20 * MIB))?;

        driver.prefetch(at, 20 * MIB, Place::Host, Stream(0))?;
        driver.synchronize_stream(Stream(0))?;
        assert_eq!(driver.memory_info()?.free, 34 * MIB);
        // 34 MiB look free, but 20 of them will be wanted back.
        plain.alloc(30 * MIB)?;
        assert_eq!(driver.prefetch(at, 20 * MIB, Place::Device, Stream(0)), Err(DriverError::OutOfMemory));
        driver.prefetch(at, 2 * MIB, Place::Device, Stream(0))?;
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

    unified_memory_that_went_to_the_host_still_counts(CAPACITY) {
        let mut driver = CudaDriver::new(Device::open(0)?, Source::Managed)?;
        let at = driver.alloc(40 * MIB)?;
        driver.prefetch(at, 40 * MIB, Place::Host, Stream(0))?;
        assert_eq!(driver.memory_info()?.free, 64 * MIB);
        assert_eq!(driver.alloc(40 * MIB), Err(DriverError::OutOfMemory));
        driver.alloc(24 * MIB)?;
        Ok(())
    }

    unified_memory_takes_advice(CAPACITY) {
        let device = Device::open(0)?;
        let mut driver = CudaDriver::new(device.clone(), Source::Managed)?;
        let at = driver.alloc(4 * MIB)?;
        let advices = [
            Advice::ReadMostly(true),
            Advice::ReadMostly(false),
            Advice::PreferredLocation(Some(Place::Host)),
            Advice::PreferredLocation(None),
            Advice::AccessedBy(Place::Device, true),
            Advice::AccessedBy(Place::Host, false),
        ];
        for advice in advices {
            driver.advise(at, 4 * MIB, advice)?;
        }
        assert_eq!(Control::new()?.calls("cuMemAdvise")?, 6);
        assert!(says(driver.advise(at, 5 * MIB, advices[0]), "cuMemAdvise", "not unified memory"));
        let mut plain = CudaDriver::new(device, Source::Plain)?;
        let segment = plain.alloc(2 * MIB)?;
        assert!(says(plain.advise(segment, 1, advices[0]), "cuMemAdvise", "not unified memory"));
        let moved = plain.prefetch(segment, 1, Place::Host, Stream(0));
        assert!(says(moved, "cuMemPrefetchAsync", "not unified memory"));
        Ok(())
    }

    a_move_that_fails_leaves_no_unified_memory(CAPACITY) {
        let mut driver = CudaDriver::new(Device::open(0)?, Source::Managed)?;
        let control = Control::new()?;
        let before = control.leftovers()?;
        control.fail("cuMemPrefetchAsync", 0, 1, 1)?;
        assert!(says(driver.alloc(2 * MIB), "cuMemPrefetchAsync", "invalid argument"));
        assert_eq!(control.leftovers()?, before);
        driver.alloc(2 * MIB)?;
        Ok(())
    }

    a_device_without_prefetch_has_no_unified_source(("FAKECUDA_MANAGED", "0")) {
        let error = CudaDriver::new(Device::open(0)?, Source::Managed).err().context("it opened")?;
        assert_eq!(error, CudaError::NoManagedMemory { ordinal: 0 });
        Ok(())
    }

    a_pool_keeps_what_is_freed(CAPACITY) {
        let device = Device::open(0)?;
        let mut pool = StreamOrderedPool::new(device.clone(), &PoolSettings::default())?;
        assert_eq!(pool.settings()?, PoolSettings::default());
        let stream = device.create_stream()?;
        assert_eq!(pool.allocate(0, stream)?, Address(0));
        let at = pool.allocate(1000, stream)?;
        device.write_on(stream, at, &pattern(2, 1000))?;
        let mut bytes = vec![0; 1000];
        device.read_on(stream, at, &mut bytes)?;
        assert_eq!(bytes, pattern(2, 1000));
        assert!(device.fill(at, 0, 1001).is_err());
        pool.free(at, stream)?;
        pool.free(Address(0), stream)?;
        assert!(device.fill(at, 0, 1).is_err());
        let statistics = pool.statistics()?;
        assert_eq!(statistics.allocated, Watermark { current: 0, peak: 1024 });
        assert_eq!(statistics.active, statistics.allocated);
        assert_eq!(statistics.reserved, Watermark { current: 2 * MIB, peak: 2 * MIB });
        device.synchronize()?;
        assert_eq!(pool.statistics()?.reserved.current, 2 * MIB);
        assert_eq!(pool.allocate(2000, stream)?, at);

        // With a threshold, a wait gives the rest back.
        let none = PoolSettings {
            release_threshold: 0,
            reuse_follow_event_dependencies: false,
            reuse_allow_opportunistic: true,
            reuse_allow_internal_dependencies: false,
        };
        pool.set(&none)?;
        assert_eq!(pool.settings()?, none);
        pool.free(at, stream)?;
        device.synchronize_stream(stream)?;
        assert_eq!(pool.statistics()?.reserved, Watermark { current: 0, peak: 2 * MIB });
        pool.reset_peak()?;
        assert_eq!(pool.statistics()?.reserved.peak, 0);
        assert_eq!(pool.statistics()?.allocated.peak, 0);
        Ok(())
    }

    a_full_pool_gives_back_and_asks_again(CAPACITY) {
        let device = Device::open(0)?;
        let control = Control::new()?;
        let mut pool = StreamOrderedPool::new(device.clone(), &PoolSettings::default())?;
        let stream = device.create_stream()?;
        let mut held = Vec::new();
        for _ in 0..6 {
            held.push(pool.allocate(10 * MIB, stream)?);
        }
        assert_eq!(pool.allocate(10 * MIB, stream), Err(DriverError::OutOfMemory.into()));
        // Freed behind work that is held: only the wait of the second try gets there.
        control.hold(stream.0, true)?;
        for at in held.drain(..4) {
            pool.free(at, stream)?;
        }
        assert_eq!(pool.statistics()?.allocated.current, 60 * MIB);
        let large = pool.allocate(40 * MIB, stream)?;
        device.fill_on(stream, large, 3, 40 * MIB)?;
        control.hold(stream.0, false)?;
        assert_eq!(pool.statistics()?.reserved, Watermark { current: 60 * MIB, peak: 60 * MIB });
        pool.free(large, stream)?;
        pool.trim(30 * MIB)?;
        assert_eq!(pool.statistics()?.reserved.current, 20 * MIB);
        pool.empty_cache()?;
        assert_eq!((pool.statistics()?.reserved.current, control.used(0)?), (20 * MIB, 20 * MIB));
        Ok(())
    }

    a_pool_waits_for_every_stream_that_used_memory(CAPACITY) {
        let device = Device::open(0)?;
        let control = Control::new()?;
        let mut pool = StreamOrderedPool::new(device.clone(), &PoolSettings::default())?;
        let (own, user) = (device.create_stream()?, device.create_stream()?);
        let at = pool.allocate(4 * MIB, own)?;
        pool.record_stream(at, own)?;
        pool.record_stream(at, user)?;
        control.hold(user.0, true)?;
        device.fill_on(user, at, 1, 4 * MIB)?;
        pool.free(at, own)?;
        // Still in use: the next one gets other memory.
        let next = pool.allocate(4 * MIB, own)?;
        assert_ne!(next, at);
        assert_eq!(pool.statistics()?.allocated.current, 8 * MIB);
        control.hold(user.0, false)?;
        device.synchronize()?;
        assert_eq!(pool.statistics()?.allocated.current, 4 * MIB);
        assert_eq!(pool.allocate(4 * MIB, own)?, at);
        Ok(())
    }

    a_pool_refuses_what_makes_no_sense(CAPACITY) {
        let device = Device::open(0)?;
        let mut pool = StreamOrderedPool::new(device.clone(), &PoolSettings::default())?;
        let (stream, other) = (device.create_stream()?, device.create_stream()?);
        let at = pool.allocate(2 * MIB, stream)?;
        let before = pool.statistics()?;
        let wrong = PoolError::WrongStream { address: at, allocated: stream, freed: other };
        assert_eq!(pool.free(at, other), Err(wrong));
        assert_eq!(pool.free(Address(77), stream), Err(PoolError::UnknownAddress(Address(77))));
        assert_eq!(pool.record_stream(Address(77), other), Err(PoolError::UnknownAddress(Address(77))));
        assert!(matches!(pool.record_stream(at, Stream(99)), Err(PoolError::Driver(_))));
        assert!(matches!(pool.allocate(2 * MIB, Stream(99)), Err(PoolError::Driver(_))));
        for size in [1 << 50, u64::MAX] {
            assert!(pool.allocate(size, stream).is_err());
        }
        assert_eq!(pool.statistics()?, before);
        pool.free(at, stream)?;
        assert_eq!(pool.free(at, stream), Err(PoolError::UnknownAddress(at)));

        for fraction in [-0.1, 1.1, f64::NAN] {
            assert_eq!(pool.set_memory_fraction(fraction), Err(PoolError::Fraction));
        }
        pool.set_memory_fraction(0.25)?;
        pool.allocate(10 * MIB, stream)?;
        let over = PoolError::OverLimit { size: 8 * MIB, used: 10 * MIB, limit: 16 * MIB };
        assert_eq!(pool.allocate(8 * MIB, stream), Err(over));
        pool.allocate(6 * MIB, stream)?;
        pool.set_memory_fraction(1.0)?;
        pool.allocate(8 * MIB, stream)?;
        Ok(())
    }

    nvml_tells_what_others_hold(CAPACITY, ("FAKECUDA_DEVICES", "2"), ("FAKECUDA_OTHER_BYTES", "10485760")) {
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

#[test]
fn a_machine_without_a_driver_says_so_in_one_line() -> Result<()> {
    fn body() -> Result<()> {
        // Twice: the first failure must not have spoiled anything.
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
    let name = "a_machine_without_a_driver_says_so_in_one_line";
    within(&FakeFolder::empty(name)?, name, &[], body)
}

/// Whether the loader finds a driver without help.
fn has_real_driver() -> Result<bool> {
    let listed = Command::new("sh").args(["-c", "ldconfig -p || /sbin/ldconfig -p"]).output()?;
    Ok(String::from_utf8_lossy(&listed.stdout).contains("libcuda.so"))
}

#[test]
fn an_old_driver_is_told_what_it_lacks() -> Result<()> {
    fn body() -> Result<()> {
        for _ in 0..2 {
            let error = CudaDriver::open(0).err().context("it opened")?.to_string();
            assert_eq!(
                error,
                "the NVIDIA driver here (CUDA 10.1) has no cuMemAddressReserve; a newer driver is needed"
            );
        }
        Ok(())
    }
    let name = "an_old_driver_is_told_what_it_lacks";
    let folder = FakeFolder::without_symbol(name, "cuMemAddressReserve")?;
    within(&folder, name, &[("FAKECUDA_VERSION", "10010")], body)
}

#[test]
fn a_driver_without_pools_serves_the_rest() -> Result<()> {
    fn body() -> Result<()> {
        let mut driver = CudaDriver::open(0)?;
        driver.alloc(2 * MIB)?;
        let device: Arc<Device> = driver.device().clone();
        let error = StreamOrderedPool::new(device, &PoolSettings::default()).err().context("there is a pool")?;
        ensure!(matches!(error, CudaError::MissingSymbol { symbol: "cuMemPoolTrimTo", .. }), "{error}");
        Ok(())
    }
    let name = "a_driver_without_pools_serves_the_rest";
    within(&FakeFolder::without_symbol(name, "cuMemPoolTrimTo")?, name, &[], body)
}
