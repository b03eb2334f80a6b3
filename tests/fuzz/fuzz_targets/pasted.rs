//! Pasted texts: any bytes, and any bytes after what an error begins with. Whatever is understood can be shown.
#![no_main]

use explain::{explain, text_of};
use libfuzzer_sys::fuzz_target;

/// What texts that are understood begin with.
const BEGINNINGS: [&str; 12] = [
    "",
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which ",
    "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB total capacity; ",
    "Allocation on device 0 would exceed allowed memory. (out of memory)\nRequested : 2.00 GiB\n",
    "MPS backend out of memory (MPS allocated: 1.00 GiB, ",
    "| NVIDIA-SMI |\n| 1MiB / 2MiB |\n",
    "| NVIDIA-SMI |\n| MIG devices |\n",
    "No available memory for the cache blocks total_gpu_memory (",
    "NVRM: Xid (PCI:0): ",
    "Free memory on device (1/2 GiB) is less than desired GPU memory utilization (",
    "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used ",
    "ggml_vulkan: Device memory allocation of size ",
];

fuzz_target!(|data: &[u8]| {
    let rest = String::from_utf8_lossy(data);
    for beginning in BEGINNINGS {
        let found = explain(&[beginning, &rest].concat());
        assert_eq!(found.is_empty(), text_of(&found).is_empty());
    }
});
