import { BlobSource, Input, type MetadataTags, MP4 } from 'mediabunny';
import { z } from 'zod';
import { version } from '../../package.json';
import {
  type Applied,
  appliedSchema,
  type Backend,
  backends,
  type Framing,
  framingSchema,
  KinoraError,
  type PromptOptimization,
  parametersSchema,
  profileNames,
  promptOptimizationSchema,
  type Safety,
  safetySchema,
} from '../contract';
import type { RunRequest } from '../contract/run';
import { sharedRequestSchema } from '../contract/v3/share';

/** A part of a video that was cut or joined, and what it was made of. */
const partSchema = z.object({
  id: z.string().min(1),
  prompt: z.string(),
  seed: z.number(),
  /** Frames, from 0; `to` is the frame after the last one. */
  from: z.int().min(0),
  to: z.int().min(1),
});

/** Largest start or end image in a file, in bytes of its JPEG. */
export const maxStartImageBytes = 200_000;

const startImageSchema = z.base64().max(Math.ceil(maxStartImageBytes / 3) * 4);

/** What tells one LoRA file from others, and where it is found. */
const loraFileSchema = z.object({
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** An address; absent for a file of the device that made the video. */
  source: z.string().optional(),
});

/**
 * How a video was made: the request's parameters under their own names, model, backend and time, and what
 * the safety checker found. Stored as JSON in the MP4's comment. `prompt` is what was sent; where an
 * optimisation was asked for, `prompt_optimization.text` is what the model was given.
 */
const videoMetadataSchema = parametersSchema.extend({
  /** As drawn: never −1. */
  seed: parametersSchema.shape.seed.unwrap().min(0),
  app: z.literal('kinora'),
  version: z.string(),
  /** The prediction's id. */
  id: z.string().min(1),
  /** Id of the model's manifest. */
  model: z.string().min(1),
  /** Absent in videos of versions without variants. */
  profile: z.enum(profileNames).default('standard'),
  /** Licence of the model; absent in videos of versions that did not store it. */
  licence: z.object({ name: z.string(), url: z.url().optional() }).optional(),
  /** Absent where the image is centred and fills the frame. */
  framing: framingSchema.optional(),
  /** The start image, a JPEG in base64. Absent where the file is not to hold it. */
  start_image: startImageSchema.optional(),
  /** How the end image lies in the frame; absent where the end was left to the model. */
  last_framing: framingSchema.optional(),
  /** The end image, as `start_image`. */
  last_image: startImageSchema.optional(),
  /** The files of `loras`, in the same order; absent in videos of versions that did not store them. */
  lora_files: z.array(loraFileSchema).optional(),
  /** What the profile made of the parameters; absent in videos of versions that did not store it. */
  applied: appliedSchema.optional(),
  backend: z.enum(backends),
  /** Absent in videos of versions without a safety checker. */
  safety: safetySchema.optional(),
  /** Absent where no optimisation was asked for. */
  prompt_optimization: promptOptimizationSchema.optional(),
  /**
   * Of which frames of which videos a file was cut, joined, enlarged or interpolated, in order: from the frame `from`
   * to before the frame `to`. Absent in a video as it was made. The other fields are those of the first part.
   */
  parts: z.array(partSchema).min(1).optional(),
  /** ISO 8601, UTC. */
  created_at: z.iso.datetime(),
});
export type VideoMetadata = z.output<typeof videoMetadataSchema>;

/** The metadata of a prediction's video. */
export function createVideoMetadata(
  prediction: Omit<RunRequest, 'options'> & {
    readonly id: string;
    readonly backend: Backend;
    readonly createdAt: string;
    readonly licence?: VideoMetadata['licence'];
    readonly framing?: Framing | undefined;
    readonly startImage?: string | undefined;
    readonly lastFraming?: Framing | undefined;
    readonly lastImage?: string | undefined;
    readonly loraFiles?: VideoMetadata['lora_files'];
    readonly applied?: Applied;
    readonly safety?: Safety;
    readonly promptOptimization?: PromptOptimization | null;
  },
): VideoMetadata {
  const { id, model, profile, backend, parameters, createdAt } = prediction;
  const { licence, framing, startImage, lastFraming, lastImage } = prediction;
  const { loraFiles, applied, safety, promptOptimization } = prediction;
  return {
    app: 'kinora',
    version,
    id,
    model,
    profile,
    backend,
    created_at: createdAt,
    ...parameters,
    ...(licence && { licence }),
    ...(framing && { framing }),
    ...(startImage !== undefined && { start_image: startImage }),
    ...(lastFraming && { last_framing: lastFraming }),
    ...(lastImage !== undefined && { last_image: lastImage }),
    ...(loraFiles?.length && { lora_files: loraFiles }),
    ...(applied && { applied }),
    ...(safety && { safety }),
    ...(promptOptimization && { prompt_optimization: promptOptimization }),
  };
}

/**
 * The tags of the MP4: the JSON as comment, and readable ones for other players.
 *
 * @param seconds length of the file
 */
export function toMetadataTags(metadata: VideoMetadata, seconds: number): MetadataTags {
  const { model, profile, seed, size, parts } = metadata;
  const duration = parts ? seconds.toFixed(2) : metadata.duration;
  const steps = metadata.applied?.steps ?? metadata.num_inference_steps;
  return {
    title: shorten(metadata.prompt, 120),
    description: `${model} ${profile}, seed ${seed}, ${steps} steps, ${size}, ${duration} s`,
    date: new Date(metadata.created_at),
    comment: JSON.stringify(metadata),
    raw: { '©too': `Kinora ${metadata.version}` },
  };
}

/**
 * The metadata of a video that is cut and joined of others: those of the first one with a list of the parts,
 * and the least favourable verdict of all.
 */
export function joinMetadata(
  parts: readonly {
    readonly metadata: VideoMetadata;
    readonly from: number;
    readonly to: number;
  }[],
): VideoMetadata {
  const [first] = parts;
  if (!first) throw new TypeError('A video of no parts.');
  const severity = ['clear', 'off', 'unverified', 'flagged'] as const;
  const rank = ({ safety }: VideoMetadata) => severity.indexOf(safety?.status ?? 'off');
  const worst = parts.reduce((a, b) => (rank(b.metadata) > rank(a.metadata) ? b : a));
  const { safety: _, ...metadata } = first.metadata;
  return {
    ...metadata,
    ...(worst.metadata.safety && { safety: worst.metadata.safety }),
    parts: parts.map(({ metadata: { id, prompt, seed }, from, to }) => ({
      id,
      prompt,
      seed,
      from,
      to,
    })),
  };
}

/**
 * Reads back how a video was made, so that a request can be restored from the file.
 *
 * @throws KinoraError `VIDEO_UNREADABLE` for anything but an MP4 made by Kinora
 */
export async function readVideoMetadata(file: Blob): Promise<VideoMetadata> {
  const input = new Input({ source: new BlobSource(file), formats: [MP4] });
  try {
    const { comment } = await input.getMetadataTags();
    if (comment === undefined) throw new Error('The video has no comment.');
    return videoMetadataSchema.parse(JSON.parse(comment));
  } catch (cause) {
    throw new KinoraError('VIDEO_UNREADABLE', undefined, { cause });
  } finally {
    input.dispose();
  }
}

const sharedTagsSchema = z.object({
  app: z.literal('kinora'),
  shared: sharedRequestSchema,
  start_image: startImageSchema.optional(),
  framing: framingSchema.optional(),
  last_image: startImageSchema.optional(),
  last_framing: framingSchema.optional(),
});
/** What a copy that was made to be shared tells (`publicCopy`): of the request what is shown. */
export type SharedTags = z.output<typeof sharedTagsSchema>;

/** The tags of a copy that was made to be shared; null in any other file. */
export async function readSharedTags(file: Blob): Promise<SharedTags | null> {
  const input = new Input({ source: new BlobSource(file), formats: [MP4] });
  try {
    const { comment = 'null' } = await input.getMetadataTags();
    return sharedTagsSchema.safeParse(JSON.parse(comment)).data ?? null;
  } catch {
    // A file that cannot be read carries no settings.
    return null;
  } finally {
    input.dispose();
  }
}

/** At most `length` code points on one line. */
function shorten(text: string, length: number): string {
  const characters = [...text.replace(/\s+/g, ' ').trim()];
  if (characters.length <= length) return characters.join('');
  return `${characters.slice(0, length - 1).join('')}…`;
}
