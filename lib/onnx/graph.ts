import { ProtoWriter } from './protobuf';
import { type Dim, type ElementArrays, type ElementType, reject, Value } from './value';

/** Attribute of an operator. Whole numbers are `int`, others must be marked as float. */
export type Attribute = number | readonly number[] | string | { readonly float: number };

/** A named, typed input or output of a graph. */
export interface Port {
  readonly name: string;
  readonly dtype: ElementType;
  readonly dims: readonly Dim[];
}

/** A complete graph: bytes for the runtime, and its inputs and outputs. */
export interface Graph {
  readonly name: string;
  /** Equal for equal bytes; sessions are cached by it. */
  readonly key: string;
  /** A serialised ONNX ModelProto. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  /** The operators in order: a backend that only counts memory needs no more. */
  readonly nodes: readonly NodeShape[];
}

/** What an operator reads and makes. */
export interface NodeShape {
  readonly op: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly Port[];
}

interface NodeRecord {
  readonly op: string;
  readonly domain: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, Attribute>>;
}

interface ConstantRecord {
  readonly name: string;
  readonly dtype: ElementType;
  readonly dims: readonly number[];
  readonly bytes: Uint8Array;
}

const elementTypeNumbers: Record<ElementType, number> = {
  float32: 1,
  uint8: 2,
  int32: 6,
  int64: 7,
  bool: 9,
  float16: 10,
};

/** The operator set of ONNX where a graph asks for no other; IR 11 is the first that knows it. */
const latestOpset = 23;
const opsetVersions: Record<string, number> = {
  'com.microsoft': 1,
  'com.ms.internal.nhwc': 23,
};
const irVersion = 11;

/**
 * Collects operators and writes an ONNX model. Operators are functions over {@link Value}s in
 * `operators.ts`; they check arity, dtype and rank while the graph is built.
 *
 * @example
 * const g = new GraphBuilder('double');
 * const x = g.input('x', 'float32', ['L', 64]);
 * g.output('y', add(x, x));
 * const graph = g.build();
 */
export class GraphBuilder {
  readonly #inputs: Port[] = [];
  readonly #outputs: { name: string; value: Value }[] = [];
  readonly #nodes: NodeRecord[] = [];
  readonly #shapes: NodeShape[] = [];
  readonly #constants: ConstantRecord[] = [];
  readonly #names = new Set<string>();
  #count = 0;

  /** @param opset an older one, for an operator whose newer form the runtime has no kernel for on a GPU */
  constructor(
    readonly name: string,
    readonly opset = latestOpset,
  ) {}

  /** Declares an input. Dimensions may be names; equal names mean equal sizes. */
  input<T extends ElementType>(name: string, dtype: T, dims: readonly Dim[]): Value<T> {
    this.#claim(name);
    for (const size of dims) {
      if (typeof size === 'number' && (!Number.isInteger(size) || size < 1)) {
        reject(`input ${name}`, `${size} is not a size`);
      }
    }
    this.#inputs.push({ name, dtype, dims });
    return new Value(this, name, dtype, dims);
  }

  /** A tensor that is part of the graph; for shapes and small tables, not for weights. */
  constant<T extends ElementType>(
    dtype: T,
    dims: readonly number[],
    data: ElementArrays[T],
  ): Value<T> {
    const count = dims.reduce((product, size) => product * size, 1);
    if (count !== data.length) {
      reject('constant', `${data.length} elements do not fill [${dims.join(', ')}]`);
    }
    const name = this.#fresh('c');
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice();
    this.#constants.push({ name, dtype, dims, bytes });
    return new Value(this, name, dtype, dims);
  }

  /** A float32 number that broadcasts. */
  scalar(value: number): Value<'float32'> {
    return this.constant('float32', [], Float32Array.of(value));
  }

  /** A one-dimensional int64 tensor, as the shape-like inputs of operators want it. */
  shape(dims: readonly number[]): Value<'int64'> {
    return this.constant('int64', [dims.length], BigInt64Array.from(dims.map(BigInt)));
  }

  /** Names a result. */
  output(name: string, value: Value): void {
    if (value.graph !== this) reject(`output ${name}`, `${value} belongs to another graph`);
    this.#claim(name);
    this.#outputs.push({ name, value });
  }

  /**
   * Appends one operator; meant for the functions in `operators.ts`.
   *
   * @param inputs `null` stands for an optional input that is left out
   * @param outputs dtype and dimensions of each result
   */
  node(
    op: string,
    domain: '' | 'com.microsoft' | 'com.ms.internal.nhwc',
    inputs: readonly (Value | null)[],
    attributes: Readonly<Record<string, Attribute>>,
    outputs: readonly { dtype: ElementType; dims: readonly Dim[] }[],
  ): Value[] {
    for (const input of inputs) {
      if (input && input.graph !== this) reject(op, `${input} belongs to another graph`);
    }
    const results = outputs.map(
      ({ dtype, dims }) => new Value(this, this.#fresh('t'), dtype, dims),
    );
    this.#nodes.push({
      op,
      domain,
      inputs: inputs.map((input) => input?.name ?? ''),
      outputs: results.map((result) => result.name),
      attributes,
    });
    this.#shapes.push({
      op,
      inputs: inputs.flatMap((input) => (input ? [input.name] : [])),
      outputs: results.map(({ name, dtype, dims }) => ({ name, dtype, dims })),
    });
    return results;
  }

  /** Writes the model. */
  build(): Graph {
    if (this.#outputs.length === 0) reject(`graph ${this.name}`, 'it has no output');
    // A result that is also an input or is named twice needs a node of its own.
    const renamed = new Map<string, string>();
    const identities: NodeRecord[] = [];
    const inputNames = new Set(this.#inputs.map((port) => port.name));
    const constantNames = new Set(this.#constants.map((constant) => constant.name));
    for (const { name, value } of this.#outputs) {
      if (inputNames.has(value.name) || constantNames.has(value.name) || renamed.has(value.name)) {
        identities.push({
          op: 'Identity',
          domain: '',
          inputs: [renamed.get(value.name) ?? value.name],
          outputs: [name],
          attributes: {},
        });
      } else {
        renamed.set(value.name, name);
      }
    }
    const rename = (name: string) => renamed.get(name) ?? name;
    const nodes = [
      ...this.#nodes.map((node) => ({
        ...node,
        inputs: node.inputs.map(rename),
        outputs: node.outputs.map(rename),
      })),
      ...identities,
    ];
    const outputs = this.#outputs.map(({ name, value }) => ({
      name,
      dtype: value.dtype,
      dims: value.dims,
    }));
    const { name } = this;
    let bytes: Uint8Array<ArrayBuffer> | undefined;
    let key: string | undefined;
    const written = () => (bytes ??= this.#serialise(nodes, outputs));
    const shapes = this.#shapes.map(({ op, inputs, outputs: ports }) => ({
      op,
      inputs: inputs.map(rename),
      outputs: ports.map((port) => ({ ...port, name: rename(port.name) })),
    }));
    return {
      name,
      // Written when a session needs them: most graphs are only planned.
      get key() {
        key ??= `${name}:${hash(written())}`;
        return key;
      },
      get bytes() {
        return written();
      },
      inputs: [...this.#inputs],
      outputs,
      nodes: shapes,
    };
  }

  #serialise(nodes: readonly NodeRecord[], outputs: readonly Port[]): Uint8Array<ArrayBuffer> {
    const domains = new Set(['', ...nodes.map((node) => node.domain)]);
    const model = new ProtoWriter().int(1, irVersion).string(2, 'kinora');
    model.message(7, (graph) => {
      for (const node of nodes) graph.message(1, (writer) => writeNode(writer, node));
      graph.string(2, this.name);
      for (const constant of this.#constants) {
        graph.message(5, (tensor) => {
          for (const size of constant.dims) tensor.int(1, size);
          tensor.int(2, elementTypeNumbers[constant.dtype]).string(8, constant.name);
          tensor.bytes(9, constant.bytes);
        });
      }
      for (const port of this.#inputs) graph.message(11, (writer) => writePort(writer, port));
      for (const port of outputs) graph.message(12, (writer) => writePort(writer, port));
    });
    for (const domain of domains) {
      const version = domain === '' ? this.opset : (opsetVersions[domain] ?? 1);
      model.message(8, (set) => set.string(1, domain).int(2, version));
    }
    return model.finish();
  }

  #claim(name: string): void {
    if (name === '' || this.#names.has(name)) reject(this.name, `the name "${name}" is taken`);
    this.#names.add(name);
  }

  #fresh(prefix: string): string {
    this.#count += 1;
    return `_${prefix}${this.#count}`;
  }
}

function writeNode(writer: ProtoWriter, node: NodeRecord): void {
  for (const input of node.inputs) writer.string(1, input);
  for (const output of node.outputs) writer.string(2, output);
  writer.string(3, `${node.op}_${node.outputs[0]}`).string(4, node.op);
  for (const [name, value] of Object.entries(node.attributes)) {
    writer.message(5, (attribute) => {
      attribute.string(1, name);
      if (typeof value === 'number') attribute.int(3, value).int(20, 2);
      else if (typeof value === 'string') attribute.string(4, value).int(20, 3);
      else if ('float' in value) attribute.float(2, value.float).int(20, 1);
      else {
        for (const item of value) attribute.int(8, item);
        attribute.int(20, 7);
      }
    });
  }
  if (node.domain) writer.string(7, node.domain);
}

function writePort(writer: ProtoWriter, port: Port): void {
  writer.string(1, port.name).message(2, (type) =>
    type.message(1, (tensor) => {
      tensor.int(1, elementTypeNumbers[port.dtype]).message(2, (shape) => {
        for (const size of port.dims) {
          shape.message(1, (dimension) => {
            if (typeof size === 'number') dimension.int(1, size);
            // For the runtime a sum such as "L+2" is another unknown.
            else dimension.string(2, size);
          });
        }
      });
    }),
  );
}

/** 64-bit FNV-1a in two halves. */
function hash(bytes: Uint8Array): string {
  let low = 0x811c9dc5;
  let high = 0xcbf29ce4;
  for (const byte of bytes) {
    low = Math.imul(low ^ byte, 0x01000193) >>> 0;
    high = Math.imul(high ^ low ^ byte, 0x01000197) >>> 0;
  }
  return high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0');
}
