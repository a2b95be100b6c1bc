/** Opens a language model from OPFS inside a Web Worker, as the engine does, and asks it once. */
import { toKinoraError } from '../../contract';
import { openLanguageModel } from '../wllama-model';
import { requestFor, tinyOptions } from './tiny';

self.onmessage = async ({ data: name }: MessageEvent<string>) => {
  self.postMessage(await answerOf(name).catch((thrown) => toKinoraError(thrown).toRecord()));
};

async function answerOf(name: string) {
  const root = await navigator.storage.getDirectory();
  const file = await (await root.getFileHandle(name)).getFile();
  const model = await openLanguageModel(file, tinyOptions({ threads: 2 }));
  try {
    const text = await model.generate(requestFor({ seed: 7 }));
    return { text, isolated: self.crossOriginIsolated };
  } finally {
    await model.close();
  }
}
