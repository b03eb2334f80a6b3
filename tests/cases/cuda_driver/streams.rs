//! Streams, events and threads.

use allocator::Driver;
use anyhow::Result;
use recorder::cuda::CudaDriver;
use tests::fakecuda::Control;
use trace::units::Stream;

use crate::{CAPACITY, MIB, contents, failed_with, on_fake, pattern};

on_fake! {
    events_are_done_when_their_stream_reaches_them(CAPACITY) {
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

        // Events are reused, even one that was not done.
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
        // Waiting for the second stream completes the first one's work before.
        let mut bytes = vec![0; 1000];
        device.read_on(second, b, &mut bytes)?;
        assert_eq!(bytes, [&[4; 500], &pattern(1, 1000)[500..]].concat());
        device.synchronize()?;

        // Streams that are not this device's.
        for stream in [Stream(12345), Stream(-1)] {
            assert!(failed_with(driver.record_event(stream).map(|_| ()), "cuEventRecord", "does not belong to this device"));
            assert!(failed_with(device.fill_on(stream, a, 0, 1), "cuMemsetD8Async", "does not belong to this device"));
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

    every_thread_may_call_and_keeps_its_context(CAPACITY, ("FAKECUDA_DEVICES", "2")) {
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
        // One device's addresses are invalid on the other.
        assert!(drivers[0].device().read(addresses[1], &mut [0]).is_err());
        // Every context that was pushed was popped.
        assert_eq!(control.calls("cuCtxPushCurrent_v2")?, control.calls("cuCtxPopCurrent_v2")?);
        Ok(())
    }
}
