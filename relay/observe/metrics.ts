import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { WorkerRecord } from '../../lib/contract/v3';
import type { QueueDepth } from '../jobs/queries';

const attemptOutcomes = ['completed', 'failed', 'requeued', 'released', 'expired'] as const;
const deliveryOutcomes = ['delivered', 'retry', 'exhausted'] as const;
const workerStates = ['idle', 'busy', 'paused'] as const;

/** Upper bounds in seconds. The longest answer is a synchronous submission's. */
const answerSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 100];
const deliverySeconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15];
const inferenceSeconds = [1, 5, 15, 30, 60, 120, 300, 600, 1200, 2400, 4800, 10_800];

/** What is looked up at each scrape. */
export interface MetricSources {
  depth(): Promise<QueueDepth>;
  /** Recently seen workers of all nodes. */
  workers(): Promise<readonly Pick<WorkerRecord, 'state'>[]>;
  /** Claims that this node holds. */
  heldClaims(): number;
}

/**
 * The metrics of one node in their own registry, with the prefix `kinora_`. Gauges are looked up at each
 * scrape; one that fails (the database is down) is left out of that scrape, and the others stay.
 */
export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  let sources: MetricSources | null = null;
  collectDefaultMetrics({ register: registry, prefix: 'kinora_' });

  // Both gauges of the queue are collected at the same time: they share one query.
  let looking: Promise<QueueDepth | null> | null = null;
  const depth = (): Promise<QueueDepth | null> => {
    looking ??= Promise.resolve(sources?.depth() ?? null)
      .catch(() => null)
      .finally(() => {
        looking = null;
      });
    return looking;
  };
  new Gauge({
    name: 'kinora_predictions',
    help: 'Unfinished predictions of all nodes: waiting for a worker, or being processed by one.',
    labelNames: ['state'],
    registers,
    async collect() {
      const now = await depth();
      this.reset();
      if (!now) return;
      this.set({ state: 'waiting' }, now.waiting);
      this.set({ state: 'processing' }, now.processing);
    },
  });
  new Gauge({
    name: 'kinora_oldest_waiting_seconds',
    help: 'Age of the prediction that has waited longest for a worker.',
    registers,
    async collect() {
      const now = await depth();
      if (now) this.set(now.oldestSeconds);
      else this.remove();
    },
  });
  new Gauge({
    name: 'kinora_workers',
    help: 'Recently seen workers of all nodes, by state.',
    labelNames: ['state'],
    registers,
    async collect() {
      // Left out of this scrape.
      const workers = await sources?.workers().catch(() => null);
      this.reset();
      if (!workers) return;
      for (const state of workerStates) {
        this.set({ state }, workers.filter((worker) => worker.state === state).length);
      }
    },
  });
  new Gauge({
    name: 'kinora_held_claims',
    help: 'Claims of waiting workers that this node holds open.',
    registers,
    collect() {
      if (sources) this.set(sources.heldClaims());
    },
  });

  const attempts = new Counter({
    name: 'kinora_attempts_total',
    help: 'Attempts of workers that ended on this node, by outcome.',
    labelNames: ['outcome'],
    registers,
  });
  const deliveries = new Counter({
    name: 'kinora_webhook_attempts_total',
    help: 'Attempts to deliver a webhook, by result; exhausted ones are not tried again.',
    labelNames: ['outcome'],
    registers,
  });
  // Counters exist from the start, at 0, so that the first event is seen as an increase.
  for (const outcome of attemptOutcomes) attempts.inc({ outcome }, 0);
  for (const outcome of deliveryOutcomes) deliveries.inc({ outcome }, 0);
  const deliveryTimes = new Histogram({
    name: 'kinora_webhook_duration_seconds',
    help: 'How long an attempt to deliver a webhook took.',
    buckets: deliverySeconds,
    registers,
  });
  const answers = new Histogram({
    name: 'kinora_http_request_duration_seconds',
    help: 'How long requests of the API took, by operation and class of status.',
    labelNames: ['operation', 'status'],
    buckets: answerSeconds,
    registers,
  });
  const inferences = new Histogram({
    name: 'kinora_inference_duration_seconds',
    help: 'How long the GPU computed for a completed prediction, as reported by its worker.',
    buckets: inferenceSeconds,
    registers,
  });

  return {
    registry,
    /** Sets the source of the gauges' values. */
    watch(next: MetricSources): void {
      sources = next;
    },
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
