// An entry of PyTorch's allocator, and the differences between versions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/csrc/autograd/function.h>

namespace torch::autograd {
// As torch/csrc/autograd/graph_task.h declares it, without the headers that it needs. It reads a variable of the thread.
int get_current_graph_task_id();
}  // namespace torch::autograd

namespace {

using c10::cuda::CUDACachingAllocator::TraceEntry;

constexpr int kActions = 12;

// Returns whether this thread runs a part of a backward pass.
inline bool is_in_backward() { return torch::autograd::get_current_graph_task_id() != -1; }

// An operator that autograd will differentiate, or differentiates: the thread that ran it, and how many of them that thread had
// begun when it did. Autograd numbers its nodes so, and begins a node before its operator allocates.
struct Operator {
  uint64_t thread = 0;
  // 0 for none.
  uint64_t count = 0;
  // Whether it is its backward that runs.
  bool is_backward = false;
};

// Returns the operator that this thread runs, or the one whose backward it runs.
inline Operator current_operator() {
  auto node = torch::autograd::get_current_node();
  // What sums up a parameter's gradient has the largest number, and belongs to no operator.
  if (node) return {node->thread_id(), node->sequence_nr() + 1, true};
  return {at::RecordFunction::currentThreadId(), at::sequence_number::peek(), false};
}

// Returns the library's code of an entry's action.
int action_of(const TraceEntry& entry) {
  switch (entry.action_) {
    case TraceEntry::ALLOC: return 0;
    case TraceEntry::FREE_REQUESTED: return 1;
    case TraceEntry::FREE_COMPLETED: return 2;
    case TraceEntry::SEGMENT_ALLOC: return 3;
    case TraceEntry::SEGMENT_FREE: return 4;
    case TraceEntry::SEGMENT_MAP: return 5;
    case TraceEntry::SEGMENT_UNMAP: return 6;
    case TraceEntry::OOM: return 7;
    case TraceEntry::SNAPSHOT: return 8;
    default:
      // The tenth action is USER_DEFINED in 2.5, and ANNOTATE from 2.14 on.
#if VRAMSCOPE_TORCH < 206
      return static_cast<int>(entry.action_) == 9 ? 9 : 11;
#else
      return static_cast<int>(entry.action_) == 9 ? 10 : 11;
#endif
  }
}

// Returns the pool, if entries have it (2.11 and later), or else the default pool.
template <class Entry>
auto pool_of(const Entry& entry, int) -> decltype(std::pair<uint64_t, uint64_t>(entry.mempool_)) {
  return entry.mempool_;
}
template <class Entry>
std::pair<uint64_t, uint64_t> pool_of(const Entry&, long) {
  return {0, 0};
}

// Returns the text that the job attaches to entries, if the release has it (2.10 and later), or else null.
template <class Entry>
auto metadata_of(const Entry& entry, int) -> decltype(&entry.user_metadata_) {
  return &entry.user_metadata_;
}
template <class Entry>
const std::string* metadata_of(const Entry&, long) {
  return nullptr;
}

}  // namespace
