// A person wants to know whether a script will fit: the page says which command tells, and shows what it recorded.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openPage } from './page.mjs';
import { emptyFolder, programPath } from './program.mjs';
import { goTo, says, text } from './workbench.mjs';

test('a script that is dropped gets the command that predicts it', async (t) => {
  const page = await openPage(t);
  await page.drop({ name: 'train.py', mimeType: 'text/x-python', buffer: Buffer.from('import torch\nprint(torch.cuda.is_available())\n') });
  await page.reach('error');
  assert.match(await text(page, 'failed'), /Will it fit on a GPU\? A terminal tells, without one: vramscope predict train\.py/);
  await page.screenshot('predict-script');
});

test('a prediction opens as any run', async (t) => {
  const folder = emptyFolder(t);
  const script = join(folder, 'train.py');
  writeFileSync(script, '');
  // It plays the Python with PyTorch.
  const python = fileURLToPath(new URL('../cases/commands/predict.py', import.meta.url));
  const said = execFileSync(programPath(), ['predict', '--json', '--out', join(folder, 'out'), '--python', python, script, 'run'], {
    encoding: 'utf8',
    env: { ...process.env, PROGRAM: programPath() },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const found = JSON.parse(said).processes[0];
  const page = await openPage(t);
  await page.load(found.recording);
  await goTo(page, 'Timeline');
  // The terminal and the page say the same of it.
  const [peak] = /[\d.]+ GiB allocated at the peak/.exec(JSON.stringify(found.memory[0].report.diagnosis));
  await says(page, 'verdict-headline', new RegExp(peak.replace('.', '\\.')));
  await page.screenshot('predict-run');
});
