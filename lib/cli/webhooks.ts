import { type DeliveryRecord, endpoints } from '../contract/v3';
import { minuteOf, type RelayCommand, table, UsageError } from './relay-command';

const options = {
  status: { type: 'string' },
  page: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** `npm run webhooks` */
export const webhooksCommand: RelayCommand<typeof options> = {
  name: 'webhooks',
  help: `Webhooks of this Kinora: what was delivered, what is due, what was given up.

  npm run webhooks -- list [--status due|delivered|exhausted] [--page N]
  npm run webhooks -- replay ID

  list        shows 50 at a time, newest first
  replay ID   sends a webhook again, with a new set of attempts; ID is what "list" shows

Environment: KINORA_DATA and DATABASE_URL as for the server. A server that runs is asked to do it;
without one the database is opened.
`,
  options,

  read(values, [command, id, ...more]) {
    if (command === 'list') {
      if (id !== undefined) throw new UsageError('list takes nothing but options.');
      const parsed = endpoints.deliveries.query.safeParse({ ...values, page_size: 50 });
      if (!parsed.success) {
        throw new UsageError(
          parsed.error.issues[0]?.path[0] === 'page'
            ? '--page must be a whole number from 1.'
            : '--status must be due, delivered or exhausted.',
        );
      }
      const { page, page_size, status } = parsed.data;
      const paging = { page: String(page), page_size: String(page_size) };
      const query = status === undefined ? paging : { ...paging, status };
      return async (client, { out, say }) => {
        const { items } = await client.call('deliveries', { query });
        out(tableOf(items));
        if (items.length === 0) say('There are no such webhooks.\n');
      };
    }
    if (command !== 'replay') throw new UsageError(`There is no command "${command ?? ''}".`);
    const [option] = Object.keys(values);
    if (option !== undefined) throw new UsageError(`--${option} is an option of "list" only.`);
    if (more.length > 0) throw new UsageError('replay takes one id.');
    const { data: params } = endpoints.replay.params.safeParse({ id });
    if (!params)
      throw new UsageError('replay needs the id of a webhook, msg_…; "list" shows them.');
    return async (client, { out, say }) => {
      const record = await client.call('replay', { params });
      out(tableOf([record]));
      const when = client.serverRuns ? 'is being sent again' : 'is sent again when a server runs';
      say(`${record.id} ${when}.\n`);
    };
  },
};

function tableOf(records: readonly DeliveryRecord[]): string {
  const rows = records.map((record) => [
    record.id,
    record.status,
    String(record.attempts),
    minuteOf(record.created_at),
    record.next_at === null ? '-' : minuteOf(record.next_at),
    String(record.last_status ?? '-'),
    printable(receiverOf(record.url)),
    printable(record.last_answer),
  ]);
  const head = ['ID', 'STATUS', 'ATTEMPTS', 'CREATED', 'NEXT', 'LAST', 'RECEIVER', 'ANSWER'];
  return table([head, ...rows]);
}

/** The address without its query, which may hold a secret of the receiver. */
function receiverOf(url: string): string {
  const { host, pathname } = new URL(url);
  return host + pathname;
}

/** One line of at most 60 characters, without control characters: the receiver wrote it. */
function printable(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}
