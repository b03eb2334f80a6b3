//! The backends whose allocators report that memory ran out in the same words.

use query::finding::Remedy;

/// A backend of PyTorch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Backend {
    /// NVIDIA.
    #[default]
    Cuda,
    /// AMD.
    Hip,
    /// Intel.
    Xpu,
    /// Huawei's Ascend.
    Npu,
}

impl Backend {
    /// Returns the backend that is named last before a place in a text: `HIP out of memory.`
    pub(super) fn before(text: &str) -> Self {
        // Intel's extension of PyTorch refuses such sizes by itself, in other words.
        if text.trim_end().ends_with("larger than 4GB!") {
            return Self::Xpu;
        }
        let named = text.rsplit_once(" out of memory").map_or("", |(head, _)| head);
        match named.rsplit([' ', ':']).next() {
            Some("HIP") => Self::Hip,
            Some("XPU") => Self::Xpu,
            Some("NPU") => Self::Npu,
            _ => Self::Cuda,
        }
    }

    /// Returns the variable with the settings of its allocator.
    fn variable(self) -> &'static str {
        match self {
            Self::Cuda => "PYTORCH_CUDA_ALLOC_CONF=",
            Self::Hip => "PYTORCH_HIP_ALLOC_CONF=",
            Self::Xpu => "PYTORCH_ALLOC_CONF=",
            Self::Npu => "PYTORCH_NPU_ALLOC_CONF=",
        }
    }

    /// Returns the command that shows who holds a device's memory.
    fn monitor(self) -> &'static str {
        match self {
            Self::Cuda => "nvidia-smi",
            Self::Hip => "amd-smi process",
            Self::Xpu => "xpu-smi ps",
            Self::Npu => "npu-smi info",
        }
    }

    /// Returns a piece of advice as this backend needs it.
    pub(super) fn advise(self, remedy: Remedy) -> Remedy {
        let copy = match remedy.copy.as_str() {
            "nvidia-smi" => self.monitor().to_owned(),
            copy => copy.replace(Self::Cuda.variable(), self.variable()),
        };
        Remedy { copy, ..remedy }
    }
}
