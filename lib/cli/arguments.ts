import { type ParseArgsConfig, parseArgs } from 'node:util';
import {
  backends,
  type DeviceOptions,
  KinoraError,
  kernelSettings,
  optionDefinitions,
  optionNames,
  type Precision,
  precisions,
  type RunOptions,
  toKinoraError,
  usualBackend,
} from '../contract';

/** The options of a command, as `parseArgs` takes them. */
export type OptionTypes = NonNullable<ParseArgsConfig['options']>;

/** Options and other words of a command line. */
export type Arguments<T extends OptionTypes> = ReturnType<
  typeof parseArgs<{ options: T; strict: true; allowPositionals: true }>
>;

/**
 * Reads a command line.
 *
 * @param args without node and script
 * @param refuse makes the error from a sentence that says what is wrong
 * @throws what `refuse` returns, for an unknown option or a missing value
 */
export function readArguments<T extends OptionTypes>(
  args: readonly string[],
  options: T,
  refuse: (sentence: string) => Error,
): Arguments<T> {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: true });
  } catch (error) {
    // Node explains at length how to escape; its first sentence says what is wrong.
    const [sentence = ''] = (error as Error).message.split(/\. |\n/);
    throw refuse(`${sentence.replace(/\.$/, '')}.`);
  }
}

/** The error of a command line that cannot be carried out. @param command as in `npm run {command}` */
export function usageError(command: string, sentence: string): KinoraError {
  return new KinoraError('REQUEST_INVALID', sentence, {
    remedy: `Run \`npm run ${command} -- --help\` for the options.`,
  });
}

/** @throws KinoraError `REQUEST_INVALID` where words are left that a command does not take */
export function refuseMore(command: string, [unexpected]: readonly string[]): void {
  if (unexpected !== undefined) throw usageError(command, `Unexpected argument '${unexpected}'.`);
}

/**
 * Runs a command that has nothing to clean up: reads its options, prints its help or its error.
 *
 * @param command as in `npm run {command}`
 * @param work gives the exit code
 */
export async function runCommand<T extends OptionTypes>(
  command: string,
  help: string,
  options: T,
  work: (args: Arguments<T>) => Promise<number>,
): Promise<number> {
  try {
    const refuse = (sentence: string) => usageError(command, sentence);
    const args = readArguments(process.argv.slice(2), options, refuse);
    if (!('help' in args.values && args.values.help)) return await work(args);
    process.stdout.write(help);
    return 0;
  } catch (thrown) {
    return printError(thrown);
  }
}

/** Prints what has failed, and what can be done. @returns the exit code */
export function printError(thrown: unknown): number {
  const error = toKinoraError(thrown);
  process.stderr.write(`${error.code}: ${error.message}\n${error.remedy}\n`);
  return 1;
}

/** The backend and kernels that compute; without a backend, WebGPU where there is a GPU, else the CPU. */
export type AskedDevice = Partial<DeviceOptions>;

/** Reads `--backend`, `--kernels` and `--memory`. @throws KinoraError `PARAMETER_INVALID` */
export function readDevice(values: {
  readonly backend?: string;
  readonly kernels?: string;
  readonly memory?: string;
}): AskedDevice {
  const backend = oneOf('--backend', backends, values.backend);
  return {
    ...(backend && { backend }),
    kernels: oneOf('--kernels', kernelSettings, values.kernels),
    memoryBudget: readGibibytes('--memory', values.memory),
  };
}

/** The device of a run on this machine. @param software whether it has no GPU */
export function deviceOf(requested: AskedDevice, software: boolean): DeviceOptions {
  return { backend: usualBackend(software), ...requested };
}

/** Options of commands that may have to download a model first. */
export const downloadTypes = {
  precision: { type: 'string' },
  hub: { type: 'string' },
  yes: { type: 'boolean', short: 'y' },
  'accept-terms': { type: 'boolean' },
} as const;

/** Reads them. @throws KinoraError `PARAMETER_INVALID` */
export function readDownload(values: {
  readonly precision?: string;
  readonly hub?: string;
  readonly yes?: boolean;
  readonly 'accept-terms'?: boolean;
}) {
  const { hub, yes = false, 'accept-terms': acceptTerms = false } = values;
  return { precision: readPrecision(values.precision), hub, yes, acceptTerms };
}

/** @throws KinoraError `PARAMETER_INVALID` */
export function readPrecision(text: string | undefined): Precision | undefined {
  return oneOf('--precision', precisions, text);
}

/**
 * One of the words that an option takes; undefined where it was not given.
 *
 * @throws KinoraError `PARAMETER_INVALID` naming them
 */
export function oneOf<T extends string, Text extends string | undefined>(
  option: string,
  words: readonly T[],
  text: Text,
): T | Extract<Text, undefined> {
  if (text === undefined) return text as Extract<Text, undefined>;
  const word = words.find((one) => one === String(text));
  if (word !== undefined) return word;
  throw new KinoraError('PARAMETER_INVALID', `${option} must be one of ${words.join(', ')}.`);
}

/** A number as it was typed; NaN for what is none, undefined where nothing was given. */
export function readNumber(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return /^[-+]?(\d+\.?\d*|\.\d+)$/.test(text.trim()) ? Number(text) : Number.NaN;
}

/** The types of the options of a run for {@link readArguments}. */
export const runOptionTypes = Object.fromEntries(
  Object.values(optionDefinitions).map(({ option, values, range }) => {
    return [option, { type: values || range ? 'string' : 'boolean' }] as const;
  }),
);

/** Reads them; what was not given is absent, or as commands start. @throws KinoraError `PARAMETER_INVALID` */
export function readRunOptions(typed: Readonly<Record<string, unknown>>): RunOptions {
  return Object.fromEntries(
    optionNames.map((name) => {
      const { option, values, range, initial } = optionDefinitions[name];
      const value = typed[option];
      if (value === undefined) return [name, initial];
      if (typeof value === 'boolean') return [name, value !== option.startsWith('no-')];
      const text = String(value);
      if (range) return [name, readInRange(`--${option}`, text, range)];
      return [name, oneOf(`--${option}`, values ?? [], text)];
    }),
  );
}

/** @throws KinoraError `PARAMETER_INVALID` */
function readInRange(
  option: string,
  text: string,
  { min, max }: { readonly min: number; readonly max: number },
): number {
  const number = readNumber(text);
  if (number !== undefined && number >= min && number <= max) return number;
  const sentence = `${option} must be a number from ${min} to ${max}.`;
  throw new KinoraError('PARAMETER_INVALID', sentence);
}

/**
 * A number of GiB in bytes; undefined where it was not given.
 *
 * @throws KinoraError `PARAMETER_INVALID`
 */
export function readGibibytes(option: string, text: string | undefined): number | undefined {
  const gibibytes = readNumber(text);
  if (gibibytes === undefined) return undefined;
  if (gibibytes > 0) return Math.floor(gibibytes * 2 ** 30);
  throw new KinoraError('PARAMETER_INVALID', `${option} must be a number of GiB above 0.`);
}
