import { createContext, type Dispatch, type ReactNode, type RefObject, use } from 'react';
import type {
  Backend,
  DeviceReport,
  ErrorRecord,
  ModelEntry,
  ParametersInput,
} from '../../../lib/contract';
import type { ResolvedSampling } from '../../../lib/pipeline/profiles';
import type { ModelList } from '../../shared/use-models';
import type { Example } from './examples';
import type { ChosenImage, FormAction, FormState, FormValues } from './form-state';
import type { Edit } from './use-edit';
import type { FileInput } from './use-file-input';
import type { Improve } from './use-improve';
import type { SharedFiles } from './use-launched-files';
import type { FieldErrors } from './validation';

/** What the studio gives to the form: none of it changes while a run goes on. */
export interface RequestContent {
  readonly formRef: RefObject<HTMLFormElement | null>;
  readonly form: FormState;
  readonly change: Dispatch<FormAction>;
  /** Whether the draft is restored; Generate may be pressed before. */
  readonly ready: boolean;
  readonly models: ModelList;
  readonly fileInput: FileInput;
  readonly shared: SharedFiles;
  /** The images that each become a video; null where the one of the form does. */
  readonly several: readonly ChosenImage[] | null;
  readonly improve: Improve;
  readonly edit: Edit;
  /** How many requests wait in the queue. */
  readonly waiting: number;
  /** A generation is running: it needs the memory. */
  readonly busy: boolean;
  /** Why the last request did not start. */
  readonly startError: ErrorRecord | null;
  readonly gpu: DeviceReport | null;
  /** What is wrong with the GPU, where the stage does not say it; and what can be done. */
  readonly gpuProblem: ErrorRecord | null;
  readonly gpuActions: ReactNode;
  readonly backend: Backend;
  /** Whether the stage shows the introduction. */
  readonly introduced: boolean;
  /** Changes when a run has ended, which may have measured the device. */
  readonly revision: string;
  readonly onExample: (example: Example) => void;
  readonly onExampleLora: () => void;
  readonly onGenerate: () => void;
  readonly onVariations: (changes: readonly Partial<ParametersInput>[]) => void;
}

/** The form as its fields see it, and how they change it. */
export interface FormFields extends RequestContent {
  readonly values: FormValues;
  readonly errors: FieldErrors;
  /** The selected model; undefined until the models are known. */
  readonly model: ModelEntry | undefined;
  /** What the model makes of the form; null where it is not known yet. */
  readonly resolved: ResolvedSampling | null;
  readonly set: (changes: Partial<FormValues>) => void;
}

export const FieldsContext = createContext<FormFields | null>(null);

export function useFields(): FormFields {
  const fields = use(FieldsContext);
  if (fields === null) throw new Error('This part belongs to the form of the studio.');
  return fields;
}
