// Which line of the forward pass an operator of the backward pass belongs to.
//
// Autograd's threads have no Python stack. But autograd numbers its nodes, so what a node allocates is known to belong to the operator
// that made the node, and to the stack that this one allocated its result with. Of that stack the frames outside PyTorch are kept,
// and put on the stack that began the backward pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device.h"
#include "library.h"

namespace {

// The most operators whose stacks are kept: the latest ones, those of a forward pass.
constexpr size_t kOperatorsKept = 1 << 17;
// The most stacks that are made of two, and the most that begin a backward pass, before they are forgotten.
constexpr size_t kJoinedKept = 1 << 14;

using Function = std::pair<std::string, std::string>;  // its name and its file

// A frame outside PyTorch, as it is called in a backward pass.
struct OwnFrame {
  const Function* function = nullptr;
  uint32_t line = 0;
};
// From the innermost one on.
using OwnFrames = std::shared_ptr<const std::vector<OwnFrame>>;

// The stack that began a backward pass.
struct Call {
  std::vector<uint32_t> frames;
  std::vector<const Function*> functions;
};

class Forward {
 public:
  // Returns a function's name and file at an address that stays. Called by the one who resolves stacks, or tells of a call.
  const Function* function(const std::string& name, const std::string& file) {
    std::lock_guard<std::mutex> lock(mutex_);
    return &functions_.emplace(Function(name, file), 0).first->first;
  }

  void add_call(uint32_t stack, Call call) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (calls_.size() >= kJoinedKept) calls_.clear();
    calls_[stack] = std::move(call);
  }

  // Keeps the frames with which an operator of the forward pass made its result. What is made after it and before the next one
  // belongs to operators that autograd doesn't follow.
  void add(const Operator& made_by, uint32_t stack, const OwnFrames& frames) {
    if (made_by.count == 0) return;
    if (made_.empty()) made_.resize(kOperatorsKept);
    Made& made = made_[made_by.count % kOperatorsKept];
    if (made.by.count == made_by.count && made.by.thread == made_by.thread) return;
    made = {made_by, stack, frames};
  }

  // Returns the number of the stack of what the backward of an operator makes: that of the call, if the operator is not known.
  uint32_t stack(const Operator& made_by, uint32_t call) {
    if (made_by.count == 0 || made_.empty()) return call;
    const Made& made = made_[made_by.count % kOperatorsKept];
    if (made.by.count != made_by.count || made.by.thread != made_by.thread) return call;
    auto key = static_cast<uint64_t>(call) << 32 | made.stack;
    auto known = joined_.find(key);
    if (known != joined_.end()) return known->second;
    if (joined_.size() >= kJoinedKept) joined_.clear();
    return joined_[key] = join(*made.frames, call);
  }

  void forget() {
    std::lock_guard<std::mutex> lock(mutex_);
    made_.clear();
    joined_.clear();
    calls_.clear();
    // Functions stay: who resolves stacks may hold their addresses.
  }

 private:
  struct Made {
    Operator by;
    uint32_t stack = 0;
    OwnFrames frames;
  };

  uint32_t join(const std::vector<OwnFrame>& own, uint32_t call) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto began = calls_.find(call);
    if (call != 0 && began == calls_.end()) return call;
    // The functions that called both the forward pass and the backward pass are in the call's stack. But the innermost frame
    // stays: its line is what is asked for.
    size_t kept = own.size();
    if (call != 0) {
      auto& functions = began->second.functions;
      for (size_t at = functions.size(); kept > 1 && at > 0 && functions[at - 1] == own[kept - 1].function; --at) --kept;
    }
    std::vector<uint32_t> numbers;
    for (size_t i = 0; i < kept; ++i) {
      auto name = own[i].function->first + " [backward]";
      int64_t number = library.frame(name.c_str(), own[i].function->second.c_str(), own[i].line);
      if (number >= 0) numbers.push_back(static_cast<uint32_t>(number));
    }
    if (call != 0) numbers.insert(numbers.end(), began->second.frames.begin(), began->second.frames.end());
    return library.stack(numbers.data(), numbers.size());
  }

  // Guards what those with the GIL use too. It is held for moments, and never by one who waits for the GIL.
  std::mutex mutex_;
  std::map<Function, int> functions_;
  std::unordered_map<uint32_t, Call> calls_;
  // Used by the one who reads the rings.
  std::vector<Made> made_;
  std::unordered_map<uint64_t, uint32_t> joined_;
};

Forward forward;

}  // namespace
