import { Webhook } from 'standardwebhooks';

/** The checked body. Throws where the signature is not right. */
export function verifyStandard(body, headers, secret) {
  return new Webhook(secret).verify(body.toString(), {
    'webhook-id': headers['svix-id'],
    'webhook-timestamp': headers['svix-timestamp'],
    'webhook-signature': headers['svix-signature'],
  });
}
