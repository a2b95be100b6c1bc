/** Checks of reused blocks that hold on every backend; run in Node and in Chromium. */
import { expect } from 'vitest';
import { type Backend, relativeRms, Scope } from '../../../gpu';
import type { BlockWork } from '../../../pipeline/model';
import { givenName } from '../condition';
import type { TransformerConfig } from '../config-schemas';
import { WanDenoiser } from '../denoiser';
import { tokensToLatents } from '../tokens';
import type { Transformer } from '../transformer';
import { perFrame, tokens, values, width } from './denoise';

/** A clip with guidance, and its velocities by what is done with the blocks of each branch. */
async function openClip(backend: Backend, transformer: Transformer, config: TransformerConfig) {
  const size = { frames: 3, height: 2, width: 4 };
  const denoiser = await WanDenoiser.create(null, perFrame, async () => transformer, 0);
  const clip = await denoiser.prepare({
    size,
    image: {
      [givenName(0)]: tokensToLatents(
        values(0, perFrame * width),
        config.in_channels,
        { ...size, frames: 1 },
        config,
      ),
    },
    texts: [values(2, 5 * config.text_dim), values(3, 3 * config.text_dim)],
    reusesBlocks: true,
  });
  const scope = new Scope(backend);
  const rows = [tokens - perFrame, width];
  const targets = [scope.float32(rows, 'latents'), scope.float32(rows, 'latents')];
  return {
    /** Velocities of the branches at a timestep, from the latents of a stream. */
    async velocities(timestep: number, stream: number, blocks: readonly BlockWork[]) {
      const sample = scope.float32(rows, 'latents', values(stream, (tokens - perFrame) * width));
      const wanted = targets.slice(0, blocks.length);
      await clip.velocity(timestep, sample, wanted, { blocks });
      sample.dispose();
      const read: Float32Array[] = [];
      for (const target of wanted) read.push(await backend.read(target));
      return read;
    },
    dispose() {
      clip.dispose();
      scope.dispose();
    },
  };
}

/** What blocks added is kept and added again, by branch, without a change of what is computed. */
export async function checkReuse(
  backend: Backend,
  transformer: Transformer,
  config: TransformerConfig,
): Promise<void> {
  const clip = await openClip(backend, transformer, config);
  try {
    const plain = await clip.velocities(700, 1, ['compute', 'compute']);
    expect(await clip.velocities(700, 1, ['keep', 'keep'])).toEqual(plain);
    const again = await clip.velocities(700, 1, ['reuse', 'reuse']);
    for (const [i, velocity] of again.entries()) {
      expect(relativeRms(velocity, plain[i] ?? [])).toBeLessThan(1e-5);
    }
    // Another input takes another way through the head, but the same residual.
    const other = await clip.velocities(400, 4, ['compute', 'compute']);
    const mixed = await clip.velocities(400, 4, ['reuse', 'compute']);
    expect(relativeRms(mixed[0] ?? [], other[0] ?? [])).toBeGreaterThan(1e-3);
    expect(mixed[1]).toEqual(other[1]);
    const reversed = await clip.velocities(400, 4, ['keep', 'reuse']);
    expect(reversed[0]).toEqual(other[0]);
    expect(relativeRms(reversed[1] ?? [], other[1] ?? [])).toBeGreaterThan(1e-3);
    // The residual that was kept last counts, and one branch can go alone.
    const [alone = []] = await clip.velocities(400, 4, ['reuse']);
    expect(relativeRms(alone, other[0] ?? [])).toBeLessThan(1e-5);
  } finally {
    clip.dispose();
  }
}
