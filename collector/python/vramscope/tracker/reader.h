// Reads the rings and passes items on once their stacks have numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "forward.h"
#include "listener.h"

namespace {

// The most stacks that are cached with their numbers. At some hundred bytes each, they take a few tens of MB.
constexpr size_t kStacksKept = 1 << 15;
// The most stacks that are resolved in one call: between two calls, other Python threads can run.
constexpr size_t kBatch = 32;

// Locked by the thread that reads the rings. A thread that holds the GIL must not wait for it: the lock's owner may wait
// for the GIL, which would be a deadlock.
std::mutex reader;
// A stack's number, and its frames that are neither of PyTorch nor of this package; null if there are none.
struct Resolved {
  uint32_t number = 0;
  OwnFrames own;
};
std::unordered_map<Context, Resolved, Hash, Same> stacks;
std::unordered_map<Context, bool, Hash, Same> unknown;
uint64_t stacks_resolved = 0;

// Passes on the items up to the first unknown stack, and collects unknown stacks. Returns how many items were passed on.
size_t drain_device(Device& device) {
  size_t passed = 0;
  Item item;
  while (device.pending.size() < device.ring.size() / 4 && device.pop(item)) {
    device.pending.push_back(std::move(item));
  }
  bool is_blocked = false;
  for (auto& next : device.pending) {
    uint32_t stack = 0;
    const Resolved* resolved = nullptr;
    if (next.context) {
      auto known = stacks.find(next.context);
      if (known == stacks.end()) {
        is_blocked = true;
        unknown.emplace(next.context, true);
        if (unknown.size() >= 4 * kBatch) break;
        continue;
      }
      resolved = &known->second;
    }
    if (is_blocked) continue;
    if (resolved != nullptr && resolved->own) {
      stack = resolved->number;
      if (next.action == 0 && !next.made_by.is_backward) forward.add(next.made_by, stack, resolved->own);
    } else {
      // A thread of autograd that recomputes a segment has a stack of PyTorch's frames alone.
      if (next.made_by.is_backward) stack = forward.stack(next.made_by, next.backward);
      if (stack == 0) stack = next.backward;
      if (stack == 0 && resolved != nullptr) stack = resolved->number;
    }
    pass_on(device, next, stack);
    if (next.context) {
      device.contexts.fetch_sub(1, std::memory_order_relaxed);
      next.context.reset();
    }
    ++passed;
  }
  device.pending.erase(device.pending.begin(), device.pending.begin() + static_cast<std::ptrdiff_t>(passed));
  return passed;
}

}  // namespace
