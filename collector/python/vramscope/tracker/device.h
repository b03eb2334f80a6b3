// A device, and the ring in which its entries wait for their stacks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
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
  // If not 0, this item stands for this many lost events of the action.
  uint32_t lost = 0;
  // The number of the text that the job attached to it.
  uint32_t metadata = 0;
  // The stack that began the backward pass that made it, for entries whose own thread has none.
  uint32_t backward = 0;
  // The operator that made it, or whose backward did.
  Operator made_by;
  Context context;
};

enum State : int {
  kOff,       // not recording
  kAwait,     // a snapshot follows: it contains everything before its SNAPSHOT entry
  kRing,      // entries go into the ring
  kRest,      // the ring has no reader any more: the next entry passes on what is left in it
  kDirect,    // entries go directly to the library
};

struct Device {
  std::atomic<int> state{kOff};
  int64_t number = 0;
  std::vector<Item> ring;
  std::atomic<size_t> head{0};  // the next item to write
  std::atomic<size_t> tail{0};  // the next item to read
  std::atomic<size_t> contexts{0};
  std::atomic<uint64_t> stacks_dropped{0};
  std::atomic_flag is_written = ATOMIC_FLAG_INIT;
  // Used by the writer only, until there is no writer any more.
  std::atomic<uint32_t> lost[kActions] = {};
  bool is_losing = false;
  // The latest text that the job attached to an entry, and its number.
  std::string text;
  uint32_t text_number = 0;
  // Used by the reader only.
  std::deque<Item> pending;
  // Used by whoever passes entries on: the number of the text that the library knows as the latest one.
  uint32_t metadata = 0;

  void forget_metadata() {
    text.clear();
    text_number = 0;
    metadata = 0;
  }

  size_t used() const { return head.load(std::memory_order_acquire) - tail.load(std::memory_order_acquire); }

  bool has_room(size_t wanted) const { return ring.size() - used() >= wanted; }

  Item& put() { return ring[head.load(std::memory_order_relaxed) % ring.size()]; }

  void put_done() { head.fetch_add(1, std::memory_order_release); }

  bool pop(Item& to) {
    size_t at = tail.load(std::memory_order_relaxed);
    if (at == head.load(std::memory_order_acquire)) return false;
    to = std::move(ring[at % ring.size()]);
    ring[at % ring.size()].context.reset();
    tail.store(at + 1, std::memory_order_release);
    return true;
  }
};

// Never shortened or freed, because PyTorch may call at any time.
std::vector<std::unique_ptr<Device>> devices;

}  // namespace
