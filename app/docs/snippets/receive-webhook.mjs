import { createServer } from 'node:http';
import { verifyWebhook } from './verify-webhook.mjs';

/** A receiver: answers at once, and does each prediction's work once. */
export function createReceiver(secret, whenFinished) {
  const seen = new Set(); // in your product: a table
  return createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    if (!verifyWebhook(body, request.headers, secret)) {
      response.writeHead(401).end();
      return;
    }
    response.writeHead(204).end();
    const id = request.headers['webhook-id'];
    if (seen.has(id)) return; // duplicates are possible
    seen.add(id);
    whenFinished(JSON.parse(body));
  });
}
