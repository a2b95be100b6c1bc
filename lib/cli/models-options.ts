import { backends } from '../contract';
import {
  type Arguments,
  downloadTypes,
  oneOf,
  readArguments,
  readDownload,
  refuseMore,
  usageError,
} from './arguments';

/** The text of `--help`. */
export const modelsHelp = `Shows and changes the models that the command line uses.

  npm run models -- list
  npm run models -- add ADDRESS|PATH [--revision NAME]
  npm run models -- add --lora ADDRESS|FILE
  npm run models -- add --language-model ADDRESS|FILE
  npm run models -- download ID [--precision int8|int4] [--adapter NAME|none]… [--yes]
  npm run models -- verify ID
  npm run models -- delete ID
  npm run models -- decoders ID VIDEO [--backend webgpu|wasm]
  npm run models -- terms

  list        models and LoRAs, what is here of them, and the room there is
  add         lists a model of the hub (owner/name, owner/name/file.gguf, a link); a folder or file
              of this machine is converted at once; with --lora it is an adapter, with
              --language-model a GGUF file for the prompt optimiser
  download    fetches a model, or goes on where it stopped (Ctrl-C pauses); of a model that is ready,
              the safety checker where it is missing
  verify      compares every stored byte with its checksum
  delete      deletes what is stored of a model or LoRA; an added model leaves the list
  decoders    encodes the last clip of an MP4 and decodes it with each decoder that is here: seconds,
              and PSNR against the full decoder
  terms       prints the terms of use

  --adapter   an adapter by its name, several times for several. Ultra-fast videos are made with
              FastWan (the default) or LongLive-Plug; "LongLive-Plug guidance" takes the place of
              guidance in standard videos: half the time. "light" is the light decoder, which is
              experimental. Or none
  --no-safety-checker   does not fetch the safety checker
  --hub URL   where models are fetched from; remembered
  --yes       agrees to the download beforehand
  --accept-terms   accepts the terms of use, which the first download needs
  --help      this text

Environment: KINORA_HOME is the folder for models (default .kinora in the project);
KINORA_ACCEPT_TERMS is the version of the terms of use that you accept; HF_TOKEN is a token of your
account, for repositories whose makers ask you to accept their terms. It is sent to the hub only.
`;

const optionTypes = {
  ...downloadTypes,
  backend: { type: 'string' },
  adapter: { type: 'string', multiple: true },
  revision: { type: 'string' },
  lora: { type: 'boolean' },
  'language-model': { type: 'boolean' },
  'no-safety-checker': { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

type OptionName = keyof typeof optionTypes;

const allowed = {
  list: ['hub'],
  add: ['hub', 'revision', 'lora', 'language-model'],
  download: ['hub', 'precision', 'adapter', 'yes', 'accept-terms', 'no-safety-checker'],
  verify: [],
  delete: [],
  decoders: ['backend'],
  terms: [],
} as const satisfies Record<string, readonly OptionName[]>;
type CommandName = keyof typeof allowed;

/**
 * Reads the command line.
 *
 * @param args without node and script
 * @returns `help` when that is all that is wanted
 * @throws KinoraError `REQUEST_INVALID` or `PARAMETER_INVALID`
 */
export function parseModelsOptions(args: readonly string[]) {
  const { values, positionals } = readArguments(args, optionTypes, refused);
  if (values.help) return 'help';
  const [word = 'list', subject, ...rest] = positionals;
  const command = isCommand(word) ? word : undefined;
  if (!command) throw refused(`There is no command "${word}".`);
  for (const name of Object.keys(values) as OptionName[]) {
    const names: readonly OptionName[] = allowed[command];
    if (!names.includes(name)) throw refused(`${command} takes no --${name}.`);
  }
  const [video] = command === 'decoders' ? rest.splice(0, 1) : [];
  refuseMore('models', command === 'list' || command === 'terms' ? positionals.slice(1) : rest);
  return { action: action(command, subject, values, video), hub: values.hub };
}

/** The task of `npm run models`. */
export type ModelsAction = ReturnType<typeof action>;

function action(
  command: CommandName,
  subject: string | undefined,
  values: Arguments<typeof optionTypes>['values'],
  video: string | undefined,
) {
  if (command === 'list' || command === 'terms') return { command };
  if (!subject) {
    const what = command === 'add' ? 'an address, or a path of this machine' : 'the id of a model';
    throw refused(`${command} needs ${what}.`);
  }
  const { revision, lora, 'language-model': languageModel } = values;
  if (command === 'add') {
    if (lora && languageModel) throw refused('An adapter is no language model: name one of both.');
    const kind = lora ? 'lora' : languageModel ? 'language_model' : 'model';
    return { command, source: subject, revision, kind };
  }
  if (command === 'decoders') {
    if (!video) throw refused('decoders needs a video.');
    const backend = oneOf('--backend', backends, values.backend ?? 'webgpu');
    return { command, id: subject, video, backend };
  }
  if (command !== 'download') return { command, id: subject };
  const { hub: _, ...download } = readDownload(values);
  const safetyChecker = !values['no-safety-checker'];
  return { command, id: subject, ...download, adapters: values.adapter, safetyChecker };
}

const refused = (sentence: string) => usageError('models', sentence);

function isCommand(word: string): word is CommandName {
  return Object.hasOwn(allowed, word);
}
