//! Stream-ordered pools.

use allocator::DriverError;
use anyhow::Result;
use recorder::cuda::{Device, PoolError, PoolSettings, StreamOrderedPool, Watermark};
use tests::fakecuda::Control;
use trace::units::{Address, Stream};

use crate::{CAPACITY, MIB, on_fake, pattern};

on_fake! {
    a_pool_keeps_freed_memory(CAPACITY) {
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

        // With a threshold, a wait releases the rest.
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

    a_full_pool_releases_memory_and_tries_again(CAPACITY) {
        let device = Device::open(0)?;
        let control = Control::new()?;
        let mut pool = StreamOrderedPool::new(device.clone(), &PoolSettings::default())?;
        let stream = device.create_stream()?;
        let mut held = Vec::new();
        for _ in 0..6 {
            held.push(pool.allocate(10 * MIB, stream)?);
        }
        assert_eq!(pool.allocate(10 * MIB, stream), Err(DriverError::OutOfMemory.into()));
        // Freed after held work: only the wait before the second attempt completes it.
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
        // It is still in use, so the next allocation gets other memory.
        let next = pool.allocate(4 * MIB, own)?;
        assert_ne!(next, at);
        assert_eq!(pool.statistics()?.allocated.current, 8 * MIB);
        control.hold(user.0, false)?;
        device.synchronize()?;
        assert_eq!(pool.statistics()?.allocated.current, 4 * MIB);
        assert_eq!(pool.allocate(4 * MIB, own)?, at);
        Ok(())
    }

    a_pool_refuses_invalid_calls(CAPACITY) {
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
}
