//! The functions that PyTorch calls, against a driver library without a GPU.

#![cfg(target_os = "linux")]
#![allow(unsafe_code)] // C functions; each test keeps their contracts.

use std::ffi::{CStr, CString, c_void};
use std::process::Command;
use std::ptr;

use anyhow::{Result, ensure};
use format::import::Importer;
use recorder::cuda::Device;
use tests::Folder;
use tests::fakecuda::{Control, FakeFolder, on_fake, test_name};
use trace::Snapshot;
use trace::limits::ImportLimits;
use vramscope_pluggable::agent::{vramscope_error, vramscope_finish};
use vramscope_pluggable::allocator::*;

/// The first device's memory in most cases.
const CAPACITY: (&str, &str) = ("FAKECUDA_CAPACITY", "134217728");
const MIB: usize = 1 << 20;

/// Defines tests that run on the fake library.
macro_rules! on_fake {
    ($($name:ident($($variable:expr),*) $body:block)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            fn body() -> Result<()> $body
            on_fake(&test_name(module_path!(), stringify!($name)), &[$($variable),*], body)
        }
    )*};
}

fn start(settings: &str, history: u64, config: Option<&CStr>) -> Result<()> {
    let settings = CString::new(settings)?;
    let config = config.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: the texts end in zero bytes.
    let started =
        unsafe { vramscope_allocator_start(c"2.11.0".as_ptr(), settings.as_ptr(), c"all".as_ptr(), history, config) };
    ensure!(started == 0, "{}", error());
    vramscope_init(2);
    Ok(())
}

fn error() -> String {
    // SAFETY: the text belongs to this thread and is read before the next call.
    unsafe { CStr::from_ptr(vramscope_error()) }.to_string_lossy().into_owned()
}

fn malloc(size: usize, device: i32, stream: usize) -> usize {
    // SAFETY: the stream is the default one or the test's own. There is enough memory, so nothing is raised.
    unsafe { vramscope_malloc(size, device, stream as *mut c_void) as usize }
}

fn free(address: usize, device: i32) {
    // SAFETY: nothing uses the memory.
    unsafe { vramscope_free(address as *mut c_void, 0, device, ptr::null_mut()) };
}

fn stat(device: i32, name: &str) -> Result<i64> {
    // SAFETY: a null buffer is allowed.
    let size = unsafe { vramscope_allocator_stats_json(device, ptr::null_mut(), 0) };
    let mut text = vec![0; size];
    // SAFETY: the buffer has this size.
    unsafe { vramscope_allocator_stats_json(device, text.as_mut_ptr(), size) };
    let stats: serde_json::Value = serde_json::from_slice(&text)?;
    stats[name].as_i64().ok_or_else(|| anyhow::anyhow!("no {name} in {stats}"))
}

fn snapshot() -> Result<Snapshot> {
    let mut size = 0;
    // SAFETY: the size may be written, and the bytes are freed once.
    let bytes = unsafe {
        let start = vramscope_allocator_snapshot(&raw mut size);
        ensure!(!start.is_null(), "{}", error());
        let bytes = std::slice::from_raw_parts(start, size).to_vec();
        vramscope_allocator_snapshot_free(start, size);
        bytes
    };
    read(&bytes)
}

fn read(file: &[u8]) -> Result<Snapshot> {
    let mut importer = Importer::new(ImportLimits::default());
    importer.push(file)?;
    Ok(importer.finish()?.snapshot)
}

on_fake! {
    memory_is_allocated_and_freed(CAPACITY, ("FAKECUDA_DEVICES", "2")) {
        start("", 100, None)?;
        ensure!(malloc(0, 0, 0) == 0 && stat(0, "reserved_bytes.all.current")? == 0);
        let (first, other) = (malloc(5 * MIB, 0, 0), malloc(100, 1, 0));
        ensure!(first != 0 && other != 0 && stat(0, "allocated_bytes.all.current")? == 5 << 20);
        ensure!(stat(1, "allocated_bytes.all.current")? == 512);
        let mut size = 0;
        // SAFETY: the size may be written.
        let base = unsafe { vramscope_base_alloc((first + 4096) as *mut c_void, &raw mut size) };
        ensure!((base as usize, size) == (first, 20 * MIB), "{base:?} {size}");
        free(first, 0);
        // Under another device's number, as `raw_delete` may.
        free(other, 0);
        ensure!(stat(0, "allocated_bytes.all.current")? == 0 && stat(1, "allocated_bytes.all.current")? == 0);
        ensure!(vramscope_allocator_reset_peak(0) == 0 && stat(0, "allocated_bytes.all.peak")? == 0);
        // SAFETY: nothing fails, so nothing is raised.
        unsafe { vramscope_reset() };
        ensure!(Control::new()?.used(0)? == 0 && stat(0, "segment.all.freed")? == 1);
        let snapshot = snapshot()?;
        let actions: Vec<_> = snapshot.devices[0].events.iter().map(|event| event.action.name()).collect();
        ensure!(actions == ["segment_alloc", "alloc", "free_requested", "free_completed", "segment_free"], "{actions:?}");
        Ok(())
    }

    another_streams_memory_waits(CAPACITY) {
        start("", 0, None)?;
        let device = Device::open(0)?;
        let (stream, control) = (device.create_stream()?.0, Control::new()?);
        let address = malloc(3 * MIB, 0, 0);
        // SAFETY: the stream belongs to the device.
        unsafe { vramscope_record_stream(address as *mut c_void, stream as *mut c_void) };
        control.hold(stream, true)?;
        free(address, 0);
        let other = malloc(3 * MIB, 0, 0);
        ensure!(other != address && stat(0, "active.all.current")? == 2);
        control.hold(stream, false)?;
        ensure!(malloc(3 * MIB, 0, 0) == address);
        // SAFETY: an address of another allocator is ignored.
        unsafe { vramscope_record_stream(8 as *mut c_void, stream as *mut c_void) };
        Ok(())
    }

    settings_and_limits_hold(CAPACITY) {
        start("max_split_size_mb:64", 0, None)?;
        // SAFETY: the text ends in a zero byte.
        let set = |text: &CStr| unsafe { vramscope_allocator_set_settings(text.as_ptr()) };
        ensure!(stat(0, "max_split_size")? == 64 << 20 && set(c"expandable_segments:True") == 0);
        ensure!(malloc(3 * MIB, 0, 0) != 0 && snapshot()?.devices[0].segments[0].is_expandable);
        ensure!(set(c"nonsense:1") == -1 && error().contains("nonsense"), "{}", error());
        // SAFETY: nothing fails, so nothing is raised.
        unsafe { vramscope_memory_fraction(0.5, 0) };
        ensure!(vramscope_allocator_fraction(0) == 0.5);
        ensure!(start("", 0, None).is_err_and(|error| error.to_string().contains("already")));
        Ok(())
    }

    a_stopped_recording_is_complete(CAPACITY, ("FAKECUDA_DEVICES", "2")) {
        let folder = Folder::new("pluggable")?;
        let file = folder.join("stopped.vramscope");
        let config = serde_json::json!({ "out": file.display().to_string(), "name": "a job" }).to_string();
        start("", 0, Some(&CString::new(config)?))?;
        let kept = malloc(2 * MIB, 1, 0);
        (0..1000).for_each(|round| free(malloc(1000 + round, 1, 0), 1));
        ensure!(vramscope_allocator_stop_recording() == 0, "{}", error());
        free(kept, 1);
        // SAFETY: the text belongs to this thread.
        let ended = unsafe { CStr::from_ptr(vramscope_finish(10_000)) }.to_string_lossy();
        ensure!(ended.contains("\"events\":3003") && ended.contains("\"lost\":0"), "{ended}");
        let bytes = std::fs::read(&file)?;
        let snapshot = read(&bytes)?;
        let device = snapshot.devices.iter().find(|device| device.device == 1).unwrap();
        // Two segments and their first blocks; then an allocation and the two events of its free each time.
        ensure!(device.events.len() == 3003 && device.segments.len() == 2, "{} events", device.events.len());
        Ok(())
    }
}

/// Set in the process that is to abort.
const ABORTS: &str = "VRAMSCOPE_TEST_ABORTS";

#[test]
fn without_pytorch_no_error_can_be_raised_and_the_process_aborts() -> Result<()> {
    let name = "without_pytorch_no_error_can_be_raised_and_the_process_aborts";
    if std::env::var_os(ABORTS).is_some() {
        start("", 0, None)?;
        let address = malloc(1 << 40, 0, 0);
        ensure!(address != 0, "malloc returned a null pointer");
        return Ok(());
    }
    let folder = FakeFolder::new(name)?;
    let mut command = Command::new(std::env::current_exe()?);
    folder.serve(&mut command);
    let output =
        command.args([name, "--exact", "--nocapture"]).env(ABORTS, "1").env(CAPACITY.0, CAPACITY.1).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && errors.contains("Tried to allocate 1024.00 GiB"), "{errors}");
    ensure!(errors.contains("the process is aborted") && !errors.contains("a null pointer"), "{errors}");
    Ok(())
}
