import { Section, Table } from './parts';
import { leaseFacts } from './settings';

/** The way of one job, and what each on the way gets to see. */
export function WayOfAJob() {
  return (
    <>
      <Section id="way-of-a-job" title="How a job reaches a GPU">
        <ol className="steps">
          <li>
            A submission is checked and stored; its image is fetched by the server and checked too.
          </li>
          <li>
            Connected tabs hear that there is work. The first that can run it, by model, precision,
            size, duration and LoRA support, claims it and gets a <strong>lease</strong>.
          </li>
          <li>
            The tab computes and reports its step with a <strong>heartbeat</strong>. A tab that
            falls silent loses its lease, and another takes the job from the start; what the first
            one still sends is refused.
          </li>
          <li>
            The tab uploads the video. The server checks that it is the MP4 that was asked for,
            stores it, and sets the prediction to completed, together with its webhook.
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
          <strong>A tab that runs</strong> <code>tiny</code> <strong>makes videos of noise</strong>:
          that model comes with Kinora to try everything out on any machine. Which models may serve
          is decided by <code>KINORA_SERVING_MODELS</code>; take <code>tiny</code> out of it where
          people wait for pictures.
        </p>
        <p>
          A job waits as long as no tab fits it; <code>queue_position</code> says how many come
          first. Cancelling reaches a computing tab within two seconds.
        </p>
      </Section>
      <Section id="who-can-see" title="Who can see it">
        <p>
          <strong>Whoever runs the tab sees the prompt, the image and the video.</strong> By default
          only tabs of the key’s own owner take its jobs. Sharing needs a yes from both sides: a key
          that is created as shared sends its jobs to any shared worker, and a worker token that is
          created as shared takes jobs of any shared key.
        </p>
        <Table
          label="What is kept"
          columns={['What', 'Who can read it', 'How long']}
          rows={[
            [
              'Prompt and parameters',
              'Keys of the same owner, the tab that computes, and whoever runs the server',
              'Until you delete the prediction',
            ],
            [
              'The image, sent in the submission or fetched for it',
              'The tab that computes and whoever has a signed address of it, and whoever runs the server',
              'Until you delete the prediction, at most as long as videos',
            ],
            [
              'An uploaded file, be it an image or a LoRA',
              'Whoever has its address, which is signed and needs no key, tabs that compute with it, and whoever runs the server',
              '7 days by default from the upload, longer while an unfinished prediction needs it; deleting a prediction leaves it',
            ],
            [
              'The video',
              'Whoever has its address, which cannot be guessed and needs no key',
              '7 days by default, then the record says that it is gone',
            ],
            ['Keys', 'Nobody: only their hash is stored', 'Until you revoke them'],
            ['Logs', 'Whoever runs the server; no keys, prompts or images in them', 'As set there'],
          ]}
        />
      </Section>
    </>
  );
}
