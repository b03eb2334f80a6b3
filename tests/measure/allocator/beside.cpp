// The loop that calls both allocators, and an adapter for PyTorch's. Built by beside.py.
#include <c10/cuda/CUDACachingAllocator.h>

#include <chrono>
#include <cstdint>
#include <vector>

struct Op {
  int64_t id, size, stream;  // size < 0: free
};

using Malloc = uint64_t (*)(uint64_t size, int64_t stream);
using Free = void (*)(uint64_t address);

namespace {
std::vector<void*> streams;
}

extern "C" void torch_streams(void** handles, int64_t count) { streams.assign(handles, handles + count); }

extern "C" uint64_t torch_malloc(uint64_t size, int64_t stream) {
  try {
    auto* made = c10::cuda::CUDACachingAllocator::get()->raw_alloc_with_stream(
        size, static_cast<cudaStream_t>(streams[stream]));
    return reinterpret_cast<uint64_t>(made);
  } catch (const c10::Error&) {
    return 0;
  }
}

extern "C" void torch_free(uint64_t address) {
  c10::cuda::CUDACachingAllocator::get()->raw_delete(reinterpret_cast<void*>(address));
}

// Returns the nanoseconds of all operations. What is left is freed after the measurement.
extern "C" uint64_t feed(const Op* ops, int64_t count, int64_t ids, Malloc malloc, Free free, uint64_t* failed) {
  std::vector<uint64_t> held(ids, 0);
  uint64_t refused = 0;
  const auto began = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i) {
    const Op& op = ops[i];
    if (op.size >= 0) {
      held[op.id] = malloc(op.size, op.stream);
      refused += held[op.id] == 0 && op.size > 0;
    } else if (held[op.id]) {
      free(held[op.id]);
      held[op.id] = 0;
    }
  }
  const auto ended = std::chrono::steady_clock::now();
  for (const uint64_t address : held) {
    if (address) free(address);
  }
  *failed = refused;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(ended - began).count();
}
