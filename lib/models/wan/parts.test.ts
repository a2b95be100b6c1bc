import { describe, expect, test } from 'vitest';
import { diskFile, goldens, patchedFolder, safetensorsFrom } from '../../weights/testing/files';
import { openTiny, tinyFolder } from './testing/model';

const transformerFile = 'transformer/diffusion_pytorch_model.safetensors';

/** The bytes of a file of the model. */
async function bytesOf(path: string): Promise<Uint8Array<ArrayBuffer>> {
  const file = await diskFile(`${goldens}model/${path}`);
  return new Uint8Array(await file.read(0, file.size));
}

async function open(patches: Parameters<typeof patchedFolder>[1]) {
  return openTiny({}, patchedFolder(tinyFolder, patches));
}

test('a complete folder opens, and no weight is read for it', async () => {
  let bytes = 0;
  const counting: typeof tinyFolder = {
    ...tinyFolder,
    open: async (path) => {
      const file = await tinyFolder.open(path);
      return {
        ...file,
        read: (start, end) => {
          bytes += end - start;
          return file.read(start, end);
        },
      };
    },
  };
  const model = await openTiny({}, counting);
  expect(model.config.transformer.num_layers).toBe(2);
  expect(model.textEncoder.has('shared.weight')).toBe(true);
  const all = (
    await Promise.all([transformerFile, 'vae/diffusion_pytorch_model.safetensors'].map(bytesOf))
  )
    .map(({ length }) => length)
    .reduce((a, b) => a + b);
  expect(bytes).toBeLessThan(all / 10);
});

test.each([
  'model_index.json',
  'transformer/config.json',
  'vae/config.json',
  'text_encoder/config.json',
  'scheduler/scheduler_config.json',
  transformerFile,
  'vae/diffusion_pytorch_model.safetensors',
  'text_encoder/model.safetensors',
])('%s missing', async (path) => {
  await expect(open({ [path]: null })).rejects.toMatchObject({
    code: 'MODEL_FILE_MISSING',
    message: expect.stringContaining(path.split('/')[0] ?? path),
  });
});

describe('a manifest that does not fit the model', () => {
  const landscape = { width: 64, height: 32 };

  test('sizes are whole tokens on both sides', async () => {
    // Patches of 2×4 make tokens of 32×64 pixels.
    const config = {
      ...((await tinyFolder.json('transformer/config.json')) as object),
      patch_size: [1, 2, 4],
    };
    const folder = patchedFolder(tinyFolder, { 'transformer/config.json': JSON.stringify(config) });
    await expect(openTiny({}, folder)).rejects.toMatchObject({
      code: 'MODEL_MANIFEST_INVALID',
      message:
        'The model manifest does not fit: nativeSizes.720*1280.width is 32, but this model needs a multiple of 64.',
    });
    const tall = { ...config, patch_size: [1, 4, 2] };
    const other = patchedFolder(tinyFolder, { 'transformer/config.json': JSON.stringify(tall) });
    const nativeSizes = { '1280*720': landscape, '720*1280': landscape };
    await expect(openTiny({ nativeSizes }, other)).rejects.toThrow('1280*720.height is 32');
  });

  test('clips are whole latent frames', async () => {
    const config = {
      ...((await tinyFolder.json('vae/config.json')) as object),
      dim_mult: [1, 1, 1, 1],
      temperal_downsample: [true, true, true],
      scale_factor_temporal: 8,
    };
    const folder = patchedFolder(tinyFolder, { 'vae/config.json': JSON.stringify(config) });
    await expect(openTiny({}, folder)).rejects.toMatchObject({
      code: 'MODEL_MANIFEST_INVALID',
      message:
        'The model manifest does not fit: frameStride is 4, but this model needs a multiple of 8.',
    });
  });
});

// Other damage is tested in config-schemas.test.ts and with the readers in lib/weights/formats.
test('a file that lacks a tensor is refused by its name', async () => {
  const bytes = await bytesOf(transformerFile);
  const length = Number(new DataView(bytes.buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const { 'blocks.1.attn2.to_v.bias': tensor, ...others } = header;
  const file = safetensorsFrom({ ...others, 'blocks.1.attn2.to_v.another': tensor }, [
    bytes.slice(8 + length),
  ]);
  await expect(open({ [transformerFile]: file })).rejects.toMatchObject({
    code: 'TENSOR_MISSING',
    message: `${transformerFile} lacks the tensor blocks.1.attn2.to_v.bias [64] of the transformer.`,
  });
});
