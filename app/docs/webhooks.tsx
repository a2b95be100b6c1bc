import { webhookExample } from '../../lib/contract/v3';
import { Link } from '../shared/link';
import { Code, Section, Snippet } from './parts';

/** Content, attempts and signatures of webhooks. */
export function Webhooks() {
  return (
    <>
      <Section id="webhooks" title="Webhooks">
        <p>
          Add <code>?webhook=https://…</code> to the address of a submission, or{' '}
          <code>webhook</code> to its body. When the prediction has ended, completed or failed, this
          is sent there as a POST:
        </p>
        <Code label="Body of a webhook" text={JSON.stringify(webhookExample, null, 2)} />
        <p>
          With <code>webhook_events</code> in the body of the submission, a list of{' '}
          <code>start</code>, <code>progress</code> and <code>completed</code>, it is sent for these
          events, which <code>event</code> then names: when a tab begins, at most every 10 seconds
          while it computes, and at the end. They may arrive in another order; progress is sent
          once, and not again when it fails.
        </p>
        <p>
          <code>outputs</code> is there only when it completed. The address must be a public https
          URL; redirects are not followed. To try webhooks on your own machine, start the server
          with <code>KINORA_ALLOW_PRIVATE=1</code>: it then takes http and private addresses too,
          such as <code>http://127.0.0.1:9000/</code>. Do not set this on a server that other people
          have keys of.
        </p>
        <p>
          Respond with any 2xx within 15 seconds. Otherwise further attempts follow after about 10
          seconds, one minute and six minutes; a <code>Retry-After</code> of up to 15 minutes is
          respected, and 410 ends the attempts. All attempts have the same <code>webhook-id</code>:
          duplicates are possible, so process each id once.
        </p>
        <p>
          After the last attempt the delivery is <code>exhausted</code> and stays visible, with the
          last response, in <code>GET /api/v3/webhook/deliveries</code>. Send it again with{' '}
          <Link href="/docs/api">
            <code>POST …/deliveries/{'{id}'}/replay</code>
          </Link>{' '}
          or <code>npm run webhooks -- replay</code>.
        </p>
      </Section>
      <Section id="signatures" title="Signatures">
        <p>
          Every webhook is signed twice with one secret, <code>whsec_…</code> from{' '}
          <code>GET /api/v3/webhook/secret</code>: <code>webhook-signature</code> in the{' '}
          <code>v3</code> format of this API family, and <code>svix-signature</code> in the format
          of Standard Webhooks. Verify one of them, over the unchanged bytes of the body.
        </p>
        <Snippet name="verify-webhook.mjs" label="v3 in JavaScript: verify-webhook.mjs" />
        <Snippet name="receive-webhook.mjs" label="A receiver in JavaScript" />
        <Snippet name="verify_webhook.py" label="v3 in Python" />
        <Snippet name="verify-standard.mjs" label="With npm standardwebhooks" />
        <Snippet name="verify-svix.mjs" label="With npm svix" />
      </Section>
    </>
  );
}
