/* The functions by which a job hands what its allocator does to Vramscope's library, libvramscope_pluggable.so.
 *
 * One recording a process, of any number of devices, to a file, to a server, or to both. All functions may be called
 * from any thread; none unwinds, and none does anything in a child that was forked off a recording process.
 *
 * Events of one device come from one thread at a time, as under PyTorch's lock of the device. Where two meet, one event
 * is counted as lost: vramscope_event, vramscope_lost and vramscope_now never wait, allocate, or call the system for
 * more than the time. A queue that is full costs events, which are counted by action, and drawn as a gap.
 *
 * Bytes are bytes, times are microseconds since the epoch. Where nothing else is said, 0 is success, -1 is not, and
 * vramscope_error says why. Texts that are given out belong to the library and stay until the next call of that
 * function by the same thread. */
#ifndef VRAMSCOPE_H
#define VRAMSCOPE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* PyTorch's actions. For an out-of-memory the address is the device's free bytes. */
enum vramscope_action {
  VRAMSCOPE_ALLOC = 0,
  VRAMSCOPE_FREE_REQUESTED = 1,
  VRAMSCOPE_FREE_COMPLETED = 2,
  VRAMSCOPE_SEGMENT_ALLOC = 3,
  VRAMSCOPE_SEGMENT_FREE = 4,
  VRAMSCOPE_SEGMENT_MAP = 5,
  VRAMSCOPE_SEGMENT_UNMAP = 6,
  VRAMSCOPE_OOM = 7,
  VRAMSCOPE_SNAPSHOT = 8,
  VRAMSCOPE_USER_DEFINED = 9,
  VRAMSCOPE_ANNOTATE = 10,
  VRAMSCOPE_OTHER = 11
};

/* Begins the recording. The configuration is a JSON object: `out` (a file), `to` (a server's address), `token`, `name`,
 * `job`, `host`, `rank`, `mode` (how events are had, for people), `torch` (its release), `stacks` (whether events keep
 * them), `devices` (array of `number`, `name`, `capacity`), `settings` (`conf`, `max_split_size`,
 * `expandable_segments`, `garbage_collection_threshold`, `roundup_power2_divisions`, `as_written`), `queue_events`
 * (events of one device on their way), `flush_millis`. `devices` and one of `out` and `to` are needed. A server that is
 * away is no error. */
int vramscope_start(const char* config_json);

/* A server's address as it is spoken to, `http://127.0.0.1:7070` for `127.0.0.1:7070`; null where nothing can be sent
 * there. */
const char* vramscope_address(const char* to);

/* Why the latest call of this thread failed. */
const char* vramscope_error(void);

/* The session's name at the server; empty without one. */
const char* vramscope_session(void);

/* The recording's clock; 0 without a recording. */
int64_t vramscope_now(void);

/* One event; `time_us` 0 is now. `stack` is a number of vramscope_stack, or 0. */
int vramscope_event(int64_t device, int action, uint64_t address, uint64_t size, int64_t stream, uint64_t pool0,
                    uint64_t pool1, uint32_t stack, int64_t time_us);

/* So many events of this action were lost here, before they came to the library. */
int vramscope_lost(int64_t device, int action, uint32_t count);

/* Columns of as many values as there are events; a null column is all zeros. */
typedef struct {
  const uint8_t* action;
  const uint64_t* address;
  const uint64_t* size;
  const int64_t* stream;
  const uint64_t* pool0;
  const uint64_t* pool1;
  const uint32_t* stack;
  const int64_t* time_us;
} vramscope_event_columns;

/* Events in a row; how many were taken, or -1. */
int64_t vramscope_events(int64_t device, size_t count, const vramscope_event_columns* columns);

/* The number of a frame (line 0: not known), and of a stack of frames, innermost first. A frame without room has -1, a
 * stack 0, which is the empty one. Numbers stay the same for the whole recording. */
int64_t vramscope_frame(const char* name, const char* filename, uint32_t line);
uint32_t vramscope_stack(const uint32_t* frames, size_t count);

/* Segments and their blocks, those of all segments one after the other; a null column is all zeros. Flags: 1 small
 * pool, 2 expandable. States: 0 allocated, 1 waiting for streams, 2 free. */
typedef struct {
  size_t segments;
  const uint64_t* address;
  const uint64_t* size;
  const int64_t* stream;
  const uint8_t* flags;
  const uint64_t* pool0;
  const uint64_t* pool1;
  const uint32_t* stack;
  const uint32_t* blocks_each;
  size_t blocks;
  const uint64_t* block_address;
  const uint64_t* block_size;
  const uint64_t* block_requested;
  const uint8_t* block_state;
  const uint32_t* block_stack;
} vramscope_segment_columns;

/* What a device has reserved: before the recording that is about to start, after the latest event, at the end. */
enum vramscope_when { VRAMSCOPE_START = 0, VRAMSCOPE_NOW = 1, VRAMSCOPE_END = 2 };
int vramscope_segments(int when, int64_t device, const vramscope_segment_columns* columns);

/* The allocator's own sums at a moment; `time_us` 0 is now. */
int vramscope_sample(int64_t device, int64_t time_us, uint64_t allocated, uint64_t active, uint64_t reserved);

/* Marks this moment: 0 the start of a span, 1 its end, 2 an instant. */
int vramscope_mark(int64_t device, const char* name, int stage);

/* What a page asked for since the last call: `history`, `state`, or nothing. */
const char* vramscope_poll_ask(void);

/* Waits until all that was handed in is in the file and at the server, at most so long. A server that is away is not
 * waited for. */
int vramscope_flush(int64_t timeout_ms);

/* What has come so far, as a JSON object. Of a server: `is_connected`, `connections` (how often), `trouble` (what went
 * wrong last, while it is tried again), `refused` (why nothing is sent any more), `sent_events` (those that were handed
 * on to it) and `undelivered` (those of them that it does not have). Empty without a recording. */
const char* vramscope_stats_json(void);

/* Ends the recording, and waits for the last bytes, at most about so long. What it came to as a JSON object; empty when
 * there was none or time was out. */
const char* vramscope_finish(int64_t timeout_ms);

/* Called in the child of a fork: nothing is recorded in this process, and no lock of the parent's is touched. */
void vramscope_abandon_after_fork(void);

#ifdef __cplusplus
}
#endif
#endif
