import { z } from 'zod';
import type { ProfileName } from '../profile';
import { parametersSchema } from '../request';

/** The two models of a family that the API knows, the last part of their path. */
export const variants = ['i2v-720p-lora', 'i2v-720p-lora-ultra-fast'] as const;
export type Variant = (typeof variants)[number];

/** The profile behind each model of the API. */
export const profileOfVariant: Readonly<Record<Variant, ProfileName>> = {
  'i2v-720p-lora': 'standard',
  'i2v-720p-lora-ultra-fast': 'ultra-fast',
};

/**
 * The profile of a job's model, `{provider}/{model_family}/{variant}`.
 *
 * @throws TypeError for a model that the API does not have
 */
export function profileOfModel(model: string): ProfileName {
  const variant = variants.find((name) => model.endsWith(`/${name}`));
  if (!variant) throw new TypeError(`The API has no model "${model}".`);
  return profileOfVariant[variant];
}

/**
 * Body of a submission: everything about the video, its image, and switches that clients send.
 * Unknown fields are dropped (README.md, 2).
 */
export const submitSchema = parametersSchema.extend({
  image: z
    .string()
    .regex(/^(https?:\/\/\S{1,4096}|data:image\/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=\s]+)$/i, {
      message: 'image must be an https URL or a data URI of an image.',
    })
    .describe('The still: an https URL, a data URI, or a URL from our own upload.'),
  enable_prompt_optimizer: z
    .boolean()
    .default(false)
    .describe('Carried to the worker, which may rewrite the prompt.'),
  enable_safety_checker: z
    .boolean()
    .default(true)
    .describe('Carried to the worker, which may check what it made.'),
  enable_sync_mode: z
    .boolean()
    .default(false)
    .describe('Hold the answer until the video is there, for at most about 100 seconds.'),
  enable_base64_output: z
    .boolean()
    .default(false)
    .describe('Accepted for the sake of clients that always send it; outputs are URLs.'),
});

/** A submission as a caller may write it. */
export type SubmitInput = z.input<typeof submitSchema>;
/** A submission with every default filled in. */
export type Submission = z.output<typeof submitSchema>;

/**
 * What a prediction keeps and tells of its submission: the parameters, the image as a URL (never as
 * a data URI) and the two switches that are carried to the worker.
 */
export type PredictionInput = Omit<Submission, 'enable_sync_mode' | 'enable_base64_output'>;
