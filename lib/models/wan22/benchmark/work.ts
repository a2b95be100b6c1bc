import {
  type AdapterPart,
  adapterParts,
  type ModelManifest,
  type Parameters,
  type ProfileName,
} from '../../../contract';
import type { AdapterFile } from '../../../contract/profile';
import type { SamplingOptions } from '../../../contract/run';
import { magCacheSkips } from '../../../pipeline/caches';
import type { LatentSize } from '../../../pipeline/latents';
import type { ModelAdapter } from '../../../pipeline/model';
import { type ResolvedSampling, resolveSampling } from '../../../pipeline/profiles';
import { maxPromptTokens } from '../../umt5/config';
import { loraFlops, passFlops } from '../../wan/flops';
import { publishedTinyDecoder } from '../../wan/tiny-decoder/published';
import { tinyGraphs } from '../../wan/tiny-decoder/weights';
import { tokensPerFrame } from '../../wan/tokens';
import { decodeCost, decoderGraphs } from '../../wan/vae';
import type { ModelConfig } from '../config';

/** Floating-point operations of a video under a profile. */
export interface ProfileWork {
  readonly resolved: ResolvedSampling;
  /** Passes of the blocks, of both guidance branches. */
  readonly passes: number;
  readonly sampling: number;
  readonly decode: number;
}

type RankedAdapter = ModelAdapter & { readonly rank: number };

/** What the work of a profile is counted for. */
export interface WorkRequest {
  readonly config: ModelConfig;
  readonly manifest: ModelManifest;
  /** Of one clip. */
  readonly size: LatentSize;
  readonly parameters: Pick<Parameters, 'num_inference_steps' | 'guidance_scale' | 'flow_shift'>;
  /** The installed adapters and their ranks. */
  readonly adapters: Readonly<Partial<Record<AdapterPart, RankedAdapter>>>;
  readonly options?: SamplingOptions;
}

/**
 * Counts the passes of a profile and what they take. The number of tokens of the text is the most that it
 * can be; what EasyCache skips depends on the video and is not counted.
 */
export function profileWork(name: ProfileName, request: WorkRequest): ProfileWork {
  const { config, manifest, size, parameters, adapters, options } = request;
  const model = { manifest, adapters, decoders: ['full', 'tiny'] } as const;
  const resolved = resolveSampling(model, name, parameters, options);
  const { steps, guidanceScale, guidedSteps = steps, decoder, cache: rule } = resolved.sampling;
  const skips = rule?.kind === 'magcache' ? magCacheSkips(steps, rule.settings) : null;
  const computed = (branch: 0 | 1, of: number) =>
    of - (skips?.[branch].slice(0, of).filter(Boolean).length ?? 0);
  const passes = computed(0, steps) + (guidanceScale > 1 ? computed(1, guidedSteps) : 0);
  const tokens = size.frames * tokensPerFrame(config.transformer, size);
  const pass = passFlops(config.transformer, tokens, maxPromptTokens);
  const frame = { latentHeight: size.height, latentWidth: size.width };
  const graphs =
    decoder === 'tiny'
      ? tinyGraphs(publishedTinyDecoder(config), frame)
      : decoderGraphs(config.vae, frame);
  const used = adapterParts.filter((part) => resolved.adapterScales[part] !== undefined);
  const rank = used.reduce((sum, part) => sum + (adapters[part]?.rank ?? 0), 0);
  return {
    resolved,
    passes,
    sampling: passes * (pass + loraFlops(config.transformer, tokens, rank)),
    decode: decodeCost(graphs, size.frames).flops,
  };
}

/** A published adapter as if it was installed. Its rank is in its name, or on its card. */
export function publishedAdapter({ repository, path }: AdapterFile): RankedAdapter {
  const onCards = { 'few-step': 128, cfg: 64 };
  const [, kind] = /LongLive-Plug.*5B-(few-step|cfg)$/.exec(repository) ?? [];
  const named = /rank_(\d+)/.exec(path)?.[1];
  const rank = kind === 'few-step' || kind === 'cfg' ? onCards[kind] : Number(named ?? 0);
  return { source: `${repository}/${path}@main`, misfit: null, rank };
}
