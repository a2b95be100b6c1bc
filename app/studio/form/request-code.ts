import {
  centred,
  type Framing,
  optionDefinitions,
  optionNames,
  type ParametersInput,
  parameterOptions,
  parseParameters,
  type RunOptions,
} from '../../../lib/contract';
import { type SubmitInput, variantOfProfile } from '../../../lib/contract/v3';
import { memoryOption } from '../../shared/device';
import { bundledLora } from './examples';
import {
  type ChosenImage,
  emptyForm,
  type FormFiles,
  type FormState,
  type ImageName,
  toParameters,
} from './form-state';

/** The languages in which a request of the form can be written. */
export const codeLanguages = ['curl', 'javascript', 'python', 'command'] as const;
export type CodeLanguage = (typeof codeLanguages)[number];

/** Where a LoRA of the library is from, by its name; undefined for a file. */
export type LoraSourceOf = (name: string) => string | undefined;

/** A request of the API: what is not the default, without its files. */
interface ApiRequest {
  /** `{provider}/{model_family}/{variant}` */
  readonly model: string;
  readonly image: string;
  /** Null without an end image. */
  readonly lastImage: string | null;
  /** What is to be known of the images; none where they are the files as they were chosen. */
  readonly remarks: readonly string[];
  /** LoRA files that come with Kinora, as paths of the server. */
  readonly bundled: readonly string[];
  /** Names of LoRA files; in `body` they stand as the paths. */
  readonly files: readonly string[];
  readonly body: Omit<SubmitInput, 'image' | 'last_image'>;
}

/**
 * The form as a program that makes the video through the API, or as a command.
 *
 * @param options of its request
 * @param origin of the server, such as `https://example.org`
 */
export function requestCode(
  language: CodeLanguage,
  form: FormState,
  options: RunOptions,
  origin: string,
  sourceOf: LoraSourceOf,
): string {
  if (language === 'command') return command(form, options);
  const request = apiRequest(form, options, sourceOf);
  if (language === 'curl') return curl(request, origin);
  return language === 'javascript' ? javascript(request, origin) : python(request, origin);
}

/** Whether an image lies otherwise in the frame than the API puts it. */
export function isFramed(framing: Framing | undefined): framing is Framing {
  return framing !== undefined && JSON.stringify({ ...centred, ...framing }) !== usualFraming;
}

const usualFraming = JSON.stringify(centred);

/** The name under which a framed image is saved. The end image may be the same file in another frame. */
export function framedName(name: string, which: ImageName): string {
  return `${name.replace(/\.[^.]*$/, '')}-${which === 'image' ? '' : 'end-'}framed.png`;
}

/** The name of the image that a request is sent with. */
function imageName(image: ChosenImage | null, which: ImageName): string {
  if (!image) return 'still.png';
  return isFramed(image.framing) ? framedName(image.name, which) : image.name;
}

/** Says where framed images come from. @param isSaved whether one that is framed is to be saved */
function remarksOf(files: FormFiles, isSaved: (framing: Framing | undefined) => boolean): string[] {
  return (['image', 'lastImage'] as const).flatMap((which) => {
    const image = files[which];
    if (!image || !isSaved(image.framing)) return [];
    const what = which === 'image' ? 'The image' : 'The end image';
    const name = framedName(image.name, which);
    return [`${what} as it is framed in the form: save it as ${name} first.`];
  });
}

/** The fields of options that are not as usual in the API. */
function apiFieldsOf(options: RunOptions): Partial<SubmitInput> {
  const changed = optionNames.flatMap((name) => {
    const { field, initial = false } = optionDefinitions[name];
    return field && Boolean(options[name]) !== initial ? [[field, !initial]] : [];
  });
  return Object.fromEntries(changed);
}

/** The parameters that are not the default, and the prompt. */
function chosenParameters(form: FormState, defaults: ParametersInput): ParametersInput {
  const { prompt, ...settings } = toParameters(form);
  const usual: Readonly<Record<string, unknown>> = { ...defaults };
  const chosen = Object.entries(settings).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(usual[name]),
  );
  return { prompt, ...Object.fromEntries(chosen) };
}

function apiRequest(form: FormState, options: RunOptions, sourceOf: LoraSourceOf): ApiRequest {
  const { values, files } = form;
  // The API has no choice of what enlarges.
  const {
    loras = [],
    upscaler: _,
    ...parameters
  } = chosenParameters(form, parseParameters({ prompt: '-' }));
  const located = loras.map(({ path, scale }, index) => {
    const source = files.loras[index]?.file ? undefined : sourceOf(path);
    // A LoRA that came from a hub or a link needs no upload.
    return { path: source?.includes('/') ? source : path, scale };
  });
  return {
    model: `kinora/wan-2.2/${variantOfProfile(values.profile)}`,
    image: imageName(files.image, 'image'),
    lastImage: files.lastImage && imageName(files.lastImage, 'lastImage'),
    remarks: remarksOf(files, isFramed),
    bundled: located.flatMap(({ path }) => bundledLora(path) ?? []),
    files: located.filter(({ path }) => !path.includes('/')).map(({ path }) => path),
    body: {
      ...parameters,
      ...(located.length > 0 && { loras: located }),
      ...apiFieldsOf(options),
    },
  };
}

function curl(request: ApiRequest, origin: string): string {
  const { model, image, lastImage, remarks, bundled, files, body } = request;
  const fetched = bundled.map((path) => `curl -sSfO "$server${path}"\n`).join('');
  const loras = files.map((name) => `upload ${shellQuoted(name)} > /dev/null\n`).join('');
  const last = lastImage ? `last=$(upload ${shellQuoted(lastImage)})\n` : '';
  const [argument, field] = last ? [' --arg last "$last"', ' | .last_image = $last'] : ['', ''];
  return `# Needs curl and jq. KINORA_KEY is an API key.
${commented('#', remarks)}set -eu
server="\${KINORA_URL:-${origin}}"
api="$server/api/v3"
auth="Authorization: Bearer $KINORA_KEY"
upload() { curl -sSf -H "$auth" "$api/media/upload/binary" -F "file=@\\"$1\\"" | jq -r .data.download_url; }

image=$(upload ${shellQuoted(image)})
${last}${fetched}${loras}answer=$(jq --arg image "$image"${argument} '.image = $image${field}' <<'BODY' | curl -sSf -H "$auth" -H 'Content-Type: application/json' "$api/${model}" -d @-
${JSON.stringify(body, null, 2)}
BODY
)
id=$(printf %s "$answer" | jq -r .data.id)

# Each request waits up to eight seconds for the end.
status=created
while [ "$status" = created ] || [ "$status" = processing ]; do
  answer=$(curl -sSf -H "$auth" "$api/predictions/$id/result?wait=8")
  status=$(printf %s "$answer" | jq -r .data.status)
done
[ "$status" = completed ] || { printf %s "$answer" | jq -r .data.error >&2; exit 1; }
curl -sSf -o video.mp4 "$(printf %s "$answer" | jq -r '.data.outputs[0]')"
`;
}

function javascript(request: ApiRequest, origin: string): string {
  const { model, image, lastImage, remarks, bundled, files, body } = request;
  const fetched = bundled
    .map((path) => {
      const [from, to] = [path, fileNameOf(path)].map((text) => JSON.stringify(text));
      return `await save(baseUrl + ${from}, ${to});\n`;
    })
    .join('');
  const loras = files.map((name) => `await client.upload(${JSON.stringify(name)});\n`).join('');
  const last = lastImage
    ? `const last_image = await client.upload(${JSON.stringify(lastImage)});\n`
    : '';
  return `// npm install wavespeed. KINORA_KEY is an API key.
${commented('//', remarks)}import { writeFile } from 'node:fs/promises';
import { Client } from 'wavespeed';

const baseUrl = process.env.KINORA_URL ?? ${JSON.stringify(origin)};
const client = new Client(process.env.KINORA_KEY, { baseUrl });
const save = async (url, file) =>
  writeFile(file, Buffer.from(await (await fetch(url)).arrayBuffer()));

const image = await client.upload(${JSON.stringify(image)});
${last}${fetched}${loras}const { outputs } = await client.run(${JSON.stringify(model)}, {
  image,${last && ' last_image,'}
  ${JSON.stringify(body, null, 2).slice(4, -2)},
});

await save(outputs[0], 'video.mp4');
`;
}

function python(request: ApiRequest, origin: string): string {
  const { model, image, lastImage, remarks, bundled, files, body } = request;
  const fetched = bundled
    .map((path) => {
      const [from, to] = [path, fileNameOf(path)].map((text) => JSON.stringify(text));
      return `urllib.request.urlretrieve(SERVER + ${from}, ${to})\n`;
    })
    .join('');
  const loras = files.map((name) => `upload(${JSON.stringify(name)})\n`).join('');
  const last = lastImage ? `last_image = upload(${JSON.stringify(lastImage)})\n` : '';
  const images = `"image": image${last && ', "last_image": last_image'}`;
  return `# Python 3, nothing to install. KINORA_KEY is an API key.
${commented('#', remarks)}import json
import os
import urllib.request

SERVER = os.environ.get("KINORA_URL", ${JSON.stringify(origin)})
API = SERVER + "/api/v3/"
AUTH = {"Authorization": "Bearer " + os.environ["KINORA_KEY"]}


def call(path, body=None):
    headers = {**AUTH, "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(API + path, data, headers)) as answer:
        return json.load(answer)["data"]


def upload(name):
    with open(name, "rb") as file:
        content = file.read()
    ticket = call("media/uploads", {"filename": os.path.basename(name), "size": len(content)})
    to = ticket["upload"]
    request = urllib.request.Request(to["url"], content, to["headers"], method=to["method"])
    urllib.request.urlopen(request).close()
    return ticket["download_url"]


image = upload(${JSON.stringify(image)})
${last}${fetched}${loras}body = json.loads(r"""
${JSON.stringify(body, null, 2)}
""")
prediction = call(${JSON.stringify(model)}, {${images}, **body})

# Each request waits up to eight seconds for the end.
while prediction["status"] in ("created", "processing"):
    prediction = call(f"predictions/{prediction['id']}/result?wait=8")
if prediction["status"] == "failed":
    raise SystemExit(prediction["error"])
urllib.request.urlretrieve(prediction["outputs"][0], "video.mp4")
`;
}

function command(form: FormState, options: RunOptions): string {
  const { values, files } = form;
  const { loras: _, ...parameters } = chosenParameters(form, commandDefaults(form));
  const typed: Readonly<Record<string, unknown>> = parameters;
  const flags = Object.entries(parameterOptions).flatMap(([field, name]) => {
    const value = typed[field];
    if (value === undefined) return [];
    return value === true ? [`--${name}`] : [option(`--${name}`, String(value))];
  });
  const memory = memoryOption(values);
  const parts = [
    'npm run generate --',
    ...(values.model ? [option('--model', values.model)] : []),
    ...imageOptions(files.image, 'image'),
    ...(files.lastImage ? imageOptions(files.lastImage, 'lastImage') : []),
    ...flags,
    ...files.loras.map(({ name, scale }) => option('--lora', `${commandLora(name)}:${scale}`)),
    ...(values.profile === 'ultra-fast' ? ['--fast'] : []),
    ...runOptions(options),
    ...(values.backend === 'wasm' ? ['--backend wasm'] : []),
    ...(memory ? [option('--memory', memory)] : []),
  ];
  const remarks = remarksOf(files, (framing) => !isOption(framing));
  return `${commented('#', remarks)}${parts.join(' \\\n  ')}\n`;
}

/** Options of a run that are not as the command starts with. */
function runOptions(options: RunOptions): string[] {
  return optionNames.flatMap((name) => {
    const { option: flag, initial } = optionDefinitions[name];
    const value = options[name];
    if (value === undefined || value === initial) return [];
    if (typeof value !== 'boolean') return [option(`--${flag}`, String(value))];
    return value === flag.startsWith('no-') ? [] : [`--${flag}`];
  });
}

/** What the command starts with: the defaults of the model. Nothing where the form has not shown them. */
function commandDefaults({ values, files }: FormState): ParametersInput {
  if (!values.samplingDefaults) return { prompt: '' };
  return toParameters({
    ...emptyForm,
    files,
    values: { ...emptyForm.values, ...values.samplingDefaults },
  });
}

/** Whether an option says how the image lies in the frame: none has a zoom between Fit and Fill, or a colour there. */
function isOption(framing: Framing | undefined): boolean {
  if (!isFramed(framing)) return true;
  const { zoom, x, y, background } = framing;
  return zoom === 0 ? x === 0.5 && y === 0.5 : zoom >= 1 && background === 'blur';
}

/** An image and how it lies in the frame; one that no option frames is the framed one. */
function imageOptions(image: ChosenImage | null, which: ImageName): string[] {
  const prefix = which === 'image' ? '--' : '--last-';
  const framing = image?.framing;
  if (!image || !isOption(framing)) return [option(`${prefix}image`, imageName(image, which))];
  return [option(`${prefix}image`, image.name), ...framingOptions(framing, prefix)];
}

/** How an image lies in the frame; nothing where it fills it from the centre. */
function framingOptions(framing: Framing | undefined, prefix: string): string[] {
  if (!isFramed(framing)) return [];
  if (framing.zoom === 0) return [option(`${prefix}fit`, framing.background)];
  const { x, y, zoom } = framing;
  return [option(`${prefix}crop`, [x, y, zoom].map((value) => Number(value.toFixed(4))).join(','))];
}

/** A LoRA as the command finds it: what comes with Kinora lies in its own folder. */
function commandLora(name: string): string {
  const path = bundledLora(name);
  return path ? `public${path}` : name;
}

/** Lines of a comment. */
function commented(sign: string, remarks: readonly string[]): string {
  return remarks.map((text) => `${sign} ${text}\n`).join('');
}

function fileNameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** A value that begins with a hyphen would be taken for an option. */
function option(flag: string, value: string): string {
  return `${flag}${value.startsWith('-') ? '=' : ' '}${shellQuoted(value)}`;
}

/** A word of a shell command, in quotes where it needs them. */
function shellQuoted(text: string): string {
  if (/^[\w./:@%+=,-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
