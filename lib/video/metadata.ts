import {
  BlobSource,
  BufferTarget,
  Conversion,
  Input,
  type MetadataTags,
  MP4,
  Mp4OutputFormat,
  Output,
} from 'mediabunny';
import { z } from 'zod';
import { version } from '../../package.json';
import {
  appliedSchema,
  backends,
  centred,
  framingSchema,
  KinoraError,
  type LoraRecord,
  type MadeVideo,
  parametersSchema,
  profileNames,
  promptOptimizationSchema,
  type RunOptions,
  type RunRequest,
  safetySchema,
  type VideoPart,
} from '../contract';
import { type SharedRequest, sharedRequestSchema } from '../contract/v3';

/** A part of a video that was cut or joined, and what it was made of. */
const partSchema: z.ZodType<VideoPart> = z.object({
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

const loraFileSchema: z.ZodType<LoraRecord> = z.object({
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  source: z.string().optional(),
});

/**
 * How a video was made: the request's parameters under their own names, model, backend and time, and what
 * the safety checker found. JSON in the MP4's comment once the file has left the browser. `prompt` is what was sent; where an
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

/** A finished video, as its row has it. */
export interface FinishedVideo extends RunRequest {
  readonly id: string;
  readonly createdAt: string;
  readonly result: MadeVideo;
  readonly parts?: readonly VideoPart[];
}

/** The images of a request that a file is to hold, JPEGs in base64. */
export type FileImages = Pick<VideoMetadata, 'start_image' | 'last_image'>;

/** Metadata of the file of a video that leaves the browser. */
export function createVideoMetadata(
  { id, model, profile, parameters, options, createdAt, result, parts }: FinishedVideo,
  images: FileImages = {},
): VideoMetadata {
  const { backend, licence, loraFiles, applied, safety, promptOptimization } = result;
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
    ...framingsOf(options),
    ...images,
    ...(loraFiles?.length && { lora_files: [...loraFiles] }),
    ...(applied && { applied }),
    ...(safety && { safety }),
    ...(promptOptimization && { prompt_optimization: promptOptimization }),
    ...(parts && { parts: [...parts] }),
  };
}

/** How the images lie in the frame. That of the end image says that there was one. */
function framingsOf({ framing, lastImage }: RunOptions) {
  return {
    ...(framing && { framing }),
    ...(lastImage && { last_framing: lastImage.framing ?? centred }),
  };
}

/** The tags of a file that its owner keeps: the JSON as comment, and readable ones for other players. */
export function toMetadataTags(video: FinishedVideo, images: FileImages = {}): MetadataTags {
  const metadata = createVideoMetadata(video, images);
  const { model, profile, seed, size, parts } = metadata;
  const { frames, frameRate } = video.result;
  const duration = parts ? (frames / frameRate).toFixed(2) : metadata.duration;
  const steps = metadata.applied?.steps ?? metadata.num_inference_steps;
  return {
    title: shorten(metadata.prompt, 120),
    description: `${model} ${profile}, seed ${seed}, ${steps} steps, ${size}, ${duration} s`,
    date: new Date(metadata.created_at),
    comment: JSON.stringify(metadata),
    raw: { '©too': `Kinora ${metadata.version}` },
  };
}

/** The tags of a file for others: what is shown of the request, and its images where they are. */
export function toSharedTags(
  request: SharedRequest,
  options: RunOptions,
  images: FileImages | null,
): MetadataTags {
  const { prompt, seed, size, duration, num_inference_steps: steps } = request.parameters;
  const shown: SharedTags = {
    app: 'kinora',
    shared: { ...request, image: false },
    ...(images && { ...framingsOf(options), ...images }),
  };
  return {
    ...(prompt !== undefined && { title: shorten(prompt, 120) }),
    ...(request.profile && {
      description: `${request.profile}, seed ${seed}, ${steps} steps, ${size}, ${duration} s`,
    }),
    comment: JSON.stringify(shown),
    raw: { '©too': 'Kinora' },
  };
}

/**
 * A copy of a video with tags; its frames are the same bytes. Stored videos have none.
 *
 * @throws KinoraError `VIDEO_UNREADABLE`
 */
export async function withTags(video: Blob, tags: MetadataTags): Promise<Blob> {
  const input = new Input({ source: new BlobSource(video), formats: [MP4] });
  const target = new BufferTarget();
  const output = new Output({ format: new Mp4OutputFormat({ fastStart: 'in-memory' }), target });
  try {
    await (await Conversion.init({ input, output, tags })).execute();
    return new Blob([target.buffer ?? ''], { type: 'video/mp4' });
  } catch (cause) {
    throw new KinoraError('VIDEO_UNREADABLE', undefined, { cause });
  } finally {
    input.dispose();
  }
}

/**
 * Reads back how a video was made, so that a request can be restored from the file.
 *
 * @throws KinoraError `VIDEO_UNREADABLE` for anything but an MP4 that Kinora wrote tags into
 */
export async function readVideoMetadata(file: Blob): Promise<VideoMetadata> {
  const { data, error } = videoMetadataSchema.safeParse(await readComment(file));
  if (data) return data;
  throw new KinoraError('VIDEO_UNREADABLE', undefined, { cause: error });
}

const sharedTagsSchema = z.object({
  app: z.literal('kinora'),
  shared: sharedRequestSchema,
  start_image: startImageSchema.optional(),
  framing: framingSchema.optional(),
  last_image: startImageSchema.optional(),
  last_framing: framingSchema.optional(),
});
/** Metadata of a copy to share: the parts of the request that are shown. */
export type SharedTags = z.output<typeof sharedTagsSchema>;

/** The tags of a copy that was made to be shared; null in any other file. */
export async function readSharedTags(file: Blob): Promise<SharedTags | null> {
  return sharedTagsSchema.safeParse(await readComment(file)).data ?? null;
}

/** The JSON in the comment of an MP4; null for what has none. */
async function readComment(file: Blob): Promise<unknown> {
  const input = new Input({ source: new BlobSource(file), formats: [MP4] });
  try {
    const { comment = 'null' } = await input.getMetadataTags();
    return JSON.parse(comment);
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
