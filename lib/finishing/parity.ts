import { z } from 'zod';
import type { Backend } from '../gpu';
import type { Frame } from '../pipeline/latents';
import {
  compare,
  type ParityFamily,
  type ParityOptions,
  type ParityStage,
} from '../pipeline/parity';
import { blobFile, type Checkpoint, type ModelFolder, openSafetensors } from '../weights';
import { openUpscaler } from './realesr/upscaler';
import { openRife } from './rife/interpolator';

const upscalerSchema = z.looseObject({ convolutions: z.int(), upscale: z.literal(4) });
const interpolatorSchema = z.looseObject({ widths: z.array(z.int()), timestep: z.literal(0.5) });
const goldenSchema = z.union([upscalerSchema, interpolatorSchema]);

/** References of the networks of this folder, laid out like the folders of `lib/finishing/goldens`. */
export const finishingParity: ParityFamily = {
  recognises: (golden) => goldenSchema.safeParse(golden).success,
  async parityStages(folder, backend, options) {
    const golden = goldenSchema.parse(await folder.json('golden.json'));
    const stage = 'upscale' in golden ? upscalerStage : interpolatorStage;
    return [stage(folder, backend, options)];
  },
};

/** The picture of four times the size, and the one that is halved. */
function upscalerStage(
  folder: ModelFolder,
  backend: Backend,
  { tolerance = backend.kernels?.convolution ? 3e-3 : 1e-5 }: ParityOptions,
): ParityStage {
  return {
    name: 'upscaler',
    tolerance,
    async *run() {
      const tensors = await openGolden(folder, 'golden.safetensors');
      const image = await readFrame(tensors, 'image_u8');
      const x4 = await tensors.read('x4');
      const { signal } = new AbortController();
      const upscaler = await openUpscaler(backend, await wholeFile(folder, 'model.safetensors'));
      try {
        const large = await upscaler.enlarge(image, 4, signal);
        yield compare('x4', fromZero(large), x4, tolerance);
        const half = await upscaler.enlarge(image, 2, signal);
        yield compare('x2', fromZero(half), halved({ ...large, data: x4 }), tolerance);
      } finally {
        upscaler.dispose();
      }
    },
  };
}

/** Features of both frames, what each block adds to the flow, and the frame in the middle. */
function interpolatorStage(
  folder: ModelFolder,
  backend: Backend,
  { tolerance = 1e-5 }: ParityOptions,
): ParityStage {
  return {
    name: 'interpolator',
    tolerance,
    async *run() {
      const tensors = await openGolden(folder, 'golden.safetensors');
      const [a, b] = [await readFrame(tensors, 'image0_u8'), await readFrame(tensors, 'image1_u8')];
      const stages = new Map<string, Float32Array>();
      let before: Float32Array | undefined;
      const { signal } = new AbortController();
      const rife = await openRife(backend, await wholeFile(folder, 'model.safetensors'));
      try {
        const middle = await rife.middle(a, b, signal, async (stage, tensor) => {
          const values = await backend.read(tensor);
          const isFlow = stage.startsWith('flow');
          const flow = before;
          stages.set(stage, isFlow ? values.map((value, i) => value - (flow?.[i] ?? 0)) : values);
          if (isFlow) before = values;
        });
        stages.set('middle', fromZero(middle));
      } finally {
        rife.dispose();
      }
      for (const [stage, actual] of stages) {
        yield compare(stage, actual, await tensors.read(stage), tolerance);
      }
    },
  };
}

async function wholeFile(folder: ModelFolder, path: string) {
  const file = await folder.open(path);
  return blobFile(path, new Blob([Uint8Array.from(await file.read(0, file.size))]));
}

async function openGolden(folder: ModelFolder, path: string): Promise<Checkpoint> {
  return openSafetensors(await wholeFile(folder, path));
}

/** Bytes [H, W, 3] as a frame. */
async function readFrame(tensors: Checkpoint, name: string): Promise<Frame> {
  const [height = 0, width = 0] = tensors.shape(name);
  const bytes = await tensors.read(name);
  const plane = height * width;
  const data = bytes.map(
    (_, i) => (bytes[(i % plane) * 3 + Math.floor(i / plane)] ?? 0) / 127.5 - 1,
  );
  return { data, width, height };
}

/** Values of a frame in 0…1. */
function fromZero({ data }: Frame): Float32Array {
  return data.map((value) => (value + 1) / 2);
}

/** Means of 2×2 pixels. */
function halved({ data, width, height }: Frame): Float32Array {
  const out = new Float32Array(data.length / 4);
  for (let y = 0; y < 3 * height; y++) {
    for (let x = 0; x < width; x++) {
      const to = (y >> 1) * (width / 2) + (x >> 1);
      out[to] = (out[to] ?? 0) + (data[y * width + x] ?? 0) / 4;
    }
  }
  return out;
}
