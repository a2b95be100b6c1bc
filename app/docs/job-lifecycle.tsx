import { leaseFacts } from './limits';
import { Section, Table } from './parts';

/** How a job reaches a GPU, and who can read its data. */
export function JobLifecycle() {
  return (
    <>
      <Section id="job-lifecycle" title="How a job reaches a GPU">
        <ol className="steps">
          <li>
            The server checks and stores the submission. It fetches the image and checks it too. If
            the image’s host cannot be reached or is busy, it is tried again for about ten minutes:{' '}
            <code>data.image_retry</code> says why and when.
          </li>
          <li>
            A connected tab that can run the job, by model, precision, size, duration, LoRA support
            and safety checker, claims it and gets a <strong>lease</strong>.
          </li>
          <li>
            The tab computes and reports its step with a <strong>heartbeat</strong>. Without
            heartbeats it loses its lease, and another tab starts the job again; later requests of
            the first tab are rejected.
          </li>
          <li>
            The tab uploads the video. The server checks that it is the requested MP4, stores it,
            and in one transaction completes the prediction and creates its webhook.
          </li>
        </ol>
        <Table
          label="Settings of serving and leases"
          columns={['Setting', 'Default', 'Meaning']}
          rows={leaseFacts.map(({ name, shown, meaning }) => [
            <code key={name}>{name}</code>,
            shown,
            meaning,
          ])}
        />
        <p>
          <strong>A tab that runs</strong> <code>mini</code> <strong>makes soft pictures</strong>:
          this model is for a first try on any machine. <code>KINORA_SERVING_MODELS</code> lists the
          models that tabs may serve; remove <code>mini</code> from it on a server that people use.{' '}
          <code>KINORA_FAMILIES</code> says which models serve a family, and which come first. A job
          with LoRAs goes only to tabs whose model they were made for.
        </p>
        <p>
          A job waits until a suitable tab is free; <code>queue_position</code> is the number of
          jobs before it. <code>waiting_for</code> says for what: <code>files</code> (its image or
          LoRAs are being fetched), <code>worker</code> (no connected tab can run it: connect one)
          or <code>queue</code> (such a tab is connected, and is busy). While it is computed,{' '}
          <code>progress</code> has its phase, step and remaining seconds. After a cancel, the
          computing tab stops within about two seconds.
        </p>
      </Section>
      <Section id="who-can-see" title="Who can see it">
        <p>
          <strong>The operator of the tab can see the prompt, the image and the video.</strong> By
          default only tabs of the key’s owner take its jobs. Sharing needs consent on both sides: a
          key that is created as shared sends its jobs to any shared worker, and a worker token that
          is created as shared takes jobs of any shared key.
        </p>
        <Table
          label="Stored data"
          columns={['Data', 'Who can read it', 'Stored for']}
          rows={[
            [
              'Prompt and parameters',
              'Keys of the same owner, the computing tab, and the operator of the server',
              'Until you delete the prediction',
            ],
            [
              'The image of a submission, sent or fetched',
              'The computing tab, anyone with its signed URL, and the operator of the server',
              'Until you delete the prediction, at most as long as videos',
            ],
            [
              'An uploaded image or LoRA',
              'Anyone with its signed URL (no key is needed), computing tabs, and the operator of the server',
              '7 days by default, longer while an unfinished prediction needs it; deleting a prediction does not delete it',
            ],
            [
              'The video',
              'Anyone with its URL, which cannot be guessed (no key is needed)',
              '7 days by default; then the prediction says that it was deleted',
            ],
            ['Keys', 'No one: only their hash is stored', 'Until you revoke them'],
            [
              'Logs',
              'The operator of the server; they contain no keys, prompts or images',
              'As configured by the operator',
            ],
          ]}
        />
      </Section>
    </>
  );
}
