/* The functions of Vramscope's library, libvramscope_pluggable.so, with which a job records its allocator.
 *
 * A process has one recording, of any number of devices, to a file, a server, or both. All functions may be called from
 * any thread. None of them unwinds, and none does anything in the forked child of a recording process.
 *
 * Events of one device must come from one thread at a time, as under PyTorch's lock of the device. If two threads call
 * at once, one event is counted as lost: vramscope_event, vramscope_lost and vramscope_now never wait or allocate, and
 * make no system call except to read the clock. If the queue is full, events are counted as lost by action.
 *
 * Sizes are in bytes, times in microseconds since the epoch. Unless stated otherwise, a function returns 0 on success
 * and -1 on failure, and vramscope_error returns the reason. Returned texts belong to the library and stay valid until
 * the same thread calls that function again. */
#ifndef VRAMSCOPE_H
#define VRAMSCOPE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* PyTorch's actions. For an out-of-memory event, the address holds the device's free bytes. */
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

/* Starts the recording. The configuration is a JSON object: `out` (a file), `to` (a server's address), `token`, `ca_file`
 * (certificates to trust instead of the system's), `name`, `job`, `host`, `rank`, `mode` (how events are captured, as shown to people), `torch` (its release), `stacks` (whether
 * events keep stacks), `devices` (array of `number`, `name`, `capacity`), `settings` (`conf`, `max_split_size`,
 * `expandable_segments`, `garbage_collection_threshold`, `roundup_power2_divisions`, `as_written`), `queue_events`
 * (the most waiting events of one device), `flush_millis`. `devices` and one of `out` and `to` are required. A server
 * that cannot be reached is not an error. */
int vramscope_start(const char* config_json);

/* Returns the full form of a server's address: `http://127.0.0.1:7070` for `127.0.0.1:7070`. Returns null if the address
 * is invalid. */
const char* vramscope_address(const char* to);

/* Returns why this thread's latest failed call failed. */
const char* vramscope_error(void);

/* Returns the session's name at the server; empty without a server. */
const char* vramscope_session(void);

/* Returns the time of the recording's clock; 0 without a recording. */
int64_t vramscope_now(void);

/* Records one event. A `time_us` of 0 means now. `stack` is a result of vramscope_stack, or 0. */
int vramscope_event(int64_t device, int action, uint64_t address, uint64_t size, int64_t stream, uint64_t pool0,
                    uint64_t pool1, uint32_t stack, int64_t time_us);

/* Records that `count` events of this action were lost before they reached the library. */
int vramscope_lost(int64_t device, int action, uint32_t count);

/* Columns with one value for each event. A null column reads as zeros. */
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

/* Records several events. Returns how many were recorded, or -1. */
int64_t vramscope_events(int64_t device, size_t count, const vramscope_event_columns* columns);

/* Return the number of a frame (line 0: unknown), and of a stack of frames, innermost first. Beyond the bounds a frame
 * has the number -1 and a stack 0, the empty stack. Numbers are valid for the whole recording. */
int64_t vramscope_frame(const char* name, const char* filename, uint32_t line);
uint32_t vramscope_stack(const uint32_t* frames, size_t count);

/* Segments, and the blocks of all segments in order. A null column reads as zeros. Flags: 1 small pool, 2 expandable.
 * States: 0 allocated, 1 waiting for streams, 2 free. */
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

/* Records a device's segments: at the start of the next recording, after the latest event, or at the end. */
enum vramscope_when { VRAMSCOPE_START = 0, VRAMSCOPE_NOW = 1, VRAMSCOPE_END = 2 };
int vramscope_segments(int when, int64_t device, const vramscope_segment_columns* columns);

/* Records a sample of the allocator's own totals. A `time_us` of 0 means now. */
int vramscope_sample(int64_t device, int64_t time_us, uint64_t allocated, uint64_t active, uint64_t reserved);

/* Records a sample of the memory beside a device's allocator; -1 is unknown. `resident` is the process's resident set,
 * `pinned` its pinned host memory, `outside` the device's memory that is neither free nor the allocator's, and `others` that
 * of other processes. A `time_us` of 0 means now. */
int vramscope_outside(int64_t device, int64_t time_us, int64_t resident, int64_t pinned, int64_t outside, int64_t others);

/* Returns the number of a text that the job attaches to events; 0, the empty text, beyond the bounds. Numbers are valid for
 * the whole recording. It takes a lock that is held for moments only. */
uint32_t vramscope_text(const char* text, size_t bytes);

/* Sets the text that the job attaches to a device's later events, a result of vramscope_text, or 0. */
int vramscope_metadata(int64_t device, uint32_t text);

/* Marks a moment as the start of a span (0), its end (1), or an instant (2). A `time_us` of 0 means now; earlier moments may
 * lie before the recording. The marks of a device appear with its first event. */
int vramscope_mark(int64_t device, const char* name, int stage, int64_t time_us);

/* Returns what a viewer asked for since the last call: `history`, `state`, or an empty text. */
const char* vramscope_poll_ask(void);

/* Waits until everything recorded so far is in the file and at the server, at most `timeout_ms`. Waits for a connection that
 * is being made; for a server that cannot be reached, only until one more attempt has failed. */
int vramscope_flush(int64_t timeout_ms);

/* Returns the statistics so far as a JSON object; empty without a recording. With a server: `is_connected`,
 * `connections` (their number), `trouble` (the latest error of an attempt that is being repeated), `refused` (why
 * nothing is sent any more), `sent_events` (events to be sent) and `undelivered` (those that the server does not have). */
const char* vramscope_stats_json(void);

/* Ends the recording and waits for its last bytes, at most `timeout_ms` and two seconds. Returns the final statistics as
 * a JSON object; empty without a recording or after a timeout. */
const char* vramscope_finish(int64_t timeout_ms);

/* To be called in the child of a fork: from then on nothing is recorded in it, and no inherited lock is touched. */
void vramscope_abandon_after_fork(void);

#ifdef __cplusplus
}
#endif
#endif
