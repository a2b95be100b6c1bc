import { escapeUTF8 } from 'entities';
import type { PictureName, Shown } from './shown';
import { embedStyles, pageStyles } from './styles';
import type { PageTexts } from './texts';

/** Absolute addresses for other sites, and where a video is reported. */
export interface PageLinks {
  /** Of the page itself. */
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

/** The video alone, for frames of other sites. */
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
  const named = (name: string, content: string | number) =>
    html`<meta name="${name}" content="${content}">\n`;
  const property = (name: string, content: string | number) =>
    html`<meta property="${name}" content="${content}">\n`;
  const both = [
    ...(shown.allowIndex ? [] : [named('robots', 'noindex')]),
    named('description', description),
    property('og:site_name', 'Kinora'),
    property('og:title', title),
    property('og:description', description),
    property('og:url', page),
    named('twitter:title', title),
    named('twitter:description', description),
    html`<link rel="canonical" href="${page}">\n`,
  ];
  if (shown.isFlagged) {
    const rest = [
      property('og:type', 'website'),
      named('twitter:card', 'summary'),
      named('rating', 'adult'),
    ];
    return html`${[...both, ...rest]}`;
  }
  const video_ = [
    property('og:type', 'video.other'),
    property('og:video', video),
    ...(video.startsWith('https:') ? [property('og:video:secure_url', video)] : []),
    property('og:video:type', 'video/mp4'),
    property('og:video:width', width),
    property('og:video:height', height),
    named('twitter:card', 'player'),
    named('twitter:player', `${page}/embed`),
    named('twitter:player:width', width),
    named('twitter:player:height', height),
    named('twitter:player:stream', video),
    named('twitter:player:stream:content_type', 'video/mp4'),
    ...(image === null ? [] : [property('og:image', image), named('twitter:image', image)]),
    html`<link rel="alternate" type="application/json+oembed" href="${oembed}" title="${title}">\n`,
  ];
  return html`${[...both, ...video_]}`;
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
