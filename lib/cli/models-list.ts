import {
  formatBytes,
  formatPercent,
  type LibraryEntry,
  type LibrarySnapshot,
  type LoraEntry,
  progressOf,
  type ToolManifest,
} from '../contract';
import { isConverted } from '../pipeline/installation';

/**
 * Models, LoRAs and free space, as lines.
 *
 * @param freeBytes free space on the disk of `home`; what the browser reports lags behind
 */
export function listText(
  { hub, models: all, tools, loras, bytesStored }: LibrarySnapshot,
  home: string,
  freeBytes: number,
): string {
  const models = all.filter(({ hidden }) => !hidden);
  const idWidth = Math.max(...[...models, ...tools].map(({ manifest }) => manifest.id.length));
  const nameWidth = Math.max(0, ...loras.map(({ name }) => name.length));
  return [
    ...models.map((entry) => `${entry.manifest.id.padEnd(idWidth)}  ${stateOf(entry)}`),
    '',
    'Language models, for the prompt optimiser',
    ...tools.map((entry) => `${entry.manifest.id.padEnd(idWidth)}  ${stateOf(entry)}`),
    ...(loras.length > 0 ? ['', 'LoRAs'] : []),
    ...loras.map((lora) => `${lora.name.padEnd(nameWidth)}  ${loraFacts(lora)}`),
    '',
    `folder    ${home}`,
    `hub       ${hub}`,
    `storage   ${formatBytes(bytesStored)} in use, ${formatBytes(freeBytes)} free`,
  ].join('\n');
}

function bytesOf({ parts, shared = [] }: LibraryEntry): number {
  const own = parts.filter(({ component }) => !shared.includes(component));
  return own.reduce((sum, { bytesStored }) => sum + bytesStored, 0);
}

function stateOf(entry: LibraryEntry): string {
  const { manifest, origin, ready, parts, shared = [] } = entry;
  const lacks = parts.some(
    ({ component, status }) => component === 'safety_checker' && status !== 'complete',
  );
  const checker = lacks ? ['quick safety check only'] : [];
  if (origin === 'bundled') return ['ready', 'comes with Kinora', ...checker].join(', ');
  const kept = `${formatBytes(bytesOf(entry))} on disk`;
  const converted = parts.some(({ component }) => isConverted(component));
  const precision = converted ? entry.precision : null;
  if (ready) return ['ready', precision, kept, ...checker].filter(Boolean).join(', ');
  const { bytesDone, bytesTotal } = progressOf(
    parts.filter(({ component }) => !shared.includes(component)),
  );
  if (bytesDone === 0) return ['not downloaded', ...sizeOf(manifest)].join(', ');
  // Absent parts are not in the sum.
  const isPart = bytesTotal !== null && bytesDone < bytesTotal;
  const share = isPart ? ` (${formatPercent(bytesDone / bytesTotal)})` : '';
  return `incomplete, ${formatBytes(bytesDone)}${share} fetched`;
}

/** What a listed language model will take, where that is known. */
function sizeOf({ sources }: ToolManifest): string[] {
  const [first, ...others] = sources.flatMap(({ files }) => files);
  return first?.bytes && others.length === 0 ? [formatBytes(first.bytes)] : [];
}

function loraFacts({ bytes, rank, base, noise, triggerWords }: LoraEntry): string {
  const words = triggerWords.length > 0 ? [`words: ${triggerWords.join(', ')}`] : [];
  const half = noise ? [`${noise} noise`] : [];
  return [formatBytes(bytes), `rank ${rank}`, base, ...half, ...words].join(', ');
}
