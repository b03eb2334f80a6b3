// The program, for journeys that need their own server and jobs that send to it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { atEnd } from './ending.mjs';

/** The path of the program. */
export function programPath() {
  const path = process.env.VRAMSCOPE_PROGRAM;
  assert.ok(path, 'VRAMSCOPE_PROGRAM must say where the built program is; see run.mjs');
  return path;
}

/** Returns the environment of a job on a fake CUDA device, with the settings that collector/fakecuda/src/settings.rs lists. */
export function onFakeDevice(settings) {
  const folder = process.env.VRAMSCOPE_DRIVER;
  assert.ok(folder, 'VRAMSCOPE_DRIVER must say where the fake CUDA driver is; see run.mjs');
  return { ...process.env, ...settings, LD_LIBRARY_PATH: folder };
}

/** Creates a temporary folder for one test. */
export function emptyFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), 'vramscope-journey-'));
  atEnd(t, () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * Starts a server with further arguments that keeps its sessions in `data`, and makes it the one whose page is opened. Ends with the test.
 * `said` has the lines that it printed. `stop()` kills it, as a crash would; `start()` starts it again at the same address.
 */
export async function startServer(t, data = emptyFolder(t), args = [], env = {}) {
  const server = { url: '', child: null, said: [] };
  server.start = async () => {
    const listen = server.url ? new URL(server.url).host : '127.0.0.1:0';
    const child = spawn(programPath(), ['serve', '--listen', listen, '--data', data, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, XDG_STATE_HOME: join(data, 'state'), ...env },
    });
    server.child = child;
    const lines = createInterface({ input: child.stdout });
    server.url = await new Promise((resolve, reject) => {
      lines.on('line', (line) => {
        server.said.push(line);
        const found = /http:\/\/[^/\s]+/.exec(line);
        if (found) resolve(`${found[0]}/`);
      });
      child.once('exit', (code) => reject(new Error(`the server ended at once (${code})`)));
    });
  };
  server.stop = async () => {
    const ended = new Promise((resolve) => server.child.once('exit', resolve));
    server.child.kill('SIGKILL');
    await ended;
  };
  await server.start();
  atEnd(t, () => server.child.kill('SIGKILL'));
  // The pages of this test open on it.
  const usual = process.env.VRAMSCOPE_URL;
  process.env.VRAMSCOPE_URL = server.url;
  atEnd(t, () => { process.env.VRAMSCOPE_URL = usual; });
  return server;
}

/** Starts a workload that sends its memory to a server. `ended` is its last line of JSON. Ends with the test. */
export const startJob = (t, url, ...args) => startJobIn(t, process.env, url, ...args);

/** Starts a workload as `startJob` does, with the environment `env`. */
export function startJobIn(t, env, url, ...args) {
  const stdio = ['ignore', 'pipe', 'inherit'];
  const child = spawn(programPath(), ['run', ...args, '--to', url, '--json'], { stdio, env });
  atEnd(t, () => child.kill('SIGKILL'));
  let said = '';
  child.stdout.on('data', (data) => { said += data; });
  const ended = new Promise((resolve, reject) => {
    child.once('exit', (code) => {
      const line = said.trim().split('\n').at(-1) ?? '';
      try {
        resolve(JSON.parse(line));
      } catch {
        reject(new Error(`the job ended with ${code}, and said: ${said}`));
      }
    });
  });
  // A caller that awaits `ended` gets the error; if none does, it must not end the test run.
  ended.catch(() => {});
  return { child, ended };
}
