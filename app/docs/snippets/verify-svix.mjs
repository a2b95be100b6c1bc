import { Webhook } from 'svix';

/** The checked body. Throws where the signature is not right. */
export function verifySvix(body, headers, secret) {
  return new Webhook(secret).verify(body.toString(), headers);
}
