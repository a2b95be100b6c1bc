import { formatOfFile, mostFramesPerSecond } from '../../../lib/contract/request';
import { isFlagged } from '../../../lib/contract/safety';
import { profileOfModel, type SharedRequest, sharedRequestOf } from '../../../lib/contract/v3';
import type { FoundShare } from './rows';
import type { PageTexts } from './texts';

export type OpenShare = Extract<FoundShare, { kind: 'open' }>;

/** A picture below the address of a link. */
export type PictureName = 'image' | 'last-image' | 'poster';

/** What a link shows: the video, and only what its owner ticked. */
export interface Shown {
  readonly id: string;
  /** The prompt, or a general title. */
  readonly title: string;
  readonly prompt: string | null;
  readonly negativePrompt: string | null;
  /** Names and values of the settings; empty where they are not shown. */
  readonly settings: readonly (readonly [name: string, value: string])[];
  readonly width: number;
  readonly height: number;
  /** Seconds. */
  readonly duration: number;
  readonly createdAt: Date;
  readonly hasImage: boolean;
  readonly hasLastImage: boolean;
  /** The picture before the video plays, and on other sites; null where there is none or the video is flagged. */
  readonly preview: PictureName | null;
  /** Whether the safety check flagged the video: then it is covered until it is asked for. */
  readonly isFlagged: boolean;
  readonly allowIndex: boolean;
  /** Whether there is a request that the studio can restore. */
  readonly canRestore: boolean;
}

/** Longest title, in characters; unfurlers cut earlier. */
const maxTitle = 90;

/**
 * What the page and the tags of a link show.
 *
 * @param hasPoster whether the studio sent a frame of the video
 */
export function shownOf({ share, job }: OpenShare, hasPoster: boolean, texts: PageTexts): Shown {
  const { input } = job;
  const { width, height } = formatOfFile(input, mostFramesPerSecond);
  const prompt = share.withPrompt ? input.prompt.trim() : null;
  const negative = share.withPrompt ? input.negative_prompt.trim() : '';
  const hasImage = share.withImage && job.image !== null;
  const flagged = job.safetyRecord !== null && isFlagged(job.safetyRecord);
  return {
    id: share.id,
    title: prompt === null ? texts.madeWith : shortened(prompt),
    prompt,
    negativePrompt: negative === '' ? null : negative,
    settings: share.withSettings ? settingsOf(job, texts) : [],
    width,
    height,
    duration: input.duration,
    createdAt: job.createdAt,
    hasImage,
    hasLastImage: hasImage && job.lastImage !== null,
    preview: flagged ? null : hasPoster ? 'poster' : hasImage ? 'image' : null,
    isFlagged: flagged,
    allowIndex: share.allowIndex,
    canRestore: share.withPrompt || share.withSettings || hasImage,
  };
}

/** The request as far as it is shown: for the form of the studio, and the tags of the file. */
export function sharedRequest({ share, job }: OpenShare): SharedRequest {
  const image = share.withImage && job.image !== null;
  const request = sharedRequestOf(
    { parameters: { ...job.input, seed: job.seed }, profile: profileOfModel(job.model) },
    { prompt: share.withPrompt, settings: share.withSettings, image },
  );
  return image && job.lastImage ? { ...request, last_image: true } : request;
}

/** Adapters of the hub; links and uploads are private. */
function hubLoras({ loras }: OpenShare['job']) {
  return loras.flatMap(({ path, scale, from }) => (from === 'hub' ? [{ path, scale }] : []));
}

function settingsOf(job: OpenShare['job'], texts: PageTexts): [string, string][] {
  const { input, applied } = job;
  const loras = hubLoras(job);
  const others = input.loras.length - loras.length;
  const adapters = [
    ...loras.map(({ path, scale }) => `${path} (${scale})`),
    ...(others > 0 ? [texts.notPublic(others)] : []),
  ];
  const { width, height } = formatOfFile(input, mostFramesPerSecond);
  return [
    [texts.model, [job.ranModel, job.ranPrecision].filter(Boolean).join(', ') || job.model],
    [texts.profile, profileOfModel(job.model) === 'standard' ? texts.standard : texts.ultraFast],
    [texts.size, texts.sizeOf(`${width}×${height}`, input.duration)],
    [texts.steps, String(applied?.steps ?? input.num_inference_steps)],
    [texts.guidance, String(applied?.guidance_scale ?? input.guidance_scale)],
    [texts.seed, String(job.seed)],
    ...(adapters.length > 0 ? [[texts.adapters, adapters.join('; ')] as [string, string]] : []),
  ];
}

function shortened(text: string): string {
  const line = text.replace(/\s+/g, ' ');
  if (line.length <= maxTitle) return line;
  return `${line.slice(0, maxTitle - 1).replace(/\p{Surrogate}$/u, '')}…`;
}
