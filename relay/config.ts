import path from 'node:path';
import { z } from 'zod';
import { projectRoot } from './store/folders';

/** `1`, `true`, `yes`, `on`; anything else is false. */
const flagOr = (text: '' | '1') =>
  z
    .string()
    .default(text)
    .transform((value) => /^(1|true|yes|on)$/i.test(value));
const flag = flagOr('');
const list = (text: string) =>
  z
    .string()
    .default(text)
    .transform((value) =>
      value
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== ''),
    );
/** In KINORA_FAMILIES: those of KINORA_SERVING_MODELS. */
const otherModels = 'others';
const familyForm = /^[\w.-]+\/[\w.-]+(=([\w.-]+|\*)(\+([\w.-]+|\*))*)?$/;
const familyError =
  'must have families such as provider/family or provider/family=model+model, each once.';
const isFamilies = (entries: readonly string[]) =>
  entries.every((entry) => familyForm.test(entry)) &&
  new Set(entries.map((entry) => entry.split('=')[0])).size === entries.length;
const whole = (min: number, max = Number.MAX_SAFE_INTEGER) => {
  const end = max === Number.MAX_SAFE_INTEGER ? `, ${min} or more` : ` from ${min} to ${max}`;
  const error = `must be a whole number${end}.`;
  return z.coerce.number({ error }).int({ error }).min(min, { error }).max(max, { error });
};
const count = (value: number) => whole(0).default(value);
const seconds = (value: number) => {
  const error = 'must be a number of seconds above 0.';
  return z.coerce.number({ error }).positive({ error }).default(value);
};

/**
 * Every setting of the server, read from the environment. The table of README.md says what each means; a test
 * compares. Durations are in seconds, sizes in bytes.
 */
export const configSchema = z
  .object({
    KINORA_HOST: z.string().default('127.0.0.1'),
    PORT: whole(0, 65_535).default(3000),
    KINORA_PUBLIC_URL: z
      .url()
      .transform((url) => url.replace(/\/+$/, ''))
      .optional(),
    KINORA_DATA: z
      .string()
      .default(path.join(projectRoot, '.kinora', 'relay'))
      .transform((folder) => path.resolve(folder)),
    KINORA_MIN_FREE_BYTES: count(256_000_000),
    DATABASE_URL: z.string().optional(),
    S3_BUCKET: z.string().optional(),
    S3_ENDPOINT: z.url().optional(),
    S3_REGION: z.string().default('us-east-1'),
    S3_ACCESS_KEY_ID: z.string().optional(),
    S3_SECRET_ACCESS_KEY: z.string().optional(),
    S3_PREFIX: z.string().default('kinora/'),

    /**
     * `{provider}/{family}` of the models that the API offers, each with the models that may serve it, the preferred
     * ones first.
     */
    KINORA_FAMILIES: list(
      'kinora/wan-2.2=others+wan2.2-i2v-a14b,wavespeed-ai/wan-2.2=wan2.2-i2v-a14b+others,wavespeed-ai/wan-2.1=wan2.1-i2v-14b-720p+wan2.1-i2v-14b-480p+others',
    ).refine(isFamilies, familyError),
    KINORA_SERVING_MODELS: list('wan2.2-ti2v-5b,mini'),
    KINORA_SERVING_PRECISIONS: list('f32,int8,int4'),

    KINORA_LEASE_SECONDS: seconds(30),
    KINORA_HEARTBEAT_SECONDS: seconds(2),
    KINORA_SWEEP_SECONDS: seconds(2),
    KINORA_MAX_ATTEMPTS: whole(1, 3).default(3),
    KINORA_ATTEMPT_SECONDS: seconds(3 * 3600),
    KINORA_SYNC_SECONDS: seconds(100),

    KINORA_RETENTION_DAYS: seconds(7),
    KINORA_MAX_BODY_BYTES: count(30_000_000),
    KINORA_MAX_UPLOAD_BYTES: count(1_000_000_000),
    KINORA_MAX_IMAGE_BYTES: count(20_000_000),
    KINORA_MAX_LORA_BYTES: count(2_000_000_000),
    KINORA_MAX_VIDEO_BYTES: count(500_000_000),
    KINORA_MAX_BASE64_BYTES: count(32_000_000),

    KINORA_SUBMITS_PER_MINUTE: count(120),
    KINORA_SHARES_PER_MINUTE: count(30),
    KINORA_READS_PER_MINUTE: count(600),
    KINORA_READS_PER_JOB_PER_MINUTE: count(120),
    KINORA_REQUESTS_PER_ADDRESS: count(3000),
    KINORA_BAD_KEYS_PER_ADDRESS: count(30),
    KINORA_JOBS_PER_KEY: count(1000),
    KINORA_ADDRESS_HEADER: z.string().default(''),

    KINORA_WEBHOOK_DELAYS: list('0,10,60,360')
      .transform((parts) => parts.map(Number))
      .pipe(z.array(z.number().min(0)).min(1)),
    KINORA_ALLOW_PRIVATE: flag,
    KINORA_ALLOW_HTTP_IMAGES: flagOr('1'),
    KINORA_HUB: z.url().default('https://huggingface.co'),
    KINORA_ACCEPT_TERMS: z.string().default(''),
    KINORA_REPORT_ADDRESS: z
      .union([z.email(), z.url({ protocol: /^https$/ })], {
        error: 'must be an e-mail address or an https URL.',
      })
      .optional(),
    KINORA_LOG: z.enum(['silent', 'error', 'warn', 'info', 'debug']).default('info'),
    KINORA_METRICS_TOKEN: z.string().min(16).optional(),
    KINORA_FIRST_START_FILE: z.string().optional(),
    KINORA_END_WITH_PARENT: flag,
    KINORA_STOP_SECONDS: seconds(10),
  })
  .superRefine((config, context) => {
    if (config.S3_BUCKET === undefined) return;
    for (const name of ['S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'] as const) {
      if (config[name]) continue;
      context.addIssue({ code: 'custom', path: [name], message: 'is needed with S3_BUCKET.' });
    }
  });

export type Config = z.output<typeof configSchema>;

/**
 * Address of the server for programs of this machine, such as `http://127.0.0.1:3000`. A server on all
 * addresses is reached by loopback; IPv6 addresses stand in brackets.
 */
export function localOrigin({ KINORA_HOST: host, PORT }: Pick<Config, 'KINORA_HOST' | 'PORT'>) {
  if (host === '0.0.0.0' || host === '::') return `http://127.0.0.1:${PORT}`;
  return `http://${host.includes(':') ? `[${host}]` : host}:${PORT}`;
}

/** The families that the API offers, each with its list of models. */
export function familiesOf({ KINORA_FAMILIES: entries }: Pick<Config, 'KINORA_FAMILIES'>) {
  return new Map(
    entries.map((entry) => {
      const [family = '', models = otherModels] = entry.split('=');
      return [family, models.split('+')] as const;
    }),
  );
}

/**
 * The models that may serve a family, the preferred ones first; `*` stands for any.
 *
 * @param model of the API, such as `wavespeed-ai/wan-2.1/i2v-720p-lora`
 */
export function modelsFor(config: Config, model: string): string[] {
  const own = familiesOf(config).get(model.split('/').slice(0, 2).join('/')) ?? [otherModels];
  return [
    ...new Set(own.flatMap((id) => (id === otherModels ? config.KINORA_SERVING_MODELS : id))),
  ];
}

/** The models that a family's list names before a model: those of KINORA_SERVING_MODELS come before none. */
export function preferredTo(model: string, models: readonly string[]): readonly string[] {
  const place = [model, otherModels, '*'].map((id) => models.indexOf(id)).find((at) => at >= 0);
  return models.slice(0, place ?? 0).filter((id) => id !== otherModels && id !== '*');
}

/**
 * Reads the settings.
 *
 * @throws Error with one line per wrong setting, its name and what is allowed
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const present = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  );
  const parsed = configSchema.safeParse(present);
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new Error(`Settings that cannot be used:\n${lines.join('\n')}`);
}
