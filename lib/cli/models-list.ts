import {
  hasSafetyChecker,
  isBundled,
  type LibrarySnapshot,
  type LoraEntry,
  type ModelEntry,
} from '../contract';
import { formatBytes, formatPercent } from '../contract/format';

/**
 * Models, LoRAs and free space, as lines.
 *
 * @param freeBytes free space on the disk of `home`; what the browser reports lags behind
 */
export function listText(
  { hub, models, loras }: LibrarySnapshot,
  home: string,
  freeBytes: number,
): string {
  const idWidth = Math.max(...models.map(({ manifest }) => manifest.id.length));
  const nameWidth = Math.max(0, ...loras.map(({ name }) => name.length));
  const inUse =
    models.reduce((sum, entry) => sum + bytesOf(entry), 0) +
    loras.reduce((sum, { bytes }) => sum + bytes, 0);
  return [
    ...models.map((entry) => `${entry.manifest.id.padEnd(idWidth)}  ${stateOf(entry)}`),
    ...(loras.length > 0 ? ['', 'LoRAs'] : []),
    ...loras.map((lora) => `${lora.name.padEnd(nameWidth)}  ${loraFacts(lora)}`),
    '',
    `folder    ${home}`,
    `hub       ${hub}`,
    `storage   ${formatBytes(inUse)} in use, ${formatBytes(freeBytes)} free`,
  ].join('\n');
}

function bytesOf({ parts }: ModelEntry): number {
  return parts.reduce((sum, { bytesStored }) => sum + bytesStored, 0);
}

function stateOf(entry: ModelEntry): string {
  const { manifest, ready, parts, precision } = entry;
  const checker = hasSafetyChecker(entry) ? [] : ['without safety checker'];
  if (isBundled(manifest)) return ['ready', 'comes with Kinora', ...checker].join(', ');
  const kept = `${formatBytes(bytesOf(entry))} on disk`;
  if (ready) return ['ready', precision, kept, ...checker].filter(Boolean).join(', ');
  const done = parts.reduce((sum, part) => sum + part.bytesDone, 0);
  if (done === 0) return 'not downloaded';
  const known = parts.every(({ bytesTotal }) => bytesTotal !== null);
  const total = parts.reduce((sum, part) => sum + (part.bytesTotal ?? 0), 0);
  return `incomplete, ${formatBytes(done)}${known ? ` (${formatPercent(done / total)})` : ''} fetched`;
}

function loraFacts({ bytes, rank, base, triggerWords }: LoraEntry): string {
  const words = triggerWords.length > 0 ? [`words: ${triggerWords.join(', ')}`] : [];
  return [formatBytes(bytes), `rank ${rank}`, base, ...words].join(', ');
}
