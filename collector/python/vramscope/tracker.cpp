// What PyTorch's allocator does, entry by entry, handed to Vramscope's library. Compiled once for each torch.
//
// PyTorch calls `on_entry` under the lock of the entry's device, perhaps with the GIL, perhaps without. So it takes no
// lock, never waits, and calls nothing of PyTorch: it copies numbers, and where stacks are kept a pointer.
//
// Without stacks an entry goes straight into the library's queue. With stacks it goes into a ring of ours, and a thread
// of the agent's (`vs_drain`, without the GIL) hands it on, in order, once its stack has a number. Only a stack that was
// not seen before has to be looked at with the GIL (`vs_resolve`); it is kept, and so are the code objects that it
// points to, which makes the addresses in it a key.

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/csrc/profiler/combined_traceback.h>

// Of Python's stable interface, so that its headers are not needed. Called with the GIL only.
extern "C" {
int PyCode_Addr2Line(void* code, int offset);
void* PyObject_GetAttrString(void* of, const char* name);
const char* PyUnicode_AsUTF8(void* text);
void Py_DecRef(void* object);
void PyErr_Clear();
}

namespace {

using c10::cuda::CUDACachingAllocator::TraceEntry;
using Context = std::shared_ptr<c10::GatheredContext>;

// ---- Vramscope's library ------------------------------------------------------------------------------------------

struct Library {
  int (*event)(int64_t, int, uint64_t, uint64_t, int64_t, uint64_t, uint64_t, uint32_t, int64_t) = nullptr;
  int (*lost)(int64_t, int, uint32_t) = nullptr;
  int64_t (*now)() = nullptr;
  int64_t (*frame)(const char*, const char*, uint32_t) = nullptr;
  uint32_t (*stack)(const uint32_t*, size_t) = nullptr;
};

Library library;

template <class F>
bool find(void* from, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(from, name));
  return function != nullptr;
}

// ---- What differs between versions of PyTorch -----------------------------------------------------------------------

constexpr int kActions = 12;

// PyTorch's action, by the number that the library knows it by.
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
      // The tenth action: a user's annotation in 2.5, one made after the fact from 2.14 on.
#if VRAMSCOPE_TORCH < 206
      return static_cast<int>(entry.action_) == 9 ? 9 : 11;
#else
      return static_cast<int>(entry.action_) == 9 ? 10 : 11;
#endif
  }
}

// The pool, where entries have it (2.11 and later); the default one elsewhere.
template <class Entry>
auto pool_of(const Entry& entry, int) -> decltype(std::pair<uint64_t, uint64_t>(entry.mempool_)) {
  return entry.mempool_;
}
template <class Entry>
std::pair<uint64_t, uint64_t> pool_of(const Entry&, long) {
  return {0, 0};
}

// Members of a traceback that have no way in. Naming them in an explicit instantiation is allowed.
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

// ---- The ring -------------------------------------------------------------------------------------------------------

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
size_t contexts_max = 0;

void hand_on(const Device& device, const Item& item, uint32_t stack) {
  if (item.lost != 0) {
    library.lost(device.number, item.action, item.lost);
    return;
  }
  library.event(
      device.number, item.action, item.address, item.size, item.stream, item.pool0, item.pool1, stack, item.time_us);
}

void into_ring(Device& device, const TraceEntry& entry) {
  int action = action_of(entry);
  if (device.is_written.test_and_set(std::memory_order_acquire)) {
    // Another thread writes for this device, against the rules. Its entry stays, this one is lost.
    device.lost[action].fetch_add(1, std::memory_order_relaxed);
    return;
  }
  struct Done {
    Device& device;
    ~Done() { device.is_written.clear(std::memory_order_release); }
  } done{device};
  // Once something was lost, an eighth of the ring must be free again: else every other event would be a gap.
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
      Item& gap = device.put();
      gap.action = lost;
      gap.lost = count;
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

void hand_rest(Device& device) {
  Item item;
  while (device.take(item)) {
    if (item.context) device.contexts.fetch_sub(1, std::memory_order_relaxed);
    hand_on(device, item, 0);
  }
}

// The device whose lock is held.
size_t device_of(const TraceEntry& entry) {
  if (entry.action_ != TraceEntry::SNAPSHOT) return static_cast<size_t>(entry.device_);
  // A snapshot's entry names device 0 whatever device it is of. But one thread makes them, of all devices in order.
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
      // PyTorch makes this entry under the lock under which it copied the state.
      if (entry.action_ == TraceEntry::SNAPSHOT) device.state.store(kRing, std::memory_order_release);
      return;
    case kRing:
      into_ring(device, entry);
      return;
    case kRest: {
      // Who moves the state on is the ring's reader.
      int rest = kRest;
      if (!device.state.compare_exchange_strong(rest, kDirect, std::memory_order_acq_rel)) return;
      hand_rest(device);
      [[fallthrough]];
    }
    default: {
      auto pool = pool_of(entry, 0);
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

// ---- Stacks ---------------------------------------------------------------------------------------------------------

// Stacks that are kept with their numbers. At some hundred bytes each, a few tens of MB.
constexpr size_t kStacksKept = 1 << 15;
// Stacks that are looked at in one go: between two, other Python threads get their turn.
constexpr size_t kBatch = 32;

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

// Held by who reads rings. Whoever has the GIL doesn't wait for it: what Python does meanwhile may let go of the GIL,
// and two would wait for each other.
std::mutex reader;
std::unordered_map<Context, uint32_t, Hash, Same> stacks;
std::unordered_map<Context, bool, Hash, Same> unknown;
uint64_t stacks_resolved = 0;

// Hands on what can be, and notes the stacks that are not known. How many items were handed on.
size_t drain_device(Device& device) {
  size_t handed = 0;
  Item item;
  while (device.pending.size() < device.ring.size() / 4 && device.take(item)) {
    device.pending.push_back(std::move(item));
  }
  bool is_blocked = false;
  for (auto& next : device.pending) {
    uint32_t stack = 0;
    if (next.context) {
      auto known = stacks.find(next.context);
      if (known == stacks.end()) {
        is_blocked = true;
        unknown.emplace(next.context, true);
        if (unknown.size() >= 4 * kBatch) break;
        continue;
      }
      stack = known->second;
    }
    if (is_blocked) continue;
    hand_on(device, next, stack);
    if (next.context) {
      device.contexts.fetch_sub(1, std::memory_order_relaxed);
      next.context.reset();
    }
    ++handed;
  }
  device.pending.erase(device.pending.begin(), device.pending.begin() + static_cast<std::ptrdiff_t>(handed));
  return handed;
}

// A text of a code object.
std::string text_of(void* code, const char* name) {
  void* text = PyObject_GetAttrString(code, name);
  const char* utf8 = text == nullptr ? nullptr : PyUnicode_AsUTF8(text);
  std::string copy = utf8 == nullptr ? "" : utf8;
  if (utf8 == nullptr) PyErr_Clear();
  if (text != nullptr) Py_DecRef(text);
  return copy;
}

// Python's frames alone, as PyTorch names them.
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

char error[512] = "";

int failed(const std::string& reason) {
  std::snprintf(error, sizeof(error), "%s", reason.c_str());
  return -1;
}

bool is_attached = false;

}  // namespace

extern "C" {

const char* vs_error() { return error; }

// Gets ready for a recording of `count` devices: from each device's next SNAPSHOT entry on, entries are kept.
// `contexts`: the stacks of one device that may wait at once.
int vs_prepare(const char* path, int64_t count, size_t ring, size_t contexts) {
  void* from = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (from == nullptr) return failed(dlerror());
  if (!find(from, "vramscope_event", library.event) || !find(from, "vramscope_lost", library.lost) ||
      !find(from, "vramscope_now", library.now) || !find(from, "vramscope_frame", library.frame) ||
      !find(from, "vramscope_stack", library.stack)) {
    return failed(std::string(path) + " is another version's");
  }
  std::lock_guard<std::mutex> lock(reader);
  stacks.clear();
  unknown.clear();
  stacks_resolved = 0;
  contexts_max = contexts;
  if (!is_attached) {
    // All at once: the list never changes while PyTorch calls.
    for (int64_t number = 0; number < count; ++number) {
      auto device = std::make_unique<Device>();
      device->number = number;
      device->ring.resize(ring);
      devices.push_back(std::move(device));
    }
  }
  for (auto& device : devices) {
    Item item;
    while (device->take(item)) {
    }
    device->pending.clear();
    device->contexts = 0;
    device->stacks_dropped = 0;
    for (auto& lost : device->lost) lost = 0;
    device->is_losing = false;
    device->state.store(kAwait, std::memory_order_release);
  }
  if (!is_attached) {
    try {
      c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(on_entry);
      is_attached = true;
    } catch (const std::exception& reason) {
      devices.clear();
      return failed(reason.what());
    }
  }
  return 0;
}

// Devices whose state has been taken.
int64_t vs_ready() {
  int64_t ready = 0;
  for (auto& device : devices) ready += device->state.load(std::memory_order_acquire) != kAwait;
  return ready;
}

// From now on entries go straight to the library, after those that were kept.
void vs_direct() {
  std::lock_guard<std::mutex> lock(reader);
  for (auto& device : devices) {
    hand_rest(*device);
    // What came meanwhile is handed on by the device's next entry, or at the end: this thread is no reader any more.
    int ring = kRing;
    device->state.compare_exchange_strong(ring, kRest, std::memory_order_acq_rel);
  }
}

// Entries go nowhere from now on.
void vs_stop() {
  for (auto& device : devices) {
    int state = device->state.exchange(kOff, std::memory_order_acq_rel);
    std::lock_guard<std::mutex> lock(reader);
    if (state == kRest) hand_rest(*device);
  }
}

// Hands on what is in the rings, for as long as nothing needs the GIL and `wait_us` are not over. How many stacks wait
// to be looked at. Called without the GIL.
int64_t vs_drain(int64_t wait_us) {
  auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(wait_us);
  while (true) {
    {
      std::lock_guard<std::mutex> lock(reader);
      size_t handed = 0;
      for (auto& device : devices) handed += drain_device(*device);
      if (!unknown.empty()) return static_cast<int64_t>(unknown.size());
      if (handed > 0 && (wait_us == 0 || std::chrono::steady_clock::now() < until)) continue;
    }
    if (std::chrono::steady_clock::now() >= until) return 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Gives numbers to some of the stacks that wait. How many still do; -1 when another thread is at it: it may be waiting
// for the GIL, so it is not waited for. Called with the GIL.
// `is_ready`: PyTorch's own way is used, which knows C++, TorchScript and the lines behind compiled code, but imports
// modules of PyTorch's where they were not. To import them in a thread of ours could make an import of the job's fail.
int64_t vs_resolve(int is_ready) {
  std::unique_lock<std::mutex> lock(reader, std::try_to_lock);
  if (!lock) return -1;
  if (stacks.size() >= kStacksKept) stacks.clear();
  std::vector<Context> batch;
  size_t done = 0;
  while (!unknown.empty() && batch.size() < kBatch) {
    Context context = unknown.begin()->first;
    unknown.erase(unknown.begin());
    if (traceback_of(context) == nullptr) {
      stacks.emplace(context, 0);
    } else if (!is_ready) {
      resolve_python(context);
      if (++done == kBatch) break;
    } else {
      batch.push_back(std::move(context));
    }
  }
  try {
    if (!batch.empty()) resolve_batch(batch);
  } catch (const std::exception& reason) {
    failed(reason.what());
    for (auto& context : batch) stacks.emplace(context, 0);
  }
  return static_cast<int64_t>(unknown.size());
}

// Hands on what waits for stacks without them.
void vs_skip() {
  std::lock_guard<std::mutex> lock(reader);
  for (auto& device : devices) {
    for (auto& item : device->pending) {
      if (!item.context || stacks.find(item.context) != stacks.end()) continue;
      item.context.reset();
      device->contexts.fetch_sub(1, std::memory_order_relaxed);
      device->stacks_dropped.fetch_add(1, std::memory_order_relaxed);
    }
  }
  unknown.clear();
}

// How full the fullest ring is, in thousandths.
int64_t vs_backlog() {
  int64_t most = 0;
  for (auto& device : devices) {
    if (device->ring.empty()) continue;
    auto share = static_cast<int64_t>(device->used() * 1000 / device->ring.size());
    most = share > most ? share : most;
  }
  return most;
}

uint64_t vs_stacks_dropped() {
  uint64_t sum = 0;
  for (auto& device : devices) sum += device->stacks_dropped.load(std::memory_order_relaxed);
  return sum;
}

// Tells what was lost last, and gives back what was kept; -1 as above. Called with the GIL, after vs_stop and the last
// vs_drain.
int64_t vs_forget() {
  std::unique_lock<std::mutex> lock(reader, std::try_to_lock);
  if (!lock) return -1;
  for (auto& device : devices) {
    for (int lost = 0; lost < kActions; ++lost) {
      uint32_t count = device->lost[lost].exchange(0, std::memory_order_relaxed);
      if (count != 0) library.lost(device->number, lost, count);
    }
  }
  stacks.clear();
  unknown.clear();
  return 0;
}

}  // extern "C"
