//! What a device says of itself. PyTorch sizes workspaces and chooses kernels by it.

use std::ffi::c_int;

use super::devices::FIRST_BUS;
use crate::code::Outcome;
use crate::machine::Machine;
use crate::model::{REGISTERS, THREADS_PER_BLOCK};

/// The part of `cudaDeviceProp` that CUDA 12 and 13 have in common: offset and value of each 32-bit field.
const COMMON: [(usize, c_int); 10] = [
    (304, REGISTERS), // regsPerBlock
    (308, 32),        // warpSize
    (320, THREADS_PER_BLOCK),
    (324, 1024), // maxThreadsDim
    (328, 1024),
    (332, 64),
    (336, c_int::MAX), // maxGridSize
    (340, 65_535),
    (344, 65_535),
    (368, 512), // textureAlignment
];
/// The longest name, with its end.
const NAME_BYTES: usize = 256;

/// Where `cudaDeviceProp` of a CUDA version has its fields.
#[derive(Debug)]
pub(super) struct Layout {
    size: usize,
    /// The offset of each 32-bit field beside the common ones, as [`crate::model::Model::fields`] has them.
    fields: [usize; 12],
    /// The offset of `pciBusID`.
    bus: usize,
}

/// The structure of CUDA 12 (`driver_types.h` of 12.4).
pub(super) const CUDA_12: Layout =
    Layout { size: 1032, fields: [388, 400, 576, 604, 616, 624, 628, 640, 648, 652, 696, 712], bus: 584 };

/// The structure of CUDA 13 (`driver_types.h` of 13.0), which dropped fields.
pub(super) const CUDA_13: Layout =
    Layout { size: 1008, fields: [384, 392, 560, 588, 596, 604, 608, 624, 632, 636, 672, 688], bus: 568 };

impl Layout {
    /// Writes the properties of a device through `put`, byte by byte.
    pub(super) fn fill(
        &self,
        machine: &mut Machine,
        device: c_int,
        mut put: impl FnMut(usize, u8) -> Outcome,
    ) -> Outcome {
        let capacity = machine.numbered(device)?.capacity;
        let (model, name) = (machine.model, machine.settings.name.as_bytes());
        let mut bytes = vec![0; self.size];
        let length = name.len().min(NAME_BYTES - 1);
        bytes[..length].copy_from_slice(&name[..length]);
        // The UUID, which needs to tell devices apart only.
        bytes[256] = 0xfa;
        bytes[271] = device as u8;
        bytes[288..296].copy_from_slice(&capacity.to_ne_bytes());
        bytes[296..304].copy_from_slice(&49_152_u64.to_ne_bytes());
        let own = [(360, model.major), (364, model.minor), (self.bus, FIRST_BUS + device)];
        let placed = self.fields.into_iter().zip(model.fields());
        for (at, value) in COMMON.into_iter().chain(placed).chain(own) {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes.into_iter().enumerate().try_for_each(|(at, byte)| put(at, byte))
    }
}
