//! cuDNN's recurrent networks, which say where in one block of memory each of their weights lies.

use std::ffi::c_int;

/// The networks (`cudnnRNNMode_t`) that have several gates.
const LSTM: c_int = 2;
const GRU: c_int = 3;
/// `CUDNN_BIDIRECTIONAL`.
const BOTH_WAYS: c_int = 1;
/// `CUDNN_FWD_MODE_TRAINING`.
const TRAINING: c_int = 1;
/// `CUDNN_DATA_DOUBLE`, `CUDNN_DATA_HALF` and `CUDNN_DATA_BFLOAT16`.
const DOUBLE: c_int = 1;
const HALF: c_int = 2;
const BFLOAT16: c_int = 9;

/// `cudnnRNNDescriptor_t`.
#[derive(Debug, Default)]
pub(crate) struct Network {
    mode: c_int,
    kind: c_int,
    ways: usize,
    input: usize,
    hidden: usize,
    /// The size of what it gives where that is another than `hidden`, otherwise 0.
    projected: usize,
    layers: usize,
}

/// `cudnnRNNDataDescriptor_t`.
#[derive(Debug, Default)]
pub(crate) struct Sequences {
    longest: usize,
    count: usize,
}

/// `cudnnTensorDescriptor_t`, of which only a weight's shape is ever asked for.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    kind: c_int,
    rows: usize,
    columns: usize,
}

impl Network {
    fn element(&self) -> usize {
        match self.kind {
            DOUBLE => 8,
            HALF | BFLOAT16 => 2,
            _ => 4,
        }
    }

    fn gates(&self) -> usize {
        match self.mode {
            LSTM => 4,
            GRU => 3,
            _ => 1,
        }
    }

    /// Returns the size of what a layer gives, in one direction.
    fn given(&self) -> usize {
        if self.projected == 0 { self.hidden } else { self.projected }
    }

    /// Returns the columns of a layer's weights for its input. Layers are counted with both directions.
    fn columns(&self, layer: usize) -> usize {
        if layer < self.ways { self.input } else { self.given() * self.ways }
    }

    /// Returns the elements of a layer's matrices.
    fn matrices(&self, layer: usize) -> usize {
        self.gates() * self.hidden * (self.columns(layer) + self.given()) + self.projected * self.hidden
    }

    /// Returns the elements of a layer's biases.
    fn biases(&self) -> usize {
        2 * self.gates() * self.hidden
    }

    fn all_layers(&self) -> usize {
        self.layers * self.ways
    }

    fn weights(&self) -> usize {
        (0..self.all_layers()).map(|layer| self.matrices(layer) + self.biases()).sum()
    }

    /// Returns the place of a matrix, in elements, and its shape. Those for the input come first, then those for what the step
    /// before gave, then the projection.
    fn matrix(&self, layer: usize, number: usize) -> (usize, usize, usize) {
        let before: usize = (0..layer).map(|layer| self.matrices(layer)).sum();
        let (gates, columns) = (self.gates(), self.columns(layer));
        let of_input = self.hidden * columns;
        let of_step = self.hidden * self.given();
        if number < gates {
            (before + number * of_input, self.hidden, columns)
        } else if number < 2 * gates {
            (before + gates * of_input + (number - gates) * of_step, self.hidden, self.given())
        } else {
            (before + gates * (of_input + of_step), self.projected, self.hidden)
        }
    }

    /// Returns the place of a bias, in elements. All biases lie behind all matrices.
    fn bias(&self, layer: usize, number: usize) -> usize {
        let matrices: usize = (0..self.all_layers()).map(|layer| self.matrices(layer)).sum();
        matrices + layer * self.biases() + number * self.hidden
    }

    /// Returns the bytes of the workspace and of what is kept for the backward pass. They are an estimate: the gates of one
    /// layer, and of all layers the gates, what they give, and the cells of an LSTM or the gated part of a GRU.
    fn temporary(&self, sequences: &Sequences, mode: c_int) -> (usize, usize) {
        let steps = sequences.longest * sequences.count * self.hidden * self.ways * self.element();
        let kept = self.gates() + 1 + usize::from(self.gates() > 1);
        (steps * self.gates(), if mode == TRAINING { steps * self.layers * kept } else { 0 })
    }
}

macro_rules! descriptors {
    ($($create:ident, $destroy:ident: $kind:ty;)*) => {$(
        #[doc = concat!("`", stringify!($create), "` of cuDNN.")]
        ///
        /// # Safety
        /// The pointer may be written to.
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $create(descriptor: *mut *mut $kind) -> u32 {
            // SAFETY: the caller's.
            unsafe { descriptor.write(Box::into_raw(Box::default())) };
            0
        }

        #[doc = concat!("`", stringify!($destroy), "` of cuDNN.")]
        ///
        /// # Safety
        /// The descriptor is null, or was made and not destroyed.
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $destroy(descriptor: *mut $kind) -> u32 {
            if !descriptor.is_null() {
                // SAFETY: the caller's.
                drop(unsafe { Box::from_raw(descriptor) });
            }
            0
        }
    )*};
}

descriptors! {
    cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor: Network;
    cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor: Sequences;
    cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor: Shape;
}

/// Returns a number that is not negative.
fn size(number: c_int) -> usize {
    usize::try_from(number).unwrap_or_default()
}

/// `cudnnSetRNNDescriptor_v8` of cuDNN.
///
/// # Safety
/// The descriptor exists.
#[allow(non_snake_case, clippy::too_many_arguments)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudnnSetRNNDescriptor_v8(
    descriptor: *mut Network,
    _algorithm: c_int,
    mode: c_int,
    _biases: c_int,
    direction: c_int,
    _input_mode: c_int,
    kind: c_int,
    _precision: c_int,
    _mathematics: c_int,
    input: c_int,
    hidden: c_int,
    projected: c_int,
    layers: c_int,
) -> u32 {
    let (input, hidden, projected, layers) = (size(input), size(hidden), size(projected), size(layers));
    let ways = if direction == BOTH_WAYS { 2 } else { 1 };
    // Without a projection, PyTorch gives the hidden size or 0.
    let projected = if projected == hidden { 0 } else { projected };
    // SAFETY: the caller's.
    unsafe { descriptor.write(Network { mode, kind, ways, input, hidden, projected, layers }) };
    0
}

/// `cudnnSetRNNDataDescriptor` of cuDNN.
///
/// # Safety
/// The descriptor exists.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudnnSetRNNDataDescriptor(
    descriptor: *mut Sequences,
    _kind: c_int,
    _layout: c_int,
    longest: c_int,
    count: c_int,
) -> u32 {
    // SAFETY: the caller's.
    unsafe { descriptor.write(Sequences { longest: size(longest), count: size(count) }) };
    0
}

/// `cudnnGetRNNWeightSpaceSize` of cuDNN.
///
/// # Safety
/// The descriptor exists, the other pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudnnGetRNNWeightSpaceSize(
    _handle: usize,
    descriptor: *const Network,
    bytes: *mut usize,
) -> u32 {
    // SAFETY: the caller's.
    unsafe { bytes.write((*descriptor).weights() * (*descriptor).element()) };
    0
}

/// `cudnnGetRNNTempSpaceSizes` of cuDNN.
///
/// # Safety
/// The descriptors exist, the other pointers are null or may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudnnGetRNNTempSpaceSizes(
    _handle: usize,
    descriptor: *const Network,
    mode: c_int,
    sequences: *const Sequences,
    workspace: *mut usize,
    kept: *mut usize,
) -> u32 {
    // SAFETY: the caller's.
    let sizes = unsafe { (*descriptor).temporary(&*sequences, mode) };
    for (to, bytes) in [(workspace, sizes.0), (kept, sizes.1)] {
        if !to.is_null() {
            // SAFETY: the caller's.
            unsafe { to.write(bytes) };
        }
    }
    0
}

/// `cudnnGetRNNWeightParams` of cuDNN: where a matrix and a bias lie.
///
/// # Safety
/// The descriptors exist, and the pointers to addresses may be written to, where they are not null.
#[allow(non_snake_case, clippy::too_many_arguments)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudnnGetRNNWeightParams(
    _handle: usize,
    descriptor: *const Network,
    layer: c_int,
    _bytes: usize,
    weights: usize,
    number: c_int,
    matrix_shape: *mut Shape,
    matrix: *mut usize,
    bias_shape: *mut Shape,
    bias: *mut usize,
) -> u32 {
    // SAFETY: the caller's.
    let network = unsafe { &*descriptor };
    let (layer, number, kind) = (size(layer), size(number), network.kind);
    let (place, rows, columns) = network.matrix(layer, number);
    let found = [
        (matrix_shape, matrix, place, Shape { kind, rows, columns }),
        (bias_shape, bias, network.bias(layer, number), Shape { kind, rows: network.hidden, columns: 1 }),
    ];
    for (shape, address, place, told) in found {
        if !shape.is_null() && !address.is_null() {
            // SAFETY: the caller's.
            unsafe {
                shape.write(told);
                address.write(weights + place * network.element());
            }
        }
    }
    0
}

/// `cudnnGetTensorNdDescriptor` of cuDNN: three dimensions.
///
/// # Safety
/// The descriptor exists, the other pointers may be written to, and the last two have room for three numbers.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudnnGetTensorNdDescriptor(
    descriptor: *const Shape,
    _most: c_int,
    kind: *mut c_int,
    dimensions: *mut c_int,
    sizes: *mut c_int,
    strides: *mut c_int,
) -> u32 {
    // SAFETY: the caller's.
    unsafe {
        let Shape { kind: of, rows, columns } = *descriptor;
        let [rows, columns] = [rows, columns].map(|number| c_int::try_from(number).unwrap_or(c_int::MAX));
        kind.write(of);
        dimensions.write(3);
        sizes.cast::<[c_int; 3]>().write_unaligned([1, rows, columns]);
        strides.cast::<[c_int; 3]>().write_unaligned([rows.saturating_mul(columns), columns, 1]);
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_lie_behind_one_another() {
        let network =
            Network { mode: LSTM, ways: 2, input: 3, hidden: 5, projected: 2, layers: 2, ..Default::default() };
        let mut place = 0;
        for layer in 0..4 {
            for number in 0..9 {
                let (at, rows, columns) = network.matrix(layer, number);
                assert_eq!(at, place, "layer {layer}, matrix {number}");
                place += rows * columns;
            }
        }
        for layer in 0..4 {
            for number in 0..8 {
                assert_eq!(network.bias(layer, number), place, "layer {layer}, bias {number}");
                place += 5;
            }
        }
        assert_eq!(network.weights(), place);
    }
}
