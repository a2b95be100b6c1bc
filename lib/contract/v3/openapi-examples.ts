import type { z } from 'zod';
import { parameterRanges } from '../parameters';
import type { deliveryRecordSchema, listBodySchema, uploadTicketSchema } from './endpoints';
import { noUsage } from './endpoints';
import type { ApiErrorBody } from './errors';
import { ApiError } from './errors';
import type { PublicOperation } from './openapi-texts';
import {
  type ApiPrediction,
  predictionCodes,
  type SubmitInput,
  type WebhookBody,
} from './prediction';
import type { Share } from './share';

const id = '6f1c2b9e0d7a4c35b8e1f2a3d4c5b6a7';
const model = 'kinora/wan-2.2/i2v-720p-lora';
const get = `https://kinora.example/api/v3/predictions/${id}/result`;
const video = `https://kinora.example/files/video/${id}.mp4?expires=1772965230&signature=5f0c9e2b7d41`;
const uploads = 'https://kinora.example/files/uploads/3d1a7c52e9b84f06a1c2d3e4f5a6b7c8';
const putTo = `${uploads}?expires=1772364030&signature=c47d10a93e58`;
const upload = `${uploads}/lighthouse.png?expires=1772965230&signature=09b3e86f1c24`;
const created_at = '2026-03-01T10:20:30.400Z';

const submission: SubmitInput = {
  image: 'https://images.example/lighthouse.jpg',
  prompt: 'Waves roll towards the lighthouse, its lamp turns, evening light',
  loras: [{ path: 'owner/name', scale: 0.8 }],
  size: '1280*720',
  num_inference_steps: 30,
  duration: 5,
  seed: 42,
};

const safety = {
  status: 'clear',
  score: 0.02,
  model: 'Marqo/nsfw-image-detection-384',
  sha256: '3b1e5f7c9a20d4f68b7c1e02a5d93f4c6e8b0a7d1f25c39e4b6a8d0c2f17e593',
} as const;

const input = {
  prompt: submission.prompt,
  negative_prompt: '',
  loras: submission.loras ?? [],
  size: '1280*720',
  num_inference_steps: 30,
  duration: 5,
  guidance_scale: 5,
  flow_shift: 5,
  seed: 42,
  image: submission.image,
  enable_prompt_optimizer: false,
  enable_safety_checker: true,
};

const waiting: ApiPrediction = {
  id,
  model,
  outputs: [],
  urls: { get },
  has_nsfw_contents: [],
  status: 'created',
  created_at,
  error: '',
  timings: { inference: 0 },
  seed: 42,
  progress: null,
  queue_position: 0,
  waiting_for: 'queue',
};

const completed: ApiPrediction = {
  id,
  model,
  outputs: [video],
  urls: { get },
  has_nsfw_contents: [false],
  safety,
  status: 'completed',
  created_at,
  error: '',
  timings: { inference: 412_345, sampling: 301_220, decode: 98_410 },
  applied: {
    steps: 30,
    guidance_scale: 5,
    guided_steps: 30,
    scheduler: 'unipc',
    flow_shift: 5,
    adapter: null,
    decoder: 'full',
    cache: 'none',
    unused: [],
  },
  seed: 42,
  progress: null,
  waiting_for: null,
  input,
};

const cancelled: ApiPrediction = {
  ...waiting,
  status: 'failed',
  error: 'cancelled by user',
  code: predictionCodes.cancelled,
  waiting_for: null,
};
delete cancelled.queue_position;

const delivery: z.output<typeof deliveryRecordSchema> = {
  id: 'msg_0d7a4c356f1c2b9eb8e1f2a3d4c5b6a7',
  prediction_id: id,
  event: 'completed',
  url: 'https://app.example/hooks/kinora',
  status: 'exhausted',
  attempts: 4,
  next_at: null,
  last_status: 500,
  last_answer: 'Internal Server Error',
  created_at: '2026-03-01T10:28:02.120Z',
  finished_at: '2026-03-01T10:35:21.007Z',
};

/** Example of a webhook's body. */
export const webhookExample: WebhookBody = {
  id,
  model,
  input,
  outputs: [video],
  urls: { get },
  has_nsfw_contents: [false],
  safety,
  status: 'completed',
  created_at,
  error: '',
  seed: 42,
};

const { min, max } = parameterRanges.num_inference_steps;
const outOfRange = `num_inference_steps must be a whole number from ${min} to ${max}.`;

/** Example of an error response: a submission with too many steps. */
export const errorExample: ApiErrorBody = new ApiError('INVALID_PARAMETER', outOfRange, {
  details: [{ field: 'num_inference_steps', message: outOfRange }],
}).toBody('1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed');

/** Example of the response to a prompt that is always refused. */
export const refusalExample: ApiErrorBody = new ApiError('PROMPT_REFUSED').toBody(
  errorExample.request_id,
);

const ticket: z.input<typeof uploadTicketSchema> = {
  filename: 'lighthouse.png',
  size: 1_240_033,
  content_type: 'image/png',
};
const list: z.input<typeof listBodySchema> = { page: 1, page_size: 20, status: 'completed' };
const { input: _, ...withoutInput } = completed;
const listed = { page: 1, items: [withoutInput], next_cursor: null };
const quoted = { model_id: model, inputs: { duration: 5 } };
const uploaded = {
  type: 'image',
  download_url: upload,
  filename: 'lighthouse.png',
  size: 1_240_033,
};

const shared: Share = {
  id: '5f0d9c2b7a1e4863b2d4f6a8c0e1d3b5',
  url: 'https://kinora.example/s/5f0d9c2b7a1e4863b2d4f6a8c0e1d3b5',
  prediction_id: id,
  include: { prompt: true, settings: true, image: false },
  allow_index: false,
  created_at: '2026-03-01T10:30:00.000Z',
  expires_at: '2026-03-02T10:30:00.000Z',
};

/** One example of the body and of the `data` of the response, by operation. */
export const operationExamples: Readonly<
  Record<PublicOperation, { readonly body?: unknown; readonly data?: unknown }>
> = {
  submit: { body: submission, data: waiting },
  legacySubmit: { body: submission, data: waiting },
  result: { data: completed },
  get: { data: completed },
  legacyResult: { data: completed },
  list: { body: list, data: listed },
  listByQuery: { data: listed },
  remove: { body: { ids: [id] }, data: { deleted_count: 1 } },
  cancel: { data: cancelled },
  share: {
    body: { expires_in_seconds: 86_400, include: { prompt: true, settings: true } },
    data: shared,
  },
  unshare: { data: { revoked: true } },
  events: {},
  uploadTicket: {
    body: ticket,
    data: {
      download_url: upload,
      upload: { method: 'PUT', url: putTo, headers: { 'Content-Type': 'image/png' } },
    },
  },
  uploadBinary: { data: uploaded },
  uploadBinaryLegacy: { data: uploaded },
  models: {
    data: [
      {
        model_id: model,
        name: 'Wan 2.2 image to video, 720p, with LoRA',
        type: 'image-to-video',
        base_price: 0,
        description: 'One still image and a prompt become a 720p video.',
        workers: 1,
        served_by: [
          { model: 'wan2.2-ti2v-5b', workers: 1 },
          { model: 'wan2.2-i2v-a14b', workers: 0 },
        ],
      },
    ],
  },
  balance: { data: { balance: 1_000_000 } },
  pricing: { body: quoted, data: { unit_price: 0 } },
  price: { body: quoted, data: { price: 0, discounted_price: 0 } },
  billings: { body: { page: 1 }, data: { page: 1, total: 0, items: [] } },
  usage: { data: noUsage },
  usageByBody: { data: noUsage },
  webhookSecret: { data: { secret: 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=' } },
  deliveries: { data: { page: 1, items: [delivery] } },
  replay: {
    data: { ...delivery, status: 'due', attempts: 0, next_at: created_at, finished_at: null },
  },
};

/** Example of an event stream. */
export const eventsExample = [
  `event: status\ndata: ${JSON.stringify({ ...waiting, status: 'processing', waiting_for: null })}`,
  'event: step\ndata: {"phase":"denoise","step":12,"steps":30,"seconds_remaining":240}',
  'event: preview\ndata: {"step":12,"image":"data:image/webp;base64,UklGRg=="}',
  `event: status\ndata: ${JSON.stringify(completed)}`,
  '',
].join('\n\n');
