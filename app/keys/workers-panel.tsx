import Link from 'next/link';
import type { WorkerRecord } from '../../lib/contract/v3/endpoints';
import { lacksWorker, workersSentence } from './keys-view';

const states = { idle: 'waits for a job', busy: 'at work', paused: 'paused' } as const;

/** Who would do the work. */
export function WorkersPanel({ workers }: { workers: readonly WorkerRecord[] }) {
  return (
    <section className="panel" aria-labelledby="workers-title">
      <h2 id="workers-title">Workers</h2>
      <p>{workersSentence(workers)}</p>
      {workers.length > 0 && (
        <ul className="keys-workers">
          {workers.map((worker) => (
            <li key={worker.id} data-state={worker.state}>
              <strong>{worker.name}</strong>
              <span>
                {worker.model}, {worker.precision}: {states[worker.state]}
              </span>
            </li>
          ))}
        </ul>
      )}
      {lacksWorker(workers) && (
        <p className="keys-hint">
          A key without a worker does nothing: its predictions wait until one takes them.
        </p>
      )}
      <p>
        <Link className="button" href="/serve" prefetch={false}>
          Serve with this browser
        </Link>
      </p>
    </section>
  );
}
