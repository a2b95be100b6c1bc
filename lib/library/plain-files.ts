import { type ComponentId, finisherParts, KinoraError } from '../contract';
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
  if (component === 'language_model') {
    for (const { source } of files) await checkLanguageModel(source);
  }
  if (finisherParts.some((part) => part === component)) {
    // Its tensors are looked at when it is opened; what is downloaded is known by its hash.
    for (const { source } of files) await openTensorFile(source);
  }
  if (component !== 'safety_checker') return;
  const config = find(checkerConfig, files);
  const text = new TextDecoder().decode(await config.read(0, config.size));
  const weights = await openTensorFile(find(checkerWeights, files));
  checkSafetyChecker(parseModelJson(config.name, text), weights);
}

/** The runtime of language models keeps a file in a 32-bit memory. */
const mostModelBytes = 2 ** 31;

/**
 * Checks by its header that a file is a language model that answers in a chat.
 *
 * @throws KinoraError `MODEL_WRONG_KIND`, `MODEL_FILE_INVALID`, `MODEL_FILE_TRUNCATED`
 */
export async function checkLanguageModel(source: ByteSource): Promise<void> {
  const { metadata, gguf } = await openTensorFile(source);
  const architecture = metadata.get('general.architecture');
  const isPart = Number(gguf?.metadata.get('split.count') ?? 1) > 1;
  const reason =
    gguf === null || architecture === undefined
      ? 'it is no GGUF file'
      : !metadata.has('tokenizer.chat_template')
        ? `it is a "${architecture}" without a chat template`
        : isPart
          ? 'it is only a part of one'
          : source.size > mostModelBytes
            ? 'it is larger than 2 GiB'
            : null;
  if (reason === null) return;
  const sentence = `${source.name} is not a language model that Kinora can use: ${reason}.`;
  throw new KinoraError('MODEL_WRONG_KIND', sentence, {
    remedy: 'Use one GGUF file of a chat model, such as Qwen3-0.6B-Q8_0.gguf.',
  });
}

function find(name: string, files: readonly OpenedFile[]): ByteSource {
  const file = files.find(({ path }) => path === name);
  if (file) return file.source;
  throw new KinoraError('MODEL_FILE_MISSING', `The safety checker has no ${name}.`);
}
