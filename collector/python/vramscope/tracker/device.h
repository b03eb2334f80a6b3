// A device, and the ring in which its entries wait for their stacks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "entry.h"
#include "traceback.h"

namespace {

struct Item {
  int action = 0;
  uint64_t address = 0;
  uint64_t size = 0;
  int64_t stream = 0;
  uint64_t pool0 = 0;
  uint64_t pool1 = 0;
  int64_t time_us = 0;
  // Not 0: so many events of this action were lost here.
  uint32_t lost = 0;
  Context context;
};

enum State : int {
  kOff,       // nobody listens
  kAwait,     // the state is about to be taken: what comes before its SNAPSHOT entry is in it
  kRing,      // entries go into the ring
  kRest,      // what is in the ring is handed on by the next entry; its reader is gone
  kDirect,    // entries go straight to the library
};

struct Device {
  std::atomic<int> state{kOff};
  int64_t number = 0;
  std::vector<Item> ring;
  std::atomic<size_t> head{0};  // where the next item is written
  std::atomic<size_t> tail{0};  // where the next item is read
  std::atomic<size_t> contexts{0};
  std::atomic<uint64_t> stacks_dropped{0};
  std::atomic_flag is_written = ATOMIC_FLAG_INIT;
  // Of the writer, until nobody writes any more.
  std::atomic<uint32_t> lost[kActions] = {};
  bool is_losing = false;
  // Of the reader alone.
  std::deque<Item> pending;

  size_t used() const { return head.load(std::memory_order_acquire) - tail.load(std::memory_order_acquire); }

  bool has_room(size_t wanted) const { return ring.size() - used() >= wanted; }

  Item& put() { return ring[head.load(std::memory_order_relaxed) % ring.size()]; }

  void put_done() { head.fetch_add(1, std::memory_order_release); }

  bool take(Item& to) {
    size_t at = tail.load(std::memory_order_relaxed);
    if (at == head.load(std::memory_order_acquire)) return false;
    to = std::move(ring[at % ring.size()]);
    ring[at % ring.size()].context.reset();
    tail.store(at + 1, std::memory_order_release);
    return true;
  }
};

// Never shortened, and never given back: PyTorch may call at any time.
std::vector<std::unique_ptr<Device>> devices;

}  // namespace
