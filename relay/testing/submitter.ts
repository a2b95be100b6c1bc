import { setTimeout as delay } from 'node:timers/promises';

/** A picture of 2×2 pixels. */
const image =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg==';

/** Where predictions are submitted. */
export const submissionPath = '/api/v3/kinora/wan-2.2/i2v-720p-lora';

/** The smallest one. */
export const submission = { image, prompt: 'a boat', num_inference_steps: 1 };

/** What a submission and a result look like, as far as the tests read them. */
export interface Prediction {
  readonly id: string;
  readonly status: 'created' | 'processing' | 'completed' | 'failed';
  readonly outputs: readonly string[];
  readonly error: string;
  /** Why it failed; absent else. */
  readonly code?: number;
}

/** Submits one prediction. @returns it, or null where the server gave no answer of success */
export async function submit(
  origin: string,
  apiKey: string,
  webhook: string,
): Promise<Prediction | null> {
  const response = await fetch(
    `${origin}${submissionPath}?webhook=${encodeURIComponent(webhook)}`,
    {
      method: 'POST',
      headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(submission),
      signal: AbortSignal.timeout(30_000),
      // Nodes are killed in these tests: not acknowledged.
    },
  ).catch(() => null);
  if (response?.status !== 200) return null;
  const answer = await response.json().catch(() => null);
  return answer?.data ?? null;
}

/** Submits until the signal, a server that is away included. @param acknowledged grows with each id */
export async function keepSubmitting(
  origin: string,
  apiKey: string,
  webhook: string,
  acknowledged: Set<string>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const prediction = await submit(origin, apiKey, webhook);
    if (prediction) acknowledged.add(prediction.id);
    await delay(prediction ? 5 : 50);
  }
}

/** Where a prediction stands. */
export async function result(origin: string, apiKey: string, id: string): Promise<Prediction> {
  const response = await fetch(`${origin}/api/v3/predictions/${id}/result`, {
    headers: { Authorization: `Bearer ${apiKey}` },
  });
  const answer = await response.json();
  if (response.status !== 200) throw new Error(`${id}: ${JSON.stringify(answer)}`);
  return answer.data;
}

/** Waits until all have ended. @throws Error naming one that has not within the time */
export async function untilEnded(
  origin: string,
  apiKey: string,
  ids: Iterable<string>,
  limitMs: number,
): Promise<Prediction[]> {
  const deadline = performance.now() + limitMs;
  const ended: Prediction[] = [];
  for (const id of ids) {
    for (;;) {
      const prediction = await result(origin, apiKey, id);
      if (prediction.status === 'completed' || prediction.status === 'failed') {
        ended.push(prediction);
        break;
      }
      if (performance.now() > deadline) throw new Error(`${id} is still ${prediction.status}.`);
      await delay(50);
    }
  }
  return ended;
}
