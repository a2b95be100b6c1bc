import type { AttentionCall, Call, LinearCall } from '../../onnx';
import { type Backend, type Bindings, type DeviceTensor, elementCount, Scope } from '../backend';
import type { Kernels } from '../parts';
import { type AttentionVariant, attentionDispatch, type HeadView, hasAttention } from './attention';
import type { Compute, Dispatch, RowView } from './compute';
import { convolutionCall } from './convolution-call';
import { type LinearShape, type LinearVariant, linearDispatch } from './linear';
import type { KernelChoice } from './variants';

/** Computes the named calls of graphs with our own kernels; operands are f32. */
export class OwnKernels implements Kernels {
  readonly #compute: Compute;

  /** @throws TypeError for a backend that runs no kernels */
  constructor(
    readonly backend: Backend,
    readonly choice: KernelChoice,
  ) {
    if (!backend.compute) throw new TypeError(`${backend.kind} runs no kernels`);
    this.#compute = backend.compute;
  }

  async run(call: Call, inputs: Bindings, output: DeviceTensor<'float32'>): Promise<boolean> {
    const largest = this.#compute.limits.bindingBytes;
    if ([...Object.values(inputs), output].some(({ bytes }) => bytes > largest)) return false;
    switch (call.operator) {
      case 'linear':
        return (
          this.choice.linear !== null && this.#linear(this.choice.linear, call.spec, inputs, output)
        );
      case 'convolution': {
        const { convolution } = this.choice;
        const jobs =
          convolution && convolutionCall(this.#compute, convolution, call.spec, inputs, output);
        if (jobs) await this.#compute.dispatch(jobs);
        return jobs !== null;
      }
      case 'attention':
        return (
          this.choice.attention !== null &&
          this.#attention(this.choice.attention, call.spec, inputs, output)
        );
    }
  }

  async #attention(
    variant: AttentionVariant,
    { heads, headSize, scale }: AttentionCall['spec'],
    inputs: Bindings,
    output: DeviceTensor<'float32'>,
  ): Promise<boolean> {
    if (!hasAttention(headSize)) return false;
    const width = heads * headSize;
    const view = (tensor: DeviceTensor): HeadView => ({
      ...whole(tensor),
      headStride: headSize,
      rowStride: width,
    });
    const rows = elementCount(output.dims) / width;
    const keys = elementCount(role(inputs, 'k').dims) / width;
    const { bias } = inputs;
    const plain = { headSize, q: 'f32', kv: 'f32', out: 'f32' } as const;
    const job = attentionDispatch(
      variant,
      { ...plain, bias: bias ? 'full' : 'none' },
      {
        q: view(role(inputs, 'q')),
        k: view(role(inputs, 'k')),
        v: view(role(inputs, 'v')),
        out: view(output),
        heads,
        rows,
        keys,
        scale,
        ...(bias && { bias: { tensor: bias, headStride: bias.dims[1] === 1 ? 0 : rows * keys } }),
      },
    );
    await this.#compute.dispatch([job]);
    return true;
  }

  async #linear(
    variant: LinearVariant,
    spec: LinearCall['spec'],
    inputs: Bindings,
    output: DeviceTensor<'float32'>,
  ): Promise<boolean> {
    const { inFeatures: k, outFeatures: n, bits, residual } = spec;
    const gelu = spec.activation === 'gelu';
    if (k % (bits ? 32 : 4) !== 0 || (gelu && residual !== 'none')) return false;
    const rank = spec.lora ? (role(inputs, 'down').dims[0] ?? 0) : 0;
    const rows = elementCount(output.dims) / n;
    const scope = new Scope(this.backend);
    try {
      const jobs: Dispatch[] = [];
      const x = whole(role(inputs, 'x'));
      const plain = { k, input: 'f32', output: 'f32' } as const;
      const { down, residual: before, gate, ...operands } = inputs;
      const t = rank ? whole(scope.float32([rows, rank], 'runtime')) : undefined;
      if (t) {
        const shape = {
          ...plain,
          n: rank,
          weight: 'f32',
          bias: false,
          rank: 0,
          epilogue: 'none',
        } as const;
        jobs.push(linearDispatch(variant, shape, { rows, x, y: t, weight: role(inputs, 'down') }));
      }
      if (residual !== 'none') {
        this.backend.copy(role(inputs, 'residual'), 0, output, 0, rows * n);
      }
      const shape: LinearShape = {
        ...plain,
        n,
        weight: bits === null ? 'f32' : `q${bits}`,
        bias: spec.bias,
        rank,
        epilogue: gelu ? 'gelu' : residual,
      };
      jobs.push(
        linearDispatch(variant, shape, {
          ...operands,
          rows,
          x,
          y: whole(output),
          ...(t && { t }),
          ...(gate && { gate: whole(gate) }),
        }),
      );
      await this.#compute.dispatch(jobs);
      return true;
    } finally {
      scope.dispose();
    }
  }
}

function whole(tensor: DeviceTensor): RowView {
  return { operand: { tensor }, firstRow: 0 };
}

function role(inputs: Bindings, name: string): DeviceTensor {
  const tensor = inputs[name];
  if (!tensor) throw new TypeError(`the input ${name} is not bound`);
  return tensor;
}
