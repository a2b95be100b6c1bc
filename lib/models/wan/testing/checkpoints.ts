/** Headers of large checkpoints: every tensor in its shape, without weights. */
import { readFile } from 'node:fs/promises';
import { type ElementType, ggmlType, openTensorFile, type TensorFile } from '../../../weights';
import { safetensorsFrom } from '../../../weights/testing/files';
import { dataBytes, ggufHeader, text, virtualFile } from '../../../weights/testing/gguf';

export type Shapes = ReadonlyMap<string, readonly number[]>;

/**
 * Every tensor of a published checkpoint by diffusers' names, from the list `testdata/{file}`: name,
 * shape and how many layers have it (N in the name).
 */
async function publishedTensors(
  file: 'dit.txt' | 't5.txt' | 'vae.txt',
): Promise<Map<string, readonly number[]>> {
  const content = await readFile(new URL(`../testdata/${file}`, import.meta.url), 'utf8');
  const shapes = new Map<string, readonly number[]>();
  for (const line of content.split('\n')) {
    if (line.startsWith('#') || line.trim() === '') continue;
    const [name = '', shape = '', times = ''] = line.split('\t');
    for (let i = 0; i < Number(times.slice(1)); i++) {
      shapes.set(name.replace('.N.', `.${i}.`), JSON.parse(shape));
    }
  }
  return shapes;
}

/** The published transformer, text encoder and VAE of the 5B. */
export const dit = await publishedTensors('dit.txt');
export const t5 = await publishedTensors('t5.txt');
export const vae = await publishedTensors('vae.txt');

const elements = (shape: readonly number[]) => shape.reduce((product, n) => product * n, 1);

/** A safetensors file of the right size with these tensors, of F16; its bytes read as zeros. */
export function safetensorsOf(shapes: Shapes, name = 'x.safetensors'): Promise<TensorFile> {
  let offset = 0;
  const header: Record<string, unknown> = {};
  for (const [tensor, shape] of shapes) {
    const end = offset + 2 * elements(shape);
    header[tensor] = { dtype: 'F16', shape, data_offsets: [offset, end] };
    offset = end;
  }
  const head = safetensorsFrom(header, []);
  return openTensorFile(virtualFile(name, head, head.length + offset));
}

/** A GGUF file of the right size with these tensors: matrices as Q8_0, all else as F32. */
export function ggufOf(shapes: Shapes, architecture: string, name = 'x.gguf'): Promise<TensorFile> {
  const tensors = [...shapes].map(([tensor, shape]) => {
    const matrix = shape.length === 2 && (shape[1] ?? 0) % 32 === 0 && elements(shape) > 1024;
    const type = matrix ? 8 : 0;
    const block = ggmlType(type) as ElementType;
    const bytes = (elements(shape) / block.elements) * block.bytes;
    return { name: tensor, shape, type, bytes };
  });
  const file = { metadata: { 'general.architecture': text(architecture) }, tensors };
  const head = ggufHeader(file);
  return openTensorFile(virtualFile(name, head, head.length + dataBytes(file)));
}

/** The same tensors under other names, or shapes; null leaves one out. */
export function renamed(
  shapes: Shapes,
  rename: (name: string) => string | null,
  reshape: (shape: readonly number[]) => readonly number[] = (shape) => shape,
): Shapes {
  return new Map(
    [...shapes].flatMap(([name, shape]) => {
      const to = rename(name);
      return to === null ? [] : [[to, reshape(shape)] as const];
    }),
  );
}
