import type { SkipReason } from '../../lib/contract/v3';
import type { Connection, Next, Skipped } from '../../lib/worker/connection';
import { t } from '../texts';
import '../texts/en/serve';

/** Heading of the connection panel. */
export function titleOf(connection: Connection): string {
  switch (connection.status) {
    case 'disconnected':
      return t('serve.notConnected');
    case 'connecting':
      return t('serve.connectingNow');
    case 'refused':
      return t('serve.refused');
    case 'reconnecting':
      return t('serve.connectionLost');
    case 'idle':
      return t('serve.readyForJobs');
    case 'paused':
      return t('serve.paused');
    case 'waiting':
      return t('serve.waitingForGpu');
    case 'working':
      return t('serve.making');
    case 'uploading':
      return t('serve.sendingVideo');
  }
}

/** Sentences below the heading, besides errors; none if the heading is enough. */
export function sentencesOf(connection: Connection): readonly string[] {
  switch (connection.status) {
    case 'disconnected':
      return connection.error ? [] : [t('serve.whenConnected')];
    case 'reconnecting':
      return [connection.reason];
    case 'idle':
      return waitingSentences(connection.skipped);
    case 'paused':
      return [connection.error ? t('serve.pausedAfterError') : t('serve.pausedUntil')];
    case 'waiting':
      return [t('serve.gpuElsewhere')];
    case 'working':
    case 'uploading':
      return [...unanswered(connection.answered), ...nextSentences(connection.next)];
    default:
      return [];
  }
}

function waitingSentences(skipped: Skipped): readonly string[] {
  const skips = Object.entries(skipped).map(([reason, count]) =>
    t('serve.skipped', { reason: t(`serve.skips.${reason as SkipReason}`), count }),
  );
  return skips.length > 0 ? skips : [t('serve.nextStarts')];
}

function nextSentences(next: Next): readonly string[] {
  return next === 'pause' ? [t('serve.pausesAfter')] : [];
}

function unanswered(answered: boolean): readonly string[] {
  if (answered) return [];
  return [t('serve.unanswered')];
}

/** Topic and text for screen readers, see `LiveText`. */
export function announce(connection: Connection): { topic: string; text: string } {
  const title = titleOf(connection).replace(/ ?…$/, '');
  if (connection.status !== 'working')
    return { topic: connection.status, text: t('serve.sentence', { text: title }) };
  const { phase, step, steps } = connection.progress;
  const name = phase === null ? t('shared.starting') : t(`names.phase.${phase}`);
  const values = { title, name, step, steps };
  return {
    topic: `working ${connection.job.id} ${phase}`,
    text: phase === 'denoise' ? t('serve.workingStep', values) : t('serve.working', values),
  };
}
