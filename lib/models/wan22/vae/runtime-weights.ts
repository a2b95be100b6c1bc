import { type Bindings, joinsTaps, type Scope } from '../../../gpu';
import type { ConvolutionLayer, ConvolutionMatch, ImageMatch } from '../../../graph';
import { averagingWeights, uploadPhases, type VaeReader } from './weights';

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
  const { layer, norm, residual } = match;
  return {
    ...(match.upsample ? await phases() : await taps(match)),
    ...(norm !== null && (await gammaOf(norm))),
    ...(residual?.kind === 'linear' && (await shortcut(residual.layer))),
  };

  async function phases(): Promise<Bindings> {
    const { filters, inputs } = layer;
    const bias = upload([filters], await reader.bias(layer));
    return { ...uploadPhases(scope, await reader.phases(layer), filters, inputs), bias };
  }

  async function taps({ layer: of }: ConvolutionMatch): Promise<Bindings> {
    const { inputs, filters, kernel, taps: count } = of;
    const dims = [inputs, kernel, kernel];
    if (of.average) return { tap2: upload([filters, ...dims], averagingWeights(of)) };
    const data = await reader.taps(of);
    const bias = await reader.bias(of);
    const ages = Array.from({ length: count }, (_, age) => partOf(data, of, age));
    if (count === 3 && joinsTaps(filters)) {
      const joined = new Float32Array(3 * filters * inputs * kernel * kernel);
      for (const [age, tap] of ages.entries()) joined.set(tap, age * tap.length);
      const padded = new Float32Array(3 * filters);
      padded.set(bias);
      return { taps: upload([3 * filters, ...dims], joined), bias: upload([3 * filters], padded) };
    }
    const named = ages.map((tap, age) => [`tap${2 - age}`, upload([filters, ...dims], tap)]);
    return { ...Object.fromEntries(named), bias: upload([filters], bias) };
  }

  async function shortcut(of: ConvolutionLayer): Promise<Bindings> {
    return {
      residualWeight: upload([of.inputs, of.filters], await reader.shortcut(of)),
      residualBias: upload([of.filters], await reader.bias(of)),
    };
  }
}

/** A time tap of a part of the filters. @param data [taps, Co, …] of all parts */
function partOf(
  data: Float32Array,
  { filters, inputs, kernel, part: { index, of } }: ConvolutionLayer,
  age = 0,
): Float32Array {
  const size = filters * inputs * kernel * kernel;
  return data.subarray((age * of + index) * size, (age * of + index + 1) * size);
}
