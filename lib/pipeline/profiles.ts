import {
  type DecoderKind,
  KinoraError,
  type ModelManifest,
  type Parameters,
  type Profile,
  type ProfileName,
} from '../contract';

/** How a video is sampled: what the profile fixes, and the request's values for the rest. */
export interface Sampling {
  readonly scheduler: Profile['scheduler'];
  readonly steps: number;
  /** 1 is without guidance. */
  readonly guidanceScale: number;
  readonly flowShift: number;
  readonly decoder: DecoderKind;
}

/**
 * Request → profile → run: the sampling of a request under one of the model's variants.
 *
 * @throws KinoraError `MODEL_MANIFEST_INVALID` where the profile asks for what no run can do yet
 */
export function resolveSampling(
  manifest: ModelManifest,
  name: ProfileName,
  parameters: Pick<Parameters, 'num_inference_steps' | 'guidance_scale' | 'flow_shift'>,
): Sampling {
  const { scheduler, steps, guidance, adapters, decoder } = manifest.profiles[name];
  const lacks = [adapters.length > 0 && 'adapters of its own'].filter((part) => part !== false);
  if (lacks.length > 0) {
    throw new KinoraError(
      'MODEL_MANIFEST_INVALID',
      `The variant ${name} of "${manifest.name}" needs ${lacks.join(' and ')}, which this version cannot use.`,
      { remedy: 'Use the standard variant, or a newer version of Kinora.' },
    );
  }
  const listed = scheduler.kind === 'unipc' ? undefined : scheduler.timesteps?.length;
  return {
    scheduler,
    steps: listed ?? steps ?? parameters.num_inference_steps,
    guidanceScale: guidance ?? parameters.guidance_scale,
    flowShift: parameters.flow_shift,
    decoder,
  };
}
