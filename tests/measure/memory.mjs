// Memory and work of the browser's renderer processes, as the kernel counts them.
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

/** Bytes of memory that a process takes now. */
export function residentBytes(pid) {
  const now = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return now ? Number(now[1]) * 1024 : 0;
}

/** The page's renderer: the largest there is. */
export function pageProcess() {
  return renderers().reduce((best, pid) => (best && residentBytes(best) >= residentBytes(pid) ? best : pid), 0);
}

/** Seconds that each thread of a process has worked so far, by the thread's number, each with its name. */
export function threadSeconds(pid) {
  const threads = new Map();
  for (const tid of readdirSync(`/proc/${pid}/task`)) {
    try {
      const stat = readFileSync(`/proc/${pid}/task/${tid}/stat`, 'utf8');
      const [open, close] = [stat.indexOf('('), stat.lastIndexOf(')')];
      const fields = stat.slice(close + 2).split(' ');
      // In user mode and in the kernel, in hundredths of a second.
      threads.set(tid, { name: stat.slice(open + 1, close), seconds: (Number(fields[11]) + Number(fields[12])) / 100 });
    } catch {
      // It has ended in the meantime.
    }
  }
  return threads;
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
