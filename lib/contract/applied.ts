import { z } from 'zod';
import { parameterRanges, unusedParameters } from './parameters';
import { adapterLicenceSchema, samplerNameSchema } from './profile';
import { decoderKinds } from './profile-names';

/** Most notes on the LoRAs of a run, and most characters of one. */
export const [mostNotes, longestNote] = [8, 500] as const;

/** How steps reuse results of earlier ones. */
export const cacheKinds = ['none', 'magcache'] as const;
export type CacheKind = (typeof cacheKinds)[number];

/**
 * What a run was sampled and decoded with, after the profile had its say. The request's own values are kept
 * beside it.
 */
export const appliedSchema = z.object({
  steps: z.int().min(1),
  /** 1 is without guidance. */
  guidance_scale: z.number(),
  /** Steps from the first one that run with guidance. */
  guided_steps: z.int().min(0),
  scheduler: samplerNameSchema,
  /** Null where the timesteps are listed. */
  flow_shift: z.number().nullable(),
  timesteps: z.array(z.number()).max(parameterRanges.num_inference_steps.max).optional(),
  /** The profile's adapter. */
  adapter: z
    .object({
      name: z.string().max(200),
      licence: adapterLicenceSchema,
      /** 1 when absent; see `adapterStrength` of `RunOptions`. */
      strength: z.number().optional(),
    })
    .nullable(),
  decoder: z.enum(decoderKinds),
  cache: z.enum(cacheKinds),
  /** Values of the request that were not used. */
  unused: z.array(z.enum(unusedParameters)).max(unusedParameters.length),
  /** Parts of the LoRAs that had no effect or could not be read, a sentence each. */
  notes: z.array(z.string().max(longestNote)).max(mostNotes).optional(),
});
export type Applied = z.output<typeof appliedSchema>;
