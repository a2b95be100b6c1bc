import { formatSize } from '../../lib/contract/format';
import type { ServeOptions } from '../../lib/worker/api';
import { type Connection, isConnected } from '../../lib/worker/connection';

/** Which jobs this worker takes, whose, and who sees what. */
export function TakesPanel(props: {
  options: Pick<ServeOptions, 'model' | 'precision' | 'sizes'> | null;
  connection: Connection;
}) {
  const { options, connection } = props;
  const identity = isConnected(connection) ? connection.identity : null;
  return (
    <section className="panel takes" aria-labelledby="takes-title">
      <h2 id="takes-title">What it takes</h2>
      {options && (
        <dl className="facts">
          <div>
            <dt>Model</dt>
            <dd>{options.model}</dd>
          </div>
          <div>
            <dt>Precision</dt>
            <dd>{options.precision}</dd>
          </div>
          <div>
            <dt>Sizes</dt>
            <dd>{options.sizes.map(formatSize).join(', ')}</dd>
          </div>
          <div>
            <dt>LoRAs</dt>
            <dd>up to 3</dd>
          </div>
          <div>
            <dt>Length</dt>
            <dd>5 to 10 s</dd>
          </div>
          {identity && (
            <div>
              <dt>Jobs of</dt>
              <dd>{identity.shared ? `${identity.owner}, and who shares` : identity.owner}</dd>
            </div>
          )}
          {identity && (
            <div>
              <dt>Queue</dt>
              <dd>{queueSentence(identity.waiting)}</dd>
            </div>
          )}
        </dl>
      )}
      {identity && options && !accepts(identity.accepts_models, options.model) && (
        <p className="field-error">
          This server gives its jobs to {identity.accepts_models.join(' or ')}, and not to this
          model.
        </p>
      )}
      <p className="field-hint">
        Whoever runs a worker can see the prompts and images of the jobs it takes; they pass through
        the server and this browser. They are not kept here: only a job’s number, time and outcome
        are shown, until this tab is closed.
      </p>
    </section>
  );
}

/** It is not asked for again, so the words say of when it is. */
function queueSentence(waiting: number): string {
  const jobs = waiting === 1 ? '1 job' : `${waiting} jobs`;
  return `${waiting === 0 ? 'empty' : jobs} at the start`;
}

function accepts(models: readonly string[], model: string): boolean {
  return models.length === 0 || models.includes('*') || models.includes(model);
}
