import { z } from 'zod';
import { at } from './at';
import { numberSchemas } from './parameter-schemas';
import { parameterRanges, sizes } from './parameters';
import { decoderKinds } from './profile-names';

const nativeSize = z.object({
  // Whole tokens of the models that need the fewest pixels for one; each checks its own.
  width: z.int().positive().multipleOf(16),
  height: z.int().positive().multipleOf(16),
});
/** The size at which a model computes, for each requested size. */
export const nativeSizesSchema = z.object({ [sizes[0]]: nativeSize, [sizes[1]]: nativeSize });

/** Name of a sampler, one of `lib/pipeline/schedulers/samplers`. */
export const samplerNameSchema = z.string().regex(/^[a-z0-9-]{1,40}$/);

const timesteps = z
  .array(z.number().positive().max(1000))
  .min(1)
  .max(parameterRanges.num_inference_steps.max)
  .refine((list) => list.every((t, i) => i === 0 || t < at(list, i - 1)), {
    message: 'must fall from one to the next',
  });

/** How the latents are sampled: at the listed timesteps, where they do not follow from steps and flow shift. */
const schedulerSchema = z.object({ kind: samplerNameSchema, timesteps: timesteps.optional() });

/**
 * What MagCache needs to know of a model: how much the sum of what all blocks add shrinks from one step
 * to the next.
 */
export const magCacheSchema = z.object({
  /**
   * Ratios of the magnitudes of successive residuals, measured at some number of steps: of the branch
   * under the prompt and of the other one in turn, from the second step on.
   */
  ratios: z.array(z.number().positive()).min(2),
  /** Largest sum of errors |1 − product of ratios| that reused steps may have. */
  threshold: z.number().positive().default(0.06),
  /** Most steps in a row that reuse. */
  mostSkips: z.int().min(1).default(2),
  /** Share of the steps that are computed first. */
  computedShare: z.number().min(0).max(1).default(0.2),
});
export type MagCacheSettings = z.output<typeof magCacheSchema>;

/** Licence of an adapter. */
export const adapterLicenceSchema = z.object({
  name: z.string().min(1).max(200),
  url: z.url().max(2000).optional(),
  /** Whether it allows commercial use. */
  commercial: z.boolean().default(true),
});

const adapterFileSchema = z.object({
  /** `owner/name` on the hub, and the path inside: which file the installed adapter has to be. */
  repository: z.string().min(1),
  path: z.string().min(1),
  scale: z.number().positive().max(4).default(1),
  /** Of its factors: rank, and bits of a number. Memory is planned by them before the file is here. */
  rank: z.int().positive().optional(),
  bits: z.literal([16, 32]).default(16),
});
export type AdapterFile = z.output<typeof adapterFileSchema>;

/** An adapter of the model itself, which its makers distilled. */
const profileAdapterSchema = adapterFileSchema.extend({
  /** Short name, such as "FastWan". */
  name: z.string().min(1),
  /** What it was trained for and what is known of its videos, for those who choose one. */
  description: z.string().default(''),
  licence: adapterLicenceSchema,
});
export type ProfileAdapter = z.output<typeof profileAdapterSchema>;

/** Weights that were distilled for few steps, as an adapter, and how they are sampled. */
const fewStepAdapterSchema = profileAdapterSchema.extend({
  /** A guidance adapter that has to run beside it. */
  guidanceAdapter: adapterFileSchema.optional(),
  scheduler: z.object({ kind: samplerNameSchema, timesteps }),
  guidance: numberSchemas.guidance_scale.default(1),
});
export type FewStepAdapter = z.output<typeof fewStepAdapterSchema>;

/** Settings of a variant for a model. The request decides what a profile does not set. */
export const profileSchema = z.object({
  /** Where it computes at other sizes than the model's usual ones. */
  nativeSizes: nativeSizesSchema.optional(),
  /** How the latents are sampled; a list of timesteps also fixes the number of steps. */
  scheduler: schedulerSchema.default({ kind: 'unipc' }),
  /** Denoising steps, instead of the request's. */
  steps: numberSchemas.num_inference_steps.optional(),
  /** Most denoising steps. */
  mostSteps: numberSchemas.num_inference_steps.optional(),
  /** Guidance scale, instead of the request's; 1 is without guidance. */
  guidance: numberSchemas.guidance_scale.optional(),
  /** Share of the steps, from the first one, that run with guidance. */
  guidedShare: z.number().min(0).max(1).default(1),
  /**
   * Adapters for few steps, the default first. Where the model brings one of them (its part `adapter`), that
   * one runs beside the LoRAs of the request, with its own scheduler and guidance and without a cache.
   */
  adapters: z.array(fewStepAdapterSchema).default([]),
  /** Weights that learned what guidance does: where a request asks for them, a step takes one pass. */
  guidanceAdapter: profileAdapterSchema.optional(),
  /** The decoder; a model that lacks the tiny one decodes with the full one. */
  decoder: z.enum(decoderKinds).default('full'),
  /** Whether steps reuse results of earlier ones, by MagCache where the manifest calibrates it. */
  cache: z.boolean().default(false),
});
export type Profile = z.output<typeof profileSchema>;

/** The profiles of a model; one that is absent has every value at its default. */
export const profilesSchema = z.object({
  standard: profileSchema.prefault({}),
  'ultra-fast': profileSchema.prefault({}),
});
export type Profiles = z.output<typeof profilesSchema>;
