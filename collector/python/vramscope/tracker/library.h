// The functions of Vramscope's library that the tracker calls.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

namespace {

// The library's `vramscope_segment_columns`.
struct SegmentColumns {
  size_t segments = 0;
  const uint64_t* address = nullptr;
  const uint64_t* size = nullptr;
  const int64_t* stream = nullptr;
  const uint8_t* flags = nullptr;
  const uint64_t* pool0 = nullptr;
  const uint64_t* pool1 = nullptr;
  const uint32_t* stack = nullptr;
  const uint32_t* blocks_each = nullptr;
  size_t blocks = 0;
  const uint64_t* block_address = nullptr;
  const uint64_t* block_size = nullptr;
  const uint64_t* block_requested = nullptr;
  const uint8_t* block_state = nullptr;
  const uint32_t* block_stack = nullptr;
};

struct Library {
  int (*event)(int64_t, int, uint64_t, uint64_t, int64_t, uint64_t, uint64_t, uint32_t, int64_t) = nullptr;
  int (*lost)(int64_t, int, uint32_t) = nullptr;
  int64_t (*now)() = nullptr;
  int64_t (*frame)(const char*, const char*, uint32_t) = nullptr;
  uint32_t (*stack)(const uint32_t*, size_t) = nullptr;
  uint32_t (*text)(const char*, size_t) = nullptr;
  int (*metadata)(int64_t, uint32_t) = nullptr;
  int (*mark)(int64_t, const char*, int, int64_t) = nullptr;
  int (*segments)(int, int64_t, const SegmentColumns*) = nullptr;
};

Library library;

template <class F>
bool find(void* from, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(from, name));
  return function != nullptr;
}

}  // namespace
