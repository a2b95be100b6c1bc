import { expect, test } from 'vitest';
import { readDropped, readPicked } from './local-files';

test('a picked folder brings paths, single files their names', () => {
  const inFolder = Object.defineProperty(new File(['{}'], 'config.json'), 'webkitRelativePath', {
    value: 'model/vae/config.json',
  });
  const files = readPicked([inFolder, new File(['x'], 'a.gguf')]);
  expect(files.map(({ path }) => path)).toEqual(['model/vae/config.json', 'a.gguf']);
  expect(files[0]?.file).toBe(inFolder);
});

test('dropped files are read', async () => {
  const transfer = new DataTransfer();
  transfer.items.add(new File(['one'], 'one.gguf'));
  transfer.items.add(new File(['two'], 'two.safetensors'));
  const files = await readDropped(transfer);
  expect(files.map(({ path }) => path)).toEqual(['one.gguf', 'two.safetensors']);
  expect(await files[0]?.file.text()).toBe('one');
});

/** Entries as a browser gives them for a dropped folder; no script can make real ones. */
function folder(fullPath: string, batches: readonly (readonly FileSystemEntry[])[]) {
  let next = 0;
  const createReader = () => ({
    readEntries: (resolve: (entries: readonly FileSystemEntry[]) => void) =>
      resolve(batches[next++] ?? []),
  });
  return { fullPath, isFile: false, isDirectory: true, createReader };
}

test('a dropped folder is read to its end, however many parts it comes in', async () => {
  const file = (path: string) =>
    ({
      fullPath: path,
      isFile: true,
      isDirectory: false,
      file: (resolve: (file: File) => void) => resolve(new File(['x'], path)),
    }) as unknown as FileSystemEntry;
  const inner = folder('/m/vae', [[file('/m/vae/a')]]) as unknown as FileSystemEntry;
  const outer = folder('/m', [[file('/m/b'), inner], [file('/m/c')]]);
  const items = [
    { webkitGetAsEntry: () => outer },
    { webkitGetAsEntry: () => null, getAsFile: () => null },
  ];
  const files = await readDropped({ items } as unknown as DataTransfer);
  expect(files.map(({ path }) => path)).toEqual(['m/b', 'm/vae/a', 'm/c']);
});
