import { decoderKinds, type ModelManifest } from '../contract';
import type { AdapterFile, ProfileName } from '../contract/profile';
import { parseParameters } from '../contract/request';
import type { SamplingOptions } from '../contract/run';
import { passesOfSteps } from '../pipeline/caches/passes';
import { sum } from '../pipeline/estimate/stages';
import { type ClipSize, latentSizeOf } from '../pipeline/latents';
import type { ModelAdapter, ModelCounts } from '../pipeline/model';
import { resolveSampling } from '../pipeline/profiles';

/** Counted work of a profile, in floating-point operations. */
export interface ProfileWork {
  readonly name: string;
  /** Of the denoiser; one that a cache reuses is a small part of one. */
  readonly passes: number;
  readonly sampling: number;
  readonly decode: number;
}

/**
 * Standard, and each way that ultra-fast can go, with the usual parameters. What adapters add is not counted, at most
 * 8 % of the sampling.
 */
export function countProfiles(
  manifest: ModelManifest,
  counts: ModelCounts,
  native: ClipSize,
): ProfileWork[] {
  const size = latentSizeOf(counts.latents, native);
  const defaults = parseParameters({ prompt: manifest.id });
  const count = (
    name: string,
    profile: ProfileName,
    options: SamplingOptions,
    adapter?: AdapterFile,
    guidance?: AdapterFile,
  ): ProfileWork => {
    const adapters = {
      ...(adapter && { adapter: installed(adapter) }),
      ...(guidance && { guidance_adapter: installed(guidance) }),
    };
    const model = { manifest, adapters, decoders: decoderKinds };
    const { sampling } = resolveSampling(model, profile, defaults, options);
    const { pass, decode } = counts.computation(size, sampling.decoder);
    const passes = sum(passesOfSteps(sampling));
    return { name, passes, sampling: passes * pass.flops, decode: decode.flops };
  };
  const { standard, 'ultra-fast': fast } = manifest.profiles;
  const { guidanceAdapter: guidance } = standard;
  const guided = (cache: boolean) =>
    guidance
      ? [
          count(
            cache ? '… cached' : 'standard, guidance adapter',
            'standard',
            { guidanceAdapter: true, cache },
            undefined,
            guidance,
          ),
        ]
      : [];
  return [
    count('standard', 'standard', {}),
    count('standard, cached', 'standard', { cache: true }),
    ...guided(false),
    ...guided(true),
    ...fast.adapters.map((adapter) =>
      count(`ultra-fast, ${adapter.name}`, 'ultra-fast', {}, adapter, adapter.guidanceAdapter),
    ),
    count('ultra-fast, no adapter', 'ultra-fast', {}),
  ];
}

/** A published adapter as if it was installed. */
function installed({ repository, path: file }: AdapterFile): ModelAdapter {
  return { source: `${repository}/${file}@main`, misfit: null };
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

function petaflop(flop: number): string {
  return `${(flop / 1e15).toFixed(3)} PFLOP`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
