import { at, type StoredComponent } from '../../contract';
import type { ByteSource, WeightFile } from '../formats/source';
import type { KeptFile } from './folder';
import type { Checksum } from './hashes';
import type { InstallOptions } from './installation';
import type { JournalState } from './journal';
import type { Layout } from './layout';
import type { ComponentManifest } from './manifest';
import type { Plan } from './units';

/** A file that is kept as it is, with the checksum of its bytes. */
type SummedFile = KeptFile & { readonly checksum: string };

/** Identifies every byte of a component: what is made of which sources, and the files that are kept with it. */
export function fingerprint(
  { conversions, units }: Plan,
  sources: readonly ByteSource[],
  files: readonly SummedFile[],
  checksum: Checksum,
): string {
  const weights: readonly WeightFile[] = sources;
  const converted = conversions.map(({ place, located, rowsPerPiece, recipe }) => [
    place,
    recipe.source,
    weights.indexOf(located.file),
    located.entry,
    located.scale?.entry,
    rowsPerPiece,
  ]);
  const from = sources.map(({ identity, size }) => [identity, size]);
  const kept = files.map(({ name, checksum: sum }) => [name, sum]);
  const all = JSON.stringify([from, converted, units.length, kept]);
  return checksum([new TextEncoder().encode(all)]);
}

/** The manifest of a component of which every unit is done. */
export function describe(
  options: InstallOptions,
  { conversions, units }: Plan,
  layout: Layout,
  kept: readonly SummedFile[],
  plan: string,
  journal: JournalState,
): ComponentManifest {
  if (journal.state !== 'underway') throw new TypeError('nothing was installed');
  const sums = conversions.map(() => ({ squaredError: 0, squaredNorm: 0 }));
  const checksums = conversions.map(() => new Map<number, string>()); // first row → checksum
  for (const [u, unit] of units.entries()) {
    for (const [p, piece] of unit.pieces.entries()) {
      const record = at(at(journal.units, u), p);
      const sum = at(sums, piece.tensor);
      sum.squaredError += record.squaredError;
      sum.squaredNorm += record.squaredNorm;
      at(checksums, piece.tensor).set(piece.firstRow, record.checksum);
    }
  }
  const tensors = conversions.map(({ place, located, rowsPerPiece, recipe }, i) => ({
    ...place,
    shape: [...place.shape],
    sourceType: located.entry.dtype,
    relativeError: relativeError(at(sums, i)),
    // Reordered tensors have one checksum, whatever their first dimension is now.
    rowsPerChecksum: recipe.reorder ? Math.max(1, place.shape[0] ?? 1) : rowsPerPiece,
    checksums: [...at(checksums, i)].sort(([a], [b]) => a - b).map(([, sum]) => sum),
  }));
  const files = new Map([
    ...layout.packs,
    ...kept.map(({ name, bytes }) => [name, bytes.length] as const),
  ]);
  const stored = componentOf(options, conversions, tensors, files, journal.digests);
  return {
    version: 1,
    stored,
    plan,
    files: Object.fromEntries(files),
    tensors,
    fileChecksums: Object.fromEntries(kept.map(({ name, checksum }) => [name, checksum])),
  };
}

function relativeError(sum: { squaredError: number; squaredNorm: number }): number {
  return sum.squaredNorm > 0 ? Math.sqrt(sum.squaredError / sum.squaredNorm) : 0;
}

function componentOf(
  { component, precision, sources, sourceNames }: InstallOptions,
  conversions: Plan['conversions'],
  tensors: readonly { readonly name: string; readonly relativeError: number }[],
  files: ReadonlyMap<string, number>,
  digests: readonly string[],
): StoredComponent {
  const bytesOf = new Map<string, number>(); // element type → bytes of source
  for (const { located } of conversions) {
    const { dtype, start, end } = located.entry;
    bytesOf.set(dtype, (bytesOf.get(dtype) ?? 0) + end - start);
  }
  const [sourceType = ''] = [...bytesOf].sort(([, a], [, b]) => b - a)[0] ?? [];
  const worst = tensors.reduce<StoredComponent['worst']>(
    (most, { name, relativeError: error }) =>
      error > (most?.relativeError ?? 0) ? { tensor: name, relativeError: error } : most,
    null,
  );
  const now = new Date().toISOString();
  return {
    component,
    sources: sources.map(({ name, size }, i) => ({
      name: sourceNames?.[i] ?? name,
      bytes: size,
      sha256: at(digests, i),
    })),
    sourceType,
    precision,
    worst,
    bytesStored: [...files.values()].reduce((sum, bytes) => sum + bytes, 0),
    completedAt: now,
    verifiedAt: now,
  };
}
