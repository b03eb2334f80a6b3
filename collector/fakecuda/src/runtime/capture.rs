//! Stream capture: enough for `torch.cuda.graph` to make its private pool. A graph has one node that depends on none.

use std::ffi::{c_char, c_int, c_ulonglong, c_void};
use std::ptr::null;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::export;
use crate::api::put;
use crate::code::{Code, Outcome};

/// The capture that is open, and how many there were.
#[derive(Debug)]
struct Capture {
    stream: Option<usize>,
    count: c_ulonglong,
}

/// `cudaStreamCaptureStatusNone` and `cudaStreamCaptureStatusActive`.
const NONE: c_int = 0;
const ACTIVE: c_int = 1;

/// The handle of every graph.
const GRAPH: usize = 1;

fn capture() -> MutexGuard<'static, Capture> {
    static CAPTURE: Mutex<Capture> = Mutex::new(Capture { stream: None, count: 0 });
    CAPTURE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a result that the caller may not want.
///
/// # Safety
/// The pointer is null or may be written to.
unsafe fn offer<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller's.
        unsafe { to.write(value) };
    }
}

/// Writes whether a stream is captured; returns the number of its capture.
///
/// # Safety
/// The pointer is null or may be written to.
unsafe fn status(stream: usize, to: *mut c_int) -> Outcome<Option<c_ulonglong>> {
    let capture = capture();
    let is_active = capture.stream == Some(stream);
    // SAFETY: the caller's.
    unsafe { put(to, if is_active { ACTIVE } else { NONE })? };
    Ok(is_active.then_some(capture.count))
}

// SAFETY, for all of these: pointers and handles are what the caller vouches for.
export! {
    fn cudaStreamBeginCapture(_machine, _device, stream: usize, _mode: c_int) {
        let mut capture = capture();
        capture.stream = Some(stream);
        capture.count += 1;
        Ok(())
    }

    fn cudaStreamEndCapture(_machine, _device, _stream: usize, graph: *mut usize) {
        capture().stream = None;
        unsafe { put(graph, GRAPH) }
    }

    fn cudaStreamIsCapturing(_machine, _device, stream: usize, to: *mut c_int) {
        unsafe { status(stream, to) }.map(|_| ())
    }

    // Since CUDA 13, with the data of edges.
    fn cudaStreamGetCaptureInfo(
        _machine, _device, stream: usize, to: *mut c_int, id: *mut c_ulonglong, graph: *mut usize,
        nodes: *mut *const c_void, edges: *mut *const c_void, count: *mut usize
    ) {
        if let Some(number) = unsafe { status(stream, to)? } {
            unsafe {
                offer(id, number);
                offer(graph, GRAPH);
                offer(nodes, null());
                offer(edges, null());
                offer(count, 0);
            }
        }
        Ok(())
    }

    // The name of CUDA 12.
    fn cudaStreamGetCaptureInfo_v2(
        _machine, _device, stream: usize, to: *mut c_int, id: *mut c_ulonglong, graph: *mut usize,
        nodes: *mut *const c_void, count: *mut usize
    ) {
        if let Some(number) = unsafe { status(stream, to)? } {
            unsafe {
                offer(id, number);
                offer(graph, GRAPH);
                offer(nodes, null());
                offer(count, 0);
            }
        }
        Ok(())
    }

    fn cudaThreadExchangeStreamCaptureMode(_machine, _device, _mode: *mut c_int) {
        Ok(())
    }

    fn cudaGraphInstantiateWithFlags(_machine, _device, executable: *mut usize, _graph: usize, _flags: c_ulonglong) {
        unsafe { put(executable, GRAPH) }
    }

    fn cudaGraphGetNodes(_machine, _device, _graph: usize, nodes: *mut usize, count: *mut usize) {
        if nodes.is_null() { unsafe { put(count, 1) } } else { Ok(()) }
    }

    fn cudaGraphLaunch(_machine, _device, _executable: usize, _stream: usize) {
        Ok(())
    }

    fn cudaGraphDestroy(_machine, _device, _graph: usize) {
        Ok(())
    }

    fn cudaGraphExecDestroy(_machine, _device, _executable: usize) {
        Ok(())
    }

    fn cudaGraphDebugDotPrint(_machine, _device, _graph: usize, _path: *const c_char, _flags: u32) {
        Err(Code::UNKNOWN)
    }
}

/// `cudaGraphNodeGetDependencies` of the runtime. CUDA 13 put an argument before the count: the count is the last one
/// that is given.
///
/// # Safety
/// As NVIDIA's documentation of the function demands.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudaGraphNodeGetDependencies(
    _node: usize,
    _nodes: *mut usize,
    third: *mut usize,
    fourth: *mut usize,
) -> u32 {
    let is_13 = crate::machine::machine().settings.version >= 13_000;
    // SAFETY: the caller's.
    unsafe { offer(if is_13 { fourth } else { third }, 0) };
    0
}
