//! What kind of device it is: what its compute capability comes with.

use std::ffi::c_int;

use crate::settings::Settings;

pub(crate) const THREADS_PER_BLOCK: c_int = 1024;
const L2_BYTES: c_int = 50 << 20;
pub(crate) const REGISTERS: c_int = 65_536;

/// What a device can do, by its compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) major: c_int,
    pub(crate) minor: c_int,
    processors: c_int,
    threads_per_processor: c_int,
    blocks_per_processor: c_int,
    shared_bytes_per_processor: c_int,
    /// The most shared memory that a block can have.
    pub(crate) shared_bytes_per_block: c_int,
}

impl Model {
    /// Returns the model of a compute capability, by the table of technical specifications in NVIDIA's CUDA C++ Programming
    /// Guide.
    pub(crate) fn of(settings: &Settings) -> Self {
        let (major, minor) = settings.compute;
        // In KiB, of which a block can have all but one from 8.0 on.
        let (threads_per_processor, blocks_per_processor, shared, reserved) = match (major, minor) {
            (..=6, _) => (2048, 32, 64, 16),
            (7, 0) => (2048, 32, 96, 0),
            (7, _) => (1024, 16, 64, 0),
            (8, 0) => (2048, 32, 164, 1),
            (8, 9) | (12, _) => (1536, 24, 100, 1),
            (8, _) => (1536, 16, 100, 1),
            _ => (2048, 32, 228, 1),
        };
        Self {
            major,
            minor,
            processors: settings.processors,
            threads_per_processor,
            blocks_per_processor,
            shared_bytes_per_processor: shared << 10,
            shared_bytes_per_block: (shared - reserved) << 10,
        }
    }

    /// Returns the values of the fields that `cudaDeviceProp` has, in the order in which `properties` places them.
    pub(crate) fn fields(&self) -> [c_int; 12] {
        let Self { processors, threads_per_processor, blocks_per_processor, .. } = *self;
        let (shared, shared_by_block) = (self.shared_bytes_per_processor, self.shared_bytes_per_block);
        [
            processors,
            1, // canMapHostMemory
            1, // concurrentKernels
            1, // unifiedAddressing
            L2_BYTES,
            threads_per_processor,
            1, // streamPrioritiesSupported
            shared,
            REGISTERS,
            1, // managedMemory
            shared_by_block,
            blocks_per_processor,
        ]
    }

    /// Returns a device attribute (`cudaDeviceAttr` and `CUdevice_attribute`, which are the same numbers); 0 for what the device
    /// does not have.
    pub(crate) fn attribute(&self, number: c_int) -> c_int {
        match number {
            // Threads in a block and in its first two dimensions.
            1..=3 => THREADS_PER_BLOCK,
            4 => 64,
            5 => c_int::MAX,
            6 | 7 => 65_535,
            8 => 48 << 10,
            10 => 32,
            12 | 82 => REGISTERS,
            16 => self.processors,
            38 => L2_BYTES,
            39 => self.threads_per_processor,
            75 => self.major,
            76 => self.minor,
            81 => self.shared_bytes_per_processor,
            97 => self.shared_bytes_per_block,
            106 => self.blocks_per_processor,
            // Kernels side by side, one address space, stream priorities, cooperative launches, virtual memory, pools.
            31 | 41 | 78 | 95 | 102 | 103 | 115 => 1,
            _ => 0,
        }
    }
}
