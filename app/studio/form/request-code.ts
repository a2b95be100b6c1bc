import type { Framing } from '../../../lib/contract/framing';
import { type ParametersInput, parseParameters } from '../../../lib/contract/request';
import type { SubmitInput } from '../../../lib/contract/v3';
import { variantOfProfile } from '../../../lib/contract/v3/prediction';
import { emptyForm, type FormState, toParameters } from './form-state';

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
  /** Names of LoRA files; in `body` they stand as the paths. */
  readonly files: readonly string[];
  readonly body: Omit<SubmitInput, 'image'>;
}

/**
 * The form as a program that makes the video through the API, or as a command.
 *
 * @param origin of the server, such as `https://example.org`
 */
export function requestCode(
  language: CodeLanguage,
  form: FormState,
  origin: string,
  sourceOf: LoraSourceOf,
): string {
  if (language === 'command') return command(form);
  const request = apiRequest(form, sourceOf);
  if (language === 'curl') return curl(request, origin);
  return language === 'javascript' ? javascript(request, origin) : python(request, origin);
}

/** The parameters that are not the default, and the prompt. */
function chosenParameters(form: FormState, defaults: ParametersInput): ParametersInput {
  const { prompt, ...given } = toParameters(form);
  const usual: Readonly<Record<string, unknown>> = { ...defaults };
  const chosen = Object.entries(given).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(usual[name]),
  );
  return { prompt, ...Object.fromEntries(chosen) };
}

function apiRequest(form: FormState, sourceOf: LoraSourceOf): ApiRequest {
  const { values, files } = form;
  const { loras = [], ...parameters } = chosenParameters(form, parseParameters({ prompt: '-' }));
  const located = loras.map(({ path, scale }, index) => {
    const source = files.loras[index]?.file ? undefined : sourceOf(path);
    // A LoRA that came from a hub or a link needs no upload.
    return { path: source?.includes('/') ? source : path, scale };
  });
  return {
    model: `kinora/wan-2.2/${variantOfProfile(values.profile)}`,
    image: files.image?.name ?? 'still.png',
    files: located.filter(({ path }) => !path.includes('/')).map(({ path }) => path),
    body: {
      ...parameters,
      ...(located.length > 0 && { loras: located }),
      ...(!values.safetyChecker && { enable_safety_checker: false }),
    },
  };
}

function curl({ model, image, files, body }: ApiRequest, origin: string): string {
  const loras = files.map((name) => `upload ${shellQuoted(name)} > /dev/null\n`).join('');
  return `# Needs curl and jq. KINORA_KEY is an API key.
set -eu
api="\${KINORA_URL:-${origin}}/api/v3"
auth="Authorization: Bearer $KINORA_KEY"
upload() { curl -sSf -H "$auth" "$api/media/upload/binary" -F "file=@\\"$1\\"" | jq -r .data.download_url; }

image=$(upload ${shellQuoted(image)})
${loras}answer=$(jq --arg image "$image" '.image = $image' <<'BODY' | curl -sSf -H "$auth" -H 'Content-Type: application/json' "$api/${model}" -d @-
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

function javascript({ model, image, files, body }: ApiRequest, origin: string): string {
  const loras = files.map((name) => `await client.upload(${JSON.stringify(name)});\n`).join('');
  return `// npm install wavespeed. KINORA_KEY is an API key.
import { writeFile } from 'node:fs/promises';
import { Client } from 'wavespeed';

const baseUrl = process.env.KINORA_URL ?? ${JSON.stringify(origin)};
const client = new Client(process.env.KINORA_KEY, { baseUrl });

const image = await client.upload(${JSON.stringify(image)});
${loras}const { outputs } = await client.run(${JSON.stringify(model)}, {
  image,
  ${JSON.stringify(body, null, 2).slice(4, -2)},
});

const video = await fetch(outputs[0]);
await writeFile('video.mp4', Buffer.from(await video.arrayBuffer()));
`;
}

function python({ model, image, files, body }: ApiRequest, origin: string): string {
  const loras = files.map((name) => `upload(${JSON.stringify(name)})\n`).join('');
  return `# Python 3, nothing to install. KINORA_KEY is an API key.
import json
import os
import urllib.request

API = os.environ.get("KINORA_URL", ${JSON.stringify(origin)}) + "/api/v3/"
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
${loras}body = json.loads(r"""
${JSON.stringify(body, null, 2)}
""")
prediction = call(${JSON.stringify(model)}, {"image": image, **body})

# Each request waits up to eight seconds for the end.
while prediction["status"] in ("created", "processing"):
    prediction = call(f"predictions/{prediction['id']}/result?wait=8")
if prediction["status"] == "failed":
    raise SystemExit(prediction["error"])
urllib.request.urlretrieve(prediction["outputs"][0], "video.mp4")
`;
}

/** The options of `npm run generate` for parameters that differ from the default. */
const options = {
  negative_prompt: '--negative-prompt',
  size: '--size',
  duration: '--duration',
  num_inference_steps: '--steps',
  guidance_scale: '--guidance',
  flow_shift: '--flow-shift',
  seed: '--seed',
} as const;

function command(form: FormState): string {
  const { values, files } = form;
  const parameters: Readonly<Record<string, unknown>> = chosenParameters(
    form,
    commandDefaults(form),
  );
  const given = Object.entries(options).flatMap(([name, flag]) =>
    parameters[name] === undefined ? [] : [option(flag, String(parameters[name]))],
  );
  const isFast = values.profile === 'ultra-fast';
  const budget = values.memoryBudget.trim();
  const parts = [
    'npm run generate --',
    ...(values.model ? [option('--model', values.model)] : []),
    option('--image', files.image?.name ?? 'still.png'),
    ...framingOptions(files.image?.framing),
    option('--prompt', values.prompt),
    ...given,
    ...files.loras.map(({ name, scale }) => option('--lora', `${name}:${scale}`)),
    ...(isFast ? ['--fast'] : []),
    ...(isFast && values.fullDecode ? ['--decoder full'] : []),
    ...(!isFast && values.cache ? ['--cache'] : []),
    ...(values.safetyChecker ? [] : ['--no-safety-check']),
    ...(values.backend === 'wasm' ? ['--backend wasm'] : []),
    ...(budget ? [option('--memory', budget)] : []),
  ];
  return `${unsaid(files.image?.framing)}${parts.join(' \\\n  ')}\n`;
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

/** How the image lies in the frame; nothing where it fills it from the centre. */
function framingOptions(framing: Framing | undefined): string[] {
  if (!framing) return [];
  if (framing.zoom === 0) return [option('--fit', framing.background)];
  const { x, y, zoom } = framing;
  const crop = [x, y, zoom].map((value) => Number(value.toFixed(4))).join(',');
  return zoom < 1 || crop === '0.5,0.5,1' ? [] : [option('--crop', crop)];
}

/** What no option says, as a comment before the command. */
function unsaid(framing: Framing | undefined): string {
  if (!framing || framing.zoom === 0 || framing.zoom >= 1) return '';
  return '# Fills the frame with the image: a zoom between Fit and Fill has no option.\n';
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
