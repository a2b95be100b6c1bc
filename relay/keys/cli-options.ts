import { parseArgs } from 'node:util';
import { z } from 'zod';
import { createKeySchema, scopes } from '../../lib/contract/v3';
import { firstOwner } from './owner';

/** What `npm run keys` was asked for. */
export type KeysCommand =
  | { readonly do: 'help' | 'list' | 'sign-in' }
  | { readonly do: 'create'; readonly key: z.output<typeof createKeySchema> }
  | { readonly do: 'revoke'; readonly id: string };

/** What `--help` prints. */
export const helpText = `API keys, worker tokens and sign-in links of this Kinora.

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
  list                    shows all keys, and never the secret part
  revoke ID               ends a key at once; ID is the part between the underscores
  sign-in                 prints a link to the keys page that works once, for an hour

Environment: KINORA_DATA and DATABASE_URL as for the server. A server that runs is asked to do it;
without one the database is opened.
`;

const optionTypes = {
  name: { type: 'string' },
  kind: { type: 'string' },
  owner: { type: 'string' },
  scopes: { type: 'string' },
  shared: { type: 'boolean' },
  'expires-in-days': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

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
export function parseKeysCommand(args: readonly string[]): KeysCommand {
  const { values, positionals } = readArguments(args);
  const [command, id, ...more] = positionals;
  if (values.help || (command === undefined && Object.keys(values).length === 0)) {
    return { do: 'help' };
  }
  if (command === 'create') {
    if (id !== undefined) throw new UsageError(`"${id}" is too much; the name goes with --name.`);
    return { do: 'create', key: readKey(values) };
  }
  const [option] = Object.keys(values);
  if (option !== undefined) throw new UsageError(`--${option} is an option of "create" only.`);
  if (command === 'revoke') {
    if (id === undefined) throw new UsageError('revoke needs the id of a key; "list" shows them.');
    if (more.length > 0) throw new UsageError('revoke takes one id.');
    return { do: 'revoke', id };
  }
  if (command !== 'list' && command !== 'sign-in') {
    throw new UsageError(`There is no command "${command}".`);
  }
  if (id !== undefined) throw new UsageError(`${command} takes nothing more.`);
  return { do: command };
}

function readArguments(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: optionTypes,
      strict: true,
      allowPositionals: true,
    });
  } catch (error) {
    // Node explains at length how to escape; its first sentence says what is wrong.
    const [sentence = ''] = (error as Error).message.split(/\. |\n/);
    throw new UsageError(`${sentence.replace(/\.$/, '')}.`);
  }
}

const fieldOptions: Readonly<Record<string, string>> = {
  name: '--name must be a text of 1 to 100 characters.',
  kind: '--kind must be api or worker.',
  owner: '--owner must be a text of 1 to 60 characters.',
  scopes: `--scopes must be some of ${scopes.join(', ')}, with commas between.`,
  expires_in_days: '--expires-in-days must be a number above 0 and at most 36500.',
};

function readKey(values: ReturnType<typeof readArguments>['values']) {
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
  if (parsed.success) return parsed.data;
  const field = String(parsed.error.issues[0]?.path[0]);
  throw new UsageError(fieldOptions[field] ?? 'The options of "create" cannot be used.');
}
