import {
  backing,
  bareAddress,
  centred,
  type EngineRequest,
  type Framing,
  fileSha256,
  formatOfFile,
  frameAt,
  frameCount,
  framesInFile,
  type GenerationResult,
  isResumable,
  KinoraError,
  type LoraFile,
  type LoraRecord,
  longestNote,
  type MadeVideo,
  mostNotes,
  nativeSizeOf,
  ofLastImage,
  type Phase,
  type PixelSize,
  type ProgressEvent,
  type PromptOptimization,
  sizeInPixels,
  toKinoraError,
} from '../contract';
import type { Backend } from '../gpu';
import {
  encodeEnd,
  type RunSaving,
  removeSaved,
  savedPromptOptimization,
} from '../pipeline/checkpoints';
import type { RunControl } from '../pipeline/control';
import type { Frame } from '../pipeline/latents';
import type { VideoModel } from '../pipeline/model';
import { resolveSampling } from '../pipeline/profiles';
import type { ImageToVideoResult } from '../pipeline/request';
import { imageToVideo } from '../pipeline/run';
import { endFile, openRunFiles, removeRun, servedRun } from '../predictions/run-files';
import { isServed, removeVideo, writeVideo } from '../predictions/videos';
import {
  createVideoWriter,
  decodeImage,
  FrameScaler,
  frameImage,
  maxStartImageBytes,
  type Pixels,
  toSmallJpeg,
  type VideoWriter,
} from '../video';
import type { EngineDevice } from './device';
import { endOfEarlier } from './earlier-video';
import { followRun } from './estimate';
import { Finisher, type FinishingNetworks, openFinishers } from './finisher';
import type { EngineKernels } from './kernels';
import { PhaseClock } from './phase-clock';
import { optimisationOf, requireNoChild } from './prompt';
import { checkBackends, RunSafety } from './run-safety';
import type { EngineTools } from './tools';

type Pictures = NonNullable<GenerationResult['pictures']>;

/** Most bytes of the frame that is the poster of a video of the API. */
const mostPosterBytes = 150_000;

/** Dependencies of one run, by its engine. */
export interface GenerationContext {
  readonly openModel: () => Promise<VideoModel>;
  readonly device: EngineDevice;
  readonly kernels: EngineKernels;
  readonly tools: EngineTools;
  readonly control: RunControl;
  /** Shortest time between two checkpoints, in seconds; 20 when absent. */
  readonly checkpointSeconds?: number | undefined;
  readonly report: (event: ProgressEvent) => void;
}

/** Everything that is open when the first frame is computed. */
interface Opened extends Plan, Stills {
  readonly optimisation: PromptOptimization | null;
  readonly backend: Backend;
  readonly safety: RunSafety;
  readonly finisher: Finisher;
  readonly writer: VideoWriter;
}

/** One run, from the request to the file. Its phases follow one another in `#make`, and their methods below. */
export class Generation {
  readonly #clock = new PhaseClock();
  readonly #videoFile: string;
  /** Whether a worker of the API makes it. */
  readonly #isServed: boolean;
  /** Id of its saved files. */
  readonly #runId: string;
  readonly #storage: RunSaving['storage'];
  readonly #pictures: { -readonly [Name in keyof Pictures]: Pictures[Name] } = {};
  #estimate: Awaited<ReturnType<typeof followRun>> | undefined;
  /** Frees what the run has opened. */
  readonly #releases: (() => unknown)[] = [() => this.#estimate?.end()];

  constructor(
    readonly request: EngineRequest,
    readonly context: GenerationContext,
  ) {
    const { id, videoFile = `${id}.mp4` } = request;
    this.#videoFile = videoFile;
    this.#isServed = isServed(videoFile);
    this.#runId = this.#isServed ? servedRun(id) : id;
    this.#storage = openRunFiles(this.#runId);
  }

  /**
   * Makes the video.
   *
   * @throws KinoraError; what is saved stays where the run can be resumed
   */
  async make(): Promise<GenerationResult> {
    try {
      try {
        return await this.#make();
      } finally {
        for (const release of this.#releases) await release();
      }
    } catch (thrown) {
      const { code } = this.#signal.aborted ? new KinoraError('CANCELLED') : toKinoraError(thrown);
      // The video that was to be refined stays, and so do its latents, unless it must not be delivered.
      const refining = this.request.continuation === 'refine' && code !== 'PROMPT_REFUSED';
      // The first failure is the reason; the next sweep removes files that stay.
      if (!refining) await removeVideo(this.#videoFile).catch(() => undefined);
      const useless = code === 'CHECKPOINT_INVALID' || !(refining || isResumable(code));
      if (useless) await removeRun(this.#runId).catch(() => undefined);
      throw thrown;
    }
  }

  async #make(): Promise<GenerationResult> {
    const optimised = await this.#savedOptimisation();
    const optimises = this.request.options.promptOptimizer === true && !optimised;
    this.#phase(optimises ? 'optimise' : 'load');
    // The cheap checks come first: a bad image must not wait for the GPU.
    const { request, context } = this;
    const stills = await readStills(request);
    const networks = await openFinishers(request.parameters, context.tools, this.#openBackend);
    const plan = await planOf(request, context.openModel, this.#report);
    const optimisation = await this.#optimise(plan, optimised, optimises);
    const backend = await this.#openBackend();
    this.#signal.throwIfAborted();
    await context.kernels.use(backend, request.device.kernels, this.#report, this.#signal);
    // This check is cheap too: it fails before any frame is computed where the device has too little memory.
    await networks.upscaler?.requireRoom(plan.native, 2);
    const safety = await this.#checkImages(stills, plan.delivered, optimisation);
    const output = await this.#openOutput(plan, networks);
    const opened = { ...plan, ...stills, ...output, optimisation, backend, safety };
    const computed = await this.#compute(opened);
    const { made, video } = await this.#finish(opened);
    return await this.#keep(opened, computed, made, video);
  }

  /** The optimised prompt of a run that goes on. */
  async #savedOptimisation(): Promise<PromptOptimization | null> {
    const { continuation, options, parameters } = this.request;
    if (!continuation || options.promptOptimizer !== true) return null;
    const saved = await savedPromptOptimization(this.#storage);
    return saved?.original === parameters.prompt ? saved : null;
  }

  /** Adds to the prompt where that is asked for. From here on it is told how far the run is. */
  async #optimise(plan: Plan, optimised: PromptOptimization | null, optimises: boolean) {
    const { request, context } = this;
    const { control, tools, report } = context;
    this.#estimate = await followRun(request, { ...plan, optimises }, control, report);
    const { optimizer } = tools;
    const optimisation =
      optimised ??
      (await optimisationOf(request, plan.model, optimizer, this.#signal, this.#report));
    if (optimises) this.#phase('load');
    return optimisation;
  }

  readonly #openBackend = (): Promise<Backend> => {
    const { backend, kernels = 'exact' } = this.request.device;
    return this.context.device.open(backend, kernels);
  };

  /** Checks what the video shows of the images, and keeps that for the record of a video of the API. */
  async #checkImages(
    { first, last }: Stills,
    delivered: PixelSize,
    optimisation: PromptOptimization | null,
  ): Promise<RunSafety> {
    const { request, context } = this;
    const safety = await RunSafety.open({
      enabled: request.options.safetyChecker ?? false,
      modelId: request.model,
      tools: context.tools,
      backends: checkBackends(context.device, request.device.backend),
      signal: this.#signal,
      report: this.#report,
    });
    const shown = (last ? [first, last] : [first]).map((one) => () => inFrame(one, delivered));
    const { prompt } = request.parameters;
    if (await safety.checkInput(shown)) requireNoChild('image', [prompt, optimisation?.text]);
    if (this.#isServed) {
      this.#pictures.image = await jpegOf(inFrame(first, delivered));
      if (last) this.#pictures.last_image = await jpegOf(inFrame(last, delivered));
    }
    return safety;
  }

  /** Opens what each frame goes through: finishing, and the file. */
  async #openOutput({ decoded, native, format }: Plan, networks: FinishingNetworks) {
    const { parameters, options } = this.request;
    const writer = await createVideoWriter({ ...format, encoder: options.encoder ?? 'auto' });
    this.#releases.push(() => writer.cancel());
    const middle = format.frames >> 1;
    let added = 0;
    const finisher = new Finisher({
      source: native,
      target: format,
      finishing: parameters,
      frames: decoded,
      loop: parameters.loop === true,
      ...networks,
      signal: this.#signal,
      write: async (planes, pixels) => {
        if (this.#isServed && added++ === middle) {
          const picture = { ...format, data: pixels() };
          // The video is worth more than its poster.
          const poster = await toSmallJpeg(picture, mostPosterBytes).catch(() => null);
          if (poster) this.#pictures.poster = poster;
        }
        await writer.add(planes);
      },
    });
    this.#releases.push(() => finisher.dispose());
    return { finisher, writer };
  }

  /** Computes the frames, and hands each on. */
  async #compute(opened: Opened): Promise<ImageToVideoResult> {
    const { model, backend, native, delivered, optimisation, first, last, safety } = opened;
    const { parameters, options, device, continuation, checkpoint, ...request } = this.request;
    const { control, checkpointSeconds: intervalSeconds } = this.context;
    const { prompt, loop, duration, last_image_at: second } = parameters;
    const sizes = { native, delivered };
    let shown = 0;
    const before =
      request.before && (await endOfEarlier(request.before, model, sizes, backend, this.#signal));
    return await imageToVideo(
      backend,
      model,
      {
        ...opened.sampling,
        prompt: optimisation?.text ?? prompt,
        negativePrompt: parameters.negative_prompt,
        image: inFrame(first, native, delivered),
        // The field is absent without a request for it, because the saved run identifies the request by its fields.
        ...(loop && { loop }),
        ...(last && { lastImage: inFrame(last, native, delivered) }),
        ...(second !== undefined && { lastImageFrame: frameAt(model.manifest, duration, second) }),
        frames: opened.frames,
        seed: parameters.seed,
        ...(request.continues && { continues: true }),
        before,
        keepsColours: options.keepsColours,
        ...(device.kernels && { kernels: device.kernels }),
      },
      {
        // The device is asked if the user set no budget.
        memoryBudget: device.memoryBudget ?? 'probe',
        control,
        onProgress: this.#report,
        onFrame: (frame) => {
          safety.take(frame, shown++);
          return opened.finisher.add(frame);
        },
        saving: {
          storage: this.#storage,
          promptOptimization: optimisation,
          continuation,
          checkpoint,
          intervalSeconds,
        },
      },
    );
  }

  /** Judges the video, and completes its file. */
  async #finish(opened: Opened): Promise<{ readonly made: MadeVideo; readonly video: Blob }> {
    const { model, applied, format, loraFiles, optimisation } = opened;
    const frames = await opened.finisher.end();
    const safety = await opened.safety.verdict();
    if (safety.status === 'flagged') {
      requireNoChild('video', [this.request.parameters.prompt, optimisation?.text]);
      delete this.#pictures.poster;
    }
    this.#phase('finish');
    const video = await opened.writer.finish(frames);
    const made = {
      applied,
      backend: this.request.device.backend,
      frames,
      frameRate: format.frameRate,
      licence: model.manifest.licence,
      ...(loraFiles.length > 0 && { loraFiles }),
      safety,
      ...(optimisation && { promptOptimization: optimisation }),
    };
    return { made, video };
  }

  /** Stores the video in the place of what was saved of its run. */
  async #keep(
    { writer, model, native, format, applied, backend }: Opened,
    { end, finishedEarly, resumes, memory, colours }: ImageToVideoResult,
    made: MadeVideo,
    video: Blob,
  ): Promise<GenerationResult> {
    const { parameters, model: modelId, profile, continuation } = this.request;
    this.#signal.throwIfAborted();
    await writeVideo(this.#videoFile, video).catch((thrown: unknown) => {
      this.#report({ type: 'unsaved-video', video, made });
      throw thrown;
    });
    // A refined video has taken the place of the earlier one.
    if (continuation !== 'refine') this.#signal.throwIfAborted();
    // Latents that can be decoded better stay.
    const isBest = applied.decoder !== 'tiny';
    const discarded = isBest ? removeRun(this.#runId) : removeSaved(this.#storage, 0, false);
    await discarded.catch(() => undefined);
    if (end && !this.#isServed) {
      const file = await encodeEnd(end, model, native);
      // On a full disk the video can be made longer from its last picture.
      await this.#storage.write(endFile, file).catch(() => undefined);
    }
    await this.#estimate?.keep();
    await this.context.kernels.succeeded(backend);
    const kernels = this.context.kernels.recordOf(backend);
    return {
      ...made,
      videoFile: this.#videoFile,
      videoBytes: video.size,
      ...(this.#isServed && { pictures: this.#pictures }),
      size: parameters.size,
      width: format.width,
      height: format.height,
      seed: parameters.seed,
      model: modelId,
      profile,
      ...(kernels && { kernels }),
      encoder: writer.encoder,
      finishedEarly,
      ...(resumes > 0 && { resumes }),
      memory,
      ...(colours.length > 0 && { colours }),
      timings: this.#clock.stop(),
    };
  }

  get #signal(): AbortSignal {
    return this.context.control.signal;
  }

  #phase(phase: Phase): void {
    this.#report({ type: 'phase', phase, clip: 0, clips: 1 });
  }

  readonly #report = (event: ProgressEvent): void => {
    if (event.type === 'phase') this.#clock.enter(event.phase);
    this.#estimate?.take(event);
    this.context.report(event);
  };
}

/**
 * Opens the model with the adapters of the request, and says where it does not sample as it was asked.
 *
 * @returns how it samples, and sizes and lengths of what it makes and of the file
 */
async function planOf(
  { parameters, options, profile, loras }: EngineRequest,
  openModel: GenerationContext['openModel'],
  report: GenerationContext['report'],
) {
  const plain = await openModel();
  const resolved = resolveSampling(plain, profile, parameters, options);
  const { sampling, adapterScales, sentence } = resolved;
  const model = await plain.withLoras(loras, adapterScales);
  const { manifest, notes: loraNotes = [] } = model;
  const told = loraNotes.map((note) => note.slice(0, longestNote)).slice(0, mostNotes);
  const notes = [...(sentence ? [sentence] : []), ...loraNotes];
  if (notes.length > 0) report({ type: 'sampling', sentence: notes.join(' ') });
  const frames = frameCount(manifest, parameters.duration);
  const format = formatOfFile(parameters, manifest.framesPerSecond);
  return {
    model,
    sampling,
    applied: { ...resolved.applied, ...(told.length > 0 && { notes: told }) },
    loraFiles: await recordsOf(loras),
    frames,
    // Those of them that are shown.
    decoded: framesInFile(frames, { loop: parameters.loop }),
    native: nativeSizeOf(manifest, sampling, parameters.size),
    delivered: sizeInPixels(parameters.size),
    format: { ...format, frames: framesInFile(frames, parameters) },
  };
}
type Plan = Awaited<ReturnType<typeof planOf>>;

/** An image of the request, decoded. */
interface Still {
  readonly pixels: Pixels;
  readonly framing: Framing;
}

/** The images of the request. */
async function readStills({ image, lastImage, options }: EngineRequest) {
  const first = await readStill(image, options.framing);
  const last = lastImage && ofLastImage(readStill(lastImage, options.lastImage?.framing));
  return { first, last: await last };
}
type Stills = Awaited<ReturnType<typeof readStills>>;

async function readStill(file: Blob, framing = centred): Promise<Still> {
  return { pixels: await decodeImage(file, backing(framing)), framing };
}

/** An image as it lies in the frame, planar RGB [3, height, width] in −1…1. */
function inFrame({ pixels, framing }: Still, frame: PixelSize, video?: PixelSize): Frame {
  const { width, height } = frame;
  return { data: frameImage(pixels, framing, frame, video), width, height };
}

/** An image as it lies in the frame, for others: nothing is in it but the pixels. */
function jpegOf({ data, width, height }: Frame): Promise<Blob> {
  const size = { width, height };
  const pixels = { ...size, data: new FrameScaler(size, size).scale(data) };
  return toSmallJpeg(pixels, maxStartImageBytes);
}

/** Names and hashes that tell the LoRA files from others. */
function recordsOf(loras: readonly LoraFile[]): Promise<LoraRecord[]> {
  return Promise.all(
    loras.map(async ({ file, source }) => {
      const sha256 = await fileSha256(file);
      return source === undefined ? { sha256 } : { sha256, source: bareAddress(source) };
    }),
  );
}
