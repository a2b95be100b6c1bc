import { z } from 'zod';
import { KinoraError } from './errors';
import { type Framing, maxZoom } from './framing';
import { groupPairs, type Noise, noises } from './lora-files';
import { numberSchemas } from './parameter-schemas';
import {
  lastImageSeconds,
  maxLoras,
  maxPromptLength,
  parameterRanges,
  sizes,
  upscalers,
} from './parameters';

export * from './parameters';

/** Checks a {@link Framing} from a command line or a file. */
export const framingSchema = z.object({
  zoom: z.number().min(0).max(maxZoom),
  x: z.number().min(0).max(1),
  y: z.number().min(0).max(1),
  background: z.union([z.literal('blur'), z.string().regex(/^#[0-9a-f]{6}$/i)]),
}) satisfies z.ZodType<Framing>;

const tooManyLoras = `loras takes at most ${maxLoras} adapters.`;

/** One adapter of a request: its location and its strength. */
export const loraSchema = z.object({
  path: z
    .string()
    .min(1)
    .max(4096)
    .describe(
      'A hub repository (`owner/name`), a file in one (`owner/name/file.safetensors`), an https link, or the name or address of an uploaded file.',
    ),
  scale: z
    .number()
    .min(0)
    .max(4)
    .default(1)
    .describe('Strength of the adapter; 1 is the trained strength.'),
  noise: z
    .enum(noises)
    .optional()
    .describe('The transformer of Wan2.2-I2V-A14B that it is for; without it the file tells.'),
});

/**
 * The parameters of a video, without its image: names, ranges and defaults of the v3 image-to-video
 * API. A `seed` of −1 is replaced by a random one when the prediction is created.
 */
export const parametersSchema = z.object({
  prompt: z
    .string()
    .max(maxPromptLength)
    .regex(/\S/, { message: 'The prompt is empty.' })
    .describe('What happens in the video.'),
  negative_prompt: z
    .string()
    .max(maxPromptLength)
    .default('')
    .describe('What the video should not show.'),
  loras: z
    .array(loraSchema)
    .max(2 * maxLoras)
    .refine((loras) => {
      const own = (of: Noise) => loras.filter(({ noise = of }) => noise === of);
      return noises.every((of) => groupPairs(own(of), ({ path }) => path).length <= maxLoras);
    }, tooManyLoras)
    .default([])
    .describe('Adapters, at most 3. The two files of a pair, for high and low noise, are one.'),
  size: z.enum(sizes).default('1280*720').describe('Width*height of the video in pixels.'),
  num_inference_steps: numberSchemas.num_inference_steps
    .default(parameterRanges.num_inference_steps.default)
    .describe('Denoising steps: more take longer and give more detail.'),
  duration: numberSchemas.duration
    .default(parameterRanges.duration.default)
    .describe('Length in seconds.'),
  // Without a default: what never asked for it does not see it in answers.
  loop: z
    .boolean()
    .optional()
    .describe(
      'The video ends where it begins, one frame short, so that it can be played again and again.',
    ),
  // Likewise.
  last_image_at: z
    .number()
    .min(lastImageSeconds.min)
    .max(lastImageSeconds.max)
    .optional()
    .describe(
      'The second at which the video shows the end image, `duration` at most; then it goes on. Without it the end image is the end.',
    ),
  upscale: z
    .literal([1, 2])
    .optional()
    .describe(
      '2 enlarges the finished frames: `1280*720` becomes 2560×1440, `720*1280` becomes 1440×2560.',
    ),
  upscaler: z.enum(upscalers).optional().describe('What enlarges; Lanczos-3 when absent.'),
  smooth: z
    .boolean()
    .optional()
    .describe('Twice as many frames a second, as 48 for 24: a computed one lies between each two.'),
  guidance_scale: numberSchemas.guidance_scale
    .default(parameterRanges.guidance_scale.default)
    .describe('How closely the video follows the prompt; 1 turns guidance off.'),
  flow_shift: numberSchemas.flow_shift
    .default(parameterRanges.flow_shift.default)
    .describe('Higher values spend more steps on motion, lower values on detail.'),
  seed: numberSchemas.seed
    .default(parameterRanges.seed.default)
    .describe('The same seed gives the same initial noise on every machine; −1 means random.'),
});

/** Parameters with every default filled in. */
export type Parameters = z.output<typeof parametersSchema>;
/** Parameters as a caller may write them; defaults may be absent. */
export type ParametersInput = z.input<typeof parametersSchema>;

/**
 * Validates parameters and fills in defaults.
 *
 * @throws KinoraError `PROMPT_EMPTY`, or `PARAMETER_INVALID` naming the field and its range
 */
export function parseParameters(input: unknown): Parameters {
  const parsed = parametersSchema.safeParse(input);
  if (parsed.success) return parsed.data;
  const [issue] = describeIssues(parsed.error);
  const tooLong = parsed.error.issues[0]?.code === 'too_big';
  if (issue?.field === 'prompt' && !tooLong) throw new KinoraError('PROMPT_EMPTY');
  throw new KinoraError('PARAMETER_INVALID', issue?.message ?? 'The request is not valid.');
}

/**
 * Requires that the end image, where there is one, has a place in the video.
 *
 * @throws KinoraError `LOOP_WITH_LAST_IMAGE` for two ends, `LAST_IMAGE_BEYOND_END`, or `PARAMETER_INVALID` for the place
 * of an end image that is not there
 */
export function requirePlaceOfLastImage(
  {
    duration,
    loop,
    last_image_at: second,
  }: Pick<Parameters, 'duration' | 'loop' | 'last_image_at'>,
  lastImage: unknown,
): void {
  if (lastImage === undefined) {
    if (second === undefined) return;
    throw new KinoraError('PARAMETER_INVALID', 'last_image_at needs an end image.');
  }
  if (second !== undefined && second > duration) {
    const sentence = `The end image stands at second ${second}, and the video has ${duration} seconds.`;
    throw new KinoraError('LAST_IMAGE_BEYOND_END', sentence);
  }
  if (loop && (second ?? duration) === duration) throw new KinoraError('LOOP_WITH_LAST_IMAGE');
}

/** An invalid field and a sentence that says what is valid. */
export interface FieldIssue {
  /** Dotted path such as `loras.0.scale`; empty for the whole request. */
  readonly field: string;
  readonly message: string;
}

/** Each invalid field of a rejected input once, with a sentence. */
export function describeIssues(error: z.ZodError): FieldIssue[] {
  const byField = new Map<string, FieldIssue>();
  for (const issue of error.issues) {
    const field = issue.path.join('.');
    if (!byField.has(field)) byField.set(field, { field, message: describeIssue(field, issue) });
  }
  return [...byField.values()];
}

function describeIssue(field: string, issue: z.core.$ZodIssue): string {
  if (field === 'loras' && issue.code === 'too_big') return tooManyLoras;
  if (field.endsWith('.scale')) return `${field} must be a number from 0 to 4.`;
  if (Object.hasOwn(parameterRanges, field)) {
    const range = parameterRanges[field as keyof typeof parameterRanges];
    const kind = range.step === 1 ? 'a whole number' : 'a number';
    return `${field} must be ${kind} from ${range.min} to ${range.max}.`;
  }
  const name = field || 'The body';
  if (issue.code === 'invalid_type') {
    // Only Zod's message says what it received; a missing field reads "undefined".
    if (issue.message.endsWith('undefined')) return `${name} is required.`;
    const without = issue.message.endsWith('null') ? ', not null' : '';
    return `${name} must be ${typeNames[issue.expected] ?? issue.expected}${without}.`;
  }
  if (issue.code === 'unrecognized_keys') return `${name} has no field ${issue.keys.join(', ')}.`;
  if (issue.code === 'invalid_value') return `${name} must be one of ${issue.values.join(', ')}.`;
  if (issue.code === 'too_small' || issue.code === 'too_big') return `${name}${rangeOf(issue)}`;
  return /[.!?]$/.test(issue.message) ? issue.message : `${name}: ${issue.message}.`;
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'text',
  boolean: 'true or false',
  number: 'a number',
  int: 'a whole number',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

function rangeOf(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): string {
  if (issue.code === 'too_small' && issue.minimum === 1) {
    if (issue.origin === 'string' || issue.origin === 'array') return ' must not be empty.';
  }
  const [word, beyond, limit] =
    issue.code === 'too_small' ? ['least', 'more', issue.minimum] : ['most', 'less', issue.maximum];
  if (issue.origin === 'string') return ` must have at ${word} ${limit} characters.`;
  if (issue.origin === 'array') return ` must have at ${word} ${limit} entries.`;
  return issue.inclusive === false
    ? ` must be ${beyond} than ${limit}.`
    : ` must be at ${word} ${limit}.`;
}
