import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createMetrics, type MetricSources } from './metrics';

const sources: MetricSources = {
  depth: async () => ({ waiting: 7, processing: 2, oldestSeconds: 31 }),
  workers: async () => [{ state: 'idle' }, { state: 'busy' }, { state: 'busy' }],
  heldClaims: () => 3,
};

/** Sample lines of a scrape. */
async function scrape(metrics: ReturnType<typeof createMetrics>): Promise<string[]> {
  const text = await metrics.registry.metrics();
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

describe('metrics', () => {
  it('carry the prefix and say what they are, all of them', async () => {
    const metrics = createMetrics(sources);
    const described = await metrics.registry.getMetricsAsJSON();
    expect(described.length).toBeGreaterThan(15);
    for (const { name, help } of described) {
      expect(name).toMatch(/^kinora_/);
      expect(help.length).toBeGreaterThan(10);
    }
    expect(described.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'kinora_predictions',
        'kinora_oldest_waiting_seconds',
        'kinora_workers',
        'kinora_held_claims',
        'kinora_attempts_total',
        'kinora_webhook_attempts_total',
        'kinora_webhook_duration_seconds',
        'kinora_http_request_duration_seconds',
        'kinora_inference_duration_seconds',
        'kinora_process_cpu_seconds_total',
      ]),
    );
  });

  it('look the gauges up at each scrape', async () => {
    const lines = await scrape(createMetrics(sources));
    expect(lines).toEqual(
      expect.arrayContaining([
        'kinora_predictions{state="waiting"} 7',
        'kinora_predictions{state="processing"} 2',
        'kinora_oldest_waiting_seconds 31',
        'kinora_workers{state="idle"} 1',
        'kinora_workers{state="busy"} 2',
        'kinora_workers{state="paused"} 0',
        'kinora_held_claims 3',
      ]),
    );
  });

  it('still tell the rest when the database does not answer, and no stale numbers', async () => {
    let isDown = false;
    const depth = () => (isDown ? Promise.reject(new Error('down')) : sources.depth());
    const metrics = createMetrics({ ...sources, depth });
    const depths = expect.stringMatching(/^kinora_(predictions|oldest)/);
    expect(await scrape(metrics)).toContainEqual(depths);
    isDown = true;
    // The depth is read once for a scrape.
    await delay(150);
    const lines = await scrape(metrics);
    expect(lines).not.toContainEqual(depths);
    expect(lines).toContain('kinora_workers{state="busy"} 2');
  });

  it('count what happened, from 0', async () => {
    const metrics = createMetrics(sources);
    expect(await scrape(metrics)).toEqual(
      expect.arrayContaining([
        'kinora_attempts_total{outcome="expired"} 0',
        'kinora_webhook_attempts_total{outcome="exhausted"} 0',
      ]),
    );
    metrics.attempt('expired');
    metrics.delivery('exhausted', 0.2);
    metrics.request('submit', 200, 0.004);
    metrics.request('submit', 429, 0.002);
    metrics.inference(90);
    expect(await scrape(metrics)).toEqual(
      expect.arrayContaining([
        'kinora_attempts_total{outcome="expired"} 1',
        'kinora_webhook_attempts_total{outcome="exhausted"} 1',
        'kinora_webhook_duration_seconds_bucket{le="0.25"} 1',
        'kinora_http_request_duration_seconds_count{operation="submit",status="2xx"} 1',
        'kinora_http_request_duration_seconds_count{operation="submit",status="4xx"} 1',
        'kinora_inference_duration_seconds_bucket{le="60"} 0',
        'kinora_inference_duration_seconds_bucket{le="120"} 1',
      ]),
    );
  });
});
