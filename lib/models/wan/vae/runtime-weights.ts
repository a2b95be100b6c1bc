import { type Bindings, elementCount, joinsTaps, type Scope } from '../../../gpu';
import {
  type ConvolutionLayer,
  type ConvolutionMatch,
  filterDims,
  type ImageMatch,
} from '../../../graph';
import { averagingWeights, uploadPhases, type VaeReader } from './vae-weights';

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
