import { backends, demonstrationModel, isLoopback, KinoraError, kernelSettings } from '../contract';
import {
  downloadTypes,
  readArguments,
  readDevice,
  readDownload,
  refuseMore,
  usageError,
} from './arguments';

/** The environment's name of the token: what is in there is not seen in a list of processes. */
export const tokenVariable = 'KINORA_WORKER_TOKEN';

/** The text of `--help`. */
export const workerHelp = `Serves jobs of a Kinora server with this machine's GPU, in a browser that nobody looks at.

  npm run worker -- --server URL --token TOKEN [options]

  --server URL        the server: https, or http on this machine
  --token TOKEN       a worker token; better by the environment, ${tokenVariable}, where no list
                      of processes shows it
  --model ID          mini (the default), wan2.2-ti2v-5b, or one that was added with
                      \`npm run models\`; what is missing is downloaded after a question
  --precision NAME    int8 or int4: what to download (default: what the model proposes)
  --backend NAME      ${backends.join(' or ')} (default webgpu; wasm where there is no GPU)
  --kernels NAME      ${kernelSettings.join(', ')}: what computes on the GPU (default exact)
  --name NAME         what this worker is called (default: the name of this machine)
  --hub URL           where models and LoRAs are fetched from; remembered
  --yes               agrees to the download beforehand
  --accept-terms      accepts the terms of use, which serving needs once
  --help              this text

Ctrl-C hands the current job back and ends; a second one ends at once. Whoever runs a worker can see
the prompts and images of its jobs.

Environment: KINORA_BROWSER is the browser to use; KINORA_GPU=software leaves the GPU alone,
KINORA_GPU=hardware ends where there is none; KINORA_HOME is the folder for models (default .kinora in the project).
`;

const optionTypes = {
  server: { type: 'string' },
  token: { type: 'string' },
  model: { type: 'string' },
  backend: { type: 'string' },
  kernels: { type: 'string' },
  name: { type: 'string' },
  ...downloadTypes,
  help: { type: 'boolean', short: 'h' },
} as const;

/**
 * Reads the command line.
 *
 * @param args without node and script
 * @param environment for the token
 * @param machine the worker's name where none is given
 * @returns `help` when that is all that is wanted
 * @throws KinoraError `REQUEST_INVALID` or `PARAMETER_INVALID`
 */
export function parseWorkerOptions(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  machine: string,
) {
  const { values, positionals } = readArguments(args, optionTypes, refused);
  if (values.help) return 'help';
  refuseMore('worker', positionals);
  const token = values.token ?? environment[tokenVariable] ?? '';
  if (values.server === undefined) throw refused('--server is missing.');
  if (token.trim() === '')
    throw refused(`There is no worker token: give --token or ${tokenVariable}.`);
  return {
    server: readServer(values.server),
    token: token.trim(),
    model: values.model ?? demonstrationModel,
    device: readDevice(values),
    name: (values.name?.trim() || machine).slice(0, 100),
    ...readDownload(values),
  };
}

/** Options of `npm run worker`; `server` is the origin of the server. */
export type WorkerOptions = Exclude<ReturnType<typeof parseWorkerOptions>, 'help'>;

/** The origin of a server that a browser trusts with WebGPU and private files. */
function readServer(text: string): string {
  if (!URL.canParse(text)) throw refused(`--server ${text} is no address such as https://host.`);
  const { protocol, origin, pathname, username, password } = new URL(text);
  if (protocol !== 'https:' && protocol !== 'http:') {
    throw refused(`--server ${text} is no address such as https://host.`);
  }
  if (username !== '' || password !== '') throw refused('--server takes no password.');
  if (pathname !== '/') throw refused('--server takes no path: a server is https://host.');
  if (protocol === 'http:' && !isLoopback(origin)) {
    throw new KinoraError(
      'PARAMETER_INVALID',
      `${origin} is not encrypted, and browsers have WebGPU in secure contexts only.`,
      { remedy: 'Use the https address of the server, or run the worker on its machine.' },
    );
  }
  return origin;
}

function refused(sentence: string): KinoraError {
  return usageError('worker', sentence);
}
