import type { Applied } from '../../../contract';
import type { HeldEnd, HeldEnds } from '../../../pipeline/held-end';
import { type Measures, median } from './measures';

/** One video of the comparison. */
export interface ComparedClip {
  readonly scene: string;
  readonly prompt: string;
  readonly seed: number;
  /** Of the start image: another browser may draw it a little differently. */
  readonly image_sha256: string;
  /** The profile and what was switched on with it, as asked for. */
  readonly profile: string;
  /** The same with the adapter that ran: a column of the page. */
  readonly column: string;
  readonly applied: Applied | null;
  /** Computing time. */
  readonly seconds: { readonly total: number; readonly sampling: number; readonly decode: number };
  /** Paths inside the folder. */
  readonly image: string;
  readonly video: string;
  readonly measures: Measures;
}

/** Measured on the end of a scene's first video. */
export interface SceneEnds extends HeldEnds {
  readonly scene: string;
}

/** What `compare.json` holds: it is alike on every machine, so that two of them can be compared. */
export interface Comparison {
  readonly format: 1;
  readonly model: string;
  /** Graphics card and browser, as the browser names them. */
  readonly device: string;
  readonly settings: {
    readonly steps: number | null;
    readonly seconds: number;
    readonly loop: boolean;
  };
  readonly clips: readonly ComparedClip[];
  /** What may be held as a clip's end, by the VAE alone; none where the model holds no latent frames. */
  readonly ends: readonly SceneEnds[];
  /** Medians over the scenes, by column. */
  readonly summary: Readonly<Record<string, Summary>>;
}

export type Summary = Readonly<Record<(typeof summaryKeys)[number], number | null>>;

/** What a column of the page sums up, in this order. */
export const summaryKeys = [
  'seconds',
  'first_frame_ssim',
  'sharpness',
  'sharpness_end',
  'flicker',
  'flow',
  'colour_drift',
  'end_psnr',
  'loop_seam',
] as const;

/** The figures of one video: sharpness as its median, and over its last quarter. */
export function figures({ seconds, measures }: ComparedClip): Summary {
  const { sharpness, ...rest } = measures;
  return {
    ...rest,
    seconds: seconds.total,
    sharpness: median(sharpness),
    sharpness_end: median(sharpness.slice(-Math.ceil(sharpness.length / 4))),
  };
}

/** Medians of each column, in the order in which the columns came. */
export function summaryOf(clips: readonly ComparedClip[]): Comparison['summary'] {
  const columns = [...new Set(clips.map(({ column }) => column))];
  return Object.fromEntries(
    columns.map((column) => {
      const rows = clips.filter((clip) => clip.column === column).map(figures);
      const middle = summaryKeys.map((key) => {
        const values = rows.flatMap((row) => row[key] ?? []);
        return [key, values.length > 0 ? median(values) : null];
      });
      return [column, Object.fromEntries(middle) as Summary];
    }),
  );
}

/** The clips with one more, which takes the place of an earlier one of its scene and column. */
export function withClip(clips: readonly ComparedClip[], clip: ComparedClip): ComparedClip[] {
  const others = clips.filter(
    ({ scene, column }) => scene !== clip.scene || column !== clip.column,
  );
  return [...others, clip];
}

/** Medians over the scenes, and which way of making an end image's latent frame is the better one. */
export function endsOf(ends: readonly HeldEnds[]): HeldEnds & { readonly better: keyof HeldEnds } {
  const middle = (key: keyof HeldEnds): HeldEnd => ({
    psnr: median(ends.map((one) => one[key].psnr)),
    step: median(ends.map((one) => one[key].step)),
  });
  const [own, alone, repeated] = [middle('own'), middle('alone'), middle('repeated')];
  const better = repeated.psnr > alone.psnr ? 'repeated' : 'alone';
  return { own, alone, repeated, better };
}
