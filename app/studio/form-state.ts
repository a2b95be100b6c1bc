import type { Backend } from '../../lib/contract/prediction';
import {
  type Parameters,
  type ParametersInput,
  parameterRanges,
  type Size,
} from '../../lib/contract/request';

/** Names of the number fields: parameters that are typed in and may be unfinished. */
export type NumberName = keyof typeof parameterRanges;

/** What is typed and picked; numbers stay text until they are used. */
export interface FormValues extends Record<NumberName, string> {
  readonly prompt: string;
  readonly negative_prompt: string;
  readonly size: Size;
  /** Empty until the list of models is there. */
  readonly model: string;
  readonly backend: Backend;
  /** Most GPU memory to use, in GiB; empty means what a probe finds. */
  readonly memoryBudget: string;
}

export interface ChosenImage {
  readonly name: string;
  readonly file: Blob;
}

export interface ChosenLora {
  /** Stays the same while others come and go. */
  readonly key: string;
  readonly name: string;
  /** Null for one of the library: it is opened by its name when it is used. */
  readonly file: Blob | null;
  readonly scale: string;
}

export interface FormFiles {
  readonly image: ChosenImage | null;
  readonly loras: readonly ChosenLora[];
}

export interface FormState {
  readonly values: FormValues;
  readonly files: FormFiles;
  /** True once Generate was pressed on an incomplete form: from then on gaps are marked. */
  readonly checked: boolean;
}

export type FormAction =
  | { readonly type: 'changed'; readonly values: Partial<FormValues> }
  | { readonly type: 'restored'; readonly values?: FormValues; readonly files?: FormFiles }
  | { readonly type: 'imageSet'; readonly image: ChosenImage | null }
  | { readonly type: 'loraAdded'; readonly lora: ChosenLora }
  | { readonly type: 'loraScaled'; readonly key: string; readonly scale: string }
  | { readonly type: 'loraRemoved'; readonly key: string }
  | { readonly type: 'lorasSet'; readonly loras: readonly ChosenLora[] }
  | { readonly type: 'checked' };

export const maxLoras = 3;

export const emptyForm: FormState = {
  values: {
    prompt: '',
    negative_prompt: '',
    size: '1280*720',
    num_inference_steps: String(parameterRanges.num_inference_steps.default),
    duration: String(parameterRanges.duration.default),
    guidance_scale: String(parameterRanges.guidance_scale.default),
    flow_shift: String(parameterRanges.flow_shift.default),
    seed: String(parameterRanges.seed.default),
    model: '',
    backend: 'webgpu',
    memoryBudget: '',
  },
  files: { image: null, loras: [] },
  checked: false,
};

/** The form as one pure reducer. */
export function changeForm(state: FormState, action: FormAction): FormState {
  const { files } = state;
  switch (action.type) {
    case 'changed':
      return { ...state, values: { ...state.values, ...action.values } };
    case 'restored':
      return { ...state, values: action.values ?? state.values, files: action.files ?? files };
    case 'imageSet':
      return { ...state, files: { ...files, image: action.image } };
    case 'loraAdded':
      if (files.loras.length >= maxLoras) return state;
      return withLoras(state, [...files.loras, action.lora]);
    case 'loraScaled':
      return withLoras(
        state,
        files.loras.map((lora) =>
          lora.key === action.key ? { ...lora, scale: action.scale } : lora,
        ),
      );
    case 'loraRemoved':
      return withLoras(
        state,
        files.loras.filter((lora) => lora.key !== action.key),
      );
    case 'lorasSet':
      return withLoras(state, action.loras.slice(0, maxLoras));
    case 'checked':
      return { ...state, checked: true };
  }
}

function withLoras(state: FormState, loras: readonly ChosenLora[]): FormState {
  return { ...state, files: { ...state.files, loras } };
}

/** The request that the form describes, not yet validated: an empty number field is NaN. */
export function toParameters({ values, files }: FormState): ParametersInput {
  return {
    prompt: values.prompt,
    negative_prompt: values.negative_prompt,
    size: values.size,
    num_inference_steps: toNumber(values.num_inference_steps),
    duration: toNumber(values.duration),
    guidance_scale: toNumber(values.guidance_scale),
    flow_shift: toNumber(values.flow_shift),
    seed: toNumber(values.seed),
    loras: files.loras.map(({ name, scale }) => ({ path: name, scale: toNumber(scale) })),
  };
}

/** The form's values for parameters that were used before. */
export function fromParameters(parameters: Parameters): Partial<FormValues> {
  return {
    prompt: parameters.prompt,
    negative_prompt: parameters.negative_prompt,
    size: parameters.size,
    num_inference_steps: String(parameters.num_inference_steps),
    duration: String(parameters.duration),
    guidance_scale: String(parameters.guidance_scale),
    flow_shift: String(parameters.flow_shift),
    seed: String(parameters.seed),
  };
}

/** The bytes of a memory budget; undefined where the field is empty, NaN where it is no number. */
export function toBudgetBytes(memoryBudget: string): number | undefined {
  const gibibytes = toNumber(memoryBudget);
  return memoryBudget.trim() === '' ? undefined : Math.round(gibibytes * 2 ** 30);
}

/** `Number`, but nothing typed is not zero. */
export function toNumber(text: string): number {
  return text.trim() === '' ? Number.NaN : Number(text);
}
