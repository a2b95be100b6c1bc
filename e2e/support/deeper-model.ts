import { cp, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fixtureManifest, modelFolder } from './fixtures';

/** Range of each tensor of a safetensors file, in bytes behind its header. */
type Header = Record<string, { readonly data_offsets: readonly [number, number] }>;

/** Blocks of the deeper model. */
const deeperBlocks = 64;

/**
 * The golden model with its two blocks over and over: of two blocks none is worth streaming, as the
 * buffers to stream through hold as many.
 */
export async function deeperModel(folder: string): Promise<string> {
  await cp(modelFolder, folder, { recursive: true });
  const transformer = path.join(folder, 'transformer');
  const weights = path.join(transformer, 'diffusion_pytorch_model.safetensors');
  await writeFile(weights, withMoreBlocks(await readFile(weights)));
  const configuration = path.join(transformer, 'config.json');
  const config = JSON.parse(await readFile(configuration, 'utf8'));
  await writeFile(configuration, JSON.stringify({ ...config, num_layers: deeperBlocks }));
  const { base: _, ...rest } = fixtureManifest();
  const manifest = { ...rest, id: 'deeper', name: 'Deeper', precision: 'int8' };
  await writeFile(path.join(folder, 'kinora.json'), JSON.stringify(manifest));
  return folder;
}

/** The same file with more blocks: each even one as block 0 is, each odd one as block 1. */
function withMoreBlocks(file: Buffer): Buffer {
  const dataStart = 8 + Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, dataStart).toString()) as Header;
  const data = file.subarray(dataStart);
  const added: Buffer[] = [];
  let end = data.length;
  for (const [name, tensor] of Object.entries(header)) {
    const [, block, inside] = /^blocks\.(\d+)\.(.+)$/.exec(name) ?? [];
    if (block === undefined) continue;
    const bytes = data.subarray(...tensor.data_offsets);
    for (let copy = Number(block) + 2; copy < deeperBlocks; copy += 2) {
      const data_offsets = [end, end + bytes.length] as const;
      header[`blocks.${copy}.${inside}`] = { ...tensor, data_offsets };
      added.push(bytes);
      end += bytes.length;
    }
  }
  const json = Buffer.from(JSON.stringify(header));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([size, json, data, ...added]);
}
