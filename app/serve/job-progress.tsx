import { formatSeconds, formatSize } from '../../lib/contract/format';
import type { RunProgress } from '../../lib/predictions/run-state';
import type { CurrentJob } from '../../lib/worker/connection';
import { useNow } from '../shared/browser';
import { RunStage } from '../shared/run-stage';

/** The current job: where it is, and what it looks like. */
export function JobProgress({ job, progress }: { job: CurrentJob; progress: RunProgress }) {
  return (
    <>
      <RunStage progress={progress} />
      <JobFacts job={job} secondsRemaining={progress.secondsRemaining} />
    </>
  );
}

/** Whose job it is nobody needs to know; what it takes, somebody may. */
export function JobFacts(props: { job: CurrentJob; secondsRemaining: number | null }) {
  const { job, secondsRemaining } = props;
  const elapsed = Math.max(0, useNow() - job.startedAt) / 1000;
  const facts = [
    ['Job', job.id.slice(0, 8)],
    ['Attempt', `${job.attempt}`],
    ['Video', `${formatSize(job.size)}, ${job.duration} s`],
    ['LoRAs', `${job.loras}`],
    ['Elapsed', formatSeconds(elapsed)],
    ['Remaining', secondsRemaining === null ? '–' : `about ${formatSeconds(secondsRemaining)}`],
  ];
  return (
    <dl className="facts">
      {facts.map(([term, value]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
