/** A transformer of more blocks than the tiny model has, for what only shows with several. */
import type { Checkpoint, TensorData } from '../../../weights';

/**
 * The tiny model's two blocks again and again, each a little different, so that weights in the wrong
 * place show in the result.
 *
 * @param onRead called with each group that is read in one go
 */
export function deepened(
  checkpoint: Checkpoint,
  layers: number,
  onRead: (names: readonly string[]) => void = () => undefined,
): Checkpoint {
  const source = (name: string) =>
    name.replace(/^blocks\.(\d+)\./, (_, index) => `blocks.${Number(index) % 2}.`);
  const factor = (name: string) => 1 + Number(/^blocks\.(\d+)\./.exec(name)?.[1] ?? 0) / 64;
  const scaled = <T extends TensorData>(name: string, data: T): TensorData =>
    data instanceof Float32Array
      ? data.map((value) => value * factor(name))
      : { ...data, scales: data.scales.map((value) => value * factor(name)) };
  const all = [...checkpoint.names()];
  const names = [
    ...all.filter((name) => !name.startsWith('blocks.')),
    ...Array.from({ length: layers }, (_, layer) =>
      all
        .filter((name) => name.startsWith(`blocks.${layer % 2}.`))
        .map((name) => name.replace(/^blocks\.\d+\./, `blocks.${layer}.`)),
    ).flat(),
  ];
  return {
    names: () => names,
    has: (name) => names.includes(name),
    shape: (name) => checkpoint.shape(source(name)),
    bytes: (name) => checkpoint.bytes(source(name)),
    dtype: (name) => checkpoint.dtype(source(name)),
    async read(name) {
      return scaled(name, await checkpoint.read(source(name))) as Float32Array;
    },
    readRows: (name, rows) => checkpoint.readRows(source(name), rows),
    async readStored(wanted) {
      onRead(wanted);
      const data = await checkpoint.readStored([...new Set(wanted.map(source))]);
      return new Map(
        wanted.map((name) => {
          const found = data.get(source(name));
          if (!found) throw new TypeError(`${name} was not read`);
          return [name, scaled(name, found)];
        }),
      );
    },
  };
}
