import { z } from 'zod';
import { firstOwner } from '../../relay/access/caller';
import { termsVersion } from '../contract';
import { ApiError, createKeySchema, type KeyRecord, scopes } from '../contract/v3';
import { minuteOf, type RelayCommand, table, UsageError } from './relay-command';

const options = {
  name: { type: 'string' },
  kind: { type: 'string' },
  owner: { type: 'string' },
  scopes: { type: 'string' },
  shared: { type: 'boolean' },
  'expires-in-days': { type: 'string' },
  'accept-terms': { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** `npm run keys` */
export const keysCommand: RelayCommand<typeof options> = {
  name: 'keys',
  help: `API keys, worker tokens and sign-in links of this Kinora.

  npm run keys -- create --name NAME [options]
  npm run keys -- list
  npm run keys -- revoke ID
  npm run keys -- sign-in

  create                  makes a key and prints it, this once
    --name NAME           what the key is for
    --kind api|worker     a key for the API (default) or a token for a worker
    --owner NAME          whose it is (default ${firstOwner}); a new name makes a new owner
    --scopes A,B          what an API key may do: ${scopes.slice(0, 3).join(', ')},
                          ${scopes.slice(3).join(', ')} (default: all but admin)
    --shared              API key: other owners' shared workers may take its jobs, and their
                          operators see its prompts and images; worker: it takes such jobs
    --expires-in-days D   when it ends (default never)
    --accept-terms        accepts the terms of use for it; KINORA_ACCEPT_TERMS=${termsVersion} does too
  list                    shows all keys, and never the secret part
  revoke ID               ends a key at once; ID is the part between the underscores
  sign-in                 prints a link to the keys page that works once, for an hour

Environment: KINORA_DATA and DATABASE_URL as for the server. A server that runs is asked to do it;
without one the database is opened.
`,
  options,

  read(values, [command, id, ...more], environment) {
    if (command === 'create') {
      if (id !== undefined) throw new UsageError(`"${id}" is too much; the name goes with --name.`);
      const body = readKey(values, environment.KINORA_ACCEPT_TERMS);
      return async (client, { out, say }) => {
        const { key, record } = await client.call('createKey', { body });
        out(`${key}\n`);
        const what = record.kind === 'worker' ? 'Worker token' : 'API key';
        say(`${what} "${record.name}" of ${record.owner}. It is shown only now; keep it safe.\n`);
      };
    }
    const [option] = Object.keys(values);
    if (option !== undefined) throw new UsageError(`--${option} is an option of "create" only.`);
    if (command === 'revoke') {
      if (id === undefined) {
        throw new UsageError('revoke needs the id of a key; "list" shows them.');
      }
      if (more.length > 0) throw new UsageError('revoke takes one id.');
      return async (client, { say }) => {
        const revoked = client.call('revokeKey', { params: { id } });
        const { hint, name } = await revoked.catch((thrown: unknown) => {
          if (!(thrown instanceof ApiError) || thrown.code !== 'NOT_FOUND') throw thrown;
          const remedy =
            'An id is the part between the underscores; `npm run keys -- list` shows them.';
          throw new ApiError('NOT_FOUND', `There is no key with the id "${id}".`, { remedy });
        });
        say(`${hint} "${name}" is revoked.\n`);
      };
    }
    if (command !== 'list' && command !== 'sign-in') {
      throw new UsageError(`There is no command "${command}".`);
    }
    if (id !== undefined) throw new UsageError(`${command} takes nothing more.`);
    if (command === 'list') {
      return async (client, { out }) => out(tableOf((await client.call('listKeys')).keys));
    }
    return async (client, { out, say }) => {
      const body = { kind: 'sign-in', name: 'npm run keys' };
      const { key } = await client.call('createKey', { body });
      out(`${client.publicUrl}/keys#sign-in=${key}\n`);
      const start = client.serverRuns ? '' : ' The server does not run: start it with `npm start`.';
      say(`The link works once, for an hour.${start}\n`);
    };
  },
};

const fieldOptions: Readonly<Record<string, string>> = {
  name: '--name must be a text of 1 to 100 characters.',
  kind: '--kind must be api or worker.',
  owner: '--owner must be a text of 1 to 60 characters.',
  scopes: `--scopes must be some of ${scopes.join(', ')}, with commas between.`,
  expires_in_days: '--expires-in-days must be a number above 0 and at most 36500.',
};

/** @param named a version of the terms of use that is accepted */
function readKey(values: Parameters<typeof keysCommand.read>[0], named: string | undefined) {
  if (values.name === undefined) throw new UsageError('create needs --name: what the key is for.');
  const kind = values.kind ?? 'api';
  if (kind === 'worker' && values.scopes !== undefined) {
    throw new UsageError('--scopes is for API keys; a worker token has none.');
  }
  const days = values['expires-in-days'];
  const parsed = createKeySchema.extend({ kind: z.enum(['api', 'worker']) }).safeParse({
    kind,
    name: values.name.trim(),
    owner: values.owner?.trim(),
    scopes: values.scopes?.split(',').map((scope) => scope.trim()),
    shared: values.shared,
    expires_in_days: days === undefined ? undefined : Number(days),
  });
  if (parsed.success) {
    if (!values['accept-terms'] && named !== termsVersion) throw notAccepted(named);
    return { ...parsed.data, accept_terms: termsVersion };
  }
  const field = String(parsed.error.issues[0]?.path[0]);
  throw new UsageError(fieldOptions[field] ?? 'The options of "create" cannot be used.');
}

function notAccepted(named: string | undefined): UsageError {
  const other = named ? ` KINORA_ACCEPT_TERMS names the version ${named}.` : '';
  return new UsageError(
    `A key needs the terms of use, version ${termsVersion}, to be accepted.${other} Read them with ` +
      `\`npm run models -- terms\` or at /terms, and run it again with --accept-terms.`,
    'TERMS_NOT_ACCEPTED',
  );
}

function tableOf(records: readonly KeyRecord[]): string {
  const rows = records.map((record) => [
    record.id,
    record.kind + (record.shared ? ', shared' : ''),
    record.owner,
    record.name,
    record.kind === 'api' ? scopesOf(record) : '-',
    record.kind === 'sign-in' ? utcMinuteOf(record.created_at) : record.created_at.slice(0, 10),
    record.last_used_at === null ? 'never' : utcMinuteOf(record.last_used_at),
    stateOf(record),
  ]);
  const head = ['ID', 'KIND', 'OWNER', 'NAME', 'SCOPES', 'CREATED', 'LAST USED', 'STATE'];
  return table([head, ...rows]);
}

const utcMinuteOf = (instant: string) => `${minuteOf(instant)} UTC`;

function scopesOf(record: KeyRecord): string {
  if (record.scopes.length === scopes.length) return 'all';
  return record.scopes.join(',') || 'none';
}

function stateOf({ kind, revoked_at, expires_at }: KeyRecord): string {
  if (revoked_at !== null) return `revoked ${revoked_at.slice(0, 10)}`;
  if (expires_at === null) return 'valid';
  // A sign-in link is valid for an hour: the day alone says nothing.
  const end = kind === 'sign-in' ? utcMinuteOf(expires_at) : expires_at.slice(0, 10);
  return Date.parse(expires_at) > Date.now() ? `valid until ${end}` : `ended ${end}`;
}
