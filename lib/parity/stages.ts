import * as classifiers from './classifiers';
import { interpolator, upscaler } from './finishing';
import type { Golden, Results, Stage } from './golden';
import { openWan } from './wan';
import * as wan from './wan-stages';

/** Tolerance of stages that the runtime computes with any kernels. */
const runtime = (f32: number) => ({ f32 });
const kernels = (f32: number) => ({ f32, f16: { exact: 3e-3, fast: 5e-2, matrix: 5e-3 } });
/** They have no 8-bit products. */
const convolutions = { f32: 1e-5, f16: { exact: 3e-3, fast: 3e-3, matrix: 3e-3 } };
/** Exact values differ from the reference by nothing but the rounding of f32, once. */
const rounded = 2 ** -23;
/** Tolerance with weights in 8-bit blocks of 32. */
const int8 = 5e-2;

/**
 * Every stage of every network that has references: its name, the references of which the golden needs one, its
 * tolerance, and what computes it. A network is recognised by a field of `golden.json` that none before it has.
 */
export const networks = {
  /** Wan2.1-I2V-14B and Wan2.2-I2V-A14B. */
  wan14b: network(['kind'], openWan, [
    ['image encoder', /^clip_/, kernels(1e-5), wan.imageEncoder],
    ['condition', /^condition$/, kernels(1e-5), wan.condition],
    ['transformer', /^dit_(velocity|block_\d+)$/, kernels(1e-5), wan.transformer],
    ['latents', /^final_latents$/, kernels(1e-5), wan.latents],
    ['latents, 8-bit weights', /^final_latents$/, int8, wan.quantised],
    ['last image', /^final_latents_last_image$/, kernels(1e-5), wan.lastImage],
    ['LoRA', /_lora_/, kernels(1e-5), wan.lora],
    ['video', /^video$/, kernels(1e-5), wan.video],
  ]),
  /** Wan2.2-TI2V-5B. */
  wan22: network(['dit_timestep'], openWan, [
    ['tokenizer', /^/, 0, wan.tokenizer],
    ['text', /prompt_embeds$/, kernels(1e-4), wan.text],
    ['image latent', /^image_latent$/, kernels(1e-4), wan.imageLatent],
    ['transformer', /^dit_(velocity|block_\d+)$/, kernels(1e-4), wan.transformer],
    ['scheduler', /^(sigmas|timesteps|sched_latents)$/, kernels(1e-4), wan.scheduler],
    ['latents', /^final_latents(_no_cfg)?$/, kernels(1e-3), wan.latents],
    ['latents, 8-bit weights', /^final_latents$/, int8, wan.quantised],
    ['video', /^video$/, kernels(1e-4), wan.video],
    ['key frames', /^final_latents$/, kernels(1e-5), wan.keyFrames],
    ['LoRA, one pass', /^dit_velocity_lora_/, kernels(1e-4), wan.lora],
    ['LoRA', /^final_latents_lora_/, kernels(1e-3), wan.lora],
    ['wrong LoRA', /^/, 0, wan.wrongLora],
    ['tiny decoders', /^final_latents$/, kernels(1e-4), wan.tinyDecoders],
    ['element types', /^/, rounded, wan.elementTypes],
    ['public formats', /^noise$/, kernels(1e-3), wan.publicFormats],
  ]),
  /** Real-ESRGAN (SRVGGNetCompact), or RIFE. */
  finishing: network(['upscale', 'widths'], async (golden) => golden, [
    ['upscaler', /^x4$/, convolutions, upscaler],
    ['interpolator', /^middle$/, runtime(1e-5), interpolator],
  ]),
  /** The safety checker: a vision transformer. */
  classifier: network(['timm'], classifiers.openVit, [
    ['pixels', /pixels$/, 0, classifiers.vitPixels],
    ['layers', /pixels$/, kernels(1e-5), classifiers.vitLayers],
  ]),
  /** The quick checker: nsfwjs. */
  quickChecker: network(['nsfwjs'], classifiers.openQuick, [
    ['layers', /./, runtime(1e-5), classifiers.quickLayers],
  ]),
};

function network<Of>(
  fields: readonly string[],
  open: (golden: Golden) => Promise<Of>,
  stages: readonly Stage<Of>[],
) {
  /** The stages for which a golden has references. */
  const stagesOf = async (golden: Golden) => {
    const of = await open(golden);
    return stages.flatMap(([name, given, tolerance, run]) => {
      const names = [...golden.tensors.names()].filter((tensor) => given.test(tensor));
      return names.length > 0 ? [{ name, tolerance, run: (): Results => run(of, names) }] : [];
    });
  };
  return { fields, stages: stagesOf };
}
