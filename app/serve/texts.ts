import { phaseNames } from '../../lib/contract/format';
import type { Connection, Next, Skipped } from '../../lib/worker/connection';
import { skippedSentences } from '../../lib/worker/serve-page';

/** Heading of the connection panel. */
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

/** Sentences below the heading, besides errors; none if the heading is enough. */
export function sentencesOf(connection: Connection): readonly string[] {
  switch (connection.status) {
    case 'disconnected':
      return connection.error
        ? []
        : [
            'When it is connected, this tab computes the videos that programs request from this server.',
          ];
    case 'reconnecting':
      return [connection.reason];
    case 'idle':
      return waitingSentences(connection.skipped);
    case 'paused':
      return [
        connection.error
          ? 'This tab takes no job for five minutes, or until you resume.'
          : 'This tab takes no job until you resume.',
      ];
    case 'waiting':
      return [
        'The studio or another tab is using the GPU. This tab takes jobs again when that ends.',
      ];
    case 'working':
    case 'uploading':
      return [...unanswered(connection.answered), ...nextSentence[connection.next]];
    default:
      return [];
  }
}

function waitingSentences(skipped: Skipped): readonly string[] {
  const skips = skippedSentences(skipped);
  return skips.length > 0 ? skips : ['The next job starts automatically.'];
}

const nextSentence: Readonly<Record<Next, readonly string[]>> = {
  claim: [],
  pause: ['It pauses after this job.'],
};

function unanswered(answered: boolean): readonly string[] {
  if (answered) return [];
  return [
    'The server does not respond at the moment. The work continues, and so do the attempts to reach it.',
  ];
}

/** Topic and text for screen readers, see `LiveText`. */
export function announce(connection: Connection): { topic: string; text: string } {
  const title = titleOf(connection).replace(/ …$/, '');
  if (connection.status !== 'working') return { topic: connection.status, text: `${title}.` };
  const { phase, step, steps } = connection.progress;
  const name = phase === null ? 'Starting' : phaseNames[phase];
  const rest = phase === 'denoise' ? `, step ${step} of ${steps}` : '';
  return { topic: `working ${connection.job.id} ${phase}`, text: `${title}: ${name}${rest}.` };
}
