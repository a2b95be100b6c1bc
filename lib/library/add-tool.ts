import {
  KinoraError,
  type Licence,
  type ModelSource,
  type SourceFile,
  type ToolManifest,
  toolSchema,
} from '../contract';
import { type HubClient, hubByteSource, parseHubAddress } from '../weights/hub';
import { uniqueId } from './add-model';
import { localSource } from './local-files';
import { checkLanguageModel } from './plain-files';
import { licenceOf, unknownLicence } from './sources';

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
