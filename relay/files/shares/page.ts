import { createHash } from 'node:crypto';
import { escapeUTF8 } from 'entities';
import { formatOfFile, mostFramesPerSecond } from '../../../lib/contract/request';
import { isFlagged } from '../../../lib/contract/safety';
import { profileOfModel, type SharedRequest, sharedRequestOf } from '../../../lib/contract/v3';
import type { FoundShare } from './rows';

export type OpenShare = Extract<FoundShare, { kind: 'open' }>;

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

/** Absolute addresses for other sites, and where a video is reported. */
export interface PageLinks {
  readonly page: string;
  readonly oembed: string;
  /** E-mail address or https page; undefined without one. */
  readonly report: string | undefined;
}

/** The page of a link. It needs no script: its own addresses are relative, for every name of the server. */
export function sharePage(shown: Shown, links: PageLinks, texts: PageTexts): string {
  const { id, title, prompt, negativePrompt, settings } = shown;
  const still = (name: PictureName, heading: string, alt: string) =>
    html`<h2>${heading}</h2>${covered(shown, html`<img class="still" src="${id}/${name}" alt="${alt}">`, texts)}`;
  const made = shown.createdAt.toISOString().slice(0, 10);
  const [before, after] = texts.facts(`${shown.width}×${shown.height}`, shown.duration);
  return document(
    texts,
    html`<title>${title} · Kinora</title>
${tags(shown, links, texts)}`,
    pageStyles,
    html`<header><a href="../">Kinora</a></header>
<main>
${covered(shown, videoElement(shown, `${id}/`), texts)}
<h1>${title}</h1>
<p class="soft">${before}<time datetime="${made}">${made}</time>${after}</p>
${shown.canRestore ? html`<a class="open" href="../?share=${id}">${texts.open}</a>` : null}
${prompt !== null && prompt !== title ? html`<h2>${texts.prompt}</h2><p>${prompt}</p>` : null}
${negativePrompt === null ? null : html`<h2>${texts.negativePrompt}</h2><p>${negativePrompt}</p>`}
${
  settings.length === 0
    ? null
    : html`<h2>${texts.settings}</h2><dl>${settings.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`
}
${shown.hasImage ? still('image', texts.startImage, texts.startImageIs) : null}
${shown.hasLastImage ? still('last-image', texts.endImage, texts.endImageIs) : null}
</main>
<footer><a href="../">${texts.make}</a>${reportLink(links, texts)}</footer>`,
  );
}

export function embedPage(shown: Shown, texts: PageTexts): string {
  return document(
    texts,
    html`<title>${shown.title} · Kinora</title><meta name="robots" content="noindex">`,
    embedStyles,
    covered(shown, videoElement(shown, ''), texts),
  );
}

/** A page without a video: of a link that has ended, or that there never was. */
export function absentPage(kind: 'ended' | 'unknown', texts: PageTexts): string {
  const title = texts[kind];
  const sentence = texts[`${kind}Text`];
  return document(
    texts,
    html`<title>${title} · Kinora</title><meta name="robots" content="noindex">`,
    pageStyles,
    html`<header><a href="/">Kinora</a></header>
<main><h1>${title}</h1><p>${sentence}</p><p><a href="/">${texts.make}</a></p></main>`,
  );
}

function document(texts: PageTexts, head: Markup, styles: string, body: Markup): string {
  return html`<!doctype html>
<html lang="${texts.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="/icon.svg" type="image/svg+xml">
${head}
<style>${new Markup(styles)}</style>
</head>
<body>
${body}
</body>
</html>
`.text;
}

/** Open Graph, player card and oEmbed discovery. Other sites show nothing of a flagged video. */
function tags(shown: Shown, { page, oembed }: PageLinks, texts: PageTexts): Markup {
  const { title, width, height } = shown;
  const description = shown.prompt ?? texts.description(shown.duration);
  const video = `${page}/video.mp4`;
  const image = shown.preview && `${page}/${shown.preview}`;
  const both: Tag[] = [
    ['robots', shown.allowIndex ? null : 'noindex'],
    ['description', description],
    ['og:site_name', 'Kinora'],
    ['og:title', title],
    ['og:description', description],
    ['og:url', page],
    ['twitter:title', title],
    ['twitter:description', description],
  ];
  const flagged: Tag[] = [
    ['og:type', 'website'],
    ['twitter:card', 'summary'],
    ['rating', 'adult'],
  ];
  const player: Tag[] = [
    ['og:type', 'video.other'],
    ['og:video', video],
    ['og:video:secure_url', video.startsWith('https:') ? video : null],
    ['og:video:type', 'video/mp4'],
    ['og:video:width', width],
    ['og:video:height', height],
    ['twitter:card', 'player'],
    ['twitter:player', `${page}/embed`],
    ['twitter:player:width', width],
    ['twitter:player:height', height],
    ['twitter:player:stream', video],
    ['twitter:player:stream:content_type', 'video/mp4'],
    ['og:image', image],
    ['twitter:image', image],
  ];
  const discovery = html`<link rel="alternate" type="application/json+oembed" href="${oembed}" title="${title}">\n`;
  return html`${[...both, ...(shown.isFlagged ? flagged : player)].map(metaTag)}<link rel="canonical" href="${page}">
${shown.isFlagged ? null : discovery}`;
}

/** Name and content; without content there is none. */
type Tag = [name: string, content: string | number | null];

/** Open Graph has properties, everything else names. */
function metaTag([name, content]: Tag): Markup {
  if (content === null) return html``;
  const key = name.startsWith('og:') ? html`property="${name}"` : html`name="${name}"`;
  return html`<meta ${key} content="${content}">\n`;
}

/** @param base relative address of the folder with the files of the link */
function videoElement(shown: Shown, base: string): Markup {
  const poster = shown.preview && html` poster="${base}${shown.preview}"`;
  const shape = shown.height > shown.width ? html` class="tall"` : null;
  return html`<video${shape} src="${base}video.mp4"${poster} width="${shown.width}" height="${shown.height}" controls loop playsinline preload="metadata" aria-label="${shown.title}"></video>`;
}

/** A flagged picture is shown when it is asked for. */
function covered({ isFlagged }: Shown, content: Markup, texts: PageTexts): Markup {
  if (!isFlagged) return content;
  return html`<details><summary>${texts.flagged}</summary>${content}</details>`;
}

function reportLink({ report, page }: PageLinks, texts: PageTexts): Markup | null {
  if (report === undefined) return null;
  const subject = encodeURIComponent(`Report of a shared video: ${page}`);
  const address = report.includes('://') ? report : `mailto:${report}?subject=${subject}`;
  return html`<a href="${address}">${texts.report}</a>`;
}

/** Markup that is sent as it is. Only {@link html} makes it. */
class Markup {
  constructor(readonly text: string) {}
}

type Value = string | number | Markup | readonly Markup[] | null;

/** A template whose values are escaped, in text and in quoted attributes; null is nothing. */
function html(parts: TemplateStringsArray, ...values: readonly Value[]): Markup {
  const texts = values.map((value) => {
    if (value === null) return '';
    if (value instanceof Markup) return value.text;
    if (typeof value === 'object') return value.map(({ text }) => text).join('');
    return escapeUTF8(String(value));
  });
  return new Markup(String.raw({ raw: parts }, ...texts));
}

/** The rules of a shared page, with the colours of `app/globals.css`. */
export const pageStyles = `
:root{color-scheme:light dark;--paper:#faf8f5;--surface:#fff;--line:#e3dcd2;--ink:#221e1a;--soft:#655c52;--accent:#b8431c;--strong:#98350f;--on-accent:#fff}
@media (prefers-color-scheme:dark){:root{--paper:#151312;--surface:#1e1b19;--line:#37322e;--ink:#f1ece6;--soft:#b3a89c;--accent:#f08a5d;--strong:#ffa47d;--on-accent:#221009}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:min(1280px,100vw);padding:0 16px 32px;background:var(--paper);color:var(--ink);font:16px/1.55 ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
header{padding:16px 0}
header a{color:inherit;font-weight:700;text-decoration:none}
a{color:var(--strong);text-underline-offset:3px}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
video,.still{display:block;height:auto;border-radius:14px}
video{width:min(100%,78vh*16/9);background:#000}
video.tall{width:min(100%,78vh*9/16)}
h1{margin:20px 0 8px;font-size:1.4rem;line-height:1.3;overflow-wrap:anywhere}
h2{margin:24px 0 8px;font-size:1rem}
p{margin:8px 0;max-width:70ch;overflow-wrap:anywhere;white-space:pre-line}
.soft{color:var(--soft)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 20px;margin:0}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
.still{max-width:320px;max-height:320px;width:auto}
.open{display:inline-block;margin:12px 0;padding:10px 18px;border-radius:9px;background:var(--accent);color:var(--on-accent);font-weight:600;text-decoration:none}
summary{padding:16px;border:1px solid var(--line);border-radius:14px;background:var(--surface);cursor:pointer}
details[open] summary{margin-bottom:12px}
footer{margin-top:32px;padding-top:16px;border-top:1px solid var(--line);color:var(--soft);font-size:.9rem}
footer a{margin-right:20px}
`;

export const embedStyles = `
html,body{height:100%;margin:0;background:#000;color:#f1ece6;font:16px/1.5 system-ui,sans-serif}
video{display:block;width:100%;height:100%}
summary,p{padding:16px;cursor:pointer}
details[open]{height:100%}
details[open] summary{display:none}
`;

/** The source of a style in a `Content-Security-Policy`. */
export function styleSource(styles: string): string {
  return `'sha256-${createHash('sha256').update(styles).digest('base64')}'`;
}

/** Texts of the pages of links, which are made here and not by the app. */
const english = {
  language: 'en',
  madeWith: 'A video made with Kinora',
  /** What stands before and after the date. */
  facts: (size: string, seconds: number): readonly [string, string] => [
    `${size}, ${seconds} s, made on `,
    ' with a generative model',
  ],
  open: 'Open in Kinora',
  prompt: 'Prompt',
  negativePrompt: 'Negative prompt',
  settings: 'Settings',
  startImage: 'Start image',
  startImageIs: 'The image that the video starts from',
  endImage: 'End image',
  endImageIs: 'The image that the video ends in',
  make: 'Make a video with Kinora',
  report: 'Report this video',
  flagged: 'The safety check flagged this video. Show it all the same',
  description: (seconds: number) =>
    `A ${seconds}-second video, made from one image on a graphics card.`,
  ended: 'This link has ended',
  endedText:
    'It has expired, or the person who shared the video has withdrawn it. Ask them for a new link.',
  unknown: 'There is no such link',
  unknownText: 'Compare the address with the one that you were sent: a part of it may be missing.',
  model: 'Model',
  profile: 'Profile',
  standard: 'Standard',
  ultraFast: 'Ultra-fast',
  size: 'Size',
  sizeOf: (size: string, seconds: number) => `${size}, ${seconds} s`,
  steps: 'Steps',
  guidance: 'Guidance',
  seed: 'Seed',
  adapters: 'Adapters',
  notPublic: (count: number) => `${count} not public`,
};

export type PageTexts = typeof english;

const chinese: PageTexts = {
  language: 'zh',
  madeWith: '用 Kinora 制作的视频',
  facts: (size, seconds) => [`${size}，${seconds} 秒，由生成式模型制作于 `, ''],
  open: '在 Kinora 中打开',
  prompt: '提示词',
  negativePrompt: '负面提示词',
  settings: '设置',
  startImage: '起始图片',
  startImageIs: '视频开始的图片',
  endImage: '结束图片',
  endImageIs: '视频结束的图片',
  make: '用 Kinora 制作视频',
  report: '举报这个视频',
  flagged: '安全检查标记了这个视频。仍然显示',
  description: (seconds) => `${seconds} 秒的视频，由一张图片在显卡上制作。`,
  ended: '此链接已失效',
  endedText: '它已过期，或分享视频的人已撤回。请向对方索取新的链接。',
  unknown: '没有这个链接',
  unknownText: '请与你收到的地址核对：可能缺少了一部分。',
  model: '模型',
  profile: '档位',
  standard: '标准',
  ultraFast: '极速',
  size: '尺寸',
  sizeOf: (size, seconds) => `${size}，${seconds} 秒`,
  steps: '步数',
  guidance: '引导强度',
  seed: '种子',
  adapters: '适配器',
  notPublic: (count) => `${count} 个未公开`,
};

/** The texts for a visitor: of the languages that there are the most wanted one, by the order of the header. */
export function textsFor(acceptLanguage: string | null): PageTexts {
  const wanted = (acceptLanguage ?? '')
    .split(',')
    .map((entry) => {
      const [tag = '', quality] = entry
        .trim()
        .toLowerCase()
        .split(/\s*;\s*q=/);
      return { language: tag.split('-')[0], quality: quality === undefined ? 1 : Number(quality) };
    })
    .filter(({ language, quality }) => (language === 'en' || language === 'zh') && quality > 0)
    .sort((a, b) => b.quality - a.quality);
  return wanted[0]?.language === 'zh' ? chinese : english;
}
