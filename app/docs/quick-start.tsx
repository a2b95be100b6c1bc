import { Link } from '../shared/link';
import { Code, Section, Snippet, Table } from './parts';

/** The quick start, and the base URL of each client. */
export function QuickStart() {
  return (
    <>
      <Section id="quick-start" title="Quick start">
        <ol className="steps">
          <li>
            <strong>Start the server</strong> with <code>npm start -- --accept-terms</code>, if you
            accept the <Link href="/terms">terms of use</Link>. The first start prints an API key, a
            worker token and a sign-in link, once. Without the option it prints the link alone, and
            the page Keys asks for the terms.
          </li>
          <li>
            <strong>Connect a tab</strong>: open <Link href="/serve">Serve</Link> on the machine
            with the GPU, choose the model and enter the worker token. The model <code>mini</code>{' '}
            comes with Kinora and runs anywhere: its picture is soft, and it does simple camera
            moves, best with 4 steps and guidance 1. Without a connected tab, predictions wait in
            the queue.
          </li>
          <li>
            <strong>Submit</strong> an image and a prompt. The response comes at once and contains
            the id of the prediction.
          </li>
          <li>
            <strong>Follow</strong> it by polling, by events, or by a webhook, and download the
            video.
          </li>
        </ol>
        <p>
          More keys: the page <Link href="/keys">Keys</Link>, or on the server’s machine:
        </p>
        <Code
          label="A key from the command line"
          text="npm run keys -- create --name laptop --accept-terms"
        />
        <p>
          Each of these programs does all of this with the file <code>still.png</code> in its
          folder. Set <code>KINORA_URL</code> and <code>KINORA_KEY</code> first.
        </p>
        <Snippet name="quick-start.sh" label="curl" />
        <Snippet name="quick-start-client.mjs" label="JavaScript with the wavespeed client" />
        <Snippet name="quick-start-fetch.mjs" label="JavaScript with fetch" />
        <Snippet name="quick_start.py" label="Python" />
      </Section>
      <Section id="clients" title="Clients by base URL">
        <Table
          label="How to set the base URL of each client"
          columns={['Client', 'Set']}
          rows={[
            ['wavespeed 0.3 (npm)', <code key="a">{'new Client(key, { baseUrl: url })'}</code>],
            [
              'wavespeed 0.0.15 (npm)',
              <code key="b">{"new WaveSpeed(key, { baseUrl: url + '/api/v3/' })"}</code>,
            ],
            ['wavespeed (Python)', <code key="c">Client(api_key=key, base_url=url)</code>],
            ['@wavespeed/mcp and Java', <code key="d">WAVESPEED_BASE_URL, WAVESPEED_API_KEY</code>],
          ]}
        />
        <p>
          Models are <code>kinora/wan-2.2/i2v-720p-lora</code> and{' '}
          <code>…/i2v-720p-lora-ultra-fast</code>; <code>wavespeed-ai/wan-2.1/…</code> and{' '}
          <code>wavespeed-ai/wan-2.2/…</code> work too, also as <code>i2v-720p</code> and{' '}
          <code>i2v-5b-720p</code>. A webhook may be part of the model’s name:{' '}
          <code>…-ultra-fast?webhook=https://…</code>
        </p>
      </Section>
    </>
  );
}
