import { phaseNames } from '../../lib/contract/format';
import type { SkipReason } from '../../lib/contract/v3/worker';
import type { ServedJob } from '../../lib/worker/api';
import type { Connection, Next, Skipped } from '../../lib/worker/connection';

/** Why a job was not given, as the end of "3 jobs wait, but …". */
const skipSentences: Readonly<Record<SkipReason, string>> = {
  model: 'this server does not give its jobs to this model',
  size: 'they want a size that it does not make',
  loras: 'they use LoRAs',
  precision: 'this server does not give its jobs to weights of this precision',
  duration: 'they are longer than it takes',
  'not-ready': 'their images are still being fetched',
};

/** How a job ended, in a word. */
export const outcomeNames: Readonly<Record<ServedJob['outcome'], string>> = {
  completed: 'Done',
  failed: 'Failed',
  lost: 'Cancelled or taken over',
  released: 'Handed back',
};

/** What the connection is called. */
export function titleOf(connection: Connection): string {
  switch (connection.status) {
    case 'disconnected':
      return 'Not connected';
    case 'connecting':
      return 'Connecting …';
    case 'refused':
      return 'Refused';
    case 'reconnecting':
      return 'Connection lost';
    case 'idle':
      return 'Ready for jobs';
    case 'paused':
      return 'Paused';
    case 'waiting':
      return 'Waiting for the GPU';
    case 'working':
      return 'Making a video';
    case 'uploading':
      return 'Sending the video';
  }
}

/** What a person should know about it, besides errors; empty where the title says all. */
export function sentencesOf(connection: Connection): readonly string[] {
  switch (connection.status) {
    case 'disconnected':
      return connection.error
        ? []
        : ['Once it is connected, this tab makes the videos that programs ask this server for.'];
    case 'reconnecting':
      return [connection.reason];
    case 'idle':
      return waitingSentences(connection.skipped);
    case 'paused':
      return [
        connection.error
          ? 'No job is taken for five minutes, or until you resume.'
          : 'No job is taken until you resume.',
      ];
    case 'waiting':
      return ['The studio, or another tab, is using the GPU. Jobs are taken when that ends.'];
    case 'working':
    case 'uploading':
      return [...unanswered(connection.answered), ...nextSentence[connection.next]];
    default:
      return [];
  }
}

function waitingSentences(skipped: Skipped): readonly string[] {
  const skips = skippedSentences(skipped);
  return skips.length > 0 ? skips : ['A job begins by itself as soon as there is one.'];
}

const nextSentence: Readonly<Record<Next, readonly string[]>> = {
  claim: [],
  pause: ['It pauses after this job.'],
};

function unanswered(answered: boolean): readonly string[] {
  if (answered) return [];
  return ['The server does not answer right now. The work goes on, and it is tried again.'];
}

/** Each reason why jobs wait and are not given, as a sentence. */
export function skippedSentences(skipped: Skipped): readonly string[] {
  return Object.entries(skipped).map(([reason, count]) => {
    const jobs = count === 1 ? '1 job waits' : `${count} jobs wait`;
    return `${jobs}, but ${skipSentences[reason as SkipReason]}.`;
  });
}

/** What a screen reader hears: each new topic at once, within one now and then. */
export function announce(connection: Connection): { topic: string; text: string } {
  const title = titleOf(connection).replace(/ …$/, '');
  if (connection.status !== 'working') return { topic: connection.status, text: `${title}.` };
  const { phase, step, steps } = connection.progress;
  const name = phase === null ? 'Starting' : phaseNames[phase];
  const rest = phase === 'denoise' ? `, step ${step} of ${steps}` : '';
  return { topic: `working ${connection.job.id} ${phase}`, text: `${title}: ${name}${rest}.` };
}
