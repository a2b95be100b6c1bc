import { expect, test } from 'vitest';
import { goldenId, goldenRepository } from '../models/wan/testing/golden-model';
import { libraryTests, modelOf } from './testing/library';

const now = libraryTests();
const token = 'hf_secret';
const kept = async () => (await now().folder('.').readText('library.json')) ?? '';

test.each([
  ['kept in this browser', true],
  ['for this worker', false],
])(
  'a gated repository names its page, and is fetched with a token %s, which the hub alone gets',
  async (_, keep) => {
    const { hub } = now();
    hub.repositories.gates.set(goldenRepository, token);
    const library = now().openTab();
    await expect(library.addModel({ address: goldenRepository })).rejects.toMatchObject({
      code: 'HUB_DENIED',
      message: expect.stringMatching(
        new RegExp(`The makers ask you to accept their terms at ${hub.url}/${goldenRepository}$`),
      ),
    });
    await library.setHubToken(token, keep);
    expect(JSON.stringify(await library.snapshot())).not.toContain(token);
    expect((await kept()).includes(token)).toBe(keep);
    await library.addModel({ address: goldenRepository });
    await library.download(goldenId, 'int8');
    expect(await modelOf(library)).toMatchObject({ ready: true });
    const got = new Set(hub.authorizations.map(({ host, value }) => `${host} ${value}`));
    expect([...got]).toEqual([`hub Bearer ${token}`]);
    expect(hub.requests.some(({ host, bytesSent }) => host === 'storage' && bytesSent > 0)).toBe(
      true,
    );

    await library.setHubToken(null);
    expect(await kept()).not.toContain(token);
    await library.deleteModel(goldenId);
    const refused = library.download(goldenId, 'int8');
    await expect(refused).rejects.toMatchObject({ code: 'HUB_DENIED' });
  },
);

test('a token is for the hub that it was entered for', async () => {
  const library = now().openTab();
  await library.setHubToken(token);
  expect(await library.snapshot()).toMatchObject({ hasHubToken: true });
  await library.setHub('http://127.0.0.1:1');
  expect(await library.snapshot()).toMatchObject({ hasHubToken: false });
  await expect(library.setHubToken('two words')).rejects.toMatchObject({
    code: 'PARAMETER_INVALID',
  });
});
