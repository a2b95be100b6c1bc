import { createHmac, randomBytes } from 'node:crypto';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { describe, expect, test } from 'vitest';
import { signatureHeaders } from './send';

const secret = `whsec_${randomBytes(32).toString('base64')}`;
const body = '{"prompt":"Zwölf Boxkämpfer 🥊"}';
const signed = () => ({
  secret,
  id: `msg_${randomBytes(16).toString('hex')}`,
  timestamp: Math.floor(Date.now() / 1000),
  body,
});
const named = (headers: Readonly<Record<string, string>>, prefix: string) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith(prefix)));

describe('a webhook’s headers', () => {
  test('are verified by svix, among all the others', () => {
    expect(new SvixWebhook(secret).verify(body, { ...signatureHeaders(signed()) })).toEqual(
      JSON.parse(body),
    );
    const forged = { ...signatureHeaders(signed()), 'svix-timestamp': '1' };
    expect(() => new SvixWebhook(secret).verify(body, forged)).toThrow();
  });

  test('are verified by standardwebhooks under its names', () => {
    const svix = named(signatureHeaders(signed()), 'svix-');
    const standard = Object.fromEntries(
      Object.entries(svix).map(([name, value]) => [name.replace('svix-', 'webhook-'), value]),
    );
    expect(new StandardWebhook(secret).verify(body, standard)).toEqual(JSON.parse(body));
    expect(() => new StandardWebhook(secret).verify(`${body} `, standard)).toThrow();
  });

  test('carry v3 over the secret’s text, alone', () => {
    const input = signed();
    const hex = createHmac('sha256', Buffer.from(secret.replace('whsec_', ''), 'utf8'))
      .update(Buffer.from(`${input.id}.${input.timestamp}.${body}`, 'utf8'))
      .digest('hex');
    expect(named(signatureHeaders(input), 'webhook-')).toEqual({
      'webhook-id': input.id,
      'webhook-timestamp': String(input.timestamp),
      'webhook-signature': `v3,${hex}`,
    });
  });
});
