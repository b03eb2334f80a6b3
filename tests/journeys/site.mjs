// Another site: a web server of its own, and so another origin than that of the page.
import { createServer } from 'node:http';
import { once } from 'node:events';
import { atEnd } from './ending.mjs';

/**
 * Starts a server that answers by path: `answers['/a']` is `{ status, headers, body }`, or a function from the request to
 * that. Ends with the test. `asked` lists the requests, `origin` is its origin.
 */
export async function startSite(t, answers) {
  const asked = [];
  const server = createServer((request, response) => {
    // Browsers ask every site for it.
    if (request.url === '/favicon.ico') return response.writeHead(204).end();
    asked.push(request);
    const answer = answers[new URL(request.url, 'http://site').pathname];
    const { status = 200, headers = {}, body = '' } = (typeof answer === 'function' ? answer(request) : answer) ?? { status: 404 };
    response.writeHead(status, headers);
    return response.end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(t, () => {
    server.close();
    server.closeAllConnections();
  });
  return { asked, origin: `http://127.0.0.1:${server.address().port}` };
}
