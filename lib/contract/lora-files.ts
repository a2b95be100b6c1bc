/** Tells the model for which a LoRA was made, by the name of its file and the shapes of its tensors. */

/** Hidden and feed-forward widths by which a base is known. */
const bases = [
  ['Wan 14B', [5120, 13_824]],
  ['Wan 1.3B', [1536, 8960]],
  ['Wan2.2-TI2V-5B', [3072, 14_336]],
] as const satisfies readonly (readonly [name: string, widths: readonly number[]])[];
export type LoraBaseName = (typeof bases)[number][0];

/** The base that a tensor of a LoRA was made for, by its shape; undefined where no base has such a width. */
export function loraBaseOf(shape: readonly number[]): LoraBaseName | undefined {
  return bases.find(([, widths]) => widths.some((width) => shape.includes(width)))?.[0];
}

/** The transformers of Wan2.2-I2V-A14B: one for high noise, one for low. */
export const noises = ['high', 'low'] as const;
export type Noise = (typeof noises)[number];
/** The models that have both, by the ids of their manifests. */
export const twoTransformerModels: readonly string[] = ['wan2.2-i2v-a14b'];

/** `low poly` and the like are words of styles. */
const style =
  '(?![ _-]?(poly|quality|res|detail|key|angle|light|contrast|heel|fantasy|fashion|speed|motion|rank|vram|mem(ory)?)s?(?![a-z]))';
const words: Readonly<Record<Noise, RegExp>> = {
  high: new RegExp(`(^|[^a-z])(high|highnoise|hn)(?=[^a-z]|$)${style}`, 'i'),
  low: new RegExp(`(^|[^a-z])(low|lownoise|ln)(?=[^a-z]|$)${style}`, 'i'),
};

/**
 * The transformer that a file is for by a word of its name or folder (`high`, `LowNoise`, `HN`, …); null without one.
 *
 * @returns `stem`: the rest of the name, which the other file of a pair has, too
 */
export function noiseOfName(name: string): { readonly noise: Noise; readonly stem: string } | null {
  // In HighNoise and the like a capital begins the next word.
  const spaced = name.replace(/([a-z])([A-Z])/g, '$1 $2');
  const [noise, other] = noises.filter((one) => words[one].test(spaced));
  if (noise === undefined || other !== undefined) return null;
  return { noise, stem: spaced.replace(words[noise], '$1').toLowerCase() };
}

/**
 * The name that a server gives a LoRA: its header, a storage's field in place of that, or the end of an address.
 *
 * @param disposition `Content-Disposition`
 * @param addresses the one that was asked for, and the last one of the redirects
 */
export function servedName(
  disposition: string | null | undefined,
  addresses: readonly string[],
): string | undefined {
  const urls = addresses.map((address) => new URL(address));
  const fields = urls.map(({ searchParams }) => searchParams.get('response-content-disposition'));
  const told = [disposition, ...fields].map((header) => {
    const encoded = /filename\*\s*=\s*[\w-]*'[^']*'([^;\s]+)/i.exec(header ?? '');
    return (encoded ?? /filename\s*=\s*"?([^";]+)/i.exec(header ?? ''))?.[1] ?? '';
  });
  const files = [...told, ...urls.map(({ pathname }) => pathname)].flatMap((name) => {
    // As a field of a query, since a plain name may have a "%" of its own.
    const decoded = new URLSearchParams(`=${name.replace(/[+&]/g, encodeURIComponent)}`).get('');
    return /[^/\\]{1,200}\.safetensors$/i.exec(decoded?.trim() ?? '')?.[0] ?? [];
  });
  return files.find(isNamed) ?? files[0];
}

/** Whether a LoRA has a name of its own: the address of a download may end in a number or a key instead. */
export function isNamed(path: string): boolean {
  const stem = /([^/?#]*)\.safetensors([?#].*)?$/i.exec(path)?.[1] ?? '';
  return !/^(lora)?[-_.\d]*$|^[\da-f-]{16,}$/i.test(stem);
}

/**
 * The LoRAs of a list, each with its files in the list: two for a pair, whose files are named alike but for `high` and
 * `low`, else one. The file for high noise comes first.
 *
 * @param belong whether two files that are named so are taken as one
 */
export function groupPairs<File>(
  files: readonly File[],
  nameOf: (file: File) => string,
  belong: (one: File, other: File) => boolean = () => true,
): (readonly [File] | readonly [high: File, low: File])[] {
  const groups: (readonly [File] | readonly [File, File])[] = [];
  for (const file of files) {
    const named = noiseOfName(nameOf(file));
    const at = groups.findIndex(([one, second]) => {
      const other = second || !named ? null : noiseOfName(nameOf(one));
      return other?.stem === named?.stem && other?.noise !== named?.noise && belong(one, file);
    });
    const [one] = groups[at] ?? [];
    if (one === undefined) groups.push([file]);
    else groups[at] = named?.noise === 'high' ? [file, one] : [one, file];
  }
  return groups;
}
