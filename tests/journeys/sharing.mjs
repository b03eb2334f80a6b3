// Traces that are shared by links, and a server in front of the real one that delays what a journey wants delayed.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { atEnd } from './ending.mjs';
import { emptyFolder, programPath } from './program.mjs';

/** Runs a workload, and returns its trace as it is shared: a recording that begins with its previews. */
export async function sharedRecording(t, url, ...workload) {
  const run = join(emptyFolder(t), 'run.vramscope');
  try {
    execFileSync(programPath(), ['run', ...workload, '--out', run], { stdio: 'ignore' });
  } catch (error) {
    // A run that ends out of memory says so with its status.
    assert.ok(error.status > 0, String(error));
  }
  const pushed = execFileSync(programPath(), ['push', run, '--to', url], { stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8' });
  const [, token] = /s-([a-z2-7]{39})/.exec(pushed);
  const answer = await fetch(new URL(`api/v1/traces/${token}/trace`, url));
  return Buffer.from(await answer.arrayBuffer());
}

/** Shares a recording by a server. Returns the link, with `bytes`. */
export async function share(url, recording, { name = 'shared run', expires = 3600, password } = {}) {
  const headers = password ? { 'x-vramscope-password': password } : {};
  const address = new URL(`api/v1/traces?name=${encodeURIComponent(name)}&expires_seconds=${expires}`, url);
  const answer = await fetch(address, { method: 'POST', body: recording, headers });
  const link = await answer.json();
  assert.equal(answer.status, 201, JSON.stringify(link));
  return link;
}

/** Deletes a link. */
export async function unshare(url, link) {
  const address = new URL(`api/v1/traces/${link.token}`, url);
  const answer = await fetch(address, { method: 'DELETE', headers: { 'x-vramscope-delete-token': link.delete_token } });
  assert.equal(answer.status, 204);
}

/**
 * Starts a server that passes every request on to `url`, and makes it the one whose page is opened. Ends with the test.
 *
 *   const front = await startFront(t, server.url);
 *   const release = front.hold((asked) => asked.range?.from > 0);   // until release() is called
 *   front.cut((asked) => asked.range?.from > 0, 10_000);            // once: the connection breaks after so many bytes
 *
 * `front.asked` lists the requests for parts of traces, each with `range` and the number of bytes that were `sent`.
 */
export async function startFront(t, url) {
  const front = { asked: [], holds: [], cuts: [] };
  const upstream = new URL(url);
  front.hold = (applies) => {
    const hold = { applies };
    hold.wait = new Promise((resolve) => { hold.release = resolve; });
    front.holds.push(hold);
    return () => {
      front.holds.splice(front.holds.indexOf(hold), 1);
      hold.release();
    };
  };
  front.cut = (applies, after) => front.cuts.push({ applies, after });
  const server = createServer(async (incoming, answer) => {
    const found = /^bytes=(\d+)-(\d+)$/.exec(incoming.headers.range ?? '');
    const range = found && { from: Number(found[1]), to: Number(found[2]) };
    const asked = { path: incoming.url, range, sent: 0 };
    if (/\/trace$/.test(incoming.url)) front.asked.push(asked);
    for (const hold of front.holds.filter((hold) => hold.applies(asked))) await hold.wait;
    const cut = front.cuts.findIndex((cut) => cut.applies(asked));
    const [{ after } = { after: Infinity }] = cut < 0 ? [] : front.cuts.splice(cut, 1);
    const { hostname, port } = upstream;
    const outgoing = request({ hostname, port, path: incoming.url, method: incoming.method, headers: incoming.headers });
    outgoing.on('response', (response) => {
      answer.writeHead(response.statusCode, response.headers);
      response.on('data', (bytes) => {
        asked.sent += bytes.length;
        answer.write(asked.sent > after ? bytes.subarray(0, 1) : bytes);
        if (asked.sent > after) incoming.socket.destroy();
      });
      response.on('end', () => answer.end());
    });
    outgoing.on('error', () => incoming.socket.destroy());
    incoming.pipe(outgoing);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  front.url = `http://127.0.0.1:${server.address().port}/`;
  atEnd(t, () => {
    for (const hold of front.holds) hold.release();
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  process.env.VRAMSCOPE_URL = front.url;
  return front;
}
