import { z } from 'zod';
import { appliedSchema } from '../applied';
import type { skipReasons } from '../format';
import { backends } from '../kernel-setting';
import { loraBaseOf, type Noise } from '../lora-files';
import { precisions } from '../manifest-parts';
import { numberSchemas } from '../parameter-schemas';
import { phases } from '../progress';
import { promptOptimizationSchema } from '../prompt-optimization';
import { laterParameters, maxSeed, type Parameters, parameterRanges, sizes } from '../request';
import { safetySchema } from '../safety';
import { pictureSchema } from './share';

/**
 * The worker protocol between a connected tab and the relay: claim, heartbeat, upload, complete, fail and
 * release, all over HTTP. A claim is held while there is no job. Every call carries
 * `Authorization: Bearer <worker token>`.
 */

/** The needs of jobs with LoRAs, by the base that these were made for. */
const loraNeeds = { 'Wan2.2-TI2V-5B': 'lora_5b', 'Wan 14B': 'lora_14b' } as const;
export type LoraNeed = (typeof loraNeeds)[keyof typeof loraNeeds];

/** Features that not every worker has: only workers that declare such a feature get a job that asks for it. */
export const needs = [...laterParameters, ...Object.values(loraNeeds)] as const;
export type Need = (typeof needs)[number];

/** What a LoRA needs of a worker, by the shapes of its tensors; null where they are of no known base. */
export function needOfLora(shapes: Iterable<readonly number[]>): LoraNeed | null {
  const needed: Readonly<Record<string, LoraNeed>> = loraNeeds;
  for (const shape of shapes) {
    const base = loraBaseOf(shape);
    if (base !== undefined) return needed[base] ?? null;
  }
  return null;
}

/** Whether jobs with LoRAs have this need. */
export function isLoraNeed(need: Need): need is LoraNeed {
  return Object.values<Need>(loraNeeds).includes(need);
}

/** Abilities of a worker: claims are matched against them. */
const workerDeclarationSchema = z.object({
  /** Drawn once per tab; 32 hex characters. */
  worker_id: z.string().regex(/^[0-9a-f]{32}$/),
  /** For people: "Chrome on Linux", or what its owner typed. */
  name: z.string().max(100),
  /** Id of the model's manifest, such as `wan2.2-ti2v-5b`. */
  model: z.string().min(1).max(100),
  precision: z.enum(precisions),
  backend: z.enum(backends),
  sizes: z.array(z.enum(sizes)).min(1).max(sizes.length),
  loras: z.boolean(),
  /** Longest video it takes, in seconds. */
  max_duration: numberSchemas.duration.default(parameterRanges.duration.max),
  /** Which {@link needs} of jobs it meets; a tab that does not say so meets none. */
  knows: z.array(z.string().max(40)).max(20).default([]),
  /**
   * `ready`: it has the downloaded checker. `demonstration`: its model is the bundled one, whose videos the
   * quick checker judges. `none`: it is not given jobs that ask for the check.
   */
  safety_checker: z.enum(['ready', 'demonstration', 'none']).default('none'),
  /** Whether it has a language model for prompts. */
  prompt_optimizer: z.boolean().default(false),
});
export type WorkerDeclaration = z.output<typeof workerDeclarationSchema>;

/** Longest time that a claim is held, in seconds: proxies in front usually end requests after 30 to 60. */
export const longestHoldSeconds = 25;

/** `POST /api/worker/claim`: a worker asks for a job. */
export const claimSchema = workerDeclarationSchema.extend({
  /** How long the request is held while there is no job; 0 for an answer at once. */
  wait_seconds: z.number().min(0).max(longestHoldSeconds).default(longestHoldSeconds),
  /** The worker is there, and takes no job now. */
  paused: z.boolean().default(false),
});
export type Claim = z.input<typeof claimSchema>;

/** Why waiting jobs were not given, each with how many there are. */
export type SkipReason = keyof typeof skipReasons;

/** How an adapter of a job is to be had. */
export type WorkerLora = {
  /** As the caller wrote it: named in messages. */
  readonly path: string;
  readonly scale: number;
  /** The transformer that it is for, where the caller said so. */
  readonly noise?: Noise;
} & (
  | /** Fetched from the hub by the worker itself. `file` is absent for a repository's one adapter. */ {
      readonly from: 'hub';
      readonly repository: string;
      readonly file: string | null;
    }
  | /** A signed address of the relay. */ { readonly from: 'relay'; readonly url: string }
);

/** An image of a job: its signed address on the relay's own origin. */
export interface WorkerImage {
  readonly url: string;
  readonly type: string;
  readonly bytes: number;
}

/** A claimed job: one attempt under one lease. */
export interface WorkerJob {
  readonly id: string;
  /** Counts from 1. */
  readonly attempt: number;
  /** Fencing token: every later call names it. */
  readonly lease_token: string;
  /** ISO 8601; a heartbeat extends it. */
  readonly lease_until: string;
  /** When the attempt ends whatever happens, ISO 8601. */
  readonly deadline: string;
  /** Time between two heartbeats. */
  readonly heartbeat_interval_ms: number;
  /** `{provider}/{model_family}/{variant}`. */
  readonly model: string;
  /** With an explicit seed. */
  readonly parameters: Parameters;
  readonly enable_prompt_optimizer: boolean;
  readonly enable_safety_checker: boolean;
  readonly image: WorkerImage;
  /** Absent where the end is left to the model. */
  readonly last_image?: WorkerImage;
  readonly loras: readonly WorkerLora[];
}

/** Answer to a claim. */
export interface ClaimAnswer {
  readonly job: WorkerJob | null;
  /** Only where no job was given. */
  readonly skipped: Partial<Record<SkipReason, number>>;
  /** When to ask again: 0 for at once, more where the claim could not be held. */
  readonly retry_after_ms: number;
}

/** What a worker relies on in the answer to its claim; it validates the parameters when it begins. */
export const claimAnswerSchema = z.object({
  job: z
    .object({
      id: z.string().regex(/^[0-9a-f]{32}$/),
      attempt: z.int().min(1),
      lease_token: z.string().min(1).max(100),
      heartbeat_interval_ms: z.number().min(1).max(600_000),
      /** Its last part names the profile. */
      model: z.string().min(1),
      parameters: z.object({
        size: z.enum(sizes),
        duration: z.number(),
        num_inference_steps: z.int().min(1),
      }),
      image: z.object({ url: z.string().min(1) }),
      last_image: z.object({ url: z.string().min(1) }).optional(),
      loras: z.array(z.object({ path: z.string(), from: z.enum(['hub', 'relay']) })),
    })
    .nullable(),
  skipped: z.record(z.string(), z.int().min(0)),
  retry_after_ms: z.int().min(0).max(3_600_000),
});

/** Largest number of a 32-bit column. */
const maxInteger = 2_147_483_647;
const lease = { lease_token: z.string().min(1).max(100) };

/** `POST /api/worker/jobs/{id}/heartbeat`: the worker lives and is this far. */
export const heartbeatSchema = z.object({
  ...lease,
  phase: z.enum(phases).nullable().default(null),
  step: z.int().min(0).max(maxInteger).default(0),
  steps: z.int().min(0).max(maxInteger).default(0),
  clip: z.int().min(0).max(maxInteger).default(0),
  clips: z.int().min(1).max(maxInteger).default(1),
  seconds_remaining: z.number().min(0).nullable().default(null),
  /** Data URI of a small picture; at most about 48 kB of text. */
  preview: z
    .string()
    .max(64_000)
    .regex(/^data:image\/(webp|jpeg|png);base64,[A-Za-z0-9+/=]+$/)
    .optional(),
});
export type Heartbeat = z.output<typeof heartbeatSchema>;

/**
 * Answer to a heartbeat and to `POST /api/worker/jobs/{id}/lease` (does my lease still stand?). A job that was
 * cancelled, or that another worker has, answers 409 `LEASE_LOST` instead: stop the work.
 */
export interface LeaseAnswer {
  readonly lease_until: string;
  readonly deadline: string;
}
export const leaseSchema = z.object(lease);

/**
 * `POST /api/worker/jobs/{id}/complete`, after the video was sent to
 * `PUT /api/worker/jobs/{id}/output?lease_token=…&sha256=…`; sending the same file again is no error.
 */
export const completeSchema = z.object({
  ...lease,
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: z.int().positive(),
  seed: z.int().min(0).max(maxSeed),
  inference_ms: z.int().min(0).max(maxInteger),
  /** Part of `inference_ms` for the denoising steps; absent from workers of versions that did not tell. */
  sampling_ms: z.int().min(0).max(maxInteger).optional(),
  /** Part of `inference_ms` for decoding, encoding and check of frames; absent likewise. */
  decode_ms: z.int().min(0).max(maxInteger).optional(),
  /** What the profile made of the parameters; absent likewise. */
  applied: appliedSchema.optional(),
  model: z.string().max(100),
  precision: z.enum(precisions),
  encoder: z.string().max(40),
  /** What the safety checker found; `off` where the job did not ask for it. */
  safety: safetySchema,
  /** Null where the job did not ask for an optimised prompt. */
  prompt_optimization: promptOptimizationSchema.nullable().default(null),
  /** The frame in the middle of the video, unless it is flagged, and its images as they were framed. */
  pictures: z
    .object({ poster: pictureSchema, image: pictureSchema, last_image: pictureSchema })
    .optional(),
});
export type Completion = z.output<typeof completeSchema>;

/** `POST /api/worker/jobs/{id}/fail`. */
export const failSchema = z.object({
  ...lease,
  /** An `ErrorCode` of Kinora. */
  code: z.string().max(60),
  message: z.string().max(500),
  /** Whether another attempt may succeed: a lost GPU may, an unfit LoRA may not. */
  retryable: z.boolean(),
});
export type Failure = z.output<typeof failSchema>;

/** `GET /api/worker/me`: what this token would take. */
export interface WorkerIdentity {
  readonly token: string;
  readonly owner: string;
  /** Whether it also takes jobs of other owners who allow it. */
  readonly shared: boolean;
  readonly accepts_models: readonly string[];
  readonly waiting: number;
}
