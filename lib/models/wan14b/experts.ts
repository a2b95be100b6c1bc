import type { LoraFile } from '../../contract';
import type { VideoConfig } from './config';

/** The transformers of a model, which take turns by timestep, by their components' names; Wan2.1 has the first only. */
export const experts = ['transformer', 'transformer_2'] as const;
export type Expert = (typeof experts)[number];

/** Those that a model has. */
export function expertsOf({ boundary }: Pick<VideoConfig, 'boundary'>): readonly Expert[] {
  return boundary === null ? ['transformer'] : experts;
}

/** The one that computes at a timestep: the first one, for high noise, from the boundary on. */
export function expertAt({ boundary }: Pick<VideoConfig, 'boundary'>, timestep: number): Expert {
  return boundary === null || timestep >= boundary ? 'transformer' : 'transformer_2';
}

/** Words of file names that say which expert a LoRA was trained for; nothing in its tensors does. */
const words: readonly (readonly [RegExp, Expert])[] = [
  [/(^|[^a-z])(high|highnoise|hn)(?=[^a-z]|$)/i, 'transformer'],
  [/(^|[^a-z])(low|lownoise|ln)(?=[^a-z]|$)/i, 'transformer_2'],
];

/**
 * The expert that a LoRA is for by its name, or by the timesteps of its metadata; null where it may be for both.
 *
 * @param metadata `modelspec.timestep_range` is `900,1000` or `0,900`
 */
export function expertOfLora(
  { name }: Pick<LoraFile, 'name'>,
  metadata: ReadonlyMap<string, string> = new Map(),
): Expert | null {
  const [from, to] = (metadata.get('modelspec.timestep_range') ?? '').split(',').map(Number);
  if (to === 1000 && (from ?? 0) > 0) return 'transformer';
  if (from === 0 && (to ?? 1000) < 1000) return 'transformer_2';
  // In HighNoise and the like a capital begins the next word.
  const spaced = name.replace(/([a-z])([A-Z])/g, '$1 $2');
  const found = words.filter(([pattern]) => pattern.test(spaced));
  return found.length === 1 ? (found[0]?.[1] ?? null) : null;
}
