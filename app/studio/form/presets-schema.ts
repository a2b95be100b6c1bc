import { z } from 'zod';
import { adapterStrengths, sizes } from '../../../lib/contract/parameters';
import { profileNames } from '../../../lib/contract/profile-names';
import type { Preset } from './presets';

const presetsSchema: z.ZodType<Preset[]> = z.array(
  z.object({
    id: z.string(),
    name: z.string().min(1),
    values: z.object({
      profile: z.enum(profileNames),
      fullDecode: z.boolean(),
      cache: z.boolean(),
      // Absent in presets of earlier versions, as all with a default.
      loop: z.boolean().default(false),
      upscale: z.boolean().default(false),
      smooth: z.boolean().default(false),
      guidanceAdapter: z.boolean().default(false),
      adapterStrength: z
        .number()
        .min(adapterStrengths.min)
        .max(adapterStrengths.max)
        .default(adapterStrengths.default),
      size: z.enum(sizes),
      num_inference_steps: z.string(),
      duration: z.string(),
      guidance_scale: z.string(),
      flow_shift: z.string(),
      negative_prompt: z.string(),
    }),
  }),
);

/** The presets that are stored; none where they cannot be read. */
export function parsePresets(stored: unknown): readonly Preset[] {
  const parsed = presetsSchema.safeParse(stored);
  return parsed.success ? parsed.data : [];
}
