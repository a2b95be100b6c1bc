import { benchHttp } from './relay-http';
import { benchStore } from './relay-store';
import { benchWebhooks } from './relay-webhooks';

const parts = ['store', 'webhooks', 'http'] as const;

/** `npm run bench -- relay [store|webhooks|http] [options of store]`: the server without a GPU. */
export async function benchRelay(args: readonly string[]): Promise<void> {
  const [first, ...rest] = args;
  const only = parts.find((part) => part === first);
  if (only === undefined || only === 'store') await benchStore(only ? rest : args);
  if (only === undefined || only === 'webhooks') await benchWebhooks();
  if (only === undefined || only === 'http') await benchHttp();
}
