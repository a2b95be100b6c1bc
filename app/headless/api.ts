import {
  type EngineApi,
  type GenerationResult,
  type HeadlessApi,
  type HeadlessLibraryApi,
  type HeadlessRun,
  KinoraError,
  type ProgressEvent,
  toKinoraError,
} from '../../lib/contract';
import type { SourceLora } from '../../lib/predictions/loras';
import { readVideo } from '../../lib/predictions/videos';
import { engine } from '../engine';
import { getRunner } from '../runner';
import { downloadFile } from '../shared/browser';
import { videoToSave } from '../shared/saved-video';
import { createLibraryApi } from './library-api';

export function installHeadlessApi(): HeadlessApi {
  return {
    ...withJsonErrors(createLibraryApi(filesOf)),
    generate: (options) => asJson(generate(options)),
    cancel: () => getRunner().cancel(),
    probe: () => asJson(withEngine((api) => api.probe())),
    selfTest: (backend) => asJson(withEngine((api) => api.selfTest(backend))),
    counters: () => asJson(withEngine((api) => api.counters())),
    compareDecoders: (model, backend) =>
      asJson(
        withEngine((api) => api.compareDecoders(filesOf('files')[0] ?? new Blob(), model, backend)),
      ),
    download: (videoFile) => asJson(download(videoFile)),
  };
}

async function generate(run: HeadlessRun): Promise<GenerationResult> {
  const { loraScales, libraryLoras = [], ...request } = run;
  const [image] = filesOf('image');
  const [lastImage] = filesOf('last-image');
  if (!image) throw new KinoraError('IMAGE_MISSING');
  const loras = lorasOf(loraScales, libraryLoras);
  const parameters = {
    loras: loras.map(({ name, scale }) => ({ path: name, scale })),
    ...request.parameters,
  };
  const files = { image, imageName: image.name, lastImage, loras };
  const input = { ...request, parameters, ...files };
  const started = await getRunner().start(input, report);
  const ended = await started.ended;
  if (ended.status === 'completed') return ended.result;
  if (ended.status === 'failed' || ended.status === 'interrupted') {
    throw KinoraError.fromRecord(ended.error);
  }
  throw new KinoraError('INTERNAL', `The prediction ended in the state ${ended.status}.`);
}

/** The files of `#loras`, then those of the library, each with its scale. */
function lorasOf(
  scales: readonly number[],
  kept: NonNullable<HeadlessRun['libraryLoras']>,
): (SourceLora & { readonly scale: number })[] {
  const files = filesOf('loras');
  if (files.length !== scales.length) {
    const counts = `${files.length} LoRA files, ${scales.length} scales`;
    throw new KinoraError('REQUEST_INVALID', `Every LoRA needs one scale: ${counts}.`);
  }
  const loras = files.map((file, index) => ({ name: file.name, file, scale: scales[index] ?? 1 }));
  return [...loras, ...kept.map((lora) => ({ ...lora, file: null }))];
}

function report(event: ProgressEvent): void {
  if (event.type !== 'preview') {
    window.kinoraProgress?.(event);
    return;
  }
  const { pixels: _, ...rest } = event;
  window.kinoraProgress?.(rest);
}

async function withEngine<T>(work: (api: EngineApi) => Promise<T>): Promise<T> {
  const { api, crashed } = engine.open();
  return Promise.race([work(api), crashed]);
}

async function download(videoFile: string): Promise<void> {
  const { store } = getRunner();
  const row = (await store.list()).find(
    (one) => one.status === 'completed' && one.result.videoFile === videoFile,
  );
  if (row?.status !== 'completed') throw new KinoraError('FILE_UNREADABLE');
  downloadFile(await videoToSave(store, row, await readVideo(videoFile)), videoFile);
}

function filesOf(id: string): File[] {
  const input = document.getElementById(id);
  return input instanceof HTMLInputElement ? [...(input.files ?? [])] : [];
}

/** The same calls, with errors in the form that survives the way out of a browser. */
function withJsonErrors(api: HeadlessLibraryApi): HeadlessLibraryApi {
  const wrapped = Object.entries(api).map(([name, call]) => [
    name,
    (...args: unknown[]) => asJson((call as (...all: unknown[]) => Promise<unknown>)(...args)),
  ]);
  return Object.fromEntries(wrapped) as HeadlessLibraryApi;
}

async function asJson<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (thrown) {
    throw new Error(JSON.stringify(toKinoraError(thrown).toRecord()), { cause: thrown });
  }
}
