/** One limit as the page tells it; a test compares the default with the server's own table. */
export interface SettingFact {
  readonly name: string;
  /** As the server reads it. */
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

/** What callers run into, with the defaults of an unconfigured server. */
export const limitFacts: readonly SettingFact[] = [
  fact('KINORA_SUBMITS_PER_MINUTE', 120, '120', 'Submissions per key and minute.'),
  fact('KINORA_READS_PER_MINUTE', 600, '600', 'Other requests per key and minute …'),
  fact(
    'KINORA_READS_PER_JOB_PER_MINUTE',
    120,
    '+ 120',
    '… and more for each unfinished prediction.',
  ),
  fact('KINORA_REQUESTS_PER_ADDRESS', 3000, '3,000', 'Requests per address and minute.'),
  fact('KINORA_BAD_KEYS_PER_ADDRESS', 30, '30', 'Wrong keys per address and minute.'),
  fact('KINORA_JOBS_PER_KEY', 1000, '1,000', 'Unfinished predictions per key.'),
  fact('KINORA_MAX_BODY_BYTES', 30_000_000, '30 MB', 'Largest JSON body.'),
  fact('KINORA_MAX_IMAGE_BYTES', 20_000_000, '20 MB', 'Largest image; also at most 40 megapixels.'),
  fact('KINORA_MAX_UPLOAD_BYTES', 1_000_000_000, '1 GB', 'Largest upload.'),
  fact('KINORA_MAX_LORA_BYTES', 2_000_000_000, '2 GB', 'Largest LoRA from a link.'),
  fact('KINORA_SYNC_SECONDS', 100, '100 s', 'How long a synchronous submission is held.'),
  fact('KINORA_RETENTION_DAYS', 7, '7 days', 'How long videos are kept.'),
];

/** Which tabs get a job, and how it is leased to them. */
export const leaseFacts: readonly SettingFact[] = [
  fact(
    'KINORA_SERVING_MODELS',
    ['wan2.2-ti2v-5b', 'tiny'],
    'wan2.2-ti2v-5b,tiny',
    'Models that may serve; * for any.',
  ),
  fact('KINORA_HEARTBEAT_SECONDS', 2, '2 s', 'How often a computing tab reports its step.'),
  fact('KINORA_LEASE_SECONDS', 30, '30 s', 'How long a lease stands without a heartbeat.'),
  fact('KINORA_MAX_ATTEMPTS', 3, '3', 'Attempts before a prediction fails.'),
  fact('KINORA_ATTEMPT_SECONDS', 10_800, '3 h', 'Hard end of one attempt.'),
];
