import { z } from 'zod';
import { appliedSchema } from '../applied';
import type { ProfileName } from '../profile-names';
import { maxSeed, parametersSchema, type Size, sizes } from '../request';
import { contentsSchema } from './contents';

/** The four states of the API; the last two are terminal. */
export const predictionStatuses = ['created', 'processing', 'completed', 'failed'] as const;
export type PredictionStatus = (typeof predictionStatuses)[number];

/** 32 lower-case hex characters. */
export const predictionIdSchema = z
  .string()
  .regex(/^[0-9a-f]{32}$/)
  .describe('32 lower-case hex characters.');

/** Events of a webhook; `completed` is any end, a failure too. */
export const webhookEvents = ['start', 'progress', 'completed'] as const;
export type WebhookEvent = (typeof webhookEvents)[number];

/** Reasons why a prediction with status `created` waits. */
export const waitReasons = ['files', 'worker', 'queue'] as const;

/**
 * The profile of each variant of a model that the API answers: the last part of a submission's path. All but the
 * first two are names that hosted models of the family have.
 */
const profileOfVariant = {
  'i2v-720p-lora': 'standard',
  'i2v-720p-lora-ultra-fast': 'ultra-fast',
  'i2v-720p': 'standard',
  'i2v-720p-ultra-fast': 'ultra-fast',
  'i2v-5b-720p': 'standard',
  'i2v-5b-720p-lora': 'standard',
} as const satisfies Readonly<Record<string, ProfileName>>;
export type Variant = keyof typeof profileOfVariant;
export const variants = Object.keys(profileOfVariant) as Variant[];

/**
 * The profile of a job's model.
 *
 * @param model `{provider}/{model_family}/{variant}`
 * @throws TypeError if the API has no such variant
 */
export function profileOfModel(model: string): ProfileName {
  const variant = variants.find((name) => model.endsWith(`/${name}`));
  if (!variant) throw new TypeError(`The API has no model "${model}".`);
  return profileOfVariant[variant];
}

/** The variant of the API that stands for a profile. */
export function variantOfProfile(profile: ProfileName) {
  return profile === 'standard' ? 'i2v-720p-lora' : 'i2v-720p-lora-ultra-fast';
}

/**
 * What an image may be: a link, a data URI with any type and parameters, or base64, of which both alphabets and white
 * space are taken, and in a data URI percent-encoding (RFC 2397). Each part of a text matches one class of the pattern
 * only, so that the time grows with its length.
 */
const imageForms =
  /^(\s*https?:\/\/\S{1,4096}\s*|\s*data:[^,]{0,200};\s*base64\s*,[A-Za-z0-9+/=_%\s-]+|[A-Za-z0-9+/=_\s-]+)$/i;

const imageSchema = (field: string) =>
  z.string().regex(imageForms, {
    message: `${field} must be a URL, a data URI in base64, or base64 of an image file.`,
  });

/** The fields of a submission that are images. */
export const imageFields = ['image', 'last_image'] as const;
export type ImageField = (typeof imageFields)[number];

/**
 * Body of a submission: the parameters of the video, its image, and switches that clients send. Workers enlarge with
 * Lanczos-3, as not all have a network for it. Unknown fields are dropped (README, 2).
 */
export const submitSchema = parametersSchema.omit({ upscaler: true }).extend({
  loras: parametersSchema.shape.loras.describe(
    'Adapters, at most 3 for a transformer. The files of a pair for Wan2.2-I2V-A14B (`high` and `low` in their names, or `noise`) are one, as is a repository that has only them. A job goes only to workers whose model is of the width of its adapters.',
  ),
  size: z
    .enum([...sizes, 'auto'])
    .default('1280*720')
    .describe(
      'Width*height of the video in pixels. `auto`: `720*1280` for an image that is higher than wide, else `1280*720`; the default for `wavespeed-ai/wan-2.2`.',
    ),
  image: imageSchema('image').describe(
    'The start image: a URL that the server can reach, the URL of an upload, a base64 data URI, or base64 alone. Its bytes decide what it is, not the type that a data URI names.',
  ),
  // Without a default: what never asked for it does not see it in answers.
  last_image: imageSchema('last_image')
    .optional()
    .describe(
      'The end image, in the forms of `image`: the video ends in it, or shows it at the second `last_image_at`; it is cut to the size from its centre as the start image is. A `loop` takes one at an earlier second only. Only workers that know end images take such a job.',
    ),
  enable_prompt_optimizer: z
    .boolean()
    .default(false)
    .describe(
      'Let a language model in the worker’s browser describe the motion in one to three sentences before the video is computed. They follow your words, which stay as they are; what does not fit to them is left out. `data.optimized_prompt` has the text that was used. A worker without a language model takes such a job only if no other worker has one.',
    ),
  enable_safety_checker: z
    .boolean()
    .default(true)
    .describe(
      'Let an image classifier in the worker’s browser look at every eighth frame and the last one for nudity and sex; `has_nsfw_contents` says what it found. It only flags: nothing is withheld. Only workers that have the downloaded checker take such a job: the quick checker that comes with Kinora is not enough. The bundled demonstration model is excepted, and its videos are judged by the quick checker.',
    ),
  enable_sync_mode: z
    .boolean()
    .default(false)
    .describe('Delay the response until the video is finished, for at most about 100 seconds.'),
  webhook: z
    .string()
    .default('')
    .describe('The same as `webhook` in the query, for clients that cannot set it there.'),
  enable_base64_output: z
    .boolean()
    .default(false)
    .describe(
      'Return the video itself, in base64 without a prefix, instead of its URL. Only in the response of a synchronous submission and of a single result, and not with a webhook. A video that is larger than the limit comes as its URL.',
    ),
  webhook_events: z
    .array(z.enum(webhookEvents))
    .min(1)
    .optional()
    .describe(
      'What the webhook is sent for: `start` (a worker has begun), `progress` (at most every 10 seconds), `completed` (it has ended, completed or failed). Without this field only `completed`; without a webhook it is refused.',
    ),
});

/** A submission as a caller may write it. */
export type SubmitInput = z.input<typeof submitSchema>;
/** A submission with every default filled in. */
export type Submission = z.output<typeof submitSchema>;

/**
 * The part of a submission that is stored with the prediction and returned as its input: the
 * parameters, the images as URLs (never as data URIs), and the switches that count after the submission.
 */
export type PredictionInput = Omit<
  Submission,
  'enable_sync_mode' | 'enable_base64_output' | 'webhook' | 'size'
> & {
  readonly size: Size;
  /** Absent unless it was asked for. */
  readonly enable_base64_output?: true;
};

/** `data.code` of a prediction that failed, or whose synchronous wait ended (README, 9), in ascending order. */
export const predictionCodes = {
  contentModeration: 1200,
  missingParameter: 1400,
  invalidParameter: 1401,
  mediaUnavailable: 1402,
  executionFailed: 1403,
  cancelled: 1499,
  internal: 5000,
  unavailable: 5003,
  timeout: 5004,
} as const;
export type PredictionCode = (typeof predictionCodes)[keyof typeof predictionCodes];

/** The meaning of each code that this server sends; backticks mark code. */
const codeMeanings: Readonly<Partial<Record<keyof typeof predictionCodes, string>>> = {
  contentModeration:
    'The worker refused it: the prompt names a child in a sexual context, or names a child while the safety checker flags an image or the video.',
  invalidParameter:
    'A LoRA does not fit: its file cannot be used, or it was made for another model.',
  mediaUnavailable: 'An image or a LoRA could not be fetched, or an image could not be read.',
  executionFailed: 'The computation failed for another reason.',
  cancelled: 'It was cancelled.',
  unavailable: 'No worker finished it: in the last attempt the worker disconnected or gave up.',
  timeout:
    'The last attempt passed its deadline. In synchronous mode also with status `processing`: the wait ended, and the prediction continues.',
};

const codeNames = Object.keys(predictionCodes) as (keyof typeof predictionCodes)[];

/** The codes that this server sends, with their meanings, in ascending order. */
export const predictionCodeMeanings = codeNames.flatMap((name) => {
  const meaning = codeMeanings[name];
  return meaning === undefined ? [] : [{ code: predictionCodes[name], meaning }];
});

/** Codes that clients know but this server does not send, in ascending order. */
export const unusedPredictionCodes = codeNames.flatMap((name) =>
  codeMeanings[name] === undefined ? [predictionCodes[name]] : [],
);

/** How far the running attempt is. */
const progressSchema = z
  .object({
    phase: z
      .string()
      .nullable()
      .describe('`load`, `text`, `image`, `denoise`, `decode` or another one; null at first.'),
    step: z.int().min(0).describe('Finished denoising steps.'),
    steps: z.int().min(0).describe('Denoising steps in all.'),
    seconds_remaining: z
      .number()
      .min(0)
      .nullable()
      .describe('Estimated seconds until the video is finished; null if unknown.'),
  })
  .nullable()
  .describe('How far the computation is; null unless the prediction is being computed.');

/** How far the running attempt is; null where none runs, or before its first heartbeat. */
export function describeProgress({
  status,
  progress,
}: {
  readonly status: PredictionStatus;
  readonly progress: {
    readonly phase: string | null;
    readonly step: number;
    readonly steps: number;
    readonly secondsRemaining: number | null;
  } | null;
}): z.output<typeof progressSchema> {
  if (status !== 'processing' || progress === null) return null;
  const { phase, step, steps, secondsRemaining: seconds_remaining } = progress;
  return { phase, step, steps, seconds_remaining };
}

/** What result, list and webhook tell of the seed. */
const seedSchema = z
  .int()
  .min(0)
  .max(maxSeed)
  .describe('The seed that is used, known from the submission on; `input.seed` is as it was sent.');

/** A prediction as the API returns it. */
export const predictionSchema = z.object({
  id: predictionIdSchema,
  model: z.string().describe('`{provider}/{model_family}/{variant}` of the submission.'),
  outputs: z
    .array(z.string())
    .describe(
      'One URL per video, or its bytes in base64 with `enable_base64_output`; empty unless completed. The file tells nothing of the request. Its URL needs no key.',
    ),
  urls: z.object({ get: z.url().describe('Where to read this prediction again.') }),
  ...contentsSchema.shape,
  status: z
    .enum(predictionStatuses)
    .describe('Changes from created to processing, then to completed or failed, which are final.'),
  created_at: z.iso.datetime({ precision: 3 }).describe('UTC, with milliseconds.'),
  error: z.string().describe('One sentence; empty if there is no error.'),
  code: z.int().optional().describe('Why it failed, or 5004 when a synchronous wait ended.'),
  timings: z
    .object({
      inference: z.int().min(0).describe('Computing time in milliseconds.'),
      sampling: z
        .int()
        .min(0)
        .optional()
        .describe('Of it, the denoising steps; only when completed, and if the worker told it.'),
      decode: z
        .int()
        .min(0)
        .optional()
        .describe('Of it, decoding the frames, with their encoding; present with `sampling`.'),
    })
    .describe('All zero until it is completed.'),
  applied: appliedSchema
    .optional()
    .describe(
      'What the video was sampled and decoded with, which may differ from `input`: `unused` names the parameters that had no effect, `adapter` the model’s own adapter that ran, with its licence, its `strength` where that is not 1, and `notes` what of the LoRAs had no effect or could not be read. Only when completed, and if the worker told it.',
    ),
  seed: seedSchema,
  progress: progressSchema,
  queue_position: z
    .int()
    .min(0)
    .optional()
    .describe('Number of predictions that come before this one; only while it waits.'),
  image_retry: z
    .object({
      error: z.string().describe('Why an image could not be fetched, one sentence.'),
      tries: z.int().describe('How often it was tried so far.'),
      next_at: z.iso.datetime({ precision: 3 }).describe('Time of the next try, UTC.'),
    })
    .optional()
    .describe(
      'Only while the status is created and an image could not be fetched for a reason that may pass, such as an unresolved name, a refused connection, a timeout or a 5xx. It is tried again for about ten minutes.',
    ),
  waiting_for: z
    .enum(waitReasons)
    .nullable()
    .describe(
      '`files`: its images or LoRAs are being fetched. `worker`: no connected worker can run it; connect one. `queue`: a worker that can run it is connected, and is busy. Null unless the status is created.',
    ),
  input: z
    .record(z.string(), z.unknown())
    .optional()
    .describe(
      'The parameters with every default filled in; images as URLs. In a list only with `include_inputs`.',
    ),
});
export type ApiPrediction = z.output<typeof predictionSchema>;

/** Schema of every response with status 200. */
export function envelopeSchema<Data extends z.ZodType>(data: Data) {
  return z.object({ code: z.literal(200), message: z.literal('success'), data });
}

/** Body of a webhook: one per finished prediction, and one per event that `webhook_events` asks for. */
export const webhookBodySchema = z.object({
  id: predictionIdSchema,
  model: z.string().describe('`{provider}/{model_family}/{variant}` of the submission.'),
  input: z
    .record(z.string(), z.unknown())
    .describe('The parameters with every default filled in; images as URLs.'),
  outputs: z.array(z.url()).optional().describe('Only when completed.'),
  urls: z.object({ get: z.url().describe('Where to read this prediction again.') }),
  ...contentsSchema.shape,
  status: z
    .enum(['processing', 'completed', 'failed'])
    .describe('Without `webhook_events` only completed or failed.'),
  created_at: z.iso.datetime({ precision: 3 }).describe('UTC, with milliseconds.'),
  error: z.string().describe('One sentence; empty if there is no error.'),
  code: z.int().optional().describe('Why it failed, as in the result.'),
  seed: seedSchema,
  event: z.enum(webhookEvents).optional().describe('Only if the submission has `webhook_events`.'),
  progress: progressSchema.optional().describe('Only with the event `progress`.'),
});
export type WebhookBody = z.output<typeof webhookBodySchema>;

/** Server-sent events of `GET …/events`: `type` is the event's name, the rest is its data. */
export type PredictionEvent =
  | { readonly type: 'status'; readonly prediction: ApiPrediction }
  | {
      readonly type: 'step';
      readonly phase: string;
      readonly step: number;
      readonly steps: number;
      readonly seconds_remaining: number | null;
    }
  /** `image` is a data URI of a small picture. */
  | { readonly type: 'preview'; readonly step: number; readonly image: string };
