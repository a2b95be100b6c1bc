import { describe, expect, test } from 'vitest';
import { type Finishing, parseParameters } from '../../../lib/contract';
import { deviceOptions } from '../../shared/device';
import { sharedValues } from './files';
import {
  type ChosenLora,
  changeForm,
  emptyForm,
  type FormAction,
  type FormState,
  fromDraft,
  fromParameters,
  type ModelDefaults,
  modelDefaults,
  toParameters,
} from './form-state';
import { findErrors, shownErrors } from './validation';

const lora = (key: string): ChosenLora => ({
  key,
  name: `${key}.safetensors`,
  file: new Blob(),
  scale: '1',
});
const image = { name: 'still.png', file: new Blob(['x']) };

function filled(values: Partial<FormState['values']> = {}): FormState {
  const state = changeForm(emptyForm, { type: 'imageSet', image });
  return changeForm(state, { type: 'changed', values: { prompt: 'a boat', ...values } });
}

test('the empty form has the defaults of the contract', () => {
  const { prompt: _, ...defaults } = parseParameters({ prompt: '-' });
  expect(toParameters(emptyForm)).toEqual({ prompt: '', ...defaults });
});

test('adapters change places, and stay at the ends', () => {
  let state = filled();
  for (const key of ['a', 'b', 'c']) {
    state = changeForm(state, { type: 'loraAdded', lora: lora(key) });
  }
  const after = (key: string, by: 1 | -1) => {
    state = changeForm(state, { type: 'loraMoved', key, by });
    return state.files.loras.map((one) => one.key).join('');
  };
  expect([after('a', 1), after('c', -1), after('c', -1), after('a', 1)]).toEqual([
    'bac',
    'bca',
    'cba',
    'cba',
  ]);
});

test('what something from outside replaced comes back, one replacement after another', () => {
  const before = filled({ seed: '7' });
  const other = { name: 'other.png', file: new Blob(['y']) };
  const first = changeForm(before, {
    type: 'replaced',
    by: 'a.mp4',
    values: { prompt: 'a car', seed: '8' },
    loras: [lora('a')],
  });
  expect([first.values.prompt, first.files.image, first.files.loras.length]).toEqual([
    'a car',
    image,
    1,
  ]);
  const second = changeForm(first, { type: 'replaced', by: 'other.png', image: other });
  expect([second.values.prompt, second.files.image]).toEqual(['a car', other]);
  expect(second.replaced.map(({ by }) => by)).toEqual(['a.mp4', 'other.png']);
  const undo = (state: FormState) => {
    const last = state.replaced.at(-1) ?? emptyForm;
    return changeForm(state, { type: 'undone', values: last.values, files: last.files });
  };
  expect(undo(second)).toEqual(first);
  expect(undo(undo(second))).toEqual(before);
  expect(changeForm(second, { type: 'replacementsKept' }).replaced).toEqual([]);
});

test('parameters are unchanged by the form', () => {
  const parameters = parseParameters({
    prompt: 'p',
    negative_prompt: 'n',
    size: '720*1280',
    num_inference_steps: 7,
    duration: 9,
    loop: true,
    upscale: 2,
    upscaler: 'realesr-general-x4v3',
    smooth: true,
    guidance_scale: 1.5,
    flow_shift: 2.25,
    seed: 9_999_999_999,
  });
  const state = changeForm(emptyForm, { type: 'changed', values: fromParameters(parameters) });
  expect(parseParameters(toParameters(state))).toEqual(parameters);
});

test('the size follows the shape of a new image until the user chooses one', () => {
  const shaped = (width: number, height: number) => ({ ...image, pixels: { width, height } });
  const withImage = (state: FormState, width: number, height: number) =>
    changeForm(state, { type: 'imageSet', image: shaped(width, height) });
  const portrait = withImage(emptyForm, 600, 800);
  expect(portrait.values.size).toBe('720*1280');
  expect(withImage(portrait, 800, 800).values.size).toBe('1280*720');
  // An image of an earlier prediction brings no shape: its settings come with it.
  expect(changeForm(portrait, { type: 'imageSet', image }).values.size).toBe('720*1280');
  const chosen: FormAction = {
    type: 'changed',
    values: { size: '1280*720', sizeChosen: true },
  };
  expect(withImage(changeForm(portrait, chosen), 600, 800).values.size).toBe('1280*720');
});

test('a framing belongs to its image', () => {
  const framing = { zoom: 2, x: 0, y: 1, background: 'blur' } as const;
  const framed = changeForm(filled(), { type: 'imageFramed', framing });
  expect(framed.files.image).toEqual({ ...image, framing });
  expect(changeForm(framed, { type: 'imageSet', image }).files.image).toEqual(image);
  expect(changeForm(emptyForm, { type: 'imageFramed', framing })).toBe(emptyForm);
});

test('an end image has its own frame, changes places with the start image, and leaves no loop', () => {
  const framing = { zoom: 2, x: 0, y: 1, background: 'blur' } as const;
  const end = { name: 'end.png', file: image.file, pixels: { width: 600, height: 800 } };
  const looping = changeForm(filled(), { type: 'changed', values: { loop: true } });
  const name = 'lastImage';
  const both = [
    { type: 'imageSet', image: end, name } as const,
    { type: 'imageFramed', framing, name } as const,
  ].reduce(changeForm, looping);
  expect(both.files).toMatchObject({ image, lastImage: { ...end, framing } });
  expect(both.values.size).toBe(looping.values.size);
  expect(toParameters(both)).not.toHaveProperty('loop');
  const swapped = changeForm(both, { type: 'imagesSwapped' });
  expect(swapped.files).toMatchObject({ image: { ...end, framing }, lastImage: image });
  // A loop may show it before its end; the second goes with the image.
  const second = { last_image_at: '3.5' };
  const between = changeForm(both, { type: 'changed', values: second });
  expect(toParameters(between)).toMatchObject({ loop: true, last_image_at: 3.5 });
  const parameters = parseParameters(toParameters(between));
  const again = changeForm(both, { type: 'changed', values: fromParameters(parameters) });
  expect(parseParameters(toParameters(again))).toEqual(parameters);
  const replacing = { type: 'replaced', by: 'a.mp4', lastImage: end } as const;
  expect(toParameters(changeForm(between, replacing))).not.toHaveProperty('last_image_at');
  const gone = changeForm(between, { type: 'imageSet', image: null, name });
  expect(toParameters(gone)).not.toHaveProperty('last_image_at');
  const late = changeForm(between, { type: 'changed', values: { last_image_at: '5.1' } });
  expect(findErrors(late)).toEqual({
    last_image_at: 'The end image stands at a second from 0.1 to 5, or at the end.',
  });
  const open = changeForm(both, { type: 'imageSet', image: null, name });
  expect(toParameters(open).loop).toBe(true);
  // What takes the place of the form brings its own end.
  const other = { type: 'replaced', by: 'a.mp4', values: { loop: true } } as const;
  expect(toParameters(changeForm(both, other)).loop).toBe(true);
});

describe('adapters', () => {
  test('at most three, each with its scale', () => {
    let state = filled();
    for (const key of ['a', 'b', 'c', 'd']) {
      state = changeForm(state, { type: 'loraAdded', lora: lora(key) });
    }
    state = changeForm(state, { type: 'loraScaled', key: 'b', scale: '2.5' });
    state = changeForm(state, { type: 'loraRemoved', key: 'a' });
    expect(toParameters(state).loras).toEqual([
      { path: 'b.safetensors', scale: 2.5 },
      { path: 'c.safetensors', scale: 1 },
    ]);
  });

  test('a scale out of range is an error of its adapter', () => {
    let state = changeForm(filled(), { type: 'loraAdded', lora: lora('a') });
    state = changeForm(state, { type: 'loraScaled', key: 'a', scale: '4.1' });
    expect(findErrors(state)).toEqual({ a: 'Scale must be a number from 0 to 4.' });
  });
});

describe('errors', () => {
  test('a complete form has none', () => {
    expect(findErrors(filled())).toEqual({});
  });

  test('every invalid number has a message with its label and range', () => {
    const values = {
      num_inference_steps: '41',
      duration: '4',
      guidance_scale: '',
      flow_shift: '11',
      seed: '1.5',
    };
    expect(findErrors(filled(values))).toEqual({
      num_inference_steps: 'Steps must be a whole number from 1 to 40.',
      duration: 'Duration must be a whole number from 5 to 10.',
      guidance_scale: 'Guidance must be a number from 1 to 10.',
      flow_shift: 'Flow shift must be a number from 1 to 10.',
      seed: 'Seed must be a whole number from -1 to 9999999999.',
    });
  });

  test('missing fields are marked only after an attempt', () => {
    expect(shownErrors(emptyForm)).toEqual({});
    const checked = changeForm(emptyForm, { type: 'checked' });
    expect(shownErrors(checked)).toEqual({
      image: 'There is no image. Choose, drop or paste a JPEG, PNG, WebP, AVIF, GIF or BMP image.',
      prompt: 'The prompt is empty. Describe what should happen in the video.',
    });
  });
});

test('a memory budget is in GiB, empty for automatic, and checked', () => {
  const bytes = (memoryBudget: string) => deviceOptions({ memoryBudget }).memoryBudget;
  expect([bytes(' '), bytes('0.5'), bytes('8')]).toEqual([undefined, 2 ** 29, 2 ** 33]);
  expect(findErrors(filled({ memoryBudget: '8' }))).toEqual({});
  for (const memoryBudget of ['0', '-1', '4096', 'much']) {
    expect(findErrors(filled({ memoryBudget })).device).toMatch(/0\.001 to 1024 GiB/);
  }
});

test('a draft of an earlier version gets the defaults of newer fields', () => {
  const { profile: _, ...earlier } = {
    ...emptyForm.values,
    prompt: 'half a sentence',
    model: 'tiny',
  };
  expect(fromDraft(earlier)).toEqual({ ...earlier, profile: 'standard' });
  expect(fromDraft({ profile: 'ultra-fast' }).profile).toBe('ultra-fast');
});

/** The form once it shows a model with these defaults. */
const shown = (state: FormState, defaults: ModelDefaults) =>
  changeForm(state, { type: 'modelShown', defaults });

test('the negative prompt is the model’s until it is edited, and no other model’s', () => {
  const makers = modelDefaults({ defaults: { negative_prompt: 'blurred, three legs' } });
  const first = shown(emptyForm, makers);
  expect(toParameters(first).negative_prompt).toBe('blurred, three legs');
  expect(shown(first, modelDefaults()).values.negative_prompt).toBe('');
  const change = (negative_prompt: string) =>
    changeForm(first, { type: 'changed', values: { negative_prompt } });
  for (const own of ['', 'blurred, three legs, rain']) {
    expect(shown(change(own), modelDefaults()).values.negative_prompt).toBe(own);
  }
});

test('drafts and earlier videos keep their negative prompt, also none', () => {
  const makers = modelDefaults({ defaults: { negative_prompt: 'blurred' } });
  const values = fromParameters(parseParameters({ prompt: 'a' }));
  const video = changeForm(emptyForm, { type: 'changed', values });
  expect(shown(video, makers).values.negative_prompt).toBe('');
  // A draft of a version in which the negative prompt did not follow the model.
  const { negative_prompt: _, ...numbers } = modelDefaults();
  const draft = { ...emptyForm.values, samplingDefaults: numbers as ModelDefaults };
  const restored = changeForm(emptyForm, { type: 'restored', values: fromDraft(draft) });
  expect(shown(restored, makers).values.negative_prompt).toBe('');
});

test('numbers that nobody changed follow the model, others stay', () => {
  const ofModel = modelDefaults({ defaults: { num_inference_steps: 8, guidance_scale: 2 } });
  const typed = changeForm(emptyForm, { type: 'changed', values: { guidance_scale: '3' } });
  const followed = shown(typed, ofModel);
  expect(followed.values).toMatchObject({ ...ofModel, guidance_scale: '3' });
  const back = shown(followed, modelDefaults());
  expect(back.values).toMatchObject({ num_inference_steps: '30', guidance_scale: '3' });
  // Settings of an earlier video are chosen ones, also where they are a model's defaults.
  const { parameters } = { parameters: parseParameters({ prompt: 'a', num_inference_steps: 8 }) };
  const restored = changeForm(followed, { type: 'changed', values: fromParameters(parameters) });
  const other = shown(restored, modelDefaults());
  expect(other.values.num_inference_steps).toBe('8');
});

test('of a shared request whose settings are shown, each switch is as it was', () => {
  const shared = (finishing: Finishing) =>
    sharedValues({
      parameters: { size: '1280*720', ...finishing },
      profile: 'standard',
      image: false,
    });
  const on = { upscaler: undefined, smooth: undefined };
  const off = { loop: undefined, last_image_at: '', upscale: undefined, ...on };
  const upscaler = 'realesr-general-x4v3';
  expect(shared({ upscale: 2, upscaler, smooth: true })).toMatchObject({
    ...off,
    upscale: 2,
    upscaler,
    smooth: true,
  });
  expect(shared({ upscale: 1, smooth: false })).toMatchObject(off);
  expect(shared({})).toMatchObject(off);
  // Nothing of the form is changed by what is not shown.
  const hidden = { parameters: { prompt: 'a' }, image: false };
  expect(sharedValues(hidden)).toEqual({ prompt: 'a' });
});
