import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { arrayBuffer, buffer } from 'node:stream/consumers';
import { formatOfFile, mostFramesPerSecond } from '../../../lib/contract/request';
import { isFlagged } from '../../../lib/contract/safety';
import {
  ApiError,
  profileOfModel,
  type SharedRequest,
  sharedRequestOf,
} from '../../../lib/contract/v3';
import {
  absentPage,
  embedPage,
  embedStyles,
  type PictureName,
  pageStyles,
  type Shown,
  type ShownSettings,
  sharePage,
  titleOf,
} from '../../../lib/share-page/page';
import { textsFor } from '../../../lib/share-page/texts';
import { publicLayout } from '../../../lib/video/public-copy';
import { publicImage } from '../../../lib/video/public-image';
import { sniffImage } from '../../../lib/video/sniff';
import { success } from '../../http/reply';
import { posterOf } from '../outputs/video';
import { type FileHandler, type FilesContext, invalidField } from '../requests';
import { blobContent, bytesContent, type Content, serveContent } from '../serving';
import type { FoundShare } from './rows';

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
  const original = await blobContent(files.blobs, openShare.job.outputKey);
  const { content, tag } = await publicVideo(original, sharedRequest(openShare));
  return await serveContent(request, content, presentationOf(openShare, 'video/mp4', tag));
};

const pictureHandler =
  (name: PictureName): FileHandler =>
  async ({ files }, { request, params }) => {
    const openShare = await open(files, params.id);
    if (name !== 'poster' && !openShare.share.withImage) throw new ApiError('NOT_FOUND');
    const { type, bytes } = await picture(files, openShare, name);
    const tag = createHash('sha256').update(bytes).digest('hex');
    return await serveContent(request, bytesContent(bytes), presentationOf(openShare, type, tag));
  };

const getSharedRequest: FileHandler = async ({ files }, { params }) =>
  success(sharedRequest(await open(files, params.id)), robotsOf(false));

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
    const { bytes } = await picture(files, openShare, name);
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

/** What the page and the tags of a link show: the video, and only what its owner ticked. */
async function showing({ rows }: FilesContext, { share, job }: OpenShare): Promise<Shown> {
  const { input } = job;
  const hasImage = share.withImage && job.image !== null;
  const isCovered = job.safetyRecord !== null && isFlagged(job.safetyRecord);
  // The studio and workers send one with their video.
  const poster = await posterOf(rows, job.id);
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
    hasLastImage: hasImage && job.lastImage !== null,
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

/** The request as far as it is shown: for the form of the studio, and the tags of the file. */
function sharedRequest({ share, job }: OpenShare): SharedRequest {
  const image = share.withImage && job.image !== null;
  const request = sharedRequestOf(
    { parameters: { ...job.input, seed: job.seed }, profile: profileOfModel(job.model) },
    { prompt: share.withPrompt, settings: share.withSettings, image },
  );
  return image && job.lastImage ? { ...request, last_image: true } : request;
}

/** A picture of a link, without what its file has beside the pixels. */
async function picture({ blobs, rows }: FilesContext, { job }: OpenShare, name: PictureName) {
  const images = { image: job.image, 'last-image': job.lastImage };
  const stored = name === 'poster' ? await posterOf(rows, job.id) : images[name];
  if (stored === null) throw new ApiError('NOT_FOUND');
  const { read } = await blobContent(blobs, stored.key);
  return { type: stored.type, bytes: publicImage(await buffer(await read())) };
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
    `style-src 'sha256-${createHash('sha256').update(styles).digest('base64')}'`,
    "img-src 'self'",
    "media-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${frames}`,
  ].join('; ');
}

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

/** Bytes that are read at once: the boxes before the frames, in a file whose index is in front. */
const firstBytes = 65_536;

/**
 * The video of a link, with no more in its tags than the link shows. Its frames are read from the stored file while
 * they are sent; only its index is made anew.
 *
 * @returns `tag` changes with the bytes: the frames of a stored file never change
 */
export async function publicVideo(
  original: Content,
  request: SharedRequest,
): Promise<{ content: Content; tag: string }> {
  const { bytes: size, read } = original;
  const start = await arrayBuffer(await read({ first: 0, last: Math.min(size, firstBytes) - 1 }));
  const slice = (from: number, to: number) => ({
    arrayBuffer: async () => {
      const end = Math.min(to, size);
      if (end <= start.byteLength) return start.slice(from, end);
      return await arrayBuffer(await read({ first: from, last: end - 1 }));
    },
  });
  const { head, body } = await publicLayout({ size, slice }, request);
  const bytes = body.reduce((sum, { start: from, end }) => sum + end - from, head.length);

  async function* pieces(first: number, last: number): AsyncGenerator<Uint8Array> {
    if (first < head.length) yield head.subarray(first, last + 1);
    let at = head.length;
    for (const { start: from, end } of body) {
      const begin = Math.max(from, from + first - at);
      const stop = Math.min(end, from + last + 1 - at);
      if (begin < stop) yield* await read({ first: begin, last: stop - 1 });
      at += end - from;
    }
  }
  const content: Content = {
    bytes,
    read: async ({ first, last } = { first: 0, last: bytes - 1 }) =>
      Readable.from(pieces(first, last), { objectMode: false }),
  };
  return { content, tag: createHash('sha256').update(head).digest('hex') };
}
