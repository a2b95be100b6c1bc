import { z } from 'zod';
import { appliedSchema } from '../applied';
import { type ProfileName, profileNames } from '../profile-names';
import { type Parameters, parametersSchema } from '../request';
import { safetySchema } from '../safety';
import { predictionIdSchema } from './prediction';

/** Seconds of a year: the longest life of a link. */
const maxShareSeconds = 31_536_000;

/** What a shared page tells besides the video; nothing unless it is ticked. The video file tells nothing. */
const includeSchema = z.strictObject({
  prompt: z.boolean().default(false).describe('The prompt and the negative prompt.'),
  settings: z
    .boolean()
    .default(false)
    .describe('Size, length, steps, seed, and adapters of the hub.'),
  image: z
    .boolean()
    .default(false)
    .describe(
      'The start image as it was framed, also as the poster where the video came without one, and the end image.',
    ),
});

/**
 * Body of `POST /api/v3/predictions/{id}/share`. Fields are exact: one that is not understood could have been meant
 * to hide something. A second request changes what it names.
 */
export const shareBodySchema = z.strictObject({
  expires_in_seconds: z
    .int()
    .min(60)
    .max(maxShareSeconds)
    .optional()
    .describe('A new link without it ends when the video expires, which is its end in any case.'),
  include: includeSchema
    .optional()
    .describe('What the page shows besides the video; a new link shows nothing.'),
  allow_index: z
    .boolean()
    .optional()
    .describe('Let search engines list the page; a new link does not.'),
});
export type ShareBody = z.output<typeof shareBodySchema>;
/** The parts of a request that are shown. */
export type ShareInclude = z.output<typeof includeSchema>;

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

const { loras: _, ...parameters } = parametersSchema.shape;
type Parameter = keyof typeof parameters;
// Without the defaults, which would take the place of what is absent.
const sharedParametersSchema = z.object(
  Object.fromEntries(
    Object.entries(parameters).map(([name, schema]) => [
      name,
      (schema instanceof z.ZodDefault ? schema.unwrap() : schema).optional(),
    ]),
  ) as {
    [Name in Parameter]: z.ZodOptional<WithoutDefault<(typeof parameters)[Name]>>;
  },
);
type WithoutDefault<Schema extends z.ZodType> =
  Schema extends z.ZodDefault<infer Inner extends z.ZodType> ? Inner : Schema;

/**
 * The request of a shared video as far as its owner shows it, for the form of the studio: `GET /s/{id}/request`.
 * Absent fields are not shown. Adapters are not in it, because a form needs their files.
 */
export const sharedRequestSchema = z.object({
  parameters: sharedParametersSchema,
  profile: z.enum(profileNames).optional(),
  /** Whether `GET /s/{id}/image` has the start image. */
  image: z.boolean(),
  /** Whether `GET /s/{id}/last-image` has the end image; absent where it does not. */
  last_image: z.literal(true).optional(),
});
export type SharedRequest = z.output<typeof sharedRequestSchema>;

/**
 * The request of a video as far as it is shown.
 *
 * @param run with the seed that was used
 */
export function sharedRequestOf(
  run: { readonly parameters: Omit<Parameters, 'loras'>; readonly profile: ProfileName },
  include: ShareInclude,
): SharedRequest {
  // The second belongs to the end image.
  const { prompt, negative_prompt, last_image_at, ...settings } = run.parameters;
  return {
    // Without what is none of them.
    parameters: sharedRequestSchema.shape.parameters.parse({
      ...(include.prompt && { prompt, negative_prompt }),
      ...(include.settings && settings),
      ...(include.image && last_image_at !== undefined && { last_image_at }),
    }),
    ...(include.settings && { profile: run.profile }),
    image: include.image,
  };
}

/** A JPEG for the page of a link, in base64. */
export const pictureSchema = z.base64().max(500_000).optional();

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
  /** A frame: the picture that other sites show of the link. Of a flagged video it is not kept. */
  poster: pictureSchema,
  share: shareBodySchema,
});
export type OwnVideo = z.output<typeof ownVideoSchema>;
