/*
 * Constants of a request, without the schemas that check one: a page shows a form before it has loaded those.
 */

/** Most frames per second that a model may make. */
export const mostFramesPerSecond = 60;
/** Largest image file, in bytes. */
export const maxImageBytes = 20_000_000;
/** Largest image, in pixels. */
export const maxImagePixels = 40_000_000;
/** Largest explicit seed. */
export const maxSeed = 9_999_999_999;

/** The sample image that is part of Kinora, as a path of the app's origin (a file in `public/`). */
export const sampleImagePath = '/samples/still.jpg' as const;
/** What the bundled model makes of it, and the first frame of that. */
export const heroClipPath = '/samples/hero.mp4' as const;
export const heroPosterPath = '/samples/hero.jpg' as const;
/** A prompt for the sample image. */
export const samplePrompt =
  'A mountain lake at dusk with a small sailing boat. The camera pans slowly to the right. Calm, cinematic.';

/** Most LoRAs of a request. */
export const maxLoras = 3;
/** Longest prompt in characters. The text encoder reads its first 512 tokens. */
export const maxPromptLength = 10_000;

/** The sizes of videos in the notation of the v3 API: `width*height` in pixels. */
export const sizes = ['1280*720', '720*1280'] as const;
export type Size = (typeof sizes)[number];

/** Range and default of each number, for forms, the command line and messages. */
export const parameterRanges = {
  num_inference_steps: { min: 1, max: 40, step: 1, default: 30 },
  duration: { min: 5, max: 10, step: 1, default: 5 },
  guidance_scale: { min: 1, max: 10, step: 0.1, default: 5 },
  flow_shift: { min: 1, max: 10, step: 0.1, default: 5 },
  seed: { min: -1, max: maxSeed, step: 1, default: -1 },
} as const;

/** At which second of a video an end image may stand that is not its end; the duration limits it further. */
export const lastImageSeconds = { min: 0.1, max: 10, step: 0.1 } as const;

/** The option of `npm run generate` for each parameter of a request. */
export const parameterOptions = {
  prompt: 'prompt',
  negative_prompt: 'negative-prompt',
  size: 'size',
  duration: 'duration',
  loop: 'loop',
  last_image_at: 'last-image-at',
  upscale: 'upscale',
  upscaler: 'upscaler',
  smooth: 'smooth',
  num_inference_steps: 'steps',
  guidance_scale: 'guidance',
  flow_shift: 'flow-shift',
  seed: 'seed',
  loras: 'lora',
} as const;

/** Strength of the adapters of a profile, as a factor of the scales that the manifest gives them. */
export const adapterStrengths = { min: 0.5, max: 1.2, step: 0.05, default: 1 } as const;

/** Parameters of a request that a profile may not use. */
export const unusedParameters = ['num_inference_steps', 'guidance_scale', 'flow_shift'] as const;

/** Width and height in pixels of a requested size. */
export function sizeInPixels(size: Size): { width: number; height: number } {
  const [width, height] = size.split('*').map(Number) as [number, number];
  return { width, height };
}

/** The size at which a model computes, for each requested size. */
export type NativeSizes = Readonly<
  Record<Size, { readonly width: number; readonly height: number }>
>;

/** The size at which a model computes a requested one, under a profile that may have sizes of its own. */
export function nativeSizeOf(
  { nativeSizes }: { readonly nativeSizes: NativeSizes },
  profile: { readonly nativeSizes?: NativeSizes | undefined },
  size: Size,
): NativeSizes[Size] {
  return (profile.nativeSizes ?? nativeSizes)[size];
}

/** How many frames a model's videos have, as its manifest says. */
export interface FrameRule {
  readonly framesPerSecond: number;
  /** A video has one frame more than a multiple of it. */
  readonly frameStride: number;
}

/** Number of frames of a video: those of its seconds, as near as the stride allows, and the start image. */
export function frameCount(
  { framesPerSecond, frameStride }: FrameRule,
  durationSeconds: number,
): number {
  return 1 + frameStride * Math.round((framesPerSecond * durationSeconds) / frameStride);
}

/** The frame of a video at a second of it: never its first one, which is the start image. */
export function frameAt(rule: FrameRule, durationSeconds: number, second: number): number {
  const frame = Math.round(rule.framesPerSecond * second);
  return Math.max(1, Math.min(frame, frameCount(rule, durationSeconds) - 1));
}

/** Parts of tools that finish videos: networks that put frames between frames, and enlarge them. Each is one file. */
export const finisherParts = ['interpolator', 'upscaler'] as const;
export type FinisherPart = (typeof finisherParts)[number];

/** Upscalers of frames: Lanczos-3, or a network, by the id of its tool. */
export const upscalers = ['lanczos3', 'realesr-general-x4v3'] as const;
export type UpscalerName = (typeof upscalers)[number];

/** What is made of the decoded frames before they are encoded, as a request names it. */
export interface Finishing {
  readonly upscale?: 1 | 2 | undefined;
  /** Lanczos-3 when absent. Without `upscale` it does nothing. */
  readonly upscaler?: UpscalerName | undefined;
  /** Whether a frame is put between each two. */
  readonly smooth?: boolean | undefined;
}

/** The switches of a request: parameters that are on or off. */
export interface Switches extends Finishing {
  readonly loop?: boolean | undefined;
}
export type SwitchName = keyof Switches;

interface SwitchDefinition {
  /** Its value where it is on; where it is off, the parameter is absent. */
  readonly on: NonNullable<Switches[SwitchName]>;
  /** The switch without which it does nothing. */
  readonly within?: SwitchName;
  /** The network that it takes, which is a download. */
  readonly network?: FinisherPart;
}

export const switches: Readonly<Record<SwitchName, SwitchDefinition>> = {
  loop: { on: true },
  upscale: { on: 2 },
  upscaler: { on: 'realesr-general-x4v3', within: 'upscale', network: 'upscaler' },
  smooth: { on: true, network: 'interpolator' },
};
export const switchNames = Object.keys(switches) as SwitchName[];

export function isSwitch<Name extends string>(name: Name): name is Name & SwitchName {
  return Object.hasOwn(switches, name);
}

/** Parameters that not every worker of the API knows. */
export const laterParameters = [
  'loop',
  'last_image',
  'last_image_at',
  'upscale',
  'smooth',
] as const;

/** The switches that are on and do something. */
export function switchesOn(values: Switches): SwitchName[] {
  const isOn = (name: SwitchName): boolean => {
    const { on, within } = switches[name];
    return values[name] === on && (within === undefined || isOn(within));
  };
  return switchNames.filter(isOn);
}

/** The same as parameters: what is off is absent. */
export function chosenSwitches(values: Switches): Switches {
  return Object.fromEntries(switchesOn(values).map((name) => [name, switches[name].on]));
}

/** The networks that finish a video. */
export function finishersOf(finishing: Finishing): FinisherPart[] {
  return switchesOn(finishing).flatMap((name) => switches[name].network ?? []);
}

/**
 * Frames of the file that a video of so many frames becomes: a loop leaves out its last one, which is the first again;
 * a smooth video has another one between each two, a loop also between its last and its first.
 */
export function framesInFile(
  frames: number,
  { loop, smooth }: Pick<Switches, 'loop' | 'smooth'>,
): number {
  const kept = loop ? frames - 1 : frames;
  if (!smooth) return kept;
  return loop ? 2 * kept : 2 * kept - 1;
}

/** Width and height of a video in pixels, and its frames per second. */
export interface VideoFormat {
  readonly width: number;
  readonly height: number;
  readonly frameRate: number;
}

/** The format of a video after finishing. */
export function finishedFormat(
  { width, height, frameRate }: VideoFormat,
  { upscale = 1, smooth }: Finishing,
): VideoFormat {
  return {
    width: upscale * width,
    height: upscale * height,
    frameRate: (smooth ? 2 : 1) * frameRate,
  };
}

/** The format of the file that a request asks for. @param framesPerSecond of the model */
export function formatOfFile(
  { size, ...finishing }: Finishing & { readonly size: Size },
  framesPerSecond: number,
): VideoFormat {
  return finishedFormat({ ...sizeInPixels(size), frameRate: framesPerSecond }, finishing);
}

/** The seed itself, or for −1 a random one in [0, {@link maxSeed}]. */
export function resolveSeed(seed: number): number {
  if (seed >= 0) return seed;
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  // 53 random bits: the probabilities of two seeds differ by about one in a million.
  const unit = ((high >>> 5) * 67_108_864 + (low >>> 6)) / 9_007_199_254_740_992;
  return Math.floor(unit * (maxSeed + 1));
}
