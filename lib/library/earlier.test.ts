/** The library of an earlier version opens: `testing/earlier` was written by the code of commit af20ba4. */
import { cp, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { goldens } from '../weights/testing/files';
import { libraryTests } from './testing/library';

const earlier = fileURLToPath(new URL('testing/earlier', import.meta.url));
const now = libraryTests();

test('with the hub that was set, an added model, its precision, what was wanted of it, and a LoRA', async () => {
  await cp(earlier, now().root, { recursive: true });
  const { loras } = now();
  const library = now().openTab();
  const snapshot = await library.snapshot();
  expect(snapshot.hub).toBe('https://mirror.example');
  const added = snapshot.models.find(({ origin }) => origin === 'added');
  expect(added).toMatchObject({ manifest: { id: 'my-model', name: 'My model' } });
  expect(added).toMatchObject({ precision: 'int4', ready: false });
  const wanted = added?.parts.filter(({ pausedBy }) => pausedBy === 'interrupted');
  expect(wanted?.map(({ component }) => component)).toEqual([
    'configuration',
    'transformer',
    'text_encoder',
    'vae',
  ]);
  // Its manifest was written before there was one.
  expect(added?.parts.at(-1)).toMatchObject({ component: 'safety_checker', status: 'absent' });

  const [lora] = snapshot.loras;
  expect(lora).toMatchObject({ name: 'a style.safetensors', source: 'a style.safetensors' });
  const file = await loras.open(lora?.name ?? '');
  const original = await readFile(`${goldens}loras/a_kohya_alpha.safetensors`);
  expect(Buffer.from((await file?.read(0, file.size)) ?? [])).toEqual(original);

  await library.forgetModel('my-model');
  await library.deleteLora('a style.safetensors');
  expect((await library.snapshot()).loras).toEqual([]);
  expect(await now().folder('').folders()).toEqual([]);
});
