// Reads the allocator's segments, and the annotations that PyTorch keeps, without resolving any stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "entry.h"
#include "library.h"

namespace {

using Pool = std::pair<uint64_t, uint64_t>;

// All segments.
constexpr Pool kEverywhere(0, 0);
// The segments of a pool that does not exist: none. One half of a pool's ID is always 0.
constexpr Pool kNowhere(1, 1);

// Takes a snapshot, and leaves out what is not asked for where the release can: segments from 2.8 on, traces and annotations
// from 2.9 on.
template <class Allocator>
auto snapshot_of(Allocator* allocator, Pool pool, bool has_traces, int, int)
    -> decltype(allocator->snapshot(pool, has_traces)) {
  return allocator->snapshot(pool, has_traces);
}
template <class Allocator>
auto snapshot_of(Allocator* allocator, Pool pool, bool, int, long) -> decltype(allocator->snapshot(pool)) {
  return allocator->snapshot(pool);
}
template <class Allocator>
auto snapshot_of(Allocator* allocator, Pool, bool, long, long) -> decltype(allocator->snapshot()) {
  return allocator->snapshot();
}

// The segments of one device as the library's columns.
struct Columns {
  std::vector<uint64_t> address, size, pool0, pool1;
  std::vector<int64_t> stream;
  std::vector<uint8_t> flags;
  std::vector<uint32_t> blocks_each;
  std::vector<uint64_t> block_address, block_size, block_requested;
  std::vector<uint8_t> block_state;

  template <class Segment>
  void add(const Segment& segment) {
    auto start = static_cast<uint64_t>(segment.address);
    address.push_back(start);
    size.push_back(segment.total_size);
    stream.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(segment.stream)));
    flags.push_back((segment.is_large ? 0 : 1) + (segment.is_expandable ? 2 : 0));
    pool0.push_back(segment.owner_private_pool_id.first);
    pool1.push_back(segment.owner_private_pool_id.second);
    blocks_each.push_back(static_cast<uint32_t>(segment.blocks.size()));
    for (auto& block : segment.blocks) {
      block_address.push_back(start);
      block_size.push_back(block.size);
      block_requested.push_back(block.requested_size);
      block_state.push_back(block.allocated ? 0 : block.active ? 1 : 2);
      start += block.size;
    }
  }

  // The stacks stay empty: the events that created the segments and blocks have them.
  int pass_on(int when, int64_t device) const {
    SegmentColumns to;
    to.segments = address.size();
    to.address = address.data();
    to.size = size.data();
    to.stream = stream.data();
    to.flags = flags.data();
    to.pool0 = pool0.data();
    to.pool1 = pool1.data();
    to.blocks_each = blocks_each.data();
    to.blocks = block_address.size();
    to.block_address = block_address.data();
    to.block_size = block_size.data();
    to.block_requested = block_requested.data();
    to.block_state = block_state.data();
    return library.segments(when, device, &to);
  }
};

// An annotation: one end of a span, or an instant.
struct Note {
  int64_t device = 0;
  std::string name;
  int stage = 2;
  int64_t time_us = 0;
};

// Returns an entry of PyTorch's list of annotations.
template <class Entry>
Note note_of(const Entry& entry) {
  Note note;
  note.device = entry.device_;
  note.time_us = static_cast<int64_t>(entry.time_.t_);
  auto name = entry.metadata_.find("name"), stage = entry.metadata_.find("stage");
  if (name != entry.metadata_.end()) note.name = name->second;
  if (stage != entry.metadata_.end()) note.stage = stage->second == "START" ? 0 : stage->second == "END" ? 1 : 2;
  return note;
}

// The latest annotation that was read, and how many have its time. PyTorch's list grows for as long as it records history,
// or until its oldest ones are overwritten.
int64_t annotated_us = 0;
size_t annotated = 0;
// The starts of spans that were open when the recording began, to be passed on with the next annotations.
std::vector<Note> open_spans;

// Returns the annotations that are newer than those of the last call. Releases before 2.5 have none.
template <class Snapshot>
std::vector<Note> new_notes(const Snapshot&, long) {
  return {};
}
template <class Snapshot>
auto new_notes(const Snapshot& snapshot, int) -> decltype(snapshot.external_annotations.size(), std::vector<Note>()) {
  std::vector<Note> found;
  size_t skip = annotated;
  for (auto& entry : snapshot.external_annotations) {
    Note note = note_of(entry);
    if (note.time_us < annotated_us) continue;
    if (note.time_us == annotated_us && skip > 0) {
      --skip;
      continue;
    }
    found.push_back(std::move(note));
  }
  for (auto& note : found) {
    if (note.time_us != annotated_us) annotated = 0;
    annotated_us = note.time_us;
    ++annotated;
  }
  return found;
}

// Passes on the new annotations.
template <class Snapshot>
void annotate(const Snapshot& snapshot, int64_t devices) {
  auto pass_on = [devices](const std::vector<Note>& notes) {
    for (auto& note : notes) {
      bool is_known = note.device >= 0 && note.device < devices;
      if (is_known) library.mark(note.device, note.name.c_str(), note.stage, note.time_us);
    }
  };
  pass_on(open_spans);
  open_spans.clear();
  pass_on(new_notes(snapshot, 0));
}

// Leaves out the annotations before a recording, except the starts of spans that are still open.
template <class Snapshot>
void skip_annotations(const Snapshot& snapshot) {
  annotated_us = 0;
  annotated = 0;
  open_spans.clear();
  for (auto& note : new_notes(snapshot, 0)) {
    if (note.stage == 0) open_spans.push_back(note);
    if (note.stage != 1) continue;
    for (size_t i = open_spans.size(); i-- > 0;) {
      if (open_spans[i].name != note.name || open_spans[i].device != note.device) continue;
      open_spans.erase(open_spans.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  }
}

}  // namespace
