/** What the stages of the networks that finish a video compute. */
import { openUpscaler } from '../finishing/realesr/upscaler';
import { openRife } from '../finishing/rife/interpolator';
import type { Frame } from '../pipeline/latents';
import { type Golden, type Results, readPicture, wholeFile } from './golden';

/** The picture of four times the size, and the one that is halved. */
export async function* upscaler({ folder, tensors, backend }: Golden): Results {
  const { signal } = new AbortController();
  const image = await readPicture(tensors, 'image_u8');
  const network = await openUpscaler(backend, await wholeFile(folder, 'model.safetensors'));
  try {
    const large = await network.enlarge(image, 4, signal);
    yield ['x4', fromZero(large), 'x4'];
    const half = fromZero(await network.enlarge(image, 2, signal));
    yield ['x2', half, halved(await tensors.read('x4'), large.width)];
  } finally {
    network.dispose();
  }
}

/** Features of both frames, what each block adds to the flow, and the frame in the middle. */
export async function* interpolator({ folder, tensors, backend }: Golden): Results {
  const [a, b] = [await readPicture(tensors, 'image0_u8'), await readPicture(tensors, 'image1_u8')];
  const { signal } = new AbortController();
  const results = new Map<string, Float32Array>();
  let flow: Float32Array | undefined;
  const network = await openRife(backend, await wholeFile(folder, 'model.safetensors'));
  try {
    const middle = await network.middle(a, b, signal, async (stage, tensor) => {
      const values = await backend.read(tensor);
      const isFlow = stage.startsWith('flow');
      const before = flow;
      results.set(stage, isFlow ? values.map((value, i) => value - (before?.[i] ?? 0)) : values);
      if (isFlow) flow = values;
    });
    results.set('middle', fromZero(middle));
  } finally {
    network.dispose();
  }
  for (const [name, actual] of results) yield [name, actual, name];
}

/** Values of a frame in 0…1. */
const fromZero = ({ data }: Frame) => data.map((value) => (value + 1) / 2);

/** Means of 2×2 pixels of planes that follow each other. */
function halved(data: Float32Array, width: number): Float32Array {
  const out = new Float32Array(data.length / 4);
  for (const [i, value] of data.entries()) {
    const to = (Math.floor(i / width) >> 1) * (width / 2) + ((i % width) >> 1);
    out[to] = (out[to] ?? 0) + value / 4;
  }
  return out;
}
