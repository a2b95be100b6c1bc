import type { TensorFile } from '../../weights';

/** What recognising looks at: names without what tools put before them, shapes, and the GGUF's word. */
export interface Contents {
  readonly names: readonly string[];
  /** `general.architecture` of a GGUF file. */
  readonly architecture: string | undefined;
  /** Whether any name matches. */
  has(pattern: RegExp): boolean;
  /** Shape of the first tensor whose name matches. */
  shape(pattern: RegExp): readonly number[] | undefined;
}

const prefix =
  /^(base_model\.model\.|model\.|diffusion_model\.|transformer\.|text_encoder\.|vae\.|first_stage_model\.)/;

/** @param files one file, or the shards of one */
export function contentsOf(files: readonly TensorFile[]): Contents {
  const shapes = new Map<string, readonly number[]>();
  for (const { tensors } of files) {
    for (const [name, { shape }] of tensors) shapes.set(bare(name), shape);
  }
  const names = [...shapes.keys()];
  return {
    names,
    architecture: files[0]?.metadata.get('general.architecture'),
    has: (pattern) => names.some((name) => pattern.test(name)),
    shape(pattern) {
      const name = names.find((candidate) => pattern.test(candidate));
      return name === undefined ? undefined : shapes.get(name);
    },
  };
}

function bare(name: string): string {
  const rest = name.replace(prefix, '');
  return rest === name ? name : bare(rest);
}
