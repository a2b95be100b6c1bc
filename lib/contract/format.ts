import type { CacheKind } from './applied';
import type { ModelComponent } from './manifest';
import type { ComponentId } from './manifest-parts';
import type { ProfileName } from './profile-names';
import type { Phase } from './progress';

/** Names of the phases, for page and command line. */
export const phaseNames: Readonly<Record<Phase, string>> = {
  optimise: 'Optimise prompt',
  load: 'Load model',
  text: 'Read prompt',
  image: 'Read image',
  denoise: 'Denoise',
  decode: 'Decode frames',
  check: 'Check frames',
  finish: 'Write file',
};

/** Names of the outcomes of a worker's job, for page and command line. */
export const outcomeNames = {
  completed: 'Done',
  failed: 'Failed',
  lost: 'Cancelled or taken over',
  released: 'Handed back',
} as const;
export type JobOutcome = keyof typeof outcomeNames;

/** Why waiting jobs were not given, as the end of "3 jobs wait, but …", for page and command line. */
export const skipReasons = {
  model: 'this server does not assign its jobs to this model',
  size: 'this worker does not support the size',
  loras: 'this worker takes no LoRAs',
  precision: 'this server does not assign its jobs to this precision',
  duration: 'this worker takes only shorter videos',
  needs:
    'this worker does not know something that they ask for, such as loops or end images, lacks a download for it, or has a model that their LoRAs do not fit',
  checker: 'the safety checker is asked for, which this browser does not have',
  optimizer: 'another connected worker has the language model that is asked for',
  preferred: 'another idle worker has a model that comes first for them',
  'back-off': 'an attempt failed, and the next one begins after a pause',
  'not-ready': 'image or LoRAs are still being fetched',
} as const;

/** Names of the profiles, for page and command line. */
export const profileTitles: Readonly<Record<ProfileName, string>> = {
  standard: 'Standard',
  'ultra-fast': 'Ultra-fast',
};

/** Names of the caches of steps, for page and command line. */
export const cacheNames: Readonly<Record<CacheKind, string | null>> = {
  none: null,
  magcache: 'MagCache',
};

/** Names and purposes of the usual parts of a model, for page and command line. */
export const componentTexts = {
  configuration: { name: 'Configuration', purpose: 'Sizes of the model, and its tokenizer' },
  transformer: { name: 'Transformer', purpose: 'Denoises the latents, step by step' },
  transformer_2: { name: 'Low-noise transformer', purpose: 'Takes over at low noise' },
  image_encoder: { name: 'Image encoder', purpose: 'Describes the start image' },
  text_encoder: { name: 'Text encoder', purpose: 'Reads the prompt' },
  vae: { name: 'VAE', purpose: 'Turns images to latents and back' },
  light_decoder: {
    name: 'Light decoder (experimental)',
    purpose: 'Decodes in a quarter of the time; how well is not known yet',
  },
  tiny_decoder: { name: 'Tiny decoder', purpose: 'Decodes ultra-fast videos in a moment' },
  adapter: { name: 'Few-step adapter', purpose: 'Lets ultra-fast videos be made in a few steps' },
  guidance_adapter: { name: 'Guidance adapter', purpose: 'Lets a step take one pass, not two' },
  safety_checker: { name: 'Safety checker', purpose: 'Flags videos that may be unsafe for work' },
  language_model: { name: 'Language model', purpose: 'Continues prompts' },
};

/** Whether page and command line have texts for a part. */
export function isUsualComponent(id: ComponentId): id is keyof typeof componentTexts {
  return Object.hasOwn(componentTexts, id);
}

/** Name of a part of a model: the usual one, or what its manifest says. */
export function componentName(
  id: ComponentId,
  { components }: { readonly components: readonly ModelComponent[] },
): string {
  if (isUsualComponent(id)) return componentTexts[id].name;
  return components.find((one) => one.id === id)?.name ?? id;
}

/** A time as one or two numbers: seconds; minutes and seconds; hours and minutes. */
export type TimeParts =
  | readonly [unit: 's', seconds: string]
  | readonly [unit: 'min', minutes: string, seconds: string]
  | readonly [unit: 'h', hours: string, minutes: string];

/** Splits a time in seconds for display; with one decimal below ten seconds if `precise`. */
export function timeParts(seconds: number, precise = false): TimeParts {
  if (precise && seconds < 9.95) return ['s', seconds.toFixed(1)];
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return ['s', `${whole}`];
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return ['min', `${minutes}`, pad(whole % 60)];
  return ['h', `${Math.floor(minutes / 60)}`, pad(minutes % 60)];
}

/** `42 s`, `3 min 05 s`, `1 h 02 min`; with one decimal below ten seconds if `precise`. */
export function formatSeconds(seconds: number, precise = false): string {
  const parts = timeParts(seconds, precise);
  switch (parts[0]) {
    case 's':
      return `${parts[1]} s`;
    case 'min':
      return `${parts[1]} min ${parts[2]} s`;
    case 'h':
      return `${parts[1]} h ${parts[2]} min`;
  }
}

/** `812 B`, `4.2 MB`, in decimal units, as file managers use for files. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 99.5 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** `7.4 GiB`, in binary units, as GPU tools use for memory. */
export function formatMemory(bytes: number): string {
  const gibibytes = bytes / 2 ** 30;
  if (gibibytes >= 0.0995) return `${gibibytes.toFixed(gibibytes >= 99.5 ? 0 : 1)} GiB`;
  return `${Math.max(1, Math.round(bytes / 2 ** 20))} MiB`;
}

/** `41 %`, rounded down, so that 100 % means finished. */
export function formatPercent(fraction: number): string {
  return `${Math.floor(100 * Math.min(1, Math.max(0, fraction)))} %`;
}

/** `1280×720` from `1280*720`. */
export function formatSize(size: string): string {
  return size.replace('*', '×');
}

function pad(value: number): string {
  return String(value).padStart(2, '0');
}
