/** What the stages of the networks that finish a video compute. */
import { openUpscaler } from '../finishing/realesr/upscaler';
import { openRife } from '../finishing/rife/interpolator';
import type { Frame } from '../pipeline/latents';
import { type Golden, type Results, readPicture, wholeFile } from './golden';

const { signal } = new AbortController();

/** The picture of four times the size, and the one that is halved. */
export async function* upscaler({ folder, tensors, backend, own }: Golden): Results {
  const image = await readPicture(tensors, 'image_u8');
  const network = own(await openUpscaler(backend, await wholeFile(folder, 'model.safetensors')));
  const large = await network.enlarge(image, 4, signal);
  yield ['x4', fromZero(large), 'x4'];
  const half = fromZero(await network.enlarge(image, 2, signal));
  yield ['x2', half, halved(await tensors.read('x4'), large.width)];
}

/** Features of both frames, what each block adds to the flow, and the frame in the middle. */
export async function* interpolator({ folder, tensors, backend, own }: Golden): Results {
  const [a, b] = [await readPicture(tensors, 'image0_u8'), await readPicture(tensors, 'image1_u8')];
  const results = new Map<string, Float32Array>();
  let flow: Float32Array | undefined;
  const network = own(await openRife(backend, await wholeFile(folder, 'model.safetensors')));
  const middle = await network.middle(a, b, signal, async (stage, tensor) => {
    const values = await backend.read(tensor);
    const before = flow;
    const isFlow = stage.startsWith('flow');
    results.set(stage, isFlow ? values.map((value, i) => value - (before?.[i] ?? 0)) : values);
    if (isFlow) flow = values;
  });
  results.set('middle', fromZero(middle));
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
