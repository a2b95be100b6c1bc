import {
  type ComponentId,
  finisherParts,
  KinoraError,
  type Licence,
  type ModelSource,
  type SourceFile,
  type ToolManifest,
  toolSchema,
} from '../contract';
import { type ByteSource, parseModelJson } from '../weights/formats/source';
import { openTensorFile } from '../weights/formats/tensor-file';
import { type HubClient, hubByteSource, parseHubAddress } from '../weights/hub';
import { checkerConfig, checkerWeights } from '../weights/store';
import { uniqueId } from './add-model';
import type { LibraryEnvironment } from './environment';
import { localSource } from './local-files';
import { licenceOf, type OpenedFile, unknownLicence } from './sources';

/**
 * The manifest of a language model that is to be added: one GGUF file, by its address on the hub or from
 * this computer. Its header is checked.
 *
 * @param taken ids that are taken
 * @throws KinoraError `ADDRESS_INVALID`, `MODEL_WRONG_KIND`, `MODEL_FILE_INVALID`, and what the hub answers
 */
export async function addedTool(
  source: ModelSource,
  client: HubClient,
  taken: ReadonlySet<string>,
): Promise<ToolManifest> {
  if ('files' in source) {
    const [local, ...more] = source.files;
    if (!local || more.length > 0) {
      throw new KinoraError('MODEL_WRONG_KIND', 'A language model is one GGUF file.');
    }
    await checkLanguageModel(localSource(local));
    return manifestOf(local.path, 'a local file', unknownLicence, null, taken);
  }
  const file = await fileAt(source, client);
  await checkLanguageModel(hubByteSource(client, await client.file(file)));
  const licence = licenceOf(await client.list(file.repository, file.revision), client);
  return manifestOf(file.path, `${file.repository}/${file.path}`, licence, file, taken);
}

/** The GGUF file of an address, where there is one only. */
async function fileAt(
  { address: text, revision }: Extract<ModelSource, { address: string }>,
  client: HubClient,
): Promise<SourceFile> {
  const address = parseHubAddress(text, client.base, revision);
  const { repository } = address;
  if (address.kind === 'file')
    return { repository, path: address.path, revision: address.revision };
  const { files } = await client.list(repository, address.revision);
  const ggufFiles = [...files.keys()].filter((path) => /\.gguf$/i.test(path));
  const [only] = ggufFiles;
  if (ggufFiles.length === 1 && only) return { repository, path: only, revision: address.revision };
  throw new KinoraError(
    'ADDRESS_INVALID',
    only === undefined
      ? `${repository} has no GGUF file.`
      : `${repository} has ${ggufFiles.length} GGUF files: name one, such as ${repository}/${only}.`,
  );
}

function manifestOf(
  path: string,
  origin: string,
  licence: Licence,
  file: SourceFile | null,
  taken: ReadonlySet<string>,
): ToolManifest {
  const name =
    path
      .split('/')
      .at(-1)
      ?.replace(/\.gguf$/i, '') ?? path;
  return toolSchema.parse({
    id: uniqueId(name, taken),
    name,
    description: `Added from ${origin}.`,
    licence,
    sources: file ? [{ component: 'language_model', files: [file] }] : [],
  });
}

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
async function checkLanguageModel(source: ByteSource): Promise<void> {
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
