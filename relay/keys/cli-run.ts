import { type KeyRecord, scopes, toldOf } from '../../lib/contract/v3';
import { readConfig } from '../config';
import { withoutValues } from '../store/errors';
import { helpText, type KeysCommand, parseKeysCommand, UsageError } from './cli-options';

/** Where a command writes, and what it reads its settings from. */
export interface CommandWorld {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly out: (text: string) => void;
  readonly say: (text: string) => void;
}

/**
 * `npm run keys`: what is asked for goes to `out`, words about it are said.
 *
 * @param args without node and script
 * @returns the exit code: 0, 1 when it could not be done, 2 when it was not understood
 */
export async function runKeys(args: readonly string[], world: CommandWorld): Promise<number> {
  try {
    const command = parseKeysCommand(args);
    if (command.do === 'help') world.out(helpText);
    else await carryOut(command, world);
    return 0;
  } catch (thrown) {
    if (thrown instanceof UsageError) {
      world.say(`${thrown.message}\nRun \`npm run keys -- --help\` for the options.\n`);
      return 2;
    }
    world.say(`${toldOf(withoutValues(thrown))}\n`);
    return 1;
  }
}

async function carryOut(
  command: Exclude<KeysCommand, { do: 'help' }>,
  { environment, out, say }: CommandWorld,
): Promise<void> {
  // Late: help and refusals need no database.
  const { openDoor } = await import('./cli-doors');
  const door = await openDoor(readConfig(environment));
  try {
    if (door.madeIn !== null) {
      say(`There was no database yet: an empty one was made in ${door.madeIn} (KINORA_DATA).\n`);
    }
    if (command.do === 'list') {
      out(table(await door.list()));
    } else if (command.do === 'create') {
      const { key, record } = await door.create(command.key);
      out(`${key}\n`);
      const what = record.kind === 'worker' ? 'Worker token' : 'API key';
      say(`${what} "${record.name}" of ${record.owner}. It is shown only now; keep it safe.\n`);
    } else if (command.do === 'revoke') {
      const revoked = await door.revoke(command.id);
      if (revoked === null) {
        throw new Error(
          `There is no key with the id "${command.id}". An id is the part between the underscores; \`npm run keys -- list\` shows them.`,
        );
      }
      const { hint, name } = revoked;
      say(`${hint} "${name}" is revoked.\n`);
    } else {
      const input = { kind: 'sign-in', name: 'npm run keys', shared: false } as const;
      const { key } = await door.create(input);
      out(`${door.publicUrl}/keys#sign-in=${key}\n`);
      const start = door.running ? '' : ' The server does not run: start it with `npm start`.';
      say(`The link works once, for an hour.${start}\n`);
    }
  } finally {
    await door.close();
  }
}

/** One line per key, in columns. */
function table(records: readonly KeyRecord[]): string {
  const head = ['ID', 'KIND', 'OWNER', 'NAME', 'SCOPES', 'CREATED', 'LAST USED', 'STATE'];
  const rows = records.map((record) => [
    record.id,
    record.kind + (record.shared ? ', shared' : ''),
    record.owner,
    record.name,
    record.kind === 'api' ? scopesOf(record) : '-',
    record.kind === 'sign-in' ? minuteOf(record.created_at) : record.created_at.slice(0, 10),
    record.last_used_at === null ? 'never' : minuteOf(record.last_used_at),
    stateOf(record),
  ]);
  const lines = [head, ...rows];
  const widths = head.map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  const padded = lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)));
  return `${padded.map((line) => line.join('  ').trimEnd()).join('\n')}\n`;
}

/** Day and minute of an instant, in UTC like every other of the table. */
function minuteOf(instant: string): string {
  return `${instant.slice(0, 16).replace('T', ' ')} UTC`;
}

function scopesOf({ scopes: held }: KeyRecord): string {
  if (held.length === scopes.length) return 'all';
  return held.join(',') || 'none';
}

function stateOf({ kind, revoked_at, expires_at }: KeyRecord): string {
  if (revoked_at !== null) return `revoked ${revoked_at.slice(0, 10)}`;
  if (expires_at === null) return 'valid';
  // A sign-in link stands for an hour: its day alone says nothing.
  const day = kind === 'sign-in' ? minuteOf(expires_at) : expires_at.slice(0, 10);
  return Date.parse(expires_at) > Date.now() ? `valid until ${day}` : `ended ${day}`;
}
