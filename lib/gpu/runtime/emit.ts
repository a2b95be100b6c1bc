import {
  type Call,
  type Coefficient,
  type Graph,
  hasTokenRows,
  type LinearLayer,
  type Pass,
  type Value,
} from '../../graph';
import * as onnx from '../../onnx';

type Float = onnx.Value<'float32'>;

/** Operators of two tensors of one shape. */
export const elementWise = { add: onnx.add, sub: onnx.sub, mul: onnx.mul };

/** Where a port of a pass gets its tensor from. */
export type Source =
  /** Bound by the caller under this name: all of it, or the rows of the chunk. */
  | { readonly kind: 'bound' | 'rows'; readonly name: string }
  /** Stored by an earlier pass: all of it, or the rows of the chunk. */
  | { readonly kind: 'stored' | 'storedRows'; readonly value: Value }
  /** A number that the caller binds, [1]. */
  | { readonly kind: 'number'; readonly name: string }
  /** A number that the caller binds, as what is added to the logits of `keys`' attention. */
  | { readonly kind: 'lastBias'; readonly name: string; readonly keys: Value };

/** A pass as one graph of the runtime. */
export interface PassGraph {
  readonly pass: Pass;
  readonly graph: onnx.Graph;
  /** By the port's name. */
  readonly sources: ReadonlyMap<string, Source>;
}

/**
 * Writes a pass as ONNX operators. A value with rows of tokens has L of them, those of the chunk; keys and values of
 * an attention have all of them.
 *
 * @param name of the ONNX graph
 */
export function emit(graph: Graph, pass: Pass, name: string): PassGraph {
  return new Emitter(graph, pass, name).emit();
}

/** The port of a result. */
export function portOf(value: Value): string {
  return `result ${value.graph.values.indexOf(value)}`;
}

class Emitter {
  readonly #g: onnx.GraphBuilder;
  readonly #inside: ReadonlySet<Value>;
  readonly #emitted = new Map<Value, Float>();
  readonly #wholes = new Map<Value, Float>();
  readonly #numbers = new Map<string, Float>();
  readonly #sources = new Map<string, Source>();

  constructor(
    readonly source: Graph,
    readonly pass: Pass,
    name: string,
  ) {
    this.#g = new onnx.GraphBuilder(name);
    this.#inside = new Set(pass.values);
  }

  emit(): PassGraph {
    for (const value of this.pass.results) this.#g.output(portOf(value), this.#result(value));
    return { pass: this.pass, graph: this.#g.build(), sources: this.#sources };
  }

  #result(value: Value): Float {
    const emitted = this.#of(value);
    const output = [...this.source.outputs.values()].find((each) => each.value === value);
    if (!output || output.dims === value.dims) return emitted;
    return onnx.reshape(emitted, output.dims);
  }

  /** The chunk's rows of a value, or all of one without rows of tokens. */
  #of(value: Value): Float {
    const known = this.#emitted.get(value);
    if (known) return known;
    const tensor = this.#inside.has(value) ? this.#operators(value) : this.#input(value, 'L');
    this.#emitted.set(value, tensor);
    return tensor;
  }

  /** All rows of a value. */
  #whole(value: Value): Float {
    if (!hasTokenRows(value)) return this.#of(value);
    const tensor = this.#wholes.get(value) ?? this.#input(value, 'S');
    this.#wholes.set(value, tensor);
    return tensor;
  }

  #input(value: Value, rows: 'L' | 'S'): Float {
    const ofChunk = hasTokenRows(value) && rows === 'L';
    const { call } = value;
    const [name, source]: [string, Source] =
      call.op === 'input'
        ? [call.name, { kind: ofChunk ? 'rows' : 'bound', name: call.name }]
        : [portOf(value), { kind: ofChunk ? 'storedRows' : 'stored', value }];
    const port = rows === 'S' ? `all of ${name}` : name;
    this.#sources.set(port, source);
    const dims = hasTokenRows(value) ? [rows, ...value.dims.slice(1)] : value.dims;
    return this.#g.input(port, 'float32', dims);
  }

  #operators({ call, operands }: Value): Float {
    const at = (index: number) => this.#of(operand(operands, index));
    switch (call.op) {
      case 'linear':
        return this.#linear(call.layer, at(0));
      case 'modulate': {
        // The operator has a weight and a bias, so that the norm before it is part of it.
        const norm = operand(operands, 0);
        if (norm.call.op !== 'layerNorm') throw new TypeError('only a layer norm is modulated');
        const weight = call.one ? onnx.add(at(1), this.#g.scalar(1)) : at(1);
        const x = this.#of(operand(norm.operands, 0));
        return onnx.layerNormalization(x, weight, at(2), norm.call.epsilon);
      }
      case 'rmsNorm':
        return onnx.rmsNormalization(at(0), at(1), call.epsilon);
      case 'rotary':
        return unbatched(
          onnx.rotaryEmbedding(batched(at(0)), batched(at(1)), batched(at(2)), call.heads),
        );
      case 'attention': {
        const [q, k, v] = [operand(operands, 0), operand(operands, 1), operand(operands, 2)];
        const bias = operands[3] && onnx.unsqueeze(at(3), 0); // [1, heads, R, R′]
        return this.#attention([q, k, v], call, bias);
      }
      case 'gatherHeads': {
        const indices = operand(operands, 1);
        if (indices.call.op !== 'input') throw new TypeError('indices are an input');
        const { name } = indices.call;
        this.#sources.set(name, { kind: 'bound', name });
        const picked = onnx.gather(at(0), this.#g.input(name, 'int32', indices.dims));
        return onnx.transpose(picked, [2, 0, 1]); // [heads, R, R′]
      }
      case 'gelu':
        return onnx.geluTanh(at(0));
      case 'geluErf':
        return onnx.gelu(at(0));
      case 'silu':
        return onnx.silu(at(0));
      case 'add':
      case 'sub':
      case 'mul':
        return elementWise[call.op](at(0), at(1));
      case 'weightedSum':
        return call.coefficients
          .map((coefficient, index) => onnx.mul(at(index), this.#number(coefficient)))
          .reduce((a, b) => onnx.add(a, b));
      case 'row': {
        const table = at(0);
        return onnx.reshape(onnx.slice(table, 0, call.index, call.index + 1), table.dims.slice(1));
      }
      case 'layerNorm':
        throw new TypeError('a layer norm stands before a modulation only');
      case 'input':
        throw new TypeError(`the input ${call.name} is computed nowhere`);
      default:
        throw new TypeError(`${call.op} is a call of images`);
    }
  }

  #number(coefficient: Coefficient): Float {
    if (typeof coefficient === 'number') return this.#g.scalar(coefficient);
    const known = this.#numbers.get(coefficient) ?? this.#g.input(coefficient, 'float32', [1]);
    this.#numbers.set(coefficient, known);
    this.#sources.set(coefficient, { kind: 'number', name: coefficient });
    return known;
  }

  #linear({ name, inFeatures: k, outFeatures: n, bits, bias, lora }: LinearLayer, x: Float): Float {
    const port = <T extends 'float32' | 'uint8'>(
      role: string,
      dtype: T,
      dims: readonly onnx.Dim[],
    ) => {
      this.#sources.set(`${name}.${role}`, { kind: 'bound', name: `${name}.${role}` });
      return this.#g.input(`${name}.${role}`, dtype, dims);
    };
    const added = () => (bias ? port('bias', 'float32', [n]) : null);
    const blocks = () =>
      [
        port('values', 'uint8', [n, k / 32, 4 * (bits ?? 8)]),
        port('scales', 'float32', [n, k / 32]),
      ] as const;
    const y =
      bits === null
        ? onnx.gemm(x, port('weight', 'float32', [n, k]), added())
        : onnx.matMulBlocks(x, ...blocks(), added(), bits);
    if (!lora) return y;
    const rank = `${name}.rank`;
    const t = onnx.gemm(x, port('down', 'float32', [rank, k]), null); // [L, rank]
    return onnx.add(y, onnx.gemm(t, port('up', 'float32', [n, rank]), null));
  }

  #attention(
    [queries, keys, values]: readonly [Value, Value, Value],
    { heads, scale, lastBias }: Extract<Call, { op: 'attention' }>,
    matrix: Float | undefined,
  ): Float {
    const [q, k, v] = [this.#of(queries), this.#whole(keys), this.#whole(values)];
    const attended = (bias: Float | undefined) =>
      onnx.multiHeadAttention(batched(q), batched(k), batched(v), {
        heads,
        scale,
        ...(bias && { bias }),
      });
    if (lastBias === null) return unbatched(attended(matrix));
    this.#sources.set(lastBias, { kind: 'lastBias', name: lastBias, keys });
    const dims = [1, 1, ...q.dims.slice(0, 1), ...k.dims.slice(0, 1)];
    return unbatched(attended(this.#g.input(lastBias, 'float32', dims)));
  }
}

function operand(operands: readonly Value[], index: number): Value {
  const operand = operands[index];
  if (!operand) throw new TypeError(`the call has no operand ${index}`);
  return operand;
}

/** [R, D] → [1, R, D], as the operators over heads want it. */
function batched(x: Float): Float {
  return onnx.reshape(x, [1, ...x.dims]);
}

function unbatched(x: Float): Float {
  return onnx.reshape(x, x.dims.slice(1));
}
