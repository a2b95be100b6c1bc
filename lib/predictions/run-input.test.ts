import { expect, test } from 'vitest';
import { createPrediction, newRow, type RunInput, requestOf } from './run-input';

const image = new Blob(['image']);
const input: RunInput = {
  image,
  imageName: 'a.png',
  loras: [{ name: 'swing', file: null }],
  parameters: { prompt: 'a boat', loras: [{ path: 'swing', scale: 0.5 }] },
  model: 'tiny',
  profile: 'standard',
  options: { cache: true },
  device: { backend: 'wasm', memoryBudget: 1e9 },
  continues: 'a',
};

/** The code with which a request is refused that differs in this. */
async function refusal(changed: Partial<RunInput>): Promise<unknown> {
  const { parameters, ...others } = { ...input, ...changed };
  const asked = { ...others, parameters: { ...input.parameters, ...parameters } };
  return createPrediction(asked).then(
    () => null,
    ({ code }) => code,
  );
}

test('a request is validated where it comes in', async () => {
  const withPrompt = (prompt: string) => ({ parameters: { prompt } });
  const asked = { prompt: 'a boat' };
  expect(await refusal({})).toBeNull();
  expect(await refusal(withPrompt(' '))).toBe('PROMPT_EMPTY');
  expect(await refusal(withPrompt('a naked 12 year old girl'))).toBe('PROMPT_REFUSED');
  expect(await refusal({ parameters: { ...asked, duration: 4 } })).toBe('PARAMETER_INVALID');
  expect(await refusal({ parameters: { ...asked, last_image_at: 2 } })).toBe('PARAMETER_INVALID');
  expect(await refusal({ loras: [] })).toBe('REQUEST_INVALID');
  const ending = (changed: object) => ({ lastImage: image, parameters: { ...asked, ...changed } });
  expect(await refusal(ending({}))).toBeNull();
  expect(await refusal(ending({ loop: true }))).toBe('LOOP_WITH_LAST_IMAGE');
  expect(await refusal(ending({ last_image_at: 5.5 }))).toBe('LAST_IMAGE_BEYOND_END');
});

test('the row of a request waits with its defaults, a random seed still open; the engine is asked for the same', async () => {
  const row = await createPrediction(input);
  const { parameters } = row;
  expect(parameters).toMatchObject({ prompt: 'a boat', duration: 5, seed: -1 });
  const { model, profile, options, device } = input;
  const asked = { model, profile, options, device, continues: 'a' };
  expect(row).toMatchObject({ ...asked, backend: 'wasm', status: 'created' });
  expect(newRow({ ...asked, parameters })).toMatchObject({ ...asked, parameters });

  const file = new Blob(['lora']);
  const files = {
    image,
    before: undefined,
    loras: [{ name: 'swing', file, noise: 'low' as const }],
  };
  expect(requestOf(row, files, device)).toEqual({
    id: row.id,
    image,
    continues: true,
    before: undefined,
    parameters,
    model,
    profile,
    options,
    device,
    loras: [{ name: 'swing', file, noise: 'low', scale: 0.5 }],
  });
});
