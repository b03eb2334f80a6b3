//! Texts as releases of PyTorch write them.

use super::*;
use query::diagnosis::Cause;

/// The kind, the cause, and what the sentence has to contain.
const CASES: &[(&str, TextKind, Cause, &str)] = &[
    // 1.0 to 1.3.
    (
        "RuntimeError: CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total capacity; 8.57 MiB already \
         allocated; 9.28 GiB free; 4.68 MiB cached)",
        TextKind::OutOfMemory,
        Cause::None,
        "The driver refused 12.5 MiB, though it reported 9.28 GiB as free. PyTorch's own limit, which releases before 1.8 don't have, was \
         not set.",
    ),
    // 1.4 to 2.0.
    (
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 1.71 GiB (GPU 0; 6.00 GiB total capacity; 3.49 GiB already \
         allocated; 1.04 GiB free; 3.50 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try \
         setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and \
         PYTORCH_CUDA_ALLOC_CONF",
        TextKind::OutOfMemory,
        Cause::OtherProcess,
        "1.46 GiB of 6.00 GiB were held outside",
    ),
    (
        "Tried to allocate 10.84 GiB (GPU 0; 23.65 GiB total capacity; 1.06 GiB already allocated; 10.26 GiB free; 12.53 \
         GiB reserved in total by PyTorch)",
        TextKind::OutOfMemory,
        Cause::Fragmented,
        "11.5 GiB was cached and 10.3 GiB was free",
    ),
    // On Windows, tensors may lie in the host's memory.
    (
        "CUDA out of memory. Tried to allocate 2.11 GiB (GPU 0; 8.00 GiB total capacity; 19.84 GiB already allocated; 0 \
         bytes free; 22.26 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory",
        TextKind::OutOfMemory,
        Cause::None,
        "PyTorch counts 22.3 GiB on a device of 8.00 GiB: on Windows and WSL",
    ),
    // 2.1 and 2.2.
    (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacty of 23.65 GiB \
         of which 1.66 GiB is free. Including non-PyTorch memory, this process has 20.81 GiB memory in use. Of the \
         allocated memory 12.09 GiB is allocated by PyTorch, and 4.84 GiB is reserved by PyTorch but unallocated. If \
         reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.",
        TextKind::OutOfMemory,
        Cause::Fragmented,
        "4.84 GiB was cached and 1.66 GiB was free",
    ),
    (
        "Tried to allocate 55.57 GiB. GPU 0 has a total capacty of 12.00 GiB of which 9.02 GiB is free. Of the allocated \
         memory 984.52 MiB is allocated by PyTorch, and 463.48 MiB is reserved by PyTorch but unallocated.",
        TextKind::OutOfMemory,
        Cause::Full,
        "one request was for 55.6 GiB, and the device has 12.0 GiB in all",
    ),
    (
        "Tried to allocate 496.00 MiB. GPU 0 has a total capacty of 14.75 GiB of which 235.06 MiB is free. Process 20398 has \
         14.52 GiB memory in use. Of the allocated memory 14.06 GiB is allocated by PyTorch, and 330.42 MiB is reserved by \
         PyTorch but unallocated.",
        TextKind::OutOfMemory,
        Cause::Full,
        "live tensors held 14.1 GiB of 14.8 GiB",
    ),
    (
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.06 GiB is free. \
         Process 11 has 9.59 GiB memory in use. Process 12 has 13.00 GiB memory in use. Of the allocated memory 8.90 GiB is \
         allocated by PyTorch, and 200.00 MiB is reserved by PyTorch but unallocated.",
        TextKind::OutOfMemory,
        Cause::OtherProcess,
        "Process 12 held 13.0 GiB of 23.7 GiB, and the request of 2.00 GiB was 763 MiB short.",
    ),
    // Packing would have been enough, but another process has most of the device. With and without "this process".
    (
        "Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.69 GiB of which 12.81 MiB is free. Process 2001 has \
         20.10 GiB memory in use. Including non-PyTorch memory, this process has 3.57 GiB memory in use. Of the allocated \
         memory 3.01 GiB is allocated by PyTorch, and 40.33 MiB is reserved by PyTorch but unallocated.",
        TextKind::OutOfMemory,
        Cause::OtherProcess,
        "Process 2001 held 20.1 GiB of 23.7 GiB, and 53.1 MiB was left for the request of 20.0 MiB",
    ),
    (
        "Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.69 GiB of which 12.81 MiB is free. Process 2001 has \
         20.10 GiB memory in use. Of the allocated memory 3.01 GiB is allocated by PyTorch, and 40.33 MiB is reserved by \
         PyTorch but unallocated.",
        TextKind::OutOfMemory,
        Cause::OtherProcess,
        "Process 2001 held 20.1 GiB of 23.7 GiB",
    ),
    (
        "Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.06 GiB is free. Process 11 has 9.00 \
         GiB memory in use. Process 12 has 10.00 GiB memory in use. Including non-PyTorch memory, this process has 3.50 GiB \
         memory in use. Of the allocated memory 3.00 GiB is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but \
         unallocated.",
        TextKind::OutOfMemory,
        Cause::OtherProcess,
        "other processes held 19.1 GiB of 23.7 GiB (the largest: Process 12 with 10.0 GiB)",
    ),
    // Cut off: the numbers are missing.
    (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        TextKind::OutOfMemory,
        Cause::None,
        "A request of 2.00 GiB failed, but this text doesn't say how much memory there was: paste the whole message",
    ),
    // 2.6 and later; the lines as a terminal wraps them.
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 472.00 MiB. GPU 0 has a total capacity of 6.00 GiB of \
         which\n84.00 MiB is free. Including non-PyTorch memory, this process has 5.92 GiB memory in use. Of the\nallocated \
         memory 5.29 GiB is allocated by PyTorch, and 642.39 MiB is reserved by PyTorch but unallocated. If reserved but \
         unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
        TextKind::OutOfMemory,
        Cause::Fragmented,
        "642 MiB was cached and 84.0 MiB was free",
    ),
    (
        "CUDA out of memory. Tried to allocate 56.00 MiB. GPU 0 has a total capacity of 4.00 GiB of which 424.00 MiB is \
         free. Including non-PyTorch memory, this process has 3.59 GiB memory in use. 3.60 GiB allowed; Of the allocated \
         memory 3.25 GiB is allocated by PyTorch, and 343.56 MiB is reserved by PyTorch but unallocated. expandable_segments \
         is enabled. If instead the process is running out of virtual address space (VSZ), expandable segments may be \
         over-reserving VA",
        TextKind::OutOfMemory,
        Cause::Limit,
        "the process may use only 3.60 GiB of 4.00 GiB",
    ),
    // An H200 at its end: 42 MiB of 43.12 MiB were refused.
    (
        "CUDA out of memory. Tried to allocate 42.00 MiB. GPU 0 has a total capacity of 9.00 GiB of which 43.12 MiB is free. \
         Of the allocated memory 7.94 GiB is allocated by PyTorch, and 839.00 MiB is reserved by PyTorch but unallocated.",
        TextKind::OutOfMemory,
        Cause::Fragmented,
        "The driver refused 42.0 MiB, though it reported 43.1 MiB as free",
    ),
    // With a CUDA graph's pool.
    (
        "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 500.00 MiB is free. \
         Of the allocated memory 5.50 GiB is allocated by PyTorch, with 2.50 GiB allocated in private pools (e.g., CUDA \
         Graphs), and 100.00 MiB is reserved by PyTorch but unallocated.",
        TextKind::OutOfMemory,
        Cause::OutOfReach,
        "private pools, such as those of CUDA graphs, have 2.50 GiB cached",
    ),
    // 2.12 and later.
    (
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction limit. \
         Requested size: 20.00 MiB",
        TextKind::OutOfMemory,
        Cause::Limit,
        "a request of 20.0 MiB was refused before the driver was asked",
    ),
    (
        "CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 7.00 GiB is free. Of \
         the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated. This \
         allocation exceeds the expandable-segment reserve of 2.00 GiB for this stream, and a single allocation cannot span \
         expandable segments.",
        TextKind::OutOfMemory,
        Cause::Limit,
        "an expandable segment may have 2.00 GiB of addresses",
    ),
    (
        "CUDA out of memory. Tried to allocate more than 1EB memory.",
        TextKind::OutOfMemory,
        Cause::None,
        "The size itself is wrong",
    ),
    // cudaMallocAsync.
    (
        "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 6.50 GiB\nRequested \
                       : 2.00 GiB\nDevice limit            : 8.00 GiB\nFree (according to CUDA): 1.00 GiB\nPyTorch limit (set \
         by user-supplied memory fraction)\n                        : 8.00 GiB",
        TextKind::OutOfMemory,
        Cause::Full,
        "live tensors held 6.50 GiB of 8.00 GiB",
    ),
    // What its pool has cached is in no figure; 2^64 bytes stand for no limit.
    (
        "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 40.00 GiB\nRequested \
                       : 500.00 MiB\nDevice limit            : 60.00 GiB\nFree (according to CUDA): 20.00 MiB\nPyTorch limit (set \
         by user-supplied memory fraction)\n                        : 17179869184.00 GiB",
        TextKind::OutOfMemory,
        Cause::None,
        "Live tensors held 40.0 GiB of 60.0 GiB. 20.0 GiB is held by the driver's pool of this process",
    ),
    // A limit is one only if the error says "allowed": PyTorch prints it whenever a fraction is set.
    (
        "Tried to allocate 100.00 MiB. GPU 0 has a total capacity of 20.00 GiB of which 5.00 GiB is free. Of the allocated memory \
         12.00 GiB is allocated by PyTorch, and 80.00 MiB is reserved by PyTorch but unallocated.",
        TextKind::OutOfMemory,
        Cause::None,
        "The driver refused 100 MiB, though it reported 5.00 GiB as free. PyTorch's own limit was not set",
    ),
    // Figures that contradict each other.
    (
        "HIP out of memory. Tried to allocate 12.00 GiB. GPU 0 has a total capacity of 10.00 GiB of which 60.00 GiB is free. Of \
         the allocated memory 3.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.",
        TextKind::OutOfMemory,
        Cause::None,
        "60.0 GiB was free on a device of 10.0 GiB",
    ),
    (
        "Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 40.00 GiB of which 0.50 GiB is free. Including non-PyTorch \
         memory, this process has 39.00 GiB memory in use. Of the allocated memory 50.00 GiB is allocated by PyTorch, and 20.00 \
         GiB is reserved by PyTorch but unallocated.",
        TextKind::OutOfMemory,
        Cause::None,
        "PyTorch counts 70.0 GiB, and this process holds 39.0 GiB of 40.0 GiB: 31.0 GiB of it is not on the device",
    ),
    (
        "Tried to allocate 200.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 0 bytes is free. Including non-PyTorch \
         memory, this process has 17179869184.00 GiB memory in use. Of the allocated memory 11.00 GiB is allocated by PyTorch, \
         and 100.00 MiB is reserved by PyTorch but unallocated.",
        TextKind::OutOfMemory,
        Cause::None,
        "PyTorch counts 11.1 GiB on a device of 8.00 GiB",
    ),
    // The driver doesn't tell what the process holds.
    (
        "Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 10.00 GiB of which 0 bytes is free. Including non-PyTorch \
         memory, this process has 17179869184.00 GiB memory in use. Of the allocated memory 9.60 GiB is allocated by PyTorch, \
         and 100.00 MiB is reserved by PyTorch but unallocated.",
        TextKind::OutOfMemory,
        Cause::Full,
        "live tensors held 9.60 GiB of 10.0 GiB",
    ),
    // Other backends.
    (
        "HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 96.00 GiB of which 500.00 MiB is free. Of \
         the allocated memory 40.00 GiB is allocated by PyTorch, and 60.00 MiB is reserved by PyTorch but unallocated.",
        TextKind::OutOfMemory,
        Cause::OtherProcess,
        "Another process, or on an APU the host, most likely: 55.5 GiB of 96.0 GiB were held outside of PyTorch's allocator",
    ),
    (
        "RuntimeError: MPS backend out of memory (MPS allocated: 8.00 GiB, other allocations: 10.00 GiB, max allowed: 18.10 GiB). \
         Tried to allocate 256.00 MiB on private pool.",
        TextKind::OutOfMemory,
        Cause::Limit,
        "PyTorch may use 18.1 GiB on this Mac. 8.00 GiB is in its tensors and cache and 10.0 GiB in other memory of Metal",
    ),
    (
        "XPU out of memory. Tried to allocate 5.00 GiB. GPU 0 has a total capacity of 16.00 GiB. Of the allocated memory 0 bytes \
         is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.",
        TextKind::OutOfMemory,
        Cause::None,
        "Intel's drivers refuse single allocations of 4 GiB and more",
    ),
    (
        "NPU out of memory. Tried to allocate 5.00 GiB (NPU 3; 60.00 GiB total capacity; 49.00 GiB already allocated; 49.00 GiB \
         current active; 1.00 GiB free; 57.00 GiB reserved in total by PyTorch)",
        TextKind::OutOfMemory,
        Cause::Fragmented,
        "8.00 GiB was cached and 1.00 GiB was free",
    ),
    // What is missing is unknown, and not 0.
    (
        "CUDA out of memory. Tried to allocate 4.00 MiB. GPU 6 has a total capacity of 40.00 GiB of which 512.00 KiB is free.",
        TextKind::OutOfMemory,
        Cause::None,
        "A request of 4.00 MiB failed while 512 KiB of 40.0 GiB was free. The text ends before PyTorch's own figures",
    ),
    (
        "CUDA out of memory. Tried to allocate 256.00 MiB (GPU 0; 14.00 GiB total capacity; 13.00 GiB already allocated; 120.00 MiB \
         free; 13.60 GiB reser",
        TextKind::OutOfMemory,
        Cause::None,
        "while 13.0 GiB of 14.0 GiB was in live tensors and 120 MiB was free. The text ends before",
    ),
    // Broken within a word, quoted, and boxed.
    (
        "CUDA out of memory. Tried to allocate 3.00 GiB (GPU 1; 20.00 GiB total capacity; 14.00 GiB already allocated; 1.00 GiB \
         free; 18.00 GiB reserved in tot\nal by PyTorch)",
        TextKind::OutOfMemory,
        Cause::Fragmented,
        "4.00 GiB was cached and 1.00 GiB was free",
    ),
    (
        "> CUDA out of memory. Tried to allocate 3.00 GiB (GPU 1; 20.00 GiB\n> total capacity; 14.00 GiB already allocated; 1.00 GiB\n\
         > free; 18.00 GiB reserved in total by PyTorch)",
        TextKind::OutOfMemory,
        Cause::Fragmented,
        "4.00 GiB was cached and 1.00 GiB was free",
    ),
    (
        "| CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of   |\n\
         | 20.00 GiB of which 1.10 GiB is free. Of the allocated memory 18.00 GiB is       |\n\
         | allocated by PyTorch, and 0.50 GiB is reserved by PyTorch                       |\n\
         | but unallocated.                                                                |",
        TextKind::OutOfMemory,
        Cause::Full,
        "live tensors held 18.0 GiB of 20.0 GiB, and 1.60 GiB was left",
    ),
    // Errors in other words.
    ("torch.OutOfMemoryError: Allocation on device \n", TextKind::OutOfMemory, Cause::None, "left the figures out"),
    (
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        TextKind::OutOfMemory,
        Cause::None,
        "A library (such as cuBLAS, cuDNN, cuSOLVER or bitsandbytes) asked the driver itself",
    ),
    (
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1, unhandled cuda error\nncclUnhandledCudaError: Call \
         to CUDA function failed. Last error: Cuda failure 2 'out of memory'",
        TextKind::OutOfMemory,
        Cause::None,
        "NCCL asked the driver itself",
    ),
    (
        "RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at \"CUDACachingAllocator.cpp\":8",
        TextKind::OutOfMemory,
        Cause::None,
        "Out of memory in disguise",
    ),
    (
        "RuntimeError: !handles_.at(i) INTERNAL ASSERT FAILED at \"CUDACachingAllocator.cpp\":4",
        TextKind::OutOfMemory,
        Cause::None,
        "every later request of this process fails",
    ),
    ("RuntimeError: CUDA error: out of memory", TextKind::OutOfMemory, Cause::None, "The driver had no memory"),
    (
        "(EngineCore_DP0 pid=7) ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.",
        TextKind::OutOfMemory,
        Cause::None,
        "vLLM's KV cache is too small",
    ),
    (
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2147483648 bytes.",
        TextKind::OutOfMemory,
        Cause::None,
        "XLA, not PyTorch, ran out of memory for 2.00 GiB",
    ),
    (
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        TextKind::OutOfMemory,
        Cause::None,
        "SGLang had no memory left for its KV cache",
    ),
    (
        "RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[64,1024] and type float",
        TextKind::OutOfMemory,
        Cause::None,
        "TensorFlow ran out of memory",
    ),
    (
        "failed to allocate 16.00G (17179869184 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        TextKind::OutOfMemory,
        Cause::None,
        "TensorFlow, or JAX, found no memory on the device",
    ),
    // Errors of other programs, of the host and of old releases, as people pasted them.
    (
        "RuntimeError: XPU out of memory. Tried to allocate 1.71 GiB (GPU 0; 15.56 GiB total capacity; 0 bytes already \
         allocated; 0 bytes reserved in total by PyTorch)",
        TextKind::OutOfMemory,
        Cause::None,
        "The driver refused 1.71 GiB, though PyTorch had left 15.6 GiB of the device",
    ),
    (
        "Current platform can NOT allocate memory block with size larger than 4GB! Tried to allocate 6.85 GiB (GPU  0; 15.56 \
         GiB total capacity; 0 bytes already allocated; 0 bytes reserved in total by PyTorch)",
        TextKind::OutOfMemory,
        Cause::None,
        "Intel's drivers refuse single allocations of 4 GiB and more",
    ),
    (
        "NPU out of memory. Tried to allocate 26.44 GiB (NPU 2; 60.96 GiB total capacity; 30.23 GiB already allocated; 30.23 \
         GiB current active; 25.36 GiB free; 33.08 GiB reserved in total by PyTorch",
        TextKind::OutOfMemory,
        Cause::Fragmented,
        "2.85 GiB was cached and 25.4 GiB was free",
    ),
    (
        "CUDA out of memory. Tried to allocate 1.12 MiB (GPU 0; 22.37 GiB total capacity; 15.87 GiB already allocated; 3.56 \
         MiB free; 787.74 MiB cached)",
        TextKind::OutOfMemory,
        Cause::Full,
        "5.73 GiB was held outside of PyTorch's allocator",
    ),
    (
        "(worker/3 pid=7) CUDA out of memory. Tried to allocate 354.00 MiB. GPU 0 has a total capacity of 79.14 GiB of which \
         310.44 MiB is free. Process 82045 has 2.54 GiB memory in use. Process 93487 has 76.29 GiB memory in use. Of the a",
        TextKind::OutOfMemory,
        Cause::None,
        "It names 2 processes (the largest: Process 93487 with 76.3 GiB)",
    ),
    (
        "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated : 5.96 GiB\nRequested : \
         12.50 MiB\nDevice limit : 12.00 GiB\nFree (according to CUDA): 5.00 GiB\nPyTorch limit (set by user-supplied memory \
         fraction)\n: 17179869184.00 GiB",
        TextKind::OutOfMemory,
        Cause::None,
        "though it reported 5.00 GiB as free. PyTorch's own limit was not set.",
    ),
    (
        "RuntimeError: Invalid buffer size: 50.62 GB",
        TextKind::OutOfMemory,
        Cause::None,
        "Metal serves no single buffer as large",
    ),
    (
        "E tensorflow/stream_executor/cuda/cuda_blas.cc:372] failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED",
        TextKind::OutOfMemory,
        Cause::None,
        "TensorFlow, or JAX, found no memory",
    ),
    (
        "ResourceExhaustedError: failed to allocate memory [Op:AddV2]",
        TextKind::OutOfMemory,
        Cause::None,
        "TensorFlow ran out of memory",
    ),
    (
        "Resource exhausted: OOM when allocating tensor with shape[1,416,416,3] and type float on \
         /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu",
        TextKind::OutOfMemory,
        Cause::None,
        "The host's memory ran out",
    ),
    (
        "failed to alloc 34359738368 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        TextKind::OutOfMemory,
        Cause::None,
        "The host's memory ran out",
    ),
    (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to \
         allocate 132426121216 bytes. Error code 12 (Cannot allocate memory)",
        TextKind::OutOfMemory,
        Cause::None,
        "The host's memory ran out",
    ),
    (
        "host:1:1 [0] enqueue.cc:1085 NCCL WARN Cuda failure 'out of memory'",
        TextKind::OutOfMemory,
        Cause::None,
        "NCCL asked the driver itself",
    ),
    (
        "host:1:1 [0] NCCL INFO Connected all rings\nRuntimeError: CUDA error: out of memory",
        TextKind::OutOfMemory,
        Cause::None,
        "The driver had no memory",
    ),
    (
        "Execution of replica 0 failed: Resource exhausted: Out of memory while trying to allocate 5520758552 bytes.",
        TextKind::OutOfMemory,
        Cause::None,
        "ran out of memory for 5.14 GiB",
    ),
    (
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 20029400304 bytes.",
        TextKind::OutOfMemory,
        Cause::None,
        "ran out of memory for 18.7 GiB",
    ),
    (
        "cuMemAllocAsync failed to allocate 1225195446464 bytes: RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        TextKind::OutOfMemory,
        Cause::None,
        "ran out of memory for 1.11 TiB",
    ),
    (
        "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 21.95G of 15.48G hbm.",
        TextKind::OutOfMemory,
        Cause::None,
        "a program needs 22.0 GiB, and this memory of the TPU has 15.5 GiB",
    ),
    (
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9866.00 MiB on device 1: cudaMalloc failed: out of memory",
        TextKind::OutOfMemory,
        Cause::None,
        "llama.cpp",
    ),
    (
        "CUDA error: out of memory\n  current device: 0, in function alloc at ggml-cuda.cu:233\n  hipMalloc((void **) &ptr, \
         look_ahead_size)",
        TextKind::OutOfMemory,
        Cause::None,
        "llama.cpp",
    ),
    (
        "ggml_vulkan: Device memory allocation of size 118497280 failed.",
        TextKind::OutOfMemory,
        Cause::None,
        "llama.cpp",
    ),
    (
        "Free memory on device (67.24/79.25 GiB) on startup is less than desired GPU memory utilization (0.9, 71.33 GiB).",
        TextKind::OutOfMemory,
        Cause::OtherProcess,
        "only 67.2 GiB was free when it started",
    ),
    (
        "(VllmWorker rank=7 pid=1) RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests.",
        TextKind::OutOfMemory,
        Cause::None,
        "as many requests at once as max_num_seqs allows",
    ),
    (
        "[torch_memory_saver.cpp] CUresult error  result=2 file=csrc/torch_memory_saver.cpp func=cu_mem_create line=103",
        TextKind::OutOfMemory,
        Cause::None,
        "torch_memory_saver",
    ),
    (
        "THCudaCheck FAIL file=THC/generic/THCStorage.cu line=58 error=2 : out of memory",
        TextKind::OutOfMemory,
        Cause::None,
        "in the words of releases up to 0.4",
    ),
    (
        "RuntimeError: !block->expandable_segment_ INTERNAL ASSERT FAILED at \"CUDACachingAllocator.cpp\":2814",
        TextKind::OutOfMemory,
        Cause::None,
        "PyTorch's allocator up to 2.4",
    ),
    (
        "Error out of memory at line 380 in file /src/bitsandbytes/csrc/pythonInterface.c",
        TextKind::OutOfMemory,
        Cause::None,
        "A library (such as",
    ),
    (
        "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before? Error 2: out of memory",
        TextKind::OutOfMemory,
        Cause::None,
        "The driver had no memory",
    ),
    (
        "onnxruntime::BFCArena::AllocateRawInternal(size_t) Failed to allocate memory for requested buffer of size 2830172160",
        TextKind::OutOfMemory,
        Cause::None,
        "A program other than PyTorch",
    ),
    (
        "Out of memory error on GPU 0. Cannot allocate 98.000244MB memory on GPU 0, 6.000000GB memory has been allocated and \
         available memory is only 0.000000B.",
        TextKind::OutOfMemory,
        Cause::None,
        "A program other than PyTorch",
    ),
    (
        "[E] [TRT] ../rtSafe/safeRuntime.cpp (25) - Cuda Error in allocate: 2 (out of memory)",
        TextKind::OutOfMemory,
        Cause::None,
        "A program other than PyTorch",
    ),
    (
        "NVRM: Xid (PCI:0000:0b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
        TextKind::DriverLog,
        Cause::None,
        "the end of the line names it",
    ),
    (
        "NVRM: Xid (PCI:0000:cb:00): 109, pid=7, Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x58005",
        TextKind::DriverLog,
        Cause::None,
        "context switch timeout",
    ),
    // What else a log has.
    (
        "[2026-01-01] [INFO] [utils.py:1:see_memory_usage] MA 10.0 GB         Max_MA 12.0 GB         CA 15.0 GB         \
         Max_CA 16 GB",
        TextKind::TrainingLog,
        Cause::None,
        "10.0 GiB was allocated of 15.0 GiB reserved",
    ),
    (
        "[ 1.0] NVRM: Xid (PCI:0000:07:00): 48, pid=7, DBE",
        TextKind::DriverLog,
        Cause::None,
        "an error that can't be corrected",
    ),
    // memory_stats() of Python 3.11 and 3.12, as JSON, and nested.
    (
        "OrderedDict([('active_bytes.all.current', 3145728), ('allocated_bytes.all.current', 2097152), \
         ('inactive_split_bytes.all.current', 1048576), ('num_alloc_retries', 2), ('num_ooms', 0), \
         ('reserved_bytes.all.current', 20971520)])",
        TextKind::MemoryStats,
        Cause::None,
        "2.00 MiB was allocated of 20.0 MiB reserved, and 17.0 MiB was cached (1.00 MiB of it in segments in use",
    ),
    (
        "OrderedDict({'active_bytes.all.current': 1024, 'allocated_bytes.all.current': 1024, 'num_ooms': 3, \
         'reserved_bytes.all.current': 2097152})",
        TextKind::MemoryStats,
        Cause::None,
        "; 3 requests failed.",
    ),
    (
        r#"{"active_bytes": {"all": {"current": 1024, "peak": 4096}}, "allocated_bytes": {"all": {"current": 1024}},
            "reserved_bytes": {"all": {"current": 2097152, "peak": 2097152}}}"#,
        TextKind::MemoryStats,
        Cause::None,
        "1.00 KiB was allocated of 2.00 MiB reserved",
    ),
    (
        "|===========================================================================|
         |                  PyTorch CUDA memory summary, device ID 0                 |
         |---------------------------------------------------------------------------|
         |            CUDA OOMs: 1            |        cudaMalloc retries: 1         |
         |===========================================================================|
         |        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
         |---------------------------------------------------------------------------|
         | Allocated memory      |    1062 MB |    4877 MB |   89299 MB |   88237 MB |
         |       from large pool |    1048 MB |    4865 MB |   89263 MB |   88215 MB |
         | Active memory         |    1062 MB |    4877 MB |   89299 MB |   88237 MB |
         | GPU reserved memory   |   12420 MB |   12420 MB |   16924 MB |    4504 MB |
         | Non-releasable memory |     700 MB |    1200 MB |   16924 MB |    4504 MB |",
        TextKind::MemorySummary,
        Cause::None,
        "1.04 GiB was allocated of 12.1 GiB reserved, and 11.1 GiB was cached (700 MiB of it in segments in use",
    ),
];

#[test]
fn texts_of_all_releases_are_explained() {
    for (text, kind, cause, want) in CASES {
        let found = explain(text).pop().unwrap_or_else(|| panic!("not understood: {text}"));
        assert_eq!((found.kind, found.cause), (*kind, *cause), "{}", found.sentence);
        assert!(found.sentence.contains(want), "{want} is not in: {}", found.sentence);
        assert!(found.remedies.iter().all(|remedy| !remedy.checked) && found.remedies.len() <= 3);
        // The text doesn't name the settings of the run.
        let settings = found.remedies.iter().filter(|remedy| remedy.setting().is_some());
        assert!(settings.into_iter().all(|remedy| remedy.copy.contains("backend:native")
            || found.cause == Cause::None
            || remedy.text.ends_with("add it to them after a comma.")));
        let shown = text_of(std::slice::from_ref(&found));
        assert_eq!(shown.ends_with(&format!("next: {}\n", found.next)), !found.next.is_empty(), "{shown}");
    }
}

#[test]
fn each_rank_of_a_log_has_its_own_answer() {
    let error = |rank: u32, own: &str, other: &str| {
        format!(
            "[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {rank} has a total capacity \
             of 80.00 GiB of which 1.00 GiB is free. {other}Including non-PyTorch memory, this process has {own} GiB memory in \
             use. Of the allocated memory {own} GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but \
             unallocated.\n"
        )
    };
    let text = error(0, "40.00", "Process 7 has 38.90 GiB memory in use. ") + &error(1, "78.40", "");
    let found = explain(&text);
    let told: Vec<_> = found.iter().map(|found| (found.device.as_deref(), found.rank, found.cause)).collect();
    assert_eq!(told, [(Some("GPU 0"), Some(0), Cause::OtherProcess), (Some("GPU 1"), Some(1), Cause::Full)]);
    assert!(text_of(&found).contains("On GPU 0, rank 0:\nAnother process"), "{}", text_of(&found));
}

#[test]
fn a_warning_of_nccl_tells_device_and_size() {
    let found = explain(
        "host:100:200 [3] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 6291456 bytes\ntorch.distributed.DistBackendError: \
         NCCL error in: ProcessGroupNCCL.cpp:1296, unhandled cuda error",
    );
    let facts: Vec<_> = found[0].facts.iter().map(|fact| (&*fact.name, fact.bytes)).collect();
    assert_eq!((found[0].device.as_deref(), facts), (Some("GPU 3"), vec![("asked for", 6 << 20)]));
}

#[test]
fn small_processes_of_one_size_look_like_contexts_of_other_ranks() {
    let text = "Tried to allocate 400.00 MiB. GPU 0 has a total capacity of 40.00 GiB of which 200.00 MiB is free. Process 1 has 480.00 \
                MiB memory in use. Including non-PyTorch memory, this process has 38.40 GiB memory in use. Process 2 has 480.00 MiB \
                memory in use. Process 3 has 480.00 MiB memory in use. Of the allocated memory 37.00 GiB is allocated by PyTorch, and \
                100.00 MiB is reserved by PyTorch but unallocated.";
    let found = explain(text);
    assert!(found[0].sentence.contains("3 other processes hold up to 480 MiB each"), "{}", found[0].sentence);
    assert_eq!(found[0].remedies[0].copy, "torch.cuda.set_device(local_rank)");
}

#[test]
fn advice_fits_backend_and_release() {
    let copies = |text: &str| -> Vec<String> {
        explain(text).into_iter().flat_map(|found| found.remedies).map(|remedy| remedy.copy).collect()
    };
    let cached = |backend: &str, unit: &str| {
        format!(
            "{backend} out of memory. Tried to allocate 5.00 GiB. {unit} 0 has a total capacity of 60.00 GiB of which 1.00 GiB is \
             free. Of the allocated memory 40.00 GiB is allocated by PyTorch, and 18.00 GiB is reserved by PyTorch but \
             unallocated."
        )
    };
    for (backend, variable) in
        [("CUDA", "PYTORCH_CUDA_ALLOC_CONF"), ("HIP", "PYTORCH_HIP_ALLOC_CONF"), ("NPU", "PYTORCH_NPU_ALLOC_CONF")]
    {
        let copies = copies(&cached(backend, "GPU"));
        assert!(copies[0].starts_with(variable) && copies[0].contains("expandable_segments:True"), "{copies:?}");
    }
    // Up to 2.0 there are no expandable segments.
    let old = "Tried to allocate 5.00 GiB (GPU 0; 60.00 GiB total capacity; 40.00 GiB already allocated; 1.00 GiB free; 58.00 GiB \
               reserved in total by PyTorch)";
    assert!(copies(old).iter().all(|copy| !copy.contains("expandable")), "{:?}", copies(old));
    // Settings that a release, or a backend, refuses to start with.
    assert!(copies(old).iter().all(String::is_empty), "{:?}", copies(old));
    assert!(copies(&["torch.cuda.OutOfMemoryError: CUDA out of memory. ", old].concat())[0].contains("roundup_power2"));
    let ascend = ["NPU out of memory. ", &old.replace("GPU", "NPU")].concat();
    assert_eq!(copies(&ascend), ["PYTORCH_NPU_ALLOC_CONF=expandable_segments:True", ""]);
    // Intel's limit of single allocations, and what is below it.
    let intel = |tried: &str| {
        let text = format!(
            "XPU out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of 16.00 GiB. Of the allocated \
                            memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated."
        );
        copies(&text).iter().any(|copy| copy.contains("RELAXED"))
    };
    assert!(intel("4.66 GiB") && !intel("1.71 GiB"));
    // A server takes the device by its own settings, and does not train.
    let full = cached("CUDA", "GPU").replace("18.00", "0.50").replace("40.00", "58.00");
    let server = copies(&["File \"/x/vllm/v1/worker.py\"\n", &full].concat());
    assert!(server[0].starts_with("--gpu-memory-utilization"), "{server:?}");
    assert!(
        server.iter().all(|copy| !copy.contains("checkpoint"))
            && copies(&full).iter().any(|copy| copy.contains("checkpoint"))
    );
    let monitored = cached("HIP", "GPU").replace("40.00", "4.00").replace("18.00", "1.00");
    assert_eq!(copies(&monitored)[0], "amd-smi process");
}

#[test]
fn a_failure_is_one() {
    let is_failure = |text: &str| explain(text).iter().any(|found| found.is_failure);
    for (text, kind, ..) in CASES.iter().filter(|case| case.1 == TextKind::OutOfMemory) {
        assert!(is_failure(text), "{kind:?}");
    }
    assert!(is_failure("{'reserved_bytes.all.current': 5, 'num_ooms': 1}"));
    assert!(!is_failure("{'reserved_bytes.all.current': 5, 'num_ooms': 0}"));
    for warning in [
        "[rank1]:[W812 16:00:28 CUDACachingAllocator.cpp:3933] memory allocation failed with OOM on device 1 while trying to allocate \
         20971520 bytes (free: 15794176, total: 150111977472).",
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.02GiB with freed_by_count=0. The caller indicates that this is not \
         a failure, but may mean that there could be performance gains if more memory were available.",
    ] {
        let found = explain(warning).pop().expect(warning);
        assert!(!found.is_failure && found.sentence.starts_with("A warning of") && !found.facts.is_empty(), "{found}");
    }
}

/// Sizes in other programs' errors are told, with or without a unit.
#[test]
fn what_other_programs_asked_for_is_told() {
    for (start, bytes) in [
        ("ggml_backend_cuda", 9_866_u64 << 20),
        ("ggml_vulkan", 118_497_280),
        ("onnxruntime", 2_830_172_160),
        ("Out of memory error on GPU", 102_760_704),
        ("failed to alloc ", 34_359_738_368),
    ] {
        let text = CASES.iter().map(|case| case.0).find(|text| text.starts_with(start)).expect(start);
        let facts = explain(text).pop().map(|found| found.facts).unwrap_or_default();
        assert_eq!(facts.first().map(|fact| (&*fact.name, fact.bytes)), Some(("asked for", bytes)), "{start}");
    }
    let vllm = CASES.iter().map(|case| case.0).find(|text| text.starts_with("Free memory")).expect("a case");
    assert_eq!(explain(vllm)[0].remedies[1].copy, "--gpu-memory-utilization 0.84");
}

/// Which process is its own is unknown without PyTorch's figures, and so is what others hold.
#[test]
fn a_text_that_ends_early_blames_nobody() {
    let text = CASES.iter().map(|case| case.0).find(|text| text.contains("Process 93487")).expect("a case");
    assert!(explain(text)[0].facts.iter().all(|fact| !fact.name.starts_with("held")));
}

/// What is neither free nor PyTorch's is other processes' only if the error says what this process holds.
#[test]
fn what_others_hold_is_told_as_far_as_it_is_known() {
    let names = |text: &str| -> Vec<std::borrow::Cow<'static, str>> {
        let facts = explain(text).pop().map(|found| found.facts).unwrap_or_default();
        facts.into_iter().map(|fact| fact.name).filter(|name| name.starts_with("held")).collect()
    };
    let old = |total: &str| {
        format!(
            "Tried to allocate 1.00 GiB (GPU 0; {total} total capacity; 60.00 GiB already allocated; 500.00 MiB free; 79.00 \
             GiB reserved in total by PyTorch)"
        )
    };
    let context = "held outside of PyTorch's allocator: this process's own context and other processes";
    assert_eq!(names(&old("80.23 GiB")), [context]);
    // 500 MiB are 0.488 GiB: the rest is less than the figures are exact to.
    assert_eq!(names(&old("79.50 GiB")), [""; 0]);
    let new = "Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.66 GiB is free. Including \
               non-PyTorch memory, this process has 20.00 GiB memory in use. Of the allocated memory 17.00 GiB is \
               allocated by PyTorch, and 2.00 GiB is reserved by PyTorch but unallocated.";
    let own = "held by this process outside of PyTorch's allocator";
    assert_eq!(names(new), ["held outside of this process", own]);
}

#[test]
fn every_error_of_a_log_is_explained_in_order() {
    let (first, second) = (CASES[0].0, CASES[5].0);
    let found = explain(&format!("epoch 1\n{first}\n{first}\nepoch 2\n{second}\nTraceback"));
    assert_eq!(found.iter().map(|found| found.cause).collect::<Vec<_>>(), [CASES[0].2, CASES[5].2]);
    assert!(text_of(&found).starts_with("2 errors:\n\nOn GPU 0:\n"), "{}", text_of(&found));
}

#[test]
fn other_texts_are_none() {
    for text in [
        "",
        "out of memory",
        "Tried to allocate",
        "Tried to allocate much.",
        "{}",
        "{'a': 1}",
        "| GPU reserved memory |",
        // A message that was too long, and another compiler's runtime.
        "status = StatusCode.RESOURCE_EXHAUSTED details = \"Received message larger than max (17777780 vs. 4194304)\"",
        "Error: 8 RESOURCE_EXHAUSTED: Received message larger than max (2065853043 vs 67108864)",
        "hip_allocator.c:859: RESOURCE_EXHAUSTED; HIP driver error 'hipErrorOutOfMemory' (2): out of memory",
    ] {
        assert_eq!(explain(text), [], "{text:?}");
    }
    assert_eq!(explain(&" ".repeat(PASTED_BYTES + 1)), []);
}

/// Texts that are cut, doubled, and changed at random never panic.
#[test]
fn damaged_texts_are_read_or_refused() {
    let mut seed = 7_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below.max(1)
    };
    let scraps = ["9999999999999999999999", "é", "\u{0}", " GiB", ".", "{", "'", "Process ", " has ", "|", "-1"];
    for (text, ..) in CASES {
        for _ in 0..500 {
            let mut chars: Vec<char> = text.chars().collect();
            for _ in 0..1 + random(4) {
                let at = random(chars.len());
                match random(3) {
                    0 => chars.truncate(at),
                    1 => drop(chars.splice(at..at, scraps[random(scraps.len())].chars())),
                    _ => {
                        let to = (at + random(20)).min(chars.len());
                        chars.drain(at..to);
                    }
                }
            }
            let found = explain(&chars.into_iter().collect::<String>());
            assert_eq!(found.is_empty(), text_of(&found).is_empty());
        }
    }
}
