// The function that PyTorch calls for each entry, under the lock of the entry's device.
#pragma once

#include <atomic>

#include "device.h"
#include "entry.h"
#include "library.h"

namespace {

// The most stacks of one device that may wait to be resolved.
size_t contexts_max = 0;

// The stack that began the backward pass that is running, if there is just one; or else 0.
std::atomic<uint32_t> backward{0};

// Returns the number of the text that the job attached to an entry. A text is numbered when it changes.
inline uint32_t metadata_number(Device& device, const TraceEntry& entry) {
  const std::string* text = metadata_of(entry, 0);
  if (text == nullptr || text->empty()) return 0;
  if (*text != device.text) {
    device.text_number = library.text(text->data(), text->size());
    device.text = *text;
  }
  return device.text_number;
}

// Tells the library of the text that the job attaches to the next entry.
inline void set_metadata(Device& device, uint32_t number) {
  if (number == device.metadata) return;
  // If the library is busy, the entry itself is lost too, and the next one tries again.
  if (library.metadata(device.number, number) == 0) device.metadata = number;
}

// Passes an item to the library.
void pass_on(Device& device, const Item& item, uint32_t stack) {
  if (item.lost != 0) {
    library.lost(device.number, item.action, item.lost);
    return;
  }
  set_metadata(device, item.metadata);
  library.event(
      device.number, item.action, item.address, item.size, item.stream, item.pool0, item.pool1, stack, item.time_us);
}

void push_to_ring(Device& device, const TraceEntry& entry) {
  int action = action_of(entry);
  if (device.is_written.test_and_set(std::memory_order_acquire)) {
    // Another thread is writing for this device, which PyTorch's lock should prevent. This entry is lost.
    device.lost[action].fetch_add(1, std::memory_order_relaxed);
    return;
  }
  struct Done {
    Device& device;
    ~Done() { device.is_written.clear(std::memory_order_release); }
  } done{device};
  // After a loss an eighth of the ring must be free; with less, every other event would be a loss.
  bool has_room = device.has_room(device.is_losing ? device.ring.size() / 8 + kActions + 1 : 1);
  if (!has_room) {
    device.lost[action].fetch_add(1, std::memory_order_relaxed);
    device.is_losing = true;
    return;
  }
  if (device.is_losing) {
    for (int lost = 0; lost < kActions; ++lost) {
      uint32_t count = device.lost[lost].exchange(0, std::memory_order_relaxed);
      if (count == 0) continue;
      Item& loss = device.put();
      loss.action = lost;
      loss.lost = count;
      device.put_done();
    }
    device.is_losing = false;
  }
  auto pool = pool_of(entry, 0);
  Item& item = device.put();
  item.action = action;
  item.address = entry.addr_;
  item.size = entry.size_;
  item.stream = static_cast<int64_t>(reinterpret_cast<intptr_t>(entry.stream_));
  item.pool0 = pool.first;
  item.pool1 = pool.second;
  item.time_us = library.now();
  item.lost = 0;
  item.metadata = metadata_number(device, entry);
  item.made_by = entry.context_ ? current_operator() : Operator{};
  item.backward = entry.context_ && is_in_backward() ? backward.load(std::memory_order_relaxed) : 0;
  if (entry.context_) {
    if (device.contexts.load(std::memory_order_relaxed) < contexts_max) {
      item.context = entry.context_;
      device.contexts.fetch_add(1, std::memory_order_relaxed);
    } else {
      device.stacks_dropped.fetch_add(1, std::memory_order_relaxed);
    }
  }
  device.put_done();
}

// Passes on everything in the ring, without stacks.
void pass_rest_on(Device& device) {
  Item item;
  while (device.pop(item)) {
    if (item.context) device.contexts.fetch_sub(1, std::memory_order_relaxed);
    pass_on(device, item, item.backward);
  }
}

// Returns the number of the device whose lock is held.
size_t device_of(const TraceEntry& entry) {
  if (entry.action_ != TraceEntry::SNAPSHOT) return static_cast<size_t>(entry.device_);
  // A SNAPSHOT entry always names device 0. But one thread makes these entries for all devices, in order.
  thread_local size_t next = 0;
  size_t number = next;
  next = next + 1 < devices.size() ? next + 1 : 0;
  return number;
}

void on_entry(const TraceEntry& entry) {
  size_t number = device_of(entry);
  if (number >= devices.size()) return;
  Device& device = *devices[number];
  switch (device.state.load(std::memory_order_acquire)) {
    case kOff:
      return;
    case kAwait:
      // PyTorch makes this entry under the same lock under which it copied the state.
      if (entry.action_ == TraceEntry::SNAPSHOT) device.state.store(kRing, std::memory_order_release);
      return;
    case kRing:
      push_to_ring(device, entry);
      return;
    case kRest: {
      // The thread that changes the state becomes the ring's reader.
      int rest = kRest;
      if (!device.state.compare_exchange_strong(rest, kDirect, std::memory_order_acq_rel)) return;
      pass_rest_on(device);
      [[fallthrough]];
    }
    default: {
      auto pool = pool_of(entry, 0);
      set_metadata(device, metadata_number(device, entry));
      library.event(
          device.number,
          action_of(entry),
          entry.addr_,
          entry.size_,
          static_cast<int64_t>(reinterpret_cast<intptr_t>(entry.stream_)),
          pool.first,
          pool.second,
          0,
          0);
    }
  }
}

}  // namespace
