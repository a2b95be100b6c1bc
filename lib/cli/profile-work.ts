import {
  type AdapterFile,
  decoderKinds,
  decoderOffers,
  type ModelManifest,
  type ProfileName,
  parseParameters,
  type SamplingOptions,
} from '../contract';
import { sum } from '../pipeline/estimate/stages';
import { type ClipSize, latentSizeOf } from '../pipeline/latents';
import type { ModelCounts } from '../pipeline/model';
import { resolveSampling } from '../pipeline/profiles';
import { passesOfSteps } from '../pipeline/step-cache';

/** Counted work of a profile, in floating-point operations. */
export interface ProfileWork {
  readonly name: string;
  /** Passes of the denoiser; a pass that a cache reuses is a small part of one. */
  readonly passes: number;
  readonly sampling: number;
  readonly decode: number;
}

/**
 * Standard, and each way that ultra-fast can go, with the usual parameters. The work of adapters, at most 8 % of the
 * sampling, is not counted.
 */
export function countProfiles(
  manifest: ModelManifest,
  counts: ModelCounts,
  native: ClipSize,
): ProfileWork[] {
  const size = latentSizeOf(counts.latents, native);
  const defaults = parseParameters({ prompt: manifest.id });
  const { standard, 'ultra-fast': fast } = manifest.profiles;
  const { guidanceAdapter: guidance_adapter } = standard;
  type Way = readonly [
    string,
    ProfileName,
    SamplingOptions,
    Record<string, AdapterFile | undefined>,
  ];
  const ways: readonly Way[] = [
    ['standard', 'standard', {}, {}],
    ...(manifest.magcache ? [['standard, cached', 'standard', { cache: true }, {}] as const] : []),
    ...(guidance_adapter
      ? (manifest.magcache ? [false, true] : [false]).map((cache): Way => {
          const name = cache ? '… cached' : 'standard, guidance adapter';
          return [name, 'standard', { guidanceAdapter: true, cache }, { guidance_adapter }];
        })
      : []),
    ...fast.adapters.map((adapter): Way => {
      const adapters = { adapter, guidance_adapter: adapter.guidanceAdapter };
      return [`ultra-fast, ${adapter.name}`, 'ultra-fast', {}, adapters];
    }),
    ...decoderOffers(manifest).map((): Way => {
      const [adapter] = fast.adapters;
      return ['… light decoder', 'ultra-fast', { decoder: 'light' }, { adapter }];
    }),
    ['ultra-fast, no adapter', 'ultra-fast', {}, {}],
  ];
  return ways.map(([name, profile, options, files]) => {
    // They count as installed.
    const adapters = Object.entries(files).flatMap(([role, file]) =>
      file ? [[role, { source: `${file.repository}/${file.path}@main`, misfit: null }]] : [],
    );
    const model = { manifest, adapters: Object.fromEntries(adapters), decoders: decoderKinds };
    const { sampling } = resolveSampling(model, profile, defaults, options);
    const { pass, decode } = counts.computation(size, sampling.decoder);
    const passes = sum(passesOfSteps(sampling));
    return { name, passes, sampling: passes * pass.flops, decode: decode.flops };
  });
}

/** The work as a table. */
export function workTable(profiles: readonly ProfileWork[]): string {
  const [first] = profiles;
  const rows = profiles.map(({ name, passes, sampling, decode }) => {
    const share = (sampling + decode) / ((first?.sampling ?? 0) + (first?.decode ?? 0));
    const cells = [passes.toFixed(1), petaflop(sampling), petaflop(decode), percent(share)];
    return [name, ...cells];
  });
  return [['profile', 'passes', 'sampling', 'decode', 'work'], ...rows]
    .map(
      ([name = '', ...cells]) =>
        `${name.padEnd(28)}${cells.map((cell) => cell.padStart(14)).join('')}\n`,
    )
    .join('');
}

const petaflop = (flop: number) => `${(flop / 1e15).toFixed(3)} PFLOP`;
const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
