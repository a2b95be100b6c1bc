import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { formatOfFile, isFlagged, mostFramesPerSecond } from '../../../lib/contract';
import {
  ApiError,
  profileOfModel,
  type SharedRequest,
  sharedRequestOf,
} from '../../../lib/contract/v3';
import { sniffImage } from '../../../lib/video/sniff';
import { success } from '../../http/reply';
import { picturesOf } from '../outputs/video';
import { type FileHandler, type FilesContext, invalidField } from '../requests';
import { serveBlob } from '../serving';
import type { FoundShare } from './rows';
import {
  absentPage,
  embedPage,
  embedStyles,
  type PictureName,
  pageScript,
  pageStyles,
  type Shown,
  type ShownSettings,
  sharePage,
  textsFor,
  titleOf,
} from './share-page';

type OpenShare = Extract<FoundShare, { kind: 'open' }>;

/** How long a browser may keep a file of a link, in seconds: a link that was revoked soon ends there too. */
const maxAgeSeconds = 60;

/** @throws ApiError `NOT_FOUND`, `SHARE_ENDED` */
async function open({ shares }: FilesContext, id = ''): Promise<OpenShare> {
  const lookup = await shares.find(id);
  if (lookup.kind === 'unknown') throw new ApiError('NOT_FOUND');
  if (lookup.kind === 'ended') throw new ApiError('SHARE_ENDED');
  return lookup;
}

/** The page of a link, or the video alone for frames of other sites. */
const pageHandler =
  (kind: 'page' | 'embed'): FileHandler =>
  async ({ files }, { request, params: { id = '' } }) => {
    const { links, config, shares } = files;
    const texts = textsFor(request.headers.get('accept-language'));
    const lookup = await shares.find(id);
    const page = (status: number, styles: string, text: string, allowIndex = false) => {
      const policy = policyOf(styles, kind === 'page' ? "'none'" : '*');
      return pageOf(status, text, policy, allowIndex);
    };
    if (lookup.kind !== 'open') {
      // The styles of the whole page, in a frame too: it has text to show.
      const status = lookup.kind === 'ended' ? 410 : 404;
      return page(status, pageStyles, absentPage(lookup.kind, texts));
    }
    const shown = await showing(files, lookup);
    if (kind === 'embed') return page(200, embedStyles, embedPage(shown, texts));
    const address = links.share(shown.id);
    const oembed = `${links.publicUrl}/oembed?format=json&url=${encodeURIComponent(address)}`;
    const pageLinks = { page: address, oembed, report: config.KINORA_REPORT_ADDRESS };
    return page(200, pageStyles, sharePage(shown, pageLinks, texts), shown.allowIndex);
  };

const getSharedVideo: FileHandler = async ({ files }, { request, params }) => {
  const openShare = await open(files, params.id);
  const { id, outputKey, outputSha256 } = openShare.job;
  const presentation = presentationOf(openShare, 'video/mp4', outputSha256 ?? id);
  return await serveBlob(request, files.blobs, outputKey, presentation);
};

const pictureHandler =
  (name: PictureName): FileHandler =>
  async ({ files }, { request, params }) => {
    const openShare = await open(files, params.id);
    if (name !== 'poster' && !openShare.share.withImage) throw new ApiError('NOT_FOUND');
    const { key, tag } = await picture(files, openShare, name);
    return await serveBlob(request, files.blobs, key, presentationOf(openShare, 'image/jpeg', tag));
  };

const getSharedRequest: FileHandler = async ({ files }, { params }) =>
  success(await sharedRequest(files, await open(files, params.id)), robotsOf(false));

/** https://oembed.com, 2: `url`, `format`, `maxwidth`, `maxheight`. */
const getOembed: FileHandler = async ({ files }, { request, query }) => {
  const { links } = files;
  const url = query.get('url');
  if ((query.get('format') ?? 'json') !== 'json') throw new ApiError('FORMAT_UNKNOWN');
  if (url === null) throw invalidField('url', 'url is required.');
  const id = links.shareOf(url);
  if (id === null) {
    const sentence = 'url must be the address of a shared page of this server.';
    throw invalidField('url', sentence, { code: 'NOT_FOUND' });
  }
  const openShare = await open(files, id);
  const shown = await showing(files, openShare);
  const { width, height } = fitted(shown, query);
  const address = links.share(id);
  /** Unless it is larger than the caller takes: it may not be made smaller. */
  const thumbnail = async (name: PictureName) => {
    const { key } = await picture(files, openShare, name);
    const bytes = await buffer((await files.blobs.read(key)).body);
    const { width, height } = await sniffImage(bytes);
    if (fitted({ width, height }, query).width < width) return null;
    const size = { thumbnail_width: width, thumbnail_height: height };
    return { thumbnail_url: `${address}/${name}`, ...size };
  };
  const player = `<iframe src="${address}/embed" width="${width}" height="${height}" style="border:0" allowfullscreen></iframe>`;
  return Response.json({
    version: '1.0',
    type: 'video',
    title: titleOf(shown, textsFor(request.headers.get('accept-language'))),
    provider_name: 'Kinora',
    provider_url: links.publicUrl,
    cache_age: maxAgeSeconds,
    width,
    height,
    html: player,
    ...(shown.preview && (await thumbnail(shown.preview))),
  });
};

/**
 * Pages and files of links, and oEmbed. They do not go through Next, as a page of Next cannot have the status 410 and
 * always brings its scripts.
 */
export const shareHandlers = {
  'GET /s/{id}': pageHandler('page'),
  'GET /s/{id}/embed': pageHandler('embed'),
  'GET /s/{id}/video.mp4': getSharedVideo,
  'GET /s/{id}/image': pictureHandler('image'),
  'GET /s/{id}/last-image': pictureHandler('last-image'),
  'GET /s/{id}/poster': pictureHandler('poster'),
  'GET /s/{id}/request': getSharedRequest,
  'GET /oembed': getOembed,
};

/** The video, and what its owner ticked: the page and the tags of a link show nothing else. */
async function showing({ rows }: FilesContext, { share, job }: OpenShare): Promise<Shown> {
  const { input } = job;
  // The studio and workers send them with their video.
  const { poster, ...images } = await picturesOf(rows, job.id);
  const hasImage = share.withImage && images.image !== undefined;
  const isCovered = job.safetyRecord !== null && isFlagged(job.safetyRecord);
  const picture = poster ? 'poster' : hasImage ? 'image' : null;
  return {
    ...formatOfFile(input, mostFramesPerSecond),
    id: share.id,
    prompt: share.withPrompt ? input.prompt.trim() : null,
    negativePrompt: (share.withPrompt && input.negative_prompt.trim()) || null,
    settings: share.withSettings ? settingsOf(job) : null,
    duration: input.duration,
    createdAt: job.createdAt,
    hasImage,
    hasLastImage: hasImage && images.last_image !== undefined,
    preview: isCovered ? null : picture,
    isFlagged: isCovered,
    allowIndex: share.allowIndex,
    canRestore: share.withPrompt || share.withSettings || hasImage,
  };
}

function settingsOf(job: OpenShare['job']): ShownSettings {
  const { input, applied } = job;
  const loras = job.loras.filter(({ from }) => from === 'hub');
  return {
    model: [job.ranModel, job.ranPrecision].filter(Boolean).join(', ') || job.model,
    profile: profileOfModel(job.model),
    steps: applied?.steps ?? input.num_inference_steps,
    guidance: applied?.guidance_scale ?? input.guidance_scale,
    seed: job.seed,
    loras,
    privateLoras: job.loras.length - loras.length,
  };
}

/** The request as far as it is shown, for the form of the studio. */
async function sharedRequest(
  { rows }: FilesContext,
  { share, job }: OpenShare,
): Promise<SharedRequest> {
  const pictures = await picturesOf(rows, job.id);
  const image = share.withImage && pictures.image !== undefined;
  const request = sharedRequestOf(
    { parameters: { ...job.input, seed: job.seed }, profile: profileOfModel(job.model) },
    { prompt: share.withPrompt, settings: share.withSettings, image },
  );
  return image && pictures.last_image ? { ...request, last_image: true } : request;
}

/** A picture of a link. @throws ApiError `NOT_FOUND` */
async function picture({ rows }: FilesContext, { job }: OpenShare, name: PictureName) {
  const { poster, image, last_image } = await picturesOf(rows, job.id);
  const found = { poster, image, 'last-image': last_image }[name];
  if (!found) throw new ApiError('NOT_FOUND');
  return found;
}

/** How a file of a link is sent. */
function presentationOf({ share, endsAt }: OpenShare, type: string, tag: string) {
  const secondsLeft = Math.max(0, Math.floor((endsAt.getTime() - Date.now()) / 1000));
  return {
    type,
    filename: `${share.id}.${type.split('/')[1]}`,
    tag,
    readers: 'cross-origin',
    maxAge: Math.min(maxAgeSeconds, secondsLeft),
    headers: robotsOf(share.allowIndex),
  } as const;
}

function policyOf(styles: string, frames: "'none'" | '*'): string {
  return [
    "default-src 'none'",
    `style-src ${hashOf(styles)}`,
    `script-src ${hashOf(pageScript)}`,
    "img-src 'self'",
    "media-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${frames}`,
  ].join('; ');
}

/** What a policy allows by its content. */
const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

function pageOf(status: number, text: string, policy: string, allowIndex: boolean): Response {
  return new Response(text, {
    status,
    headers: {
      ...robotsOf(allowIndex),
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': policy,
      Vary: 'Accept-Language',
      'Referrer-Policy': 'no-referrer',
    },
  });
}

/** Search engines list what its owner allows. */
function robotsOf(allowIndex: boolean): Record<string, string> {
  return allowIndex ? {} : { 'X-Robots-Tag': 'noindex' };
}

/** The largest size of this shape within `maxwidth` and `maxheight`, in pixels. */
function fitted(
  { width, height }: { readonly width: number; readonly height: number },
  query: URLSearchParams,
): { width: number; height: number } {
  const limit = (name: string, size: number) => {
    const text = query.get(name) ?? '';
    return /^[1-9]\d{0,5}$/.test(text) ? Math.min(1, Number(text) / size) : 1;
  };
  const scale = Math.min(limit('maxwidth', width), limit('maxheight', height));
  const scaled = (size: number) => Math.max(1, Math.floor(size * scale));
  return { width: scaled(width), height: scaled(height) };
}
