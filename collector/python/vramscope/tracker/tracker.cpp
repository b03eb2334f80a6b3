// Passes each entry of PyTorch's allocator to Vramscope's library. Compiled once for each torch.
//
// PyTorch calls `on_entry` under the lock of the entry's device, with or without the GIL. Therefore it takes no lock,
// never waits, and calls no functions of PyTorch but those that read variables of the thread: it copies numbers and, if stacks are
// kept, a pointer.
//
// Without stacks, an entry goes directly into the library's queue. With stacks, it goes into a ring, and a thread of the
// agent (`vs_drain`, without the GIL) passes it on, in order, once its stack has a number. Only a new stack must be
// resolved with the GIL (`vs_resolve`). It is cached together with the code objects that it references, so its addresses
// remain a valid key.

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device.h"
#include "forward.h"
#include "library.h"
#include "listener.h"
#include "names.h"
#include "reader.h"
#include "state.h"

namespace {

char error[512] = "";

int failed(const std::string& reason) {
  std::snprintf(error, sizeof(error), "%s", reason.c_str());
  return -1;
}

bool is_attached = false;
// The recording ends: nobody waits for further entries.
std::atomic<bool> is_stopping{false};

}  // namespace

extern "C" {

const char* vs_error() { return error; }

// Prepares a recording of `count` devices: entries are kept from each device's next SNAPSHOT entry on. `ring` is the most
// entries, and `contexts` the most stacks, of one device that wait.
int vs_prepare(const char* path, int64_t count, size_t ring, size_t contexts) {
  void* from = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (from == nullptr) return failed(dlerror());
  if (!find(from, "vramscope_event", library.event) || !find(from, "vramscope_lost", library.lost) ||
      !find(from, "vramscope_now", library.now) || !find(from, "vramscope_frame", library.frame) ||
      !find(from, "vramscope_stack", library.stack) || !find(from, "vramscope_text", library.text) ||
      !find(from, "vramscope_metadata", library.metadata) || !find(from, "vramscope_mark", library.mark) ||
      !find(from, "vramscope_segments", library.segments)) {
    return failed(std::string(path) + " belongs to another version of Vramscope");
  }
  std::lock_guard<std::mutex> lock(reader);
  stacks.clear();
  unknown.clear();
  forward.forget();
  backward = 0;
  stacks_resolved = 0;
  contexts_max = contexts;
  is_stopping.store(false, std::memory_order_release);
  if (!is_attached) {
    // Created before attaching: the list must not change while PyTorch calls.
    for (int64_t number = 0; number < count; ++number) {
      auto device = std::make_unique<Device>();
      device->number = number;
      device->ring.resize(ring);
      devices.push_back(std::move(device));
    }
  }
  for (auto& device : devices) {
    Item item;
    while (device->pop(item)) {
    }
    device->pending.clear();
    device->contexts = 0;
    device->stacks_dropped = 0;
    for (auto& lost : device->lost) lost = 0;
    device->is_losing = false;
    device->forget_metadata();
    device->state.store(kAwait, std::memory_order_release);
  }
  if (!is_attached) {
    try {
      c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(on_entry);
      is_attached = true;
    } catch (const std::exception& reason) {
      devices.clear();
      return failed(reason.what());
    }
  }
  return 0;
}

// Passes the segments of all devices to the library: as the state at the start of the next recording (0), or at its end
// (2). At the start it makes the SNAPSHOT entries that vs_prepare waits for. Called without the GIL.
int vs_state(int when) {
  try {
    auto snapshot = snapshot_of(c10::cuda::CUDACachingAllocator::get(), kEverywhere, false, 0, 0);
    std::vector<Columns> columns(devices.size());
    for (auto& segment : snapshot.segments) {
      auto number = static_cast<size_t>(segment.device);
      if (number < columns.size()) columns[number].add(segment);
    }
    for (size_t number = 0; number < columns.size(); ++number) {
      if (columns[number].pass_on(when, static_cast<int64_t>(number)) != 0) return failed("the segments were refused");
    }
    return 0;
  } catch (const std::exception& reason) {
    return failed(reason.what());
  }
}

// Passes on the annotations since the last call; before a recording (0), only remembers them. Makes SNAPSHOT entries. Called
// without the GIL.
int vs_annotations(int is_recording) {
  try {
    auto snapshot = snapshot_of(c10::cuda::CUDACachingAllocator::get(), kNowhere, true, 0, 0);
    if (is_recording) {
      annotate(snapshot, static_cast<int64_t>(devices.size()));
    } else {
      skip_annotations(snapshot);
    }
    return 0;
  } catch (const std::exception& reason) {
    return failed(reason.what());
  }
}

// Returns the number of devices whose SNAPSHOT entry was seen.
int64_t vs_ready() {
  int64_t ready = 0;
  for (auto& device : devices) ready += device->state.load(std::memory_order_acquire) != kAwait;
  return ready;
}

// Makes entries go directly to the library, after those in the rings.
void vs_direct() {
  std::lock_guard<std::mutex> lock(reader);
  for (auto& device : devices) {
    pass_rest_on(*device);
    // Entries that arrive meanwhile are passed on by the device's next entry, or at the end.
    int ring = kRing;
    device->state.compare_exchange_strong(ring, kRest, std::memory_order_acq_rel);
  }
}

// Stops keeping entries.
void vs_stop() {
  is_stopping.store(true, std::memory_order_release);
  for (auto& device : devices) {
    int state = device->state.exchange(kOff, std::memory_order_acq_rel);
    std::lock_guard<std::mutex> lock(reader);
    if (state == kRest) pass_rest_on(*device);
  }
}

// Passes on what is in the rings, until a stack must be resolved or `wait_us` have passed. Returns the number of stacks
// to resolve. Called without the GIL.
int64_t vs_drain(int64_t wait_us) {
  auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(wait_us);
  while (true) {
    {
      std::lock_guard<std::mutex> lock(reader);
      size_t passed = 0;
      for (auto& device : devices) passed += drain_device(*device);
      if (!unknown.empty()) return static_cast<int64_t>(unknown.size());
      if (passed > 0 && (wait_us == 0 || std::chrono::steady_clock::now() < until)) continue;
    }
    if (is_stopping.load(std::memory_order_acquire) || std::chrono::steady_clock::now() >= until) return 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Resolves some of the waiting stacks. Returns how many are left, or -1 if another thread is reading the rings: it may be
// waiting for the GIL, so this function must not wait for it. Called with the GIL.
int64_t vs_resolve() {
  std::unique_lock<std::mutex> lock(reader, std::try_to_lock);
  if (!lock) return -1;
  if (stacks.size() >= kStacksKept) stacks.clear();
  std::vector<Context> batch;
  while (!unknown.empty() && batch.size() < kBatch) {
    Context context = unknown.begin()->first;
    unknown.erase(unknown.begin());
    if (traceback_of(context) == nullptr) {
      stacks.emplace(context, Resolved{});
    } else {
      batch.push_back(std::move(context));
    }
  }
  try {
    if (!batch.empty()) resolve_batch(batch);
  } catch (const std::exception& reason) {
    failed(reason.what());
    for (auto& context : batch) stacks.emplace(context, Resolved{});
  }
  return static_cast<int64_t>(unknown.size());
}

// Sets PyTorch's folder, and this package's, whose frames belong in no stack.
void vs_folders(const char* torch, const char* own) {
  torch_folder = torch;
  own_folder = own;
}

// Tells of a stack that begins backward passes: its number, and its frames from the innermost one on.
void vs_call(uint32_t stack, const uint32_t* frames, const char* const* names, const char* const* files, size_t count) {
  Call call{{frames, frames + count}, {}};
  for (size_t i = 0; i < count; ++i) call.functions.push_back(forward.function(names[i], files[i]));
  forward.add_call(stack, std::move(call));
}

// Sets the stack that began the backward pass that is running; 0 for none.
void vs_backward(uint32_t stack) { backward.store(stack, std::memory_order_relaxed); }

// Drops the stacks that waiting entries wait for, so that the entries can be passed on.
void vs_skip() {
  std::lock_guard<std::mutex> lock(reader);
  for (auto& device : devices) {
    for (auto& item : device->pending) {
      if (!item.context || stacks.find(item.context) != stacks.end()) continue;
      item.context.reset();
      device->contexts.fetch_sub(1, std::memory_order_relaxed);
      device->stacks_dropped.fetch_add(1, std::memory_order_relaxed);
    }
  }
  unknown.clear();
}

// Returns how full the fullest ring is, in thousandths.
int64_t vs_backlog() {
  int64_t most = 0;
  for (auto& device : devices) {
    if (device->ring.empty()) continue;
    auto share = static_cast<int64_t>(device->used() * 1000 / device->ring.size());
    most = share > most ? share : most;
  }
  return most;
}

uint64_t vs_stacks_dropped() {
  uint64_t sum = 0;
  for (auto& device : devices) sum += device->stacks_dropped.load(std::memory_order_relaxed);
  return sum;
}

// Returns the size of the largest free block in a device's cache; -1 if the allocator doesn't tell. Called without the GIL.
int64_t vs_largest(int64_t device) {
  try {
    // From 0, PyTorch would begin with the free memory of the device.
    size_t largest = 1;
    c10::cuda::CUDACachingAllocator::cacheInfo(static_cast<c10::DeviceIndex>(device), &largest);
    return largest > 1 ? static_cast<int64_t>(largest) : 0;
  } catch (const std::exception& reason) {
    return failed(reason.what());
  }
}

// Reports the last losses and frees the cached stacks. Returns -1 like vs_resolve. Called with the GIL, after vs_stop and
// the last vs_drain.
int64_t vs_forget() {
  std::unique_lock<std::mutex> lock(reader, std::try_to_lock);
  if (!lock) return -1;
  for (auto& device : devices) {
    for (int lost = 0; lost < kActions; ++lost) {
      uint32_t count = device->lost[lost].exchange(0, std::memory_order_relaxed);
      if (count != 0) library.lost(device->number, lost, count);
    }
  }
  stacks.clear();
  unknown.clear();
  forward.forget();
  return 0;
}

}  // extern "C"
