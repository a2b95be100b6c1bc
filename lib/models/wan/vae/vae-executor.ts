import {
  type Backend,
  type Bindings,
  type Compute,
  elementCount,
  type ImageExecutor,
  ImageProgram,
  joinsTaps,
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
import {
  type ConvolutionLayer,
  type ConvolutionMatch,
  filterDims,
  type Graph,
  type ImageMatch,
  matchImages,
  weightsKey,
} from '../../../graph';
import { kernelWeightSizes, kernelWeights } from './kernel-weights';
import {
  averagingWeights,
  uploadPhases,
  type VaeCheckpoint,
  type VaeLoadOptions,
  VaeReader,
} from './vae-weights';

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

/** Weights of a match on the device as the runtime's graphs have them. */
export async function runtimeWeights(
  reader: VaeReader,
  scope: Scope,
  match: ImageMatch,
): Promise<Bindings> {
  const upload = (dims: readonly number[], data: Float32Array) =>
    scope.float32(dims, 'weights', data);
  const gammaOf = async (norm: string) => {
    const data = await reader.read(`${norm}.gamma`);
    return { gamma: upload([data.length], data) };
  };
  const slopeOf = async (name: string) => {
    const data = await reader.read(`${name}.weight`);
    return { slope: upload([data.length], data) };
  };
  if (match.kind === 'attention') {
    const weights: Bindings[] = [await gammaOf(match.norm)];
    for (const [index, layer] of match.layers.entries()) {
      const { filters, inputs } = layer;
      weights.push({
        [`weight${index}`]: upload([filters, inputs], partOf(await reader.taps(layer), layer)),
        [`bias${index}`]: upload([filters], await reader.bias(layer)),
      });
    }
    return Object.assign({}, ...weights);
  }
  const { layer, norm, residual, activation } = match;
  return {
    ...(match.upsample ? await phases() : await taps(match)),
    ...(norm !== null && (await gammaOf(norm))),
    ...(activation?.op === 'prelu' && (await slopeOf(activation.name))),
    ...(residual?.kind === 'linear' && (await shortcut(residual.layer))),
  };

  async function phases(): Promise<Bindings> {
    const { filters, inputs } = layer;
    const phases = uploadPhases(scope, await reader.phases(layer), filters, inputs);
    return Object.assign(
      phases,
      layer.bias && { bias: upload([filters], await reader.bias(layer)) },
    );
  }

  async function taps({ layer: of }: ConvolutionMatch): Promise<Bindings> {
    const [filters, ...rest] = filterDims(of);
    const dims = [filters, ...rest];
    if (of.average) return { tap2: upload(dims, averagingWeights(of)) };
    const data = await reader.taps(of);
    const bias = of.bias ? await reader.bias(of) : null;
    const ages = Array.from({ length: of.taps }, (_, age) => partOf(data, of, age));
    if (bias && joinsTaps(of)) {
      const joined = new Float32Array(3 * elementCount(dims));
      for (const [age, tap] of ages.entries()) joined.set(tap, age * tap.length);
      const padded = new Float32Array(3 * filters);
      padded.set(bias);
      return { taps: upload([3 * filters, ...rest], joined), bias: upload([3 * filters], padded) };
    }
    const named = Object.fromEntries(
      ages.map((tap, age) => [`tap${2 - age}`, upload(dims, tap)] as const),
    );
    return Object.assign(named, bias && { bias: upload([filters], bias) });
  }

  async function shortcut(of: ConvolutionLayer): Promise<Bindings> {
    return {
      residualWeight: upload([of.inputs, of.filters], await reader.shortcut(of)),
      residualBias: upload([of.filters], await reader.bias(of)),
    };
  }
}

/** A time tap of a part of the filters. @param data [taps, Co, …] of all parts */
function partOf(data: Float32Array, layer: ConvolutionLayer, age = 0): Float32Array {
  const { index, of } = layer.part;
  const size = elementCount(filterDims(layer));
  return data.subarray((age * of + index) * size, (age * of + index + 1) * size);
}
