import type { ModelManifest, Parameters, ProfileName } from '../../../contract';
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

/** What the work of a profile is counted for. */
export interface WorkRequest {
  readonly config: ModelConfig;
  readonly manifest: ModelManifest;
  /** Of one clip. */
  readonly size: LatentSize;
  readonly parameters: Pick<Parameters, 'num_inference_steps' | 'guidance_scale' | 'flow_shift'>;
  /** The installed adapter, if any, and its rank. */
  readonly adapter: (ModelAdapter & { readonly rank: number }) | null;
  /** Whether steps may reuse results although the profile does not want it. */
  readonly cache?: boolean | undefined;
}

/**
 * Counts the passes of a profile and what they take. The number of tokens of the text is the most that it
 * can be; what EasyCache skips depends on the video and is not counted.
 */
export function profileWork(name: ProfileName, request: WorkRequest): ProfileWork {
  const { config, manifest, size, parameters, adapter, cache } = request;
  const model = { manifest, adapter, decoders: ['full', 'tiny'] } as const;
  const resolved = resolveSampling(model, name, parameters, { cache });
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
  const rank = resolved.adapterScale > 0 ? (adapter?.rank ?? 0) : 0;
  return {
    resolved,
    passes,
    sampling: passes * (pass + loraFlops(config.transformer, tokens, rank)),
    decode: decodeCost(graphs, size.frames).flops,
  };
}
