import type { ServerResponse } from 'node:http';
import { ApiError } from '../../../lib/contract/v3';
import { sendJson } from '../../http/reply';
import type { NodeHandler } from '../../http/router';
import type { FilesContext } from '../context';
import { invalidField, queryOf } from '../requests';
import { serveBlob } from '../serving';
import { absentPage, embedPage, sharePage } from './page';
import type { createShares } from './rows';
import { sharedRequest, shownOf } from './shown';
import { embedStyles, pageStyles, styleSource } from './styles';
import { textsFor } from './texts';

/** How long a browser may keep a file of a link, in seconds: a link that was revoked soon ends there too. */
const maxAgeSeconds = 60;

/**
 * Pages and files of links, and oEmbed. They are answered by the Node server, as a page of Next cannot have the
 * status 410 and always brings its scripts.
 */
export function shareRoutes(
  context: FilesContext,
  shares: ReturnType<typeof createShares>,
): Record<string, NodeHandler> {
  const { links, config, blobs } = context;
  const policies = {
    page: policyOf(pageStyles, "'none'"),
    embed: policyOf(embedStyles, '*'),
  };

  /** @throws ApiError `NOT_FOUND`, `SHARE_ENDED` */
  async function open(id: string) {
    const found = await shares.find(id);
    if (found.kind === 'unknown') throw new ApiError('NOT_FOUND');
    if (found.kind === 'ended') throw new ApiError('SHARE_ENDED');
    return found;
  }

  const oembedLink = (page: string) =>
    `${links.publicUrl}/oembed?format=json&url=${encodeURIComponent(page)}`;

  const page: NodeHandler = async (request, response, { id = '' }) => {
    const texts = textsFor(request);
    const found = await shares.find(id);
    if (found.kind !== 'open') {
      const status = found.kind === 'ended' ? 410 : 404;
      sendPage(response, status, absentPage(found.kind, texts), policies.page);
      return;
    }
    const shown = shownOf(found, texts);
    const address = links.share(shown.id);
    const pageLinks = {
      page: address,
      oembed: oembedLink(address),
      report: config.KINORA_REPORT_ADDRESS,
    };
    const text = sharePage(shown, pageLinks, texts);
    sendPage(response, 200, text, policies.page, shown.allowIndex);
  };

  const embed: NodeHandler = async (request, response, { id = '' }) => {
    const texts = textsFor(request);
    const found = await shares.find(id);
    if (found.kind === 'open') {
      sendPage(response, 200, embedPage(shownOf(found, texts), texts), policies.embed);
      return;
    }
    // The styles of the whole page: it has text to show.
    const policy = policyOf(pageStyles, '*');
    const status = found.kind === 'ended' ? 410 : 404;
    sendPage(response, status, absentPage(found.kind, texts), policy);
  };

  const video: NodeHandler = async (request, response, { id = '' }) => {
    const { share, job, endsAt } = await open(id);
    setRobots(response, share.allowIndex);
    await serveBlob(request, response, blobs, job.outputKey, {
      type: 'video/mp4',
      filename: `${share.id}.mp4`,
      tag: job.outputSha256 ?? job.id,
      readers: 'cross-origin',
      maxAge: maxAgeOf(endsAt),
    });
  };

  const image: NodeHandler = async (request, response, { id = '' }) => {
    const { share, job, endsAt } = await open(id);
    if (!share.withImage || job.image === null) throw new ApiError('NOT_FOUND');
    setRobots(response, share.allowIndex);
    await serveBlob(request, response, blobs, job.image.key, {
      type: job.image.type,
      filename: `${share.id}.${job.image.type.split('/')[1] ?? 'image'}`,
      tag: `${share.id}-image`,
      readers: 'cross-origin',
      maxAge: maxAgeOf(endsAt),
    });
  };

  const request: NodeHandler = async (_request, response, { id = '' }) => {
    const data = sharedRequest(await open(id));
    sendJson(response, 200, { code: 200, message: 'success', data }, { 'X-Robots-Tag': 'noindex' });
  };

  /** https://oembed.com, 2: `url`, `format`, `maxwidth`, `maxheight`. */
  const oembed: NodeHandler = async (asked, response) => {
    const query = queryOf(asked);
    const id = /\/s\/([0-9a-f]{32})\/?(?:[?#].*)?$/.exec(query.get('url') ?? '')?.[1];
    if ((query.get('format') ?? 'json') !== 'json') throw new ApiError('FORMAT_UNKNOWN');
    if (id === undefined) throw invalidField('url', 'url must be the address of a shared page.');
    const shown = shownOf(await open(id), textsFor(asked));
    const { width, height } = fitted(shown, query);
    const address = links.share(id);
    const player = `<iframe src="${address}/embed" width="${width}" height="${height}" style="border:0" allowfullscreen></iframe>`;
    sendJson(
      response,
      200,
      {
        version: '1.0',
        type: 'video',
        title: shown.title,
        provider_name: 'Kinora',
        provider_url: links.publicUrl,
        cache_age: maxAgeSeconds,
        width,
        height,
        html: player,
      },
      { 'Access-Control-Allow-Origin': '*' },
    );
  };

  return {
    'GET /s/{id}': page,
    'GET /s/{id}/embed': embed,
    'GET /s/{id}/video.mp4': video,
    'GET /s/{id}/image': image,
    'GET /s/{id}/request': request,
    'GET /oembed': oembed,
  };
}

function policyOf(styles: string, frames: "'none'" | '*'): string {
  return [
    "default-src 'none'",
    `style-src ${styleSource(styles)}`,
    "img-src 'self'",
    "media-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${frames}`,
  ].join('; ');
}

function sendPage(
  response: ServerResponse,
  status: number,
  text: string,
  policy: string,
  allowIndex = false,
): void {
  const body = Buffer.from(text);
  setRobots(response, allowIndex);
  response.writeHead(status, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Length': body.length,
    'Content-Security-Policy': policy,
    'Cache-Control': 'no-store',
    Vary: 'Accept-Language',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}

function setRobots(response: ServerResponse, allowIndex: boolean): void {
  if (!allowIndex) response.setHeader('X-Robots-Tag', 'noindex');
}

function maxAgeOf(endsAt: Date): number {
  const left = Math.floor((endsAt.getTime() - Date.now()) / 1000);
  return Math.max(0, Math.min(maxAgeSeconds, left));
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
  return {
    width: Math.max(1, Math.floor(width * scale)),
    height: Math.max(1, Math.floor(height * scale)),
  };
}
