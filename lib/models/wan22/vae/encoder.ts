import { at } from '../../../contract';
import { type Backend, type DeviceTensor, Scope } from '../../../gpu';
import { encoderBlocks, type VaeBlock, type VaeConfig } from '../config';
import { extentOf, type Image } from './bands';
import { downsampleGraph } from './graphs';
import { Workspace } from './layers';
import { loadMiddle, NetworkLoader } from './network';
import { foldPixels } from './pixels';
import { type VaeCheckpoint, VaeLoader, type VaeLoadOptions } from './weights';

/** Planar RGB [3, height, width] in −1…1; sizes are multiples of the VAE's spatial factor. */
export interface PlanarImage {
  readonly data: Float32Array;
  readonly width: number;
  readonly height: number;
}

/** How the encoder is loaded and run. */
export interface FirstFrameOptions extends VaeLoadOptions {
  /** See `bandsOf`; for tests. */
  readonly bandBytes?: number;
}

/**
 * Encodes the first frame of a clip. It has no past, so of every 3×3×3 kernel only the last time tap
 * sees anything and the encoder is a 2-D network (README). Weights are loaded one layer group
 * at a time, and everything is freed when it returns or throws.
 *
 * @returns latent [z, 1, H/16, W/16] in model space: (mean of the moments − latents_mean) / latents_std
 * @throws TypeError when the image has another size than it says or one that the VAE cannot take
 */
export async function encodeFirstFrame(
  backend: Backend,
  config: VaeConfig,
  checkpoint: VaeCheckpoint,
  image: PlanarImage,
  options: FirstFrameOptions = {},
): Promise<Float32Array<ArrayBuffer>> {
  const { data, width, height } = image;
  const factor = config.scale_factor_spatial;
  if (data.length !== 3 * width * height || width % factor !== 0 || height % factor !== 0) {
    throw new TypeError(`not an image in steps of ${factor} pixels: ${width}×${height}`);
  }
  const workspace = new Workspace(backend, options.bandBytes);
  const { scratch } = workspace;

  /** Loads a part of the network, runs it, and frees its weights. */
  async function part(run: (parts: NetworkLoader) => Promise<Image>): Promise<Image> {
    const weights = new Scope(backend);
    try {
      const loader = new VaeLoader(weights, checkpoint, options);
      return await run(new NetworkLoader(workspace, loader, 1));
    } finally {
      weights.dispose();
    }
  }

  /** Runs a part and gives its input back. */
  async function through(x: Image, run: (parts: NetworkLoader, x: Image) => Promise<Image>) {
    const y = await part((parts) => run(parts, x));
    scratch.give(x);
    return y;
  }

  try {
    const { patch_size: patch, in_channels: inputs, base_dim: base, z_dim: z } = config;
    let x = workspace.image(height / patch, width / patch, inputs);
    backend.write(x, foldPixels(data, height, width, patch, 'column-row'));
    x = await through(x, async (parts, image) =>
      (await parts.convolution('encoder.conv_in', inputs, base)).step(image),
    );
    const blocks = encoderBlocks(config);
    for (const block of blocks) {
      const input = x; // needed again for the block's shortcut
      for (let i = 0; i < block.resnets; i++) {
        const name = `${block.name}.resnets.${i}`;
        const channels = i === 0 ? block.in_dim : block.out_dim;
        const image = x;
        x = await part(async (parts) =>
          (await parts.residualBlock(name, channels, block.out_dim)).step(image, image === input),
        );
      }
      x = await through(x, (parts, main) => downsample(parts, block, main, input));
      scratch.give(input);
    }
    const { out_dim: top } = at(blocks, blocks.length - 1);
    x = await part(async (parts) => {
      let y = x;
      for (const layer of await loadMiddle(parts, 'encoder.mid_block', top)) {
        y = await layer.step(y, false);
      }
      return y;
    });
    x = await through(x, async (parts, image) =>
      (await parts.convolution('encoder.conv_out', top, 2 * z, 'encoder.norm_out')).step(image),
    );
    // Of the moments only the mean is used: the first z filters.
    x = await through(x, async (parts, image) =>
      (await parts.pointwise('quant_conv', 2 * z, z)).step(image),
    );
    return normalised(await backend.read(x), config);
  } finally {
    workspace.dispose();
  }
}

/** The block's end: halves the size where the block does, and adds the shortcut from its input. */
async function downsample(
  parts: NetworkLoader,
  block: VaeBlock,
  x: Image,
  input: Image,
): Promise<Image> {
  const { in_dim: inputs, out_dim: channels, space } = block;
  const { workspace, loader } = parts;
  const kernel = space ? 2 : 1;
  const { height, width } = extentOf(x);
  const y = workspace.image(height / kernel, width / kernel, channels);
  const { backend } = workspace;
  const graph = downsampleGraph({
    layout: backend.convLayout,
    channels,
    shortcut: { inputs, kernel },
    space,
  });
  const shortcutWeight = loader.scope.float32(
    [channels, inputs, kernel, kernel],
    'weights',
    averagingWeights(inputs, channels, block.time ? 2 : 1, kernel),
  );
  const weights: Record<string, DeviceTensor> = space
    ? { ...(await loader.plain(`${block.name}.downsampler.resample.1`)) }
    : {};
  await backend.run(graph, { ...weights, x, shortcut: input, shortcutWeight }, { y });
  return y;
}

/**
 * AvgDown3D (README) for a single frame as a convolution without overlap. Blocks of
 * (time, row, column) are folded into channels in that order and neighbouring ones averaged; in time
 * a frame of zeros stands before the only one.
 *
 * @returns weights [channels, inputs, factor, factor]
 */
function averagingWeights(
  inputs: number,
  channels: number,
  factorTime: 1 | 2,
  factor: 1 | 2,
): Float32Array {
  const area = factor * factor;
  const group = (inputs * factorTime * area) / channels;
  const weights = new Float32Array(channels * inputs * area);
  for (let c = 0; c < inputs; c++) {
    for (let pixel = 0; pixel < area; pixel++) {
      const folded = (c * factorTime + factorTime - 1) * area + pixel;
      const channel = Math.floor(folded / group);
      weights[(channel * inputs + c) * area + pixel] = 1 / group;
    }
  }
  return weights;
}

/** [h·w, z] in the VAE's space → [z, h·w] in the model's. */
function normalised(moments: Float32Array, config: VaeConfig): Float32Array<ArrayBuffer> {
  const { latents_mean: mean, latents_std: std, z_dim: z } = config;
  const pixels = moments.length / z;
  const latent = new Float32Array(moments.length);
  for (let c = 0; c < z; c++) {
    const [shift, scale] = [at(mean, c), at(std, c)];
    for (let i = 0; i < pixels; i++) {
      latent[c * pixels + i] = ((moments[i * z + c] as number) - shift) / scale;
    }
  }
  return latent;
}
