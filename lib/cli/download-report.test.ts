import { expect, it } from 'vitest';
import type { ModelEntry, PartState } from '../contract';
import { testManifest } from '../contract/testing/manifest';
import { DownloadReport } from './download-report';
import { Screen } from './screen';

const vae: PartState = {
  component: 'vae',
  status: 'downloading',
  bytesDone: 0,
  bytesTotal: 1_000_000,
  bytesStored: 0,
};

function entry(...parts: PartState[]): ModelEntry {
  return {
    manifest: testManifest(),
    origin: 'listed',
    ready: false,
    precision: 'int8',
    parts,
    stored: [],
    elsewhere: null,
    bytesPerSecond: 250_000,
  };
}

/** Shows states one after another and returns all that was written. */
function written(isTTY: boolean, ...states: readonly ModelEntry[]): string {
  let text = '';
  const write = (chunk: string) => {
    text += chunk;
  };
  const screen = new Screen({ isTTY, columns: 80, write });
  const report = new DownloadReport(screen);
  for (const state of states) report.take(state);
  screen.end();
  return text;
}

it('writes a line for each tenth of a part, and its end, where nothing can be redrawn', () => {
  const states = [0, 40_000, 99_000, 100_000, 550_000, 560_000].map((bytesDone) =>
    entry({ ...vae, bytesDone }),
  );
  const whole = entry({ ...vae, status: 'complete', bytesDone: 1_000_000 });
  expect(written(false, ...states, whole, whole).split('\n')).toEqual([
    '  VAE            fetching, 0 B of 1.0 MB (0 %), 250 kB/s',
    '  VAE            fetching, 100 kB of 1.0 MB (10 %), 250 kB/s',
    '  VAE            fetching, 550 kB of 1.0 MB (55 %), 250 kB/s',
    '  VAE            1.0 MB, complete',
    '',
  ]);
});

it('reports the end of a part that was never shown at work', () => {
  const waiting = entry({ ...vae, status: 'waiting' });
  const whole = entry({ ...vae, status: 'complete', bytesDone: 1_000_000 });
  expect(written(false, waiting, whole)).toBe('  VAE            1.0 MB, complete\n');
});

it('is silent about parts that were there before', () => {
  expect(written(false, entry({ ...vae, status: 'complete', bytesDone: 1_000_000 }))).toBe('');
});

it('is one bar over all parts on a terminal', () => {
  const there: PartState = { ...vae, component: 'transformer', status: 'complete' };
  const text = written(true, entry({ ...there, bytesDone: 1_000_000 }, vae));
  expect(text).toContain('1.0 MB of 2.0 MB, 250 kB/s, about 4 s left');
  const bar = text.split('\r\u001b[K').at(-1) ?? '';
  expect(bar).toContain('█'.repeat(12) + '░'.repeat(12));
  expect(bar.trimEnd().length).toBeLessThan(80);
});

it('names a part that failed, with its remedy', () => {
  const error = { code: 'HUB_NOT_FOUND', message: 'There is no a/b.', remedy: 'Check.' } as const;
  const failed = entry({ ...vae, status: 'failed', error });
  expect(written(false, failed, failed)).toBe('VAE: There is no a/b. Check.\n');
});

it('says once why it waits, and once each thing that should be known', () => {
  const error = { code: 'HUB_UNREACHABLE', message: 'It is away.', remedy: 'Wait.' } as const;
  const waits = entry({ ...vae, status: 'paused', pausedBy: 'network', error });
  const changed = entry({ ...vae, notice: 'vae.gguf has changed. It starts over.' });
  const text = written(false, waits, waits, changed, changed);
  expect(text.split('\n')).toEqual([
    'VAE: waiting for the hub. It is away.',
    'VAE: vae.gguf has changed. It starts over.',
    '  VAE            fetching, 0 B of 1.0 MB (0 %), 250 kB/s',
    '',
  ]);
});
