// Resolves the frames of new stacks. Requires the GIL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "library.h"
#include "reader.h"

// Declared here because Python's headers may be missing; these functions are part of its stable interface.
extern "C" {
int PyCode_Addr2Line(void* code, int offset);
void* PyObject_GetAttrString(void* of, const char* name);
const char* PyUnicode_AsUTF8(void* text);
void Py_DecRef(void* object);
void PyErr_Clear();
}

namespace {

// Returns a string attribute of a code object, or an empty string.
std::string text_of(void* code, const char* name) {
  void* text = PyObject_GetAttrString(code, name);
  const char* utf8 = text == nullptr ? nullptr : PyUnicode_AsUTF8(text);
  std::string copy = utf8 == nullptr ? "" : utf8;
  if (utf8 == nullptr) PyErr_Clear();
  if (text != nullptr) Py_DecRef(text);
  return copy;
}

// Resolves Python frames only, with the names that PyTorch gives them.
void resolve_python(const Context& context) {
  std::vector<uint32_t> numbers;
  for (auto& frame : traceback_of(context)->*member(PythonFrames())) {
    int line = PyCode_Addr2Line(frame.code, frame.lasti);
    std::string name = text_of(frame.code, "co_name"), file = text_of(frame.code, "co_filename");
    int64_t number = library.frame(name.c_str(), file.c_str(), line < 0 ? 0 : static_cast<uint32_t>(line));
    if (number >= 0) numbers.push_back(static_cast<uint32_t>(number));
  }
  stacks.emplace(context, library.stack(numbers.data(), numbers.size()));
  ++stacks_resolved;
}

// Resolves stacks with PyTorch's own symbolizer.
void resolve_batch(const std::vector<Context>& batch) {
  std::vector<torch::CapturedTraceback*> tracebacks;
  for (auto& context : batch) tracebacks.push_back(traceback_of(context));
  auto symbols = torch::symbolize(tracebacks);
  std::vector<int64_t> frames(symbols.all_frames.size(), -2);
  for (size_t i = 0; i < batch.size(); ++i) {
    std::vector<uint32_t> numbers;
    for (uint64_t index : symbols.tracebacks.at(i)) {
      int64_t& number = frames.at(index);
      if (number == -2) {
        auto& frame = symbols.all_frames.at(index);
        number = library.frame(frame.funcname.c_str(), frame.filename.c_str(), static_cast<uint32_t>(frame.lineno));
      }
      if (number >= 0) numbers.push_back(static_cast<uint32_t>(number));
    }
    stacks.emplace(batch[i], library.stack(numbers.data(), numbers.size()));
    ++stacks_resolved;
  }
}

}  // namespace
