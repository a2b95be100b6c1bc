import type { Framing } from './framing';
import type { Backend, KernelSetting } from './kernel-setting';
import type { ModelManifest } from './manifest';
import { adapterStrengths } from './parameters';
import { type DecoderKind, decoderKinds, type ProfileName } from './profile-names';
import type { PromptOptimization } from './prompt-optimization';
import type { Parameters } from './request';

/** Facts of an end image besides its file. */
export interface LastImage {
  /** Of its file. */
  readonly name: string;
  /** How it lies in the frame; it is centred and fills it when absent. */
  readonly framing?: Framing | undefined;
}

/** Options of a run besides its parameters. A prediction stores them as they are. */
export interface RunOptions {
  /** How the image lies in the frame; it is centred and fills it when absent. */
  readonly framing?: Framing | undefined;
  /** The end image, whose file comes with the start image; absent where the end is left to the model. */
  readonly lastImage?: LastImage | undefined;
  /** The decoder; the profile's when absent. */
  readonly decoder?: DecoderKind | undefined;
  /** Whether steps may reuse results of earlier ones: faster, nearly the same. The profile decides when absent. */
  readonly cache?: boolean | undefined;
  /** Whether a clip that goes on from a picture is given the colours of the one before; true when absent. */
  readonly keepsColours?: boolean | undefined;
  /** Whether the profile's guidance adapter computes what guidance does, in one pass a step; false when absent. */
  readonly guidanceAdapter?: boolean | undefined;
  /** Strength of the profile's adapter, one of `adapterStrengths`; 1 when absent. */
  readonly adapterStrength?: number | undefined;
  /** Whether image and frames are checked by the safety checker of this browser; false when absent. */
  readonly safetyChecker?: boolean | undefined;
  /**
   * Whether the engine optimises the prompt first; or the record of an optimisation that was made before,
   * whose text is the prompt of the parameters. False when absent.
   */
  readonly promptOptimizer?: boolean | PromptOptimization | undefined;
  /** What makes the MP4: `auto`, also when absent, is WebCodecs if it can encode H.264, else ffmpeg. */
  readonly encoder?: 'auto' | 'webcodecs' | 'ffmpeg' | undefined;
}

type OptionName = Exclude<keyof RunOptions, 'framing' | 'lastImage'>;

/** Those that are fields of the v3 API. */
type OptionField = 'enable_prompt_optimizer' | 'enable_safety_checker';

interface OptionDefinition {
  /** Option of `npm run generate`; one that begins with `no-` sets the value to false. */
  readonly option: string;
  /** Its values; a switch where both are absent. */
  readonly values?: readonly string[];
  readonly range?: { readonly min: number; readonly max: number };
  /** Start value of form and command, where it differs from the meaning of its absence. */
  readonly initial?: true;
  /** Its field in the v3 API, where that has it. */
  readonly field?: OptionField;
}

/** The options as command and API have them. */
export const optionDefinitions: Readonly<Record<OptionName, OptionDefinition>> = {
  decoder: { option: 'decoder', values: decoderKinds },
  cache: { option: 'cache' },
  guidanceAdapter: { option: 'guidance-adapter' },
  adapterStrength: { option: 'adapter-strength', range: adapterStrengths },
  promptOptimizer: { option: 'optimize-prompt', field: 'enable_prompt_optimizer' },
  keepsColours: { option: 'no-colour-correction' },
  safetyChecker: { option: 'no-safety-check', initial: true, field: 'enable_safety_checker' },
  encoder: { option: 'encoder', values: ['webcodecs', 'ffmpeg'] },
};
export const optionNames = Object.keys(optionDefinitions) as OptionName[];

/** The options that a request of the v3 API asks for. */
export function optionsOfFields(request: Readonly<Record<OptionField, boolean>>): RunOptions {
  const options = optionNames.flatMap((name) => {
    const { field } = optionDefinitions[name];
    return field ? [[name, request[field]] as const] : [];
  });
  return Object.fromEntries(options);
}

/** Options of sampling and decoding that a profile leaves open. */
export type SamplingOptions = Pick<
  RunOptions,
  'decoder' | 'cache' | 'guidanceAdapter' | 'adapterStrength'
>;

/** Its switches. */
export type SamplingSwitch = Exclude<keyof SamplingOptions, 'adapterStrength'>;
interface SamplingSwitchDefinition {
  /** Its value where it is on; where it is off, the option is absent. */
  readonly on: DecoderKind | true;
  /** Another value that it may have, by a switch of its own. */
  readonly or?: DecoderKind;
  /** Whether it does something under a profile. */
  readonly isOffered: (manifest: ModelManifest, name: ProfileName) => boolean;
}

export const samplingSwitches: Readonly<Record<SamplingSwitch, SamplingSwitchDefinition>> = {
  decoder: {
    on: 'full',
    or: 'light',
    isOffered: ({ profiles }, name) => profiles[name].decoder === 'tiny',
  },
  cache: { on: true, isOffered: ({ magcache }, name) => name === 'standard' && !!magcache },
  guidanceAdapter: {
    on: true,
    isOffered: ({ profiles }, name) => profiles[name].guidanceAdapter !== undefined,
  },
};
export const samplingSwitchNames = Object.keys(samplingSwitches) as SamplingSwitch[];

/** Settings of the device that computes a run. Only the backend is part of a prediction. */
export interface DeviceOptions {
  readonly backend: Backend;
  /** Upper limit of device memory in bytes; by default the engine measures it. */
  readonly memoryBudget?: number | undefined;
  /** What computes on the GPU; `exact` when absent, and `runtime` on an emulated one. */
  readonly kernels?: KernelSetting | undefined;
}

/** A request for a run, without image and adapters. */
export interface RunRequest<RunParameters = Parameters> {
  readonly parameters: RunParameters;
  /** Id of the model's manifest. */
  readonly model: string;
  /** Variant of the model. */
  readonly profile: ProfileName;
  readonly options: RunOptions;
}
