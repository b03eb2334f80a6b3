// Reads the memory and work of the browser's renderer processes from the kernel.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';

/** Returns every process with its parent and its command line. */
function processes() {
  const all = new Map();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      all.set(Number(pid), { parent, command: readFileSync(`/proc/${pid}/cmdline`, 'utf8') });
    } catch {
      // The process has ended.
    }
  }
  return all;
}

/** Returns the renderers below this process: the page's, and the spare one that Chromium keeps. */
function renderers() {
  const all = processes();
  const isOurs = (pid) => pid === process.pid || (all.has(pid) && isOurs(all.get(pid).parent));
  return [...all].filter(([pid, { command }]) => command.includes('--type=renderer') && isOurs(pid)).map(([pid]) => pid);
}

/** Returns the bytes of memory that a process takes now. */
export function residentBytes(pid) {
  const now = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return now ? Number(now[1]) * 1024 : 0;
}

/** Returns the page's renderer: the largest one. */
export function pageProcess() {
  return renderers().reduce((best, pid) => (best && residentBytes(best) >= residentBytes(pid) ? best : pid), 0);
}

/** Returns the name and the CPU seconds of each thread of a process, by the thread's number. */
export function threadSeconds(pid) {
  const threads = new Map();
  for (const tid of readdirSync(`/proc/${pid}/task`)) {
    try {
      const stat = readFileSync(`/proc/${pid}/task/${tid}/stat`, 'utf8');
      const [open, close] = [stat.indexOf('('), stat.lastIndexOf(')')];
      const fields = stat.slice(close + 2).split(' ');
      // User and kernel time, in hundredths of a second.
      threads.set(tid, { name: stat.slice(open + 1, close), seconds: (Number(fields[11]) + Number(fields[12])) / 100 });
    } catch {
      // The process has ended.
    }
  }
  return threads;
}

/** Resets the peak of the memory in use. */
export function resetPeak() {
  for (const pid of renderers()) writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** Returns the peak memory in bytes of the page's renderer, the largest one, since `resetPeak`. */
export function peakBytes() {
  const peaks = renderers().map((pid) => {
    const peak = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return peak ? Number(peak[1]) * 1024 : 0;
  });
  return Math.max(0, ...peaks);
}
