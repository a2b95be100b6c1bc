/** A submission as a public client or script sends it, without image and prompt, which {@link recorded} adds. */
export interface RecordedSubmission {
  readonly client: string;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

const sdk = (name: string) => ({
  'User-Agent': 'python-requests/2.34.2',
  'Accept-Encoding': 'gzip, deflate',
  Accept: '*/*',
  'X-Client-Name': name,
  'X-Client-Version': '2.0.5',
  'X-Client-OS': 'linux',
});

/**
 * The headers of the clients that PyPI has, recorded while the unmodified packages ran against this server:
 * `wavespeed` 2.0.5, `langchain-wavespeed` 0.1.3 and `llama-index-tools-wavespeed` 0.1.3.
 */
export const clientHeaders = {
  wavespeed: sdk('wavespeed-python'),
  'langchain-wavespeed': sdk('langchain-wavespeed'),
  'llama-index-tools-wavespeed': sdk('llama-index'),
} as const;

/** What the models of other servers are asked for, in scripts and clients that people have published. */
export const recorded: readonly RecordedSubmission[] = [
  {
    client: 'wavespeed: run',
    path: '/api/v3/kinora/wan-2.2/i2v-720p-lora',
    body: { seed: 7 },
  },
  {
    client: 'wavespeed: run with the webhook in the name of the model',
    path: '/api/v3/wavespeed-ai/wan-2.1/i2v-720p-lora-ultra-fast?webhook=http://127.0.0.1:9/hook',
    body: { seed: 7 },
  },
  {
    client: 'wavespeed: run_no_throw',
    path: '/api/v3/wavespeed-ai/wan-2.2/i2v-720p',
    body: { seed: 7, last_image: '' },
  },
  {
    client: 'langchain-wavespeed: WaveSpeedRunModel',
    path: '/api/v3/wavespeed-ai/wan-2.2/i2v-5b-720p',
    body: { seed: 7 },
  },
  {
    client: 'llama-index-tools-wavespeed: run_model',
    path: '/api/v3/wavespeed-ai/wan-2.2/i2v-720p-ultra-fast',
    body: { seed: 7 },
  },
  {
    client: 'a script for the hosted 5B with LoRA',
    path: '/api/v3/wavespeed-ai/wan-2.2/i2v-5b-720p-lora',
    body: { loras: [], seed: -1 },
  },
  {
    client: 'a script that pairs LoRAs',
    path: '/api/v3/wavespeed-ai/wan-2.2/i2v-720p-lora',
    body: {
      negative_prompt: '',
      last_image: '',
      loras: [],
      high_noise_loras: [{ path: 'owner/name/first.safetensors', scale: 1 }],
      low_noise_loras: [{ path: 'owner/name/second.safetensors', scale: 0.5 }],
      duration: 5,
      seed: -1,
    },
  },
  {
    client: 'a script of the older path',
    path: '/api/v2/wavespeed-ai/wan-2.2/i2v-720p-ultra-fast',
    body: { negative_prompt: '', last_image: '', duration: 5, seed: -1 },
  },
  {
    client: 'a script with its webhook in the body',
    path: '/api/v3/wavespeed-ai/wan-2.1/i2v-720p-lora',
    body: { size: '1280*720', webhook_url: 'http://127.0.0.1:9/hook' },
  },
  {
    client: 'a provider of an AI SDK',
    path: '/api/v3/kinora/wan-2.2/i2v-720p-lora',
    body: { aspect_ratio: '9:16', resolution: '720p', duration: 5, n: 1, generate_audio: false },
  },
];
