/** @module-tag full */
import { expect, test } from 'vitest';
import { adapterOffers, isAdapterPart, parseManifest } from '../contract';
import { modelFamilies } from '../models';
import type { WanAdapter } from '../models/wan/adapter';
import type { WanModel } from '../models/wan/model';
import { goldenBytes, goldenId, goldenRepository } from '../models/wan/testing/golden-model';
import { libraryTests, listed, modelOf, partOf } from './testing/library';

const now = libraryTests();

/** Publishes the golden model with a LoRA of the goldens as its adapter, or with a path that is not there. */
async function publish(lora: string | null): Promise<object> {
  const { repositories } = now().hub;
  const path = `weights/${lora ?? 'gone'}.safetensors`;
  if (lora) {
    repositories.put(goldenRepository, path, await goldenBytes(`loras/${lora}.safetensors`));
  }
  const text = repositories.list(goldenRepository)?.get('kinora.json')?.bytes;
  const manifest = JSON.parse(new TextDecoder().decode(text));
  const files = [{ repository: goldenRepository, path }];
  manifest.sources = [...manifest.sources, { component: 'adapter', files }];
  repositories.put(goldenRepository, 'kinora.json', JSON.stringify(manifest));
  return manifest;
}

test.each(['a_kohya_alpha', 'b_lightx2v_diff_b'])(
  '%s is stored with its model, and read back value by value',
  async (name) => {
    await publish(name);
    const library = await now().openModelTab();
    await library.download(goldenId, 'int8');
    const { manifest, ready } = await modelOf(library);
    expect(ready).toBe(true);
    const model = await modelFamilies.wan22.openInstalled(manifest, now().folder(goldenId));
    expect(model.adapters.adapter).toMatchObject({
      source: expect.stringContaining(`weights/${name}.safetensors@`),
      misfit: null,
    });
    const bytes = await goldenBytes(`loras/${name}.safetensors`);
    const asLora = { name: 'the same', file: new Blob([bytes]), scale: 0.75 };
    const [own, chosen] = [
      await model.withLoras([], { adapter: 0.75 }),
      await model.withLoras([asLora]),
    ];
    const branchesOf = (of: unknown) => (of as WanModel).loras.get('transformer')?.branches;
    expect(branchesOf(own)).toEqual(branchesOf(chosen));
    expect(branchesOf(own)?.size).toBeGreaterThan(0);

    await library.verify(goldenId);
    expect(await partOf(library, 'adapter')).toMatchObject({ status: 'complete' });
    await library.deleteModel(goldenId);
    expect((await modelOf(library)).stored).toEqual([]);
  },
);

test('alpha is in the file that PEFT writes beside an adapter', async () => {
  const { repositories } = now().hub;
  const manifest = (await publish('a_peft')) as { sources: { files: object[] }[] };
  const path = 'weights/adapter_config.json';
  // The rank of all factors is 4.
  const config = { lora_alpha: 8, alpha_pattern: { 'blocks.0.self_attn.q': 2 } };
  manifest.sources.at(-1)?.files.push({ repository: goldenRepository, path });
  repositories.put(goldenRepository, 'kinora.json', JSON.stringify(manifest));
  repositories.put(goldenRepository, path, JSON.stringify({ lora_alpha: 'eight' }));
  await expect(now().openTab().addModel({ address: goldenRepository })).rejects.toMatchObject({
    code: 'MODEL_CONFIG_INVALID',
    message: expect.stringContaining(path),
  });
  repositories.put(goldenRepository, path, JSON.stringify(config));
  const library = await now().openModelTab();
  await library.download(goldenId, 'int8');
  const { manifest: added } = await modelOf(library);
  const { adapters } = await modelFamilies.wan22.openInstalled(added, now().folder(goldenId));
  const { modules } = await (adapters.adapter as WanAdapter).read();
  const factorOf = (module: string) => modules.get(module)?.[0]?.factor;
  expect(factorOf('blocks.0.attn1.to_q')).toBe(0.5);
  expect(factorOf('blocks.1.attn1.to_q')).toBe(2);
});

test('one of several is chosen with what runs beside it, remembered, and replaced by another; or none', async () => {
  const { repositories } = now().hub;
  const manifest = (await publish('a_kohya_alpha')) as { sources: object[]; profiles?: object };
  const names = ['a_kohya_alpha', 'b_lightx2v_diff_b'] as const;
  const file = (name: string) => ({
    repository: goldenRepository,
    path: `weights/${name}.safetensors`,
  });
  const [, second] = names;
  repositories.put(
    goldenRepository,
    file(second).path,
    await goldenBytes(`loras/${second}.safetensors`),
  );
  const licence = { name: 'Apache-2.0' };
  const scheduler = { kind: 'few-step', timesteps: [1000, 500] };
  const [kohyaAdapter, plug] = names.map((name) => ({ name, ...file(name), licence, scheduler }));
  const guidance = file('guidance');
  repositories.put(goldenRepository, guidance.path, await goldenBytes('loras/a_peft.safetensors'));
  const adapters = [kohyaAdapter, { ...plug, guidanceAdapter: guidance }];
  manifest.sources.push(
    { component: 'adapter', files: [file(second)] },
    { component: 'guidance_adapter', files: [guidance] },
  );
  manifest.profiles = { 'ultra-fast': { adapters } };
  repositories.put(goldenRepository, 'kinora.json', JSON.stringify(manifest));

  const library = await now().openModelTab();
  const offers = adapterOffers((await modelOf(library)).manifest);
  const [kohya = '', lightx2v = ''] = offers.map(({ choice }) => choice);
  const filesOf = async (...chosen: string[]) =>
    (await library.planDownload(goldenId, 'int8', chosen)).parts
      .filter(({ component }) => isAdapterPart(component))
      .map(({ files: [one], bytesLeft }) => [one?.name, bytesLeft > 0]);
  expect(await filesOf(kohya)).toEqual([[kohya, true]]);
  const beside = `${guidance.repository}/${guidance.path}`;
  expect(await filesOf(lightx2v)).toEqual([
    [lightx2v, true],
    [beside, true],
  ]);
  expect(await filesOf()).toEqual([]);

  await library.download(goldenId, 'int8', []);
  expect(await modelOf(library)).toMatchObject({ ready: true, adapters: [] });
  expect(await partOf(library, 'adapter')).toMatchObject({ status: 'absent' });
  const stored = async () => {
    const { stored: all } = await modelOf(library);
    return all.find(({ component }) => component === 'adapter')?.sources[0]?.name.split('@')[0];
  };
  await library.download(goldenId, 'int8', [lightx2v]);
  expect(await stored()).toBe(lightx2v);
  expect(await partOf(library, 'guidance_adapter')).toMatchObject({ status: 'complete' });
  expect(await filesOf(lightx2v)).toEqual([
    [lightx2v, false],
    [beside, false],
  ]);
  // Without a word of it the choice stays.
  await library.download(goldenId, 'int8');
  expect(await stored()).toBe(lightx2v);
  await library.download(goldenId, 'int8', [kohya]);
  expect(await stored()).toBe(kohya);
  expect(await partOf(library, 'adapter')).toMatchObject({ status: 'complete' });
  // One that is not offered any more stays where it is stored.
  await library.download(goldenId, 'int8', ['other/name/turbo.safetensors', kohya]);
  expect(await stored()).toBe(kohya);
});

test('one of another base is refused by its header', async () => {
  await publish('wrong_base_14b');
  await expect(now().openTab().addModel({ address: goldenRepository })).rejects.toMatchObject({
    code: 'LORA_WRONG_BASE',
    message: expect.stringContaining('Wan 14B'),
  });
});

test('one that the hub does not have is reported, and the model is fetched all the same', async () => {
  const manifest = parseManifest({ ...(await publish(null)), base: undefined });
  const base = await listed('wan2.2-ti2v-5b');
  const library = now().openTab({ listed: async () => [{ manifest, base: null }, base] });
  const plan = await library.planDownload(goldenId, 'int8');
  expect(plan.parts.find(({ component }) => component === 'adapter')?.files).toEqual([]);
  await expect(library.download(goldenId, 'int8')).rejects.toMatchObject({
    code: 'HUB_NOT_FOUND',
  });
  expect((await modelOf(library)).ready).toBe(true);
  expect(await partOf(library, 'adapter')).toMatchObject({ error: { code: 'HUB_NOT_FOUND' } });
});
