import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Whether a webhook came from your server and is not older than five minutes.
 *
 * @param {Buffer} body the bytes as they came, before any JSON.parse
 * @param {Record<string, string>} headers names in lower case, as Node gives them
 * @param {string} secret `whsec_…`, from GET /api/v3/webhook/secret
 */
export function verifyWebhook(body, headers, secret) {
  const id = headers['webhook-id'];
  const timestamp = headers['webhook-timestamp'];
  const ageSeconds = Math.abs(Date.now() / 1000 - Number(timestamp));
  if (!id || !(ageSeconds <= 300)) return false;

  // The key is the text after "whsec_" itself: it is not base64-decoded.
  const expected = createHmac('sha256', secret.replace(/^whsec_/, ''))
    .update(`${id}.${timestamp}.`)
    .update(body)
    .digest();
  const [version, signature = ''] = (headers['webhook-signature'] ?? '').split(',');
  const received = Buffer.from(signature, 'hex');
  return (
    version === 'v3' && received.length === expected.length && timingSafeEqual(received, expected)
  );
}
