import * as ort from 'onnxruntime-web';
import { expect, test } from 'vitest';
import { elementCount, type Runtime, Scope, WasmBackend } from '../../../gpu';
import { imageFlops } from '../../../graph';
import { GraphBuilder, gemm } from '../../../onnx';
import { benchmarkModel, type StageResult } from '../../../pipeline/benchmark';
import { metered } from '../../../pipeline/benchmark/meter';
import { diskFolder, publicModels, goldens as root } from '../../../weights/testing/files';
import { textEncoderTensors } from '../../umt5/tensors';
import { clipOfTokens, frameOfTokens } from '../../wan/benchmark/blocks';
import { wanBenchmarkStages } from '../../wan/benchmark/stages';
import { syntheticCheckpoint } from '../../wan/benchmark/synthetic';
import { decoderBlocks } from '../../wan/config';
import { encoderLayerFlops, passFlops } from '../../wan/flops';
import { transformerTensors } from '../../wan/tensors';
import { publishedTinyDecoder } from '../../wan/tiny-decoder/published';
import { decoderLevel } from '../../wan/vae/network';
import { readModelConfig } from '../config';

const tiny = await readModelConfig(diskFolder(`${root}model`));
const real = await readModelConfig(diskFolder(`${publicModels}wan2.2-ti2v-5b`));

test('a forward pass of the 5B is 517 TFLOP', () => {
  const forward = (tokens: number) => passFlops(real.transformer, tokens, 512) / 1e12;
  // The published count also has what is around the blocks.
  expect(forward(27_280)).toBeGreaterThan(515);
  expect(forward(27_280)).toBeLessThan(517);
  expect(forward(53_680) / 1539).toBeCloseTo(1, 2);
});

test('the text encoder takes 4.8 TFLOP for 512 tokens', () => {
  expect((24 * encoderLayerFlops(real.text_encoder, 512)) / 1e12).toBeCloseTo(4.85, 1);
});

test('the tiny decoder has the parameters of the published one', () => {
  const shapes = [...publishedTinyDecoder(real).values()];
  expect(shapes.reduce((sum, shape) => sum + elementCount(shape), 0)).toBe(9_923_532);
});

test('the levels of the decoder agree with a count by hand', () => {
  const blocks = decoderBlocks(real.vae);
  // Positions and frames that enter a level, per latent frame of 1280×704.
  const entering = [
    [1, 44, 80],
    [2, 88, 160],
    [4, 176, 320],
    [4, 352, 640],
  ];
  const literal = blocks.map((block, i) => {
    const { out_dim: filters, space, time } = block;
    // The count by hand has the 3×3 convolution on the large image: 36 taps for 16.
    const phases = (time ? 2 : 1) * 2 * (36 - 16) * filters ** 2;
    const [frames = 0, height = 0, width = 0] = entering[i] ?? [];
    const level = imageFlops(decoderLevel(block, height, width));
    return (frames * (level + (space ? phases * height * width : 0))) / 1e12;
  });
  // It counts a frame's time convolution and upsampling with the level it leads to.
  const total = literal.reduce((sum, flop) => sum + flop, 0);
  expect(total / (1.8 + 14.2 + 26.8 + 22.6)).toBeCloseTo(1, 2);
});

test('synthetic weights are the same each time, have the right size and unit gain', async () => {
  const one = { ...tiny.transformer, num_layers: 1 };
  const checkpoint = syntheticCheckpoint(transformerTensors(one), 'int8');
  const name = 'blocks.0.ffn.net.2.weight';
  const bias = 'blocks.0.ffn.net.2.bias';
  const stored = await checkpoint.readStored([name, bias]);
  expect(stored).toEqual(await checkpoint.readStored([name, bias]));
  const weight = stored.get(name);
  if (!weight || weight instanceof Float32Array) throw new Error('not in blocks');
  const [rows = 0, columns = 0] = checkpoint.shape(name);
  expect(weight.values.length).toBe(rows * columns);
  expect(weight.scales.length).toBe((rows * columns) / 32);
  let power = 0;
  for (const [i, byte] of weight.values.entries()) {
    power += ((byte - 128) * (weight.scales[i >> 5] ?? 0)) ** 2;
  }
  expect(power / rows).toBeCloseTo(1, 1);
  expect(stored.get(bias)).toBeInstanceOf(Float32Array);
  const encoder = syntheticCheckpoint(textEncoderTensors(tiny.text_encoder), 'int8');
  expect((await encoder.readRows('shared.weight', [7, 7])).length).toBe(
    2 * tiny.text_encoder.d_model,
  );
});

test('a clip has exactly the tokens asked for', () => {
  expect(clipOfTokens(real.transformer, 128)).toEqual({ frames: 2, height: 16, width: 16 });
  expect(clipOfTokens(real.transformer, 27_280)).toEqual({ frames: 31, height: 44, width: 80 });
  expect(() => clipOfTokens(real.transformer, 127)).toThrow('127 tokens');
});

test('the frame for the decoder is as small as the clip', () => {
  expect(frameOfTokens(real.transformer, 27_280)).toEqual({ height: 44, width: 80 });
  expect(frameOfTokens(real.transformer, 128)).toEqual({ height: 8, width: 8 });
  expect(frameOfTokens(real.transformer, 64)).toEqual({ height: 4, width: 8 });
});

test('the meter counts each run, its weights and its bytes', async () => {
  const backend = new WasmBackend(ort as unknown as Runtime);
  const meter = metered(backend);
  const scope = new Scope(meter.backend);
  const g = new GraphBuilder('product');
  const x = g.input('x', 'float32', ['L', 4]);
  g.output('y', gemm(x, g.input('w', 'float32', [3, 4]), null));
  const w = scope.float32([3, 4], 'weights');
  const [input, y] = [scope.float32([2, 4], 'activations'), scope.float32([2, 3], 'activations')];
  await meter.backend.run(g.build(), { x: input, w }, { y });
  meter.backend.copy(y, 0, input, 0, 6);
  const [run, copy] = meter.take();
  expect(run).toMatchObject({ graph: 'product', weights: [w], activationBytes: 32 + 24 });
  expect(copy).toMatchObject({ graph: 'copy', weights: [], activationBytes: 48 });
  expect(meter.take()).toEqual([]);
  scope.dispose();
  await meter.backend.dispose();
});

test('every stage of the tiny model is measured and leaves nothing behind', async () => {
  const backend = new WasmBackend(ort as unknown as Runtime);
  const lines: StageResult[] = [];
  const results = await benchmarkModel(
    backend,
    wanBenchmarkStages(tiny, {
      layers: 2,
      tokens: 16,
      textTokens: 12,
      latent: { height: 3, width: 5 },
      level: 1,
      precision: 'int8',
      passes: 2,
      maxChunkTokens: 64,
      kernels: 'runtime',
    }),
    (line) => lines.push(line),
  );
  expect(lines).toEqual(results);
  expect(results.map(({ stage }) => stage)).toEqual([
    'self-attention',
    'cross-attention-feed-forward',
    'transformer block',
    'text-encoder-layer',
    'VAE up block 1, 3×5',
  ]);
  for (const { seconds, flop, weightBytes, activationBytes, peakBytes } of results) {
    for (const figure of [seconds, flop, weightBytes, activationBytes]) {
      expect(figure).toBeGreaterThan(0);
    }
    expect(peakBytes).toBeGreaterThan(weightBytes);
  }
  expect(backend.counters().liveBytes).toBe(0);
  await backend.dispose();
});
