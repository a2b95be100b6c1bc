import { existsSync } from 'node:fs';
import path from 'node:path';
import type { z } from 'zod';
import { type Control, processControlToken, readControl } from '../../relay/access/control';
import { type Config, readConfig } from '../../relay/config';
import { type ErrorCode, toKinoraError } from '../contract';
import { ApiError, type Endpoint, endpoints, messageOf, type OperationId } from '../contract/v3';
import { checkResponse } from '../worker/transport-error';
import { type Arguments, type OptionTypes, readArguments } from './arguments';

/** The output of a command, and the source of its settings. */
export interface CommandWorld {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Takes the result. */
  readonly out: (text: string) => void;
  /** Takes words about it. */
  readonly say: (text: string) => void;
}

/** The command line cannot be carried out; the message is a sentence for the person who typed it. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  constructor(
    message: string,
    readonly code: ErrorCode = 'PARAMETER_INVALID',
  ) {
    super(message);
  }
}

/** A command that reads or changes what the relay keeps, such as `npm run keys`. */
export interface RelayCommand<Options extends OptionTypes> {
  /** As in `npm run {name}`. */
  readonly name: string;
  readonly help: string;
  readonly options: Options;
  /** @returns what was asked for, to be done @throws UsageError */
  readonly read: (
    values: Arguments<Options>['values'],
    positionals: readonly string[],
    environment: CommandWorld['environment'],
  ) => (client: Client, world: CommandWorld) => Promise<void>;
}

/**
 * Runs a command on the running server or, without one, on the database.
 *
 * @param args without node and script
 * @returns the exit code: 0, 1 when it failed, 2 when it was not understood
 */
export async function runRelayCommand<Options extends OptionTypes>(
  command: RelayCommand<Options>,
  args: readonly string[],
  world: CommandWorld,
): Promise<number> {
  const { name, help, options, read } = command;
  try {
    const { values, positionals } = readArguments(
      args,
      options,
      (sentence) => new UsageError(sentence),
    );
    if (args.length === 0 || ('help' in values && values.help)) {
      world.out(help);
      return 0;
    }
    const work = read(values, positionals, world.environment);
    const config = readConfig(world.environment);
    const client = await openClient(config);
    try {
      const { newFolder } = client;
      if (newFolder !== null) {
        world.say(
          `There was no database yet: an empty one was made in ${newFolder} (KINORA_DATA).\n`,
        );
      }
      await work(client, world);
    } finally {
      await client.close();
    }
    return 0;
  } catch (thrown) {
    if (thrown instanceof UsageError) {
      world.say(
        `${thrown.code}: ${thrown.message}\nRun \`npm run ${name} -- --help\` for the options.\n`,
      );
      return 2;
    }
    const { code } = thrown instanceof ApiError ? thrown : toKinoraError(thrown);
    world.say(`${code}: ${messageOf(thrown)}\n`);
    return 1;
  }
}

/** Lines in columns of equal width. */
export function table(lines: readonly (readonly string[])[]): string {
  const widths = lines[0]?.map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  const padded = lines.map((line) =>
    line.map((cell, column) => cell.padEnd(widths?.[column] ?? 0)),
  );
  return `${padded.map((line) => line.join('  ').trimEnd()).join('\n')}\n`;
}

/** Day and minute of an instant (ISO 8601, UTC). */
export function minuteOf(instant: string): string {
  return instant.slice(0, 16).replace('T', ' ');
}

/** Operations whose answer is the JSON envelope. */
type JsonOperation = {
  [Op in OperationId]: (typeof endpoints)[Op] extends { readonly answer: z.ZodType } ? Op : never;
}[OperationId];
type DataOf<Op extends JsonOperation> = z.output<(typeof endpoints)[Op]['answer']>['data'];

interface CallInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/**
 * Calls operations of this machine's Kinora as its first owner, with every scope: of the running server where there is
 * one, else of a relay that is opened in this process without its server and its background work.
 *
 * @throws Error with one sentence when the database belongs to another process
 */
async function openClient(config: Config) {
  const control = await readControl(config);
  if (control && (await answers(control))) {
    const { origin, token, publicUrl } = control;
    const send = (request: Request) => fetch(request, { signal: AbortSignal.timeout(30_000) });
    const call = caller(origin, token, send);
    return { serverRuns: true, publicUrl, newFolder: null, call, close: async () => {} };
  }
  const isNew =
    config.DATABASE_URL === undefined && !existsSync(path.join(config.KINORA_DATA, 'db'));
  // Loaded late: help, refusals and calls of a server need no database.
  const [{ openRelay }, { answer }, { pino }] = await Promise.all([
    import('../../relay/open'),
    import('../../relay/http/answer'),
    import('pino'),
  ]);
  const relay = await openRelay(config, pino({ level: 'silent' }));
  return {
    /** Whether a server answers. Else the handlers run in this process, on the database itself. */
    serverRuns: false,
    publicUrl: relay.files.links.publicUrl,
    /** The data folder, where this client has made its database; null where there was one. */
    newFolder: isNew ? config.KINORA_DATA : null,
    call: caller('http://localhost', processControlToken(), (request) => answer(relay, request)),
    close: () => relay.stop(),
  };
}

type Client = Awaited<ReturnType<typeof openClient>>;

/** The process of the control file may be dead, and its number another's. */
async function answers({ origin }: Control): Promise<boolean> {
  try {
    await fetch(`${origin}/healthz`, { signal: AbortSignal.timeout(5000) });
    return true;
  } catch (error) {
    // Anything but a refused connection may be a server that is busy.
    const cause = error instanceof Error ? error.cause : undefined;
    return !(cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED');
  }
}

/** @returns a function that throws as {@link checkResponse} */
function caller(origin: string, token: string, send: (request: Request) => Promise<Response>) {
  return async <Op extends JsonOperation>(
    operation: Op,
    input: CallInput = {},
  ): Promise<DataOf<Op>> => {
    const endpoint: Endpoint & { readonly answer: z.ZodType } = endpoints[operation];
    const { params = {}, query = {}, body } = input;
    const filled = endpoint.path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = params[name];
      if (value === undefined) throw new TypeError(`${operation} needs the parameter ${name}.`);
      return encodeURIComponent(value);
    });
    const search = new URLSearchParams(query).toString();
    const response = await send(
      new Request(`${origin}${filled}${search && `?${search}`}`, {
        method: endpoint.method,
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    );
    await checkResponse(response);
    return (endpoint.answer.parse(await response.json()) as { data: DataOf<Op> }).data;
  };
}
