//! The C functions with which the Python agent and its tracker record what PyTorch's allocator does. `include/vramscope.h`
//! documents their arguments and results.

use std::ffi::{c_char, c_int};
use std::ptr;
use std::time::Duration;

use allocator::TraceEntry;
use recorder::publish::Destination;
use serde_json::json;
use trace::event::Action;
use trace::frames::{FrameId, StackId, StrId};
use trace::units::{PoolId, Stream};
use trace::{OutsideSample, Sample, Stage};

use crate::columns::{self, Column, EventPointers, SegmentPointers};
use crate::config::Config;
use crate::guard::{self, FAILED, OK, checked, guarded};
use crate::job;

/// Returns the C result of success or failure.
fn status(is_ok: bool) -> c_int {
    if is_ok { OK } else { FAILED }
}

fn millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

/// Starts the recording of this process.
///
/// # Safety
/// `config_json` is null or ends in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_start(config_json: *const c_char) -> c_int {
    checked(|| {
        // SAFETY: as the caller promises.
        let text = unsafe { guard::text(config_json) }.ok_or("the configuration is null")?;
        job::start(&Config::parse(&text)?)
    })
}

/// Returns why the latest failed call of this thread failed.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_error() -> *const c_char {
    guard::last_error()
}

/// Returns the full form of a server's address, which may lack a scheme; null if it is invalid.
///
/// # Safety
/// `to` is null or ends in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_address(to: *const c_char) -> *const c_char {
    let mut address = ptr::null();
    checked(|| {
        // SAFETY: as the caller promises.
        let to = unsafe { guard::text(to) }.ok_or("the address is null")?;
        let destination = Destination::parse(&to).map_err(|error| error.to_string())?;
        address = guard::answer(destination.address().trim_end_matches('/'));
        Ok(())
    });
    address
}

/// Returns the session's name at the server; empty without a server.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_session() -> *const c_char {
    guarded(c"".as_ptr(), || guard::answer(job::current().as_ref().map_or("", |job| job.session())))
}

/// Returns the time of the recording's clock in microseconds since the epoch; 0 without a recording.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_now() -> i64 {
    guarded(0, || job::with(job::Job::now_us).unwrap_or(0))
}

/// Records one event.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_event(
    device: i64,
    action: c_int,
    address: u64,
    size: u64,
    stream: i64,
    pool0: u64,
    pool1: u64,
    stack: u32,
    time_us: i64,
) -> c_int {
    guarded(FAILED, || {
        let action = Action::from_code(u8::try_from(action).unwrap_or(u8::MAX));
        let (stream, pool, stack) = (Stream(stream), PoolId(pool0, pool1), StackId(stack));
        let entry = TraceEntry { action, address, size, stream, pool, stack };
        status(job::with(|job| job.event(device, entry, time_us)) == Some(true))
    })
}

/// Records that events were lost before they arrived here.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_lost(device: i64, action: c_int, count: u32) -> c_int {
    guarded(FAILED, || {
        let action = Action::from_code(u8::try_from(action).unwrap_or(u8::MAX));
        status(job::with(|job| job.lost(device, action, count)).is_some())
    })
}

/// Records several events and returns how many were recorded.
///
/// # Safety
/// `columns` is null, or points to columns that are each null or hold `count` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_events(device: i64, count: usize, columns: *const EventPointers) -> i64 {
    guarded(-1, || {
        // SAFETY: as the caller promises.
        let Some(from) = (unsafe { columns.as_ref() }) else { return -1 };
        // SAFETY: as the caller promises, each column holds `count` values.
        let (action, address, size, stream) = unsafe {
            (
                Column::new(from.action, count),
                Column::new(from.address, count),
                Column::new(from.size, count),
                Column::new(from.stream, count),
            )
        };
        // SAFETY: as above.
        let (pool0, pool1, stack, time_us) = unsafe {
            (
                Column::new(from.pool0, count),
                Column::new(from.pool1, count),
                Column::new(from.stack, count),
                Column::new(from.time_us, count),
            )
        };
        let Some(job) = job::current() else { return -1 };
        let mut recorded = 0;
        for i in 0..count {
            let entry = TraceEntry {
                action: Action::from_code(action.at(i)),
                address: address.at(i),
                size: size.at(i),
                stream: Stream(stream.at(i)),
                pool: PoolId(pool0.at(i), pool1.at(i)),
                stack: StackId(stack.at(i)),
            };
            recorded += i64::from(job.event(device, entry, time_us.at(i)));
        }
        recorded
    })
}

/// Returns the number of a frame; -1 beyond the bounds or without a recording.
///
/// # Safety
/// Both texts are null or end in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_frame(name: *const c_char, filename: *const c_char, line: u32) -> i64 {
    guarded(-1, || {
        // SAFETY: as the caller promises.
        let (name, filename) = unsafe { (guard::text(name), guard::text(filename)) };
        let (Some(name), Some(filename), Some(job)) = (name, filename, job::current()) else { return -1 };
        job.stacks().frame(&name, &filename, line).map_or(-1, |frame| frame.0.into())
    })
}

/// Returns the number of a stack; 0, the empty stack, beyond the bounds.
///
/// # Safety
/// `frames` is null or points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_stack(frames: *const u32, count: usize) -> u32 {
    guarded(0, || {
        // SAFETY: as the caller promises.
        let frames = unsafe { Column::new(frames, count) };
        let frames: Vec<FrameId> = (0..count).map(|i| FrameId(frames.at(i))).collect();
        job::current().map_or(0, |job| job.stacks().stack(&frames).0)
    })
}

/// Records a device's segments: at the start of the next recording (0), now (1), or at the recording's end (2).
///
/// # Safety
/// `columns` is null, or points to columns that are as long as their counts say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_segments(when: c_int, device: i64, columns: *const SegmentPointers) -> c_int {
    checked(|| {
        // SAFETY: as the caller promises.
        let columns = unsafe { columns.as_ref() }.ok_or("the columns are null")?;
        // SAFETY: as the caller promises.
        let segments = unsafe { columns::segments(columns) };
        let job = || job::current().ok_or("no recording is running");
        match when {
            0 => job::set_start(device, segments),
            1 => {
                let recorded = job()?.with_sink(device, |sink| sink.segments(segments));
                recorded.filter(|&recorded| recorded).ok_or("the device is not recorded, or its queue is full")?;
            }
            2 => job()?.set_end(device, segments),
            _ => return Err(format!("`when` must be 0 (start), 1 (now) or 2 (end), not {when}")),
        }
        Ok(())
    })
}

/// Returns the number of a text that the job attaches to events; 0, the empty text, beyond the bounds.
///
/// # Safety
/// `text` is null or points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_text(text: *const c_char, bytes: usize) -> u32 {
    guarded(0, || {
        // SAFETY: as the caller promises.
        let text: Vec<u8> = {
            let text = unsafe { Column::new(text.cast::<u8>(), bytes) };
            (0..bytes).map(|i| text.at(i)).collect()
        };
        job::current().map_or(0, |job| job.stacks().text(&String::from_utf8_lossy(&text)).0)
    })
}

/// Sets the text that the job attaches to a device's later events.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_metadata(device: i64, text: u32) -> c_int {
    guarded(FAILED, || status(job::with(|job| job.set_metadata(device, StrId(text))) == Some(true)))
}

/// Marks a moment as the start of a span (0), its end (1), or an instant (2). A time of 0 means now.
///
/// # Safety
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_mark(device: i64, name: *const c_char, stage: c_int, time_us: i64) -> c_int {
    guarded(FAILED, || {
        // SAFETY: as the caller promises.
        let (Some(name), Some(job)) = (unsafe { guard::text(name) }, job::current()) else { return FAILED };
        let stage = match stage {
            0 => Stage::Start,
            1 => Stage::End,
            _ => Stage::Instant,
        };
        let time_us = if time_us == 0 { job.now_us() } else { time_us };
        status(job.with_handle(|handle| handle.mark_at(device, &name, stage, time_us)).is_some())
    })
}

/// Records a sample of a device's memory totals in bytes. A time of 0 means now.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_sample(device: i64, time_us: i64, allocated: u64, active: u64, reserved: u64) -> c_int {
    guarded(FAILED, || {
        let Some(job) = job::current() else { return FAILED };
        let time_us = if time_us == 0 { job.now_us() } else { time_us };
        let sample = Sample { time_us, allocated, active, reserved };
        status(job.with_handle(|handle| handle.statistics(device, sample)).is_some())
    })
}

/// Records a sample of the memory outside a device's allocator; negative numbers are unknown. A time of 0 means now.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_outside(
    device: i64,
    time_us: i64,
    resident: i64,
    pinned: i64,
    outside: i64,
    others: i64,
) -> c_int {
    guarded(FAILED, || {
        let Some(job) = job::current() else { return FAILED };
        let time_us = if time_us == 0 { job.now_us() } else { time_us };
        let values = [resident, pinned, outside, others].map(|value| u64::try_from(value).ok());
        status(job.with_handle(|handle| handle.outside(device, OutsideSample::new(time_us, values))).is_some())
    })
}

/// Returns what a viewer asked for since the last call: `history`, `state`, or an empty text.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_poll_ask() -> *const c_char {
    guarded(c"".as_ptr(), || match job::current().and_then(|job| job.asked()) {
        Some(ask) if ask.what == "history" => c"history".as_ptr(),
        Some(ask) if ask.what == "state" => c"state".as_ptr(),
        _ => c"".as_ptr(),
    })
}

/// Waits until everything recorded so far is written, at most `timeout_ms`.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_flush(timeout_ms: i64) -> c_int {
    guarded(FAILED, || {
        let Some(job) = job::current() else { return FAILED };
        status(job.flush(millis(timeout_ms)))
    })
}

/// Ends the recording. Returns its statistics as JSON; empty without a recording or after a timeout.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_finish(timeout_ms: i64) -> *const c_char {
    guarded(c"".as_ptr(), || match job::finish(millis(timeout_ms)) {
        Some(stats) => guard::answer(&stats_json(&stats)),
        None => c"".as_ptr(),
    })
}

/// Returns the statistics so far as JSON; empty without a recording.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_stats_json() -> *const c_char {
    guarded(c"".as_ptr(), || match job::current() {
        Some(job) => guard::answer(&stats_json(&job.stats())),
        None => c"".as_ptr(),
    })
}

fn stats_json(stats: &job::JobStats) -> String {
    let mut json = json!({});
    if let Some(of) = &stats.recorder {
        json["events"] = of.events.into();
        json["lost"] = of.lost.into();
        json["lost_by_action"] = of.lost_by_action.to_vec().into();
        json["unwritten"] = of.unwritten.into();
        json["marks_lost"] = of.marks_lost.into();
        json["samples_lost"] = of.samples_lost.into();
        json["names_refused"] = of.names_refused.into();
        json["bytes"] = of.bytes.into();
        json["failure"] = of.failure.clone().into();
    }
    if let Some(of) = &stats.publisher {
        json["sent_events"] = of.events.into();
        json["undelivered"] = of.undelivered().into();
        json["is_connected"] = of.is_connected.into();
        json["connections"] = of.connections.into();
        json["refused"] = of.failure.clone().into();
        json["trouble"] = of.trouble.clone().into();
        json["cause"] = of.cause.name().into();
    }
    json["full_disk"] = stats.full_disk.clone().into();
    json.to_string()
}

/// Marks this process as a forked child: from then on nothing is recorded in it, and no lock is taken.
#[unsafe(no_mangle)]
pub extern "C" fn vramscope_abandon_after_fork() {
    guard::abandon();
}
