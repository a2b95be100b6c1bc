import type { RunState } from '../../lib/predictions/run-state';
import { formatSeconds } from './format';
import { LiveText } from './live-text';

/** Tells a screen reader how far the run is. */
export function Announcer({ run }: { run: RunState }) {
  return <LiveText topic={phaseOf(run)} text={messageOf(run)} />;
}

function phaseOf(run: RunState): string {
  if (run.status !== 'running') return run.status;
  return `${run.progress.phase} ${run.progress.clip} ${run.progress.paused}`;
}

function messageOf(run: RunState): string {
  if (run.status === 'idle') return '';
  if (run.status === 'waiting') {
    return run.elsewhere ? 'Waiting: another tab is using the GPU.' : 'Starting.';
  }
  const { phase, step, steps, secondsRemaining, paused } = run.progress;
  if (paused) return 'Paused.';
  if (phase !== 'denoise') return phase ? `Phase: ${phase}.` : 'Starting.';
  const rest =
    secondsRemaining === null ? '' : `, about ${formatSeconds(secondsRemaining)} remaining`;
  return `Step ${step} of ${steps}${rest}.`;
}
