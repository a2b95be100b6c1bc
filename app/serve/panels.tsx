import { formatSeconds, formatSize } from '../../lib/contract/format';
import type { PromptOptimizationStatus } from '../../lib/contract/prompt-optimization';
import type { SafetyStatus } from '../../lib/contract/safety';
import type { ServedJob, ServeOptions } from '../../lib/worker/api';
import { type Connection, isConnected } from '../../lib/worker/connection';
import { outcomeNames } from '../../lib/worker/serve-page';

/** Which jobs this worker takes, of whom, and who can see their content. */
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
              <dd>{identity.shared ? `${identity.owner} and owners who share` : identity.owner}</dd>
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
        The operator of a worker can see the prompts and images of its jobs; they are sent through
        the server and this browser. They are not stored here: this page shows only the id, time and
        outcome of each job, until the tab is closed.
      </p>
    </section>
  );
}

function queueSentence(waiting: number): string {
  if (waiting === 0) return 'empty';
  return waiting === 1 ? '1 job waits' : `${waiting} jobs wait`;
}

function accepts(models: readonly string[], model: string): boolean {
  return models.length === 0 || models.includes('*') || models.includes(model);
}

const verdictNames: Readonly<Record<SafetyStatus, string>> = {
  clear: 'Check: clear',
  flagged: 'Check: flagged',
  unverified: 'Check: no verdict',
  off: 'No check asked for',
};

const promptNames: Readonly<Record<PromptOptimizationStatus, string>> = {
  used: 'Prompt improved',
  edited: 'Prompt improved',
  salvaged: 'Prompt extended',
  unchanged: 'Prompt unchanged',
  unavailable: 'No language model',
  failed: 'Prompt unchanged',
};

/** The jobs that have ended since the page was opened. */
export function ServedList(props: { served: readonly ServedJob[]; completed: number }) {
  const { served, completed } = props;
  if (served.length === 0) return null;
  return (
    <section className="panel served" aria-labelledby="served-title">
      <h2 id="served-title">
        {completed === 1 ? '1 job done' : `${completed} jobs done`} since this page was opened
      </h2>
      <ul>
        {served.map((job) => (
          <li key={`${job.id} ${job.attempt} ${job.endedAt}`} data-outcome={job.outcome}>
            <span className="served-id">{job.id.slice(0, 8)}</span>
            <span className="served-outcome">{outcomeNames[job.outcome]}</span>
            <span>{formatSeconds(job.seconds)}</span>
            {job.safety && <span>{verdictNames[job.safety]}</span>}
            {job.prompt && <span>{promptNames[job.prompt]}</span>}
            <time dateTime={new Date(job.endedAt).toISOString()}>
              {new Date(job.endedAt).toLocaleTimeString()}
            </time>
            {job.error && (
              <span className="served-error">
                {job.error.message} {job.error.remedy}
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
