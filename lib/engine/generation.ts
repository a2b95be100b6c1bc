import {
  backing,
  bareAddress,
  centred,
  type DecoderKind,
  type EngineRequest,
  type Framing,
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
  sizeInPixels,
  toKinoraError,
} from '../contract';
import { fileSha256 } from '../contract/file-sha256';
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
import { imageToVideo } from '../pipeline/run';
import { FrameChain, type FrameStepMaker, type StepContext } from '../pipeline/steps';
import { endFile, openRunFiles, removeRun, servedRun } from '../predictions/run-files';
import { isServedVideo, removeVideo, writeVideo } from '../predictions/videos';
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
import { Finisher, openFinishers } from './finisher';
import type { EngineKernels } from './kernels';
import { PhaseClock } from './phase-clock';
import { optimisationOf, requireNoChild } from './prompt';
import { checkBackends, RunSafety } from './run-safety';
import type { EngineTools } from './tools';

type Pictures = NonNullable<GenerationResult['pictures']>;

/** Most bytes of the frame that is the poster of a video of the API. */
const mostPosterBytes = 150_000;

/** What one run is given by its engine. */
export interface GenerationContext {
  readonly openModel: () => Promise<VideoModel>;
  readonly device: EngineDevice;
  readonly kernels: EngineKernels;
  readonly tools: EngineTools;
  readonly frameSteps: readonly FrameStepMaker[];
  readonly control: RunControl;
  /** Shortest time between two checkpoints, in seconds; 20 when absent. */
  readonly checkpointSeconds?: number | undefined;
  readonly report: (event: ProgressEvent) => void;
}

/** One run, from the request to the file, in the order of its phases. */
export class Generation {
  readonly #clock = new PhaseClock();
  /** Of its saved files. */
  readonly #runId: string;
  #estimate: Awaited<ReturnType<typeof followRun>> | undefined;

  constructor(
    readonly request: EngineRequest,
    readonly context: GenerationContext,
  ) {
    const { id } = request;
    this.#runId = isServedVideo(videoFileOf(request)) ? servedRun(id) : id;
  }

  /**
   * Makes the video.
   *
   * @throws KinoraError; what is saved stays where the run can be resumed
   */
  async make(): Promise<GenerationResult> {
    try {
      return await this.#make();
    } catch (thrown) {
      const { aborted } = this.context.control.signal;
      const { code } = aborted ? new KinoraError('CANCELLED') : toKinoraError(thrown);
      // The video that was to be refined stays, and so do its latents, unless it must not be delivered.
      const refining = this.request.continuation === 'refine' && code !== 'PROMPT_REFUSED';
      // The first failure is the reason; the next sweep removes files that stay.
      if (!refining) await removeVideo(videoFileOf(this.request)).catch(() => undefined);
      const useless = code === 'CHECKPOINT_INVALID' || !(refining || isResumable(code));
      if (useless) await removeRun(this.#runId).catch(() => undefined);
      throw thrown;
    } finally {
      this.#estimate?.end();
    }
  }

  async #make(): Promise<GenerationResult> {
    const { request, context } = this;
    const { parameters, options, device, continuation, checkpoint } = request;
    const { signal } = context.control;
    const report = (event: ProgressEvent) => this.#report(event);
    const storage = openRunFiles(this.#runId);
    const toOptimise = options.promptOptimizer === true;
    const saved = continuation && toOptimise ? await savedPromptOptimization(storage) : null;
    const optimised = saved?.original === parameters.prompt ? saved : null;
    const optimising = toOptimise && !optimised;
    this.#phase(optimising ? 'optimise' : 'load');
    // The cheap checks come first: a bad image must not wait for the GPU.
    const still = await readStill(request.image, options.framing);
    const last =
      request.lastImage &&
      (await ofLastImage(readStill(request.lastImage, options.lastImage?.framing)));
    const openBackend = () => context.device.open(device.backend, device.kernels ?? 'exact');
    const networks = await openFinishers(parameters, context.tools, openBackend);
    const plain = await context.openModel();
    const resolved = resolveSampling(plain, request.profile, parameters, options);
    const { sampling, adapterScales, sentence } = resolved;
    const model = await plain.withLoras(request.loras, adapterScales);
    const { notes: loraNotes = [] } = model;
    const told = loraNotes.map((note) => note.slice(0, longestNote)).slice(0, mostNotes);
    const applied = { ...resolved.applied, ...(told.length > 0 && { notes: told }) };
    const notes = [...(sentence ? [sentence] : []), ...loraNotes];
    if (notes.length > 0) report({ type: 'sampling', sentence: notes.join(' ') });
    const delivered = sizeInPixels(parameters.size);
    const native = nativeSizeOf(model.manifest, sampling, parameters.size);
    const format = formatOfFile(parameters, model.manifest.framesPerSecond);
    const frames = frameCount(model.manifest, parameters.duration);
    const { loop, last_image_at: second } = parameters;
    const lastImageFrame =
      second === undefined ? undefined : frameAt(model.manifest, parameters.duration, second);
    const decoded = framesInFile(frames, { loop });
    const { control } = context;
    const counted = { model, sampling, frames, optimises: optimising };
    const estimate = await followRun(request, counted, control, context.report);
    this.#estimate = estimate;
    const { optimizer } = context.tools;
    const optimisation =
      optimised ?? (await optimisationOf(request, model, optimizer, signal, report));
    const prompt = optimisation?.text ?? parameters.prompt;
    const texts = [parameters.prompt, prompt];
    if (optimising) this.#phase('load');
    const backend = await openBackend();
    signal.throwIfAborted();
    await context.kernels.use(backend, device.kernels, report, signal);
    // This check is cheap too: it fails before any frame is computed where the device has too little memory.
    await networks.upscaler?.requireRoom(native, 2);

    const image = inFrame(still, native, delivered);
    const lastImage = last && inFrame(last, native, delivered);
    const safety = await RunSafety.open({
      enabled: options.safetyChecker ?? false,
      modelId: request.model,
      tools: context.tools,
      backends: checkBackends(context.device, device.backend),
      signal,
      report,
    });
    const shown = (last ? [still, last] : [still]).map((one) => () => inFrame(one, delivered));
    if (await safety.checkInput(shown)) requireNoChild('image', texts);
    const steps: StepContext = { seed: parameters.seed, image, frames: decoded, signal };
    const chain = new FrameChain([
      ...context.frameSteps.map((make) => make(steps)),
      ...safety.steps,
    ]);
    const loraFiles = await recordsOf(request.loras);
    const saving: RunSaving = {
      storage,
      promptOptimization: optimisation,
      continuation,
      checkpoint,
      intervalSeconds: context.checkpointSeconds,
    };
    const isServed = isServedVideo(videoFileOf(request));
    const middle = framesInFile(frames, parameters) >> 1;
    const pictures: { -readonly [Name in keyof Pictures]: Pictures[Name] } = {};
    if (isServed) pictures.image = await jpegOf(inFrame(still, delivered));
    if (isServed && last) pictures.last_image = await jpegOf(inFrame(last, delivered));
    let added = 0;
    let writer: VideoWriter | undefined;
    let finisher: Finisher | undefined;
    try {
      const output = await createVideoWriter({
        ...format,
        frames: framesInFile(frames, parameters),
        encoder: options.encoder ?? 'auto',
      });
      writer = output;
      const finishing = new Finisher({
        source: native,
        target: format,
        finishing: parameters,
        frames: decoded,
        loop: loop === true,
        ...networks,
        signal,
        write: async (planes, pixels) => {
          if (isServed && added === middle) {
            // The video is worth more than its poster.
            const data = pixels();
            const poster = await toSmallJpeg({ ...format, data }, mostPosterBytes).catch(
              () => null,
            );
            if (poster) pictures.poster = poster;
          }
          added += 1;
          await output.add(planes);
        },
      });
      finisher = finishing;
      const { before: earlier } = request;
      const before =
        earlier && (await endOfEarlier(earlier, model, { native, delivered }, backend, signal));
      const result = await imageToVideo(
        backend,
        model,
        {
          ...sampling,
          prompt,
          negativePrompt: parameters.negative_prompt,
          image,
          // The field is absent without a request for it, because the saved run identifies the request by its fields.
          ...(loop && { loop }),
          ...(lastImage && { lastImage }),
          ...(lastImageFrame !== undefined && { lastImageFrame }),
          frames,
          seed: parameters.seed,
          ...(request.continues && { continues: true }),
          before,
          keepsColours: options.keepsColours,
          ...(device.kernels && { kernels: device.kernels }),
        },
        {
          // The device is asked if the user set no budget.
          memoryBudget: device.memoryBudget ?? 'probe',
          control: context.control,
          onProgress: report,
          onFrame: async (frame) => finishing.add(await chain.next(frame)),
          saving,
        },
      );
      const written = await finishing.end();
      const verdict = await safety.verdict();
      if (verdict.status === 'flagged') {
        requireNoChild('video', texts);
        delete pictures.poster;
      }
      this.#phase('finish');
      const video = await output.finish(written);
      const made: MadeVideo = {
        applied,
        backend: device.backend,
        frames: written,
        frameRate: format.frameRate,
        licence: model.manifest.licence,
        ...(loraFiles.length > 0 && { loraFiles }),
        safety: verdict,
        ...(optimisation && { promptOptimization: optimisation }),
      };
      const findings = await chain.finish();
      const videoFile = videoFileOf(request);
      signal.throwIfAborted();
      await writeVideo(videoFile, video).catch((thrown: unknown) => {
        report({ type: 'unsaved-video', video, made });
        throw thrown;
      });
      // A refined video has taken the place of the earlier one.
      if (continuation !== 'refine') signal.throwIfAborted();
      await this.#discard(storage, applied.decoder).catch(() => undefined);
      if (result.end && !isServed) {
        const file = await encodeEnd(result.end, model, native);
        // On a full disk the video can be made longer from its last picture.
        await storage.write(endFile, file).catch(() => undefined);
      }
      await estimate.keep();
      await context.kernels.succeeded(backend);
      const kernels = context.kernels.recordOf(backend);
      return {
        ...made,
        videoFile,
        videoBytes: video.size,
        ...(isServed && { pictures }),
        size: parameters.size,
        width: format.width,
        height: format.height,
        seed: parameters.seed,
        model: request.model,
        profile: request.profile,
        ...(kernels && { kernels }),
        encoder: output.encoder,
        finishedEarly: result.finishedEarly,
        ...(result.resumes > 0 && { resumes: result.resumes }),
        memory: result.memory,
        ...(result.colours.length > 0 && { colours: result.colours }),
        ...(Object.keys(findings).length > 0 ? { findings } : {}),
        timings: this.#clock.stop(),
      };
    } finally {
      chain.dispose();
      finisher?.dispose();
      await writer?.cancel();
    }
  }

  /** Deletes the files of a finished run, except latents that can be decoded better. */
  async #discard(storage: RunSaving['storage'], decoder: DecoderKind): Promise<void> {
    if (decoder === 'tiny') await removeSaved(storage, 0, false);
    else await removeRun(this.#runId);
  }

  #phase(phase: Phase): void {
    this.#report({ type: 'phase', phase, clip: 0, clips: 1 });
  }

  #report(event: ProgressEvent): void {
    if (event.type === 'phase') this.#clock.enter(event.phase);
    this.#estimate?.take(event);
    this.context.report(event);
  }
}

export function videoFileOf(request: EngineRequest): string {
  return request.videoFile ?? `${request.id}.mp4`;
}

/** An image of the request, decoded. */
interface Still {
  readonly pixels: Pixels;
  readonly framing: Framing;
}

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

/** What tells the LoRA files from others. */
function recordsOf(loras: readonly LoraFile[]): Promise<LoraRecord[]> {
  return Promise.all(
    loras.map(async ({ file, source }) => {
      const sha256 = await fileSha256(file);
      return source === undefined ? { sha256 } : { sha256, source: bareAddress(source) };
    }),
  );
}
