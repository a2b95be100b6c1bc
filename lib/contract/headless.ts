/** The functions of the page `/headless` for programs that drive it, such as `npm run generate`. */
import type { DecoderComparison, DeviceReport, KernelCheck, RunCounters } from './engine';
import type { Backend } from './kernel-setting';
import type { LibraryApi, LibrarySnapshot, LoraEntry, ModelEntry, ToolEntry } from './library';
import type { Precision } from './manifest-parts';
import type { GenerationResult, ProgressEvent } from './progress';
import type { ParametersInput } from './request';
import type { DeviceOptions, RunRequest } from './run';

type Passed =
  | 'snapshot'
  | 'setHub'
  | 'forgetModel'
  | 'planDownload'
  | 'pause'
  | 'verify'
  | 'deleteModel'
  | 'deleteLora';

/** The functions for the library of this browser. */
export interface HeadlessLibraryApi extends Pick<LibraryApi, Passed> {
  /** `download` of the library. On this page `download` is for videos. */
  downloadModel(...args: Parameters<LibraryApi['download']>): Promise<void>;
  addModel(address: string, revision?: string): Promise<ModelEntry>;
  addTool(address: string, revision?: string): Promise<ToolEntry>;
  /** Lists the language model whose file is in `#files`. @param paths as in {@link addPickedModel} */
  addPickedTool(paths: readonly string[]): Promise<ToolEntry>;
  /** Lists the model whose files are in `#files`. @param paths of these files in the folder that is meant */
  addPickedModel(paths: readonly string[]): Promise<ModelEntry>;
  /** Stores what {@link addPickedModel} or {@link addPickedTool} has listed. */
  importPicked(id: string, precision: Precision, paths: readonly string[]): Promise<void>;
  /** Adds the LoRA of an address, or the first file of `#loras` where there is none. */
  addLora(address: string | null): Promise<LoraEntry>;
  /** Uses a token for the hub until the page is closed. */
  setHubToken(token: string): Promise<void>;
  /** Whether the present terms of use were accepted in this browser. */
  termsAccepted(): Promise<boolean>;
  acceptTerms(): Promise<void>;
  /** Passes each change from now on to `window.kinoraLibrary`. */
  watchLibrary(): Promise<void>;
  /** Deletes every prediction with its files: this browser shows no history. */
  clearHistory(): Promise<void>;
}

/** A run that a program starts through the page. `loras` follows from the files and `loraScales` if it is left out. */
export interface HeadlessRun extends RunRequest<ParametersInput> {
  readonly device: DeviceOptions;
  /** One per file of `#loras`, in order. */
  readonly loraScales: readonly number[];
  /** Adapters of this browser's library; they come after the files. */
  readonly libraryLoras?: readonly { readonly name: string; readonly scale: number }[];
}

/** A progress event for the program: a preview comes without its pixels. */
export type HeadlessEvent =
  | Exclude<ProgressEvent, { type: 'preview' }>
  | Omit<Extract<ProgressEvent, { type: 'preview' }>, 'pixels'>;

declare global {
  interface Window {
    kinora?: HeadlessApi;
    /** Callback of the program for changes of the library. */
    kinoraLibrary?: (snapshot: LibrarySnapshot) => unknown;
    /** Callback of the program for progress. */
    kinoraProgress?: (event: HeadlessEvent) => unknown;
  }
}

/**
 * The functions of the page. Every rejection is an Error whose message is the JSON of an `ErrorRecord`,
 * because browser drivers transfer nothing else of an error.
 */
export interface HeadlessApi extends HeadlessLibraryApi {
  /** Makes a video of the files in `#image`, `#last-image` and `#loras`; resolves when it is on disk. */
  generate(run: HeadlessRun): Promise<GenerationResult>;
  cancel(): void;
  probe(): Promise<DeviceReport>;
  selfTest(backend: Backend): Promise<readonly KernelCheck[]>;
  counters(): Promise<RunCounters>;
  /** As `compareDecoders` of the engine does, for the video in `#files`. */
  compareDecoders(model: string, backend: Backend): Promise<DecoderComparison[]>;
  /** Starts a download of a finished video in the browser. */
  download(videoFile: string): Promise<void>;
}
