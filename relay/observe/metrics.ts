import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { WorkerRecord } from '../../lib/contract/v3';
import type { Jobs } from '../jobs';
import { Kept } from '../kept';

const attemptOutcomes = ['completed', 'failed', 'requeued', 'released', 'expired'] as const;
const deliveryOutcomes = ['delivered', 'retry', 'exhausted'] as const;

/** How long the depth of the queue is used, in milliseconds: for one scrape. */
const sharedMs = 100;
/** Upper bounds in seconds. The longest answer is a synchronous submission's. */
const answerSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 100];
const deliverySeconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15];
const inferenceSeconds = [1, 5, 15, 30, 60, 120, 300, 600, 1200, 2400, 4800, 10_800];

/** Values that are looked up at each scrape. */
export interface MetricSources {
  depth(): ReturnType<Jobs['depth']>;
  workers(): Promise<readonly Pick<WorkerRecord, 'state'>[]>;
  heldClaims(): number;
}

/**
 * The metrics of one node in their own registry, with the prefix `kinora_`. Gauges are looked up at each
 * scrape; one that fails (the database is down) is left out of that scrape, and the others stay.
 */
export function createMetrics(sources: MetricSources) {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, prefix: 'kinora_' });

  /** A gauge, also by state; what is not known is left out of a scrape. */
  const gauge = (
    name: string,
    help: string,
    values: () => Promise<number | Readonly<Record<string, number>>>,
  ) =>
    new Gauge({
      name,
      help,
      labelNames: ['state'],
      registers,
      async collect() {
        const now = await values().catch(() => null);
        this.reset();
        if (typeof now === 'number') this.set(now);
        else for (const [state, value] of Object.entries(now ?? {})) this.set({ state }, value);
      },
    });
  // Both gauges of the queue are collected at the same time: they share one query.
  const depths = new Kept<Awaited<ReturnType<Jobs['depth']>>>(sharedMs, 1);
  gauge(
    'kinora_predictions',
    'Unfinished predictions of all nodes: waiting for a worker, or being processed by one.',
    async () => {
      const { waiting, processing } = await depths.get('', sources.depth);
      return { waiting, processing };
    },
  );
  gauge(
    'kinora_oldest_waiting_seconds',
    'Age of the prediction that has waited longest for a worker.',
    async () => (await depths.get('', sources.depth)).oldestSeconds,
  );
  gauge('kinora_workers', 'Recently seen workers of all nodes, by state.', async () => {
    const counts = { idle: 0, busy: 0, paused: 0 };
    for (const { state } of await sources.workers()) counts[state] += 1;
    return counts;
  });
  gauge('kinora_held_claims', 'Claims of waiting workers that this node holds open.', async () =>
    sources.heldClaims(),
  );

  /** Exists from the start, at 0, so that the first event is seen as an increase. */
  const counter = (name: string, help: string, outcomes: readonly string[]) => {
    const metric = new Counter({ name, help, labelNames: ['outcome'], registers });
    for (const outcome of outcomes) metric.inc({ outcome }, 0);
    return metric;
  };
  const attempts = counter(
    'kinora_attempts_total',
    'Attempts of workers that ended on this node, by outcome.',
    attemptOutcomes,
  );
  const deliveries = counter(
    'kinora_webhook_attempts_total',
    'Attempts to deliver a webhook, by result; exhausted ones are not tried again.',
    deliveryOutcomes,
  );
  const histogram = (name: string, help: string, buckets: number[], labelNames: string[] = []) =>
    new Histogram({ name, help, buckets, labelNames, registers });
  const deliveryTimes = histogram(
    'kinora_webhook_duration_seconds',
    'How long an attempt to deliver a webhook took.',
    deliverySeconds,
  );
  const answers = histogram(
    'kinora_http_request_duration_seconds',
    'How long requests of the API took, by operation and class of status.',
    answerSeconds,
    ['operation', 'status'],
  );
  const inferences = histogram(
    'kinora_inference_duration_seconds',
    'How long the GPU computed for a completed prediction, as reported by its worker.',
    inferenceSeconds,
  );

  return {
    registry,
    request(operation: string, status: number, seconds: number): void {
      answers.observe({ operation, status: `${Math.floor(status / 100)}xx` }, seconds);
    },
    attempt: (outcome: (typeof attemptOutcomes)[number]): void => attempts.inc({ outcome }),
    delivery(outcome: (typeof deliveryOutcomes)[number], seconds: number): void {
      deliveries.inc({ outcome });
      deliveryTimes.observe(seconds);
    },
    inference: (seconds: number): void => inferences.observe(seconds),
  };
}

export type Metrics = ReturnType<typeof createMetrics>;
