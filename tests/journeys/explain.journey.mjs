// The text of an error is explained: pasted anywhere, dropped as a text or as a log, opened as a log, or put into the dialog's field.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './page.mjs';
import { at, press, says, until } from './workbench.mjs';

const ERROR =
  'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 23.64 GiB of which 340.31 MiB is free. ' +
  'Process 4242 has 23.30 GiB memory in use. Of the allocated memory 22.10 GiB is allocated by PyTorch, and 720.50 MiB is reserved by PyTorch but unallocated.';

/** Pastes or drops a text, or a file of that text, somewhere on the page. */
const give = (page, kind, text, name) =>
  page.tab.evaluate(
    ([kind, text, name]) => {
      const data = new DataTransfer();
      if (name) data.items.add(new File([text], name, { type: 'text/plain' }));
      else data.setData('text/plain', text);
      const options = { bubbles: true, cancelable: true };
      const event = kind === 'paste' ? new ClipboardEvent('paste', { ...options, clipboardData: data }) : new DragEvent('drop', { ...options, dataTransfer: data });
      document.body.dispatchEvent(event);
    },
    [kind, text, name],
  );

test('the text of an error is explained wherever it is pasted or dropped', async (t) => {
  const page = await openPage(t);
  for (const [kind, text, name] of [['paste', ERROR], ['drop', `rank 0: ${ERROR}`], ['drop', `${'epoch 1 loss 0.5\n'.repeat(200_000)}${ERROR}`, 'train.log']]) {
    await give(page, kind, text, name);
    await says(page, 'explained', /512 MiB/);
    await says(page, 'explained', /Use a smaller batch.*Copy/);
    assert.ok((await at(page, 'explain-text').inputValue()).includes('Tried to allocate 512.00 MiB'));
    if (kind === 'paste') await page.screenshot('explain');
    await press(page, 'Escape');
    await until('it is closed', () => at(page, 'explain').count(), (count) => count === 0);
  }
});

test('the dialog of the start page explains what is put into its field, and says what it does not know', async (t) => {
  const page = await openPage(t);
  await give(page, 'drop', 'only words', 'notes.txt');
  await says(page, 'explain-failed', /not known/);
  await press(page, 'Escape');
  await at(page, 'start-explain').click();
  await at(page, 'explain-text').fill('a cake recipe');
  await at(page, 'explain-ask').click();
  await says(page, 'explain-failed', /not known.*Paste the whole message/);
  // What is pasted into the field is the field's.
  await at(page, 'explain-text').fill(ERROR);
  await at(page, 'explain-ask').click();
  await says(page, 'explained', /512 MiB/);
  assert.equal(await at(page, 'explain-failed').count(), 0);
  assert.equal(await at(page, 'explain-text').inputValue(), ERROR, 'what was put in stays');
});

test('a selection of the page that is dragged over it is not explained', async (t) => {
  const page = await openPage(t);
  const drag = (name) => page.tab.evaluate((name) => document.body.dispatchEvent(new DragEvent(name, { bubbles: true })), name);
  await drag('dragstart');
  await give(page, 'drop', ERROR);
  await drag('dragend');
  // The next text, which comes from elsewhere, is the only one that is explained.
  await give(page, 'drop', `rank 7: ${ERROR}`);
  await says(page, 'explained', /512 MiB/);
  assert.ok((await at(page, 'explain-text').inputValue()).startsWith('rank 7'));
});
