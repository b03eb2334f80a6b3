// A training job of six steps, of which each allocation's role is known.

export const MIB = 1 << 20;
const BASE = 0x7f0000000000;
const TORCH = '/home/me/venv/lib/python3.11/site-packages/torch';
const frame = (name, filename, line) => ({ name, filename, line });
const MAIN = frame('main', '/home/me/gpt/train.py', 1);

/**
 * Returns the snapshot as a file. Step n has an activation of `each` × n MiB and a gradient of 5 MiB, and keeps 1 MiB at `log`. What
 * `early` made in the first step is freed in the third, which makes what `late` keeps. `moved` lines were inserted at the top of its files.
 */
export function trainingJob(count = 6, { each = 2, moved = 0, name = 'training.json' } = {}) {
  const events = [];
  let time = 1_700_000_000_000_000;
  const event = (action, mib, size, frames = []) => {
    time += 10;
    events.push({ action, addr: BASE + mib * MIB, size, stream: 0, time_us: time, compile_context: 'N/A', user_metadata: '', frames });
  };
  const free = (mib, size) => {
    event('free_requested', mib, size);
    event('free_completed', mib, size);
  };
  const own = (name, line) => [frame(name, '/home/me/gpt/train.py', line + moved), MAIN];
  const optimizer = [frame('step', `${TORCH}/optim/adam.py`, 9), MAIN];
  const kept = [];
  const keep = (mib, size, frames) => {
    event('alloc', mib, size, frames);
    kept.push([mib, size, frames]);
  };
  event('segment_alloc', 0, 2048 * MIB);
  keep(0, 5 * MIB, [frame('convert', `${TORCH}/nn/modules/module.py`, 1), MAIN]);
  for (let step = 1; step <= count; step += 1) {
    event('alloc', 100, each * step * MIB, [frame('forward', '/home/me/gpt/model.py', 7 + moved), MAIN]);
    event('alloc', 500, 5 * MIB);
    free(100, each * step * MIB);
    keep(1000 + step, MIB, own('log', 20));
    if (step === 1) event('alloc', 700, 7 * MIB, own('early', 21));
    if (step === 3) {
      free(700, 7 * MIB);
      keep(800, 3 * MIB, own('late', 22));
    }
    event('alloc', 600, MIB, optimizer);
    free(500, 5 * MIB);
    free(600, MIB);
  }
  const blocks = [];
  let end = 0;
  for (const [mib, size, frames] of kept.sort((a, b) => a[0] - b[0])) {
    if (mib * MIB > end) blocks.push({ address: BASE + end, size: mib * MIB - end, requested_size: 0, state: 'inactive', frames: [] });
    blocks.push({ address: BASE + mib * MIB, size, requested_size: size, state: 'active_allocated', frames });
    end = mib * MIB + size;
  }
  blocks.push({ address: BASE + end, size: 2048 * MIB - end, requested_size: 0, state: 'inactive', frames: [] });
  const live = kept.reduce((sum, [, size]) => sum + size, 0);
  const segment = {
    device: 0, address: BASE, total_size: 2048 * MIB, allocated_size: live, active_size: live, requested_size: live,
    stream: 0, segment_type: 'large', segment_pool_id: [0, 0], is_expandable: false, frames: [], blocks,
  };
  const json = JSON.stringify({ segments: [segment], device_traces: [events], allocator_settings: {}, external_annotations: [] });
  return { name, mimeType: 'application/json', buffer: Buffer.from(json) };
}
