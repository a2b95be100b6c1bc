import {
  adapterStrengths,
  type Backend,
  chosenSwitches,
  type Framing,
  groupPairs,
  isSwitch,
  type ModelManifest,
  maxLoras,
  type ParametersInput,
  type PixelSize,
  type Prediction,
  type ProfileName,
  type PromptOptimization,
  parameterRanges,
  type RunOptions,
  type SamplingSwitch,
  type Size,
  type Switches,
  samplingSwitches,
  switches,
  unusedParameters,
} from '../../../lib/contract';
import type { SharedRequest } from '../../../lib/contract/v3';
import { type TypedDevice, typedDevice } from '../../shared/device';
import { t } from '../../texts';
import '../../texts/en/form';

/** Names of the numeric parameters. */
export type NumberName = keyof typeof parameterRanges;

/** What a model may have defaults of its own for. */
const ofModel = [...unusedParameters, 'negative_prompt'] as const;
/** Their values; numbers as texts. */
export type ModelDefaults = Readonly<Record<(typeof ofModel)[number], string>>;

/** The values with which the form begins for a model; without one, those of the API. */
export function modelDefaults(model?: Pick<ModelManifest, 'defaults'>): ModelDefaults {
  const of = (name: (typeof unusedParameters)[number]) =>
    String(model?.defaults[name] ?? parameterRanges[name].default);
  return {
    negative_prompt: model?.defaults.negative_prompt ?? '',
    num_inference_steps: of('num_inference_steps'),
    guidance_scale: of('guidance_scale'),
    flow_shift: of('flow_shift'),
  };
}

/** What a number may be, as a sentence. */
export function rangeText(name: NumberName): string {
  const { min, max, step } = parameterRanges[name];
  const values = { name: t(`form.numbers.${name}`), min, max };
  return step < 1 ? t('form.numberRange', values) : t('form.wholeNumberRange', values);
}

/**
 * Values of the form; numbers are text, because a number that is being typed may be incomplete. Switches have the
 * values of requests and options, and are absent where they are off.
 */
export interface FormValues
  extends Record<NumberName, string>,
    Switches,
    Pick<RunOptions, SamplingSwitch>,
    TypedDevice {
  readonly prompt: string;
  readonly negative_prompt: string;
  readonly size: Size;
  /** Whether the user chose the size; until then it follows the shape of the image. */
  readonly sizeChosen: boolean;
  /** The second at which the video shows the end image; empty for its end. */
  readonly last_image_at: string;
  /** Empty until a model is selected. */
  readonly model: string;
  readonly profile: ProfileName;
  /** Strength of the profile's adapter, one of `adapterStrengths`. */
  readonly adapterStrength: number;
  readonly backend: Backend;
  /** Whether image and frames are checked. */
  readonly safetyChecker: boolean;
  /**
   * The defaults of the model that was shown last: a value that is still one of them follows the model. Null
   * where all values were chosen, as those of an earlier video.
   */
  readonly samplingDefaults: ModelDefaults | null;
  /** How the prompt was improved; null where it was not, or was replaced since. */
  readonly optimization: PromptOptimization | null;
}

export interface ChosenImage {
  readonly name: string;
  readonly file: Blob;
  /** Of an image that was just chosen; absent where its size was chosen before. */
  readonly pixels?: PixelSize;
  /** How it lies in the frame; centred when absent. */
  readonly framing?: Framing | undefined;
}

export interface ChosenLora {
  /** Identifies this entry in the list. */
  readonly key: string;
  readonly name: string;
  /** Null for a LoRA of the library, which is opened by its name when a run starts. */
  readonly file: Blob | null;
  readonly scale: string;
}

export interface FormFiles {
  readonly image: ChosenImage | null;
  /** What the video ends in, or shows before. While it ends in one it is no loop, whatever `loop` says. */
  readonly lastImage: ChosenImage | null;
  readonly loras: readonly ChosenLora[];
}

/** The images of the form. */
export type ImageName = 'image' | 'lastImage';

/** What was in the form before something replaced it that did not come from its fields. */
export interface Replaced {
  /** What took its place, as a name to show. */
  readonly by: string;
  readonly values: FormValues;
  readonly files: FormFiles;
}

export interface FormState {
  readonly values: FormValues;
  readonly files: FormFiles;
  /** What Undo brings back, the last one at the end. */
  readonly replaced: readonly Replaced[];
  /** True after Generate was pressed on an incomplete form; then missing fields are marked. */
  readonly checked: boolean;
}

export type FormAction =
  | { readonly type: 'changed'; readonly values: Partial<FormValues> }
  | {
      readonly type: 'restored';
      readonly values?: FormValues;
      readonly files?: FormFiles;
      readonly replaced?: readonly Replaced[];
    }
  /** Something else takes the place of what is in the form; what is absent stays. */
  | {
      readonly type: 'replaced';
      readonly by: string;
      readonly values?: Partial<FormValues>;
      readonly image?: ChosenImage | undefined;
      /** Null removes it. */
      readonly lastImage?: ChosenImage | null | undefined;
      readonly loras?: readonly ChosenLora[] | undefined;
    }
  /** The last replacement is undone: these values and files come back. */
  | { readonly type: 'undone'; readonly values: FormValues; readonly files: FormFiles }
  /** The replacements stay: what was before them is not needed any more. */
  | { readonly type: 'replacementsKept' }
  /** The form now shows this model. */
  | { readonly type: 'modelShown'; readonly defaults: ModelDefaults }
  /** The start image, where no name is given. */
  | { readonly type: 'imageSet'; readonly image: ChosenImage | null; readonly name?: ImageName }
  | { readonly type: 'imageFramed'; readonly framing: Framing; readonly name?: ImageName }
  /** Start and end image change places. */
  | { readonly type: 'imagesSwapped' }
  | { readonly type: 'loraAdded'; readonly lora: ChosenLora }
  | { readonly type: 'loraScaled'; readonly key: string; readonly scale: string }
  | { readonly type: 'loraMoved'; readonly key: string; readonly by: 1 | -1 }
  | { readonly type: 'loraRemoved'; readonly key: string }
  | { readonly type: 'lorasSet'; readonly loras: readonly ChosenLora[] }
  | { readonly type: 'checked' };

/** The rows of the list: one for each LoRA, or for both files of a pair while they have one strength. */
export const rowsOfLoras = (loras: readonly ChosenLora[]) =>
  groupPairs(
    loras,
    ({ name }) => name,
    (one, other) => one.scale === other.scale,
  );

export const emptyForm: FormState = {
  values: {
    prompt: '',
    size: '1280*720',
    sizeChosen: false,
    last_image_at: '',
    ...modelDefaults(),
    samplingDefaults: modelDefaults(),
    duration: String(parameterRanges.duration.default),
    seed: String(parameterRanges.seed.default),
    model: '',
    profile: 'standard',
    adapterStrength: adapterStrengths.default,
    backend: 'webgpu',
    ...typedDevice({}),
    ...browserOptions({ safetyChecker: true }),
    optimization: null,
  },
  files: { image: null, lastImage: null, loras: [] },
  replaced: [],
  checked: false,
};

/** Pure reducer of the form. */
export function changeForm(state: FormState, action: FormAction): FormState {
  const { files } = state;
  switch (action.type) {
    case 'changed': {
      // A prompt that comes without its optimisation replaces the optimised one.
      const replaced = action.values.prompt === undefined ? {} : { optimization: null };
      return { ...state, values: { ...state.values, ...replaced, ...action.values } };
    }
    case 'restored':
      return {
        ...state,
        values: action.values ?? state.values,
        files: action.files ?? files,
        replaced: action.replaced ?? state.replaced,
      };
    case 'replaced':
      return replaced(state, action);
    case 'undone': {
      const { values, files: earlier } = action;
      return { ...state, values, files: earlier, replaced: state.replaced.slice(0, -1) };
    }
    case 'replacementsKept':
      return { ...state, replaced: [] };
    case 'modelShown':
      return { ...state, values: followModel(state.values, action.defaults) };
    case 'imageSet':
      return withImages(state, { [action.name ?? 'image']: action.image });
    case 'imageFramed': {
      const { framing, name = 'image' } = action;
      const image = files[name];
      return image ? withImages(state, { [name]: { ...image, framing } }) : state;
    }
    case 'imagesSwapped':
      return withImages(state, { image: files.lastImage, lastImage: files.image });
    case 'loraAdded':
      return withRows(state, rowsOfLoras([...files.loras, action.lora]));
    case 'loraScaled': {
      const row: LoraRow = rowsOfLoras(files.loras).find(isOf(action.key)) ?? [];
      const scaled = (lora: ChosenLora) => ({ ...lora, scale: action.scale });
      const all = files.loras.map((lora) => (row.includes(lora) ? scaled(lora) : lora));
      return { ...state, files: { ...files, loras: all } };
    }
    case 'loraMoved':
      return withRows(state, moved(rowsOfLoras(files.loras), isOf(action.key), action.by));
    case 'loraRemoved':
      return withRows(
        state,
        rowsOfLoras(files.loras).filter((row) => !isOf(action.key)(row)),
      );
    case 'lorasSet':
      return withRows(state, rowsOfLoras(action.loras));
    case 'checked':
      return { ...state, checked: true };
  }
}

function replaced(
  state: FormState,
  { by, values, image, lastImage, loras }: Extract<FormAction, { type: 'replaced' }>,
): FormState {
  const before = { by, values: state.values, files: state.files };
  const actions: FormAction[] = [];
  if (values) actions.push({ type: 'changed', values });
  if (loras) actions.push({ type: 'lorasSet', loras });
  if (image) actions.push({ type: 'imageSet', image });
  // A loop takes the place of an end image.
  const end = lastImage === undefined && values?.loop ? null : lastImage;
  if (end !== undefined) {
    const { last_image_at = '' } = values ?? {};
    actions.push({ type: 'changed', values: { last_image_at } });
    actions.push({ type: 'imageSet', image: end, name: 'lastImage' });
  }
  const all = isEmpty(state) ? state.replaced : [...state.replaced, before];
  return { ...actions.reduce(changeForm, state), replaced: all };
}

/** Whether there is nothing in the form that could be missed. */
function isEmpty({ values, files: { image, lastImage, loras } }: FormState): boolean {
  return !image && !lastImage && loras.length === 0 && values.prompt.trim() === '';
}

/** Whether the form shows the defaults of another model, or none. */
export function showsOthers({ samplingDefaults }: FormValues, defaults: ModelDefaults): boolean {
  return ofModel.some((name) => defaults[name] !== samplingDefaults?.[name]);
}

/** The values with the defaults of a model, where a value is still the default of the one before. */
function followModel(values: FormValues, defaults: ModelDefaults): FormValues {
  const kept = ofModel.filter((name) => values[name] !== values.samplingDefaults?.[name]);
  const chosen = Object.fromEntries(kept.map((name) => [name, values[name]]));
  return { ...values, ...defaults, ...chosen, samplingDefaults: defaults };
}

/** The size of the video for an image: that of its shape, unless the user chose one. */
function sizeFor(image: ChosenImage | null, { size, sizeChosen }: FormValues): Size {
  if (sizeChosen || !image?.pixels) return size;
  return image.pixels.height > image.pixels.width ? '720*1280' : '1280*720';
}

/** The form with other images; the size follows the start image. */
function withImages(state: FormState, images: Partial<Pick<FormFiles, ImageName>>): FormState {
  const files = { ...state.files, ...images };
  const size = images.image === undefined ? state.values.size : sizeFor(files.image, state.values);
  return { ...state, values: { ...state.values, size }, files };
}

type LoraRow = readonly ChosenLora[];

/** The form with as many of the LoRAs as a request may have. */
function withRows(state: FormState, rows: readonly LoraRow[]): FormState {
  return { ...state, files: { ...state.files, loras: rows.slice(0, maxLoras).flat() } };
}

const isOf = (key: string) => (row: LoraRow) => row.some((lora) => lora.key === key);

/** The list with one row moved by a place; the same where it is at that end already. */
function moved(
  rows: readonly LoraRow[],
  isRow: (row: LoraRow) => boolean,
  by: number,
): readonly LoraRow[] {
  const from = rows.findIndex(isRow);
  const [row, other] = [rows[from], rows[from + by]];
  if (!row || !other) return rows;
  return rows.map((one) => (one === row ? other : one === other ? row : one));
}

/** Whether the end image is the end of the video. */
export function endsInImage({ values, files }: Pick<FormState, 'values' | 'files'>): boolean {
  return files.lastImage !== null && values.last_image_at.trim() === '';
}

/** The parameters of the form, not validated: an empty number is NaN. */
export function toParameters({ values, files }: FormState): ParametersInput {
  const isEnd = endsInImage({ values, files });
  return {
    prompt: values.prompt,
    negative_prompt: values.negative_prompt,
    size: values.size,
    num_inference_steps: toNumber(values.num_inference_steps),
    duration: toNumber(values.duration),
    ...chosenSwitches(isEnd ? { ...values, loop: undefined } : values),
    ...(files.lastImage && !isEnd && { last_image_at: toNumber(values.last_image_at) }),
    guidance_scale: toNumber(values.guidance_scale),
    flow_shift: toNumber(values.flow_shift),
    seed: toNumber(values.seed),
    loras: files.loras.map(({ name, scale }) => ({ path: name, scale: toNumber(scale) })),
  };
}

/** Switches as something has them; undefined where one is off, or has a value that is none of it. */
function readSwitches(
  definitions: Readonly<Record<string, { readonly on: unknown; readonly or?: unknown }>>,
  values: Readonly<Record<string, unknown>>,
): Switches & Pick<RunOptions, SamplingSwitch> {
  const entries = Object.entries(definitions).map(([name, { on, or }]) => {
    return [name, [on, or].find((value) => value === values[name])];
  });
  return Object.fromEntries(entries);
}

/** The options that are a setting of this browser, and not of a video. */
export function browserOptions({ safetyChecker = false }: RunOptions) {
  return { safetyChecker };
}

/** The form's values for parameters of an earlier request, as far as they are known. */
export function fromParameters(
  parameters: SharedRequest['parameters'] & { readonly loras?: unknown },
): Partial<FormValues> {
  const { size, loras: _, ...others } = parameters;
  const texts = Object.entries(others).filter(
    ([name, value]) => value !== undefined && !isSwitch(name),
  );
  return {
    ...Object.fromEntries(texts.map(([name, value]) => [name, String(value)])),
    // If the size is known, everything but the prompts is known.
    ...(size && {
      size,
      sizeChosen: true,
      last_image_at: String(parameters.last_image_at ?? ''),
      ...readSwitches(switches, others),
      samplingDefaults: null,
    }),
  };
}

/** The form's values for the run of an earlier request: its parameters, model and options. */
export function fromRun(
  run: Pick<Prediction, 'model' | 'profile' | 'backend' | 'parameters' | 'options'>,
): Partial<FormValues> {
  const { model, profile, backend, options } = run;
  const { adapterStrength = adapterStrengths.default, promptOptimizer } = options;
  return {
    ...fromParameters(run.parameters),
    model,
    profile,
    backend,
    ...readSwitches(samplingSwitches, { ...options }),
    adapterStrength,
    optimization: typeof promptOptimizer === 'object' ? promptOptimizer : null,
  };
}

/** The prompt as the user typed it, with the optimisation that it comes from. */
export function typedPrompt(
  prompt: string,
  optimization: PromptOptimization | null,
): Pick<FormValues, 'prompt' | 'optimization'> {
  const gone = prompt.trim() === '' || prompt === optimization?.original;
  return { prompt, optimization: gone ? null : optimization };
}

/** Like `Number`, but an empty text is NaN and not 0. */
export function toNumber(text: string): number {
  return text.trim() === '' ? Number.NaN : Number(text);
}

/** The form's files from a draft, which an earlier version without an end image may have saved. */
export function filesFromDraft(files: Partial<FormFiles>): FormFiles {
  return { ...emptyForm.files, ...files };
}

/** The form's values from a draft, which an earlier version with fewer fields may have saved. */
export function fromDraft(values: Partial<FormValues>): FormValues {
  return {
    ...emptyForm.values,
    ...values,
    ...readSwitches({ ...switches, ...samplingSwitches }, { ...values }),
  };
}
