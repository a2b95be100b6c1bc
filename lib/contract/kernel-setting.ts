/** The devices that compute a model. */
export const backends = ['webgpu', 'wasm'] as const;
export type Backend = (typeof backends)[number];

/**
 * What computes on the GPU. `exact`: kernels of our own, f16 storage and f32 sums. `fast`: 8-bit products, a
 * little different. `matrix`: the GPU's matrix units. `runtime`: the kernels of ONNX Runtime only.
 */
export const kernelSettings = ['exact', 'fast', 'matrix', 'runtime'] as const;
export type KernelSetting = (typeof kernelSettings)[number];

/** The proposal's feature that `matrix` needs; Chromium has it behind `--enable-unsafe-webgpu`. */
export const matrixFeature = 'chromium-experimental-subgroup-matrix';

/** The default kernels: an emulated GPU takes seconds to compile kernels of our own. */
export function usualKernels(software: boolean): KernelSetting {
  return software ? 'runtime' : 'exact';
}

/** Whether an adapter is a CPU emulation. Chrome does not always flag SwiftShader as fallback. */
export function isSoftware(
  info: Readonly<Record<'architecture' | 'device' | 'description', string>> & {
    readonly isFallbackAdapter: boolean;
  },
): boolean {
  const names = `${info.architecture} ${info.device} ${info.description}`.toLowerCase();
  return (
    info.isFallbackAdapter || /swiftshader|llvmpipe|lavapipe|basic render|software/.test(names)
  );
}

/**
 * What computes where a person has chosen nothing: the CPU where there is no GPU, or the CPU emulates one, which
 * takes many times longer.
 *
 * @param software whether no real GPU is there
 */
export function usualBackend(software: boolean): Backend {
  return software ? 'wasm' : 'webgpu';
}

/** The kernels that compute a video in place of those that were asked for, or are usual. */
export interface KernelReplacement {
  readonly asked: KernelSetting;
  readonly computes: 'exact' | 'runtime';
  /** The call that no kernel of ours computes, in English; null where the device has no kernels at all for it. */
  readonly reason: string | null;
}

/** The kernels that computed a video, so that it can be explained. */
export interface KernelRecord {
  /** The kernels that ran: `runtime` if the device could not run those that were set. */
  readonly mode: KernelSetting;
  /** Keys of the kernels of our own, sorted. */
  readonly keys: readonly string[];
  /** Groups of four values that f16 does not hold and that were clamped; absent where there were none. */
  readonly clamped?: number;
}
