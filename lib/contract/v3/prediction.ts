import { z } from 'zod';

/** The four states of the API; the last two are terminal. */
export const predictionStatuses = ['created', 'processing', 'completed', 'failed'] as const;
export type PredictionStatus = (typeof predictionStatuses)[number];

/** 32 lower-case hex characters. */
export const predictionIdSchema = z
  .string()
  .regex(/^[0-9a-f]{32}$/)
  .describe('32 lower-case hex characters.');

/** Codes of a prediction that failed or that was not waited for (README.md, 9). */
export const predictionCodes = {
  contentModeration: 1200,
  missingParameter: 1400,
  invalidParameter: 1401,
  mediaUnavailable: 1402,
  executionFailed: 1403,
  internal: 5000,
  unavailable: 5003,
  timeout: 5004,
} as const;
export type PredictionCode = (typeof predictionCodes)[keyof typeof predictionCodes];

/** A prediction as the API tells it. */
export const predictionSchema = z.object({
  id: predictionIdSchema,
  model: z.string().describe('`{provider}/{model_family}/{variant}` as it was asked for.'),
  outputs: z.array(z.url()).describe('One URL per video; empty unless completed.'),
  urls: z.object({ get: z.url().describe('Where to read this prediction again.') }),
  has_nsfw_contents: z.array(z.boolean()).describe('One per output.'),
  status: z
    .enum(predictionStatuses)
    .describe('Moves from created to processing, then completed or failed; the last two stay.'),
  created_at: z.iso.datetime({ precision: 3 }).describe('UTC, with milliseconds.'),
  error: z.string().describe('One sentence; empty where there is none.'),
  code: z.int().optional().describe('Why it failed, or 5004 when a synchronous wait ended.'),
  timings: z.object({ inference: z.int().min(0).describe('Milliseconds that the video took.') }),
  queue_position: z
    .int()
    .min(0)
    .optional()
    .describe('How many predictions come before this one; only while it waits.'),
  input: z.record(z.string(), z.unknown()).optional().describe('Only where it was asked for.'),
});
export type ApiPrediction = z.output<typeof predictionSchema>;

/** What every answer with status 200 looks like. */
export function envelopeSchema<Data extends z.ZodType>(data: Data) {
  return z.object({ code: z.literal(200), message: z.literal('success'), data });
}

/** Body of a webhook: one per finished prediction. */
export const webhookBodySchema = z.object({
  id: predictionIdSchema,
  model: z.string().describe('`{provider}/{model_family}/{variant}` as it was asked for.'),
  input: z
    .record(z.string(), z.unknown())
    .describe('The parameters, every default filled in; the image as a URL.'),
  outputs: z.array(z.url()).optional().describe('Only when completed.'),
  urls: z.object({ get: z.url().describe('Where to read this prediction again.') }),
  has_nsfw_contents: z.array(z.boolean()).describe('One per output.'),
  status: z.enum(['completed', 'failed']),
  created_at: z.iso.datetime({ precision: 3 }).describe('UTC, with milliseconds.'),
  error: z.string().describe('One sentence; empty where there is none.'),
});
export type WebhookBody = z.output<typeof webhookBodySchema>;

/** Events of `GET …/events` (server-sent): the type is the event's name, the rest its data. */
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
