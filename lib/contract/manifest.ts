import { z } from 'zod';
import { KinoraError } from './errors';
import { sizes } from './request';

const nativeSize = z.object({
  width: z.int().positive().multipleOf(32),
  height: z.int().positive().multipleOf(32),
});

/**
 * A model as Kinora lists it: where its files are and what it is made for.
 * `base` is a folder in the diffusers layout (`model_index.json`, `transformer/`, `vae/`, …), given
 * relative to the manifest. Architecture and every dimension come from the folder's own config files.
 */
export const manifestSchema = z.object({
  id: z.string().regex(/^[a-z0-9][a-z0-9._-]*$/),
  name: z.string().min(1),
  description: z.string(),
  licence: z.object({ name: z.string(), url: z.url().optional() }),
  base: z.string().min(1),
  /** The size at which the model runs for each requested size. */
  nativeSizes: z.object({ [sizes[0]]: nativeSize, [sizes[1]]: nativeSize }),
  /** Longest clip in frames, 4n+1; longer videos are chained. */
  maxClipFrames: z.int().refine((n) => n > 4 && n % 4 === 1, { message: 'must be 4n+1' }),
  /** How linear weights are held on the device. */
  precision: z.enum(['f32', 'int8']).default('f32'),
  defaults: z.object({ num_inference_steps: z.int().min(1).max(40).optional() }).default({}),
});

export type ModelManifest = z.output<typeof manifestSchema>;

/**
 * Checks a manifest.
 *
 * @throws KinoraError `MODEL_MANIFEST_INVALID` naming the first wrong field
 */
export function parseManifest(input: unknown): ModelManifest {
  const parsed = manifestSchema.safeParse(input);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new KinoraError(
    'MODEL_MANIFEST_INVALID',
    `The model manifest is not valid at ${issue?.path.join('.') || 'its root'}: ${issue?.message}.`,
  );
}
