//! What a device says of itself: an H100's figures, since PyTorch sizes the workspaces of captures by them.

use std::ffi::c_int;

use super::devices::FIRST_BUS;
use crate::code::Outcome;

const NAME: &[u8] = b"Vramscope fake device";

/// The part of `cudaDeviceProp` that CUDA 12 and 13 have in common: offset and value of each 32-bit field.
const COMMON: [(usize, c_int); 12] = [
    (304, 65_536), // regsPerBlock
    (308, 32),     // warpSize
    (320, 1024),   // maxThreadsPerBlock
    (324, 1024),   // maxThreadsDim
    (328, 1024),
    (332, 64),
    (336, c_int::MAX), // maxGridSize
    (340, 65_535),
    (344, 65_535),
    (360, MAJOR), // major
    (364, 0),     // minor
    (368, 512),   // textureAlignment
];

const MAJOR: c_int = 9;
pub(super) const THREADS_PER_BLOCK: c_int = 1024;
const PROCESSORS: c_int = 132;
const L2_BYTES: c_int = 50 << 20;
const THREADS_PER_PROCESSOR: c_int = 2048;
const SHARED_BYTES_PER_PROCESSOR: c_int = 233_472;
const REGISTERS_PER_PROCESSOR: c_int = 65_536;
pub(super) const SHARED_BYTES_PER_BLOCK: c_int = 232_448;
const BLOCKS_PER_PROCESSOR: c_int = 32;

/// Where `cudaDeviceProp` of a CUDA version has its fields.
#[derive(Debug)]
pub(super) struct Layout {
    size: usize,
    /// Offset and value of each 32-bit field beside the common ones.
    fields: [(usize, c_int); 12],
    /// The offset of `pciBusID`.
    bus: usize,
}

/// The structure of CUDA 12 (`driver_types.h` of 12.4).
pub(super) const CUDA_12: Layout = Layout {
    size: 1032,
    fields: [
        (388, PROCESSORS),
        (400, 1), // canMapHostMemory
        (576, 1), // concurrentKernels
        (604, 1), // unifiedAddressing
        (616, L2_BYTES),
        (624, THREADS_PER_PROCESSOR),
        (628, 1), // streamPrioritiesSupported
        (640, SHARED_BYTES_PER_PROCESSOR),
        (648, REGISTERS_PER_PROCESSOR),
        (652, 1), // managedMemory
        (696, SHARED_BYTES_PER_BLOCK),
        (712, BLOCKS_PER_PROCESSOR),
    ],
    bus: 584,
};

/// The structure of CUDA 13 (`driver_types.h` of 13.0), which dropped fields.
pub(super) const CUDA_13: Layout = Layout {
    size: 1008,
    fields: [
        (384, PROCESSORS),
        (392, 1), // canMapHostMemory
        (560, 1), // concurrentKernels
        (588, 1), // unifiedAddressing
        (596, L2_BYTES),
        (604, THREADS_PER_PROCESSOR),
        (608, 1), // streamPrioritiesSupported
        (624, SHARED_BYTES_PER_PROCESSOR),
        (632, REGISTERS_PER_PROCESSOR),
        (636, 1), // managedMemory
        (672, SHARED_BYTES_PER_BLOCK),
        (688, BLOCKS_PER_PROCESSOR),
    ],
    bus: 568,
};

impl Layout {
    /// Writes the properties of a device of `capacity` bytes through `put`, byte by byte.
    pub(super) fn fill(&self, device: c_int, capacity: u64, mut put: impl FnMut(usize, u8) -> Outcome) -> Outcome {
        let mut bytes = vec![0; self.size];
        bytes[..NAME.len()].copy_from_slice(NAME);
        // The UUID, which needs to tell devices apart only.
        bytes[256] = 0xfa;
        bytes[271] = device as u8;
        bytes[288..296].copy_from_slice(&capacity.to_ne_bytes());
        bytes[296..304].copy_from_slice(&49_152_u64.to_ne_bytes());
        for (at, value) in COMMON.iter().chain(&self.fields).chain(&[(self.bus, FIRST_BUS + device)]) {
            bytes[*at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes.into_iter().enumerate().try_for_each(|(at, byte)| put(at, byte))
    }
}

/// A device attribute (`cudaDeviceAttr` and `CUdevice_attribute`, which are the same numbers); 0 for what the device does not have.
pub(crate) fn attribute(number: c_int) -> c_int {
    match number {
        // Threads in a block and in its first two dimensions.
        1..=3 => 1024,
        4 => 64,
        5 => c_int::MAX,
        6 | 7 => 65_535,
        8 => 49_152,
        10 => 32,
        12 | 82 => 65_536,
        16 => PROCESSORS,
        38 => L2_BYTES,
        39 => THREADS_PER_PROCESSOR,
        75 => MAJOR,
        81 => SHARED_BYTES_PER_PROCESSOR,
        97 => SHARED_BYTES_PER_BLOCK,
        106 => BLOCKS_PER_PROCESSOR,
        // Kernels side by side, one address space, stream priorities, cooperative launches, virtual memory, pools.
        31 | 41 | 78 | 95 | 102 | 103 | 115 => 1,
        _ => 0,
    }
}
