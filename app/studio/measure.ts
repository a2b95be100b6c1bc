import type { Phase } from '../../lib/contract/progress';
import type { RunProgress } from '../../lib/predictions/run-state';
import { formatBytes } from './format';

/** What the phases are called. */
export const phaseNames: Readonly<Record<Phase, string>> = {
  load: 'Load model',
  text: 'Read prompt',
  image: 'Read image',
  denoise: 'Paint motion',
  decode: 'Decode frames',
  finish: 'Write file',
};

/** One line about the phase, with the numbers that it has. */
export function measureOf(progress: RunProgress): string {
  const { phase, component, bytes, step, steps, frame, frames, tile } = progress;
  if (phase === null) return 'Starting the engine';
  if (phase === 'denoise') return `Step ${step} of ${steps}`;
  if (phase === 'decode' && tile) {
    return `Tile ${tile.tile} of ${tile.tiles}, frame ${tile.frame} of ${tile.frames}`;
  }
  if (phase === 'decode') return frames > 0 ? `Frame ${frame} of ${frames}` : phaseNames[phase];
  if (phase !== 'load') return phaseNames[phase];
  const what = component ? `Loading ${component.replaceAll('_', ' ')}` : 'Loading the model';
  return bytes ? `${what} · ${formatBytes(bytes.done)} of ${formatBytes(bytes.total)}` : what;
}
