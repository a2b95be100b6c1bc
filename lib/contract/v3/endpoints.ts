import { z } from 'zod';
import { fromOtherServers } from './other-servers';
import {
  envelopeSchema,
  predictionIdSchema,
  predictionSchema,
  predictionStatuses,
  submitSchema,
  variants,
  webhookEvents,
} from './prediction';
import { ownVideoSchema, shareBodySchema, shareRecordSchema, shareSchema } from './share';
import { claimSchema, completeSchema, failSchema, heartbeatSchema, leaseSchema } from './worker';

/** Permissions of an API key. */
export const scopes = [
  'predictions:write',
  'predictions:read',
  'uploads:write',
  'webhooks:read',
  'webhooks:write',
  'admin',
] as const;
export type Scope = (typeof scopes)[number];

/** One operation of the server. Routing, validation, OpenAPI and fuzz tests read this table. */
export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Template such as `/api/v3/predictions/{id}/result`. */
  readonly path: string;
  readonly summary: string;
  /**
   * Who may call it: an API key with this scope; a worker token; an admin key or a signed-in session;
   * or anyone.
   */
  readonly access: Scope | 'worker' | 'admin' | 'anyone';
  /** The rate limit of the key that a call counts against; when absent `read`, and none where it {@link isInternal}. */
  readonly limit?: 'submit' | 'share' | 'read';
  /** Schemas of path parameters, query, body; absent where there are none. */
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** Makes a body of `body` of what clients of other servers send. */
  readonly translate?: typeof fromOtherServers;
  /** Schema of the whole response with status 200; absent if it is not JSON. */
  readonly answer?: z.ZodType;
  /** Handled by the Node server itself and not by Next.js (README, Operations that bypass Next.js). */
  readonly bypassesNext?: true;
  /** Requested often: the Node server calls the same handler as Next.js would, without it. */
  readonly frequent?: true;
}

/** Whether a path is for our own pages and workers: it is not in the public documentation, and has no rate limit. */
export function isInternal(path: string): boolean {
  return /^\/api\/(admin|worker)\//.test(path);
}

const id = z.object({ id: predictionIdSchema });
const prediction = envelopeSchema(predictionSchema);
const anything = z.record(z.string(), z.unknown());

/** Keeps page × page_size inside the integers that the database accepts as an offset. */
const maxPage = 1_000_000;

/** `next_cursor` of a list: time in milliseconds and id of the page's last prediction. */
export const cursorForm = /^(\d{1,14})\.([0-9a-f]{32})$/;

export const listBodySchema = z.object({
  page: z.int().min(1).max(maxPage).default(1).describe('Counts from 1.'),
  page_size: z.int().min(1).max(100).default(20),
  cursor: z
    .string()
    .regex(cursorForm, { message: 'cursor must be the next_cursor of a page.' })
    .optional()
    .describe(
      'A `next_cursor`: continues there, whatever was submitted meanwhile. `page` then has no effect.',
    ),
  model: z.string().optional().describe('Only this model, `{provider}/{model_family}/{variant}`.'),
  status: z
    .enum([...predictionStatuses, 'cancelled', 'timeout'])
    .optional()
    .describe('Only with this status. None has `cancelled` and `timeout` of other servers.'),
  created_after: z.iso.datetime({ offset: true }).optional().describe('ISO 8601.'),
  created_before: z.iso.datetime({ offset: true }).optional().describe('ISO 8601.'),
  include_inputs: z
    .boolean()
    .default(false)
    .describe('Include the parameters of each prediction as `input`.'),
  include_total: z
    .boolean()
    .default(false)
    .describe('Count all predictions that fit, as `total`; that takes time where there are many.'),
});
/** A switch of {@link listBodySchema} in a query. */
const queryFlag = z
  .enum(['true', 'false'])
  .default('false')
  .transform((text) => text === 'true');
/** The same as the query of a GET, where everything is text. */
const listQuerySchema = listBodySchema.extend({
  page: z.coerce.number().int().min(1).max(maxPage).default(1).describe('Counts from 1.'),
  page_size: z.coerce.number().int().min(1).max(100).default(20),
  include_inputs: queryFlag.describe('Include the parameters of each prediction as `input`.'),
  include_total: queryFlag.describe('Count all predictions that fit, as `total`.'),
});
export const uploadTicketSchema = z.object({
  filename: z.string().min(1).max(255).describe('An image or a `.safetensors` file.'),
  size: z.int().positive().describe('Bytes, exactly.'),
  content_type: z
    .string()
    .max(100)
    .optional()
    .describe('Media type; the server detects the real one from the bytes.'),
});
export const createKeySchema = z.object({
  /** A sign-in token has no scopes, and expires after an hour or when it is used. */
  kind: z.enum(['api', 'worker', 'sign-in']).default('api'),
  name: z.string().min(1).max(100),
  owner: z.string().min(1).max(60).optional(),
  scopes: z.array(z.enum(scopes)).optional(),
  shared: z.boolean().default(false),
  /** Days until it expires; absent means never. */
  expires_in_days: z.number().positive().max(36_500).optional(),
  /** Version of the terms of use that the caller has accepted. A sign-in token needs none. */
  accept_terms: z.string().max(40).optional(),
});
const keyRecordSchema = z.object({
  id: z.string(),
  kind: z.enum(['api', 'worker', 'sign-in']),
  owner: z.string(),
  name: z.string(),
  /** `kn_abcd1234…wxyz` */
  hint: z.string(),
  scopes: z.array(z.string()),
  shared: z.boolean(),
  /** Version of the terms that was accepted when it was made; null for a key of an earlier version. */
  terms_version: z.string().nullable(),
  created_at: z.string(),
  expires_at: z.string().nullable(),
  revoked_at: z.string().nullable(),
  last_used_at: z.string().nullable(),
});
export type KeyRecord = z.output<typeof keyRecordSchema>;
const workerRecordSchema = z.object({
  id: z.string(),
  owner: z.string(),
  name: z.string(),
  model: z.string(),
  precision: z.string(),
  state: z.enum(['idle', 'busy', 'paused']),
  connected_at: z.string(),
  seen_at: z.string(),
});
export type WorkerRecord = z.output<typeof workerRecordSchema>;
export const deliveryRecordSchema = z.object({
  id: z.string().describe('The same as in the header `webhook-id`.'),
  prediction_id: z.string(),
  event: z.enum(webhookEvents),
  url: z.string(),
  status: z
    .enum(['due', 'delivered', 'exhausted'])
    .describe('Exhausted: every attempt failed; a replay starts new attempts.'),
  attempts: z.int().describe('Number of attempts so far.'),
  next_at: z.string().nullable().describe('Time of the next attempt, ISO 8601.'),
  last_status: z.int().nullable().describe('HTTP status of the last response; null without one.'),
  last_answer: z.string().describe('The beginning of the last response, or the error.'),
  created_at: z.string(),
  finished_at: z.string().nullable(),
});
export type DeliveryRecord = z.output<typeof deliveryRecordSchema>;

const listAnswer = envelopeSchema(
  z.object({
    page: z.int(),
    total: z
      .int()
      .optional()
      .describe('Number of all predictions that fit, on every page; only with `include_total`.'),
    items: z.array(predictionSchema),
    next_cursor: z
      .string()
      .nullable()
      .describe('`cursor` of the request for the next ones; null after the last.'),
  }),
);
const uploaded = z.object({
  type: z.string().describe('Kind of the file, such as `image`.'),
  download_url: z.url().describe('Use it as `image`, or as the `path` of a LoRA.'),
  filename: z.string(),
  size: z.int().describe('Bytes.'),
});
const modelId = z.object({
  model_id: z.string().describe('`{provider}/{model_family}/{variant}`.'),
  inputs: anything.optional().describe('The parameters of a submission.'),
});

const submission = {
  access: 'predictions:write',
  limit: 'submit',
  params: z.object({
    provider: z
      .string()
      .describe('Together with `family`, a pair that the server is configured for.'),
    family: z.string().describe('The model family, such as `wan-2.2`.'),
    variant: z
      .enum(variants)
      .describe(
        'All take the same parameters. `-ultra-fast` is the fast profile, `5b` a model with one transformer; the others are names of hosted models.',
      ),
  }),
  query: z.object({
    webhook: z
      .string()
      .optional()
      .describe('A public https URL; an empty one is the same as none.'),
  }),
  body: submitSchema,
  translate: fromOtherServers,
  answer: prediction,
} as const;
/** What the operations that read one prediction share. */
const reading = {
  method: 'GET',
  access: 'predictions:read',
  params: id,
  answer: prediction,
  frequent: true,
} as const;

const binaryUpload = {
  method: 'POST',
  access: 'uploads:write',
  answer: envelopeSchema(uploaded),
  bypassesNext: true,
} as const;

/** What a worker's calls about its job share. */
const ofJob = {
  method: 'POST',
  access: 'worker',
  params: id,
  answer: envelopeSchema(anything),
} as const;

/** The answer to `usage`. */
export const noUsage = { per_model_usage: [], daily_usage: [], summary: { total_cost: 0 } };

const usage = {
  path: '/api/v3/user/usage_stats',
  summary: 'Empty: usage is not counted',
  access: 'predictions:read',
  answer: envelopeSchema(anything),
} as const;

/** Every operation of the API and of the worker protocol, by its name. */
export const endpoints = {
  submit: {
    ...submission,
    method: 'POST',
    path: '/api/v3/{provider}/{family}/{variant}',
    summary: 'Submit an image and a prompt; a connected tab computes the video',
  },
  legacySubmit: {
    ...submission,
    method: 'POST',
    path: '/api/v2/{provider}/{family}/{variant}',
    summary: 'The same under its older path',
  },
  result: {
    ...reading,
    path: '/api/v3/predictions/{id}/result',
    summary: 'Status of a prediction; the video’s URL once it is completed',
    query: z.object({
      wait: z.coerce
        .number()
        .min(0)
        .max(8)
        .optional()
        .describe('Seconds to wait for a final status.'),
    }),
  },
  get: {
    ...reading,
    path: '/api/v3/predictions/{id}',
    summary: 'The same as …/result',
  },
  legacyResult: {
    ...reading,
    path: '/api/v2/predictions/{id}/result',
    summary: 'The same under its older path',
  },
  list: {
    method: 'POST',
    path: '/api/v3/predictions',
    summary: 'Your predictions, newest first',
    access: 'predictions:read',
    body: listBodySchema,
    answer: listAnswer,
  },
  listByQuery: {
    method: 'GET',
    path: '/api/v3/predictions',
    summary: 'The same with its parameters in the query',
    access: 'predictions:read',
    query: listQuerySchema,
    answer: listAnswer,
  },
  remove: {
    method: 'POST',
    path: '/api/v3/predictions/delete',
    summary: 'Delete finished predictions and their videos',
    access: 'predictions:write',
    body: z.object({ ids: z.array(predictionIdSchema).max(100).describe('At most 100.') }),
    answer: envelopeSchema(z.object({ deleted_count: z.int() })),
  },
  cancel: {
    method: 'POST',
    path: '/api/v3/predictions/{id}/cancel',
    summary: 'Stop a prediction; its status becomes failed, its error "cancelled by user"',
    access: 'predictions:write',
    params: id,
    answer: prediction,
  },
  share: {
    method: 'POST',
    path: '/api/v3/predictions/{id}/share',
    summary: 'Make a public link to a video, or change what an existing one shows',
    access: 'predictions:write',
    limit: 'share',
    params: id,
    body: shareBodySchema,
    answer: envelopeSchema(shareSchema),
  },
  unshare: {
    method: 'DELETE',
    path: '/api/v3/predictions/{id}/share',
    summary: 'Revoke the public link to a video',
    access: 'predictions:write',
    params: id,
    answer: envelopeSchema(z.object({ revoked: z.boolean().describe('Whether there was one.') })),
  },
  events: {
    method: 'GET',
    path: '/api/v3/predictions/{id}/events',
    summary: 'Status, steps and previews as they happen (server-sent events)',
    access: 'predictions:read',
    params: id,
  },
  uploadTicket: {
    method: 'POST',
    path: '/api/v3/media/uploads',
    summary: 'Get a URL to upload an image or a LoRA to',
    access: 'uploads:write',
    body: uploadTicketSchema,
    answer: envelopeSchema(
      z.object({
        download_url: z.url(),
        upload: z.object({
          method: z.literal('PUT'),
          url: z.url(),
          headers: z.record(z.string(), z.string()),
        }),
      }),
    ),
  },
  uploadBinary: {
    ...binaryUpload,
    path: '/api/v3/media/upload/binary',
    summary: 'Upload an image or a LoRA as multipart field `file`',
  },
  uploadBinaryLegacy: {
    ...binaryUpload,
    path: '/api/v2/media/upload/binary',
    summary: 'The same under its older path',
  },
  models: {
    method: 'GET',
    path: '/api/v3/models',
    summary: 'The available models: parameters, and how many workers serve them',
    access: 'predictions:read',
    answer: envelopeSchema(
      z.array(
        z.looseObject({
          model_id: z.string().describe('`{provider}/{model_family}/{variant}`.'),
          workers: z
            .int()
            .min(0)
            .describe('Connected workers that take jobs of this key and are not paused.'),
          served_by: z
            .array(z.object({ model: z.string(), workers: z.int().min(0) }))
            .describe(
              'The models that may serve it, the preferred ones first, each with its workers among them; `*` stands for any.',
            ),
        }),
      ),
    ),
  },
  balance: {
    method: 'GET',
    path: '/api/v3/balance',
    summary: 'A constant: this server has no prices',
    access: 'predictions:read',
    answer: envelopeSchema(z.object({ balance: z.number() })),
  },
  pricing: {
    method: 'POST',
    path: '/api/v3/model/pricing',
    summary: 'Zero',
    access: 'predictions:read',
    body: modelId,
    answer: envelopeSchema(z.object({ unit_price: z.number() })),
  },
  price: {
    method: 'POST',
    path: '/api/v3/model/price',
    summary: 'Zero',
    access: 'predictions:read',
    body: modelId,
    answer: envelopeSchema(z.object({ price: z.number(), discounted_price: z.number() })),
  },
  billings: {
    method: 'POST',
    path: '/api/v3/billings/search',
    summary: 'Empty: nothing is billed',
    access: 'predictions:read',
    body: listBodySchema.pick({ page: true }),
    answer: envelopeSchema(z.object({ page: z.int(), total: z.int(), items: z.array(anything) })),
  },
  usage: { ...usage, method: 'GET' },
  usageByBody: { ...usage, method: 'POST' },
  webhookSecret: {
    method: 'GET',
    path: '/api/v3/webhook/secret',
    summary: 'The secret that signs your webhooks',
    access: 'webhooks:read',
    answer: envelopeSchema(z.object({ secret: z.string() })),
  },
  deliveries: {
    method: 'GET',
    path: '/api/v3/webhook/deliveries',
    summary: 'Your webhooks, newest first: status, attempts, last response',
    access: 'webhooks:read',
    query: z.object({
      page: z.coerce.number().int().min(1).max(maxPage).default(1).describe('Counts from 1.'),
      page_size: z.coerce.number().int().min(1).max(100).default(20),
      status: z.enum(['due', 'delivered', 'exhausted']).optional(),
    }),
    answer: envelopeSchema(z.object({ page: z.int(), items: z.array(deliveryRecordSchema) })),
  },
  replay: {
    method: 'POST',
    path: '/api/v3/webhook/deliveries/{id}/replay',
    summary: 'Send a webhook again, with a new set of attempts',
    access: 'webhooks:write',
    params: z.object({ id: z.string().regex(/^msg_[0-9a-f]{32}$/) }),
    answer: envelopeSchema(deliveryRecordSchema),
  },

  // Keys and workers: called by the Keys page, and by `npm run keys` while the server runs
  signIn: {
    method: 'POST',
    path: '/api/admin/session',
    summary: 'Exchange a sign-in token or an admin key for a session cookie',
    access: 'anyone',
    body: z.object({ token: z.string().min(1).max(200) }),
    answer: envelopeSchema(z.object({ owner: z.string() })),
  },
  signOut: {
    method: 'DELETE',
    path: '/api/admin/session',
    summary: 'End the session',
    access: 'anyone',
    answer: envelopeSchema(z.object({})),
  },
  listKeys: {
    method: 'GET',
    path: '/api/admin/keys',
    summary: 'Keys and worker tokens of the owner',
    access: 'admin',
    answer: envelopeSchema(z.object({ owner: z.string(), keys: z.array(keyRecordSchema) })),
  },
  createKey: {
    method: 'POST',
    path: '/api/admin/keys',
    summary: 'Create a key or a worker token; the response is the only time it is shown',
    access: 'admin',
    body: createKeySchema,
    answer: envelopeSchema(z.object({ key: z.string(), record: keyRecordSchema })),
  },
  revokeKey: {
    method: 'DELETE',
    path: '/api/admin/keys/{id}',
    summary: 'Revoke a key immediately',
    access: 'admin',
    params: z.object({ id: z.string().min(1).max(20) }),
    answer: envelopeSchema(keyRecordSchema),
  },
  listWorkers: {
    method: 'GET',
    path: '/api/admin/workers',
    summary: 'Connected workers of the owner',
    access: 'admin',
    answer: envelopeSchema(z.object({ workers: z.array(workerRecordSchema) })),
  },
  listShares: {
    method: 'GET',
    path: '/api/admin/shares',
    summary: 'Open links to videos of the owner, newest first',
    access: 'admin',
    answer: envelopeSchema(z.object({ shares: z.array(shareRecordSchema) })),
  },
  revokeShare: {
    method: 'DELETE',
    path: '/api/admin/shares/{id}',
    summary: 'Revoke a link; a video that the studio uploaded for it is deleted',
    access: 'admin',
    params: z.object({ id: shareSchema.shape.id }),
    answer: envelopeSchema(z.object({ revoked: z.boolean() })),
  },

  // The worker protocol
  workerMe: {
    method: 'GET',
    path: '/api/worker/me',
    summary: 'Which jobs this token may claim',
    access: 'worker',
    answer: envelopeSchema(anything),
    frequent: true,
  },
  shareOwnVideo: {
    method: 'POST',
    path: '/api/admin/videos/{id}/share',
    summary:
      'Store an uploaded video of the studio as a result of the owner, and make its public link',
    access: 'admin',
    limit: 'share',
    params: id,
    body: ownVideoSchema,
    answer: envelopeSchema(shareSchema),
  },
  unshareOwnVideo: {
    method: 'DELETE',
    path: '/api/admin/videos/{id}/share',
    summary: 'Delete a shared video of the studio from the server, and its link with it',
    access: 'admin',
    params: id,
    answer: envelopeSchema(z.object({ revoked: z.boolean() })),
  },
  claim: {
    method: 'POST',
    path: '/api/worker/claim',
    summary: 'Claim the next job that this worker can run',
    access: 'worker',
    body: claimSchema,
    answer: envelopeSchema(anything),
    frequent: true,
  },
  heartbeat: {
    ...ofJob,
    path: '/api/worker/jobs/{id}/heartbeat',
    summary: 'Alive, and this far',
    body: heartbeatSchema,
    frequent: true,
  },
  lease: {
    ...ofJob,
    path: '/api/worker/jobs/{id}/lease',
    summary: 'Whether a lease is still valid; does not extend it',
    body: leaseSchema,
  },
  complete: {
    ...ofJob,
    path: '/api/worker/jobs/{id}/complete',
    summary: 'The uploaded video is the result',
    body: completeSchema,
  },
  fail: {
    ...ofJob,
    path: '/api/worker/jobs/{id}/fail',
    summary: 'Report that the attempt failed, and why',
    body: failSchema,
  },
  release: {
    ...ofJob,
    path: '/api/worker/jobs/{id}/release',
    summary: 'Give the lease back; the attempt does not count',
    body: leaseSchema,
  },
} as const satisfies Record<string, Endpoint>;

/** Name of an operation, its `operationId` in OpenAPI. */
export type OperationId = keyof typeof endpoints;
