import { z } from 'zod';
import { parameterRanges } from './parameters';

const { num_inference_steps: steps, duration, guidance_scale, flow_shift, seed } = parameterRanges;

/** Schemas of the numbers of a request by their ranges, without defaults: for all that names such a number. */
export const numberSchemas = {
  num_inference_steps: z.int().min(steps.min).max(steps.max),
  duration: z.int().min(duration.min).max(duration.max),
  guidance_scale: z.number().min(guidance_scale.min).max(guidance_scale.max),
  flow_shift: z.number().min(flow_shift.min).max(flow_shift.max),
  seed: z.int().min(seed.min).max(seed.max),
};
