// A stack as PyTorch gathered it, as a hash key.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <torch/csrc/profiler/combined_traceback.h>

namespace {

using Context = std::shared_ptr<c10::GatheredContext>;

// Access to private members of a traceback: C++ allows naming them in an explicit instantiation.
template <class Tag, typename Tag::type Member>
struct Expose {
  friend typename Tag::type member(Tag) { return Member; }
};
struct PythonFrames {
  using type = std::vector<torch::CapturedTraceback::PyFrame> torch::CapturedTraceback::*;
  friend type member(PythonFrames);
};
struct CppFrames {
  using type = std::vector<void*> torch::CapturedTraceback::*;
  friend type member(CppFrames);
};
struct ScriptFrames {
  using type = std::vector<torch::jit::StackEntry> torch::CapturedTraceback::*;
  friend type member(ScriptFrames);
};
template struct Expose<PythonFrames, &torch::CapturedTraceback::frames_>;
template struct Expose<CppFrames, &torch::CapturedTraceback::cpp_frames_>;
template struct Expose<ScriptFrames, &torch::CapturedTraceback::script_frames_>;

torch::CapturedTraceback* traceback_of(const Context& context) {
  return dynamic_cast<torch::CapturedTraceback*>(context.get());
}

struct Hash {
  size_t operator()(const Context& context) const {
    auto* of = traceback_of(context);
    if (of == nullptr || !(of->*member(ScriptFrames())).empty()) return reinterpret_cast<size_t>(context.get());
    size_t hash = 0xcbf29ce484222325;
    auto add = [&hash](size_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15, hash ^= hash >> 29; };
    for (auto& frame : of->*member(PythonFrames())) add(reinterpret_cast<size_t>(frame.code) + frame.lasti);
    for (auto* address : of->*member(CppFrames())) add(reinterpret_cast<size_t>(address));
    return hash;
  }
};

struct Same {
  bool operator()(const Context& a, const Context& b) const {
    if (a.get() == b.get()) return true;
    auto *x = traceback_of(a), *y = traceback_of(b);
    if (x == nullptr || y == nullptr) return false;
    if (!(x->*member(ScriptFrames())).empty() || !(y->*member(ScriptFrames())).empty()) return false;
    auto &f = x->*member(PythonFrames()), &g = y->*member(PythonFrames());
    if (f.size() != g.size() || x->*member(CppFrames()) != y->*member(CppFrames())) return false;
    for (size_t i = 0; i < f.size(); ++i) {
      if (f[i].code != g[i].code || f[i].lasti != g[i].lasti) return false;
    }
    return true;
  }
};

}  // namespace
