// Memory of the browser's renderer processes, as the kernel counts it.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';

/** Every process: its parent and its command line. */
function processes() {
  const all = new Map();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      all.set(Number(pid), { parent, command: readFileSync(`/proc/${pid}/cmdline`, 'utf8') });
    } catch {
      // It has ended in the meantime.
    }
  }
  return all;
}

/** The renderers below this process: one page's, and the spare one that Chromium keeps. */
function renderers() {
  const all = processes();
  const isOurs = (pid) => pid === process.pid || (all.has(pid) && isOurs(all.get(pid).parent));
  return [...all].filter(([pid, { command }]) => command.includes('--type=renderer') && isOurs(pid)).map(([pid]) => pid);
}

/** Begins a new peak: what was used before no longer counts. */
export function resetPeak() {
  for (const pid of renderers()) writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** The largest use of memory since `resetPeak`, in bytes: of the page's renderer, which is the largest there is. */
export function peakBytes() {
  const peaks = renderers().map((pid) => {
    const peak = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return peak ? Number(peak[1]) * 1024 : 0;
  });
  return Math.max(0, ...peaks);
}
