import { useEffect, useRef, useState } from 'react';
import type { RunState } from '../../lib/predictions/run-state';
import { formatSeconds } from './format';

/** Shortest time between two announcements within one phase, in milliseconds. */
const quietMs = 15_000;

/** Tells a screen reader how far it is: each new phase, and within one every now and then. */
export function Announcer({ run }: { run: RunState }) {
  const [text, setText] = useState('');
  const last = useRef({ phase: '', at: 0 });
  const phase = phaseOf(run);
  const message = messageOf(run);
  useEffect(() => {
    const now = Date.now();
    if (phase === last.current.phase && now - last.current.at < quietMs) return;
    last.current = { phase, at: now };
    setText(message);
  }, [phase, message]);
  return (
    <p className="visually-hidden" aria-live="polite">
      {text}
    </p>
  );
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
