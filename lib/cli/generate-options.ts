import {
  backends,
  centred,
  decoderKinds,
  demonstrationModel,
  type Framing,
  framingSchema,
  isSwitch,
  KinoraError,
  kernelSettings,
  type ModelManifest,
  maxZoom,
  type Parameters,
  parameterOptions,
  parseParameters,
  type RunOptions,
  parameterRanges as ranges,
  requirePlaceOfLastImage,
  samplePrompt,
  sizes,
  adapterStrengths as strengths,
  switches,
  switchNames,
  unusedParameters,
  upscalers,
} from '../contract';
import {
  type Arguments,
  downloadTypes,
  readArguments,
  readDevice,
  readDownload,
  readNumber,
  readRunOptions,
  refuseMore,
  runOptionTypes,
  usageError,
} from './arguments';

/** Of each parameter: switches that are a word have a value. */
const parameterTypes = Object.fromEntries(
  Object.entries(parameterOptions).map(([name, option]) => {
    const isFlag = isSwitch(name) && switches[name].on === true;
    return [option, { type: isFlag ? 'boolean' : 'string' }] as const;
  }),
);

const optionTypes = {
  ...parameterTypes,
  ...runOptionTypes,
  image: { type: 'string' },
  crop: { type: 'string' },
  fit: { type: 'string' },
  'last-image': { type: 'string' },
  'last-crop': { type: 'string' },
  'last-fit': { type: 'string' },
  prompt: { type: 'string' },
  lora: { type: 'string', multiple: true },
  model: { type: 'string' },
  fast: { type: 'boolean' },
  backend: { type: 'string' },
  kernels: { type: 'string' },
  memory: { type: 'string' },
  ...downloadTypes,
  out: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** What `--help` prints. */
export const generateHelp = `Makes a video from one image and a prompt.

  npm run generate -- [options]

  --image FILE|URL        the still to start from (default: the bundled sample)
  --crop X,Y[,ZOOM]       which part of the image fills the video: 0,0 the upper left, 0.5,0.5 the
                          centre (the default), 1,1 the lower right; a zoom from 1 to ${maxZoom}
  --fit blur|#RRGGBB      the whole image, with bars that show it blurred, or one colour
  --last-image FILE|URL   the end image: the video ends in it
  --last-image-at SECOND  the video shows it then and goes on; with --loop only so
  --last-crop, --last-fit how it lies in the frame, like --crop and --fit
  --prompt TEXT           what should happen (default: a prompt for the sample)
  --optimize-prompt       continues the prompt with the language model of \`npm run models\` first
  --negative-prompt TEXT  what should not appear (default: what the model's makers use, if anything);
                          '' for none
  --size WxH              ${sizes.join(' or ')}, written with * (default ${sizes[0]})
  --duration SECONDS      ${between('duration')}
  --loop                  the video ends where it begins, to be played again and again
  --upscale 2             enlarges it to 2560×1440 or 1440×2560
  --upscaler NAME         ${upscalers.join(' or ')} (the first one when absent): the
                          second is a network that is a download; sharper, may flicker
  --smooth                twice as many frames a second, by a network that is a download
  --steps N               ${between('num_inference_steps')}
  --guidance X            ${between('guidance_scale')}
  --flow-shift X          ${between('flow_shift')}
  --seed N                ${between('seed')}; -1 draws one
  --lora PATH:SCALE       an adapter and its strength, 0 to 4; up to 3 times; with a model that
                          was downloaded also the name of a LoRA of the library
  --model ID              mini (the default), wan2.2-ti2v-5b, or one that was added with
                          \`npm run models\`; what is missing is downloaded after a question
  --fast                  the model's ultra-fast variant instead of its standard one
  --decoder NAME          ${decoderKinds.join(' or ')} (default the variant's)
  --cache                 lets steps reuse results of earlier ones: faster, nearly the same; for
                          models with ratios of MagCache, as wan2.2-ti2v-5b
  --guidance-adapter      the adapter that computes in one pass a step what guidance takes two for:
                          half the time, nearly the same; for the standard variant
  --adapter-strength X    ${strengths.min} to ${strengths.max} (default ${strengths.default}): how strongly an adapter of the model acts; lower helps
                          against slow motion and costs detail, higher is crisper and may look hard
  --yes                   agrees to the download beforehand
  --accept-terms          accepts the terms of use, which a real model needs once
  --precision NAME        int8 or int4: what to download (default: what the model proposes)
  --hub URL               where models are fetched from; remembered
  --no-colour-correction  leaves the colours of a second clip, which starts from the last picture of
                          the first one, as they come out
  --no-safety-check       does not check image and video with the safety checker
  --backend NAME          ${backends.join(' or ')} (default webgpu; wasm where there is no GPU)
  --kernels NAME          ${kernelSettings.join(', ')}: what computes on the GPU (default exact); fast is a
                          little different, matrix needs a GPU and browser that have it
  --memory GIB            most GPU memory to use (default: what the device gives)
  --encoder NAME          webcodecs or ffmpeg (default webcodecs where the browser has it); ffmpeg
                          is slower and makes the same video of the same frames every time
  --json                  prints how it was made and what each phase and step took, as JSON
  --out FILE              where to write the MP4 (default out/<id>.mp4)
  --help                  this text

Environment: KINORA_BROWSER is the browser to use; KINORA_GPU=software leaves the GPU alone,
KINORA_GPU=hardware ends where there is none; KINORA_HOME is the folder for models (default .kinora in the project).
`;

function between(field: keyof typeof ranges): string {
  const { min, max, default: standard } = ranges[field];
  return `${min} to ${max} (default ${standard})`;
}

/**
 * Reads the command line.
 *
 * @param args without node and script
 * @returns `help` when that is all that is wanted
 * @throws KinoraError `REQUEST_INVALID`, `PROMPT_EMPTY` or `PARAMETER_INVALID`
 */
export function parseGenerateOptions(args: readonly string[]) {
  const { values, positionals } = readArguments(joinNegative(args), optionTypes, (sentence) =>
    usageError('generate', sentence),
  );
  if (values.help) return 'help';
  refuseMore('generate', positionals);
  const parameters = readParameters(values);
  return {
    /** File or URL; undefined for the bundled sample. */
    image: values.image,
    lastImage: readLastImage(values, parameters),
    parameters,
    explicit: explicitParameters(values),
    model: values.model ?? demonstrationModel,
    profile: values.fast ? ('ultra-fast' as const) : ('standard' as const),
    options: { framing: readFraming(values, ''), ...readRunOptions(values) } satisfies RunOptions,
    device: readDevice(values),
    ...readDownload(values),
    out: values.out,
  };
}

/** What `npm run generate` was asked for. */
export type GenerateOptions = Exclude<ReturnType<typeof parseGenerateOptions>, 'help'>;

/** @throws KinoraError those of {@link requirePlaceOfLastImage}, and those of {@link readFraming} */
function readLastImage(values: Values, parameters: Parameters) {
  const from = values['last-image'];
  const framing = readFraming(values, 'last-');
  if (from === undefined && (framing || parameters.last_image_at !== undefined)) {
    const options = '--last-image-at, --last-crop and --last-fit';
    throw usageError('generate', `${options} need --last-image.`);
  }
  requirePlaceOfLastImage(parameters, from);
  return from === undefined ? undefined : { from, framing };
}

/** @throws KinoraError `PARAMETER_INVALID`, or `REQUEST_INVALID` for both options at once */
function readFraming(values: Values, prefix: '' | 'last-'): Framing | undefined {
  const { [`${prefix}crop` as const]: crop, [`${prefix}fit` as const]: fit } = values;
  if (crop !== undefined && fit !== undefined) {
    throw usageError('generate', `--${prefix}crop and --${prefix}fit exclude each other.`);
  }
  if (fit !== undefined) {
    const { success, data } = framingSchema.safeParse({ ...centred, zoom: 0, background: fit });
    if (success) return data;
    const sentence = `--${prefix}fit must be blur or a colour such as #203040, not "${fit}".`;
    throw new KinoraError('PARAMETER_INVALID', sentence);
  }
  if (crop === undefined) return undefined;
  const [x, y, zoom = 1, ...more] = crop.split(',').map(readNumber);
  const { success, data } = framingSchema.safeParse({ ...centred, x, y, zoom });
  if (success && zoom >= 1 && more.length === 0) return data;
  const sentence = `--${prefix}crop must be X,Y or X,Y,ZOOM: a position from 0 to 1 and a zoom from 1 to ${maxZoom}, not "${crop}".`;
  throw new KinoraError('PARAMETER_INVALID', sentence);
}

type Values = Arguments<typeof optionTypes>['values'] & Readonly<Record<string, unknown>>;

/** Joins `--seed -1`: parseArgs would take `-1` for an option. */
function joinNegative(args: readonly string[]): string[] {
  const joined: string[] = [];
  for (const arg of args) {
    const previous = joined.at(-1);
    if (/^-\d/.test(arg) && previous?.startsWith('--') && !previous.includes('=')) {
      joined[joined.length - 1] = `${previous}=${arg}`;
    } else joined.push(arg);
  }
  return joined;
}

/** The parameters of a run: what was typed, and for the others the model's own defaults, where it has some. */
export function withModelDefaults(
  { parameters, explicit }: Pick<GenerateOptions, 'parameters' | 'explicit'>,
  defaults: ModelManifest['defaults'],
): Parameters {
  const typed = Object.fromEntries(explicit.map((name) => [name, parameters[name]]));
  return parseParameters({ ...parameters, ...defaults, ...typed });
}

/** The parameters that were typed: the others are the model's own defaults, where it has some. */
function explicitParameters(values: Values): (keyof ModelManifest['defaults'])[] {
  const names = ['negative_prompt', ...unusedParameters] as const;
  return names.filter((name) => values[parameterOptions[name]] !== undefined);
}

/** Parameters that are numbers, besides those with a range. */
const numbers: ReadonlySet<string> = new Set(['upscale', 'last_image_at']);

function readParameters(values: Values): Parameters {
  const typed = Object.entries(parameterOptions).map(([name, option]) => {
    const value: unknown = values[option];
    const isNumber = numbers.has(name) || Object.hasOwn(ranges, name);
    return [name, isNumber && typeof value === 'string' ? readNumber(value) : value];
  });
  const input = {
    ...Object.fromEntries(typed),
    prompt: values.prompt ?? (values.image === undefined ? samplePrompt : ''),
    loras: values.lora?.map(readLora),
  };
  for (const name of switchNames) {
    const { within } = switches[name];
    if (input[name] === undefined || !within || input[within] === switches[within].on) continue;
    const needed = `--${parameterOptions[within]} ${switches[within].on}`;
    throw usageError('generate', `--${parameterOptions[name]} needs ${needed}.`);
  }
  try {
    return parseParameters(input);
  } catch (error) {
    throw error instanceof KinoraError ? inOptionNames(error) : error;
  }
}

/** The same error, naming the option that was typed instead of the request's field. */
function inOptionNames(error: KinoraError): KinoraError {
  const [field = ''] = error.message.split(/[ .]/);
  const options: Readonly<Record<string, string>> = parameterOptions;
  if (!options[field]) return error;
  return new KinoraError(error.code, `--${options[field]}${error.message.slice(field.length)}`, {
    remedy: error.remedy,
  });
}

/** `PATH:SCALE`, split at the last colon: a Windows path has one of its own. */
function readLora(text: string): { path: string; scale: number } {
  const colon = text.lastIndexOf(':');
  const scale = readNumber(text.slice(colon + 1));
  if (colon < 1 || scale === undefined || !(scale >= 0 && scale <= 4)) {
    throw new KinoraError(
      'PARAMETER_INVALID',
      `--lora ${text} must be PATH:SCALE with a scale from 0 to 4.`,
    );
  }
  return { path: text.slice(0, colon), scale };
}
