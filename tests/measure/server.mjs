// The program to measure, and a server of it.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** The built program; VRAMSCOPE_PROGRAM names another one. */
export const PROGRAM = process.env.VRAMSCOPE_PROGRAM ?? fileURLToPath(new URL('../../target/release/vramscope', import.meta.url));

/** Starts a server with an empty store. */
export async function serve(data) {
  const server = spawn(PROGRAM, ['serve', '--listen', '127.0.0.1:0', '--data', data], { stdio: ['ignore', 'pipe', 'inherit'] });
  const url = await new Promise((found, failed) => {
    server.on('exit', () => failed(new Error('the server ended; build it with: cargo build --release')));
    createInterface({ input: server.stdout }).on('line', (line) => {
      const address = /http:\/\/[^/\s]+/.exec(line);
      if (address) found(`${address[0]}/`);
    });
  });
  return { url, stop: () => server.kill() };
}
