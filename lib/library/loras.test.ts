import { createHash } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { isNamed, servedName } from '../contract';
import { modelFamilies } from '../models';
import { goldenBytes } from '../models/wan/testing/golden-model';
import { HubClient } from '../weights/hub';
import { openLoraFile, triggerWords } from '../weights/lora-metadata';
import { diskFolder, f32, goldens, safetensorsBytes } from '../weights/testing/files';
import { fetchLora, type LoraSource } from './lora-download';
import { inspectLora, listLoras, loraLock, removeLora, sweepLoras } from './loras';
import { libraryTests, until } from './testing/library';

const real = fileURLToPath(new URL('../../public/models/wan2.2-ti2v-5b', import.meta.url));
const models = [
  { name: 'Wan2.2 TI2V 5B', configuration: diskFolder(real) },
  { name: 'Tiny', configuration: diskFolder(`${goldens}model`) },
].map((model) => ({ ...model, installation: modelFamilies.wan22.installation }));
const repository = 'kinora/lora';
const now = libraryTests();

function add(source: LoraSource, attempts = 4, lock = now().tryLock, freeBytes = 2 ** 30) {
  const policy = { firstDelayMs: 1, longestDelayMs: 2, attempts };
  const client = new HubClient(now().hub.url, { policy });
  return fetchLora(source, {
    environment: {
      loras: now().loras,
      storage: async () => ({ usage: 0, quota: freeBytes, persistent: true }),
      tryLock: lock,
    },
    client,
    lookup: client,
    signal: new AbortController().signal,
    inspect: async (bytes, name) =>
      inspectLora(await openLoraFile({ ...bytes, name }), name, models),
    onProgress: () => undefined,
  });
}

test('a LoRA of a repository with one file is kept with the facts of its header', async () => {
  const bytes = await goldenBytes('loras/a_kohya_alpha.safetensors');
  now().hub.repositories.put(repository, 'dir/a style.safetensors', bytes);
  now().hub.repositories.put(repository, 'README.md', 'text');
  const entry = await add({ address: repository });
  expect(entry).toMatchObject({
    name: 'a style.safetensors',
    bytes: bytes.length,
    source: `${repository}/dir/a style.safetensors`,
    base: 'Tiny',
    rank: 4,
  });
  expect(await listLoras(now().loras)).toEqual([entry]);
  expect((await now().loras.open(entry.name))?.size).toBe(bytes.length);
  now().hub.forget();
  expect(await add({ address: repository })).toEqual(entry);
  expect(now().hub.served('a style.safetensors').bytes).toBeLessThan(bytes.length);

  await removeLora(now().loras, entry.name);
  expect(await now().loras.list()).toEqual([]);
});

test('a link and a local file serve as well; the same name gets a number', async () => {
  const bytes = await goldenBytes('loras/a_peft.safetensors');
  now().hub.repositories.put(repository, 'x.safetensors', bytes);
  const byLink = await add({
    address: `${now().hub.url}/${repository}/resolve/main/x.safetensors`,
  });
  const byFile = await add({ file: new File([bytes], 'x.safetensors') });
  expect([byLink.name, byFile.name]).toEqual(['x.safetensors', 'x-2.safetensors']);
  expect(byFile.sha256).toBe(byLink.sha256);
});

test('a file is checked against one model before it is used, and refused when its base is another', async () => {
  const library = now().openTab();
  const words = { trigger_words: 'sks style' };
  const file = async (name: string) =>
    new File([await goldenBytes(`loras/${name}.safetensors`)], `${name}.safetensors`);
  const peft = await file('a_peft');
  expect(await library.inspectLora('tiny', peft)).toMatchObject({
    base: expect.stringContaining('Tiny'),
    triggerWords: [],
  });
  const named = safetensorsBytes(
    { 'blocks.0.ffn.net.0.proj.diff_b': f32([128], Array(128).fill(0)) },
    words,
  );
  expect(await library.inspectLora('tiny', new File([named], 'b.safetensors'))).toMatchObject({
    triggerWords: ['sks style'],
  });
  await expect(library.inspectLora('wan2.2-ti2v-5b', peft)).rejects.toMatchObject({
    code: 'LORA_WRONG_BASE',
  });
  await expect(library.inspectLora('tiny', await file('wrong_base_14b'))).rejects.toMatchObject({
    code: 'LORA_WRONG_BASE',
    message: expect.stringContaining('Wan 14B'),
  });
  await expect(library.inspectLora('gone', peft)).rejects.toMatchObject({ code: 'MODEL_UNKNOWN' });
  expect(await now().loras.list()).toEqual([]);
});

test('added by two tabs at once it is fetched by one, and the other says so', async () => {
  const bytes = await goldenBytes('loras/b_lightx2v_diff_b.safetensors');
  const address = `${repository}/twice.safetensors`;
  now().hub.repositories.put(repository, 'twice.safetensors', bytes);
  let tried = 0;
  let meet = () => {};
  const met = new Promise<void>((resolve) => {
    meet = resolve;
  });
  // The tab with the lock keeps it until the other tab has tried to get it.
  async function meeting<T>(name: string, work: () => Promise<T>) {
    if (++tried === 2) meet();
    return now().tryLock(name, async () => {
      await met;
      return work();
    });
  }
  const both = await Promise.allSettled([1, 2].map(() => add({ address }, 4, meeting)));
  const refused = both.find(({ status }) => status === 'rejected');
  expect(refused).toMatchObject({
    reason: { code: 'BUSY', message: expect.stringContaining('twice.safetensors') },
  });
  expect(both.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect(await add({ address })).toMatchObject({ bytes: bytes.length });
  expect(await listLoras(now().loras)).toHaveLength(1);
});

test('a cut is healed at its byte; what breaks off goes on there when it is added again', async () => {
  const bytes = await goldenBytes('loras/b_lightx2v_diff_b.safetensors');
  const address = `${repository}/cut.safetensors`;
  now().hub.repositories.put(repository, 'cut.safetensors', bytes);
  const cut = { kind: 'cut', afterBytes: 20_000 } as const;
  // The header is read in two requests before the content.
  const content = { path: 'cut.safetensors', host: 'storage', skip: 2 } as const;
  now().hub.fail({ fault: cut, ...content });
  now().hub.fail({ fault: { kind: 'reset' }, ...content, times: 100 });
  await expect(add({ address }, 2)).rejects.toMatchObject({ code: 'HUB_UNREACHABLE' });
  expect(await listLoras(now().loras)).toEqual([]);
  now().hub.heal();
  now().hub.forget();
  const entry = await add({ address });
  expect(entry.sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
  const isContent = ({ host, start }: { host: string; start: number }) =>
    host === 'storage' && start >= 20_000;
  const [rest] = now().hub.requests.filter(isContent);
  expect(rest).toMatchObject({ start: 20_000, bytesSent: bytes.length - 20_000 });
  expect(await now().loras.list()).toEqual([entry.name, `${entry.name}.json`]);
  const file = await now().loras.open('cut.safetensors');
  expect(Buffer.compare((await file?.read(0, bytes.length)) ?? new Uint8Array(), bytes)).toBe(0);
});

test('another file of the same name and place is another LoRA; the same one is not kept twice', async () => {
  const peft = await goldenBytes('loras/a_peft.safetensors');
  const other = peft.slice();
  other[other.length - 2] = (other.at(-2) ?? 0) ^ 1;
  const pick = (bytes: Uint8Array<ArrayBuffer>) => ({ file: new File([bytes], 'x.safetensors') });
  const first = await add(pick(peft));
  const second = await add(pick(other));
  expect(second.name).toBe('x-2.safetensors');
  expect(await add(pick(peft))).toEqual(first);
  expect(await add(pick(other))).toEqual(second);
  expect(await listLoras(now().loras)).toEqual([second, first]);
  const read = async (name: string) => (await now().loras.open(name))?.read(0, peft.length);
  expect(Buffer.compare((await read('x.safetensors')) ?? new Uint8Array(), peft)).toBe(0);

  // A link has no SHA-256 before it is fetched; then it is found to be the same.
  now().hub.repositories.put(repository, 'y.safetensors', peft);
  const link = { address: `${now().hub.url}/${repository}/resolve/main/y.safetensors` };
  const linked = await add(link);
  expect(await add(link)).toEqual(linked);
  expect(await listLoras(now().loras)).toHaveLength(3);
});

test('a file that is refused is named as it is', async () => {
  const file = new File(['no weights'], 'notes.txt');
  await expect(add({ file })).rejects.toMatchObject({
    code: 'LORA_INVALID',
    message: expect.stringMatching(/^The LoRA "notes.txt" cannot be read: .* does not start like/),
  });
});

test('what a closed page has left is swept, but nothing that is just being added', async () => {
  const bytes = await goldenBytes('loras/a_peft.safetensors');
  const whole = await add({ file: new File([bytes], 'whole.safetensors') });
  await now().loras.writeText('left.safetensors', 'half');
  await now().loras.writeText('busy.safetensors', 'half');
  now().held.add(loraLock('busy.safetensors'));
  await sweepLoras(now().loras, now().tryLock);
  expect(await now().loras.list()).toEqual(['busy.safetensors', whole.name, `${whole.name}.json`]);
});

test('one that does not have the announced SHA-256 is fetched once more, and leaves nothing', async () => {
  const bytes = await goldenBytes('loras/a_peft.safetensors');
  now().hub.repositories.put(repository, 'damaged.safetensors', bytes);
  const listed = now().hub.repositories.list(repository)?.get('damaged.safetensors');
  const damaged = bytes.slice();
  damaged[damaged.length - 2] = (damaged.at(-2) ?? 0) ^ 1;
  Object.assign(listed ?? {}, { bytes: damaged });
  const adding = add({ address: `${repository}/damaged.safetensors` });
  await expect(adding).rejects.toMatchObject({
    code: 'DOWNLOAD_CORRUPT',
    message: expect.stringContaining('was announced'),
  });
  expect(Math.floor(now().hub.served('damaged.safetensors').bytes / bytes.length)).toBe(2);
  expect(await now().loras.list()).toEqual([]);
});

test('an invalid address and too little space are refused before anything is written', async () => {
  const address = 'ftp://host.example/a.safetensors';
  await expect(add({ address })).rejects.toMatchObject({ code: 'ADDRESS_INVALID' });
  const bytes = await goldenBytes('loras/a_peft.safetensors');
  const file = new File([bytes], 'x.safetensors');
  await expect(add({ file }, 4, now().tryLock, 1000)).rejects.toMatchObject({
    code: 'STORAGE_FULL',
    message: expect.stringMatching(/needs .* MiB .* only .* MiB/),
  });
  expect(await now().loras.list()).toEqual([]);
});

test('one for another base is refused by name, after its header', async () => {
  const bytes = await goldenBytes('loras/wrong_base_14b.safetensors');
  now().hub.repositories.put(repository, '14b.safetensors', bytes);
  await expect(add({ address: `${repository}/14b.safetensors` })).rejects.toMatchObject({
    code: 'LORA_WRONG_BASE',
    message: expect.stringContaining('14B'),
  });
  expect(now().hub.served('14b.safetensors').bytes).toBeLessThan(bytes.length / 2);
});

test.each([
  ['text', new TextEncoder().encode('not weights at all')],
  ['empty', new Uint8Array()],
  ['a model', safetensorsBytes({ 'layers.0.weight': f32([2, 2]) })],
])('%s is no LoRA', async (name, bytes) => {
  await expect(
    add({ file: new File([new Uint8Array(bytes)], `${name}.safetensors`) }),
  ).rejects.toMatchObject({ code: 'LORA_INVALID' });
  expect(await now().loras.list()).toEqual([]);
});

test('trigger words come from the metadata’s own field, else from the common tags', () => {
  const words = (metadata: Record<string, string>) =>
    triggerWords(new Map(Object.entries(metadata)));
  expect(words({ 'modelspec.trigger_phrase': 'ohwx, in ohwx style' })).toEqual([
    'ohwx',
    'in ohwx style',
  ]);
  expect(words({ trigger_words: '["a b", "c"]' })).toEqual(['a b', 'c']);
  const tags = { '10_dir': { ohwx: 20, tree: 3 }, '5_more': { ohwx: 7, sky: 9 } };
  expect(words({ ss_tag_frequency: JSON.stringify(tags) })).toEqual(['ohwx']);
  expect(words({ ss_tag_frequency: 'broken' })).toEqual([]);
  expect(words({})).toEqual([]);
});

test('the licence is what the hub says of it, and unknown for a file', async () => {
  const bytes = await goldenBytes('loras/a_peft.safetensors');
  now().hub.repositories.put('kinora/licensed', 'z.safetensors', bytes);
  now().hub.repositories.licences.set('kinora/licensed', 'mit');
  const page = `${now().hub.url}/kinora/licensed`;
  const added = await add({ address: 'kinora/licensed' });
  expect(added.licence).toEqual({ name: 'mit', url: page });
  const local = await add({ file: new File([bytes], 'local.safetensors') });
  expect(local.licence).toEqual({ name: 'unknown' });
});

/** A web server on this machine that is no hub, for the time of some work. */
async function withServer(listener: RequestListener, work: (url: string) => Promise<void>) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await work(`http://127.0.0.1:${port}`).finally(() => {
    server.closeAllConnections();
    server.close();
  });
}

test('a link without a name has the one that its server tells, else a plain one', async () => {
  const bytes = await goldenBytes('loras/a_peft.safetensors');
  await withServer(
    (request, response) => {
      const url = request.url ?? '';
      if (url === '/moved/2')
        return void response.writeHead(302, { location: '/low.safetensors' }).end();
      const [, start = 0, end = bytes.length - 1] =
        /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? '')?.map(Number) ?? [];
      const name = { 'content-disposition': `attachment; filename*=UTF-8''my%20high.safetensors` };
      const range = { 'content-range': `bytes ${start}-${end}/${bytes.length}` };
      response.writeHead(206, { ...range, ...(url === '/get/1' && name) });
      response.end(bytes.subarray(start, end + 1));
    },
    async (url) => {
      const nameOf = async (path: string) => (await add({ address: url + path })).name;
      expect(await nameOf('/get/1')).toBe('my high.safetensors');
      expect(await nameOf('/moved/2')).toBe('low.safetensors');
      expect(await nameOf('/get/3')).toBe('lora.safetensors');
      expect(await nameOf('/own.safetensors?key=1')).toBe('own.safetensors');
    },
  );
});

test('names told by headers and addresses; which of them are names', () => {
  const storage = 'https://bucket.host/9f86d081884c7d65';
  const field = encodeURIComponent('attachment; filename="Wan HIGH.safetensors"');
  expect(servedName(null, [`${storage}?response-content-disposition=${field}`])).toBe(
    'Wan HIGH.safetensors',
  );
  expect(servedName('inline', ['https://h/a/100%.safetensors'])).toBe('100%.safetensors');
  expect(servedName('attachment; filename=../x/low.safetensors', [])).toBe('low.safetensors');
  expect(servedName(null, ['https://h/n_high.safetensors', `${storage}.safetensors`])).toBe(
    'n_high.safetensors',
  );
  expect(servedName(undefined, ['https://h/api/download/1'])).toBeUndefined();
  const named = ['style.safetensors', 'https://h/a/low.safetensors?key=1', 'lora_x.safetensors'];
  const nameless = ['https://h/download/1', '0.safetensors', 'lora-2.safetensors', storage];
  expect([...named, ...nameless].map(isNamed)).toEqual([
    true,
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
});

test('a link that cannot be reached is told soon, with advice on links', async () => {
  const library = now().openTab({ hubOptions: {} });
  const started = performance.now();
  const adding = library.addLora({ address: 'http://127.0.0.1:1/a.safetensors' });
  await expect(adding).rejects.toMatchObject({
    code: 'LINK_UNREACHABLE',
    message: expect.stringContaining('http://127.0.0.1:1/a.safetensors'),
    remedy: expect.stringContaining('Check the link'),
  });
  expect(performance.now() - started).toBeLessThan(8000);
});

test('a LoRA can be cancelled from the first moment', async () => {
  await withServer(
    () => undefined,
    async (url) => {
      const library = now().openTab();
      const address = `${url}/silent.safetensors`;
      const adding = library.addLora({ address });
      await until(library, ({ loraDownloads }) =>
        loraDownloads.some(({ name }) => name === address),
      );
      const cancelled = expect(adding).rejects.toMatchObject({ code: 'CANCELLED' });
      await library.deleteLora(address);
      await cancelled;
      expect((await library.snapshot()).loraDownloads).toEqual([]);
    },
  );
});
