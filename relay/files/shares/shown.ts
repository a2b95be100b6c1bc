import { formatOfFile, mostFramesPerSecond } from '../../../lib/contract/request';
import { isFlagged } from '../../../lib/contract/safety';
import { profileOfModel, type SharedRequest, sharedRequestOf } from '../../../lib/contract/v3';
import type { FoundShare } from './rows';
import type { PageTexts } from './texts';

export type OpenShare = Extract<FoundShare, { kind: 'open' }>;

/** A picture below the address of a link. */
export type PictureName = 'image' | 'last-image' | 'poster';

/** Longest title, in characters; unfurlers cut earlier. */
const maxTitle = 90;

/**
 * What the page and the tags of a link show: the video, and only what its owner ticked.
 *
 * @param hasPoster whether the studio sent a frame of the video
 */
export function shownOf({ share, job }: OpenShare, hasPoster: boolean, texts: PageTexts) {
  const { input } = job;
  const prompt = share.withPrompt ? input.prompt.trim() : null;
  const hasImage = share.withImage && job.image !== null;
  const isCovered = job.safetyRecord !== null && isFlagged(job.safetyRecord);
  const pictures = { poster: hasPoster, image: hasImage };
  const preview = (['poster', 'image'] as const).find((name) => !isCovered && pictures[name]);
  return {
    ...formatOfFile(input, mostFramesPerSecond),
    id: share.id,
    title: prompt === null ? texts.madeWith : shortened(prompt),
    prompt,
    negativePrompt: (share.withPrompt && input.negative_prompt.trim()) || null,
    /** Names and values; empty where they are not shown. */
    settings: share.withSettings ? settingsOf(job, texts) : [],
    /** Seconds. */
    duration: input.duration,
    createdAt: job.createdAt,
    hasImage,
    hasLastImage: hasImage && job.lastImage !== null,
    /** The picture before the video plays, and on other sites; null where there is none or the video is flagged. */
    preview: preview ?? null,
    /** Whether the safety check flagged the video: then it is covered until it is asked for. */
    isFlagged: isCovered,
    allowIndex: share.allowIndex,
    /** Whether there is a request that the studio can restore. */
    canRestore: share.withPrompt || share.withSettings || hasImage,
  };
}
export type Shown = ReturnType<typeof shownOf>;

/** The request as far as it is shown: for the form of the studio, and the tags of the file. */
export function sharedRequest({ share, job }: OpenShare): SharedRequest {
  const image = share.withImage && job.image !== null;
  const request = sharedRequestOf(
    { parameters: { ...job.input, seed: job.seed }, profile: profileOfModel(job.model) },
    { prompt: share.withPrompt, settings: share.withSettings, image },
  );
  return image && job.lastImage ? { ...request, last_image: true } : request;
}

function settingsOf(job: OpenShare['job'], texts: PageTexts): [string, string][] {
  const { input, applied } = job;
  // Links and uploads are private.
  const loras = job.loras.filter(({ from }) => from === 'hub');
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
