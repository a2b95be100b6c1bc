import {
  type Backend,
  type Bindings,
  type Compute,
  type ImageExecutor,
  ImageProgram,
  KernelImages,
  RuntimeImages,
  Scope,
  SimdImages,
  type SimdMemory,
} from '../../../gpu';
import {
  type ConvolutionVariant,
  type KernelChoice,
  packKernels,
  type Storage,
} from '../../../gpu/kernels';
import { type Graph, type ImageMatch, matchImages, weightsKey } from '../../../graph';
import { kernelWeightSizes, kernelWeights } from './kernel-weights';
import { runtimeWeights } from './runtime-weights';
import { type VaeCheckpoint, type VaeLoadOptions, VaeReader } from './vae-weights';

/** How kernels of our own compute images. */
export interface ImageKernels {
  readonly variant: ConvolutionVariant;
  readonly storage: Storage;
}

/** The kernels of a choice; null where the runtime computes. */
export function imageKernels(choice: KernelChoice | null | undefined): ImageKernels | null {
  if (!choice?.convolution) return null;
  const { convolution, matrixConvolution, storage = 'f16' } = choice;
  const { matrix } = matrixConvolution ?? {};
  return { variant: { ...convolution, ...(matrix && { matrix }) }, storage };
}

/** Distinct weights of graphs, by their keys. */
export function matchesOf(graphs: readonly Graph[]): ReadonlyMap<string, ImageMatch> {
  const matches = graphs.flatMap(matchImages);
  return new Map(matches.map((match) => [weightsKey(match), match]));
}

/**
 * Loads graphs of the VAE, in the order in which a clip's frames go through them: for kernels of our own where the
 * backend has chosen a convolution, else for the runtime.
 *
 * @param options with `storage` for kernels of our own, instead of that of their choice
 * @returns what computes the graphs; it frees their weights, too
 * @throws Refusal where a kernel fails
 * @throws KinoraError `TENSOR_MISSING`, `OUT_OF_MEMORY`; nothing stays allocated then
 */
export async function openImages(
  backend: Backend,
  graphs: readonly Graph[],
  checkpoint: VaeCheckpoint,
  options: VaeLoadOptions & { readonly storage?: Storage },
): Promise<ImageExecutor> {
  const scope = new Scope(backend);
  const reader = new VaeReader(checkpoint, options);
  const weights = new Map<string, Bindings>();
  const { compute, maxBufferBytes } = backend;
  const chosen = compute && imageKernels(backend.kernels);
  const kernels = chosen && { ...chosen, storage: options.storage ?? chosen.storage };
  try {
    if (!compute || !kernels) {
      for (const [key, match] of matchesOf(graphs)) {
        weights.set(key, await runtimeWeights(reader, scope, match));
      }
      const simd = backend.runtimeOnly ? null : backend.simd;
      const vectors = simd && openVectors(simd, graphs, weights, options.signal);
      // It has copied the weights.
      if (vectors) scope.dispose();
      const executor = vectors ?? new RuntimeImages(backend, weights, options.signal);
      return withWeights(executor, scope);
    }
    const program = compileImages(kernels, compute.limits, graphs, maxBufferBytes);
    await program.compileOn(compute, packKernels);
    const device = { reader, scope, backend, compute };
    for (const [key, match] of matchesOf(graphs)) {
      weights.set(key, await kernelWeights(device, match, kernels.storage));
    }
    return withWeights(new KernelImages(backend, compute, program, weights, options.signal), scope);
  } catch (error) {
    scope.dispose();
    throw error;
  }
}

/** The executor for the CPU, with the values of tensors; null where it does not compute the graphs. */
function openVectors(
  { take, values }: SimdMemory,
  graphs: readonly Graph[],
  weights: ReadonlyMap<string, Bindings>,
  signal?: AbortSignal,
): SimdImages | null {
  const plain = [...weights].map(([key, bindings]) => {
    const named = Object.entries(bindings).map(([name, tensor]) => [name, values(tensor)] as const);
    return [key, Object.fromEntries(named)] as const;
  });
  return SimdImages.open(take, graphs, new Map(plain), signal);
}

/** Compiles graphs of the VAE, without a device. */
export function compileImages(
  { variant, storage }: ImageKernels,
  limits: Compute['limits'],
  graphs: readonly Graph[],
  largestBuffer?: number,
): ImageProgram {
  const sizes = (match: ImageMatch) => kernelWeightSizes(match, storage);
  return new ImageProgram(graphs, { variant, storage, limits }, sizes, largestBuffer);
}

function withWeights(executor: ImageExecutor, weights: Scope): ImageExecutor {
  return {
    frames: (graph, inputs) => executor.frames(graph, inputs),
    reset: () => executor.reset(),
    dispose: () => {
      executor.dispose();
      weights.dispose();
    },
  };
}
