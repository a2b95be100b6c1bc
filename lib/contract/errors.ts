/**
 * Every error of Kinora, with a stable code, one sentence and a remedy. Page, command line and API take
 * their texts from this table only.
 */
const table = {
  // The image
  IMAGE_MISSING: [
    'There is no image.',
    'Choose, drop or paste a JPEG, PNG, WebP, AVIF, GIF or BMP image.',
  ],
  IMAGE_EMPTY: ['The image file is empty (zero bytes).', 'Choose another file, or save it again.'],
  IMAGE_TOO_LARGE: [
    'The image file is larger than 20 MB.',
    'Save it as JPEG or at a smaller size.',
  ],
  IMAGE_TOO_MANY_PIXELS: [
    'The image has more than 40 megapixels.',
    'Scale it down first; 1280 pixels on the long side are enough.',
  ],
  IMAGE_UNREADABLE: [
    'This file is not an image that the browser can read.',
    'Use a JPEG, PNG, WebP, AVIF, GIF or BMP image.',
  ],
  IMAGE_HEIC: [
    'The image has the format HEIC, which Kinora does not read.',
    'Save or export it as JPEG. An iPhone takes JPEGs under Settings → Camera → Formats → Most Compatible.',
  ],
  IMAGE_TRUNCATED: ['The image file ends too early.', 'Copy or download it again.'],
  SHARE_UNREADABLE: [
    'The shared request could not be read.',
    'Open the link again; it may have ended.',
  ],
  SHARED_FILES_LOST: [
    'What was shared with Kinora could not be kept: the storage of this browser is full or blocked.',
    'Choose the file here; or free storage in the settings, then share it again.',
  ],
  IMAGE_UNREACHABLE: ['The image could not be fetched.', 'Check the address, or use a local file.'],
  // The request
  PROMPT_EMPTY: ['The prompt is empty.', 'Describe what should happen in the video.'],
  PROMPT_REFUSED: [
    'The prompt names a child in a sexual context; Kinora never makes such a video.',
    'Change the prompt.',
  ],
  PARAMETER_INVALID: ['A parameter is out of its range.', 'Use a value inside the range.'],
  REQUEST_INVALID: ['The request cannot be read.', 'Compare it with the documented parameters.'],
  LOOP_WITH_LAST_IMAGE: [
    'A loop ends in its start image, so it takes no end image.',
    'Leave out one of the two, or let the video show the end image at an earlier second.',
  ],
  LAST_IMAGE_BEYOND_END: [
    'The end image stands at a second that the video does not reach.',
    'Choose an earlier second, or a longer duration.',
  ],
  // The model
  MODEL_UNKNOWN: ['There is no model with this id.', 'Use one of the listed model ids.'],
  MODEL_MANIFEST_INVALID: ['The model manifest is not valid.', 'Fix the named field.'],
  MODEL_FILE_MISSING: [
    'A file of the model is missing.',
    'Restore the file, or fetch the model again.',
  ],
  MODEL_FILE_INVALID: [
    'A file of the model is damaged or is not what its name says.',
    'Fetch the file again.',
  ],
  MODEL_FILE_TRUNCATED: ['A file of the model ends too early.', 'Fetch the file again.'],
  MODEL_CONFIG_INVALID: [
    'The configuration of the model is not one that Kinora can run.',
    'Use a model of the same architecture as one that Kinora lists.',
  ],
  MODEL_NOT_INSTALLED: [
    'The model is not in this browser yet.',
    'Download it on the Models page, or choose a folder with its files there.',
  ],
  MODEL_WRONG_KIND: [
    'The file belongs to another model.',
    'Use weights of a listed model or of one of the same architecture.',
  ],
  MODEL_BUSY: ['The model is in use.', 'Wait until it is free, or go on in the tab that uses it.'],
  LANGUAGE_MODEL_FAILED: [
    'The language model that improves prompts could not be run.',
    'Use the prompt as it is; or close other tabs, update the browser and try again.',
  ],
  TENSOR_MISSING: ['A tensor of the model is missing.', 'Use the complete weights of this model.'],
  TENSOR_SHAPE: [
    'A tensor of the model has the wrong shape.',
    'Use weights and configuration of the same model.',
  ],
  TENSOR_EXTRA: [
    'The file has a tensor that this model does not know.',
    'Use weights of the model itself, without additions for other purposes.',
  ],
  TENSOR_DTYPE: [
    'A tensor has an element type that cannot be read.',
    'Use f32, f16 or bf16 weights, fp8 with one scale for a tensor or a row, or GGUF: Q4_0 to Q8_0, Q2_K to Q6_K.',
  ],
  // The hub and the download
  ADDRESS_INVALID: [
    'This is not an address that Kinora can fetch from.',
    'Use owner/name, owner/name/path of the hub, or an https link to a file.',
  ],
  HUB_UNREACHABLE: [
    'The hub cannot be reached.',
    'Check the connection and the hub address, or use local files.',
  ],
  LINK_UNREACHABLE: [
    'The link cannot be reached.',
    'Check the link and the connection. Some servers answer no web page: then download the file yourself and choose it.',
  ],
  HUB_NOT_FOUND: [
    'The hub has no such repository or file.',
    'Check the address, the path and the revision.',
  ],
  HUB_DENIED: [
    'The hub refuses access to this repository.',
    'Choose a public repository, or download the files yourself and choose the folder.',
  ],
  HUB_BUSY: [
    'The hub asks to wait before more is fetched.',
    'Resume the download in a few minutes; nothing is lost.',
  ],
  HUB_ANSWER_INVALID: [
    'The hub gave an answer that cannot be used.',
    'Try again, or use another mirror.',
  ],
  DOWNLOAD_CORRUPT: [
    'What was fetched is not what the hub announced.',
    'Start the part again; if it happens again, use another mirror.',
  ],
  TERMS_NOT_ACCEPTED: [
    'The terms of use have not been accepted on this device.',
    'Read and accept them on the Terms page, or pass --accept-terms to the command.',
  ],
  // LoRA
  LORA_MISSING: ['The LoRA could not be found.', 'Check the path of the LoRA file.'],
  LORA_INVALID: [
    'The file is not a LoRA that can be read.',
    'Use a .safetensors LoRA for one of your models.',
  ],
  LORA_WRONG_BASE: [
    'The LoRA was made for another base model.',
    'Use a LoRA that was trained on the model in use.',
  ],
  // The device
  WEBGPU_MISSING: [
    'This browser has no WebGPU.',
    'Use a current Chrome or Edge, or choose the CPU backend. Firefox has WebGPU on Windows and on Macs with Apple silicon only; Kinora has not been tested in Safari.',
  ],
  ADAPTER_MISSING: [
    'The browser has WebGPU but found no usable GPU.',
    'Update the graphics driver, turn hardware acceleration on, or choose the CPU backend.',
  ],
  ADAPTER_SOFTWARE: [
    'This browser emulates a GPU on the CPU: it works, but it is slow.',
    'Turn hardware acceleration on to use a real GPU; without one, the CPU backend is faster.',
  ],
  GPU_UNRELIABLE: [
    'The GPU gives wrong numbers in the self-test.',
    'Update the browser and the graphics driver, or choose the CPU backend.',
  ],
  KERNELS_UNAVAILABLE: [
    'Kinora’s kernels do not compute this model on this GPU.',
    'In Settings → GPU choose “Exact” where it is not chosen, else “Runtime only”; in the terminal --kernels exact, else --kernels runtime.',
  ],
  DEVICE_LOST: [
    'The GPU was lost while it worked.',
    'Close other programs that use the GPU and run it again; the settings are kept.',
  ],
  OUT_OF_MEMORY: [
    'The GPU has not enough free memory.',
    'Close other programs that use the GPU, or use a smaller model.',
  ],
  // The run
  LATENTS_NOT_FINITE: [
    'The numbers of the video became invalid (NaN or infinity).',
    'Try another seed, a lower guidance scale, or run without LoRA.',
  ],
  CHECK_FAILED: [
    'The safety checker gave no result.',
    'Run it again; if it happens again, download the safety checker again.',
  ],
  ENCODER_FAILED: [
    'The video encoder of the browser failed.',
    'Run it again; if it happens again, update the browser.',
  ],
  STORAGE_FULL: [
    'There is not enough storage for the video.',
    'Delete old videos or free disk space, then run it again.',
  ],
  STORAGE_BLOCKED: [
    'This browser does not let Kinora store anything.',
    'Open it at https or at localhost, allow site data for it, and use no private window.',
  ],
  STORAGE_MISSING: [
    'This browser has no private file storage (OPFS), in which Kinora keeps videos and models.',
    'Use a current Chrome, Edge, Firefox or Safari.',
  ],
  CANCELLED: ['The generation was cancelled.', 'Run it again when you like.'],
  INTERRUPTED: [
    'The page was closed or reloaded during the generation.',
    'Run it again; the settings and the image are kept.',
  ],
  PAUSED: [
    'The generation is paused and the graphics card is free.',
    'Resume it when you like: it goes on where it was.',
  ],
  CHECKPOINT_INVALID: [
    'The saved state of this generation cannot be used.',
    'Run it again; the settings and the image are kept.',
  ],
  CHECKPOINT_MISMATCH: [
    'The saved state of this generation was made with another model, other adapters or other settings.',
    'Nothing of it is lost: it can be used again with the model and adapters that it was made with.',
  ],
  BUSY: ['Another generation is running.', 'Wait until it ends, or cancel it.'],
  // Files, browser and the rest
  SCRIPT_REFUSED: [
    'The browser does not run a script of Kinora.',
    'Reload the page. If that does not help, allow its scripts in browser and extensions, or tell who runs the server: a header or a proxy may block them.',
  ],
  SERVER_UNREACHABLE: [
    'The server of this page does not respond.',
    'Check the connection and whether the server is running, then try again.',
  ],
  VIDEO_UNREADABLE: [
    'This file is not a video of Kinora, or holds no settings.',
    'Use an MP4 that the studio or npm run generate has saved.',
  ],
  AUDIO_UNREADABLE: [
    'This file has no audio that the browser can read.',
    'Use a complete MP3, M4A, WAV, FLAC, Ogg or Opus file of at most 8 channels without copy protection.',
  ],
  FILE_UNREADABLE: ['A file could not be read.', 'Check that it exists and may be read.'],
  FILE_UNWRITABLE: ['A file cannot be written there.', 'Choose another place for it.'],
  NOTIFICATIONS_DENIED: [
    'The browser shows no notifications of this page.',
    'Allow them in the browser’s settings for this site, then turn them on again.',
  ],
  BROWSER_MISSING: [
    'No Chrome or Chromium was found, and none could be installed.',
    'Install Google Chrome or Chromium, or set KINORA_BROWSER to its path.',
  ],
  INTERNAL: [
    'Something went wrong inside Kinora.',
    'Run it again; if it happens again, report it.',
  ],
} as const satisfies Record<string, readonly [message: string, remedy: string]>;

/** Stable identifier of an error: a key of the table above. */
export type ErrorCode = keyof typeof table;

/** The plain data of a {@link KinoraError}, for workers, databases and JSON. */
export interface ErrorRecord {
  readonly code: ErrorCode;
  /** What is wrong, in one sentence. */
  readonly message: string;
  /** What to do, in one sentence. */
  readonly remedy: string;
}

/**
 * The error class of all code but the API, which has `ApiError`.
 *
 * @example throw new KinoraError('TENSOR_SHAPE', 'proj_out.weight is [10,64], expected [192,64].')
 */
export class KinoraError extends Error {
  override readonly name = 'KinoraError';
  readonly code: ErrorCode;
  readonly remedy: string;

  /**
   * @param sentence what exactly is wrong; by default the table's general sentence
   * @param options `remedy` replaces the table's remedy
   */
  constructor(
    code: ErrorCode,
    sentence?: string,
    options?: ErrorOptions & { remedy?: string | undefined },
  ) {
    super(sentence ?? table[code][0], options);
    this.code = code;
    // An error of the API may have an empty remedy.
    this.remedy = options?.remedy || table[code][1];
  }

  /** Plain data, safe for `postMessage`, IndexedDB and JSON. */
  toRecord(): ErrorRecord {
    return { code: this.code, message: this.message, remedy: this.remedy };
  }

  /** Inverse of {@link toRecord}. */
  static fromRecord(record: ErrorRecord): KinoraError {
    return new KinoraError(record.code, record.message, { remedy: record.remedy });
  }
}

/**
 * Waits for what reads the end image of a request.
 *
 * @throws KinoraError the same with a sentence that names the end image, as a request has two images
 */
export function ofLastImage<T>(reading: Promise<T>): Promise<T> {
  return reading.catch((thrown: unknown) => {
    if (!(thrown instanceof KinoraError)) throw thrown;
    const { code, message, remedy } = thrown;
    const sentence = `The end image cannot be used: ${message}`;
    throw new KinoraError(code, sentence, { remedy, cause: thrown });
  });
}

/** Whether the state of device and engine is unknown after this error, so that they must be restarted. */
export function isDeviceFault(code: ErrorCode): boolean {
  return code === 'DEVICE_LOST' || code === 'OUT_OF_MEMORY' || code === 'INTERNAL';
}

/** Failures that say nothing against a run: it can go on from its checkpoint, now or once they are mended. */
const passing: readonly ErrorCode[] = [
  ...(['INTERRUPTED', 'PAUSED', 'BUSY', 'INTERNAL', 'STORAGE_FULL', 'ENCODER_FAILED'] as const),
  ...(['DEVICE_LOST', 'OUT_OF_MEMORY', 'WEBGPU_MISSING', 'ADAPTER_MISSING'] as const),
  ...(['GPU_UNRELIABLE', 'KERNELS_UNAVAILABLE', 'CHECK_FAILED'] as const),
  ...(['MODEL_BUSY', 'MODEL_NOT_INSTALLED'] as const),
  ...(['SERVER_UNREACHABLE', 'SCRIPT_REFUSED', 'STORAGE_BLOCKED', 'STORAGE_MISSING'] as const),
  'CHECKPOINT_MISMATCH',
  ...(['MODEL_FILE_MISSING', 'MODEL_FILE_INVALID', 'MODEL_FILE_TRUNCATED'] as const),
  'FILE_UNREADABLE',
];

/** Whether a run that ended with this error can be resumed, where it has a checkpoint. */
export function isResumable(code: ErrorCode): boolean {
  return passing.includes(code);
}

/** The general texts of an error, in English. */
export function generalTexts(code: ErrorCode): Omit<ErrorRecord, 'code'> {
  const [message, remedy] = table[code];
  return { message, remedy };
}

/** Whether a string is one of the stable error codes. */
export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(table, value);
}

/** How browsers say that a server could not be reached: Chromium, Firefox, Safari, and Next for a script. */
const unreachable =
  /^(Failed to fetch|NetworkError when attempting|Load failed)|^Failed to load chunk/;

/** Names of Dexie's errors where the browser keeps no site data. A bare `SecurityError` has many other causes. */
const blocked = ['MissingAPIError', 'OpenFailedError', 'DatabaseClosedError'];

/** How Chromium says that it has no addresses left for a program. */
const withoutMemory = /^WebAssembly\..*out of memory/i;

/** Converts any thrown value to a {@link KinoraError}; unknown values become `INTERNAL`. */
export function toKinoraError(thrown: unknown): KinoraError {
  if (thrown instanceof KinoraError) return thrown;
  if (thrown instanceof DOMException && thrown.name === 'QuotaExceededError') {
    return new KinoraError('STORAGE_FULL', undefined, { cause: thrown });
  }
  if (thrown instanceof DOMException && thrown.name === 'AbortError') {
    return new KinoraError('CANCELLED', undefined, { cause: thrown });
  }
  const isError = thrown instanceof Error || thrown instanceof DOMException;
  if (isError && blocked.includes(thrown.name)) {
    return new KinoraError('STORAGE_BLOCKED', undefined, { cause: thrown });
  }
  if (isError && unreachable.test(thrown.message)) {
    return new KinoraError('SERVER_UNREACHABLE', undefined, { cause: thrown });
  }
  const detail = thrown instanceof Error ? thrown.message : String(thrown);
  if (withoutMemory.test(detail)) {
    return new KinoraError('OUT_OF_MEMORY', 'The browser has no memory for this now.', {
      cause: thrown,
      remedy: 'Close other tabs and programs, then try again.',
    });
  }
  return new KinoraError('INTERNAL', `Something went wrong inside Kinora: ${detail}`, {
    cause: thrown,
  });
}
