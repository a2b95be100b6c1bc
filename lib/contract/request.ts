import { z } from 'zod';
import { KinoraError } from './errors';

/** Frames per second of every video. */
export const framesPerSecond = 24;
/** Largest image file, in bytes. */
export const maxImageBytes = 20_000_000;
/** Largest image, in pixels. */
export const maxImagePixels = 40_000_000;
/** Largest explicit seed. */
export const maxSeed = 9_999_999_999;

/** The sizes a video can have, `width*height` in pixels, as the v3 API writes them. */
export const sizes = ['1280*720', '720*1280'] as const;
export type Size = (typeof sizes)[number];

/** One adapter of a request: where it is and how strongly it acts. */
export const loraSchema = z.object({
  path: z.string().min(1),
  scale: z.number().min(0).max(4),
});

/**
 * Everything about a video but its image: names, ranges and defaults of the v3 image-to-video API.
 * A `seed` of −1 means a random one, drawn when the prediction is created.
 */
export const parametersSchema = z.object({
  prompt: z.string().regex(/\S/, { message: 'The prompt is empty.' }),
  negative_prompt: z.string().default(''),
  loras: z.array(loraSchema).max(3).default([]),
  size: z.enum(sizes).default('1280*720'),
  num_inference_steps: z.int().min(1).max(40).default(30),
  duration: z.int().min(5).max(10).default(5),
  guidance_scale: z.number().min(1).max(10).default(5),
  flow_shift: z.number().min(1).max(10).default(5),
  seed: z.int().min(-1).max(maxSeed).default(-1),
});

/** Parameters with every default filled in. */
export type Parameters = z.output<typeof parametersSchema>;
/** Parameters as a caller may write them. */
export type ParametersInput = z.input<typeof parametersSchema>;

/** Range and default of each numeric parameter, for forms, command line and messages. */
export const parameterRanges = {
  num_inference_steps: { min: 1, max: 40, step: 1, default: 30 },
  duration: { min: 5, max: 10, step: 1, default: 5 },
  guidance_scale: { min: 1, max: 10, step: 0.1, default: 5 },
  flow_shift: { min: 1, max: 10, step: 0.1, default: 5 },
  seed: { min: -1, max: maxSeed, step: 1, default: -1 },
} as const;

/**
 * Checks and completes parameters.
 *
 * @throws KinoraError `PROMPT_EMPTY`, or `PARAMETER_INVALID` naming the field and its range
 */
export function parseParameters(input: unknown): Parameters {
  const parsed = parametersSchema.safeParse(input);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const field = issue?.path.join('.') ?? '';
  if (field === 'prompt') throw new KinoraError('PROMPT_EMPTY');
  throw new KinoraError('PARAMETER_INVALID', describeIssue(field, issue?.message ?? 'invalid'));
}

function describeIssue(field: string, message: string): string {
  if (field === 'size') return `size must be one of ${sizes.join(', ')}.`;
  if (field === 'loras') return 'loras takes at most 3 adapters.';
  if (field.endsWith('.scale')) return `${field} must be a number from 0 to 4.`;
  if (Object.hasOwn(parameterRanges, field)) {
    const range = parameterRanges[field as keyof typeof parameterRanges];
    const kind = range.step === 1 ? 'a whole number' : 'a number';
    return `${field} must be ${kind} from ${range.min} to ${range.max}.`;
  }
  return `${field || 'The request'}: ${message}.`;
}

/** Width and height in pixels of a requested size. */
export function sizeInPixels(size: Size): { width: number; height: number } {
  const [width, height] = size.split('*').map(Number) as [number, number];
  return { width, height };
}

/** Number of frames of a video: 24 per second and the still itself. */
export function frameCount(durationSeconds: number): number {
  return framesPerSecond * durationSeconds + 1;
}

/** The seed itself, or a random one in [0, 9999999999] for −1. */
export function resolveSeed(seed: number): number {
  if (seed >= 0) return seed;
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  // 53 random bits scaled down: every seed of the range is as likely as any other to 1e-6.
  const unit = ((high >>> 5) * 67_108_864 + (low >>> 6)) / 9_007_199_254_740_992;
  return Math.floor(unit * (maxSeed + 1));
}
