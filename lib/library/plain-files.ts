import { type ComponentId, KinoraError } from '../contract';
import { type ByteSource, parseModelJson } from '../weights/formats/source';
import { openTensorFile } from '../weights/formats/tensor-file';
import { checkerConfig, checkerWeights } from '../weights/store';
import type { LibraryEnvironment } from './environment';
import type { OpenedFile } from './sources';

/**
 * Checks files that are stored as they are, before they are fetched: small files and headers are read.
 *
 * @throws KinoraError `MODEL_FILE_MISSING`, and as `LibraryEnvironment.checkSafetyChecker`
 */
export async function checkPlainFiles(
  component: ComponentId,
  files: readonly OpenedFile[],
  { checkSafetyChecker }: Pick<LibraryEnvironment, 'checkSafetyChecker'>,
): Promise<void> {
  if (component !== 'safety_checker') return;
  const config = find(checkerConfig, files);
  const text = new TextDecoder().decode(await config.read(0, config.size));
  const weights = await openTensorFile(find(checkerWeights, files));
  checkSafetyChecker(parseModelJson(config.name, text), weights);
}

function find(name: string, files: readonly OpenedFile[]): ByteSource {
  const file = files.find(({ path }) => path === name);
  if (file) return file.source;
  throw new KinoraError('MODEL_FILE_MISSING', `The safety checker has no ${name}.`);
}
