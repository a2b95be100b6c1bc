import { describe, expect, it } from 'vitest';
import { promptOptimizationSchema, safetySchema } from '../contract';
import { fullMemory } from '../contract/testing/memory';
import { resultOf } from '../predictions/testing/prediction';
import { ProgressReport, planLine, summary } from './report';
import { Screen } from './screen';

/** Runs events through a report and returns all that it wrote. */
function written(isTTY: boolean, use: (report: ProgressReport) => void): string {
  let text = '';
  use(
    new ProgressReport(
      new Screen({
        isTTY,
        columns: 80,
        write: (chunk) => {
          text += chunk;
        },
      }),
    ),
  );
  return text;
}

const step = (n: number) =>
  ({ type: 'step', step: n, steps: 4, clip: 0, clips: 1, secondsPerStep: 1.5 }) as const;

const estimate = (share: number, secondsRemaining: number) =>
  ({ type: 'estimate', share, secondsRemaining }) as const;

describe('the progress of generate', () => {
  it('is one line per phase and step where nothing can be redrawn, with the time left', () => {
    const text = written(false, (report) => {
      report.take({ type: 'phase', phase: 'load', clip: 0, clips: 1 });
      report.take({ type: 'phase', phase: 'image', clip: 0, clips: 1 });
      // The denoiser's weights.
      report.take({ type: 'phase', phase: 'load', clip: 0, clips: 1 });
      report.take({ type: 'bytes', bytesDone: 1, bytesTotal: 2 });
      report.take({ type: 'phase', phase: 'denoise', clip: 0, clips: 1 });
      report.take(step(1));
      report.take(estimate(0.3, 61));
      report.take(step(2));
      report.take(estimate(0.3, 89));
      report.take({ type: 'frame', frame: 24, frames: 121 });
    });
    expect(text).toBe(
      'Load model\nRead image\nDenoise\n  step 1 of 4, 1.50 s per step\n' +
        '  step 2 of 4, 1.50 s per step, about 1 min 01 s left\n' +
        '  frame 24 of 121, about 1 min 29 s left\n',
    );
  });

  it('reports every 24th frame and the last one without a terminal', () => {
    const text = written(false, (report) => {
      for (let frame = 1; frame <= 50; frame += 1)
        report.take({ type: 'frame', frame, frames: 50 });
    });
    expect(text).toBe('  frame 24 of 50\n  frame 48 of 50\n  frame 50 of 50\n');
  });

  it('counts the tiles of a decode, and then not its frames again', () => {
    const text = written(false, (report) => {
      report.take({ type: 'phase', phase: 'decode', clip: 0, clips: 1 });
      for (const tile of [1, 2]) {
        for (let frame = 1; frame <= 25; frame += 1) {
          if (tile === 2) report.take(estimate(0.5, 61));
          report.take({ type: 'tile', tile, tiles: 2, frame, frames: 25 });
          if (tile === 2) report.take({ type: 'frame', frame, frames: 25 });
        }
      }
    });
    expect(text.split('\n').slice(1, -1)).toEqual([
      '  tile 1 of 2, frame 24 of 25',
      '  tile 1 of 2, frame 25 of 25',
      '  tile 2 of 2, frame 24 of 25, about 1 min 01 s left',
      '  tile 2 of 2, frame 25 of 25, about 1 min 01 s left',
    ]);
  });

  it('says what computes in the place of the kernels that were asked for', () => {
    const reason = 'Kinora’s kernels do not compute this model on this GPU: a layer is too large.';
    const text = written(false, (report) => {
      const asked = { type: 'kernels', asked: 'fast', reason: null } as const;
      report.take({ ...asked, computes: 'exact' });
      report.take({ ...asked, asked: 'exact', computes: 'runtime', reason });
    });
    expect(text).toBe(
      'This GPU has no kernels for --kernels fast, or is slower with them: exact kernels compute the video.\n' +
        `${reason} ONNX Runtime does, which is slower.\n`,
    );
  });

  it('names the clip where there are several', () => {
    const text = written(false, (report) => {
      report.take({ type: 'phase', phase: 'denoise', clip: 1, clips: 2 });
    });
    expect(text).toBe('Denoise (clip 2 of 2)\n');
  });

  it('is a bar that never exceeds the width of a terminal', () => {
    const text = written(true, (report) => {
      report.take({ type: 'phase', phase: 'denoise', clip: 0, clips: 1 });
      report.take(step(2));
      report.take(estimate(0.5, 100_000));
      report.screen.end();
    });
    const bars = text.split('\r\u001b[K').slice(1);
    expect(bars).toHaveLength(2);
    expect(bars[1]).toContain(`${'█'.repeat(12) + '░'.repeat(12)} 50 %, about 27 h 46 min left`);
    expect(bars[1]?.trimEnd().length).toBeLessThan(80);
    expect(text.endsWith('\n')).toBe(true);
  });
});

it('says in one line how a run fits the memory', () => {
  expect(planLine(fullMemory)).toMatch(/^Memory: .*, all \d+ blocks on the device, decode in one/);
  const tight = {
    ...fullMemory,
    budget: 8 * 2 ** 30,
    budgetSet: true,
    peak: 7.5 * 2 ** 30,
    blocks: 30,
  };
  expect(planLine({ ...tight, residentBlocks: 24, decodeTiles: 2, replans: 1 })).toBe(
    'Memory ran out; planned smaller: 7.5 GiB of 8.0 GiB, 24 of 30 blocks on the device, ' +
      '6 streamed in each step, decode in 2 tiles',
  );
});

const found = {
  safety: safetySchema.parse({
    status: 'flagged',
    score: 0.75,
    input: 0.125,
    frames: [0.5, 1],
    model: 'owner/checker',
  }),
  promptOptimization: promptOptimizationSchema.parse({
    status: 'used',
    original: 'a cat walks',
    model: 'Qwen3-0.6B',
    reasons: ['V3'],
    text: 'a cat walks. The camera holds still.',
  }),
};

it('ends with path, seed and the time of every stage', () => {
  const { safety, promptOptimization } = found;
  const lines = summary('out/a.mp4', { ...resultOf('a'), safety, promptOptimization }).split('\n');
  expect(lines[0]).toBe('file            out/a.mp4');
  expect(lines).toContain('seed            4');
  const scores = 'flagged: 0.75 of 2 frames, 0.13 of the image; 0.5 flags (owner/checker)';
  expect(lines).toContain(`safety          ${scores}`);
  expect(lines).toContain('prompt          a cat walks');
  expect(lines).toContain('text            a cat walks. The camera holds still.');
  expect(lines).toContain('by              Qwen3-0.6B: used (V3)');
  expect(lines).toContain('Denoise            4.00 s');
  expect(lines.at(-1)).toBe('Total             21.00 s');
});

it('says what the check of the image found, and how far the check of the frames is', () => {
  const text = written(false, (report) => {
    report.take({ type: 'input-check', score: 0.9, flagged: true });
    report.take({ type: 'input-check', score: null, flagged: false });
    report.take({ type: 'check', done: 4, total: 32 });
    report.take({ type: 'check', done: 32, total: 32 });
  });
  expect(text.split('\n').filter(Boolean)).toEqual([
    'Image: flagged as unsafe; the video may be flagged too (0.90).',
    'Image: the safety checker failed.',
    '  square 32 of 32',
  ]);
});
