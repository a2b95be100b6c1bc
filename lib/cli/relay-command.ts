import type { ParseArgsConfig } from 'node:util';
import { readConfig } from '../../relay/config';
import { type ErrorCode, toKinoraError } from '../contract';
import { ApiError, messageOf } from '../contract/v3';
import { type Arguments, readArguments } from './arguments';
import { type Client, openClient } from './relay-client';

/** Where a command writes, and what it reads its settings from. */
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
