import { escapeUTF8 } from 'entities';
import { createTranslator } from 'use-intl/core';
import { matchLanguage } from '../../../app/texts/catalogue';
import en from '../../../app/texts/en/link.json';
import zh from '../../../app/texts/zh/link.json';

/** Texts of the pages of links, in one language. */
export type PageTexts = ReturnType<typeof createTranslator<typeof en>>;

/** The texts for a visitor: of the languages that there are the most wanted one, by the order of the header. */
export function textsFor(acceptLanguage: string | null): PageTexts {
  const wanted = (acceptLanguage ?? '').split(',').map((entry) => {
    const [tag = '', quality = '1'] = entry.trim().split(/\s*;\s*q=/i);
    return { tag, quality: Number(quality) };
  });
  const tags = wanted.filter(({ quality }) => quality > 0).sort((a, b) => b.quality - a.quality);
  const locale = matchLanguage(tags.map(({ tag }) => tag));
  return createTranslator({ locale, messages: { en, zh }[locale] });
}

export type PictureName = 'image' | 'last-image' | 'poster';

/** The video, and what its owner ticked: the page and the tags of a link show nothing else. */
export interface Shown {
  /** Id of the link. */
  readonly id: string;
  readonly width: number;
  readonly height: number;
  readonly duration: number;
  readonly createdAt: Date;
  readonly prompt: string | null;
  readonly negativePrompt: string | null;
  readonly settings: ShownSettings | null;
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

export interface ShownSettings {
  readonly model: string;
  readonly profile: 'standard' | 'ultra-fast';
  readonly steps: number;
  readonly guidance: number;
  readonly seed: number;
  /** Those of the hub: links and uploads are private. */
  readonly loras: readonly { readonly path: string; readonly scale: number }[];
  readonly privateLoras: number;
}

/** Longest title, in characters; unfurlers cut earlier. */
const maxTitle = 90;

export function titleOf({ prompt }: Pick<Shown, 'prompt'>, t: PageTexts): string {
  if (prompt === null) return t('madeWith');
  const line = prompt.replace(/\s+/g, ' ');
  if (line.length <= maxTitle) return line;
  return `${line.slice(0, maxTitle - 1).replace(/\p{Surrogate}$/u, '')}…`;
}

/** Names and values. */
function settingsOf(shown: Shown, t: PageTexts): [string, string][] {
  const { settings, width, height, duration } = shown;
  if (settings === null) return [];
  const { model, profile, steps, guidance, seed, loras, privateLoras } = settings;
  const adapters = [
    ...loras.map(({ path, scale }) => `${path} (${scale})`),
    ...(privateLoras > 0 ? [t('notPublic', { count: privateLoras })] : []),
  ];
  return [
    [t('model'), model],
    [t('profile'), profile === 'standard' ? t('standard') : t('ultraFast')],
    [t('size'), t('sizeOf', { size: `${width}×${height}`, seconds: duration })],
    [t('steps'), String(steps)],
    [t('guidance'), String(guidance)],
    [t('seed'), String(seed)],
    ...(adapters.length > 0 ? [[t('adapters'), adapters.join('; ')] as [string, string]] : []),
  ];
}

/** Absolute addresses for other sites, and where a video is reported. */
export interface PageLinks {
  readonly page: string;
  readonly oembed: string;
  /** E-mail address or https page; undefined without one. */
  readonly report: string | undefined;
}

/** The page of a link. It works without its script; its own addresses are relative, for every name of the server. */
export function sharePage(shown: Shown, links: PageLinks, t: PageTexts): string {
  const { id, prompt, negativePrompt } = shown;
  const title = titleOf(shown, t);
  const settings = settingsOf(shown, t);
  const still = (name: PictureName, heading: string, alt: string) =>
    html`<h2>${heading}</h2>${covered(shown, html`<img class="still" src="${id}/${name}" alt="${alt}">`, t)}`;
  const date = shown.createdAt.toISOString().slice(0, 10);
  const facts = t.markup('facts', {
    size: `${shown.width}×${shown.height}`,
    seconds: shown.duration,
    date,
    time: (text) => `<time datetime="${date}">${text}</time>`,
  });
  return document(
    t,
    html`<title>${title} · Kinora</title>
${tags(shown, links, t)}`,
    pageStyles,
    html`<header><a href="../">Kinora</a></header>
<main>
${covered(shown, videoElement(shown, `${id}/`, t), t)}
<h1>${title}</h1>
<p class="soft">${new Markup(facts)}</p>
${shown.canRestore ? html`<a class="open" href="../?share=${id}">${t('open')}</a>` : null}
${prompt === null ? null : html`<button hidden value="${prompt}" data-copied="${t('copied')}">${t('copyPrompt')}</button>`}
${prompt !== null && prompt !== title ? html`<h2>${t('prompt')}</h2><p>${prompt}</p>` : null}
${negativePrompt === null ? null : html`<h2>${t('negativePrompt')}</h2><p>${negativePrompt}</p>`}
${
  settings.length === 0
    ? null
    : html`<h2>${t('settings')}</h2><dl>${settings.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`
}
${shown.hasImage ? still('image', t('startImage'), t('startImageIs')) : null}
${shown.hasLastImage ? still('last-image', t('endImage'), t('endImageIs')) : null}
</main>
<footer><a href="../">${t('make')}</a>${reportLink(links, t)}</footer>
${prompt === null ? null : html`<script>${new Markup(pageScript)}</script>`}`,
  );
}

/** Shows the button that copies the prompt, where the browser has a clipboard: over https and on loopback. */
export const pageScript = `
const button = document.querySelector('button');
if (button && navigator.clipboard) {
  button.hidden = false;
  button.onclick = async () => {
    await navigator.clipboard.writeText(button.value);
    button.textContent = button.dataset.copied;
  };
}
`;

export function embedPage(shown: Shown, t: PageTexts): string {
  return document(
    t,
    html`<title>${titleOf(shown, t)} · Kinora</title><meta name="robots" content="noindex">`,
    embedStyles,
    covered(shown, videoElement(shown, '', t), t),
  );
}

/** A page without a video: of a link that has ended, or that there never was. */
export function absentPage(kind: 'ended' | 'unknown', t: PageTexts): string {
  const title = t(kind);
  const sentence = t(`${kind}Text`);
  return document(
    t,
    html`<title>${title} · Kinora</title><meta name="robots" content="noindex">`,
    pageStyles,
    html`<header><a href="/">Kinora</a></header>
<main><h1>${title}</h1><p>${sentence}</p><p><a href="/">${t('make')}</a></p></main>`,
  );
}

function document(t: PageTexts, head: Markup, styles: string, body: Markup): string {
  return html`<!doctype html>
<html lang="${t('language')}">
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
function tags(shown: Shown, { page, oembed }: PageLinks, t: PageTexts): Markup {
  const { width, height } = shown;
  const title = titleOf(shown, t);
  const description = shown.prompt ?? t('description', { seconds: shown.duration });
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
function videoElement(shown: Shown, base: string, t: PageTexts): Markup {
  const poster = shown.preview && html` poster="${base}${shown.preview}"`;
  const shape = shown.height > shown.width ? html` class="tall"` : null;
  return html`<video${shape} src="${base}video.mp4"${poster} width="${shown.width}" height="${shown.height}" controls loop playsinline preload="metadata" aria-label="${titleOf(shown, t)}"></video>`;
}

/** A flagged picture is shown when it is asked for. */
function covered({ isFlagged }: Shown, content: Markup, t: PageTexts): Markup {
  if (!isFlagged) return content;
  return html`<details><summary>${t('flagged')}</summary>${content}</details>`;
}

function reportLink({ report, page }: PageLinks, t: PageTexts): Markup | null {
  if (report === undefined) return null;
  const subject = encodeURIComponent(`Report of a shared video: ${page}`);
  const address = report.includes('://') ? report : `mailto:${report}?subject=${subject}`;
  return html`<a href="${address}">${t('report')}</a>`;
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
body{margin:0 auto;max-width:min(1920px,100vw);padding:0 16px 32px;background:var(--paper);color:var(--ink);font:16px/1.55 ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
header{padding:16px 0}
header a{color:inherit;font-weight:700;text-decoration:none}
a{color:var(--strong);text-underline-offset:3px}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
video,.still{display:block;height:auto;border-radius:14px}
video{margin-inline:auto;width:min(100%,86vh*16/9);background:#000}
video.tall{width:min(100%,86vh*9/16)}
h1{margin:20px 0 8px;font-size:1.4rem;line-height:1.3;overflow-wrap:anywhere}
h2{margin:24px 0 8px;font-size:1rem}
p{margin:8px 0;max-width:70ch;overflow-wrap:anywhere;white-space:pre-line}
.soft{color:var(--soft)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 20px;margin:0}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
.still{max-width:320px;max-height:320px;width:auto}
.open,button:not([hidden]){display:inline-block;margin:12px 8px 12px 0;padding:10px 18px;border:1px solid var(--line);border-radius:9px;background:var(--surface);color:inherit;font:inherit;font-weight:600;text-decoration:none;cursor:pointer}
.open{border-color:var(--accent);background:var(--accent);color:var(--on-accent)}
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
