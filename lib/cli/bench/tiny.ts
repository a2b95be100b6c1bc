import * as ort from 'onnxruntime-web';
import { createBackend, type Runtime } from '../../gpu';
import { readModelConfig } from '../../models/wan22/config';
import { Wan22Denoiser } from '../../models/wan22/denoiser';
import { Transformer } from '../../models/wan22/transformer';
import { createVaeDecoder } from '../../models/wan22/vae';
import { denoise } from '../../pipeline/denoise';
import { gaussianNoise } from '../../pipeline/noise';
import { createScheduler } from '../../pipeline/schedulers';
import { openCheckpoint } from '../../weights';
import { root } from '../browser/stamp';
import { diskFolder } from '../disk-folder';
import { type Case, runCases } from './cases';

/** The tiny model at the size of the goldens' clip, 121 frames of 96×64, on the CPU backend. */
export async function benchTiny(): Promise<void> {
  ort.env.logLevel = 'error';
  const backend = await createBackend('wasm', ort as unknown as Runtime);
  const folder = diskFolder(`${root}/lib/models/wan22/goldens/model`);
  const config = await readModelConfig(folder);
  const size = { frames: 31, height: 4, width: 6 };
  const values = config.transformer.in_channels * size.height * size.width;
  const noise = gaussianNoise({ seed: 3, stream: 0, count: values * size.frames });
  const text = gaussianNoise({ seed: 4, stream: 0, count: 44 * config.transformer.text_dim });
  const checkpoint = await openCheckpoint(folder, 'transformer');
  const step = async (precision: 'f32' | 'int8'): Promise<Case> => {
    const model = await Transformer.load(backend, checkpoint, config.transformer, { precision });
    return {
      name: `tiny model, 1 guided step, ${precision}`,
      unit: 'steps',
      amount: 1,
      run: () =>
        denoise(backend, new Wan22Denoiser(model, 4096), {
          size,
          image: noise.subarray(0, values),
          texts: [text, text],
          noise: () => noise,
          scheduler: createScheduler({ kind: 'unipc', steps: 1, flowShift: 5 }),
          guidanceScale: 5,
        }),
    };
  };
  const decoder = await createVaeDecoder(backend, config.vae, await openCheckpoint(folder, 'vae'), {
    latentHeight: size.height,
    latentWidth: size.width,
  });
  const drain = async () => {
    for await (const frame of decoder.decode(noise.subarray(0, values))) void frame;
  };
  await drain();
  await runCases([
    await step('f32'),
    await step('int8'),
    { name: 'tiny model, VAE decode, 1 latent frame', unit: 'frames', amount: 4, run: drain },
  ]);
  await backend.dispose();
}
