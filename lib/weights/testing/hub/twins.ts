import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { defaultSafetyChecker, languageModels } from '../../../contract';
import type { LocalHub } from './server';

const languageModel = fileURLToPath(
  new URL('../../../language-model/goldens/tiny-qwen3-Q8_0.gguf', import.meta.url),
);
const checkerFolder = fileURLToPath(new URL('../../../safety/goldens/timm/', import.meta.url));

/** Puts tiny twins of the safety checker and of the language models on a hub, under the real names. */
export async function publishTwins({ repositories }: LocalHub): Promise<void> {
  for (const { repository, revision } of defaultSafetyChecker.files) {
    await repositories.putFolder(repository, checkerFolder);
    repositories.pin(repository, revision);
  }
  for (const { repository, path } of languageModels.flatMap(
    ({ sources }) => sources[0]?.files ?? [],
  )) {
    repositories.put(repository, path, await readFile(languageModel));
  }
}
