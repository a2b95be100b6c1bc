import { html, Markup } from './html';
import type { Shown } from './shown';
import { embedStyles, pageStyles } from './styles';

/** Absolute addresses for other sites, and where a video is reported. */
export interface PageLinks {
  /** Of the page itself. */
  readonly page: string;
  readonly oembed: string;
  /** E-mail address or https page; undefined without one. */
  readonly report: string | undefined;
}

/** The page of a link. It needs no script: its own addresses are relative, for every name of the server. */
export function sharePage(shown: Shown, links: PageLinks): string {
  const { id, title, prompt, negativePrompt, settings, hasImage } = shown;
  const made = shown.createdAt.toISOString().slice(0, 10);
  return document(
    html`<title>${title} · Kinora</title>
${tags(shown, links)}`,
    pageStyles,
    html`<header><a href="../">Kinora</a></header>
<main>
${covered(shown, videoElement(shown, `${id}/`))}
<h1>${title}</h1>
<p class="soft">${shown.width}×${shown.height}, ${shown.duration} s, made on <time datetime="${made}">${made}</time> with a generative model</p>
${shown.canRestore ? html`<a class="open" href="../?share=${id}">Open in Kinora</a>` : null}
${prompt !== null && prompt !== title ? html`<h2>Prompt</h2><p>${prompt}</p>` : null}
${negativePrompt === null ? null : html`<h2>Negative prompt</h2><p>${negativePrompt}</p>`}
${
  settings.length === 0
    ? null
    : html`<h2>Settings</h2><dl>${settings.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`
}
${hasImage ? html`<h2>Start image</h2>${covered(shown, html`<img class="still" src="${id}/image" alt="The image that the video starts from">`)}` : null}
</main>
<footer><a href="../">Make a video with Kinora</a>${reportLink(links)}</footer>`,
  );
}

/** The video alone, for frames of other sites. */
export function embedPage(shown: Shown): string {
  return document(
    html`<title>${shown.title} · Kinora</title><meta name="robots" content="noindex">`,
    embedStyles,
    covered(shown, videoElement(shown, '')),
  );
}

/** A page without a video: of a link that has ended, or that there never was. */
export function absentPage(kind: 'ended' | 'unknown'): string {
  const [title, sentence] =
    kind === 'ended'
      ? [
          'This link has ended',
          'It has expired, or the person who shared the video has withdrawn it. Ask them for a new link.',
        ]
      : [
          'There is no such link',
          'Compare the address with the one that you were sent: a part of it may be missing.',
        ];
  return document(
    html`<title>${title} · Kinora</title><meta name="robots" content="noindex">`,
    pageStyles,
    html`<header><a href="/">Kinora</a></header>
<main><h1>${title}</h1><p>${sentence}</p><p><a href="/">Make a video with Kinora</a></p></main>`,
  );
}

function document(head: Markup, styles: string, body: Markup): string {
  return html`<!doctype html>
<html lang="en">
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
function tags(shown: Shown, { page, oembed }: PageLinks): Markup {
  const { title, width, height } = shown;
  const description =
    shown.prompt ?? `A ${shown.duration}-second video, made from one image on a graphics card.`;
  const video = `${page}/video.mp4`;
  const image = shown.hasImage && !shown.isFlagged ? `${page}/image` : null;
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
  const poster = shown.hasImage && !shown.isFlagged ? html` poster="${base}image"` : null;
  const shape = shown.height > shown.width ? html` class="tall"` : null;
  return html`<video${shape} src="${base}video.mp4"${poster} width="${shown.width}" height="${shown.height}" controls loop playsinline preload="metadata" aria-label="${shown.title}"></video>`;
}

/** A flagged picture is shown when it is asked for. */
function covered({ isFlagged }: Shown, content: Markup): Markup {
  if (!isFlagged) return content;
  return html`<details><summary>The safety check flagged this video. Show it all the same</summary>${content}</details>`;
}

function reportLink({ report, page }: PageLinks): Markup | null {
  if (report === undefined) return null;
  const subject = encodeURIComponent(`Report of a shared video: ${page}`);
  const address = report.includes('://') ? report : `mailto:${report}?subject=${subject}`;
  return html`<a href="${address}">Report this video</a>`;
}
