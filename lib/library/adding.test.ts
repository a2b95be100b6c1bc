import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { modelFamilies } from '../models';
import { textEncoderWithTokenizer } from '../models/umt5/testing/tokenizer';
import { loadTokenizer } from '../models/umt5/tokenizer';
import { openStoredParts } from '../models/wan/parts';
import { goldenBytes, goldenRepository, goldenWeights } from '../models/wan/testing/golden-model';
import { tinyFolder } from '../models/wan/testing/model';
import { goldens } from '../weights/testing/files';
import { libraryTests, listed, local, modelOf, weightPath } from './testing/library';

const now = libraryTests();

/** A tab in which the base model has the widths of the golden one, so that golden files fit it. */
function openGoldenTab() {
  return now().openTab({
    listed: async () => [await listed('tiny'), await listed('wan2.2-ti2v-5b', `${goldens}model`)],
  });
}

/** Files of the golden configuration, without some of them. */
async function localConfiguration(without: readonly string[] = []) {
  const paths = modelFamilies.wan22.installation.configurationFiles.filter(
    (path) => !without.includes(path),
  );
  return Promise.all(paths.map((path) => local(`model/${path}`, `my/${path}`)));
}

describe('adding a model', () => {
  test('of a diffusers repository takes its own parts', async () => {
    await now().hub.repositories.putFolder('kinora/diffusers', `${goldens}model`);
    const library = now().openTab();
    const { manifest } = await library.addModel({ address: 'kinora/diffusers' });
    expect(manifest).toMatchObject({ id: 'diffusers', name: 'diffusers' });
    const transformer = manifest.sources.find(({ component }) => component === 'transformer');
    expect(transformer?.files[0]?.path).toBe('transformer/diffusion_pytorch_model.safetensors');
    // What the base's choices say of memory is not true of a model of another size.
    expect(manifest.choices).toEqual([]);
    expect(manifest.defaults.negative_prompt).toMatch(/^色调艳丽，/);
    expect(manifest.nativeSizes['1280*720']).toEqual({ width: 1280, height: 704 });
    const again = await library.addModel({ address: 'kinora/diffusers' });
    expect(again.manifest.id).toBe('diffusers-2');
  });

  test('of a single file takes the other parts from the base model', async () => {
    const library = openGoldenTab();
    const address = `${goldenRepository}/${weightPath('transformer')}`;
    const { manifest } = await library.addModel({ address });
    expect(manifest.id).toBe('transformer-q8_0');
    const repositories = manifest.sources.map(({ component, files }) => [
      component,
      files[0]?.repository,
    ]);
    expect(repositories).toContainEqual(['transformer', goldenRepository]);
    expect(repositories).toContainEqual(['vae', 'Comfy-Org/Wan_2.2_ComfyUI_Repackaged']);
    expect(manifest.choices.map(({ precision }) => precision)).toEqual(['int8', 'int4']);
  });

  test('whose file is of another size is refused by its header, and leaves nothing', async () => {
    const library = now().openTab();
    const address = `${goldenRepository}/${weightPath('transformer')}`;
    await expect(library.addModel({ address })).rejects.toMatchObject({
      code: 'TENSOR_SHAPE',
      message: expect.stringContaining('patch_embedding'),
    });
    expect(now().served('transformer').bytes).toBeLessThan(200_000);
    expect((await library.snapshot()).models).toHaveLength(2);
    expect(await now().folder('').folders()).toEqual([]);
    const files = [await local(goldenWeights.transformer, 'mine.gguf')];
    await expect(library.addModel({ files })).rejects.toMatchObject({ code: 'TENSOR_SHAPE' });
  });

  test('of local files compares them with the configuration beside them', async () => {
    const library = now().openTab();
    const files = [
      ...(await localConfiguration()),
      await local(goldenWeights.transformer, 'my/transformer.gguf'),
    ];
    const { manifest } = await library.addModel({ files });
    expect(manifest).toMatchObject({ id: 'my', choices: [] });
    const wrong = { ...(await local(goldenWeights.vae)), path: 'my/transformer/x.safetensors' };
    const broken = [...files.slice(0, -1), { ...wrong, file: new File(['no weights'], 'x') }];
    await expect(library.addModel({ files: broken })).rejects.toThrow(/x\.safetensors/);
  });

  describe('of a folder', () => {
    const folder = async (files: Readonly<Record<string, string | Uint8Array<ArrayBuffer>>>) => [
      ...(await localConfiguration()),
      ...Object.entries(files).map(([path, content]) => ({
        path: `my/${path}`,
        file: new File([content], path.split('/').at(-1) ?? path),
      })),
    ];
    const weights = 'transformer/diffusion_pytorch_model';

    test('takes a transformer by its tensors, and names what it leaves out', async () => {
      const library = openGoldenTab();
      const gguf = await goldenBytes(goldenWeights.transformer);
      // `general.architecture` has three letters, as `wan`.
      const at = new TextDecoder('latin1').decode(gguf).indexOf('wan');
      gguf.set(new TextEncoder().encode('pig'), at);
      const files = await folder({
        'a.gguf': gguf,
        'loras/b.safetensors': await goldenBytes('loras/a_peft.safetensors'),
        'old.pth': 'x',
        'readme.txt': 'x',
      });
      const { manifest } = await library.addModel({ files });
      expect(manifest.sources.map(({ component }) => component)).not.toContain('transformer');
      expect(manifest.description).toBe(
        'Added from local files. Left out: my/old.pth (not safetensors or GGUF), ' +
          'my/loras/b.safetensors (a LoRA).',
      );
      const other = await now().openModelTab();
      await other.importFiles('golden', 'int8', files);
      expect((await modelOf(other)).parts.map(({ notice }) => notice)).toContain(
        'Left out: my/old.pth (not safetensors or GGUF), my/loras/b.safetensors (a LoRA).',
      );
    });

    test('names a configuration that lacks a file', async () => {
      const gguf = await goldenBytes(goldenWeights.transformer);
      const files = (await folder({ 'a.gguf': gguf })).filter(
        ({ path }) => !path.endsWith('scheduler_config.json'),
      );
      const { manifest } = await openGoldenTab().addModel({ files });
      expect(manifest.description).toContain(
        'no configuration without scheduler/scheduler_config.json',
      );
    });

    test('passes over what macOS writes, and stray files beside those that are meant', async () => {
      const whole = await goldenBytes(`model/${weights}.safetensors`);
      const mac = { 'transformer/._x.safetensors': 'Mac OS X', '.DS_Store': 'x' };
      const half = { [`${weights}.fp16.safetensors`]: whole, ...mac };
      const library = openGoldenTab();
      const plain = await folder({ ...half, [`${weights}.safetensors`]: whole });
      expect((await library.addModel({ files: plain })).manifest.description).toMatch(
        /Left out: my\/\S+\.fp16\.safetensors \(another form of diffusion_pytorch_model\.safetensors\)\.$/,
      );
      const shard = `${weights}-1-of-1.safetensors`;
      const map = { x: shard.slice('transformer/'.length), y: 'none.safetensors' };
      const index = (weight_map: object) => ({
        [`${weights}.safetensors.index.json`]: JSON.stringify({ weight_map }),
      });
      const stray = await folder({
        [shard]: whole,
        [`${weights}.safetensors`]: whole,
        ...index({ x: map.x }),
      });
      expect((await library.addModel({ files: stray })).manifest.description).toMatch(
        /Left out: my\/transformer\/diffusion_pytorch_model\.safetensors \(another form of /,
      );
      const lacking = await folder({ [shard]: whole, ...index(map) });
      await expect(library.addModel({ files: lacking })).rejects.toMatchObject({
        code: 'MODEL_FILE_MISSING',
        message: expect.stringContaining('my/transformer/none.safetensors'),
      });
      const two = await folder({ 'a.safetensors': whole, 'b.safetensors': whole });
      await expect(library.addModel({ files: two })).rejects.toMatchObject({
        code: 'MODEL_WRONG_KIND',
        message: expect.stringMatching(/my\/a\.safetensors and my\/b\.safetensors are both/),
        remedy: 'Choose one of them.',
      });
    });

    test('of A14B in either layout has both halves; the refusal is that of its family', async () => {
      const a14b = `${goldens}../tiny-wan22-a14b/model/`;
      const read = async (path: string) => {
        const bytes = await readFile(a14b + path).catch(() => readFile(`${goldens}model/${path}`));
        return { path: `my/${path}`, file: new File([new Uint8Array(bytes)], path) };
      };
      const names = ['model_index.json', 'scheduler/scheduler_config.json', 'vae/config.json'];
      names.push(
        'text_encoder/config.json',
        'transformer/config.json',
        'transformer_2/config.json',
      );
      names.push('tokenizer/tokenizer.json', 'tokenizer/tokenizer_config.json');
      const configuration = await Promise.all(names.map(read));
      const [high, low] = await Promise.all(
        ['transformer', 'transformer_2'].map((part) =>
          read(`${part}/diffusion_pytorch_model.safetensors`),
        ),
      );
      if (!high || !low) throw new Error('there are two');
      const library = now().openTab({
        listed: async () => [await listed('wan2.2-ti2v-5b'), await listed('wan2.2-i2v-a14b')],
      });
      const add = (one: string, other: string) =>
        library.addModel({
          files: [
            ...configuration,
            { ...high, path: `my/${one}.safetensors` },
            { ...low, path: `my/${other}.safetensors` },
          ],
        });
      const layouts = [
        [weights, weights.replace('transformer', 'transformer_2')],
        ['high_noise_model/model', 'low_noise_model/model'],
        ['wan2.2_i2v_high_noise_14B', 'wan2.2_i2v_low_noise_14B'],
      ] as const;
      for (const [one, other] of layouts) {
        const { manifest, parts } = await add(one, other);
        expect(manifest.family).toBe('wan14b');
        expect(manifest.description).toBe('Added from local files.');
        expect(parts.map(({ component }) => component)).toContain('transformer_2');
        const fetched = manifest.sources.map(({ component }) => component);
        expect(fetched.filter((component) => component.startsWith('transformer'))).toEqual([]);
      }
      await expect(add('a', 'b')).rejects.toMatchObject({
        code: 'MODEL_WRONG_KIND',
        message: expect.stringContaining('a transformer of Wan2.2-I2V-A14B'),
        remedy: expect.stringContaining('"high" or "low"'),
      });
      // Without their own configuration they are of another size than the listed model.
      configuration.splice(0);
      await expect(add(...layouts[0])).rejects.toMatchObject({ code: 'TENSOR_SHAPE' });
    });
  });

  test('of what is none is refused with a reason', async () => {
    const library = now().openTab();
    // What a browser gives of a folder of symbolic links.
    await expect(library.addModel({ files: [] })).rejects.toMatchObject({
      code: 'FILE_UNREADABLE',
      message: expect.stringContaining('symbolic links'),
    });
    now().hub.repositories.put(
      'kinora/lora',
      'a.safetensors',
      await readFile(`${goldens}loras/a_peft.safetensors`),
    );
    await expect(library.addModel({ address: 'kinora/lora' })).rejects.toMatchObject({
      code: 'MODEL_WRONG_KIND',
    });
    await expect(library.addModel({ address: 'kinora/none' })).rejects.toMatchObject({
      code: 'HUB_NOT_FOUND',
    });
    await expect(library.addModel({ address: 'nonsense' })).rejects.toMatchObject({
      code: 'ADDRESS_INVALID',
    });
  });
});

describe('a model without a tokenizer in its configuration', () => {
  const tokenizer = ['tokenizer/tokenizer.json', 'tokenizer/tokenizer_config.json'];

  /** Takes the tokenizer out of the golden repository's manifest. */
  function publishWithout(): void {
    const { repositories } = now().hub;
    const text = repositories.list(goldenRepository)?.get('kinora.json')?.bytes;
    const manifest = JSON.parse(new TextDecoder().decode(text));
    for (const { component, files } of manifest.sources) {
      if (component !== 'configuration') continue;
      files.splice(
        0,
        files.length,
        ...files.filter(({ path }: { path: string }) => !tokenizer.includes(path)),
      );
    }
    repositories.put(goldenRepository, 'kinora.json', JSON.stringify(manifest));
  }

  test('uses the one of its text encoder, with the same ids; it is verified and deleted', {
    tags: ['full'],
  }, async () => {
    publishWithout();
    const { repositories } = now().hub;
    const path = weightPath('text_encoder');
    repositories.put(goldenRepository, path, await textEncoderWithTokenizer());
    const library = await now().openModelTab();
    await library.download('golden', 'int8');
    const entry = await modelOf(library);
    const model = await openStoredParts(entry.manifest, now().folder('golden'));

    const golden = JSON.parse(await readFile(`${goldens}golden.json`, 'utf8'));
    const ours = await loadTokenizer(model.folder);
    expect(golden.tokenizer_prompts.map(ours.encodePrompt)).toEqual(golden.tokenizer_ids);
    const reference = await loadTokenizer(tinyFolder);
    expect(ours.encodePrompt('日本 cat 語')).toEqual(reference.encodePrompt('日本 cat 語'));

    await library.verify('golden');
    expect((await modelOf(library)).ready).toBe(true);
    const folder = now().folder('golden/text_encoder');
    const writer = await folder.write('tokenizer.json');
    await writer.write(100, new Uint8Array([1, 2, 3]));
    await writer.close();
    await library.verify('golden');
    const { parts } = await modelOf(library);
    expect(parts.find(({ component }) => component === 'text_encoder')).toMatchObject({
      status: 'absent',
      error: { code: 'MODEL_FILE_INVALID', message: expect.stringContaining('tokenizer.json') },
    });
    expect(await folder.list()).toEqual([]);
  });

  test('and with none in its text encoder is refused before any weight is fetched', async () => {
    publishWithout();
    const library = now().openTab();
    await expect(library.addModel({ address: goldenRepository })).rejects.toMatchObject({
      code: 'MODEL_FILE_MISSING',
      message: expect.stringContaining('no tokenizer'),
    });
    expect(now().served('text_encoder').bytes).toBeLessThan(100_000);
    const safetensors = await goldenBytes('model/text_encoder/model.safetensors');
    const files = [
      ...(await localConfiguration(tokenizer)),
      { path: 'my/text.safetensors', file: new File([safetensors], 'text.safetensors') },
    ];
    await expect(library.addModel({ files })).rejects.toMatchObject({
      message: expect.stringContaining('no tokenizer'),
    });
  });
});
