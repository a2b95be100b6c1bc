import { addToBias } from '../../safety/testing/bias';
import { openModelStore } from '../../weights/store';

const goldens = '/lib/safety/goldens/timm/';

/**
 * Installs the tiny safety checker for the bundled model, as the store keeps it.
 *
 * @param bias is added to the logit of "unsafe": a large one flags every picture, NaN breaks every score
 */
export async function installChecker(bias: number): Promise<void> {
  const config = await (await fetch(`${goldens}config.json`)).text();
  const weights = new Uint8Array(await (await fetch(`${goldens}model.safetensors`)).arrayBuffer());
  addToBias(weights, bias);
  const folder = (await openModelStore()).folder('tiny').folder('safety_checker');
  await folder.writeText('config.json', config);
  const root = await navigator.storage.getDirectory();
  const models = await root.getDirectoryHandle('models');
  const tiny = await models.getDirectoryHandle('tiny');
  const place = await tiny.getDirectoryHandle('safety_checker');
  const file = await (
    await place.getFileHandle('model.safetensors', { create: true })
  ).createWritable();
  await file.write(weights);
  await file.close();
  const source = (name: string, bytes: number) => ({
    name: `test/checker/${name}`,
    bytes,
    sha256: 'c'.repeat(64),
  });
  const now = new Date().toISOString();
  const manifest = {
    version: 1,
    stored: {
      component: 'safety_checker',
      sources: [source('config.json', config.length), source('model.safetensors', weights.length)],
      sourceType: 'files',
      precision: 'f32',
      worst: null,
      bytesStored: config.length + weights.length,
      completedAt: now,
      verifiedAt: now,
    },
    plan: '',
    files: { 'config.json': config.length, 'model.safetensors': weights.length },
    tensors: [],
    fileChecksums: {},
  };
  await folder.writeText('manifest.json', JSON.stringify(manifest));
}

export async function removeChecker(): Promise<void> {
  await (await openModelStore()).folder('tiny').clear();
}
