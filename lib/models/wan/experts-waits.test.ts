import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { CountingBackend } from '../../gpu';
import { denoise } from '../../pipeline/denoise';
import { createScheduler } from '../../pipeline/schedulers';
import { openSafetensors } from '../../weights';
import { openCheckpoint } from '../../weights/testing/checkpoint';
import { diskFolder } from '../../weights/testing/files';
import { conditionName } from './condition';
import { WanDenoiser } from './denoiser';
import type { Expert } from './experts';
import { readVideoConfig } from './model-config';
import { usualChoice } from './model-memory';
import { Transformer } from './transformer';

const goldens = fileURLToPath(new URL('./goldens/tiny-wan22-a14b/', import.meta.url));

test.each(['runtime', 'exact', 'fast'] as const)(
  '%s: a step waits once, and once more where the experts change',
  async (mode) => {
    const model = diskFolder(`${goldens}model/`);
    const config = await readVideoConfig(model);
    const tensors = await openSafetensors(await diskFolder(goldens).open('golden.safetensors'));
    const [, , frames = 0, height = 0, width = 0] = tensors.shape('noise');
    const noise = await tensors.read('noise');
    const backend = new CountingBackend(usualChoice(mode));
    const reading = { precision: 'int8' } as const;
    const load = async (expert: Expert) =>
      Transformer.load(backend, await openCheckpoint(model, expert), config.transformer, reading);
    const denoiser = await WanDenoiser.create(config.boundary, 4096, load, 1000);
    const text = new Float32Array(3 * config.transformer.text_dim);
    const counts: number[] = [];
    let last = backend.counters().waits;
    await denoise(backend, denoiser, {
      size: { frames, height, width },
      image: { [conditionName]: await tensors.read('condition') },
      texts: [text, text],
      noise: () => noise,
      scheduler: createScheduler({ kind: 'unipc', steps: 5, flowShift: 5 }),
      guidanceScale: 3,
      afterStep: () => {
        const now = backend.counters().waits;
        counts.push(now - last);
        last = now;
        return false;
      },
    });
    denoiser.dispose();
    expect(counts.sort()).toEqual([1, 1, 1, 1, 2]);
  },
);
