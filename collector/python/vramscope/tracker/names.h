// Resolves the frames of new stacks. Requires the GIL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "library.h"
#include "reader.h"

namespace {

// PyTorch's folder, and this package's file that wraps backward passes.
std::string torch_folder;
std::string backward_file;

// Resolves stacks with PyTorch's own symbolizer.
void resolve_batch(const std::vector<Context>& batch) {
  std::vector<torch::CapturedTraceback*> tracebacks;
  for (auto& context : batch) tracebacks.push_back(traceback_of(context));
  auto symbols = torch::symbolize(tracebacks);
  std::vector<int64_t> frames(symbols.all_frames.size(), -2);
  for (size_t i = 0; i < batch.size(); ++i) {
    std::vector<uint32_t> numbers;
    bool has_own = false;
    for (uint64_t index : symbols.tracebacks.at(i)) {
      auto& frame = symbols.all_frames.at(index);
      if (frame.filename == backward_file) continue;
      has_own |= frame.lineno != 0 && frame.filename.compare(0, torch_folder.size(), torch_folder) != 0;
      int64_t& number = frames.at(index);
      if (number == -2) {
        number = library.frame(frame.funcname.c_str(), frame.filename.c_str(), static_cast<uint32_t>(frame.lineno));
      }
      if (number >= 0) numbers.push_back(static_cast<uint32_t>(number));
    }
    stacks.emplace(batch[i], Resolved{library.stack(numbers.data(), numbers.size()), has_own});
    ++stacks_resolved;
  }
}

}  // namespace
