import { createHmac } from 'node:crypto';

const prefix = 'whsec_';

/** What a webhook's signature is made over. */
export interface Signed {
  /** `whsec_` + base64 of 32 bytes. */
  readonly secret: string;
  readonly id: string;
  /** Unix seconds of the attempt. */
  readonly timestamp: number;
  /** The exact bytes that are sent. */
  readonly body: string;
}

/**
 * The headers of both schemes (README.md): `webhook-*` with `v3,<hex>` of this API family, whose key
 * is the secret's text; `svix-*` with `v1,<base64>` of Standard Webhooks, whose key is what the text
 * decodes to. Both in one header would break verifiers of the first kind.
 */
export function signatureHeaders({
  secret,
  id,
  timestamp,
  body,
}: Signed): Readonly<Record<string, string>> {
  const key = secret.startsWith(prefix) ? secret.slice(prefix.length) : secret;
  const message = `${id}.${timestamp}.${body}`;
  const hex = createHmac('sha256', key).update(message).digest('hex');
  const base64 = createHmac('sha256', Buffer.from(key, 'base64')).update(message).digest('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v3,${hex}`,
    'svix-id': id,
    'svix-timestamp': String(timestamp),
    'svix-signature': `v1,${base64}`,
  };
}
