import { parseArgs } from 'node:util';
import { endpoints } from '../../lib/contract/v3';
import type { DeliveryRow } from '../store/schema';

/** What `npm run webhooks` was asked for. */
export type WebhooksCommand =
  | { readonly do: 'help' }
  | {
      readonly do: 'list';
      readonly page: number;
      readonly status: DeliveryRow['status'] | undefined;
    }
  | { readonly do: 'replay'; readonly id: string };

/** What `--help` prints. */
export const helpText = `Webhooks of this Kinora: what was delivered, what is due, what was given up.

  npm run webhooks -- list [--status due|delivered|exhausted] [--page N]
  npm run webhooks -- replay ID

  list        shows 50 at a time, newest first
  replay ID   sends a webhook again, with a new set of attempts; ID is what "list" shows

Environment: KINORA_DATA and DATABASE_URL as for the server. A server that runs is asked to do it;
without one the database is opened.
`;

/** What was typed cannot be carried out; the message is a sentence for whoever typed it. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/**
 * Reads the command line.
 *
 * @param args without node and script
 * @throws UsageError
 */
export function parseWebhooksCommand(args: readonly string[]): WebhooksCommand {
  const { values, positionals } = readArguments(args);
  const [command, id, ...more] = positionals;
  if (values.help || (command === undefined && args.length === 0)) return { do: 'help' };
  if (command === 'list') {
    if (id !== undefined) throw new UsageError('list takes nothing but options.');
    const parsed = endpoints.deliveries.query.safeParse(values);
    if (parsed.success) return { do: 'list', page: parsed.data.page, status: parsed.data.status };
    throw new UsageError(
      parsed.error.issues[0]?.path[0] === 'page'
        ? '--page must be a whole number from 1.'
        : '--status must be due, delivered or exhausted.',
    );
  }
  if (command !== 'replay') throw new UsageError(`There is no command "${command ?? ''}".`);
  const [option] = Object.keys(values);
  if (option !== undefined) throw new UsageError(`--${option} is an option of "list" only.`);
  if (more.length > 0) throw new UsageError('replay takes one id.');
  const parsed = endpoints.replay.params.safeParse({ id });
  if (parsed.success) return { do: 'replay', id: parsed.data.id };
  throw new UsageError('replay needs the id of a webhook, msg_…; "list" shows them.');
}

function readArguments(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        status: { type: 'string' },
        page: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
      strict: true,
      allowPositionals: true,
    });
  } catch (error) {
    // Node explains at length how to escape; its first sentence says what is wrong.
    const [sentence = ''] = (error as Error).message.split(/\. |\n/);
    throw new UsageError(`${sentence.replace(/\.$/, '')}.`);
  }
}
