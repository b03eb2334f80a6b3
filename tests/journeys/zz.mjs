import { chromium } from 'playwright-core';
import { readFileSync } from 'node:fs';
const [a, b, out, theme = 'dark', w = '1440', h = '900', ...acts] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROME || '/usr/bin/chromium-headless-shell', args: ['--no-sandbox', '--enable-unsafe-swiftshader'] });
const tab = await browser.newPage({ viewport: { width: +w, height: +h }, colorScheme: theme });
const errs = [];
tab.on('console', (m) => { if (m.type() === 'error') errs.push(m.text()); });
tab.on('pageerror', (e) => errs.push(String(e)));
await tab.goto('http://127.0.0.1:7178/');
await tab.waitForSelector('[data-state=empty]');
const drop = async (file) => {
  const chooser = tab.waitForEvent('filechooser');
  await tab.evaluate(() => document.querySelector('input[type=file]')?.click());
  (await chooser).setFiles(file);
};
const input = tab.locator('input[type=file]').first();
await input.setInputFiles(a);
await tab.waitForSelector('[data-state=ready]');
if (b !== '-') {
await input.setInputFiles(b);
await tab.waitForTimeout(1500);
await tab.waitForSelector('[data-state=ready]');
}
await tab.keyboard.press('9');
await tab.waitForTimeout(2500);
for (const act of acts) {
  if (act.startsWith('wait')) await tab.waitForTimeout(+act.slice(4));
  else if (act.startsWith('key')) await tab.keyboard.press(act.slice(3));
  else if (act.startsWith('text:')) console.log(await tab.getByTestId(act.slice(5)).allInnerTexts());
  else if (act.startsWith('scroll')) await tab.evaluate((y) => { document.querySelector('.compare-page').scrollTop = y; }, +act.slice(6));
  else await tab.getByTestId(act).first().click();
  await tab.waitForTimeout(600);
}
await tab.screenshot({ path: out });
console.log(await tab.getByTestId('compare-sentence').allInnerTexts(), await tab.evaluate(() => location.hash), errs);
await browser.close();
