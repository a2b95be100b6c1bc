import { quickChecker, safetyThreshold } from '../../lib/contract';
import { refusalExample } from '../../lib/contract/v3';
import { Code, Section, Table, Text } from './parts';

/** The two switches of a submission: what happens, where, what is recorded, and what the answers mean. */
export function Switches() {
  return (
    <>
      <Section id="safety-checker" title="Safety checker">
        <p>
          With <code>enable_safety_checker</code>, which is on by default, the tab that computes the
          video also checks it, with an image classifier in the browser
          (Marqo/nsfw-image-detection-384 unless the model brings another one). It scores the input
          image, every eighth frame and the last one. The score of the video is the mean of its two
          highest frames; from {safetyThreshold} on the video is flagged. A flag only flags: the
          video is delivered, and nothing is deleted. <code>safety.model</code> says which checker
          it was.
        </p>
        <Table
          label="What has_nsfw_contents and safety.status mean"
          columns={['has_nsfw_contents', 'safety.status', 'Meaning']}
          rows={verdicts.map(([flag, status, meaning]) => [
            <code key="flag">{flag}</code>,
            <code key="status">{status}</code>,
            <Text key="meaning">{meaning}</Text>,
          ])}
        />
        <p>
          A job that asks for the check goes only to tabs that have the downloaded checker. The
          bundled model <code>mini</code> is excepted, so that a first try needs no download: the
          quick checker that comes with Kinora judges its videos (<code>{quickChecker.model}</code>,
          which flags an image from {quickChecker.threshold} on, the soft frames of this model from{' '}
          {quickChecker.softThreshold} on unless the image is flagged, and is right for about nine
          pictures in ten, as its makers say). Result, list, events and webhook say the same.
        </p>
        <p>
          The server stores what the tab reported: status, scores of image and frames, threshold,
          name and SHA-256 of the checker, and which worker it was. It compares the report with the
          job, but it cannot verify a tab’s word. The checker errs in both directions, and knows
          only nudity and sex.
        </p>
        <p>
          One kind of prompt is always refused, whatever the switches say: one that names a child in
          a sexual context. The submission is answered with this error, and nothing is stored. A
          worker checks again; it also refuses a prompt that names a child where the checker flags
          the image or the video. Then the prediction fails with <code>data.code</code> 1200.
        </p>
        <Code label="A refused prompt" text={JSON.stringify(refusalExample, null, 2)} />
      </Section>
      <Section id="prompt-optimizer" title="Prompt optimiser">
        <p>
          With <code>enable_prompt_optimizer</code>, which is off by default, a small language model
          in the tab describes the motion in one to three sentences after the prompt, on the CPU and
          before the video starts: up to 30 seconds to load it, 20 to write. In events this is the
          phase <code>optimise</code>.
        </p>
        <p>
          The text begins with your words, byte for byte. A sentence of the model is left out where
          it is in another language, brings in people, moves the camera in another way, contradicts
          your words, or does not fit the limit of tokens. The negative prompt is never changed. The
          same model writes the same text for the same seed.
        </p>
        <p>
          <code>input.prompt</code> stays as it was sent; <code>data.optimized_prompt</code> is the
          prompt that the video was made with, and <code>data.prompt_optimization</code> has the
          model, its SHA-256, the seed and this status:
        </p>
        <Table
          label="What prompt_optimization.status means"
          columns={['Status', 'optimized_prompt is']}
          rows={optimizations.map(([status, meaning]) => [
            <code key="status">{status}</code>,
            meaning,
          ])}
        />
        <p>
          A job that asks for it waits for a tab with a language model as long as one is connected
          that can run it, even while that tab is busy. Without one, any other tab takes the job and
          reports <code>unavailable</code>.
        </p>
      </Section>
    </>
  );
}

const verdicts = [
  ['false', 'clear', 'Checked, and below the threshold.'],
  ['true', 'flagged', 'Checked, and at or above the threshold.'],
  ['false', 'off', 'The job did not ask for the check.'],
  [
    'true',
    'unverified',
    'There is no verdict: the check failed on the GPU and on the CPU (`safety.reason` is `failed`).',
  ],
] as const;

const optimizations = [
  ['used', 'Your prompt, with sentences of the language model after it.'],
  ['unchanged', 'Your prompt: there was a reason to leave it, such as its length or language.'],
  ['unavailable', 'Your prompt: the tab had no language model.'],
  ['failed', 'Your prompt: no sentence of the model passed the checks in time.'],
] as const;
