import path from 'node:path';
import { parameterRanges } from '../../../contract';
import type { AdapterFile, ProfileName } from '../../../contract/profile';
import type { SamplingOptions } from '../../../contract/run';
import { modelFamilies } from '../../../models';
import { passesOfSteps } from '../../../pipeline/caches/passes';
import { sum } from '../../../pipeline/estimate/stages';
import { latentSizeOf } from '../../../pipeline/latents';
import { longestClip } from '../../../pipeline/memory/plan';
import type { ModelAdapter } from '../../../pipeline/model';
import { familyOf } from '../../../pipeline/open';
import { resolveSampling } from '../../../pipeline/profiles';
import { readArguments, refuseMore, usageError } from '../../arguments';
import { diskFolder } from '../../disk-folder';
import { readManifest } from '../../inputs';
import { root } from '../../paths';

const help = `npm run bench -- profiles

Counts what a video of wan2.2-ti2v-5b takes under each profile, as forecasts do: 1280×704, 121 frames, 30 steps with
guidance. What adapters add is not counted, at most 8 % of the sampling. It measures nothing.
`;

/** Counted work of a profile, in floating-point operations. */
export interface ProfileWork {
  readonly name: string;
  /** Of the denoiser; one that a cache reuses is a small part of one. */
  readonly passes: number;
  readonly sampling: number;
  readonly decode: number;
}

/** `npm run bench -- profiles` */
export async function benchProfiles(args: readonly string[]): Promise<void> {
  const options = { help: { type: 'boolean', short: 'h', default: false } } as const;
  const refuse = (sentence: string) => usageError('bench', sentence);
  const { values, positionals } = readArguments(args, options, refuse);
  refuseMore('bench', positionals);
  process.stdout.write(values.help ? help : table(await countProfiles('wan2.2-ti2v-5b')));
}

/** Standard, and each way that ultra-fast can go. */
export async function countProfiles(id: string): Promise<ProfileWork[]> {
  const manifest = await readManifest(id);
  const configuration = diskFolder(path.join(root, 'public/models', manifest.base ?? id));
  const counts = await familyOf(modelFamilies, manifest).count(manifest.precision, configuration);
  const size = latentSizeOf(counts.latents, longestClip(manifest, '1280*720'));
  const defaults = {
    num_inference_steps: parameterRanges.num_inference_steps.default,
    guidance_scale: parameterRanges.guidance_scale.default,
    flow_shift: parameterRanges.flow_shift.default,
  };
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
    const model = { manifest, adapters, decoders: ['full', 'tiny'] } as const;
    const { sampling } = resolveSampling(model, profile, defaults, options);
    const { pass, decode } = counts.computation(size, sampling.decoder);
    const passes = sum(passesOfSteps(sampling));
    return { name, passes, sampling: passes * pass.flops, decode: decode.flops };
  };
  const { standard, 'ultra-fast': fast } = manifest.profiles;
  const { guidanceAdapter: guidance } = standard;
  return [
    count('standard', 'standard', {}),
    count('standard, cached', 'standard', { cache: true }),
    count('standard, guidance adapter', 'standard', { guidanceAdapter: true }, undefined, guidance),
    count('… cached', 'standard', { guidanceAdapter: true, cache: true }, undefined, guidance),
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

function table(profiles: readonly ProfileWork[]): string {
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
