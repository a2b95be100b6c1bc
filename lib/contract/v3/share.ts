import { z } from 'zod';
import type { Size } from '../request';
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

/** The request of a shared video as far as its owner shows it: `GET /s/{id}/request`. */
export interface SharedRequest {
  readonly parameters: {
    readonly prompt?: string;
    readonly negative_prompt?: string;
    readonly loras?: readonly { readonly path: string; readonly scale: number }[];
    readonly size?: Size;
    readonly num_inference_steps?: number;
    readonly duration?: number;
    readonly guidance_scale?: number;
    readonly flow_shift?: number;
    readonly seed?: number;
  };
  /** Whether `GET /s/{id}/image` has the start image. */
  readonly image: boolean;
}
