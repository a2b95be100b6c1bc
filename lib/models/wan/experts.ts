import { type LoraFile, type Noise, noiseOfName } from '../../contract';
import type { VideoConfig } from './model-config';

/** The transformers of a model, which take turns by timestep, by their components' names; Wan2.1 has the first only. */
const experts = ['transformer', 'transformer_2'] as const;
export type Expert = (typeof experts)[number];

/** Whether a component is one of the transformers. */
export function isExpert(component: string): component is Expert {
  return experts.some((expert) => expert === component);
}

/** Those that a model has. */
export function expertsOf({ boundary }: Pick<VideoConfig, 'boundary'>): readonly Expert[] {
  return boundary === null ? ['transformer'] : experts;
}

/** The one that computes at a timestep: the first one, for high noise, from the boundary on. */
export function expertAt({ boundary }: Pick<VideoConfig, 'boundary'>, timestep: number): Expert {
  return boundary === null || timestep >= boundary ? 'transformer' : 'transformer_2';
}

const expertOf = { high: 'transformer', low: 'transformer_2' } as const;

/**
 * The noise that a LoRA is for by its request, the timesteps of its metadata, or its name; null where it may be for
 * both.
 *
 * @param metadata `modelspec.timestep_range` is `900,1000` or `0,900`
 */
export function noiseOfLora(
  { name, noise }: Pick<LoraFile, 'name' | 'noise'>,
  metadata: ReadonlyMap<string, string> = new Map(),
): Noise | null {
  if (noise) return noise;
  const [from, to] = (metadata.get('modelspec.timestep_range') ?? '').split(',').map(Number);
  if (to === 1000 && (from ?? 0) > 0) return 'high';
  if (from === 0 && (to ?? 1000) < 1000) return 'low';
  return noiseOfName(name)?.noise ?? null;
}

/**
 * The expert that a weight file is, by its name, else by its folders from the inner one outwards: those of diffusers,
 * or words as in the name of a LoRA; null where none tells.
 */
export function expertOfPath(path: string): Expert | null {
  for (const part of path.split('/').reverse()) {
    const noise = noiseOfName(part)?.noise;
    const expert = noise ? expertOf[noise] : experts.find((folder) => folder === part);
    if (expert) return expert;
  }
  return null;
}

/** The expert that a LoRA is for, as {@link noiseOfLora}. */
export function expertOfLora(...file: Parameters<typeof noiseOfLora>): Expert | null {
  const noise = noiseOfLora(...file);
  return noise && expertOf[noise];
}
