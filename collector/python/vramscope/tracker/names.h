// Resolves the frames of new stacks. Requires the GIL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "forward.h"
#include "library.h"
#include "reader.h"

namespace {

// PyTorch's folder, and this package's, whose frames belong in no stack.
std::string torch_folder;
std::string own_folder;

// Resolves stacks with PyTorch's own symbolizer.
void resolve_batch(const std::vector<Context>& batch) {
  std::vector<torch::CapturedTraceback*> tracebacks;
  for (auto& context : batch) tracebacks.push_back(traceback_of(context));
  auto symbols = torch::symbolize(tracebacks);
  std::vector<int64_t> frames(symbols.all_frames.size(), -2);
  for (size_t i = 0; i < batch.size(); ++i) {
    std::vector<uint32_t> numbers;
    std::vector<OwnFrame> own;
    for (uint64_t index : symbols.tracebacks.at(i)) {
      auto& frame = symbols.all_frames.at(index);
      if (frame.filename.compare(0, own_folder.size(), own_folder) == 0) continue;
      if (frame.lineno != 0 && frame.filename.compare(0, torch_folder.size(), torch_folder) != 0) {
        own.push_back({forward.function(frame.funcname, frame.filename), static_cast<uint32_t>(frame.lineno)});
      }
      int64_t& number = frames.at(index);
      if (number == -2) {
        number = library.frame(frame.funcname.c_str(), frame.filename.c_str(), static_cast<uint32_t>(frame.lineno));
      }
      if (number >= 0) numbers.push_back(static_cast<uint32_t>(number));
    }
    auto kept = own.empty() ? OwnFrames() : std::make_shared<const std::vector<OwnFrame>>(std::move(own));
    stacks.emplace(batch[i], Resolved{library.stack(numbers.data(), numbers.size()), std::move(kept)});
    ++stacks_resolved;
  }
}

}  // namespace
