// The functions of Vramscope's library that the tracker calls.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

namespace {

struct Library {
  int (*event)(int64_t, int, uint64_t, uint64_t, int64_t, uint64_t, uint64_t, uint32_t, int64_t) = nullptr;
  int (*lost)(int64_t, int, uint32_t) = nullptr;
  int64_t (*now)() = nullptr;
  int64_t (*frame)(const char*, const char*, uint32_t) = nullptr;
  uint32_t (*stack)(const uint32_t*, size_t) = nullptr;
};

Library library;

template <class F>
bool find(void* from, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(from, name));
  return function != nullptr;
}

}  // namespace
