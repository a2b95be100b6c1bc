import { maxPromptLength } from '../../lib/contract';
import { Section, Table } from './parts';

/** One setting as the page shows it; a test compares its default with the server's configuration. */
export interface SettingFact {
  readonly name: string;
  /** The default in the server's configuration. */
  readonly value: number | readonly string[];
  readonly shown: string;
  readonly meaning: string;
}

const fact = (
  name: string,
  value: SettingFact['value'],
  shown: string,
  meaning: string,
): SettingFact => ({ name, value, shown, meaning });

/** Limits for callers, with the defaults of the server. */
export const limitFacts: readonly SettingFact[] = [
  fact('KINORA_SUBMITS_PER_MINUTE', 120, '120', 'Submissions per key and minute.'),
  fact('KINORA_SHARES_PER_MINUTE', 30, '30', 'Share links made or changed, per key and minute.'),
  fact('KINORA_READS_PER_MINUTE', 600, '600', 'Other requests per key and minute.'),
  fact(
    'KINORA_READS_PER_JOB_PER_MINUTE',
    120,
    '+ 120',
    'Added to this for each unfinished prediction.',
  ),
  fact('KINORA_REQUESTS_PER_ADDRESS', 3000, '3,000', 'Requests per address and minute.'),
  fact('KINORA_BAD_KEYS_PER_ADDRESS', 30, '30', 'Wrong keys per address and minute.'),
  fact('KINORA_JOBS_PER_KEY', 1000, '1,000', 'Unfinished predictions per key.'),
  fact('KINORA_MAX_BODY_BYTES', 30_000_000, '30 MB', 'Largest JSON body.'),
  fact(
    'KINORA_MAX_IMAGE_BYTES',
    20_000_000,
    '20 MB',
    'Largest image; the limit of 40 megapixels is fixed.',
  ),
  fact('KINORA_MAX_UPLOAD_BYTES', 1_000_000_000, '1 GB', 'Largest upload.'),
  fact('KINORA_MAX_LORA_BYTES', 2_000_000_000, '2 GB', 'Largest LoRA from a link.'),
  fact(
    'KINORA_MAX_BASE64_BYTES',
    32_000_000,
    '32 MB',
    'Largest video that a result has as base64; a larger one comes as its URL.',
  ),
  fact('KINORA_SYNC_SECONDS', 100, '100 s', 'Longest delay of a synchronous response.'),
  fact('KINORA_RETENTION_DAYS', 7, '7 days', 'How long videos are stored.'),
];

/** Settings of jobs and leases, with the defaults of the server. */
export const leaseFacts: readonly SettingFact[] = [
  fact(
    'KINORA_SERVING_MODELS',
    ['wan2.2-ti2v-5b', 'mini'],
    'wan2.2-ti2v-5b,mini',
    'Models that workers may serve; * for any.',
  ),
  fact('KINORA_HEARTBEAT_SECONDS', 2, '2 s', 'Interval of the heartbeats of a computing tab.'),
  fact('KINORA_LEASE_SECONDS', 30, '30 s', 'How long a lease is valid without a heartbeat.'),
  fact('KINORA_MAX_ATTEMPTS', 3, '3', 'Attempts before a prediction fails.'),
  fact('KINORA_ATTEMPT_SECONDS', 10_800, '3 h', 'Time limit of one attempt.'),
];

/** The limits for callers. The operator of a server can change them. */
export function Limits() {
  return (
    <Section id="limits" title="Limits">
      <p>
        These are defaults; a server may use others. Responses have the headers{' '}
        <code>RateLimit-Limit</code>, <code>RateLimit-Remaining</code> and{' '}
        <code>RateLimit-Reset</code>; a 429 has <code>Retry-After</code> with the seconds to wait.
      </p>
      <Table
        label="Settings and their defaults"
        columns={['Setting', 'Default', 'Meaning']}
        rows={limitFacts.map(({ name, shown, meaning }) => [
          <code key={name}>{name}</code>,
          shown,
          meaning,
        ])}
      />
      <p>
        <code>prompt</code> and <code>negative_prompt</code> have at most{' '}
        {maxPromptLength.toLocaleString('en')} characters each; longer ones are rejected. The model
        reads the first 512 tokens of each.
      </p>
    </Section>
  );
}
