import { existsSync } from 'node:fs';
import path from 'node:path';
import type { ParseArgsConfig } from 'node:util';
import type { z } from 'zod';
import { type Control, processControlToken, readControl } from '../../relay/access/control';
import { type Config, readConfig } from '../../relay/config';
import { type ErrorCode, toKinoraError } from '../contract';
import { ApiError, type Endpoint, endpoints, messageOf, type OperationId } from '../contract/v3';
import { checkResponse } from '../worker/transport-error';
import { type Arguments, readArguments } from './arguments';

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

type OptionTypes = NonNullable<ParseArgsConfig['options']>;

/** A command that reads or changes what the relay keeps, such as `npm run keys`. */
export interface RelayCommand<Options extends OptionTypes, Order> {
  /** As in `npm run {name}`. */
  readonly name: string;
  readonly help: string;
  readonly options: Options;
  /** @throws UsageError */
  readonly parse: (
    values: Values<Options>,
    positionals: readonly string[],
    environment: CommandWorld['environment'],
  ) => Order;
  readonly run: (order: Order, client: Client, world: CommandWorld) => Promise<void>;
}

type Values<Options extends OptionTypes> = Arguments<Options>['values'];

/**
 * Runs a command on the running server or, without one, on the database.
 *
 * @param args without node and script
 * @returns the exit code: 0, 1 when it failed, 2 when it was not understood
 */
export async function runRelayCommand<Options extends OptionTypes, Order>(
  command: RelayCommand<Options, Order>,
  args: readonly string[],
  world: CommandWorld,
): Promise<number> {
  const { name, help, options, parse, run } = command;
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
    const order = parse(values, positionals, world.environment);
    const config = readConfig(world.environment);
    const client = await openClient(config);
    try {
      const { newFolder } = client;
      if (newFolder !== null) {
        world.say(
          `There was no database yet: an empty one was made in ${newFolder} (KINORA_DATA).\n`,
        );
      }
      await run(order, client, world);
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
    world.say(`${codeOf(thrown)}: ${messageOf(thrown)}\n`);
    return 1;
  }
}

/** The stable code of an error of the server, or of one of ours. */
function codeOf(thrown: unknown): string {
  return thrown instanceof ApiError ? thrown.code : toKinoraError(thrown).code;
}

/** Lines in columns of equal width. */
export function table(lines: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const line of lines) {
    for (const [column, cell] of line.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, cell.length);
    }
  }
  const padded = lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)));
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

export interface CallInput {
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
