import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { KernelMode } from '../../../gpu/kernels';
import type { KernelReport } from '../../../models/wan22/benchmark/kernels';
import { launchBrowser } from '../../browser/launch';
import { serveFolders } from '../../file-server';
import { writeKernelsPage } from './kernels-bundle';

test('the exported page measures, shows tables and gives its figures as JSON', {
  tags: ['full'],
  timeout: 600_000,
}, async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'kinora-kernels-'));
  await writeKernelsPage(folder);
  const files = await serveFolders([folder]);
  const { browser, software } = await launchBrowser();
  try {
    const page = await browser.newPage();
    const said: string[] = [];
    page.on('console', (message) => said.push(message.text()));
    page.on('pageerror', (error) => said.push(String(error)));
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.goto(`${files.base}index.html`);
    await page.locator('body[data-ready="true"]').waitFor();
    expect(
      await page.evaluate(() => window.kinoraKernels?.({ variants: 1, rounds: 1, tune: true })),
    ).toBeNull();
    await page.getByText('Projected to 1280×704×121').waitFor();
    await page.getByRole('button', { name: 'Copy as JSON' }).click();
    await page.getByText('Copied.').waitFor();
    const text = await page.evaluate(() => navigator.clipboard.readText());
    const report: KernelReport = JSON.parse(text);
    expect(report.device.software).toBe(software);
    expect(report.selfTest.every(({ usable }) => usable)).toBe(true);
    expect(Object.keys(report.tuning)).toEqual(report.modes);
    const familiesOf = (mode: KernelMode) =>
      Object.entries(report.tuning[mode]?.winners ?? {}).flatMap(([family, winner]) =>
        winner ? [family] : [],
      );
    // Those of exact are not tuned a second time.
    expect(familiesOf('exact')).toEqual(['linear', 'attention', 'convolution']);
    expect(familiesOf('fast')).toEqual(['fastLinear', 'fastAttention']);
    for (const family of ['linear', 'attention', 'convolution']) {
      const lines = report.lines.filter((line) => line.family === family);
      const fast = family !== 'convolution';
      const modes = ['runtime', ...report.modes.filter((mode) => fast || mode !== 'fast')];
      expect(new Set(lines.map(({ mode }) => mode))).toEqual(new Set(modes));
      expect(lines.map(({ reason }) => reason)).toEqual(lines.map(() => null));
      // No kernel is faster than what its arithmetic reaches. An emulated dot product is several operations, of which
      // those with a common operand share some: there the peak is no bound.
      for (const { mode, share } of lines) {
        if (mode === 'matrix') expect(share).toBeNull();
        else if (mode === 'fast' && software) expect(share).toBeGreaterThan(0);
        else expect(share).toBeLessThan(1.1);
      }
    }
    expect(said).toEqual([]);
  } finally {
    await browser.close();
    await files.close();
    await rm(folder, { recursive: true, force: true });
  }
});
