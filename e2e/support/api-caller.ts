import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { ApiPrediction, SubmitInput } from '../../lib/contract/v3';
import { picture } from './fixtures';

const model = 'kinora/wan-2.2/i2v-720p-lora';

/** Calls the API with a key, and can cancel everything that it has submitted. */
export class ApiCaller {
  readonly #submitted: string[] = [];

  constructor(
    readonly origin: string,
    readonly key: string,
  ) {}

  /** Submits a video of one step, or of what is said otherwise. @returns the prediction's id */
  async submit(input: Partial<SubmitInput> = {}): Promise<string> {
    const image = `data:image/png;base64,${picture().toString('base64')}`;
    const quick = {
      prompt: 'A lantern swings',
      num_inference_steps: 1,
      guidance_scale: 1,
      seed: 7,
    };
    const body = JSON.stringify({ image, ...quick, ...input });
    const { id } = await this.json<ApiPrediction>('POST', `/api/v3/${model}`, body);
    this.#submitted.push(id);
    return id;
  }

  /** A link's token as `npm run keys -- sign-in` prints it: it lets one browser in, once. */
  async signInToken(): Promise<string> {
    const body = JSON.stringify({ kind: 'sign-in', name: 'A link' });
    return (await this.json<{ key: string }>('POST', '/api/admin/keys', body)).key;
  }

  /** The prediction now; with `wait`, at its end or after so many seconds (8 at most). */
  result(id: string, wait = 0): Promise<ApiPrediction> {
    return this.json('GET', `/api/v3/predictions/${id}/result${wait > 0 ? `?wait=${wait}` : ''}`);
  }

  /** Waits for the end. @throws Error after so many minutes */
  async ended(id: string, minutes = 3): Promise<ApiPrediction> {
    const deadline = performance.now() + minutes * 60_000;
    for (;;) {
      const prediction = await this.result(id, 8);
      if (['completed', 'failed'].includes(prediction.status)) return prediction;
      if (performance.now() > deadline) throw new Error(`${id} is still ${prediction.status}.`);
    }
  }

  cancel(id: string): Promise<ApiPrediction> {
    return this.json('POST', `/api/v3/predictions/${id}/cancel`);
  }

  /** Cancels what is unfinished, so that the next worker finds an empty queue. */
  async cancelAll(): Promise<void> {
    for (const id of this.#submitted) {
      const { status } = await this.result(id);
      if (status === 'created' || status === 'processing') await this.cancel(id);
    }
  }

  /** Uploads a file. @returns the name to use it by */
  async upload(file: string): Promise<string> {
    const form = new FormData();
    form.set('file', new Blob([await readFile(file)]), path.basename(file));
    const { filename } = await this.json<{ filename: string }>(
      'POST',
      '/api/v3/media/upload/binary',
      form,
    );
    return filename;
  }

  /** The events of a prediction until its end, or until `enough`, as text. */
  async events(id: string, enough: (seen: ReadonlySet<string>) => boolean): Promise<string> {
    const headers = { Authorization: `Bearer ${this.key}` };
    const url = `${this.origin}/api/v3/predictions/${id}/events`;
    const { body } = await fetch(url, { headers });
    let text = '';
    const seen = new Set<string>();
    for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      for (const [, name = ''] of text.matchAll(/^event: ?(\w+)$/gm)) seen.add(name);
      if (enough(seen)) break;
    }
    return text;
  }

  /** @throws Error with what the server answered where that is not 200 */
  async json<T>(method: string, address: string, body?: string | FormData): Promise<T> {
    const response = await fetch(new URL(address, this.origin), {
      method,
      headers: {
        Authorization: `Bearer ${this.key}`,
        ...(typeof body === 'string' && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${address}: ${response.status} ${text}`);
    return (JSON.parse(text) as { data: T }).data;
  }
}
