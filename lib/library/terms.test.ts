import { expect, test } from 'vitest';
import { terms, termsSha256, termsText, termsVersion } from '../contract';
import { goldenId, goldenRepository } from '../models/wan/testing/golden-model';
import { acceptTerms, readAcceptance } from './terms';
import { libraryTests, modelOf } from './testing/library';

const now = libraryTests();

test('the text has every part, and its hash is that of the text', async () => {
  const text = termsText();
  for (const { title, points } of terms) {
    for (const part of [title, ...points]) expect(text).toContain(part);
  }
  const { createHash } = await import('node:crypto');
  expect(await termsSha256()).toBe(createHash('sha256').update(text).digest('hex'));
});

test('are accepted before the first download, once, and again after a new version', async () => {
  const library = now().openTab();
  const { terms: folder } = now();
  await library.addModel({ address: goldenRepository });
  for (const before of [null, { version: '2020-01-01', sha256: '0'.repeat(64), at: '2020' }]) {
    await folder.clear();
    if (before) await folder.writeText('acceptance.json', JSON.stringify(before));
    now().hub.forget();
    for (const id of [goldenId, 'tiny']) {
      const refused = library.download(id, 'int8');
      await expect(refused).rejects.toMatchObject({ code: 'TERMS_NOT_ACCEPTED' });
    }
    expect(now().hub.requests).toEqual([]);
  }
  expect(await acceptTerms(folder)).toMatchObject({ version: termsVersion });
  await library.download(goldenId, 'int8');
  expect((await modelOf(now().openTab())).ready).toBe(true);
  expect(await readAcceptance(folder)).toMatchObject({ sha256: await termsSha256() });
});
