import { type DeliveryRecord, toldOf } from '../../lib/contract/v3';
import { readConfig } from '../config';
import { withoutValues } from '../store';
import { openDoor } from './cli-doors';
import { helpText, parseWebhooksCommand, UsageError, type WebhooksCommand } from './cli-options';

/** Where a command writes, and what it reads its settings from. */
export interface CommandWorld {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly out: (text: string) => void;
  readonly say: (text: string) => void;
}

/**
 * `npm run webhooks`: what is asked for goes to `out`, words about it are said.
 *
 * @param args without node and script
 * @returns the exit code: 0, 1 when it could not be done, 2 when it was not understood
 */
export async function runWebhooks(args: readonly string[], world: CommandWorld): Promise<number> {
  try {
    const command = parseWebhooksCommand(args);
    if (command.do === 'help') world.out(helpText);
    else await carryOut(command, world);
    return 0;
  } catch (thrown) {
    if (thrown instanceof UsageError) {
      world.say(`${thrown.message}\nRun \`npm run webhooks -- --help\` for the options.\n`);
      return 2;
    }
    world.say(`${toldOf(withoutValues(thrown))}\n`);
    return 1;
  }
}

async function carryOut(
  command: Exclude<WebhooksCommand, { do: 'help' }>,
  { environment, out, say }: CommandWorld,
): Promise<void> {
  const door = await openDoor(readConfig(environment));
  try {
    if (command.do === 'list') {
      const records = await door.list(command);
      out(table(records));
      if (records.length === 0) say('There are no such webhooks.\n');
      return;
    }
    const record = await door.replay(command.id);
    out(table([record]));
    say(
      door.running
        ? `${record.id} is being sent again.\n`
        : `${record.id} is sent again when a server runs.\n`,
    );
  } finally {
    await door.close();
  }
}

/** One line per delivery, in columns. */
function table(records: readonly DeliveryRecord[]): string {
  const head = ['ID', 'STATUS', 'ATTEMPTS', 'CREATED', 'NEXT', 'LAST', 'RECEIVER', 'ANSWER'];
  const rows = records.map((record) => [
    record.id,
    record.status,
    String(record.attempts),
    minute(record.created_at),
    record.next_at === null ? '-' : minute(record.next_at),
    String(record.last_status ?? '-'),
    printable(receiver(record.url), 60),
    printable(record.last_answer, 60),
  ]);
  const lines = [head, ...rows];
  const widths = head.map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  const padded = lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)));
  return `${padded.map((line) => line.join('  ').trimEnd()).join('\n')}\n`;
}

function minute(instant: string): string {
  return instant.slice(0, 16).replace('T', ' ');
}

/** The address without its query, which may hold what only the receiver should see. */
function receiver(url: string): string {
  const { host, pathname } = new URL(url);
  return host + pathname;
}

/** On one line, and nothing that a terminal would obey: a receiver wrote it. */
function printable(text: string, length: number): string {
  const line = text.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}
