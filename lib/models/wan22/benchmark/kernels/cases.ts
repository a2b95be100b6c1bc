import { at } from '../../../../contract';
import type { Scope } from '../../../../gpu';
import type { Compute, RowView } from '../../../../gpu/kernels';
import {
  type AttentionRun,
  type AttentionShape,
  attentionDispatch,
  attentionVariants,
} from '../../../../gpu/kernels/attention';
import {
  fastAttentionDispatch,
  fastAttentionVariants,
} from '../../../../gpu/kernels/attention-dp4a';
import {
  matrixAttentionDispatch,
  matrixAttentionVariants,
} from '../../../../gpu/kernels/attention-matrix';
import {
  packedValues,
  packedWidth,
  type QuantisedHeads,
  quantiseRows,
  quantiseValues,
} from '../../../../gpu/kernels/attention-quantise';
import { convolutionVariants } from '../../../../gpu/kernels/convolution';
import { matrixConvolutionVariants } from '../../../../gpu/kernels/convolution-matrix';
import { convolutionDispatches } from '../../../../gpu/kernels/convolution-run';
import { packedDims, packedRows, packJob } from '../../../../gpu/kernels/convolution-weights';
import { fromHalf, toHalf } from '../../../../gpu/kernels/half';
import { type LinearVariant, linearDispatch, linearVariants } from '../../../../gpu/kernels/linear';
import {
  type FastLinearShape,
  fastLinearDispatch,
  fastLinearVariants,
} from '../../../../gpu/kernels/linear-dp4a';
import { matrixLinearVariants } from '../../../../gpu/kernels/linear-matrix';
import { quantiseDispatch } from '../../../../gpu/kernels/quantise';
import { convolutionShape, type ImageSize, sameSize } from '../../../../gpu/kernels/tuned-shapes';
import {
  add,
  convolution,
  GraphBuilder,
  geluTanh,
  matMulBlocks,
  mul,
  multiHeadAttention,
} from '../../../../onnx';
import { noise, noiseBlocks } from '../../../wan/benchmark/synthetic';
import { decoderBlocks, transformerDim } from '../../../wan/config';
import type { ModelConfig } from '../../config';
import type { KernelCase, MeasuredKernel } from './measure';

/** How large the operands are: `small` for a device that the CPU emulates. */
export type CaseSize = 'small' | 'full';

/** Tokens of 1280×704×121, and of a text that is as long as it may be. */
export const nativeTokens = 27_280;
export const textTokens = 512;

/** Where the model has the operators. */
export const caseNames = {
  projection: 'query, key, value, output',
  projection4: 'query, key, value, output in 4 bits',
  up: 'feed-forward, up',
  down: 'feed-forward, down',
  self: 'self-attention',
  cross: 'cross-attention',
  convolution: 'decoder, 3×3',
} as const;

/** The operators that take the model's time. */
export function kernelCases({ transformer, vae }: ModelConfig, size: CaseSize): KernelCase[] {
  const small = size === 'small';
  const d = transformerDim(transformer);
  const rows = small ? 128 : 2048;
  const head = transformer.attention_head_dim;
  const { out_dim: channels } = at(decoderBlocks(vae).slice(-1), 0);
  const projection = { rows, k: d, n: d, bits: 8, epilogue: 'none' } as const;
  const main = [
    linearCase(caseNames.projection, projection),
    attentionCase(caseNames.self, {
      heads: small ? 1 : 2,
      head,
      rows,
      keys: small ? 2048 : nativeTokens,
    }),
    convolutionCase(caseNames.convolution, {
      height: small ? 16 : 352,
      width: small ? 16 : 640,
      channels,
    }),
  ];
  if (small) return main;
  return [
    ...main,
    linearCase(caseNames.up, { ...projection, n: transformer.ffn_dim, epilogue: 'gelu' }),
    linearCase(caseNames.down, { ...projection, k: transformer.ffn_dim, epilogue: 'gated' }),
    attentionCase(caseNames.cross, {
      heads: transformer.num_attention_heads,
      head,
      rows,
      keys: textTokens,
    }),
    linearCase(caseNames.projection4, { ...projection, bits: 4 }),
  ];
}

interface LinearSize {
  readonly rows: number;
  readonly k: number;
  readonly n: number;
  readonly bits: 8 | 4;
  readonly epilogue: 'none' | 'gelu' | 'gated';
}

function linearCase(name: string, size: LinearSize): KernelCase {
  const { rows, k, n, bits, epilogue } = size;
  const gated = epilogue === 'gated';
  return {
    family: 'linear',
    name,
    size: `${rows}×${k}×${n}, ${bits} bits`,
    flops: 2 * rows * k * n,
    prepare(scope, compute) {
      const { wide: x, narrow } = halves(scope, 'x', [rows, k]);
      const { values, scales } = noiseBlocks(`${name} weight`, n, k, bits);
      const weight = {
        values: scope.tensor('uint8', [n, k / 32, 4 * bits], 'weights', values),
        scales: scope.float32([n, k / 32], 'weights', scales),
        bias: scope.float32([n], 'weights', noise('bias', n, 1)),
      };
      const gate = scope.float32([n], 'activations', noise('gate', n, 1));
      // Our kernel updates it in place; the comparison is with the first run.
      const residual = scope.float32([rows, n], 'activations');
      const result = gated
        ? scope.float32([rows, n], 'activations')
        : scope.tensor('float16', [rows, n], 'activations');
      const shape: FastLinearShape = {
        k,
        n,
        weight: bits === 8 ? 'q8' : 'q4',
        input: 'f16',
        output: gated ? 'f32' : 'f16',
        bias: true,
        rank: 0,
        epilogue,
      };
      const operands = { rows, y: whole(result), ...weight, ...(gated && { gate: whole(gate) }) };
      const plain = (variant: LinearVariant): MeasuredKernel => ({
        variant: textOf(variant.matrix ?? variant),
        mode: variant.matrix ? 'matrix' : 'exact',
        result,
        jobs: [linearDispatch(variant, shape, { ...operands, x: whole(narrow) })],
      });
      const rounded = {
        x: whole(scope.tensor('int32', [rows, k / 4], 'activations')),
        xScales: whole(scope.float32([rows, k / 32], 'activations')),
      };
      const rounding = quantiseDispatch(k, 'f16', { rows, source: whole(narrow), ...rounded });
      const fast = (variant: LinearVariant): MeasuredKernel => ({
        variant: textOf(variant),
        mode: 'fast',
        result,
        jobs: [rounding, fastLinearDispatch(variant, shape, { ...operands, ...rounded })],
      });
      const y = scope.float32([rows, n], 'activations');
      const g = new GraphBuilder(`bench ${name}`);
      const input = (of: string, dims: readonly number[]) => g.input(of, 'float32', dims);
      const product = matMulBlocks(
        input('x', [rows, k]),
        g.input('values', 'uint8', [n, k / 32, 4 * bits]),
        input('scales', [n, k / 32]),
        input('bias', [n]),
        bits,
      );
      const outputs = {
        none: () => product,
        gelu: () => geluTanh(product),
        gated: () => add(input('residual', [rows, n]), mul(product, input('gate', [n]))),
      };
      g.output('y', outputs[epilogue]());
      const graph = g.build();
      const inputs = { x, ...weight, ...(gated && { residual, gate }) };
      const exact = linearVariants(compute);
      return {
        candidates: [
          ...[...exact, ...matrixLinearVariants(compute, exact)].map(plain),
          ...fastLinearVariants(compute).map(fast),
        ],
        runtime: async () => {
          await scope.backend.run(graph, inputs, { y });
          return y;
        },
      };
    },
  };
}

interface AttentionSize {
  readonly heads: number;
  readonly head: number;
  readonly rows: number;
  readonly keys: number;
}

function attentionCase(name: string, { heads, head, rows, keys }: AttentionSize): KernelCase {
  const width = heads * head;
  return {
    family: 'attention',
    name,
    size: `${heads} × ${head} channels, ${rows} queries, ${keys} keys`,
    flops: 4 * heads * rows * keys * head,
    prepare(scope: Scope, compute: Compute) {
      const q = halves(scope, 'q', [1, rows, width]);
      const k = halves(scope, 'k', [1, keys, width]);
      const v = halves(scope, 'v', [1, keys, width]);
      const result = scope.tensor('float16', [1, rows, width], 'activations');
      const scale = 1 / Math.sqrt(head);
      const shape: AttentionShape = {
        headSize: head,
        q: 'f16',
        kv: 'f16',
        out: 'f16',
        bias: 'none',
      };
      const view = (tensor: RowView['operand']['tensor']) => ({
        ...whole(tensor),
        headStride: head,
        rowStride: width,
      });
      const run: AttentionRun = {
        q: view(q.narrow),
        k: view(k.narrow),
        v: view(v.narrow),
        out: view(result),
        heads,
        rows,
        keys,
        scale,
      };
      const rounded = { storage: 'f16', headSize: head, heads } as const;
      const inBytes = (count: number): QuantisedHeads => ({
        values: scope.tensor('int32', [heads, count, packedWidth(head)], 'activations'),
        scales: scope.float32([heads, count], 'activations'),
      });
      const [rows8, keys8] = [inBytes(rows), inBytes(keys)];
      const mean = scope.float32([heads, head], 'activations');
      const values8 = {
        values: scope.tensor('int32', [heads, packedValues(keys, head)], 'activations'),
        ranges: scope.float32([heads, 2, head], 'activations'),
      };
      const y = scope.float32([1, rows, width], 'activations');
      const g = new GraphBuilder(`bench ${name}`);
      const input = (of: string, count: number) => g.input(of, 'float32', [1, count, width]);
      g.output(
        'y',
        multiHeadAttention(input('q', rows), input('k', keys), input('v', keys), { heads, scale }),
      );
      const graph = g.build();
      return {
        candidates: [
          ...attentionVariants(compute).map(
            (variant): MeasuredKernel => ({
              variant: textOf(variant),
              mode: 'exact',
              result,
              jobs: [attentionDispatch(variant, shape, run)],
            }),
          ),
          ...matrixAttentionVariants(compute).map(
            (variant): MeasuredKernel => ({
              variant: textOf(variant),
              mode: 'matrix',
              result,
              jobs: [matrixAttentionDispatch(variant, shape, run)],
            }),
          ),
          ...fastAttentionVariants(compute).map(
            (variant): MeasuredKernel => ({
              variant: textOf(variant),
              mode: 'fast',
              result,
              jobs: [
                ...quantiseRows({ ...rounded, x: run.q, rows, y: rows8 }),
                ...quantiseRows({ ...rounded, x: run.k, rows: keys, y: keys8, mean }),
                ...quantiseValues({ ...rounded, x: run.v, rows: keys, y: values8 }),
                fastAttentionDispatch(variant, shape, { ...run, q: rows8, k: keys8, v: values8 }),
              ],
            }),
          ),
        ],
        runtime: async () => {
          await scope.backend.run(graph, { q: q.wide, k: k.wide, v: v.wide }, { y });
          return y;
        },
      };
    },
  };
}

/** A 3×3 convolution of one frame; over three frames it is the same loop with three times the steps. */
function convolutionCase(name: string, { height, width, channels }: ImageSize): KernelCase {
  return {
    family: 'convolution',
    name,
    size: `${height}×${width}, ${channels} channels to as many`,
    flops: 2 * 9 * channels ** 2 * height * width,
    prepare(scope, compute) {
      const image = [1, height, width, channels] as const;
      const x = halves(scope, 'x', image);
      const weight = halves(scope, 'filters', [channels, channels, 3, 3], 9 * channels).wide;
      const bias = scope.float32([channels], 'weights', noise('bias', channels, 1));
      const order = {
        blocks: 1,
        filters: channels,
        channels,
        taps: 9,
        strides: { block: 0, filter: 9 * channels, channel: 9, tap: 1 },
      };
      const dims = packedDims(packedRows(order), channels);
      const weights = scope.tensor('float16', dims, 'weights');
      const result = scope.tensor('float16', image, 'activations');
      const shape = { ...convolutionShape('f16'), frames: 1 } as const;
      const y = scope.float32(image, 'activations');
      const g = new GraphBuilder(`bench ${name}`);
      g.output(
        'y',
        convolution(
          g.input('x', 'float32', image),
          g.input('weight', 'float32', [channels, channels, 3, 3]),
          g.input('bias', 'float32', [channels]),
          scope.backend.convLayout,
          { pads: [1, 1, 1, 1] },
        ),
      );
      const graph = g.build();
      const exact = convolutionVariants(compute);
      const variants = [...exact, ...matrixConvolutionVariants(compute, exact)];
      return {
        before: [packJob(weight, order, weights)],
        candidates: variants.map((variant) => ({
          variant: textOf(variant.matrix ?? variant),
          mode: variant.matrix ? 'matrix' : 'exact',
          result,
          jobs: convolutionDispatches(compute, variant, shape, {
            x: [x.narrow],
            weights,
            bias,
            y: result,
            ...sameSize({ height, width, channels }),
          }),
        })),
        runtime: async () => {
          await scope.backend.run(graph, { x: x.wide, weight, bias }, { y });
          return y;
        },
      };
    },
  };
}

/** Random numbers that f16 holds exactly, in both storages: the runtime reads f32. */
function halves(scope: Scope, name: string, dims: readonly number[], fanIn = 1) {
  const count = dims.reduce((product, size) => product * size, 1);
  const bits = toHalf(noise(name, count, fanIn));
  return {
    narrow: scope.tensor('float16', dims, 'activations', bits),
    wide: scope.float32(dims, 'activations', fromHalf(bits)),
  };
}

const whole = (tensor: RowView['operand']['tensor']): RowView => ({
  operand: { tensor },
  firstRow: 0,
});

/** A variant's numbers and words, as they stand in its fields: `128×128×8×8 f32`. */
export function textOf(variant: object): string {
  const values = Object.values(variant);
  const numbers = values.filter((value) => typeof value === 'number');
  const words = values.filter((value) => typeof value === 'string');
  const flags = Object.entries(variant).flatMap(([name, value]) => (value === true ? [name] : []));
  return [numbers.join('×'), ...words, ...flags].join(' ');
}
