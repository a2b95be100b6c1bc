import { type ComparedClip, type Comparison, endsOf, figures, summaryKeys } from './record';

const titles: Readonly<
  Record<(typeof summaryKeys)[number], readonly [name: string, hint: string]>
> = {
  seconds: ['Time, s', 'computing time of a video'],
  first_frame_ssim: ['First frame', 'SSIM with the start image; 1 is the same'],
  sharpness: ['Sharpness', 'mean |Laplacian|, as a share of the start image’s'],
  sharpness_end: [
    'Sharpness at the end',
    'over the last quarter: lower than before means that detail is lost',
  ],
  flicker: [
    'Flicker',
    'levels of 255 by which a patch differs from its neighbours in time; fast motion counts too',
  ],
  flow: ['Motion', 'pixels per frame, for a picture 1280 wide'],
  colour_drift: ['Colour drift', 'CIE Lab, from the start image to the last frame'],
  end_psnr: ['End, dB', 'PSNR of the last frame with the wanted end; loops only'],
  loop_seam: ['Seam', 'step from the last frame to the first, of the usual step; loops only'],
};

/** The page of a comparison: medians, then the videos of each scene side by side. */
export function comparePage(comparison: Comparison): string {
  const { model, device, settings, clips, ends, summary } = comparison;
  const columns = Object.keys(summary);
  const scenes = [...new Set(clips.map(({ scene }) => scene))];
  const { steps, seconds, loop } = settings;
  const facts = [
    model,
    device,
    ...(steps === null ? [] : [`${steps} steps asked for`]),
    `${seconds} s`,
    ...(loop ? ['loops'] : []),
    `${scenes.length} start images`,
  ];
  const head = summaryKeys
    .map(
      (key) => `<th scope="col" title="${escaped(titles[key][1])}">${escaped(titles[key][0])}</th>`,
    )
    .join('');
  const medians = columns.map((column) => {
    const cells = summaryKeys.map((key) => `<td>${shown(summary[column]?.[key])}</td>`).join('');
    return `<tr><th scope="row">${escaped(column)}</th>${cells}</tr>`;
  });
  const legend = summaryKeys
    .map((key) => `<dt>${escaped(titles[key][0])}</dt><dd>${escaped(titles[key][1])}</dd>`)
    .join('');
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Kinora: profiles compared</title>
<style>
  :root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
  body { margin: 0 auto; padding: 1rem; max-width: 110rem; }
  .scroll { overflow-x: auto; }
  table { border-collapse: collapse; }
  th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); white-space: nowrap; }
  th[scope=row] { text-align: left; white-space: normal; position: sticky; left: 0; background: Canvas; }
  details { margin-block: .6rem; }
  dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; }
  dd { margin: 0; }
  .clips { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 17rem), 1fr)); gap: 1rem; }
  figure { margin: 0; }
  img, video { width: 100%; height: auto; display: block; border-radius: .4rem; background: #000; }
  figcaption { font-size: .85rem; }
  figcaption strong { display: block; }
  figcaption span { display: inline-block; margin-inline-end: .9em; }
  figcaption b { font-variant-numeric: tabular-nums; }
</style>
<main>
<h1>Profiles compared</h1>
<p>${escaped(facts.join(' · '))}</p>
<h2>Medians</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Medians"><table><thead><tr><td></td>${head}</tr></thead><tbody>${medians.join('')}</tbody></table></div>
<details><summary>What the figures are</summary><dl>${legend}</dl></details>
${endsSection(ends)}<p><button type="button" id="play">Play all from the start</button></p>
${scenes
  .map((scene) =>
    sceneSection(
      clips.filter((clip) => clip.scene === scene),
      columns,
    ),
  )
  .join('\n')}
</main>
<script>
  const videos = [...document.querySelectorAll('video')];
  document.getElementById('play').addEventListener('click', () => {
    for (const video of videos) { video.currentTime = 0; video.play(); }
  });
</script>
</html>
`;
}

function sceneSection(clips: readonly ComparedClip[], columns: readonly string[]): string {
  const [first] = clips;
  if (!first) return '';
  const videos = columns.flatMap((column) => {
    const clip = clips.find((each) => each.column === column);
    if (!clip) return [];
    const row = figures(clip);
    const facts = summaryKeys
      .filter((key) => row[key] !== null)
      .map((key) => `<span>${escaped(titles[key][0])} <b>${shown(row[key])}</b></span>`)
      .join(' ');
    return `<figure><video src="${escaped(clip.video)}" controls loop muted playsinline preload="metadata" aria-label="${escaped(`${clip.scene}, ${column}`)}"></video><figcaption><strong>${escaped(column)}</strong>${facts}</figcaption></figure>`;
  });
  return `<section><h2>${escaped(first.scene)}</h2><p>${escaped(first.prompt)} Seed ${first.seed}.</p>
<div class="clips"><figure><img src="${escaped(first.image)}" alt="Start image" width="1280" height="720" loading="lazy"><figcaption><strong>start image</strong></figcaption></figure>${videos.join('')}</div></section>`;
}

const endNames = {
  own: 'the clip’s own latent frame',
  alone: 'the picture encoded alone',
  repeated: 'the picture encoded as a still clip',
} as const;

/** Which way of making an end image's latent frame is the better one. */
export function endsSentence(ends: Comparison['ends']): string {
  const { alone, repeated, better } = endsOf(ends);
  const [a, b] = [alone, repeated].map(
    ({ psnr, step }) => `${shown(psnr)} dB, step ${shown(step)}`,
  );
  return `Held end image, by the VAE alone: encoded alone ${a}; as a still clip ${b}. Better here: ${endNames[better]}.`;
}

function endsSection(ends: Comparison['ends']): string {
  if (ends.length === 0) return '';
  const medians = endsOf(ends);
  const rows = (['own', 'alone', 'repeated'] as const).map((key) => {
    const { psnr, step } = medians[key];
    return `<tr><th scope="row">${endNames[key]}</th><td>${shown(psnr)}</td><td>${shown(step)}</td></tr>`;
  });
  return `<h2>A held end image, by the VAE alone</h2>
<p>The end of each scene’s first video is encoded, its last latent frame replaced, and the four frames of it compared with the video’s. Better here: <strong>${endNames[medians.better]}</strong>.</p>
<div class="scroll" tabindex="0" role="region" aria-label="A held end image"><table><thead><tr><td></td><th scope="col">PSNR, dB</th><th scope="col">Step of brightness</th></tr></thead><tbody>${rows.join('')}</tbody></table></div>
`;
}

function shown(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
