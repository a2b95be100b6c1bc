import { z } from 'zod';
import { appliedSchema } from '../applied';
import { profileNames } from '../profile';
import { parametersSchema } from '../request';
import { safetySchema } from '../safety';
import { predictionIdSchema } from './prediction';

/** Seconds of a year: the longest life of a link. */
const maxShareSeconds = 31_536_000;

/** What a shared page shows besides the video; nothing unless it is ticked. */
const includeSchema = z.object({
  prompt: z.boolean().default(false).describe('The prompt and the negative prompt.'),
  settings: z
    .boolean()
    .default(false)
    .describe('Size, length, steps, seed, and adapters of the hub.'),
  image: z.boolean().default(false).describe('The start image, also as the poster.'),
});

/** Body of `POST /api/v3/predictions/{id}/share`. */
export const shareBodySchema = z.object({
  expires_in_seconds: z
    .int()
    .min(60)
    .max(maxShareSeconds)
    .optional()
    .describe('Without it the link ends when the video expires, which is its end in any case.'),
  include: includeSchema
    .default({ prompt: false, settings: false, image: false })
    .describe('What the page shows besides the video; nothing by default.'),
  allow_index: z.boolean().default(false).describe('Let search engines list the page.'),
});
export type ShareBody = z.output<typeof shareBodySchema>;

/** A public link to a video. */
export const shareSchema = z.object({
  id: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .describe('32 lower-case hex characters, random. Whoever knows it can watch the video.'),
  url: z.url().describe('The page to pass on.'),
  prediction_id: predictionIdSchema,
  include: z.object({ prompt: z.boolean(), settings: z.boolean(), image: z.boolean() }),
  allow_index: z.boolean(),
  created_at: z.iso.datetime({ precision: 3 }),
  expires_at: z.iso.datetime({ precision: 3 }).describe('When the link ends.'),
});
export type Share = z.output<typeof shareSchema>;

/** An open link, as its owner sees it on the Keys page. */
export const shareRecordSchema = shareSchema.extend({
  /** The beginning of the prompt. */
  title: z.string(),
  /** Whether the studio uploaded the video: then the server has it for this link only. */
  uploaded: z.boolean(),
});
export type ShareRecord = z.output<typeof shareRecordSchema>;

const given = parametersSchema.shape;

/**
 * The request of a shared video as far as its owner shows it, for the form of the studio: `GET /s/{id}/request`.
 * What is absent is not shown. Adapters are not in it, as a form needs their files.
 */
export const sharedRequestSchema = z.object({
  parameters: z.object({
    prompt: given.prompt.optional(),
    // Without the defaults, which would take the place of what is absent.
    negative_prompt: given.negative_prompt.unwrap().optional(),
    size: given.size.unwrap().optional(),
    num_inference_steps: given.num_inference_steps.unwrap().optional(),
    duration: given.duration.unwrap().optional(),
    guidance_scale: given.guidance_scale.unwrap().optional(),
    flow_shift: given.flow_shift.unwrap().optional(),
    seed: given.seed.unwrap().optional(),
  }),
  profile: z.enum(profileNames).optional(),
  /** Whether `GET /s/{id}/image` has the start image. */
  image: z.boolean(),
});
export type SharedRequest = z.output<typeof sharedRequestSchema>;

/** A video that the studio made and uploads to share it: `POST /api/admin/videos/{id}/share`. */
export const ownVideoSchema = z.object({
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** With the seed that was used. */
  parameters: parametersSchema,
  profile: z.enum(profileNames),
  model: z.string().max(200),
  inference_ms: z.int().min(0),
  applied: appliedSchema.optional(),
  safety: safetySchema,
  share: shareBodySchema,
});
export type OwnVideo = z.output<typeof ownVideoSchema>;
