// What the terminal prints addresses for: files of this machine, and all processes of a job.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { emptyFolder, programPath, startJobIn, startServer } from './program.mjs';
import { trainingJob } from './training.mjs';
import { at, text, until } from './workbench.mjs';

/** Runs the program as a person beside the server would, and returns what it prints. */
const run = (data, ...args) =>
  execFileSync(programPath(), args, { env: { ...process.env, XDG_STATE_HOME: join(data, 'state') }, encoding: 'utf8' });

// On the second, the page needs the token in the address: the server is as where the system does not tell users apart.
const servers = [['', {}], [' with a token', { VRAMSCOPE_USERS_UNKNOWN: '1' }]];
for (const [where, env] of servers) test(`a file that the terminal opened${where} is in the page, also over a reload`, async (t) => {
  const data = emptyFolder(t);
  await startServer(t, data, [], env);
  const file = join(data, 'my job.json');
  writeFileSync(file, trainingJob().buffer);
  const printed = run(data, file);
  const [, address] = /^Opened at (\S+)$/m.exec(printed);
  assert.equal(address.includes('#token='), where !== '');
  const page = await openPage(t, { address });
  await page.reach('ready');
  assert.ok(!page.tab.url().includes('token'), page.tab.url());
  assert.match(await page.tab.title(), /^my job\.json/);
  await at(page, 'tab-flame').click();
  await until('the address follows the view', async () => page.tab.url(), (url) => url.includes('tab=flame') && url.includes('open='));
  await page.screenshot('terminal-file');
  await page.tab.reload();
  await page.reach('ready');
  assert.equal(await at(page, 'tab-flame').getAttribute('aria-selected'), 'true');
});

test('the page says why a file of the terminal is not there any more', async (t) => {
  const server = await startServer(t);
  const page = await openPage(t, { address: `${server.url}#open=${'0'.repeat(64)}/a.pickle` });
  await page.reach('error');
  assert.match(await page.alerts(), /started anew since this file was opened/);
  page.complaints.length = 0;
});

test('one address shows every process of a job as it appears', async (t) => {
  const server = await startServer(t);
  const page = await openPage(t, { address: `${server.url}#job=train.py-abc` });
  await until('the page waits', () => text(page, 'notice'), (said) => said.includes('Waiting for “train.py-abc”'));
  const env = { ...process.env, VRAMSCOPE_JOB: 'train.py-abc' };
  const first = startJobIn(t, env, server.url, 'transformer', '--steps', '3', '--name', 'rank A');
  await page.reach('ready');
  await until('the first is shown', () => page.tab.title(), (title) => title.startsWith('rank A'));
  startJobIn(t, { ...env, VRAMSCOPE_JOB: 'another' }, server.url, 'transformer', '--steps', '3', '--name', 'stranger');
  await first.ended;
  await at(page, 'file-menu').click();
  const rows = async () => (await page.tab.getByTestId('file-row').allInnerTexts()).join(' ');
  await until('the first has ended', rows, (rows) => rows.includes('ended'));
  // Also one that begins when all others have ended.
  startJobIn(t, env, server.url, 'transformer', '--steps', '2000', '--rate', '500', '--name', 'rank B');
  await until('both are listed', rows, (rows) => rows.includes('rank A') && rows.includes('rank B'));
  assert.ok(!(await page.tab.getByTestId('file-row').allInnerTexts()).join(' ').includes('stranger'));
  assert.match(await page.tab.title(), /^rank A/, 'a new process does not take the place of the one that is looked at');
  await page.screenshot('terminal-job');
});
