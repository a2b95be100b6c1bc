import { describe, expect, test } from 'vitest';
import type { PartState, PauseReason } from '../../lib/contract';
import { viewModel } from './model-view';
import { entry, part, storedPart } from './testing/entries';
import { announce, fitText, formatRelativeError, measureOf, precisionName } from './wording';

function statusOf(statuses: readonly PartState['status'][], ready = false) {
  const parts = statuses.map((status) => part('transformer', { status }));
  return viewModel(entry({ parts, ready })).status;
}

describe('the status of a model', () => {
  test('is what is going on, else what is wrong, else what is there', () => {
    expect(statusOf(['absent', 'absent'])).toBe('absent');
    expect(statusOf(['complete', 'absent'])).toBe('partial');
    expect(statusOf(['complete', 'complete'], true)).toBe('ready');
    expect(statusOf(['complete', 'waiting'])).toBe('downloading');
    expect(statusOf(['failed', 'downloading', 'paused'])).toBe('downloading');
    expect(statusOf(['verifying', 'complete'])).toBe('verifying');
    expect(statusOf(['verifying', 'downloading'])).toBe('downloading');
    expect(statusOf(['failed', 'paused'])).toBe('failed');
    expect(statusOf(['paused', 'complete'])).toBe('paused');
  });

  test('parts that wait for one without a connection are paused with it', () => {
    const parts = [
      part('transformer', { status: 'paused', pausedBy: 'network' }),
      part('vae', { status: 'waiting' }),
    ];
    expect(viewModel(entry({ parts }))).toMatchObject({ status: 'paused', pausedBy: 'network' });
  });

  test('a bundled model has no parts and is ready', () => {
    expect(statusOf([], true)).toBe('ready');
  });

  test('a part that is not needed may be absent', () => {
    expect(statusOf(['complete', 'absent'], true)).toBe('ready');
  });

  test('of several reasons to pause, the one that asks most of the person counts', () => {
    const reason = (...by: PauseReason[]) =>
      viewModel(entry({ parts: by.map((pausedBy) => part('vae', { status: 'paused', pausedBy })) }))
        .pausedBy;
    expect(reason('user', 'storage', 'network')).toBe('storage');
    expect(reason('user', 'interrupted')).toBe('interrupted');
    expect(reason('user', 'network')).toBe('network');
    expect(viewModel(entry()).pausedBy).toBeNull();
  });
});

test('what another tab does is shown instead of what is here', () => {
  const parts = [part('transformer', { status: 'paused', pausedBy: 'interrupted', bytesDone: 10 })];
  const busy = (bytesTotal: number | null) =>
    viewModel(entry({ parts, elsewhere: { bytesDone: 500, bytesTotal } }));
  expect(busy(1000)).toMatchObject({ status: 'elsewhere', pausedBy: null, fraction: 0.5 });
  expect(busy(null)).toMatchObject({ bytesDone: 500, bytesTotal: null, fraction: null });
});

test('a part of another model that is here makes none of a model that is not, and is not freed with it', () => {
  const parts = [part('text_encoder', { status: 'complete', bytesStored: 700 }), part('vae')];
  const stored = [storedPart({ component: 'text_encoder', bytesStored: 700 })];
  const view = viewModel(entry({ parts, stored, shared: ['text_encoder'] }));
  expect(view).toMatchObject({ status: 'absent', bytesStored: 0 });
  expect(viewModel(entry({ parts, stored }))).toMatchObject({
    status: 'partial',
    bytesStored: 700,
  });
});

describe('progress', () => {
  const running = entry({
    bytesPerSecond: 50e6,
    parts: [
      part('transformer', { status: 'downloading', bytesDone: 1e9, bytesTotal: 5e9 }),
      part('vae', { status: 'waiting', bytesTotal: 1e9 }),
    ],
  });

  test('adds up the parts', () => {
    const view = viewModel(running);
    expect(view).toMatchObject({ bytesDone: 1e9, bytesTotal: 6e9, secondsRemaining: 100 });
    expect(view.fraction).toBeCloseTo(1 / 6);
    expect(measureOf(view, 50e6)).toBe('1.0 GB of 6.0 GB · 50.0 MB/s · about 1 min 40 s left');
  });

  test('has no percent and no time before the size of everything that is fetched is known', () => {
    const waiting = part('text_encoder', { status: 'waiting', bytesTotal: null });
    const parts = [...running.parts, waiting];
    const view = viewModel({ ...running, parts });
    expect(view).toMatchObject({ bytesTotal: null, fraction: null, secondsRemaining: null });
    expect(measureOf(view, 50e6)).toBe('1.0 GB so far · 50.0 MB/s');
  });

  test('counts neither what was not chosen nor what failed at once: their sizes are not known', () => {
    const others = [
      part('guidance_adapter', { bytesTotal: null }),
      part('tiny_decoder', { status: 'failed', bytesTotal: null }),
    ];
    const { bytesTotal, secondsRemaining } = viewModel({
      ...running,
      parts: [...running.parts, ...others],
    });
    expect({ bytesTotal, secondsRemaining }).toEqual({ bytesTotal: 6e9, secondsRemaining: 100 });
  });

  test('of a check is told like that of a download', () => {
    const parts = [
      part('transformer', { status: 'complete', bytesDone: 5e9, bytesTotal: 5e9 }),
      part('vae', { status: 'verifying', bytesDone: 4e8, bytesTotal: 1e9 }),
    ];
    const view = viewModel(entry({ parts, bytesPerSecond: 1e8 }));
    expect(view).toMatchObject({ status: 'verifying', fraction: 0.9, secondsRemaining: 6 });
    expect(measureOf(view, 1e8)).toBe('5.4 GB of 6.0 GB · 100 MB/s · about 6 s left');
  });

  test('no rate, no remaining time', () => {
    const view = viewModel({ ...running, bytesPerSecond: 0 });
    expect(measureOf(view, 0)).toBe('1.0 GB of 6.0 GB');
  });

  test('what is read out changes its topic with the status only', () => {
    const first = announce(running);
    expect(first.text).toBe('Wan: downloading, 16 %.');
    const parts = running.parts.map((one) => ({ ...one, bytesDone: one.bytesDone + 1e6 }));
    expect(announce({ ...running, parts }).topic).toBe(first.topic);
    const unknown = [part('vae', { status: 'downloading', bytesTotal: null })];
    expect(announce(entry({ parts: unknown })).text).toBe('Wan: downloading.');
  });
});

describe('what is stored', () => {
  test('the worst tensor and the oldest check', () => {
    const view = viewModel(
      entry({
        stored: [
          storedPart({ worst: { tensor: 'a', relativeError: 0.001 } }),
          storedPart({ verifiedAt: '2025-06-01T00:00:00.000Z' }),
          storedPart({ worst: { tensor: 'b', relativeError: 0.002 } }),
        ],
      }),
    );
    expect(view.worst).toEqual({ tensor: 'b', relativeError: 0.002 });
    expect(view.verifiedAt).toBe('2025-06-01T00:00:00.000Z');
    expect(view.bytesStored).toBe(2700);
    expect(viewModel(entry({ stored: [storedPart()] })).worst).toBeNull();
  });

  test('errors and precisions in words', () => {
    expect([0.0024, 0.5, 2e-7].map(formatRelativeError)).toEqual(['0.24 %', '50.00 %', '2.0e-5 %']);
    const { manifest } = entry();
    expect(precisionName(manifest, 'int8')).toBe('Eight');
    expect(precisionName(manifest, 'int4')).toBe('4-bit');
  });
});

test('a precision fits, fits with blocks read from disk, or does not', () => {
  const GiB = 2 ** 30;
  const choice = {
    precision: 'int8',
    name: '8-bit',
    description: '',
    memory: {
      standard: { full: 7 * GiB, least: 4 * GiB },
      'ultra-fast': { full: 8 * GiB, least: 5 * GiB },
    },
  } as const;
  expect(fitText(choice, null)).toBe('4.0 – 8.0 GiB');
  expect(fitText(choice, 8 * GiB)).toBe('4.0 – 8.0 GiB ✓ fits');
  expect(fitText(choice, 4 * GiB)).toBe('4.0 – 8.0 GiB ✓ fits, slower');
  expect(fitText(choice, 3 * GiB)).toBe('4.0 – 8.0 GiB ✗ too large');
});
