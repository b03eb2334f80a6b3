// Who hands on what is in the rings, once each stack has a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "listener.h"

namespace {

// Stacks that are kept with their numbers. At some hundred bytes each, a few tens of MB.
constexpr size_t kStacksKept = 1 << 15;
// Stacks that are looked at in one go: between two, other Python threads get their turn.
constexpr size_t kBatch = 32;

// Held by who reads rings. Whoever has the GIL doesn't wait for it: what Python does meanwhile may let go of the GIL,
// and two would wait for each other.
std::mutex reader;
std::unordered_map<Context, uint32_t, Hash, Same> stacks;
std::unordered_map<Context, bool, Hash, Same> unknown;
uint64_t stacks_resolved = 0;

// Hands on what can be, and notes the stacks that are not known. How many items were handed on.
size_t drain_device(Device& device) {
  size_t handed = 0;
  Item item;
  while (device.pending.size() < device.ring.size() / 4 && device.take(item)) {
    device.pending.push_back(std::move(item));
  }
  bool is_blocked = false;
  for (auto& next : device.pending) {
    uint32_t stack = 0;
    if (next.context) {
      auto known = stacks.find(next.context);
      if (known == stacks.end()) {
        is_blocked = true;
        unknown.emplace(next.context, true);
        if (unknown.size() >= 4 * kBatch) break;
        continue;
      }
      stack = known->second;
    }
    if (is_blocked) continue;
    hand_on(device, next, stack);
    if (next.context) {
      device.contexts.fetch_sub(1, std::memory_order_relaxed);
      next.context.reset();
    }
    ++handed;
  }
  device.pending.erase(device.pending.begin(), device.pending.begin() + static_cast<std::ptrdiff_t>(handed));
  return handed;
}

}  // namespace
