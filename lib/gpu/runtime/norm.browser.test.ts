/** @module-tag full */
import { expect, test } from 'vitest';
import { GraphBuilder } from '../../onnx';
import { browserRuntime, relativeRms, Scope, WasmBackend, WebGpuBackend } from '..';
import { channelNorm } from './image-graphs';

/** The RMS norm as the README defines it, in double precision. */
function expected(x: Float32Array, gamma: Float32Array): Float64Array {
  const channels = gamma.length;
  return Float64Array.from(x, (value, i) => {
    const start = i - (i % channels);
    const pixel = x.subarray(start, start + channels);
    const norm = Math.hypot(...pixel);
    return (value / Math.max(norm, 1e-12)) * Math.sqrt(channels) * (gamma[i % channels] ?? 0);
  });
}

test.each(['webgpu', 'wasm'] as const)('the norm is right at every width, %s', async (kind) => {
  const runtime = await browserRuntime();
  const backend =
    kind === 'webgpu' ? await WebGpuBackend.create(runtime) : new WasmBackend(() => runtime);
  // Written out with one, two and three factors; with a factor too large (22); by the kernel.
  for (const channels of [6, 8, 24, 60, 22, 64, 160]) {
    const scope = new Scope(backend);
    const g = new GraphBuilder(`norm ${channels}`);
    const x = g.input('x', 'float32', [1, 'H', 'W', channels]);
    const gamma = g.input('gamma', 'float32', [channels]);
    g.output('y', channelNorm(x, gamma, channels, backend.convLayout));
    const dims = [1, 3, 5, channels];
    const values = Float32Array.from({ length: 15 * channels }, (_, i) =>
      // One pixel is zero and must stay so.
      i < channels ? 0 : Math.sin(i * 1.7) * 10 ** ((i % 7) - 3),
    );
    const scale = Float32Array.from({ length: channels }, (_, i) => 1 + 0.1 * Math.cos(i));
    const y = scope.float32(dims, 'activations');
    const inputs = {
      x: scope.float32(dims, 'activations', values),
      gamma: scope.float32([channels], 'weights', scale),
    };
    await backend.run(g.build(), inputs, { y });
    const result = await backend.read(y);
    expect([...result.subarray(0, channels)].every((value) => value === 0)).toBe(true);
    expect(relativeRms(result, expected(values, scale))).toBeLessThan(1e-6);
    scope.dispose();
  }
  await backend.dispose();
});
